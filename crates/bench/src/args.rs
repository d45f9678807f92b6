//! What can be typed.

use crate::entry::Entry;
use crate::harness::how::How;
use crate::rows;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Our runs beside their peers, in turns: medians, ratios, and whether each bar holds
#[derive(clap::Parser, Debug)]
#[command(name = "multigrain bench", version, max_term_width = 100)]
pub(crate) struct BenchArgs {
    /// What to measure [default: everything that is not only measured when it is named]
    #[arg(value_name = "ROW", value_parser = row())]
    pub(crate) rows: Vec<&'static Entry>,
    #[command(flatten)]
    pub(crate) how: How,
}

/// The rows by their names.
fn row() -> impl TypedValueParser<Value = &'static Entry> {
    let named = |name: String| rows::all().find(|entry| entry.name == name).ok_or("no such row");
    PossibleValuesParser::new(rows::all().map(|entry| PossibleValue::new(entry.name).help(entry.about))).try_map(named)
}
