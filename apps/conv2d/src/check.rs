//! The check: random probes of every row, and the definition's bits where they hesitate.
//!
//! **The probes.** The columns are taken in groups of [`GROUP`]. For a group and some random vectors c over its columns
//! ([`probe`]) the sum of a row of the result, weighted by c, must be the sum over the rows of weights of rows of the input,
//! weighted by what the weights make of c. That takes as many multiplications as the weights have rows, instead of as many as
//! there are weights. An element that is wrong by `f` times what is allowed in its row and group is lost with a probability
//! of at most (2 / f)^rounds, and never where it is the only one and `f` > 2.
//!
//! **What is allowed.** An element is one chain over the taps, each of whose partial sums s is rounded; the deviation of the
//! roundings of a group is u sqrt(sum of s^2). The chains' sums after each row of weights are known from the probes, by
//! estimate; within a row of weights they are at most as large again as that row's weights times the root of the sum of
//! squares of what they meet. What is allowed is half of [`DEVIATIONS`] times that.
//!
//! **Where a probe is beyond**, the elements of that row and group are computed again: they must have the bits of the
//! definition, and lie within the bound that holds whatever the roundings are.

use crate::border::Border;
use crate::kernel::{self, Block, BlockMut, Filling};
use multigrain::app::{
    Beyond, Checked, Comparison, DEVIATIONS, Probed, UNDERFLOW, UNIT_ROUNDOFF, probe, rounding_bound,
};
use multigrain::prelude::*;
use multigrain_simd::Isa;
use std::ops::Range;

/// Columns that are probed together: fewer are compared more sharply, and more often.
const GROUP: usize = 256;
/// Random vectors; fewer where weights are many.
const ROUNDS: u64 = 4;
/// Bytes that what the weights make of the random vectors may take: a third of the room for a check, but no more than caches
/// hold, and so many at least that only weights of more than a hundred rows are probed less often.
const WEIGHTS_BYTES: std::ops::RangeInclusive<u64> = 2 << 20..=16 << 20;
/// Multiplications of what is computed again, at most.
const AGAIN: u64 = 1 << 31;

/// One array and what was made of it.
#[derive(Clone, Copy)]
pub(crate) struct Plane {
    pub(crate) input: usize,
    pub(crate) output: usize,
}

/// What the planes were filtered with: the weights of the correlation, row by row.
#[derive(Clone)]
pub(crate) struct Filter {
    pub(crate) rows: u64,
    pub(crate) cols: u64,
    pub(crate) values: Vec<f32>,
    pub(crate) border: Border,
    pub(crate) filling: Filling,
}

impl Filter {
    /// The same with odd numbers of rows and columns: a row that counts for nothing before an even number of rows makes the former of
    /// the two in the middle the middle one, as `scipy.signal` has it, turned around or not; and so of columns.
    pub(crate) fn with_a_middle(self) -> Filter {
        let (above, before) = (1 - self.rows % 2, 1 - self.cols % 2);
        if (above, before) == (0, 0) {
            return self;
        }
        let (rows, cols) = (self.rows + above, self.cols + before);
        let mut values = vec![0.0; (above * cols) as usize];
        for row in self.values.chunks_exact(self.cols as usize) {
            values.extend(std::iter::repeat_n(0.0, before as usize).chain(row.iter().copied()));
        }
        let filling = Filling { rows: [above as usize, 0], cols: [before as usize, 0] };
        Filter { rows, cols, values, filling, ..self }
    }

    /// The same turned around both ways.
    pub(crate) fn turned_around(mut self) -> Filter {
        self.values.reverse();
        Filter { filling: self.filling.turned_around(), ..self }
    }
}

/// One plane of `m` x `n` elements with its filter.
struct Job<'a> {
    outcome: &'a Outcome,
    plane: Plane,
    m: u64,
    n: u64,
    filter: &'a Filter,
}

/// Checks every plane of `m` x `n` elements.
pub(crate) fn check(
    outcome: &Outcome,
    planes: &[Plane],
    (m, n): (u64, u64),
    filter: &Filter,
    seed: u64,
) -> Result<Checked, Error> {
    let (kh, kw) = (filter.rows, filter.cols);
    let each = 8 * kh * (GROUP as u64 + kw - 1);
    let room = (outcome.check_bytes() / 3).clamp(*WEIGHTS_BYTES.start(), *WEIGHTS_BYTES.end());
    let rounds = (room / each).clamp(1, ROUNDS);
    // Of a group the sums of as many rows as the weights have are under way, too.
    let together = (room / ((each + 8 * (kh + 1)) * rounds)).max(1);
    let mut all = Checked { tolerance: 1.0, ..Checked::default() };
    for &plane in planes {
        let job = Job { outcome, plane, m, n, filter };
        let mut found = Probed::default();
        for (group, count) in blocks(n.div_ceil(GROUP as u64), together) {
            Probes::new(&job, seed, (group, count), rounds as usize).rows(&mut found)?;
        }
        let covered = format!(
            "{rounds} random probes of every row and {GROUP} columns: an element that is wrong by 100 times what its probe \
             may err by is lost with a probability below {:.0e}",
            0.02f64.powi(rounds as i32) * 1.5
        );
        let affordable = AGAIN / (kh * kw * n.min(GROUP as u64));
        let checked = found.judge(1, affordable, &covered, |these, comparison| job.again(these, comparison))?;
        all.max_relative_error = all.max_relative_error.max(checked.max_relative_error);
        all.elements += checked.elements;
        all.covered = checked.covered;
        all.uncovered = all.uncovered.or(checked.uncovered);
        all.wrong = all.wrong.or(checked.wrong);
    }
    Ok(all)
}

/// Where some columns of a row that goes on beyond its border come from.
struct Columns<'a> {
    filter: &'a Filter,
    n: u64,
    /// The first of them; there are negative ones before the row.
    from: i64,
    to: i64,
    /// First element and elements of what stands for the columns before the row, in it and behind it.
    parts: [(u64, u64); 3],
}

impl<'a> Columns<'a> {
    /// Some columns, from half the weights' columns before the first to as many after the last.
    fn around(first: u64, count: usize, filter: &'a Filter, n: u64) -> Columns<'a> {
        let half = (filter.cols / 2) as i64;
        let (from, to) = (first as i64 - half, first as i64 + count as i64 + half);
        let beyond = |columns: Range<i64>| {
            let sources = columns.filter_map(|i| filter.border.source(i, n));
            let (low, high) = sources.fold((u64::MAX, 0), |(low, high), i| (low.min(i), high.max(i + 1)));
            (low.min(high), high.saturating_sub(low))
        };
        let inside = (from.max(0) as u64, (to.min(n as i64) - from.max(0)).max(0) as u64);
        Columns { filter, n, from, to, parts: [beyond(from..to.min(0)), inside, beyond(from.max(n as i64)..to)] }
    }

    fn elements(&self) -> u64 {
        self.parts.iter().map(|part| part.1).sum()
    }

    /// Some rows of an array, each part after the other.
    fn read(&self, outcome: &Outcome, array: usize, row: u64, rows: u64) -> Result<[Vec<f32>; 3], Error> {
        let mut read = [const { Vec::new() }; 3];
        for (values, (first, count)) in read.iter_mut().zip(self.parts).filter(|(_, part)| part.1 > 0) {
            *values = outcome.read_f32(array, &Region::new(&[row, first], &[rows, count]))?;
        }
        Ok(read)
    }

    /// `count` columns of row `row` of those that were read, from `first` of all columns on; zeros of no row.
    fn padded(&self, read: Option<(&[Vec<f32>; 3], usize)>, first: usize, count: usize) -> Vec<f64> {
        let Some((read, row)) = read else { return vec![0.0; count] };
        let from = self.from + first as i64;
        let value = |i: i64| {
            let part = if i < 0 { 0 } else { 1 + usize::from(i >= self.n as i64) };
            let (start, len) = self.parts[part];
            let source = self.filter.border.source(i, self.n)?;
            Some(f64::from(read[part][row * len as usize + (source - start) as usize]))
        };
        (from..from + count as i64).map(|i| value(i).unwrap_or(0.0)).collect()
    }

    /// All columns of one row.
    fn all(&self, read: Option<(&[Vec<f32>; 3], usize)>) -> Vec<f64> {
        self.padded(read, 0, (self.to - self.from) as usize)
    }
}

/// The probes of some groups of columns.
struct Probes<'a> {
    job: &'a Job<'a>,
    group: u64,
    /// First column and columns of all groups.
    first: u64,
    columns: usize,
    rounds: usize,
    /// Random weight of column j in round r at j * rounds + r.
    random: Vec<f64>,
    /// For each group, what the weights make of them: by padded column, row of weights and round.
    of_weights: Vec<Vec<f64>>,
    /// Sum of the absolute values of each row of weights, squared.
    squared: Vec<f64>,
}

/// What is expected of a row of the result, by group.
#[derive(Clone)]
struct Expected {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl<'a> Probes<'a> {
    fn new(job: &'a Job<'a>, seed: u64, (group, count): (u64, u64), rounds: usize) -> Probes<'a> {
        let first = group * GROUP as u64;
        let columns = (job.n - first).min(count * GROUP as u64) as usize;
        let number = |j: usize, r: usize| (first + j as u64) * ROUNDS + r as u64;
        let random: Vec<f64> = (0..columns).flat_map(|j| (0..rounds).map(move |r| probe(seed, number(j, r)))).collect();
        let (kh, kw) = (job.filter.rows as usize, job.filter.cols as usize);
        let lanes = kh * rounds;
        let rows = || job.filter.values.chunks_exact(kw);
        let of_weights = random
            .chunks(GROUP * rounds)
            .map(|random| {
                let width = random.len() / rounds;
                let mut made = vec![0.0; (width + kw - 1) * lanes];
                for (x, random) in random.chunks_exact(rounds).enumerate() {
                    for (i, weights) in rows().enumerate() {
                        for (j, &weight) in weights.iter().enumerate() {
                            let to = &mut made[(x + j) * lanes + i * rounds..][..rounds];
                            to.iter_mut().zip(random).for_each(|(to, random)| *to += f64::from(weight) * random);
                        }
                    }
                }
                made
            })
            .collect();
        let squared = rows().map(|row| row.iter().map(|w| f64::from(w.abs())).sum::<f64>().powi(2)).collect();
        Probes { job, group, first, columns, rounds, random, of_weights, squared }
    }

    /// Probes every row: rows of the input, those beyond the border too, are met one after the other, and each adds to the
    /// rows of the result that it has a part in.
    fn rows(&self, found: &mut Probed) -> Result<(), Error> {
        let Job { outcome, plane, m, n, filter } = *self.job;
        let (kh, half) = (filter.rows as usize, (filter.rows / 2) as i64);
        let (groups, rounds) = (self.of_weights.len(), self.rounds);
        let none = Expected { sums: vec![0.0; groups * rounds], squares: vec![0.0; groups] };
        let mut ring = vec![none.clone(); kh];
        let around = Columns::around(self.first, self.columns, filter, n);
        let (mut input, mut output) = (Band::new(around.elements(), outcome), Band::new(self.columns as u64, outcome));
        let (mut before, mut after) = ([const { Vec::new() }; 3], Vec::new());
        for v in -half..m as i64 + half {
            let row = match filter.border.source(v, m) {
                Some(row) => {
                    if let Some((first, rows)) = input.next(row, m) {
                        drop(std::mem::take(&mut before));
                        before = around.read(outcome, plane.input, first, rows)?;
                    }
                    Some((&before, (row - input.first) as usize))
                }
                None => None,
            };
            for g in 0..groups {
                let width = GROUP.min(self.columns - g * GROUP);
                let window = around.padded(row, g * GROUP, width + filter.cols as usize - 1);
                let mut dots = vec![0.0; kh * rounds];
                for (value, weights) in window.iter().zip(self.of_weights[g].chunks_exact(kh * rounds)) {
                    dots.iter_mut().zip(weights).for_each(|(dot, weight)| *dot += value * weight);
                }
                let met: f64 = window.iter().map(|value| value * value).sum();
                for (i, dots) in dots.chunks_exact(rounds).enumerate() {
                    let y = v - i as i64 + half;
                    if !(0..m as i64).contains(&y) {
                        continue;
                    }
                    let expected = &mut ring[y as usize % kh];
                    let sums = &mut expected.sums[g * rounds..][..rounds];
                    sums.iter_mut().zip(dots).for_each(|(sum, dot)| *sum += dot);
                    let after = sums.iter().map(|sum| sum * sum).sum::<f64>() / rounds as f64;
                    expected.squares[g] += 2.0 * filter.cols as f64 * (after + self.squared[i] * met);
                }
            }
            let y = v - half;
            if y >= 0 {
                if let Some((row, rows)) = output.next(y as u64, m) {
                    let region = Region::new(&[row, self.first], &[rows, self.columns as u64]);
                    after.clear();
                    after = outcome.read_f32(plane.output, &region)?;
                }
                let row = &after[(y as u64 - output.first) as usize * self.columns..][..self.columns];
                self.compare(y as u64, row, &ring[y as usize % kh], found);
                ring[y as usize % kh] = none.clone();
            }
        }
        Ok(())
    }

    fn compare(&self, y: u64, row: &[f32], expected: &Expected, found: &mut Probed) {
        let rounds = self.rounds;
        let groups = row.chunks(GROUP).zip(self.random.chunks(GROUP * rounds)).zip(self.group..);
        let expected = expected.sums.chunks_exact(rounds).zip(&expected.squares);
        for (((row, random), group), (sums, squares)) in groups.zip(expected) {
            let mut probes = vec![0.0; rounds];
            for (&value, random) in row.iter().zip(random.chunks_exact(rounds)) {
                probes.iter_mut().zip(random).for_each(|(sum, random)| *sum += f64::from(value) * random);
            }
            let taps = self.job.filter.values.len();
            let allowed = 0.5 * DEVIATIONS * UNIT_ROUNDOFF * squares.sqrt() + (taps * row.len()) as f64 * UNDERFLOW;
            found.compare((y, group), (row.len() as u64, 0), probes.into_iter().zip(sums.iter().copied()), allowed);
        }
    }
}

/// Which rows of an array are read together.
struct Band {
    first: u64,
    rows: u64,
    most: u64,
}

impl Band {
    /// None yet, of so many elements a row.
    fn new(elements: u64, outcome: &Outcome) -> Band {
        Band { first: 0, rows: 0, most: (outcome.band_elements() / elements.max(1)).max(1) }
    }

    /// First row and number of rows that are to be read now, to have one of `m`.
    fn next(&mut self, row: u64, m: u64) -> Option<(u64, u64)> {
        if (self.first..self.first + self.rows).contains(&row) {
            return None;
        }
        (self.first, self.rows) = (row, self.most.min(m - row));
        Some((self.first, self.rows))
    }
}

impl Job<'_> {
    /// Computes rows of one group of columns again; the first element that is wrong, in words.
    fn again(&self, these: &[Beyond], comparison: &mut Comparison) -> Result<Option<String>, Error> {
        let mut wrong = None;
        for beyond in these {
            let first = beyond.group * GROUP as u64;
            let width = (self.n - first).min(GROUP as u64) as usize;
            let found =
                self.outcome.read_f32(self.plane.output, &Region::new(&[beyond.row, first], &[1, width as u64]))?;
            let (defined, sums) = self.row_again(beyond.row, first, width)?;
            let bound = rounding_bound(self.filter.values.len() as u64);
            for (x, ((&found, defined), exact)) in (first..).zip(found.iter().zip(defined).zip(sums)) {
                // A zero has the sign that skipped taps leave it.
                let same = found == defined || found.to_bits() == defined.to_bits();
                if !comparison.add_again(found, same, exact, bound, beyond.ratio) && wrong.is_none() {
                    wrong = Some(format!("element [{}, {x}] is {found}, {} was expected", beyond.row, exact.0));
                }
            }
        }
        Ok(wrong)
    }

    /// Some elements of a row by the plain code of the definition, and in double precision with the sum of absolute values.
    #[allow(clippy::type_complexity)] // two lists that belong together
    fn row_again(&self, y: u64, first: u64, width: usize) -> Result<(Vec<f32>, Vec<(f64, f64)>), Error> {
        let Filter { rows: kh, cols: kw, ref values, border, filling } = *self.filter;
        let (kh, kw) = (kh as usize, kw as usize);
        let around = Columns::around(first, width, self.filter, self.n);
        let mut rows: Vec<Vec<f64>> = Vec::new();
        let mut top = 0;
        for v in y as i64 - (kh / 2) as i64..=y as i64 + (kh / 2) as i64 {
            let row = match border.source(v, self.m) {
                None => {
                    // Taps beyond are skipped; rows before the first are those of the halo that is not there.
                    top += usize::from(v < 0);
                    rows.push(around.all(None));
                    continue;
                }
                Some(row) => around.read(self.outcome, self.plane.input, row, 1)?,
            };
            rows.push(around.all(Some((&row, 0))));
        }
        let mut sums = vec![(0.0f64, 0.0f64); width];
        let counts = |[before, behind]: [usize; 2], len: usize| before..len - behind;
        let (of_rows, of_cols) = (counts(filling.rows, kh), counts(filling.cols, kw));
        for (row, weights) in rows.iter().zip(values.chunks_exact(kw)).take(of_rows.end).skip(of_rows.start) {
            for (j, &weight) in weights.iter().enumerate().take(of_cols.end).skip(of_cols.start) {
                for (sum, value) in sums.iter_mut().zip(&row[j..]) {
                    let product = f64::from(weight) * value;
                    sum.0 += product;
                    sum.1 += product.abs();
                }
            }
        }
        // The halo that is there: all of it, but for zeros.
        let zero = border == Border::Zero;
        let (half_rows, half_cols) = (kh / 2, kw / 2);
        let cut = |before: u64, after: u64, half: usize| match zero {
            true => (half - half.min(before as usize), half - half.min(after as usize)),
            false => (0, 0),
        };
        let (above, below) = cut(y, self.m - 1 - y, half_rows);
        let (before, after) = cut(first, self.n - first - width as u64, half_cols);
        debug_assert!(!zero || above == top);
        let there: Vec<f32> = rows[above..kh - below]
            .iter()
            .flat_map(|row| row[before..row.len() - after].iter().map(|&value| value as f32))
            .collect();
        let (height, columns) = (kh - above - below, width + kw - 1 - before - after);
        let refused = |e: kernel::Conv2dError| Error::After(e.to_string());
        let mut defined = vec![0.0f32; width];
        let input = Block::new(&there, height, columns, columns).map_err(refused)?;
        let mut out = BlockMut::new(&mut defined, 1, width, width).map_err(refused)?;
        kernel::conv2d(Isa::Scalar, input, half_rows - above, half_cols - before, values, kh, kw, filling, &mut out)
            .map_err(refused)?;
        Ok((defined, sums))
    }
}
