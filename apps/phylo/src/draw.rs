//! Drawings of trees as SVG: phylograms with supports and a scale bar.

mod labels;
mod midpoint;

pub use midpoint::{rooted_at, rooted_at_midpoint};

use crate::tree::Newick;
use labels::{Area, Labels};
use std::fmt::Write as _;

/// From the root to the farthest tip.
const TREE_WIDTH: f64 = 640.0;
const ROW_HEIGHT: f64 = 18.0;
const MARGIN: f64 = 24.0;
/// A generous guess: the font is the reader's.
const LETTER_WIDTH: f64 = 8.0;

/// A rooted tree as an SVG picture: branches to scale from left to right, names at the tips, labels of inner nodes
/// (supports) near them and over no other text, a scale bar in expected substitutions a site. Missing lengths count as 0; where no branch has
/// a length, all are drawn equal.
pub fn svg(tree: &Newick, title: &str) -> String {
    let nodes = &tree.nodes;
    let to_scale = nodes.iter().any(|n| n.length.is_some_and(|l| l > 0.0));
    let mut across = vec![0.0; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            let length = if to_scale { node.length.unwrap_or(0.0).max(0.0) } else { 1.0 };
            across[i] = across[parent] + length;
        }
    }
    let most = across.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let x = |i: usize| MARGIN + across[i] / most * TREE_WIDTH;
    // Rows: tips in the order of the text, inner nodes in the middle between their outermost children.
    let mut y = vec![0.0; nodes.len()];
    let mut rows = 0;
    let mut stack = vec![0];
    while let Some(i) = stack.pop() {
        if nodes[i].children.is_empty() {
            y[i] = 2.0 * MARGIN + ROW_HEIGHT * rows as f64;
            rows += 1;
        }
        stack.extend(nodes[i].children.iter().rev());
    }
    for i in (0..nodes.len()).rev() {
        if let (Some(&first), Some(&last)) = (nodes[i].children.first(), nodes[i].children.last()) {
            y[i] = 0.5 * (y[first] + y[last]);
        }
    }
    let longest = nodes.iter().filter(|n| n.children.is_empty()).filter_map(|n| n.label.as_ref());
    let longest = longest.map(|l| l.chars().count()).max().unwrap_or(0);
    let width = (2.0 * MARGIN + TREE_WIDTH + LETTER_WIDTH * (longest + 1) as f64).ceil();
    let height = 3.0 * MARGIN + ROW_HEIGHT * (rows + 1) as f64;
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"{MARGIN}\" font-size=\"14\" fill=\"#222\">{title}</text>\n\
         <g stroke=\"#334\" stroke-width=\"1.4\" fill=\"none\" stroke-linecap=\"square\">\n",
        title = escaped(title)
    );
    for (i, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            let _ = writeln!(out, "<path d=\"M{:.2} {:.2}V{:.2}H{:.2}\"/>", x(parent), y[parent], y[i], x(i));
        }
    }
    out += "</g>\n<g font-size=\"12\" fill=\"#111\">\n";
    // Between the title and the scale bar.
    let mut labels = Labels::new(Area { left: 2.0, right: width, top: 1.25 * MARGIN, bottom: height - 2.0 * MARGIN });
    for (i, node) in nodes.iter().enumerate().filter(|(_, n)| n.children.is_empty()) {
        let label = node.label.as_deref().unwrap_or("");
        let (left, line) = (x(i) + 6.0, y[i] + 4.0);
        let right = left + LETTER_WIDTH * label.chars().count() as f64;
        labels.take(Area { left, right, top: line - 10.0, bottom: line + 3.0 });
        let _ = writeln!(out, "<text x=\"{left:.2}\" y=\"{line:.2}\">{}</text>", escaped(label));
    }
    // The longest branches have room for their labels, and those that have least are moved.
    let mut inner: Vec<usize> = (0..nodes.len()).filter(|&i| !nodes[i].children.is_empty()).collect();
    let length = |i: usize| nodes[i].parent.map_or(0.0, |parent| across[i] - across[parent]);
    inner.sort_by(|&a, &b| length(b).total_cmp(&length(a)));
    let mut texts = String::new();
    for i in inner {
        if let Some(label) = &nodes[i].label {
            let (right, line) = labels.place(x(i), y[i], label.chars().count());
            let _ = writeln!(texts, "<text x=\"{right:.2}\" y=\"{line:.2}\">{}</text>", escaped(label));
        }
    }
    // White borders first, so that letters are seen over branches.
    for style in ["fill=\"none\" stroke=\"#fff\" stroke-width=\"2.5\"", "fill=\"#a33\""] {
        let _ = write!(out, "</g>\n<g font-size=\"{}\" text-anchor=\"end\" {style}>\n{texts}", labels::SIZE);
    }
    out += "</g>\n";
    if to_scale {
        let unit = nice(most / 5.0);
        let (from, to, at) = (MARGIN, MARGIN + unit / most * TREE_WIDTH, height - MARGIN);
        let _ = write!(
            out,
            "<path d=\"M{from:.2} {at:.2}H{to:.2}\" stroke=\"#111\" stroke-width=\"1.4\"/>\n\
             <text x=\"{from:.2}\" y=\"{:.2}\" font-size=\"11\" fill=\"#111\">{unit} substitutions a site</text>\n",
            at - 6.0
        );
    }
    out + "</svg>\n"
}

/// The largest of 1, 2 and 5 times a power of ten that is not greater.
fn nice(value: f64) -> f64 {
    let exponent = value.log10().floor() as i32;
    let all = [(1, exponent), (2, exponent), (5, exponent), (1, exponent + 1)];
    // Parsed, so that 0.05 is that number and not 5 times a rounded hundredth.
    let all = all.map(|(digit, exponent)| format!("{digit}e{exponent}").parse::<f64>().unwrap_or(value));
    all.into_iter().filter(|&v| v <= value).fold(all[0], f64::max)
}

fn escaped(text: &str) -> String {
    // Control characters are no text in XML.
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};

    #[test]
    fn nice_numbers() {
        assert_eq!([0.073, 0.19, 1.0, 7.0, 3e-7].map(nice), [0.05, 0.1, 1.0, 5.0, 2e-7]);
    }

    /// Of hundreds of taxa and branches of all lengths, none among them: no text lies over another.
    #[test]
    fn labels_do_not_meet() {
        let mut random = Random::new(3, Purpose::Search, 0);
        for (lengths, is_ladder) in
            [([0.0, 0.0], false), ([0.0, 0.02], false), ([0.0, 0.3], true), ([0.01, 0.3], false)]
        {
            let mut parts: Vec<String> = (0..300).map(|i| format!("taxon{i}:{}", lengths[i % 2])).collect();
            while parts.len() > 3 {
                let other = if is_ladder { parts.len() - 2 } else { random.below(parts.len() as u64 - 1) as usize };
                let (a, b) = (parts.pop().unwrap(), parts.swap_remove(other));
                parts.push(format!("({a},{b})100:{}", lengths[random.below(2) as usize]));
            }
            let picture = svg(&Newick::parse(&format!("({});", parts.join(","))).unwrap(), "t");
            let number = |line: &str, name: &str| {
                let from = line.find(name).unwrap() + name.len();
                line[from..].split('"').next().unwrap().parse::<f64>().unwrap()
            };
            let mut areas = Vec::new();
            let borders = picture.find("stroke=\"#fff\"").unwrap();
            let letters = picture.find("fill=\"#a33\"").unwrap();
            let texts = picture[..borders].lines().chain(picture[letters..].lines());
            for line in texts.filter(|line| line.starts_with("<text") && !line.contains("font-size")) {
                let (x, y) = (number(line, " x=\""), number(line, " y=\""));
                let text = line.split(['>', '<']).nth(2).unwrap();
                areas.push(match text {
                    "100" => (x - 18.0, x, y - 7.5, y),
                    name => (x, x + 7.0 * name.len() as f64, y - 9.0, y + 2.0),
                });
            }
            assert_eq!(areas.len(), 300 + 297);
            for (i, a) in areas.iter().enumerate() {
                let met = areas[..i].iter().find(|b| a.0 < b.1 && b.0 < a.1 && a.2 < b.3 && b.2 < a.3);
                assert!(met.is_none(), "{lengths:?}: {a:?} meets {met:?}");
            }
        }
    }

    #[test]
    fn a_picture_names_every_tip_and_support() {
        let tree = Newick::parse("((a:0.1,'b&<c':0.2)97:0.05,(d:0.3,e:0.01)50:0.1,f:0.2);").unwrap();
        let picture = svg(&tree, "a < b");
        for text in [">a<", "b&amp;&lt;c", ">97<", ">50<", ">f<", "a &lt; b", "0.05 substitutions a site"] {
            assert!(picture.contains(text), "{text} in {picture}");
        }
        assert_eq!(picture.matches("<path").count(), 7 + 1);
        let flat = svg(&Newick::parse("((a,b),(c,d));").unwrap(), "t");
        assert!(!flat.contains("NaN") && !flat.contains("substitutions"), "{flat}");
    }
}
