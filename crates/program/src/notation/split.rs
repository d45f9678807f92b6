//! The split that follows from a notation.

use super::{Dimension, Notation};
use crate::{CallShape, DynTask, Region, Scalars, SubCall, Tunables, blocks};
use smallvec::SmallVec;
use std::sync::Arc;

impl Notation {
    /// The calls on blocks, in the order of the loops. Along folded axes, calls behind the first are calls of `later`.
    pub(crate) fn split(
        &self,
        call: &CallShape,
        tunables: &Tunables,
        folded: &[usize],
        later: Option<&Arc<dyn DynTask>>,
    ) -> Vec<SubCall> {
        let Ok(extents) = self.extents(call) else { return Vec::new() };
        let dims = self.dimensions(call);
        let windows = dims.iter().flatten().filter(|d| matches!(d, Dimension::Window { .. })).count();
        let loops = tunables.iter().filter_map(|(name, length)| {
            let axis = self.axes.iter().position(|axis| axis.name == name)?;
            Some((axis, length))
        });
        let loops: SmallVec<[(usize, u64); 6]> = loops.collect();
        let mut calls = Vec::new();
        let mut make = |at: &[(u64, u64)]| {
            let mut before: SmallVec<[u64; 4]> = SmallVec::from_elem(0, windows);
            let mut block = |(dims, shape): (&SmallVec<[Dimension; 4]>, &crate::Shape)| {
                let (mut start, mut len) = (SmallVec::<[u64; 4]>::new(), SmallVec::<[u64; 4]>::new());
                for (dimension, &extent) in dims.iter().zip(shape.dims()) {
                    let (first, many) = match *dimension {
                        Dimension::Whole => (0, extent),
                        Dimension::Axis(axis) => at[axis],
                        Dimension::Window { axis, window, reach } => {
                            let (first, many) = at[axis];
                            let center = call.scalars.before(window).saturating_add(first);
                            let begin = center.saturating_sub(reach.0);
                            before[window] = center - begin;
                            let end = center.saturating_add(many).saturating_add(reach.1).min(extent);
                            (begin, end.saturating_sub(begin))
                        }
                    };
                    start.push(first);
                    len.push(many);
                }
                Region::new(&start, &len)
            };
            let args: Vec<(usize, Region)> = dims.iter().zip(&call.shapes).map(&mut block).enumerate().collect();
            let scalars: Scalars = call.scalars.clone().with_before(&before);
            let first = folded.iter().all(|&axis| at[axis].0 == 0);
            calls.push(match later {
                Some(later) if !first => SubCall::of(later, args, &scalars),
                _ => SubCall::itself(args, &scalars),
            });
        };
        let mut at: SmallVec<[(u64, u64); 4]> = extents.iter().map(|&extent| (0, extent)).collect();
        nest(&loops, &mut at, &mut make);
        calls
    }
}

/// Goes through the blocks of all loops, from the outermost in.
fn nest(loops: &[(usize, u64)], at: &mut SmallVec<[(u64, u64); 4]>, make: &mut impl FnMut(&[(u64, u64)])) {
    let Some((&(axis, length), inner)) = loops.split_first() else { return make(at) };
    let (start, extent) = at[axis];
    for (first, many) in blocks(extent, length) {
        at[axis] = (start + first, many);
        nest(inner, at, make);
    }
    at[axis] = (start, extent);
}
