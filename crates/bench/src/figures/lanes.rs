//! Lanes over time, in groups: who had something when, as SVG.

use super::svg::{COLOURS, label, opened};
use std::fmt::Write as _;

/// Lanes below a title.
pub(crate) struct Group {
    pub(crate) title: String,
    /// For each lane its name, and from when to when it is filled, in seconds.
    pub(crate) lanes: Vec<(String, Vec<(f64, f64)>)>,
}

const LEFT: f64 = 90.0;
const WIDTH: f64 = 900.0;
const RIGHT: f64 = 20.0;
const TOP: usize = 56;
const LANE: usize = 12;
const TITLE: usize = 26;

/// The figure as a whole SVG file; time is in seconds.
pub(crate) fn svg(title: &str, groups: &[Group]) -> String {
    let ends = groups.iter().flat_map(|group| &group.lanes).flat_map(|(_, filled)| filled).map(|(_, to)| *to);
    let end = ends.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let lanes: usize = groups.iter().map(|group| TITLE + LANE * group.lanes.len()).sum();
    let (bottom, width) = (TOP + lanes, (LEFT + WIDTH + RIGHT) as usize);
    let x_of = |seconds: f64| LEFT + WIDTH * seconds / end;
    let mut svg = opened(width, bottom + 40);
    let mut put = |line: String| {
        svg += &line;
        svg.push('\n');
    };
    put(label(LEFT as usize, 28, "start", 16, title));
    let mut y = TOP;
    for (group, colour) in groups.iter().zip(COLOURS.iter().cycle()) {
        put(label(LEFT as usize, y + TITLE - 8, "start", 13, &group.title));
        y += TITLE;
        for (name, filled) in &group.lanes {
            put(label(LEFT as usize - 8, y + LANE - 2, "end", 10, name));
            let mut path = String::new();
            for (from, to) in filled {
                // What is too narrow to be seen is drawn as wide as can be.
                let wide = (x_of(*to) - x_of(*from)).max(0.2);
                let _ = write!(path, "M{:.2} {y}h{wide:.2}v{}h-{wide:.2}z", x_of(*from), LANE - 3);
            }
            put(format!("<path d=\"{path}\" fill=\"{colour}\"/>"));
            y += LANE;
        }
    }
    for part in 0..=4 {
        let seconds = end * f64::from(part) / 4.0;
        let x = x_of(seconds);
        put(format!(
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#808080\" stroke-width=\"0.5\"/>"
        ));
        put(label(x as usize, bottom + 16, "middle", 12, &format!("{seconds:.3}")));
    }
    put(label((LEFT + WIDTH / 2.0) as usize, bottom + 32, "middle", 13, "seconds"));
    svg += "</svg>\n";
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_lie_in_the_frame_and_below_each_other() {
        let lanes = |n: usize| (0..n).map(|i| (format!("{i}"), vec![(0.0, 0.5), (1.5, 2.0)])).collect();
        let groups = [Group { title: "a<b".into(), lanes: lanes(2) }, Group { title: "c".into(), lanes: lanes(1) }];
        let svg = svg("t & u", &groups);
        let first: Vec<&str> = svg.lines().filter_map(|line| line.strip_prefix("<path d=\"")).collect();
        assert_eq!(first.len(), 3);
        assert!(first[0].starts_with("M90.00 82h225.00v9h-225.00zM765.00 82h225.00"), "{}", first[0]);
        assert!(first[1].starts_with("M90.00 94h") && first[2].starts_with("M90.00 132h"), "{first:?}");
        assert!(svg.contains("a&lt;b") && svg.contains("t &amp; u") && svg.ends_with("</svg>\n"));
        assert!(!super::svg("", &[]).contains("NaN"));
    }
}
