//! What is told of hits, in the layouts of hmmsearch, which existing programs read: the tables `--tblout` and
//! `--domtblout`, the report with alignments, and the multiple alignment in Stockholm format.
//!
//! ```text
//! hits with their names -> rows: thresholds, order -> text -> rows again
//! ```

mod number;
mod parse;
mod report;
mod rows;
mod stockholm;
mod write;

#[cfg(test)]
mod tests;

pub use crate::thresholds::{Threshold, Thresholds};
pub use parse::{TableError, parse};
pub use report::{write_report, write_report_header};
pub use rows::{DomainRow, Named, Row, Rows, Scored, rows};
pub use stockholm::write_stockholm;
pub use write::{Footer, write_domain_header, write_domains, write_footer, write_header, write_rows};
