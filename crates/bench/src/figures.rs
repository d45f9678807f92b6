//! Figures as SVG: lines over an axis, bars, lanes of who did something when.

pub(crate) mod chart;
pub(crate) mod lanes;
pub(crate) mod lines;
pub(crate) mod svg;
