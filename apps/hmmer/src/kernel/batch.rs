//! The recurrences on a batch: one sequence a lane, and the next sequence into a lane as soon as one has ended.

use super::tables::{CODES_PADDED, IDLE, TRANSITIONS};
use multigrain_simd::Lanes;

/// Numbers that a node keeps from one residue to the next, for Forward and for Viterbi: what flows into the next match
/// state, and the insert state.
pub(super) const STATES: usize = 4;

/// Rows between two looks at which sequences have ended.
const ROWS_MAX: usize = 64;
/// The most lanes of any vector.
pub(super) const LANES_MAX: usize = 16;

/// Above this, the numbers of a lane are multiplied by the power of two that brings C into [1, 2). One residue
/// multiplies them by less than 2^20, the greatest odds ratio times the number of nodes, so they stay far from the
/// largest number, 2^128.
const LIMIT: f32 = (1u64 << 60) as f32;

/// What a batch works on.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    /// Tables of the profile, [`NODE_FLOATS`](super::NODE_FLOATS) numbers for each of `nodes`.
    pub(super) tables: &'a [f32],
    /// Nodes of the profile.
    pub(super) nodes: usize,
    /// Residue codes of all sequences.
    pub(super) residues: &'a [u8],
    /// Where each sequence begins, and where the last one ends; the first begins at residue 0.
    pub(super) offsets: &'a [u64],
    /// The numbers of all sequences, in the order in which they take lanes.
    pub(super) order: &'a [u32],
}

impl<'a> Work<'a> {
    /// Residues of sequence `i`.
    fn sequence(&self, i: usize) -> &'a [u8] {
        let at = |i: usize| (self.offsets[i] - self.offsets[0]) as usize;
        &self.residues[at(i)..at(i + 1)]
    }
}

/// A lane's sequence.
#[derive(Clone, Copy, Default)]
struct Lane<'a> {
    /// Number of the sequence; `None` in a lane that idles.
    number: Option<usize>,
    /// What is left of it.
    rest: &'a [u8],
    /// 3 / (L + 3).
    leave: f64,
    /// By which powers of two the lane's numbers are too small.
    exponents: [i32; 2],
}

/// The special states, one number a lane: for Forward [0] and for Viterbi [1].
struct Special {
    n: [[f32; LANES_MAX]; 2],
    c: [[f32; LANES_MAX]; 2],
    leave: [f32; LANES_MAX],
}

/// Scores all sequences of a batch.
///
/// # Safety
/// The processor supports the instruction set of `V`; `states` has at least `STATES * nodes * V::LANES` elements;
/// `work.tables` are tables of `nodes` nodes; every residue is below [`CODES_PADDED`].
#[inline(always)]
pub(super) unsafe fn score<V: Lanes>(work: Work<'_>, states: &mut [f32], scores: &mut [[f64; 2]]) {
    let mut next = 0;
    let mut lanes = [Lane::default(); LANES_MAX];
    let lanes = &mut lanes[..V::LANES];
    let none = [[0.0; LANES_MAX]; 2];
    let mut special = Special { n: none, c: none, leave: [0.0; LANES_MAX] };
    let mut codes = [IDLE; ROWS_MAX * LANES_MAX];
    let floats = STATES * work.nodes * V::LANES;
    states[..floats].fill(0.0);
    loop {
        for (i, lane) in lanes.iter_mut().enumerate() {
            if !lane.rest.is_empty() {
                continue;
            }
            if let Some(number) = lane.number.take() {
                let nats = |c: f32, e: i32| (f64::from(c) * lane.leave).ln() + f64::from(e) * std::f64::consts::LN_2;
                // Viterbi first, as in `Scores`.
                scores[number] = [1, 0].map(|kind: usize| nats(special.c[kind][i], lane.exponents[kind]));
                states[..floats].iter_mut().skip(i).step_by(V::LANES).for_each(|s| *s = 0.0);
                (special.n[0][i], special.n[1][i]) = (0.0, 0.0);
                (special.c[0][i], special.c[1][i]) = (0.0, 0.0);
            }
            if let Some(&number) = work.order.get(next) {
                let number = number as usize;
                let rest = work.sequence(number);
                let leave = 3.0 / (rest.len() as f64 + 3.0);
                *lane = Lane { number: Some(number), rest, leave, exponents: [0; 2] };
                (special.n[0][i], special.n[1][i]) = (1.0, 1.0);
                special.leave[i] = leave as f32;
                next += 1;
            }
        }
        let Some(rows) = lanes.iter().filter(|l| l.number.is_some()).map(|l| l.rest.len()).min() else { return };
        let rows = rows.min(ROWS_MAX);
        for (i, lane) in lanes.iter_mut().enumerate() {
            let column = codes.iter_mut().skip(i).step_by(V::LANES).take(rows);
            if lane.number.is_some() {
                let (now, rest) = lane.rest.split_at(rows);
                column.zip(now).for_each(|(code, &x)| *code = u32::from(x));
                lane.rest = rest;
            } else {
                column.for_each(|code| *code = IDLE);
            }
        }
        let mut done = 0;
        while done < rows {
            // SAFETY: as this function's; `codes` has `rows` rows of a code for each lane.
            let (count, grown) = unsafe {
                let codes = codes.as_ptr().add(done * V::LANES);
                run::<V>(work.tables.as_ptr(), work.nodes, codes, rows - done, states.as_mut_ptr(), &mut special)
            };
            done += count;
            if grown {
                rescale(lanes, &mut special, &mut states[..floats]);
            }
        }
    }
}

/// Brings the numbers of every lane that has grown beyond [`LIMIT`] down, by a power of two: no bit is lost but of
/// what is too small to count.
#[cold]
fn rescale(lanes: &mut [Lane<'_>], special: &mut Special, states: &mut [f32]) {
    let width = lanes.len();
    for (i, lane) in lanes.iter_mut().enumerate() {
        for kind in 0..2 {
            let c = special.c[kind][i];
            if c <= LIMIT {
                continue;
            }
            // A normal number: its exponent stands in bits 23 to 30.
            let exponent = (c.to_bits() >> 23) as i32 - 127;
            let factor = f32::from_bits(((127 - exponent) as u32) << 23);
            special.c[kind][i] *= factor;
            special.n[kind][i] *= factor;
            lane.exponents[kind] += exponent;
            for node in states.chunks_exact_mut(STATES * width) {
                node[2 * kind * width + i] *= factor;
                node[(2 * kind + 1) * width + i] *= factor;
            }
        }
    }
}

/// Rows of the recurrences, until all are done or a number has grown too large: how many were done, and which it was.
///
/// # Safety
/// The processor supports the instruction set of `V`; `codes` has `rows` rows of a code below [`CODES_PADDED`] for each
/// lane; `tables` are those of `nodes` nodes; `states` has `STATES * nodes * V::LANES` elements.
#[inline(always)]
unsafe fn run<V: Lanes>(
    tables: *const f32,
    nodes: usize,
    codes: *const u32,
    rows: usize,
    states: *mut f32,
    special: &mut Special,
) -> (usize, bool) {
    // SAFETY: of all blocks: the instruction set and the extents of the arrays are the caller's; indices stay below
    // `rows` and `nodes`; the arrays of `special` have room for any vector.
    unsafe {
        let (zero, half) = (V::splat(0.0), V::splat(0.5));
        let leave = V::load(special.leave.as_ptr());
        let not_stay = zero.fma(leave, V::splat(-1.0));
        let [mut n_f, mut n_v] = [0, 1].map(|kind: usize| V::load(special.n[kind].as_ptr()));
        let [mut c_f, mut c_v] = [0, 1].map(|kind: usize| V::load(special.c[kind].as_ptr()));
        let (mut row, mut grown) = (0, false);
        while row < rows && !grown {
            let x = V::index(codes.add(row * V::LANES));
            let (begin_f, begin_v) = (n_f.add(c_f).mul(leave), n_v.max(c_v).mul(leave));
            let (mut into_f, mut into_v, mut d_f, mut d_v) = (zero, zero, zero, zero);
            let (mut end_m, mut end_d, mut end_v) = (zero, zero, zero);
            let mut odds = tables;
            let mut transition = tables.add(CODES_PADDED * nodes);
            let mut state = states;
            for _ in 0..nodes {
                let e = V::look_up(odds, x);
                let t = |i: usize| V::splat(*transition.add(i));
                let (entry, mm, im, dm, mi, ii, md, dd) = (t(0), t(1), t(2), t(3), t(4), t(5), t(6), t(7));
                let at = |i: usize| state.add(i * V::LANES);

                let m = into_f.fma(begin_f, entry).mul(e);
                let i = V::load(at(1));
                into_f = V::load(at(0));
                m.mul(mm).fma(i, im).fma(d_f, dm).store(at(0));
                m.mul(mi).fma(i, ii).store(at(1));
                end_m = end_m.add(m);
                end_d = end_d.add(d_f);
                d_f = m.mul(md).fma(d_f, dd);

                let m = into_v.max(begin_v.mul(entry)).mul(e);
                let i = V::load(at(3));
                into_v = V::load(at(2));
                m.mul(mm).max(i.mul(im)).max(d_v.mul(dm)).store(at(2));
                m.mul(mi).max(i.mul(ii)).store(at(3));
                // A delete state never beats the match state it comes from.
                end_v = end_v.max(m);
                d_v = m.mul(md).max(d_v.mul(dd));

                odds = odds.add(CODES_PADDED);
                transition = transition.add(TRANSITIONS);
                state = state.add(STATES * V::LANES);
            }
            // p x with p = L/(L+3) as x - 3/(L+3) x: the constant's own rounding would add up over a long sequence.
            n_f = n_f.fma(n_f, not_stay);
            n_v = n_v.fma(n_v, not_stay);
            c_f = c_f.fma(c_f, not_stay).fma(end_m.add(end_d), half);
            c_v = c_v.fma(c_v, not_stay).max(end_v.mul(half));
            row += 1;
            grown = c_f.max(c_v).any_above(LIMIT);
        }
        for (kind, (n, c)) in [(n_f, c_f), (n_v, c_v)].into_iter().enumerate() {
            n.store(special.n[kind].as_mut_ptr());
            c.store(special.c[kind].as_mut_ptr());
        }
        (row, grown)
    }
}
