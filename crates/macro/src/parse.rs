//! From the text of a function to a task, or to an error at the word that is wrong.

use crate::index::{Axis, Index, list};
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{
    Attribute, Block, Error, Expr, FnArg, GenericArgument, Ident, ItemFn, Lit, LitFloat, Pat, PathArguments, Result,
    ReturnType, Signature, Token, Type, Visibility, parenthesized, parse2,
};

/// What a leaf does with a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Update,
    Reduce,
}

pub(crate) struct Param {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) kind: Kind,
    pub(crate) index: Vec<Index>,
}

/// An argument that is passed by value, and the way in which calls hold it.
pub(crate) struct Scalar {
    pub(crate) name: Ident,
    pub(crate) ty: Ident,
}

pub(crate) struct Task {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) axes: Vec<Axis>,
    pub(crate) flops: Option<LitFloat>,
    pub(crate) params: Vec<Param>,
    pub(crate) scalars: Vec<Scalar>,
    pub(crate) context: Option<Ident>,
    pub(crate) body: Block,
}

/// The arguments of the attribute: axes, and operations of a point.
fn arguments(input: ParseStream<'_>) -> Result<(Vec<Axis>, Option<LitFloat>)> {
    let (mut axes, mut flops) = (None, None);
    while !input.is_empty() {
        let key: Ident = input.parse()?;
        if key == "axes" {
            let content;
            parenthesized!(content in input);
            axes = Some(list(&content)?);
        } else if key == "flops" {
            input.parse::<Token![=]>()?;
            flops = Some(input.parse()?);
        } else {
            return Err(Error::new(key.span(), "expected axes(..), or flops = 2.0"));
        }
        input.parse::<Option<Token![,]>>()?;
    }
    match axes {
        Some(axes) => Ok((axes, flops)),
        None => Err(Error::new(Span::call_site(), "which axes? write #[task(axes(i, j))]")),
    }
}

pub(crate) fn task(attribute: TokenStream, function: TokenStream) -> Result<Task> {
    let (axes, flops) = arguments.parse2(attribute)?;
    let function: ItemFn = parse2(function)?;
    let signature = function.sig;
    for (i, axis) in axes.iter().enumerate() {
        if axes[..i].iter().any(|other| other.name == axis.name) {
            return Err(Error::new(axis.name.span(), format!("axis {} stands twice", axis.name)));
        }
    }
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let message = "a task is for one type: implement `Task` by hand for a generic one";
        return Err(Error::new(signature.generics.span(), message));
    }
    // Whoever calls a task does not know of these.
    let Signature { constness, asyncness, safety, abi, .. } = &signature;
    let qualified =
        [constness.to_token_stream(), asyncness.to_token_stream(), safety.to_token_stream(), abi.to_token_stream()];
    if let Some(qualifier) = qualified.iter().find(|tokens| !tokens.is_empty()) {
        return Err(Error::new(qualifier.span(), "a task is a function without const, async, unsafe or extern"));
    }
    if let ReturnType::Type(..) = signature.output {
        return Err(Error::new(signature.output.span(), "a task returns nothing: it writes to its parameters"));
    }
    let (mut params, mut scalars, mut context) = (Vec::new(), Vec::new(), None);
    for input in signature.inputs {
        let FnArg::Typed(input) = input else {
            return Err(Error::new(input.span(), "a task that holds something implements `Task` by hand"));
        };
        let name = match *input.pat {
            Pat::Ident(pat) => pat.ident,
            other => return Err(Error::new(other.span(), "expected a name")),
        };
        let is_at = |attribute: &&Attribute| attribute.path().is_ident("at");
        if let Some(other) = input.attrs.iter().find(|attribute| !is_at(attribute)) {
            return Err(Error::new(other.span(), "a parameter of a task has the attribute at(..) and no other"));
        }
        let at = input.attrs.iter().find(is_at);
        match (kind_of(&input.ty), &*input.ty, at) {
            (Some(kind), _, Some(at)) => {
                let index = at.parse_args_with(list::<Index>)?;
                let param = Param { name, ty: *input.ty, kind, index };
                check(&param, &axes, at)?;
                params.push(param);
            }
            (Some(_), _, None) => {
                return Err(Error::new(name.span(), format!("which axes cut {name}? write #[at(i, j)] before it")));
            }
            (None, _, Some(at)) => {
                return Err(Error::new(at.span(), "axes cut parameters of type Read, Write, Update or Reduce"));
            }
            (None, Type::Reference(_), None) if context.is_none() => context = Some(name),
            (None, Type::Path(path), None) => match path.path.get_ident() {
                Some(ty) if ty == "f32" || ty == "f64" || ty == "u64" => {
                    scalars.push(Scalar { name, ty: ty.clone() });
                }
                _ => return Err(Error::new(path.span(), PARAMETERS)),
            },
            (None, other, None) => return Err(Error::new(other.span(), PARAMETERS)),
        }
    }
    if params.is_empty() {
        return Err(Error::new(signature.ident.span(), "a task has a parameter of type Read, Write, Update or Reduce"));
    }
    check_axes(&axes, &params)?;
    Ok(Task {
        attributes: function.attrs,
        visibility: function.vis,
        name: signature.ident,
        axes,
        flops,
        params,
        scalars,
        context,
        body: *function.block,
    })
}

const PARAMETERS: &str = "a parameter is Read<T, R>, Write<T, R>, Update<T, R> or Reduce<T, R, O>; a scalar is f32, f64 or \
                          u64; and one may be context: &mut LeafContext<'_>";

/// The last part of a path names the kind, whatever module it is reached by.
fn kind_of(ty: &Type) -> Option<Kind> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    match last.ident.to_string().as_str() {
        "Read" => Some(Kind::Read),
        "Write" => Some(Kind::Write),
        "Update" => Some(Kind::Update),
        "Reduce" => Some(Kind::Reduce),
        _ => None,
    }
}

/// The number of dimensions in a type, where it is written as a number.
fn rank_of(ty: &Type) -> Option<usize> {
    let Type::Path(path) = ty else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    match arguments.args.iter().nth(1)? {
        GenericArgument::Const(Expr::Lit(literal)) => match &literal.lit {
            Lit::Int(rank) => rank.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn names<'a>(axes: impl IntoIterator<Item = &'a Axis>) -> String {
    axes.into_iter().map(|axis| axis.name.to_string()).collect::<Vec<_>>().join(", ")
}

fn check(param: &Param, axes: &[Axis], at: &Attribute) -> Result<()> {
    let name = &param.name;
    if let Some(rank) = rank_of(&param.ty)
        && rank != param.index.len()
    {
        let said = param.index.len();
        return Err(Error::new(at.span(), format!("{name} has {rank} dimensions, and #[at(..)] speaks of {said}")));
    }
    for (i, index) in param.index.iter().enumerate() {
        let Some(axis) = index.axis() else { continue };
        if axes.iter().all(|other| other.name != *axis) {
            let message = format!("there is no axis {axis}; the task has the axes {}", names(axes));
            return Err(Error::new(axis.span(), message));
        }
        if index.is_window() && param.kind != Kind::Read {
            let message =
                format!("{name} is written, so its blocks cannot overlap by a halo; only what is read has one");
            return Err(Error::new(axis.span(), message));
        }
        if param.index[..i].iter().any(|other| other.axis() == Some(axis)) {
            return Err(Error::new(axis.span(), format!("axis {axis} cuts another dimension of {name} already")));
        }
    }
    if param.kind == Kind::Reduce && axes.iter().all(|axis| param.index.iter().any(|i| i.axis() == Some(&axis.name))) {
        let message = format!("{name} is reduced along an axis that does not cut it, and all of {} do", names(axes));
        return Err(Error::new(at.span(), message));
    }
    Ok(())
}

fn check_axes(axes: &[Axis], params: &[Param]) -> Result<()> {
    for axis in axes {
        let plain = |index: &Index| matches!(index, Index::Along(name) if *name == axis.name);
        if !params.iter().any(|param| param.index.iter().any(plain)) {
            let name = &axis.name;
            let message = format!("how long is {name}? no parameter has a dimension that it cuts without a halo");
            return Err(Error::new(name.span(), message));
        }
    }
    for param in params {
        for index in &param.index {
            if let Index::AroundHalf(_, other, dim) = index {
                let Some(found) = params.iter().find(|p| p.name == *other) else {
                    return Err(Error::new(other.span(), format!("there is no parameter {other}")));
                };
                if dim.base10_parse::<usize>()? >= found.index.len() {
                    let message = format!("{other} has {} dimensions, counted from 0", found.index.len());
                    return Err(Error::new(dim.span(), message));
                }
            }
        }
    }
    Ok(())
}
