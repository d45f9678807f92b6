//! Where labels of inner nodes are written: as near to their nodes as nothing else is written.

use std::collections::HashMap;

/// Size of the letters of labels; a generous guess of the width of one, and of what digits rise above the line they stand on.
pub(super) const SIZE: f64 = 10.0;
const LETTER_WIDTH: f64 = 6.5;
const RISE: f64 = 8.0;
/// From a node to its label.
const GAP: f64 = 3.0;
/// Other spots are so far apart, and at most so many of these steps away from the first, across and down.
const STEP: f64 = 4.0;
const REACH: (i32, i32) = (60, 40);
/// Height of the bands by which areas are found again.
const BAND: f64 = 20.0;

/// A rectangle in which something is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area {
    fn meets(&self, other: &Area) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn bands(&self) -> impl Iterator<Item = i64> {
        (self.top / BAND).floor() as i64..=(self.bottom / BAND).floor() as i64
    }
}

/// What is written already.
pub(super) struct Labels {
    /// What all must lie in.
    page: Area,
    taken: HashMap<i64, Vec<Area>>,
    /// Ways from the first spot to others, the shortest first.
    ways: Vec<(f64, f64)>,
}

impl Labels {
    pub(super) fn new(page: Area) -> Labels {
        let (across, down) = REACH;
        let mut ways: Vec<(i32, i32)> = (-down..=down).flat_map(|y| (-across..=across).map(move |x| (x, y))).collect();
        // A label that is moved up or down seems to belong to another branch sooner than one that is moved along its own.
        ways.sort_by_key(|(x, y)| x * x + 4 * y * y);
        let ways = ways.into_iter().map(|(x, y)| (STEP * f64::from(x), STEP * f64::from(y))).collect();
        Labels { page, taken: HashMap::new(), ways }
    }

    /// Something is written here.
    pub(super) fn take(&mut self, area: Area) {
        area.bands().for_each(|band| self.taken.entry(band).or_default().push(area));
    }

    fn is_free(&self, area: &Area) -> bool {
        let Area { left, right, top, bottom } = self.page;
        let inside = left <= area.left && area.right <= right && top <= area.top && area.bottom <= bottom;
        inside && !area.bands().any(|band| self.taken.get(&band).is_some_and(|t| t.iter().any(|t| t.meets(area))))
    }

    /// Where a label of so many letters ends, and the line it stands on: above the branch that leads to the node at `x`, `y`, or
    /// else the nearest spot that is free. What nothing is free for within reach is written over something.
    pub(super) fn place(&mut self, x: f64, y: f64, letters: usize) -> (f64, f64) {
        let width = LETTER_WIDTH * letters as f64;
        let at = |way: &(f64, f64)| {
            let (right, bottom) = (x - GAP + way.0, y - GAP + way.1);
            Area { left: right - width, right, top: bottom - RISE, bottom }
        };
        let spot = self.ways.iter().map(at).find(|area| self.is_free(area)).unwrap_or_else(|| at(&(0.0, 0.0)));
        self.take(spot);
        (spot.right, spot.bottom)
    }
}
