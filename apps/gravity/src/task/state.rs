//! From a snapshot to the state and back. A snapshot holds all of it: masses are single-precision numbers, places and
//! velocities are kept in double precision, everything else follows. So a run may go on from any snapshot, with the very
//! bits of a run that never stopped.

use super::{COLUMNS, PARTICLES_MULTIPLE, columns};
use multigrain::prelude::{
    CallShape, LeafContext, Read, Region, SubCall, Task, Tunable, Tunables, View, ViewMut, Work, Write, blocks,
};

/// mass, x, v and at from a snapshot (1 x n x 7); a = 0.
pub struct Load;

/// A snapshot (1 x n x 7) from mass, x and v. A NaN is stored as the one canonical NaN.
pub struct Save;

fn tunables(n: u64) -> Vec<Tunable> {
    vec![Tunable { name: "particles", extent: n, multiple: PARTICLES_MULTIPLE }]
}

fn snapshot(start: u64, len: u64) -> Region {
    Region::new(&[0, start, 0], &[1, len, COLUMNS])
}

impl Task for Load {
    type Params = (Read<f64, 3>, Write<f32, 1>, Write<f64, 2>, Write<f64, 2>, Write<f64, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "load"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["snapshot", "mass", "x", "v", "a", "at"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        tunables(call.shapes[0].dims()[1])
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].dims()[1];
        let cut = blocks(n, tunables.get("particles", n));
        cut.map(|(start, len)| {
            let rows = (2..6).map(|p| (p, columns(start, len)));
            let first = [(0, snapshot(start, len)), (1, Region::new(&[start], &[len]))];
            SubCall::itself(first.into_iter().chain(rows), &call.scalars)
        })
        .collect()
    }

    fn leaf(
        &self,
        (snapshot, mut mass, mut x, mut v, mut a, mut at): (
            View<'_, f64, 3>,
            ViewMut<'_, f32, 1>,
            ViewMut<'_, f64, 2>,
            ViewMut<'_, f64, 2>,
            ViewMut<'_, f64, 2>,
            ViewMut<'_, f32, 2>,
        ),
        _: &mut LeafContext<'_>,
    ) {
        for i in 0..snapshot.len(1) {
            let particle = snapshot.row(&[0, i]);
            mass.row_mut(&[])[i] = particle[0] as f32;
            for d in 0..3 {
                x.row_mut(&[d])[i] = particle[1 + d];
                at.row_mut(&[d])[i] = particle[1 + d] as f32;
                v.row_mut(&[d])[i] = particle[4 + d];
                a.row_mut(&[d])[i] = 0.0;
            }
        }
    }

    fn work(&self, call: &CallShape) -> Work {
        Work { flops: 0.0, bytes: 144.0 * call.shapes[0].dims()[1] as f64 }
    }
}

impl Task for Save {
    type Params = (Read<f32, 1>, Read<f64, 2>, Read<f64, 2>, Write<f64, 3>);

    fn name(&self) -> &'static str {
        "save"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["mass", "x", "v", "snapshot"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        tunables(call.shapes[0].dims()[0])
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].dims()[0];
        let cut = blocks(n, tunables.get("particles", n));
        cut.map(|(start, len)| {
            let mass = (0, Region::new(&[start], &[len]));
            let rest = [(1, columns(start, len)), (2, columns(start, len)), (3, snapshot(start, len))];
            SubCall::itself([mass].into_iter().chain(rest), &call.scalars)
        })
        .collect()
    }

    fn leaf(
        &self,
        (mass, x, v, mut snapshot): (View<'_, f32, 1>, View<'_, f64, 2>, View<'_, f64, 2>, ViewMut<'_, f64, 3>),
        _: &mut LeafContext<'_>,
    ) {
        let canonical = |value: f64| if value.is_nan() { f64::NAN } else { value };
        for i in 0..mass.len(0) {
            let to = snapshot.row_mut(&[0, i]);
            to[0] = f64::from(mass.row(&[])[i]);
            for d in 0..3 {
                to[1 + d] = canonical(x.row(&[d])[i]);
                to[4 + d] = canonical(v.row(&[d])[i]);
            }
        }
    }

    fn work(&self, call: &CallShape) -> Work {
        Work { flops: 0.0, bytes: 108.0 * call.shapes[0].dims()[0] as f64 }
    }
}
