//! The task that combines two blocks.

use super::operator::Operator;
use super::view::ReduceMut;
use crate::{
    CallShape, Element, LeafContext, RANK_MAX, Read, Region, SubCall, Task, Tunable, Tunables, Update, View, ViewMut,
    Work, blocks,
};
use std::marker::PhantomData;

/// `into = into O from`, element by element. Parameters: into (updated), from (read), of one shape.
///
/// Planners combine contributions with it; a program may call it to combine a reduction with what was there before.
pub struct Merge<T, const R: usize, O>(PhantomData<fn() -> (T, O)>);

impl<T, const R: usize, O> Default for Merge<T, R, O> {
    fn default() -> Self {
        Merge(PhantomData)
    }
}

const AXES: [&str; RANK_MAX] = ["d0", "d1", "d2", "d3", "d4", "d5"];

impl<T: Element, const R: usize, O: Operator<T>> Task for Merge<T, R, O> {
    type Params = (Update<T, R>, Read<T, R>);

    fn name(&self) -> &'static str {
        "merge"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["into", "from"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        let axis = |(&extent, name)| Tunable { name, extent, multiple: 1 };
        call.shapes[0].dims().iter().zip(AXES).map(axis).collect()
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let mut tiles = vec![([0; RANK_MAX], [0; RANK_MAX])];
        for (d, (&extent, name)) in call.shapes[0].dims().iter().zip(AXES).enumerate() {
            let cut = |(start, len): ([u64; RANK_MAX], [u64; RANK_MAX])| {
                blocks(extent, tunables.get(name, extent)).map(move |(from, count)| {
                    let (mut start, mut len) = (start, len);
                    (start[d], len[d]) = (from, count);
                    (start, len)
                })
            };
            tiles = tiles.into_iter().flat_map(cut).collect();
        }
        let region = |(start, len): ([u64; RANK_MAX], [u64; RANK_MAX])| Region::new(&start[..R], &len[..R]);
        tiles.into_iter().map(region).map(|tile| SubCall::itself([(0, tile), (1, tile)], &call.scalars)).collect()
    }

    fn leaf(&self, (into, from): (ViewMut<'_, T, R>, View<'_, T, R>), _: &mut LeafContext<'_>) {
        ReduceMut::<T, R, O>::from(into).combine_all(&from);
    }

    fn work(&self, call: &CallShape) -> Work {
        let elements = call.shapes[0].elements() as f64;
        Work { flops: elements, bytes: 3.0 * elements * T::TYPE.size_bytes() as f64 }
    }
}
