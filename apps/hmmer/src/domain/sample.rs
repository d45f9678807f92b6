//! Alignments sampled from their posterior distribution, by walking a Forward matrix backwards.

use super::matrix::{Cell, Lengths, Matrix};
use super::model::Model;
use crate::random::Random;
use multigrain_simd::{QUAD, Quad};

/// One domain of a sampled alignment: from its first to its last match state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Segment {
    /// Number of the sample.
    pub(super) sample: u32,
    /// First residue, counted from 1.
    pub(super) from: u32,
    /// Last residue.
    pub(super) to: u32,
    /// First node, counted from 1.
    pub(super) node_from: u32,
    /// Last node.
    pub(super) node_to: u32,
}

/// The domains of one sampled alignment.
#[derive(Default)]
pub(super) struct Sample {
    /// The domains, the last one first, and the number of entries of `nodes` before each.
    pub(super) segments: Vec<(Segment, usize)>,
    /// Nodes that emitted the residues of all domains, the last residue first.
    nodes: Vec<u32>,
}

enum State {
    M,
    D,
    I,
    N,
    C,
    J,
    E,
    B,
}

impl Sample {
    /// Domains in the order of the sequence, each with the nodes that emitted its residues.
    pub(super) fn domains(&self) -> impl Iterator<Item = (Segment, &[u32])> {
        let ends = self.segments.iter().skip(1).map(|s| s.1).chain([self.nodes.len()]);
        let with_ends: Vec<_> = self.segments.iter().zip(ends).collect();
        with_ends.into_iter().rev().map(|(&(segment, start), end)| (segment, &self.nodes[start..end]))
    }

    /// Samples an alignment of the residues that `forward` is of. False when the matrix holds no alignment.
    pub(super) fn draw(&mut self, random: &mut Random, model: &Model, lengths: Lengths, forward: &Matrix) -> bool {
        self.segments.clear();
        self.nodes.clear();
        let (mut i, mut k) = (forward.length(), 0);
        let mut state = State::C;
        loop {
            if i == 0 && !matches!(state, State::N | State::B) {
                return false;
            }
            state = match state {
                State::C | State::J => {
                    let (x, before) = (forward.special[i], forward.special[i - 1]);
                    let ended = matches!(state, State::C);
                    let (stayed, end) = if ended { (before.c, lengths.end_move) } else { (before.j, lengths.end_loop) };
                    if random.choose([stayed * lengths.stay, x.e * end * x.scale]) == 0 {
                        i -= 1;
                        state
                    } else {
                        State::E
                    }
                }
                State::E => {
                    let (node, matched) = last_node(random, forward, i);
                    k = node;
                    self.segments.push((Segment::default(), self.nodes.len()));
                    if matched { self.matched(i, k) } else { State::D }
                }
                State::M => {
                    let (q, lane) = ((k - 1) % model.quads(), (k - 1) / model.quads());
                    let (step, before) = (&model.steps[q], preceding(forward.row(i - 1), q));
                    let weights = [
                        forward.special[i - 1].b * step.begin.to_array()[lane],
                        before.m.to_array()[lane] * step.mm.to_array()[lane],
                        before.i.to_array()[lane] * step.im.to_array()[lane],
                        before.d.to_array()[lane] * step.dm.to_array()[lane],
                    ];
                    k -= 1;
                    i -= 1;
                    match random.choose(weights) {
                        0 => State::B,
                        _ if k == 0 => return false,
                        1 => self.matched(i, k),
                        2 => self.inserted(k),
                        _ => State::D,
                    }
                }
                State::D => {
                    let (q, lane) = ((k - 1) % model.quads(), (k - 1) / model.quads());
                    let before = preceding(forward.row(i), q);
                    let (md, dd) = if q > 0 {
                        (model.steps[q - 1].md, model.steps[q - 1].dd)
                    } else {
                        let last = &model.steps[model.quads() - 1];
                        (last.md.up(0.0), last.dd.up(0.0))
                    };
                    k -= 1;
                    match random.choose([
                        before.m.to_array()[lane] * md.to_array()[lane],
                        before.d.to_array()[lane] * dd.to_array()[lane],
                    ]) {
                        _ if k == 0 => return false,
                        0 => self.matched(i, k),
                        _ => State::D,
                    }
                }
                State::I => {
                    let (q, lane) = ((k - 1) % model.quads(), (k - 1) / model.quads());
                    let (step, before) = (&model.steps[q], forward.row(i - 1)[q]);
                    i -= 1;
                    match random.choose([
                        before.m.to_array()[lane] * step.mi.to_array()[lane],
                        before.i.to_array()[lane] * step.ii.to_array()[lane],
                    ]) {
                        0 => self.matched(i, k),
                        _ => self.inserted(k),
                    }
                }
                State::B => {
                    let x = forward.special[i];
                    match random.choose([x.n * lengths.leave, x.j * lengths.leave]) {
                        0 => State::N,
                        _ => State::J,
                    }
                }
                State::N => return true,
            }
        }
    }

    /// Enters the match state of node `k`, which emitted residue `i`.
    fn matched(&mut self, i: usize, k: usize) -> State {
        let (segment, _) = self.segments.last_mut().expect("a domain was begun at its end");
        (segment.from, segment.node_from) = (i as u32, k as u32);
        if segment.to == 0 {
            (segment.to, segment.node_to) = (i as u32, k as u32);
        }
        self.nodes.push(k as u32);
        State::M
    }

    fn inserted(&mut self, k: usize) -> State {
        self.nodes.push(k as u32);
        State::I
    }
}

/// The cell before quad `q` in a row.
fn preceding(row: &[Cell], q: usize) -> Cell {
    if q > 0 {
        return row[q - 1];
    }
    let last = row[row.len() - 1];
    Cell { m: last.m.up(0.0), d: last.d.up(0.0), i: last.i.up(0.0) }
}

/// The node from which E was reached at residue `i`, and whether it was its match state. The order in which nodes are
/// tried is part of what a random number means.
fn last_node(random: &mut Random, forward: &Matrix, i: usize) -> (usize, bool) {
    /// Rounding can leave the sum just below the number drawn; then the row is gone through again.
    const ROUNDS_MAX: usize = 3;
    let row = forward.row(i);
    let roll = random.next();
    let norm = Quad::splat(1.0 / forward.special[i].e);
    let mut sum = 0.0f64;
    for _ in 0..ROUNDS_MAX {
        for (q, cell) in row.iter().enumerate() {
            for (values, matched) in [(cell.m * norm, true), (cell.d * norm, false)] {
                for lane in 0..QUAD {
                    sum += f64::from(values.to_array()[lane]);
                    if roll < sum {
                        return (lane * row.len() + q + 1, matched);
                    }
                }
            }
        }
    }
    (1, true)
}
