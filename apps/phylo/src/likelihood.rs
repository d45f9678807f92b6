//! The log-likelihood of a tree: which vectors are valid, which must be computed, and branch lengths.
//!
//! Every inner node has at most one conditional likelihood vector, which looks along one of the node's half-edges: it holds what
//! lies behind the other two. There is a **focus**, a branch towards which all valid vectors look. To evaluate the tree
//! at another branch, only the vectors between the two must be turned. The length of the focus branch itself is in no
//! valid vector, so it may change freely; everything else that changes goes through here and invalidates what it must.

mod alternatives;
mod newton;
mod offload;
mod vectors;

pub use newton::{MAX_LENGTH, MIN_LENGTH, Precision};
pub use offload::{Host, Offload, OnStrand};
pub(crate) use vectors::{HELD, fewest};

use crate::alignment::{DataType, Patterns};
use crate::constraint::Constraint;
use crate::kernel::{Batch, Chunk, Constants, Operand, Source, Step, execute, tree_sum};
use crate::model::Model;
use crate::partition::Branches;
use crate::tree::{HalfEdge, Tree};
use multigrain_simd::Isa;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use vectors::Vectors;

/// A tree with its data, its models, and the vectors that are valid at the moment.
pub struct Likelihood<'o> {
    isa: Isa,
    offload: Box<dyn Offload + 'o>,
    tree: Tree,
    data_types: Vec<DataType>,
    models: Vec<Model>,
    constants: Vec<Constants>,
    set_of: Vec<usize>,
    /// Sites of each partition.
    sites: Vec<f64>,
    chunks: Vec<Mutex<Chunk>>,
    /// The chunks of each partition; the last one is that of the constant patterns where sites were taken because they vary.
    ranges: Vec<Range<usize>>,
    vectors: Vectors,
    /// So many slots beside those of nodes are made with them.
    spare: usize,
    focus: HalfEdge,
    batch: Batch,
    /// The partitions that the batch is for.
    partitions: Range<usize>,
    /// `[result][partition]` of the last batch.
    sums: Vec<[f64; 3]>,
    /// How many of its results are there.
    collected: usize,
    scratch: Vec<f64>,
    /// What every tree must display.
    constraint: Option<Arc<Constraint>>,
}

/// Batches are executed in pieces of about so many branches, so that matrices and tables of tips of more are never kept, and at most
/// twice as many: a step, or the places that are fitted at once, have fewer.
const BRANCHES: usize = 256;
/// See there.
pub(crate) const BRANCHES_MOST: usize = 2 * BRANCHES;

/// The probability that a site varies, from that of the constant patterns.
fn varying(constant: f64) -> f64 {
    (1.0 - constant).max(f64::EPSILON)
}

impl<'o> Likelihood<'o> {
    /// The likelihood of `tree` on the given patterns with their models. The tree has one set of branch lengths, or as many
    /// as there are partitions where they are not linked.
    ///
    /// # Panics
    /// Where the number of taxa or sets does not fit, or there is no pattern at all.
    pub fn new(
        data: &[(&Patterns, &Model)],
        branches: Branches,
        tree: Tree,
        isa: Isa,
        offload: Box<dyn Offload + 'o>,
    ) -> Self {
        let set_of: Vec<usize> = match branches {
            Branches::Linked => vec![0; data.len()],
            Branches::Unlinked => (0..data.len()).collect(),
        };
        assert!(!data.is_empty() && tree.taxa() >= 3, "a likelihood needs data and at least three taxa");
        assert_eq!(tree.sets(), set_of.iter().max().map_or(0, |m| m + 1), "sets of branch lengths");
        let mut chunks = Vec::new();
        let mut ranges = Vec::new();
        for (i, (patterns, model)) in data.iter().enumerate() {
            assert_eq!(patterns.taxa(), tree.taxa(), "taxa of tree and alignment");
            let first = chunks.len();
            chunks.extend(Chunk::of(patterns, i, model.categories).into_iter().map(Mutex::new));
            if model.is_ascertained {
                chunks.push(Mutex::new(Chunk::of_constant(patterns, i, model.categories)));
            }
            ranges.push(first..chunks.len());
        }
        let mut likelihood = Likelihood {
            isa,
            vectors: Vectors::new(tree.taxa(), offload.vectors()),
            spare: 0,
            partitions: 0..data.len(),
            offload,
            focus: tree.tip(0),
            data_types: data.iter().map(|(p, _)| p.data_type).collect(),
            models: data.iter().map(|(_, m)| (*m).clone()).collect(),
            constants: data.iter().map(|(p, m)| Constants::new(m, p.data_type, isa)).collect(),
            set_of,
            sites: data.iter().map(|(p, _)| p.sites() as f64).collect(),
            chunks,
            ranges,
            tree,
            batch: Batch::default(),
            sums: vec![],
            collected: 0,
            scratch: vec![],
            constraint: None,
        };
        (0..likelihood.models.len()).for_each(|p| likelihood.tell_chunks(p));
        likelihood
    }

    /// Slots beside those of nodes, made with them: chunks that get more later have both what they had and what they get
    /// for a while.
    pub(crate) fn set_spare(&mut self, slots: usize) {
        self.spare = slots;
    }

    /// Moves lead to trees alone that display the constraint, as the tree must; none: to any.
    pub fn set_constraint(&mut self, constraint: Option<Arc<Constraint>>) {
        self.constraint = constraint;
    }

    /// What every tree must display.
    pub(crate) fn constraint(&self) -> Option<Arc<Constraint>> {
        self.constraint.clone()
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The models of the partitions.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The number of sites of each partition.
    pub(crate) fn sites(&self) -> &[f64] {
        &self.sites
    }

    /// Multiplies the lengths of all branches, within their bounds; all vectors become invalid.
    pub(crate) fn stretch(&mut self, factor: f64) {
        let branches: Vec<HalfEdge> = self.tree.branches().collect();
        for set in 0..self.tree.sets() {
            let tree = self.tree.clone();
            self.set_lengths(set, branches.iter().map(|&half| (half, tree.length(half, set) * factor)));
        }
    }

    /// The set of branch lengths of each partition.
    pub fn set_of(&self) -> &[usize] {
        &self.set_of
    }

    /// Replaces the tree; all vectors become invalid.
    pub fn set_tree(&mut self, tree: Tree) {
        assert_eq!((tree.taxa(), tree.sets()), (self.tree.taxa(), self.tree.sets()));
        self.focus = tree.tip(0);
        self.tree = tree;
        self.invalidate();
    }

    /// Replaces the model of a partition (with the same states and categories); all vectors become invalid.
    pub fn set_model(&mut self, partition: usize, model: Model) {
        self.constants[partition] = Constants::new(&model, self.data_types[partition], self.isa);
        self.models[partition] = model;
        self.tell_chunks(partition);
        self.invalidate();
    }

    /// Changes lengths of branches, within their bounds, in one set; all vectors become invalid.
    pub(crate) fn set_lengths(&mut self, set: usize, lengths: impl Iterator<Item = (HalfEdge, f64)>) {
        for (half, length) in lengths {
            self.tree.set_length(half, set, length.clamp(MIN_LENGTH, MAX_LENGTH));
        }
        self.invalidate();
    }

    /// The log-likelihoods of some partitions, evaluated at the focus. What has changed must concern them alone: all vectors
    /// of others stay as they are.
    pub(crate) fn values_of(&mut self, partitions: Range<usize>) -> Vec<f64> {
        self.push_evaluation(partitions.clone(), false);
        self.run();
        self.sums[partitions].iter().map(|s| s[0]).collect()
    }

    /// Replaces the model of one partition and gives its log-likelihood. All vectors of other partitions must be valid and
    /// stay so; only this partition's are computed.
    pub(crate) fn try_model(&mut self, partition: usize, model: Model) -> f64 {
        self.constants[partition] = Constants::new(&model, self.data_types[partition], self.isa);
        self.models[partition] = model;
        self.tell_chunks(partition);
        self.invalidate();
        self.values_of(partition..partition + 1)[0]
    }

    fn tell_chunks(&mut self, partition: usize) {
        for chunk in &mut self.chunks[self.ranges[partition].clone()] {
            chunk.get_mut().unwrap_or_else(PoisonError::into_inner).set_model(&self.constants[partition]);
        }
    }

    /// Forgets all vectors.
    pub fn invalidate(&mut self) {
        self.vectors.forget_all();
    }

    /// Bytes of memory for the conditional likelihood vectors of inner nodes, as many as there is room for, and `spare` others.
    pub fn bytes(&self, spare: usize) -> usize {
        let slots = self.vectors.len() + spare;
        self.chunks.iter().map(|c| c.lock().unwrap_or_else(PoisonError::into_inner).bytes(slots)).sum()
    }

    /// The log-likelihood, evaluated at the focus.
    pub fn log_likelihood(&mut self) -> f64 {
        self.log_likelihoods().iter().sum()
    }

    /// The log-likelihoods of the partitions, evaluated at the focus.
    pub fn log_likelihoods(&mut self) -> Vec<f64> {
        self.values_of(0..self.models.len())
    }

    /// The log-likelihood of each pattern of each partition, a single site's, at the focus.
    pub fn of_patterns(&mut self) -> Vec<Vec<f64>> {
        self.push_evaluation(0..self.models.len(), true);
        self.run();
        let mut logs = vec![Vec::new(); self.models.len()];
        for ((range, model), logs) in self.ranges.iter().zip(&self.models).zip(&mut logs) {
            let chunks = &mut self.chunks[range.clone()];
            let mut chunks = chunks.iter_mut().map(|c| &*c.get_mut().unwrap_or_else(PoisonError::into_inner));
            let constant = if model.is_ascertained { chunks.next_back() } else { None };
            let given = constant.map_or(0.0, |chunk| varying(chunk.results()[0][0]).ln());
            logs.extend(chunks.flat_map(Chunk::logs).map(|log| log - given));
        }
        logs
    }

    fn push_evaluation(&mut self, partitions: Range<usize>, each: bool) {
        self.begin_on(partitions);
        let near = self.focus;
        self.hold_ends(near);
        let (from, far) = (self.source(near), self.operand(near));
        self.batch.push(Step::Evaluate { near: from, far, result: 0, each });
        self.release_ends(near);
    }

    /// The branch towards which all valid vectors look.
    pub fn focus(&self) -> HalfEdge {
        self.focus
    }

    /// Makes `half`'s branch the focus: the vectors at its ends are valid, and all others that are there look towards it.
    pub fn move_focus(&mut self, half: HalfEdge) {
        self.begin();
        self.push_focus(half);
        self.release_ends(half);
        self.run();
    }

    /// Adds what makes `half`'s branch the focus, the vectors at whose ends are held.
    pub(crate) fn push_focus(&mut self, half: HalfEdge) {
        self.hold_ends(half);
        self.focus = half;
    }

    /// Begins a batch.
    pub(crate) fn begin(&mut self) {
        self.begin_on(0..self.models.len());
    }

    /// Begins a batch for some partitions. Vectors that have not each a slot of their own lie elsewhere in others.
    fn begin_on(&mut self, partitions: Range<usize>) {
        if self.partitions != partitions && self.vectors.is_short() {
            self.invalidate();
        }
        self.partitions = partitions;
        self.collected = 0;
        self.batch.clear(self.tree.sets(), (self.vectors.len() + self.spare) as u32);
    }

    /// Executes what a long batch has, which is gone on with; its branches so far are forgotten.
    pub(crate) fn go_on_if_long(&mut self) {
        if self.batch.branches() >= BRANCHES {
            self.run();
            self.batch.go_on();
        }
    }

    /// Adds a step.
    pub(crate) fn push(&mut self, step: Step) {
        self.batch.push(step);
    }

    /// A branch of the batch, with lengths that need not be those of the tree.
    pub(crate) fn branch(&mut self, source: Source, lengths: &[f64]) -> Operand {
        self.batch.branch(source, lengths)
    }

    /// The vector of the node of `half`, whichever way it looks.
    ///
    /// # Panics
    /// Where it is not there.
    pub(crate) fn source(&self, half: HalfEdge) -> Source {
        if self.tree.is_tip(half) {
            return Source::Tip(half.0);
        }
        let node = self.tree.inner_node(half);
        let slot = self.vectors.slot(node);
        Source::Slot(slot.unwrap_or_else(|| panic!("the vector of inner node {node} is not there")))
    }

    /// The half-edge around the node of `half` that leads to the focus.
    ///
    /// # Panics
    /// Where the vector of the node is not valid.
    pub(crate) fn towards_focus(&self, half: HalfEdge) -> HalfEdge {
        let node = self.tree.inner_node(half);
        self.vectors.along(node).unwrap_or_else(|| panic!("the vector of inner node {node} is not valid"))
    }

    /// The first slot that no node owns.
    pub(crate) fn spare_slot(&self) -> u32 {
        self.vectors.len() as u32
    }

    /// Adds the steps after which the vector of `half`'s node, which is to look along it, is there, and holds it: it stays until
    /// it is released. Of a tip there is nothing to do. Branches that the batch had before may be forgotten then.
    pub(crate) fn hold(&mut self, half: HalfEdge) -> Source {
        self.push_turned(half);
        self.source(half)
    }

    /// What [`hold`](Self::hold) held may go.
    pub(crate) fn release(&mut self, half: HalfEdge) {
        if !self.tree.is_tip(half) {
            self.vectors.release(self.tree.inner_node(half));
        }
    }

    /// Holds the vectors at both ends of a branch.
    fn hold_ends(&mut self, half: HalfEdge) {
        self.push_turned(half);
        self.push_turned(self.tree.back(half));
    }

    /// Releases them.
    pub(crate) fn release_ends(&mut self, half: HalfEdge) {
        self.release(half);
        self.release(self.tree.back(half));
    }

    /// What lies over the branch of `half`, seen through it.
    fn operand(&mut self, half: HalfEdge) -> Operand {
        let source = self.source(self.tree.back(half));
        self.batch.branch(source, self.tree.lengths(half))
    }

    /// Adds the steps after which the vector of `half`'s node looks along `half`, with those of the vectors behind it that are
    /// needed for it, and holds it. Branches that the batch had before may be forgotten then.
    fn push_turned(&mut self, half: HalfEdge) {
        self.vectors.look_behind(&self.tree, half);
        let mut stack = vec![(half, false)];
        while let Some((half, ready)) = stack.pop() {
            if self.tree.is_tip(half) {
                continue;
            }
            let node = self.tree.inner_node(half);
            if !ready && self.vectors.has(node, half) {
                self.vectors.hold(node);
                continue;
            }
            let sides = self.tree.others(half);
            let mut behind = sides.map(|side| self.tree.back(side));
            if !ready {
                // What is pushed last is popped first.
                behind = self.vectors.by_demand(behind);
                stack.push((half, true));
                stack.extend(behind.map(|side| (side, false)));
                continue;
            }
            self.go_on_if_long();
            let [left, right] = sides.map(|side| self.operand(side));
            let inner = behind.map(|side| (!self.tree.is_tip(side)).then(|| self.tree.inner_node(side)));
            let to = self.vectors.place(node, half, inner);
            self.batch.push(Step::Combine { left, right, to });
            behind.into_iter().for_each(|side| self.release(side));
            self.vectors.hold(node);
        }
    }

    /// Executes the batch, and adds the results of the chunks up by a fixed tree.
    /// Results of partitions that it is not for are 0.
    pub(crate) fn run(&mut self) {
        let partitions = self.partitions.clone();
        if self.batch.is_empty() || partitions.is_empty() {
            return;
        }
        self.batch.settle();
        let of = self.ranges[partitions.start].start..self.ranges[partitions.end - 1].end;
        let Likelihood { isa, batch, constants, set_of, chunks, .. } = &*self;
        let chunks = &chunks[of];
        let work = batch.work(constants[0].states()) * constants[0].categories();
        self.offload.chunks(chunks.len(), work, &|i| {
            let mut chunk = chunks[i].lock().unwrap_or_else(PoisonError::into_inner);
            execute(*isa, batch, constants, set_of, &mut chunk);
        });
        self.collect(partitions);
    }

    fn collect(&mut self, partitions: Range<usize>) {
        let earlier = self.collected;
        self.sums.truncate(earlier * self.ranges.len());
        let results = self.batch.results();
        self.sums.resize(results * self.ranges.len(), [0.0; 3]);
        self.collected = results;
        if results == earlier {
            return;
        }
        let chunks = &mut self.chunks;
        let of: Vec<&Chunk> =
            chunks.iter_mut().map(|c| &*c.get_mut().unwrap_or_else(PoisonError::into_inner)).collect();
        for (partition, range) in self.ranges.iter().enumerate().filter(|(p, _)| partitions.contains(p)) {
            for result in earlier..results {
                let sum = &mut self.sums[result * self.ranges.len() + partition];
                let is_ascertained = self.models[partition].is_ascertained;
                let variable = range.start..range.end - usize::from(is_ascertained);
                for (component, sum) in sum.iter_mut().enumerate() {
                    self.scratch.clear();
                    self.scratch.extend(of[variable.clone()].iter().map(|chunk| chunk.results()[result][component]));
                    *sum = tree_sum(&mut self.scratch);
                }
                if is_ascertained {
                    // Of the logarithm of the probability that a site varies, which all of them do, and its derivatives.
                    let [constant, first, second] = of[range.end - 1].results()[result];
                    let (sites, varying) = (self.sites[partition], varying(constant));
                    let (first, second) = (first / varying, second / varying);
                    sum[0] -= sites * varying.ln();
                    sum[1] += sites * first;
                    sum[2] += sites * (second + first * first);
                }
            }
        }
    }

    /// The sum over partitions of a result's log-likelihood.
    pub(crate) fn value(&self, result: usize) -> f64 {
        let partitions = self.ranges.len();
        self.sums[result * partitions..][..partitions].iter().map(|s| s[0]).sum()
    }

    /// A result, added up over the partitions that share a set of branch lengths.
    fn of_set(&self, result: usize, set: usize) -> [f64; 3] {
        let partitions = self.ranges.len();
        let mut sum = [0.0; 3];
        for (partition, &of) in self.set_of.iter().enumerate() {
            if of == set {
                let add = self.sums[result * partitions + partition];
                sum.iter_mut().zip(add).for_each(|(s, a)| *s += a);
            }
        }
        sum
    }

    /// Changes the lengths of the focus, which are in no vector.
    pub(crate) fn set_focus_lengths(&mut self, lengths: &[f64]) {
        for (set, &length) in lengths.iter().enumerate() {
            self.tree.set_length(self.focus, set, length);
        }
    }

    /// What hangs at two half-edges changes places, with its branches; the focus is the branch between their nodes, whose
    /// vectors become invalid.
    pub(crate) fn exchange_sides(&mut self, a: HalfEdge, b: HalfEdge) {
        self.tree.exchange_sides(a, b);
        for half in [a, b] {
            self.vectors.forget(self.tree.inner_node(half));
        }
    }

    /// Takes the node of `root` out of the tree. `root`'s branch must be the focus; afterwards the joined branch is.
    pub(crate) fn prune(&mut self, root: HalfEdge) -> crate::tree::Pruned {
        debug_assert!(self.focus == root || self.focus == self.tree.back(root));
        let pruned = self.tree.prune(root);
        self.focus = pruned.ends[0];
        pruned
    }

    /// Puts the pruned node back. The focus must be the joined branch; afterwards it is that of the node.
    pub(crate) fn put_back(&mut self, pruned: &crate::tree::Pruned) {
        debug_assert!(pruned.ends.contains(&self.focus));
        self.tree.put_back(pruned);
        self.focus = pruned.root;
    }

    /// Puts the pruned node into another branch, which must be the focus. The node's own vector becomes invalid; its
    /// branch is the focus then.
    pub(crate) fn regraft(&mut self, root: HalfEdge, ends: [HalfEdge; 2], lengths: [&[f64]; 3]) {
        debug_assert!(ends.contains(&self.focus));
        self.tree.regraft(root, ends, [lengths[0], lengths[1]]);
        for (set, &length) in lengths[2].iter().enumerate() {
            self.tree.set_length(root, set, length);
        }
        self.vectors.forget(self.tree.inner_node(root));
        self.focus = root;
    }
}
