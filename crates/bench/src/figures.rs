//! Figures as SVG: lines over an axis, bars.

pub(crate) mod chart;
pub(crate) mod lines;
pub(crate) mod svg;
