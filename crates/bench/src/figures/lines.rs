//! Lines and marks over an axis, as SVG.

use super::svg::{COLOURS, escaped, label, opened};
use std::fmt::Write as _;

/// Points of one kind.
pub(crate) struct Series {
    pub(crate) name: String,
    /// Ascending along the axis.
    pub(crate) points: Vec<(f64, f64)>,
    /// Drawn as marks alone, in the colour of the series before: what was published beside what was simulated.
    pub(crate) marks: bool,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    /// Equal factors have equal lengths.
    Log,
}

/// The figure.
pub(crate) struct Lines {
    pub(crate) title: String,
    /// What stands along the axes, with units.
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) x_scale: Scale,
    pub(crate) y_scale: Scale,
    pub(crate) series: Vec<Series>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 52.0;
const BELOW: f64 = 56.0;
const RIGHT: usize = 20;

/// One axis: from what to what, and where it is marked.
struct Axis {
    from: f64,
    to: f64,
    scale: Scale,
    marks: Vec<f64>,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, scale: Scale, from_zero: bool) -> Axis {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        if !(least.is_finite() && most.is_finite()) {
            return Axis { from: 0.0, to: 1.0, scale: Scale::Linear, marks: vec![0.0, 1.0] };
        }
        match scale {
            Scale::Log if least > 0.0 => {
                let base = if most / least <= 1024.0 { 2.0f64 } else { 10.0 };
                let from = least.log(base).floor();
                let to = most.log(base).ceil().max(from + 1.0);
                // Eight marks at most.
                let step = ((to - from) / 8.0).ceil().max(1.0);
                let count = ((to - from) / step).floor() as u32;
                let marks = (0..=count).map(|i| base.powf(from + step * f64::from(i))).collect();
                Axis { from: base.powf(from), to: base.powf(to), scale, marks }
            }
            _ => {
                let from = if from_zero { least.min(0.0) } else { least };
                let span = if most > from { most - from } else { 1.0 };
                let power = 10f64.powf((span / 8.0).log10().floor());
                let fitting = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| span / step <= 8.0);
                let step = fitting.unwrap_or(span);
                let (first, last) = ((from / step).floor(), (most / step).ceil());
                let count = (last - first) as u32;
                let marks: Vec<f64> = (0..=count).map(|i| step * (first + f64::from(i))).collect();
                Axis { from: step * first, to: step * last.max(first + 1.0), scale: Scale::Linear, marks }
            }
        }
    }

    /// Where a value lies, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value / self.from).ln() / (self.to / self.from).ln(),
        }
    }
}

impl Lines {
    /// The figure as a whole SVG file.
    pub(crate) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| series.points.iter().copied());
        let x_axis = Axis::new(points().map(|p| p.0), self.x_scale, false);
        let y_axis = Axis::new(points().map(|p| p.1), self.y_scale, true);
        let x_of = |x: f64| LEFT + WIDTH * x_axis.place(x);
        let y_of = |y: f64| TOP + HEIGHT * (1.0 - y_axis.place(y));
        let names = self.series.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
        let legend = (LEFT + WIDTH) as usize + 24;
        let (width, height) = (legend + 26 + 7 * names + RIGHT, (TOP + HEIGHT + BELOW) as usize);
        let mut svg = opened(width, height);
        let mut put = |line: String| {
            svg += &line;
            svg.push('\n');
        };
        put(label(LEFT as usize, 28, "start", 16, &self.title));
        let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
        for &mark in &y_axis.marks {
            let y = y_of(mark);
            put(format!("<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#d0d0d0\"/>"));
            put(label(LEFT as usize - 8, y as usize + 4, "end", 12, &number(mark)));
        }
        for &mark in &x_axis.marks {
            let x = x_of(mark);
            let end = bottom + 5.0;
            put(format!("<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{end}\" stroke=\"#808080\"/>"));
            put(label(x as usize, bottom as usize + 20, "middle", 12, &number(mark)));
        }
        put(label((LEFT + WIDTH / 2.0) as usize, bottom as usize + 42, "middle", 13, &self.x));
        put(label(LEFT as usize, TOP as usize - 8, "start", 13, &self.y));
        let mut colours = 0;
        for (i, series) in self.series.iter().enumerate() {
            colours += usize::from(i == 0 || !series.marks);
            let colour = COLOURS[(colours - 1) % COLOURS.len()];
            let (key_x, key_y) = (legend, TOP as usize + 10 + 20 * i);
            if series.marks {
                put(format!("<circle cx=\"{}\" cy=\"{key_y}\" r=\"4\" fill=\"{colour}\"/>", key_x + 9));
            } else {
                let end = key_x + 18;
                put(format!(
                    "<line x1=\"{key_x}\" x2=\"{end}\" y1=\"{key_y}\" y2=\"{key_y}\" stroke=\"{colour}\" \
                     stroke-width=\"2\"/>"
                ));
                let mut path = String::new();
                for &(x, y) in &series.points {
                    let _ = write!(path, "{}{:.1},{:.1}", if path.is_empty() { "" } else { " " }, x_of(x), y_of(y));
                }
                put(format!("<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"));
            }
            for &(x, y) in &series.points {
                let title = escaped(&format!("{}: {} at {}", series.name, number(y), number(x)));
                let radius = if series.marks { 4.0 } else { 2.5 };
                put(format!(
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" fill=\"{colour}\"><title>{title}</title></circle>",
                    x_of(x),
                    y_of(y)
                ));
            }
            put(label(key_x + 26, key_y + 4, "start", 12, &series.name));
        }
        svg += "</svg>\n";
        svg
    }
}

/// As short as four digits allow.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v => (3 - v.log10().floor() as i32).clamp(0, 8) as usize,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(x_scale: Scale, y_scale: Scale, points: Vec<(f64, f64)>) -> String {
        let series = vec![
            Series { name: "a<b".into(), points: points.clone(), marks: false },
            Series { name: "published".into(), points, marks: true },
        ];
        Lines { title: "t & u".into(), x: "x".into(), y: "y".into(), x_scale, y_scale, series }.svg()
    }

    #[test]
    fn numbers_are_short() {
        let shown: Vec<String> = [0.0, 1.0, 12.5, 0.004, 1024.0, 33.333_33].map(number).to_vec();
        assert_eq!(shown, ["0", "1", "12.5", "0.004", "1024", "33.33"]);
    }

    #[test]
    fn every_point_lies_in_the_frame() {
        for (x, y) in [(Scale::Linear, Scale::Linear), (Scale::Log, Scale::Log), (Scale::Log, Scale::Linear)] {
            let svg = lines(x, y, vec![(128.0, 0.3), (1000.0, 17.0), (16384.0, 38.0)]);
            assert_eq!(svg.matches("<title>").count(), 6);
            for circle in svg.lines().filter(|l| l.contains("<title>")) {
                let value = |name: &str| -> f64 {
                    circle.split(name).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
                };
                let (x, y) = (value("cx=\""), value("cy=\""));
                assert!((LEFT..=LEFT + WIDTH).contains(&x) && (TOP..=TOP + HEIGHT).contains(&y), "{circle}");
            }
            assert!(svg.contains("t &amp; u") && svg.contains("a&lt;b") && !svg.contains("a<b"));
        }
        // Nothing, one point, and what has no logarithm.
        assert!(lines(Scale::Log, Scale::Linear, Vec::new()).ends_with("</svg>\n"));
        assert!(!lines(Scale::Linear, Scale::Log, vec![(1.0, 0.0)]).contains("NaN"));
    }
}
