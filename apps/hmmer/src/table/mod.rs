//! The table of hits, in the layout of hmmsearch's `--tblout`, which existing programs read.
//!
//! ```text
//! hits with their names -> rows: thresholds, order -> text -> rows again
//! ```

mod number;
mod parse;
mod rows;
mod write;

#[cfg(test)]
mod tests;

pub use parse::{TableError, parse};
pub use rows::{DomainRow, Named, Row, Rows, Scored, Threshold, Thresholds, rows};
pub use write::{Footer, write_domain_header, write_domains, write_footer, write_header, write_rows};
