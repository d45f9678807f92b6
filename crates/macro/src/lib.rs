//! The attribute `#[task]`: a function on blocks becomes a task that declares how axes cut them.
//!
//! In comes a function whose parameters say, by `#[at(..)]`, which axes cut each of their dimensions. Out goes a unit
//! struct of the same name that implements `multigrain::prelude::Task`. It computes nothing: what the notation means is
//! said in the program room alone; here is only what can be said earlier and at the right place of the source text.
//! It is described, with examples that are compiled, where it is used: `multigrain::task`.

mod emit;
mod index;
mod parse;

/// See `multigrain::task`.
#[proc_macro_attribute]
pub fn task(arguments: proc_macro::TokenStream, function: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let task = parse::task(arguments.into(), function.into());
    task.map(emit::task).unwrap_or_else(|error| error.to_compile_error()).into()
}
