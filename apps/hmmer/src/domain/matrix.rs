//! Forward and Backward in scaled probabilities, in the order of arithmetic of HMMER's vector implementation.
//!
//! A row holds M, D and I of all quads. Odds grow with the sequence, so a row is divided by its E when that exceeds
//! 10^4; the divisors are kept, and Backward uses those of Forward, so that products of both need no more scaling.
//! Multiplications and additions are rounded separately and never fused.
//!
//! One difference is left: HMMER has the processor take numbers below 10^-38 for 0, and here they are kept. They are that
//! much smaller than what they are added to.

use super::model::Model;
use multigrain_simd::{QUAD, Quad};

/// With this many nodes or more, a pass along the delete states that changes nothing is the last of a row. A later one
/// could still change a last bit, so where HMMER stops is part of the result.
const SHORT: usize = 100;

/// Match, delete and insert states of one quad of nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    pub(super) m: Quad,
    pub(super) d: Quad,
    pub(super) i: Quad,
}

/// States outside of the nodes, at one residue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Special {
    pub(super) e: f32,
    pub(super) n: f32,
    pub(super) j: f32,
    pub(super) b: f32,
    pub(super) c: f32,
    /// What the row was divided by, at least 1.
    pub(super) scale: f32,
}

/// Transitions of the states outside of the nodes, which depend on the length of the whole sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// E to C.
    pub(super) end_move: f32,
    /// E to J.
    pub(super) end_loop: f32,
    /// N to B, J to B, C to T.
    pub(super) leave: f32,
    /// N to N, J to J, C to C.
    pub(super) stay: f32,
}

impl Lengths {
    /// Any number of domains in a sequence of `length` residues.
    pub(super) fn multihit(length: usize) -> Self {
        Self::new(length, 0.5, 3.0)
    }

    /// Exactly one domain in a sequence of `length` residues.
    pub(super) fn unihit(length: usize) -> Self {
        Self::new(length, 0.0, 2.0)
    }

    fn new(length: usize, end_loop: f32, ends: f32) -> Self {
        let leave = ends / (length as f32 + ends);
        Self { end_move: 1.0 - end_loop, end_loop, leave, stay: 1.0 - leave }
    }
}

/// A matrix of `rows` rows, or, when only the special states are wanted, of two rows in turn.
#[derive(Default)]
pub(super) struct Matrix {
    cells: Vec<Cell>,
    quads: usize,
    full: bool,
    /// Special states before the first residue (0) and at each residue.
    pub(super) special: Vec<Special>,
    /// Backward had to divide by numbers of its own.
    own_scales: bool,
}

impl Matrix {
    pub(super) fn held_bytes(&self) -> usize {
        size_of::<Cell>() * self.cells.capacity() + size_of::<Special>() * self.special.capacity()
    }

    fn prepare(&mut self, quads: usize, length: usize, full: bool) {
        let rows = if full { length + 1 } else { 2 };
        // Every row is written before it is read, but for the one before the first residue.
        self.cells.resize((rows * quads).max(self.cells.len()), Cell::default());
        self.cells[..quads].fill(Cell::default());
        self.special.clear();
        self.special.resize(length + 1, Special::default());
        (self.quads, self.full, self.own_scales) = (quads, full, false);
    }

    fn at(&self, row: usize) -> usize {
        if self.full { row * self.quads } else { row % 2 * self.quads }
    }

    /// The cells of a row; only of a full matrix, or the last two rows computed.
    pub(super) fn row(&self, row: usize) -> &[Cell] {
        &self.cells[self.at(row)..][..self.quads]
    }

    /// A row to read and a neighbouring one to write.
    fn pair(&mut self, read: usize, write: usize) -> (&[Cell], &mut [Cell]) {
        let (read, write, quads) = (self.at(read), self.at(write), self.quads);
        if read < write {
            let (low, high) = self.cells.split_at_mut(write);
            (&low[read..][..quads], &mut high[..quads])
        } else {
            let (low, high) = self.cells.split_at_mut(read);
            (&high[..quads], &mut low[write..][..quads])
        }
    }

    /// Residues.
    pub(super) fn length(&self) -> usize {
        self.special.len() - 1
    }

    pub(super) fn forward(&mut self, model: &Model, lengths: Lengths, residues: &[u8], full: bool) -> f32 {
        self.prepare(model.quads(), residues.len(), full);
        let mut x = Special { n: 1.0, b: lengths.leave, scale: 1.0, ..Special::default() };
        self.special[0] = x;
        let mut scales = 0.0f32;
        for (i, &code) in residues.iter().enumerate() {
            let (before, row) = self.pair(i, i + 1);
            x.e = forward_row(model, model.odds(code), x.b, before, row);
            x.n *= lengths.stay;
            x.c = (x.c * lengths.stay) + (x.e * lengths.end_move);
            x.j = (x.j * lengths.stay) + (x.e * lengths.end_loop);
            x.b = (x.j * lengths.leave) + (x.n * lengths.leave);
            x.scale = 1.0;
            if x.e > 1.0e4 {
                x.n /= x.e;
                x.c /= x.e;
                x.j /= x.e;
                x.b /= x.e;
                divide(row, x.e);
                x.scale = x.e;
                scales = (f64::from(scales) + f64::from(x.e).ln()) as f32;
                x.e = 1.0;
            }
            self.special[i + 1] = x;
        }
        (f64::from(scales) + f64::from(x.c * lengths.leave).ln()) as f32
    }

    /// Fills Backward; `forward` is of the same residues and lengths. Returns its score, equal to Forward's but for
    /// rounding.
    pub(super) fn backward(
        &mut self,
        model: &Model,
        lengths: Lengths,
        residues: &[u8],
        forward: &Matrix,
        full: bool,
    ) -> f32 {
        let length = residues.len();
        self.prepare(model.quads(), length, full);
        let mut x = Special { c: lengths.leave, ..Special::default() };
        x.e = x.c * lengths.end_move;
        x.scale = forward.special[length].scale;
        let at = self.at(length);
        let row = &mut self.cells[at..][..model.quads()];
        last_row(model, x.e, row);
        if x.scale > 1.0 {
            x.divide();
            divide(row, x.scale);
        }
        let mut scales = f64::from(x.scale).ln() as f32;
        self.special[length] = x;
        for i in (1..length).rev() {
            let (after, row) = self.pair(i + 1, i);
            let b = backward_row(model, model.odds(residues[i]), after, row);
            x.b = b;
            x.c *= lengths.stay;
            x.j = (x.b * lengths.leave) + (x.j * lengths.stay);
            x.n = (x.b * lengths.leave) + (x.n * lengths.stay);
            x.e = (x.c * lengths.end_move) + (x.j * lengths.end_loop);
            add_ends(model, x.e, row);
            self.own_scales |= x.b > 1.0e16;
            x.scale = match self.own_scales {
                true if x.b > 1.0e4 => x.b,
                true => 1.0,
                false => forward.special[i].scale,
            };
            if x.scale > 1.0 {
                x.divide();
                let at = self.at(i);
                divide(&mut self.cells[at..][..model.quads()], x.scale);
                scales = (f64::from(scales) + f64::from(x.scale).ln()) as f32;
            }
            self.special[i] = x;
        }
        let mut begin = Quad::ZERO;
        if length > 0 {
            let steps = model.steps.iter().zip(model.odds(residues[0]));
            for (cell, (step, &odds)) in self.row(1).iter().zip(steps) {
                begin += (cell.m * odds) * step.begin;
            }
        }
        let b = begin.sum();
        let n = (b * lengths.leave) + (x.n * lengths.stay);
        self.special[0] = Special { b, n, scale: 1.0, ..Special::default() };
        (f64::from(scales) + f64::from(n).ln()) as f32
    }

    /// Overwrites this Backward matrix by the probabilities that each residue was emitted by each M and I, N, J, C, given
    /// the Forward matrix. False when the numbers overflowed, which happens where an envelope holds several good
    /// alignments although one domain was asked for.
    pub(super) fn decode(&mut self, lengths: Lengths, forward: &Matrix) -> bool {
        let mut product = 1.0 / self.special[0].n;
        for i in 1..=self.length() {
            let at = self.at(i);
            let (x, before) = (forward.special[i], forward.special[i - 1]);
            let factor = Quad::splat(product * x.scale);
            for (cell, f) in self.cells[at..][..self.quads].iter_mut().zip(forward.row(i)) {
                cell.m = (f.m * cell.m) * factor;
                cell.d = Quad::ZERO;
                cell.i = (f.i * cell.i) * factor;
            }
            let own = self.special[i];
            self.special[i] = Special {
                n: before.n * own.n * lengths.stay * product,
                j: before.j * own.j * lengths.stay * product,
                c: before.c * own.c * lengths.stay * product,
                ..Special::default()
            };
            if self.own_scales {
                product *= x.scale / own.scale;
            }
        }
        !product.is_infinite()
    }

    /// Posterior expectations along the sequence from the special states of Forward and of this Backward matrix; none
    /// when the numbers overflowed.
    pub(super) fn occupancy(&self, lengths: Lengths, forward: &Matrix) -> Option<Occupancy> {
        let length = self.length();
        let mut found = Occupancy { begins: vec![0.0], ends: vec![0.0], inside: vec![0.0] };
        let mut product = 1.0 / self.special[0].n;
        for i in 1..=length {
            let (before, here) = (forward.special[i - 1], forward.special[i]);
            let (own_before, own) = (self.special[i - 1], self.special[i]);
            found.begins.push(found.begins[i - 1] + before.b * own_before.b * before.scale * product);
            if self.own_scales {
                product *= before.scale / own_before.scale;
            }
            found.ends.push(found.ends[i - 1] + here.e * own.e * here.scale * product);
            let mut outside = before.n * own.n * lengths.stay * product;
            outside += before.j * own.j * lengths.stay * product;
            outside += before.c * own.c * lengths.stay * product;
            found.inside.push(1.0 - outside);
        }
        (!product.is_infinite()).then_some(found)
    }
}

/// Posterior expectations along a sequence; entry 0 is before the first residue.
pub(super) struct Occupancy {
    /// Expected number of domains that begin at or before a residue.
    pub(super) begins: Vec<f32>,
    /// Expected number of domains that end at or before a residue.
    pub(super) ends: Vec<f32>,
    /// Probability that a residue lies in a domain.
    pub(super) inside: Vec<f32>,
}

impl Special {
    fn divide(&mut self) {
        let scale = self.scale;
        for value in [&mut self.e, &mut self.n, &mut self.c, &mut self.j, &mut self.b] {
            *value /= scale;
        }
    }
}

fn divide(row: &mut [Cell], scale: f32) {
    let factor = Quad::splat(1.0 / scale);
    for cell in row {
        cell.m = cell.m * factor;
        cell.d = cell.d * factor;
        cell.i = cell.i * factor;
    }
}

/// One row of Forward from the one before; returns its E.
fn forward_row(model: &Model, odds: &[Quad], begin: f32, before: &[Cell], row: &mut [Cell]) -> f32 {
    let begin = Quad::splat(begin);
    let last = before[before.len() - 1];
    let (mut m, mut d, mut i) = (last.m.up(0.0), last.d.up(0.0), last.i.up(0.0));
    let (mut end, mut delete) = (Quad::ZERO, Quad::ZERO);
    for (((cell, old), step), &odds) in row.iter_mut().zip(before).zip(&model.steps).zip(odds) {
        let mut new = begin * step.begin;
        new += m * step.mm;
        new += i * step.im;
        new += d * step.dm;
        new = new * odds;
        end += new;
        (m, d, i) = (old.m, old.d, old.i);
        *cell = Cell { m: new, d: delete, i: (m * step.mi) + (i * step.ii) };
        delete = new * step.md;
    }
    // Delete states lead on within the row: once along all stripes, then what crosses from one lane to the next.
    delete = delete.up(0.0);
    row[0].d = Quad::ZERO;
    for (cell, step) in row.iter_mut().zip(&model.steps) {
        cell.d = delete + cell.d;
        delete = cell.d * step.dd;
    }
    for _ in 1..QUAD {
        delete = delete.up(0.0);
        if model.nodes < SHORT {
            for (cell, step) in row.iter_mut().zip(&model.steps) {
                cell.d = delete + cell.d;
                delete = delete * step.dd;
            }
            continue;
        }
        let mut changed = false;
        for (cell, step) in row.iter_mut().zip(&model.steps) {
            let new = delete + cell.d;
            changed |= new.differs(cell.d);
            cell.d = new;
            delete = delete * step.dd;
        }
        if !changed {
            break;
        }
    }
    for cell in row.iter() {
        end = cell.d + end;
    }
    end.sum()
}

/// The row of the last residue: every match and delete state may end.
fn last_row(model: &Model, end: f32, row: &mut [Cell]) {
    let end = Quad::splat(end);
    row.fill(Cell { m: end, d: end, i: Quad::ZERO });
    let mut delete = end.down();
    let mut carry = Quad::ZERO;
    for (cell, step) in row.iter_mut().zip(&model.steps).rev() {
        carry = delete * step.dd;
        cell.d += carry;
        delete = cell.d;
    }
    cross_lanes(model, carry, row);
    match_to_delete(model, row);
}

/// One row of Backward from the one after, as far as it is known without E; returns its B.
fn backward_row(model: &Model, odds: &[Quad], after: &[Cell], row: &mut [Cell]) -> f32 {
    let first = &model.steps[0];
    let (mut mm, mut im, mut dm) = (first.mm.down(), first.im.down(), first.dm.down());
    let mut m = (after[0].m * odds[0]).down();
    let mut begin = Quad::ZERO;
    for (((cell, next), step), &odds) in row.iter_mut().zip(after).zip(&model.steps).zip(odds).rev() {
        *cell = Cell { i: (next.i * step.ii) + (m * im), d: m * dm, m: (next.i * step.mi) + (m * mm) };
        m = next.m * odds;
        (mm, im, dm) = (step.mm, step.im, step.dm);
        begin += m * step.begin;
    }
    begin.sum()
}

/// Completes a row of Backward by the ways to E and along delete states.
fn add_ends(model: &Model, end: f32, row: &mut [Cell]) {
    let end = Quad::splat(end);
    let mut delete = (row[0].d + end).down();
    let mut carry = Quad::ZERO;
    for (cell, step) in row.iter_mut().zip(&model.steps).rev() {
        carry = delete * step.dd;
        cell.d += carry + end;
        delete = cell.d;
        cell.m += end;
    }
    cross_lanes(model, carry, row);
    match_to_delete(model, row);
}

fn cross_lanes(model: &Model, mut carry: Quad, row: &mut [Cell]) {
    for _ in 1..QUAD {
        carry = carry.down();
        for (cell, step) in row.iter_mut().zip(&model.steps).rev() {
            carry = carry * step.dd;
            cell.d += carry;
        }
    }
}

fn match_to_delete(model: &Model, row: &mut [Cell]) {
    let mut delete = row[0].d.down();
    for (cell, step) in row.iter_mut().zip(&model.steps).rev() {
        cell.m += delete * step.md;
        delete = cell.d;
    }
}
