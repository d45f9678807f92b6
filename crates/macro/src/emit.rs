//! The struct and its implementation of `Task`.

use crate::index::Index;
use crate::parse::{Kind, Param, Task};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::Ident;

pub(crate) fn task(task: Task) -> TokenStream {
    let Task { attributes, visibility, name, axes, flops, params, scalars, context, body } = task;
    let text = name.to_string();
    let prelude = quote!(::multigrain::prelude);
    let types: Vec<_> = params.iter().map(|param| &param.ty).collect();
    let names: Vec<_> = params.iter().map(|param| &param.name).collect();
    let axis_names = axes.iter().map(|axis| axis.name.to_string());
    let every = axes.iter().filter_map(|axis| {
        let (name, every) = (axis.name.to_string(), axis.every.as_ref()?);
        Some(quote!(.every(#name, (#every) as u64)))
    });
    let notation = params.iter().map(|param| notation_of(param, &prelude));
    let flops = flops.map(|flops| quote!(.flops(#flops)));
    let context = context.unwrap_or_else(|| Ident::new("context", Span::mixed_site()));
    let mut windows = 0;
    let bindings = params.iter().map(|param| binding(param, &params, &context, &mut windows, &prelude));
    let scalar_names: Vec<_> = scalars.iter().map(|scalar| &scalar.name).collect();
    let scalar_types: Vec<_> = scalars.iter().map(|scalar| &scalar.ty).collect();
    let with = scalar_types.iter().map(|ty| format_ident!("with_{ty}"));
    let numbers = 0..scalars.len();
    let scalars = (!scalar_names.is_empty()).then(|| {
        quote! {
            impl #name {
                /// The scalars of a call.
                #[allow(dead_code)]
                #visibility fn scalars(#(#scalar_names: #scalar_types),*) -> #prelude::Scalars {
                    #prelude::Scalars::new()#(.#with(#scalar_names))*
                }
            }
        }
    });
    quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, Default)]
        #visibility struct #name;

        #scalars

        impl #prelude::Task for #name {
            type Params = (#(#types,)*);

            fn name(&self) -> &'static str {
                #text
            }

            #[allow(clippy::unnecessary_cast)]
            fn notation(&self) -> ::core::option::Option<#prelude::Notation> {
                let notation = #prelude::Notation::axes([#(#axis_names),*])#(#every)*;
                ::core::option::Option::Some(notation #(#notation)* #flops)
            }

            fn leaf(
                &self,
                (#(#names,)*): (#(<#types as #prelude::ParamKind>::View<'_>,)*),
                #context: &mut #prelude::LeafContext<'_>,
            ) {
                let _ = &#context;
                #(#bindings)*
                #(let #scalar_names = #context.scalars.#scalar_types(#numbers);)*
                #body
            }
        }
    }
}

fn notation_of(param: &Param, prelude: &TokenStream) -> TokenStream {
    let name = param.name.to_string();
    let index = param.index.iter().map(|index| match index {
        Index::Whole => quote!(#prelude::notation::whole()),
        Index::Along(axis) => {
            let axis = axis.to_string();
            quote!(#prelude::notation::along(#axis))
        }
        Index::Around(axis, reach) => {
            let (axis, [before, after]) = (axis.to_string(), &**reach);
            quote!(#prelude::notation::around(#axis, (#before) as u64, (#after) as u64))
        }
        Index::AroundHalf(axis, other, dim) => {
            let (axis, other) = (axis.to_string(), other.to_string());
            quote!(#prelude::notation::around_half(#axis, #other, #dim))
        }
    });
    quote!(.param(#name, [#(#index),*]))
}

/// How the body sees a parameter: a view that it may write through, or one that knows of its halo.
fn binding(
    param: &Param,
    params: &[Param],
    context: &Ident,
    windows: &mut usize,
    prelude: &TokenStream,
) -> TokenStream {
    let name = &param.name;
    if param.kind != Kind::Read {
        return quote!(#[allow(unused_mut)] let mut #name = #name;);
    }
    if !param.index.iter().any(Index::is_window) {
        return TokenStream::new();
    }
    // Of a block with a halo, what the axis is long in another parameter, which there is, or the notation is refused.
    let len = param.index.iter().enumerate().map(|(d, index)| {
        let other = index.axis().filter(|_| index.is_window()).and_then(|axis| {
            let cut = |p: &Param| p.index.iter().position(|i| matches!(i, Index::Along(other) if other == axis));
            params.iter().find_map(|p| Some((&p.name, cut(p)?)))
        });
        let (name, d) = other.unwrap_or((name, d));
        quote!(#name.len(#d))
    });
    let before = param.index.iter().map(|index| {
        if !index.is_window() {
            return quote!(0);
        }
        let number = *windows;
        *windows += 1;
        quote!(#context.before(#number))
    });
    let before: Vec<_> = before.collect();
    let reach = param.index.iter().map(|index| match index {
        Index::Whole | Index::Along(_) => quote!((0, 0)),
        Index::Around(_, reach) => {
            let [before, after] = &**reach;
            quote!(((#before) as usize, (#after) as usize))
        }
        Index::AroundHalf(_, other, dim) => quote!((#other.len(#dim) / 2, #other.len(#dim) / 2)),
    });
    quote! {
        #[allow(clippy::unnecessary_cast)]
        let #name = #prelude::Window::new(#name, [#(#len),*], [#(#before),*], [#(#reach),*]);
    }
}
