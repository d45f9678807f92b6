//! Rectangular index sets: shapes, regions, and what they share.

use std::fmt;

/// The largest number of dimensions an array may have.
pub const RANK_MAX: usize = 6;

/// Lengths along each dimension, slowest first (row-major).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    dims: [u64; RANK_MAX],
    rank: u8,
}

impl Shape {
    /// A shape from its lengths. At most [`RANK_MAX`] dimensions.
    ///
    /// # Panics
    /// With more than [`RANK_MAX`] lengths: ranks are fixed where a program is written, not by its input.
    pub fn new(dims: &[u64]) -> Shape {
        assert!(dims.len() <= RANK_MAX, "at most {RANK_MAX} dimensions");
        let mut d = [1; RANK_MAX];
        d[..dims.len()].copy_from_slice(dims);
        Shape { dims: d, rank: dims.len() as u8 }
    }

    /// Lengths, slowest dimension first.
    pub fn dims(&self) -> &[u64] {
        &self.dims[..self.rank as usize]
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Number of elements; at most [`u64::MAX`].
    pub fn elements(&self) -> u64 {
        self.dims().iter().fold(1, |product, &length| product.saturating_mul(length))
    }
}

/// Lengths as they are printed, `3 x 4`; of any number of dimensions, as files may have.
#[derive(Clone, Copy, Debug)]
pub struct Lengths<'a>(pub &'a [u64]);

impl fmt::Display for Lengths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" x ")?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Lengths(self.dims()).fmt(f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

/// A rectangular part of an array: a start and a length along each dimension.
///
/// Indices do not wrap: what would lie beyond [`u64::MAX`] ends there, which is outside of every array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Region {
    start: [u64; RANK_MAX],
    shape: Shape,
}

impl Region {
    /// A region from starts and lengths along each dimension.
    ///
    /// # Panics
    /// When the two slices differ in length or exceed [`RANK_MAX`].
    pub fn new(start: &[u64], len: &[u64]) -> Region {
        assert_eq!(start.len(), len.len(), "starts and lengths of a region");
        let mut s = [0; RANK_MAX];
        s[..start.len()].copy_from_slice(start);
        Region { start: s, shape: Shape::new(len) }
    }

    /// All of an array of this shape.
    pub fn whole(shape: Shape) -> Region {
        Region { start: [0; RANK_MAX], shape }
    }

    /// First index along each dimension.
    pub fn start(&self) -> &[u64] {
        &self.start[..self.rank()]
    }

    /// Length along each dimension.
    pub fn len(&self) -> &[u64] {
        self.shape.dims()
    }

    /// Whether the region holds no element.
    pub fn is_empty(&self) -> bool {
        self.len().contains(&0)
    }

    /// The shape of the region.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.elements()
    }

    /// One past the last index along dimension `d`.
    pub fn end(&self, d: usize) -> u64 {
        self.start[d].saturating_add(self.shape.dims[d])
    }

    /// Whether the two regions (of one array) share an element.
    pub fn intersects(&self, other: &Region) -> bool {
        debug_assert_eq!(self.rank(), other.rank());
        (0..self.rank().max(other.rank())).all(|d| self.start[d] < other.end(d) && other.start[d] < self.end(d))
    }

    /// Whether every element of `other` lies in this region; never one of another rank.
    pub fn contains(&self, other: &Region) -> bool {
        self.rank() == other.rank()
            && (0..self.rank()).all(|d| self.start[d] <= other.start[d] && other.end(d) <= self.end(d))
    }

    /// The elements in both regions, if any.
    pub fn intersection(&self, other: &Region) -> Option<Region> {
        if !self.intersects(other) {
            return None;
        }
        let mut r = *self;
        for d in 0..self.rank() {
            r.start[d] = self.start[d].max(other.start[d]);
            r.shape.dims[d] = self.end(d).min(other.end(d)) - r.start[d];
        }
        Some(r)
    }

    /// The two parts before and from index `at` of dimension `d`, which lies within the region.
    pub(crate) fn cut(&self, d: usize, at: u64) -> (Region, Region) {
        let (mut low, mut high) = (*self, *self);
        low.shape.dims[d] = at - self.start[d];
        high.start[d] = at;
        high.shape.dims[d] = self.end(d) - at;
        (low, high)
    }

    /// This region, given relative to the first element of `outer`, in the coordinates `outer` is given in.
    pub fn within(&self, outer: &Region) -> Region {
        let mut r = *self;
        for d in 0..self.rank() {
            r.start[d] = r.start[d].saturating_add(outer.start[d]);
        }
        r
    }

    /// The region in pieces of at most `most` elements (at least one), in row-major order: whole rows, planes and so on where
    /// they fit, parts of rows where they do not.
    pub fn pieces(&self, most: u64) -> impl Iterator<Item = Region> {
        let (rank, len) = (self.rank(), self.shape.dims);
        // Dimension `cut` is cut; those before it are taken index by index, those behind it as they are.
        let (mut cut, mut behind) = (rank.saturating_sub(1), 1u64);
        while cut > 0 && behind.saturating_mul(len[cut]) <= most {
            behind *= len[cut];
            cut -= 1;
        }
        let each = if rank == 0 { 1 } else { (most / behind).clamp(1, len[cut].max(1)) };
        let before = Region { start: [0; RANK_MAX], shape: Shape::new(&len[..cut]) };
        let (whole, lengths) = (*self, len[cut]);
        (0..before.elements()).flat_map(move |number| {
            let mut index = [0; RANK_MAX];
            let mut rest = number;
            for d in (0..cut).rev() {
                (index[d], rest) = (rest % len[d], rest / len[d]);
            }
            blocks(lengths, each).map(move |(first, count)| {
                let mut piece = whole;
                for (d, at) in index.iter().enumerate().take(cut) {
                    (piece.start[d], piece.shape.dims[d]) = (whole.start[d] + at, 1);
                }
                (piece.start[cut], piece.shape.dims[cut]) = (whole.start[cut] + first, count);
                piece
            })
        })
    }

    /// Which element of an array of shape `array`, row-major, is element `number` of this region, row-major.
    pub fn element(&self, number: u64, array: Shape) -> u64 {
        let (mut rest, mut element, mut pitch) = (number, 0, 1);
        for d in (0..self.rank()).rev() {
            element += (self.start[d] + rest % self.shape.dims[d]) * pitch;
            rest /= self.shape.dims[d];
            pitch *= array.dims[d];
        }
        element
    }

    /// Number of contiguous runs this region has in a row-major array of shape `array`, and the elements of each.
    pub fn fragments(&self, array: Shape) -> (u64, u64) {
        let mut run = 1;
        let mut d = self.rank();
        while d > 0 {
            d -= 1;
            run = self.shape.dims[d].saturating_mul(run);
            if self.shape.dims[d] != array.dims[d] {
                break;
            }
        }
        let count = Shape::new(&self.shape.dims[..d]).elements();
        (count, run)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for d in 0..self.rank() {
            if d > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{}..{}", self.start[d], self.end(d))?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The blocks of an axis of length `extent`: start and length of each, `step` long but for the last.
pub fn blocks(extent: u64, step: u64) -> impl Iterator<Item = (u64, u64)> + Clone {
    let step = step.max(1);
    (0..extent.div_ceil(step)).map(move |i| (i * step, step.min(extent - i * step)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_of_blocks() {
        let a = Shape::new(&[10, 20, 30]);
        assert_eq!(Region::whole(a).fragments(a), (1, 6000));
        assert_eq!(Region::new(&[1, 0, 0], &[3, 20, 30]).fragments(a), (1, 1800));
        assert_eq!(Region::new(&[1, 2, 0], &[3, 5, 30]).fragments(a), (3, 150));
        assert_eq!(Region::new(&[1, 2, 3], &[3, 5, 7]).fragments(a), (15, 7));
        assert_eq!(Region::new(&[1, 0, 3], &[3, 20, 7]).fragments(a), (60, 7));
    }

    #[test]
    fn indices_do_not_wrap() {
        let array = Region::whole(Shape::new(&[8]));
        for far in [Region::new(&[u64::MAX], &[5]), Region::new(&[u64::MAX - 3], &[4]), Region::new(&[4], &[u64::MAX])]
        {
            assert_eq!(far.end(0), u64::MAX);
            assert!(!array.contains(&far) && !array.contains(&far.within(&array)), "{far}");
        }
        // As a split would write it that takes a start of its own from the relative one.
        let back = Region::new(&[0u64.wrapping_sub(4)], &[4]);
        assert!(!array.contains(&back.within(&Region::new(&[4], &[4]))));
        assert_eq!(Shape::new(&[1 << 40, 1 << 40]).elements(), u64::MAX);
        assert!(!Region::whole(Shape::new(&[8, 8])).contains(&Region::new(&[0], &[8])), "ranks differ");
    }

    #[test]
    fn overlap_is_symmetric_and_exact() {
        let a = Region::new(&[0, 0], &[4, 4]);
        let b = Region::new(&[3, 2], &[4, 1]);
        assert_eq!(a.intersection(&b), Some(Region::new(&[3, 2], &[1, 1])));
        assert_eq!(b.intersection(&a), a.intersection(&b));
        assert!(!a.intersects(&Region::new(&[4, 0], &[1, 1])));
        assert!(a.contains(&Region::new(&[1, 1], &[3, 3])) && !a.contains(&b));
        assert_eq!(Region::new(&[1, 2], &[1, 1]).within(&b), Region::new(&[4, 4], &[1, 1]));
    }
}
