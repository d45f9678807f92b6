//! What all figures are drawn with.

use std::fmt::Write as _;

/// Colours in order of appearance: Okabe and Ito's, told apart by colour-blind readers too.
pub(crate) const COLOURS: [&str; 8] =
    ["#009e73", "#56b4e9", "#0072b2", "#e69f00", "#cc79a7", "#d55e00", "#000000", "#f0e442"];

/// The beginning of a file, on white.
pub(crate) fn opened(width: usize, height: usize) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    )
}

/// A text; `anchor` is start, middle or end.
pub(crate) fn label(x: usize, y: usize, anchor: &str, size: usize, text: &str) -> String {
    let mut line = format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-size=\"{size}\" fill=\"#202020\">");
    let _ = write!(line, "{}</text>", escaped(text));
    line
}

/// A text as it stands between tags.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
