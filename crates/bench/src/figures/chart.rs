//! Stacked bars in groups, with a table of rates below them, as SVG.

use crate::figures::svg::{COLOURS, escaped, label};

/// A share of a bar.
pub(crate) struct Part {
    /// What it is; equal kinds have equal colours in all bars.
    pub(crate) kind: String,
    /// 0 to 1.
    pub(crate) share: f64,
}

/// One bar.
pub(crate) struct Bar {
    /// Bars of one group stand side by side.
    pub(crate) group: String,
    /// What it is called below.
    pub(crate) name: String,
    /// Its parts from the bottom up and the rate below it, or why there are none.
    pub(crate) figures: Result<(Vec<Part>, f64), String>,
}

/// The figure.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// Of the rates.
    pub(crate) unit: &'static str,
    pub(crate) bars: Vec<Bar>,
}

const BAR_WIDTH: usize = 54;
const BAR_GAP: usize = 8;
const GROUP_GAP: usize = 26;
const LEFT: usize = 64;
const RIGHT: usize = 20;
const TOP: usize = 84;
const HEIGHT: usize = 280;
const BELOW: usize = 84;

impl Chart {
    /// The kinds of all bars, each once: leaf work first, overhead last, as they stand in the bars.
    fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        let mut last: Vec<&str> = Vec::new();
        for (parts, _) in self.bars.iter().filter_map(|b| b.figures.as_ref().ok()) {
            for (i, part) in parts.iter().enumerate() {
                let list = if i + 1 == parts.len() { &mut last } else { &mut kinds };
                if !list.contains(&part.kind.as_str()) {
                    list.push(&part.kind);
                }
            }
        }
        kinds.extend(last.into_iter().filter(|k| !kinds.contains(k)).collect::<Vec<_>>());
        kinds
    }

    /// The figure as a whole SVG file.
    pub(crate) fn svg(&self) -> String {
        let kinds = self.kinds();
        let colour = |kind: &str| {
            let number = kinds.iter().position(|k| *k == kind).unwrap_or(0);
            COLOURS[number % COLOURS.len()]
        };
        let mut places = Vec::new();
        let mut x = LEFT + GROUP_GAP / 2;
        for (i, bar) in self.bars.iter().enumerate() {
            if i > 0 {
                x += if self.bars[i - 1].group == bar.group { BAR_GAP } else { GROUP_GAP };
            }
            places.push(x);
            x += BAR_WIDTH;
        }
        let right = x + GROUP_GAP / 2;
        let legend_width: usize = LEFT + kinds.iter().map(|k| 34 + 7 * k.chars().count()).sum::<usize>();
        let (width, height) = (right.max(legend_width) + RIGHT, TOP + HEIGHT + BELOW);
        let mut svg = crate::figures::svg::opened(width, height);
        let mut put = |line: String| {
            svg += &line;
            svg.push('\n');
        };
        put(label(LEFT, 28, "start", 16, &self.title));
        let mut x = LEFT;
        for kind in &kinds {
            put(format!("<rect x=\"{x}\" y=\"46\" width=\"12\" height=\"12\" fill=\"{}\"/>", colour(kind)));
            put(label(x + 18, 57, "start", 12, kind));
            x += 34 + 7 * kind.chars().count();
        }
        for tenth in (0..=10).step_by(2) {
            let y = TOP + HEIGHT - HEIGHT * tenth / 10;
            put(format!("<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#d0d0d0\"/>"));
            put(label(LEFT - 8, y + 4, "end", 12, &format!("{} %", 10 * tenth)));
        }
        for (bar, &x) in self.bars.iter().zip(&places) {
            let middle = x + BAR_WIDTH / 2;
            let rate = match &bar.figures {
                Ok((parts, rate)) => {
                    let total: f64 = parts.iter().map(|p| p.share).sum();
                    let mut bottom = (TOP + HEIGHT) as f64;
                    for part in parts {
                        let tall = HEIGHT as f64 * part.share / total.max(f64::MIN_POSITIVE);
                        bottom -= tall;
                        put(format!(
                            "<rect x=\"{x}\" y=\"{bottom:.1}\" width=\"{BAR_WIDTH}\" height=\"{tall:.1}\" \
                             fill=\"{}\"><title>{}</title></rect>",
                            colour(&part.kind),
                            escaped(&format!(
                                "{} on {}: {} {:.1} %",
                                bar.group,
                                bar.name,
                                part.kind,
                                100.0 * part.share
                            ))
                        ));
                    }
                    rate_text(*rate)
                }
                Err(why) => {
                    let title = escaped(why);
                    let at = label(middle, TOP + HEIGHT - 8, "middle", 11, "failed");
                    put(format!("<g><title>{title}</title>{at}</g>"));
                    "-".to_owned()
                }
            };
            put(label(middle, TOP + HEIGHT + 18, "middle", 11, &bar.name));
            put(label(middle, TOP + HEIGHT + 36, "middle", 12, &rate));
        }
        put(label(LEFT - 8, TOP + HEIGHT + 36, "end", 11, self.unit));
        let mut first = 0;
        for i in 0..self.bars.len() {
            if i + 1 == self.bars.len() || self.bars[i + 1].group != self.bars[i].group {
                let middle = (places[first] + places[i] + BAR_WIDTH) / 2;
                put(label(middle, TOP + HEIGHT + 60, "middle", 14, &self.bars[i].group));
                first = i + 1;
            }
        }
        svg += "</svg>\n";
        svg
    }
}

/// Three digits that count.
fn rate_text(rate: f64) -> String {
    match rate {
        r if r >= 100.0 => format!("{r:.0}"),
        r if r >= 10.0 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_the_height_and_names_are_escaped() {
        let part = |kind: &str, share| Part { kind: kind.into(), share };
        let parts = vec![part("leaf work", 0.5), part("waiting, a - b", 0.25), part("overhead", 0.25)];
        let bar = |name: &str, figures| Bar { group: "x<y".into(), name: name.into(), figures };
        let bars = vec![bar("one", Ok((parts, 12.34))), bar("two", Err("too \"small\"".into()))];
        let svg = Chart { title: "t & u".into(), unit: "GFLOP/s", bars }.svg();
        let tall: f64 = svg
            .lines()
            .filter(|l| l.contains("<title>") && l.starts_with("<rect"))
            .filter_map(|l| l.split("height=\"").nth(1)?.split('"').next()?.parse::<f64>().ok())
            .sum();
        assert!((tall - HEIGHT as f64).abs() < 0.2, "{tall}");
        assert!(svg.contains("t &amp; u") && svg.contains("x&lt;y") && svg.contains("too &quot;small&quot;"), "{svg}");
        assert!(svg.contains(">12.3<") && !svg.contains("x<y"));
    }

    #[test]
    fn overhead_is_the_last_kind() {
        let part = |kind: &str| Part { kind: kind.into(), share: 1.0 };
        let bar = |kinds: &[&str]| Bar {
            group: String::new(),
            name: String::new(),
            figures: Ok((kinds.iter().map(|k| part(k)).collect(), 1.0)),
        };
        let bars = vec![bar(&["leaf work", "overhead"]), bar(&["leaf work", "waiting, a", "overhead"])];
        let chart = Chart { title: String::new(), unit: "", bars };
        assert_eq!(chart.kinds(), ["leaf work", "waiting, a", "overhead"]);
    }
}
