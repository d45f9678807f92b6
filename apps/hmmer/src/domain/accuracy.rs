//! The alignment with the largest expected number of correctly placed residues.
//!
//! L. Käll, A. Krogh, E. L. L. Sonnhammer, "An HMM posterior decoder for sequence feature prediction that includes
//! homology information", Bioinformatics 21 Suppl 1:i251 (2005). Two overlapping envelopes with the same alignment are one
//! domain.

use super::matrix::{Cell, Lengths, Matrix};
use super::model::Model;
use multigrain_simd::{QUAD, Quad};

const NEVER: f32 = f32::NEG_INFINITY;

/// What a column of an alignment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A residue at a node's match state.
    Match,
    /// A residue at a node's insert state.
    Insert,
    /// A node without a residue.
    Delete,
}

/// A column of an alignment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// What it is.
    pub step: Step,
    /// Code of the residue; nothing at a delete state.
    pub code: u8,
    /// Whether the match state prefers this residue to the background.
    pub is_preferred: bool,
    /// Probability that the residue belongs here, 0 at a delete state.
    pub probability: f32,
}

/// The alignment of a domain, from its first to its last match state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aligned {
    /// First and last residue, counted from 1.
    pub residues: (usize, usize),
    /// First and last node, counted from 1.
    pub nodes: (usize, usize),
    /// Expected number of residues that are placed correctly.
    pub accuracy: f32,
    /// Its columns; those between the first and last node and residue, and no others.
    pub columns: Vec<Column>,
}

/// Space for expected numbers.
#[derive(Default)]
pub(super) struct Accuracy {
    cells: Vec<Cell>,
    /// E, B and C at each residue; one domain, so there is no J.
    special: Vec<(f32, f32, f32)>,
}

impl Accuracy {
    pub(super) fn held_bytes(&self) -> usize {
        size_of::<Cell>() * self.cells.capacity() + size_of::<(f32, f32, f32)>() * self.special.capacity()
    }

    /// The alignment of these residues, which are those of the posterior matrix and counted from 1; it is for one domain.
    /// None if no alignment has a match state.
    pub(super) fn align(
        &mut self,
        model: &Model,
        lengths: Lengths,
        residues: &[u8],
        posterior: &Matrix,
    ) -> Option<Aligned> {
        self.fill(model, lengths, posterior);
        self.trace(model, lengths, residues, posterior)
    }

    fn fill(&mut self, model: &Model, lengths: Lengths, posterior: &Matrix) {
        let (quads, length) = (model.quads(), posterior.length());
        let never = Quad::splat(NEVER);
        self.cells.clear();
        self.cells.resize((length + 1) * quads, Cell { m: never, d: never, i: never });
        self.special.clear();
        let (mut n, mut c) = (0.0f32, NEVER);
        self.special.push((NEVER, 0.0, NEVER));
        for i in 1..=length {
            let begin = Quad::splat(self.special[i - 1].1);
            let (before, row) = self.cells.split_at_mut(i * quads);
            let (before, row) = (&before[(i - 1) * quads..], &mut row[..quads]);
            let last = before[quads - 1];
            let (mut m, mut d, mut ins) = (last.m.up(NEVER), last.d.up(NEVER), last.i.up(NEVER));
            let (mut end, mut delete) = (never, never);
            for (((cell, old), step), p) in row.iter_mut().zip(before).zip(&model.steps).zip(posterior.row(i)) {
                let mut best = begin.where_positive(step.begin);
                best = best.max(m.where_positive(step.mm));
                best = best.max(ins.where_positive(step.im));
                best = best.max(d.where_positive(step.dm));
                best += p.m;
                end = end.max(best);
                (m, d, ins) = (old.m, old.d, old.i);
                let insert = m.where_positive(step.mi).max(ins.where_positive(step.ii)) + p.i;
                *cell = Cell { m: best, d: delete, i: insert };
                delete = best.where_positive(step.md);
            }
            delete = delete.up(NEVER);
            for (cell, step) in row.iter_mut().zip(&model.steps) {
                cell.d = delete.max(cell.d);
                delete = cell.d.where_positive(step.dd);
            }
            for _ in 1..QUAD {
                delete = delete.up(NEVER);
                for (cell, step) in row.iter_mut().zip(&model.steps) {
                    cell.d = delete.max(cell.d);
                    delete = delete.where_positive(step.dd);
                }
            }
            for cell in row.iter() {
                end = end.max(cell.d);
            }
            let end = end.to_array().into_iter().fold(NEVER, f32::max);
            let p = posterior.special[i];
            let stays = lengths.stay != 0.0;
            c = end.max(if stays { c + p.c } else { 0.0 });
            n = if stays { n + p.n } else { 0.0 };
            // J would be 0 here, for E leads to none; HMMER takes it for a way to B all the same.
            self.special.push((end, n.max(0.0), c));
        }
    }

    fn trace(&self, model: &Model, lengths: Lengths, residues: &[u8], posterior: &Matrix) -> Option<Aligned> {
        let quads = model.quads();
        let row = |i: usize| &self.cells[i * quads..][..quads];
        let mut i = posterior.length();
        // C: emitted here, or reached from E.
        while i > 0 {
            let stayed = if lengths.stay == 0.0 { NEVER } else { self.special[i - 1].2 + posterior.special[i].c };
            if stayed > self.special[i].0 {
                i -= 1;
            } else {
                break;
            }
        }
        if i == 0 {
            return None;
        }
        let (mut k, mut state) = (1, 'M');
        let mut best = NEVER;
        for (q, cell) in row(i).iter().enumerate() {
            for lane in 0..QUAD {
                if cell.m.to_array()[lane] >= best {
                    (best, state, k) = (cell.m.to_array()[lane], 'M', lane * quads + q + 1);
                }
            }
            for lane in 0..QUAD {
                if cell.d.to_array()[lane] > best {
                    (best, state, k) = (cell.d.to_array()[lane], 'D', lane * quads + q + 1);
                }
            }
        }
        let accuracy = self.special[posterior.length()].2;
        let mut aligned: Option<Aligned> = None;
        let mut columns = Vec::new();
        while i > 0 && k > 0 {
            let (q, lane) = ((k - 1) % quads, (k - 1) / quads);
            let before = |row: &[Cell]| match q {
                0 => {
                    let last = row[quads - 1];
                    [last.m, last.i, last.d].map(|values| values.up(0.0).to_array()[lane])
                }
                _ => [row[q - 1].m, row[q - 1].i, row[q - 1].d].map(|values| values.to_array()[lane]),
            };
            let open = |gate: f32, value: f32| if gate == 0.0 { NEVER } else { value };
            let step = &model.steps[q];
            let code = residues[i - 1];
            match state {
                'M' => {
                    let aligned = aligned.get_or_insert_with(|| Aligned {
                        residues: (i, i),
                        nodes: (k, k),
                        accuracy,
                        columns: Vec::new(),
                    });
                    (aligned.residues.0, aligned.nodes.0) = (i, k);
                    columns.push(Column {
                        step: Step::Match,
                        code,
                        is_preferred: model.odds(code)[q].to_array()[lane] > 1.0,
                        probability: posterior.row(i)[q].m.to_array()[lane],
                    });
                    let [m, ins, d] = before(row(i - 1));
                    let ways = [
                        (open(step.mm.to_array()[lane], m), 'M'),
                        (open(step.im.to_array()[lane], ins), 'I'),
                        (open(step.dm.to_array()[lane], d), 'D'),
                        (open(step.begin.to_array()[lane], self.special[i - 1].1), 'B'),
                    ];
                    // The first of equals.
                    let way = ways.iter().skip(1).fold(ways[0], |best, &way| if way.0 > best.0 { way } else { best });
                    (i, k) = (i - 1, k - 1);
                    state = way.1;
                    if state == 'B' {
                        break;
                    }
                }
                'D' => {
                    columns.push(Column { step: Step::Delete, code: 0, is_preferred: false, probability: 0.0 });
                    let [m, _, d] = before(row(i));
                    let from = &model.steps[(q + quads - 1) % quads];
                    let (md, dd) = if q > 0 { (from.md, from.dd) } else { (from.md.up(0.0), from.dd.up(0.0)) };
                    state = if open(md.to_array()[lane], m) >= open(dd.to_array()[lane], d) { 'M' } else { 'D' };
                    k -= 1;
                }
                _ => {
                    let probability = posterior.row(i)[q].i.to_array()[lane];
                    columns.push(Column { step: Step::Insert, code, is_preferred: false, probability });
                    let cell = row(i - 1)[q];
                    let (m, ins) = (
                        open(step.mi.to_array()[lane], cell.m.to_array()[lane]),
                        open(step.ii.to_array()[lane], cell.i.to_array()[lane]),
                    );
                    state = if m >= ins { 'M' } else { 'I' };
                    i -= 1;
                }
            }
        }
        // They were met backwards; what lies outside of the first and last match state is not aligned.
        let is_match = |column: &Column| column.step == Step::Match;
        let last = columns.iter().position(is_match)?;
        let first = columns.iter().rposition(is_match)?;
        aligned.map(|aligned| Aligned { columns: columns[last..=first].iter().rev().copied().collect(), ..aligned })
    }
}
