//! One pass over arrays of one shape, for all results that come from it: a task that is put together at run time.

use super::expression::{Expression, Rows, hashed};
use super::output::{Output, Reduced, Sink};
use multigrain_program::notation::{Index, along, whole};
use multigrain_program::{
    Access, AnyParams, AnyView, AnyViewMut, AnyViews, Element, ElementType, LeafContext, Notation, Operator, RANK_MAX,
    Sum, Task,
};
use std::any::TypeId;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Names of the axes, one for each dimension.
const AXES: [&str; RANK_MAX] = ["i", "j", "k", "l", "m", "n"];
/// Names of parameters.
const INPUTS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const RESULTS: [&str; 8] =
    ["result", "result 2", "result 3", "result 4", "result 5", "result 6", "result 7", "result 8"];

/// Elements of one contribution to a result along the last dimension, and along another one: long enough to be worth a
/// call of the leaf, short enough to be cut.
const SPAN_OF_ROW: u64 = 4096;
const SPAN_OF_ROWS: u64 = 64;
/// Elements of a row that is summed are added in as many chains, which are combined by a tree.
const LANES: usize = 8;

/// All elements, stored.
pub(super) struct Stored<T> {
    pub(super) expression: Expression<T>,
    pub(super) rank: usize,
}

impl<T: Element> Output for Stored<T> {
    fn declare(&self, params: &mut AnyParams) {
        params.push(Access::Write, T::TYPE, self.rank);
    }

    fn index(&self, axes: &[&'static str]) -> Vec<Index> {
        axes.iter().map(|&axis| along(axis)).collect()
    }

    fn told(&self) -> Option<u64> {
        self.expression.functions
    }

    fn open<'a>(&'a self, mut block: AnyViewMut<'a>, of: &'a [usize]) -> Sink<'a> {
        Box::new(move |index, views| self.expression.row(Rows { views, of, index }, block.row_mut(index)))
    }
}

/// Elements combined along one dimension.
pub(super) struct Folded<T, O> {
    pub(super) expression: Expression<T>,
    pub(super) rank: usize,
    pub(super) axis: usize,
    pub(super) operator: PhantomData<fn() -> O>,
}

impl<T: Element, O: Operator<T>> Output for Folded<T, O> {
    fn declare(&self, params: &mut AnyParams) {
        params.push_reduced::<T, O>((self.rank - 1).max(1));
    }

    /// What is left of a vector is one element.
    fn index(&self, axes: &[&'static str]) -> Vec<Index> {
        let rest = (0..axes.len()).filter(|&d| d != self.axis).map(|d| along(axes[d]));
        if axes.len() == 1 { vec![whole()] } else { rest.collect() }
    }

    fn reduced(&self) -> Reduced {
        Reduced::Along(self.axis)
    }

    fn told(&self) -> Option<u64> {
        self.expression.functions.map(|functions| hashed((functions, self.axis, TypeId::of::<O>())))
    }

    fn open<'a>(&'a self, mut block: AnyViewMut<'a>, of: &'a [usize]) -> Sink<'a> {
        let mut to: Vec<usize> = Vec::new();
        Box::new(move |index, views| {
            let rows = Rows { views, of, index };
            let len = views[of[0]].dims()[self.rank - 1] as usize;
            to.clear();
            if self.axis + 1 < self.rank {
                // The same row of the result, again and again.
                to.extend((0..index.len()).filter(|&d| d != self.axis).map(|d| index[d]));
                let result = block.row_mut::<T>(&to);
                self.expression.chunks(rows, len, |start, values| {
                    let result = &mut result[start..start + values.len()];
                    result.iter_mut().zip(values).for_each(|(result, &value)| *result = O::combine(*result, value));
                });
            } else {
                let mut lanes = [O::identity(); LANES];
                self.expression.chunks(rows, len, |_, values| {
                    for values in values.chunks(LANES) {
                        lanes.iter_mut().zip(values).for_each(|(lane, &value)| *lane = O::combine(*lane, value));
                    }
                });
                let at = index.last().copied().unwrap_or(0);
                to.extend_from_slice(&index[..index.len().saturating_sub(1)]);
                let result = &mut block.row_mut::<T>(&to)[at];
                *result = O::combine(*result, tree::<T, O>(lanes));
            }
        })
    }
}

/// Neighbours, pairs of neighbours, and so on.
fn tree<T: Element, O: Operator<T>>(mut lanes: [T; LANES]) -> T {
    let mut step = 1;
    while step < LANES {
        for i in (0..LANES).step_by(2 * step) {
            lanes[i] = O::combine(lanes[i], lanes[i + step]);
        }
        step *= 2;
    }
    lanes[0]
}

/// How many elements lie in each of some bins of one width, counted as NumPy's `histogram` does: the last bin holds its
/// end, what lies outside is not counted, and edges of bins of single precision are of that.
pub(super) struct Histogram<T> {
    pub(super) expression: Expression<T>,
    pub(super) rank: usize,
    pub(super) bins: usize,
    pub(super) range: Range<f64>,
}

impl<T: Element + Into<f64>> Output for Histogram<T> {
    fn declare(&self, params: &mut AnyParams) {
        params.push_reduced::<u64, Sum>(1);
    }

    fn index(&self, _: &[&'static str]) -> Vec<Index> {
        vec![whole()]
    }

    fn reduced(&self) -> Reduced {
        Reduced::All
    }

    fn told(&self) -> Option<u64> {
        let Range { start, end } = self.range;
        self.expression.functions.map(|functions| hashed((functions, self.bins, start.to_bits(), end.to_bits())))
    }

    fn open<'a>(&'a self, mut block: AnyViewMut<'a>, of: &'a [usize]) -> Sink<'a> {
        let (Range { start, end }, bins) = (self.range.clone(), self.bins);
        let step = (end - start) / bins as f64;
        let scale = bins as f64 / (end - start);
        let place = move |value: f64| match scale.is_finite() {
            true => (value - start) * scale,
            false => (value - start) / (end - start) * bins as f64,
        };
        // Edges have the type that elements are compared in.
        let rounded = |edge: f64| if T::TYPE == ElementType::F32 { f64::from(edge as f32) } else { edge };
        let edge = move |i: usize| rounded(if i == bins { end } else { i as f64 * step + start });
        let all = edge(0)..=edge(bins);
        Box::new(move |index, views| {
            let len = views[of[0]].dims()[self.rank - 1] as usize;
            let counts = block.row_mut::<u64>(&[]);
            self.expression.chunks(Rows { views, of, index }, len, |_, values| {
                for &value in values {
                    let value: f64 = value.into();
                    if !all.contains(&value) {
                        continue;
                    }
                    // The product may round to the wrong side of an edge.
                    let mut bin = (place(value) as usize).min(bins - 1);
                    if value < edge(bin) {
                        bin -= 1;
                    } else if bin + 1 < bins && value >= edge(bin + 1) {
                        bin += 1;
                    }
                    counts[bin] += 1;
                }
            });
        })
    }
}

/// A task that reads some arrays of one shape and makes results of them.
pub(super) struct Pass {
    /// Element types of the arrays.
    pub(super) inputs: Vec<ElementType>,
    pub(super) rank: usize,
    /// The results, and which arrays each is made from.
    pub(super) outputs: Vec<(Arc<dyn Output>, Vec<usize>)>,
    pub(super) reduced: Reduced,
}

impl Pass {
    /// More than these have no names, and a leaf has only so much room.
    pub(super) const INPUTS_MAX: usize = INPUTS.len();
    pub(super) const OUTPUTS_MAX: usize = RESULTS.len();
}

impl Task for Pass {
    type Params = AnyParams;

    fn name(&self) -> &'static str {
        "pass"
    }

    fn version(&self) -> u64 {
        let outputs: Vec<_> = self.outputs.iter().map(|(output, of)| (output.told(), of)).collect();
        hashed(outputs)
    }

    fn parameters(&self) -> AnyParams {
        let mut params = AnyParams::default();
        self.inputs.iter().for_each(|&element| params.push(Access::Read, element, self.rank));
        self.outputs.iter().for_each(|(output, _)| output.declare(&mut params));
        params
    }

    fn notation(&self) -> Option<Notation> {
        let axes = &AXES[..self.rank];
        let mut notation = Notation::axes(axes.iter().copied()).flops(self.outputs.len() as f64);
        let axis = match self.reduced {
            Reduced::No => None,
            Reduced::Along(axis) => Some(axis),
            Reduced::All => Some(0),
        };
        if let Some(axis) = axis {
            let span = if axis + 1 == self.rank { SPAN_OF_ROW } else { SPAN_OF_ROWS };
            notation = notation.every(AXES[axis], span);
        }
        for name in &INPUTS[..self.inputs.len()] {
            notation = notation.param(name, axes.iter().copied());
        }
        for ((output, _), name) in self.outputs.iter().zip(RESULTS) {
            notation = notation.param(name, output.index(axes));
        }
        Some(notation)
    }

    fn leaf(&self, mut views: AnyViews<'_>, _: &mut LeafContext<'_>) {
        let inputs: Vec<AnyView<'_>> = (0..self.inputs.len()).map(|number| views.read(number)).collect();
        let outputs = self.outputs.iter().zip(inputs.len()..);
        let mut sinks: Vec<Sink<'_>> =
            outputs.map(|((output, of), number)| output.open(views.written(number), of)).collect();
        let rows = &inputs[0].dims()[..self.rank - 1];
        let mut index = vec![0; self.rank - 1];
        loop {
            sinks.iter_mut().for_each(|sink| sink(&index, &inputs));
            // The next row, row-major.
            let Some(d) = (0..index.len()).rev().find(|&d| index[d] as u64 + 1 < rows[d]) else { return };
            index[d] += 1;
            index[d + 1..].fill(0);
        }
    }
}
