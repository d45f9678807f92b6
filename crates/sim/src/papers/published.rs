//! Rows of published tables, and simulated figures beside them.

use serde::Serialize;

/// How a published figure may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Constants of the model were chosen with it.
    Fit,
    /// The model is judged by it, and no constant was chosen with it.
    Predict,
}

/// A published figure and the simulated one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Paper and table.
    pub table: String,
    /// Which figure of it.
    pub row: String,
    /// Unit of both figures.
    pub unit: &'static str,
    /// As printed.
    pub published: f64,
    /// As simulated; `None` where the model cannot say, for the reason in `note`.
    pub simulated: Option<f64>,
    /// How the published figure may be used.
    #[serde(rename = "use")]
    pub usage: Use,
    /// Whether the published figure can follow from the constants that are published with it, as far as is known; if not,
    /// `note` says why.
    pub follows: bool,
    /// What has to be known to read the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Row {
    /// How far the simulated figure is off, as a share of the published one: 0.1 is 10 % too much.
    pub fn error(&self) -> Option<f64> {
        Some(self.simulated? / self.published - 1.0)
    }
}

/// Median and largest of the absolute errors of these rows; `None` without any.
pub fn errors<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<(f64, f64)> {
    let mut errors: Vec<f64> = rows.into_iter().filter_map(Row::error).map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    let n = errors.len();
    let median = if n % 2 == 1 { errors[n / 2] } else { (errors.get(n / 2)? + errors.get(n / 2 - 1)?) / 2.0 };
    Some((median, errors[n - 1]))
}

/// The lines of one of the files beside this module: fields between commas; `#` begins a comment.
pub(super) fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).skip(1).map(|line| line.split(',').collect())
}

/// What a file's `use` column says.
pub(super) fn usage(text: &str) -> Use {
    if text == "fit" { Use::Fit } else { Use::Predict }
}

/// A number of such a file.
pub(super) fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}
