//! What stands in `axes(..)` and `at(..)`.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Ident, Lit, LitInt, Result, Token, parenthesized, token};

mod keyword {
    syn::custom_keyword!(every);
    syn::custom_keyword!(half);
}

/// `k`, or `k every 256`.
pub(crate) struct Axis {
    pub(crate) name: Ident,
    pub(crate) every: Option<Expr>,
}

impl Parse for Axis {
    fn parse(input: ParseStream<'_>) -> Result<Axis> {
        let name = input.parse()?;
        let every = match input.parse::<Option<keyword::every>>()? {
            Some(_) => Some(amount(input)?),
            None => None,
        };
        Ok(Axis { name, every })
    }
}

/// What cuts one dimension of a parameter.
pub(crate) enum Index {
    /// `:`
    Whole,
    /// `i`
    Along(Ident),
    /// `i +- 1`, or `i - 1 + 2`
    Around(Ident, Box<[Expr; 2]>),
    /// `i +- half(weights, 0)`
    AroundHalf(Ident, Ident, LitInt),
}

impl Index {
    pub(crate) fn axis(&self) -> Option<&Ident> {
        match self {
            Index::Whole => None,
            Index::Along(axis) | Index::Around(axis, ..) | Index::AroundHalf(axis, ..) => Some(axis),
        }
    }

    pub(crate) fn is_window(&self) -> bool {
        matches!(self, Index::Around(..) | Index::AroundHalf(..))
    }
}

impl Parse for Index {
    fn parse(input: ParseStream<'_>) -> Result<Index> {
        if input.parse::<Option<Token![:]>>()?.is_some() {
            return Ok(Index::Whole);
        }
        let axis: Ident =
            input.parse().map_err(|e| Error::new(e.span(), "expected an axis, or : for all of a dimension"))?;
        if input.parse::<Option<Token![-]>>()?.is_some() {
            let before = amount(input)?;
            input.parse::<Token![+]>()?;
            return Ok(Index::Around(axis, Box::new([before, amount(input)?])));
        }
        if input.parse::<Option<Token![+]>>()?.is_none() {
            return Ok(Index::Along(axis));
        }
        input.parse::<Token![-]>().map_err(|e| Error::new(e.span(), "a halo is written +- N, or - N + M"))?;
        if input.parse::<Option<keyword::half>>()?.is_some() {
            let content;
            parenthesized!(content in input);
            let param = content.parse()?;
            content.parse::<Token![,]>()?;
            return Ok(Index::AroundHalf(axis, param, content.parse()?));
        }
        let reach = amount(input)?;
        Ok(Index::Around(axis, Box::new([reach.clone(), reach])))
    }
}

/// A number, a constant, or an expression in parentheses.
fn amount(input: ParseStream<'_>) -> Result<Expr> {
    if input.peek(Lit) {
        let number: LitInt = input.parse().map_err(|e| Error::new(e.span(), "expected a number of elements"))?;
        Ok(Expr::Lit(ExprLit { attrs: Vec::new(), lit: Lit::Int(number) }))
    } else if input.peek(token::Paren) {
        Ok(Expr::Paren(input.parse()?))
    } else {
        Ok(Expr::Path(input.parse().map_err(|e| Error::new(e.span(), "expected a number of elements"))?))
    }
}

/// All of something, with commas between.
pub(crate) fn list<T: Parse>(input: ParseStream<'_>) -> Result<Vec<T>> {
    Ok(Punctuated::<T, Token![,]>::parse_terminated(input)?.into_iter().collect())
}
