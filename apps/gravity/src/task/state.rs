//! From a snapshot to the state and back. A snapshot holds all of it: masses are single-precision numbers, places and
//! velocities are kept in double precision, everything else follows. So a run may go on from any snapshot, with the very
//! bits of a run that never stopped.

use super::particles;
use multigrain::prelude::{LeafContext, Notation, Read, Task, View, ViewMut, Write};

/// mass, x, v and at from a snapshot (1 x n x 7).
pub struct Load;

/// A snapshot (1 x n x 7) from mass, x and v. A NaN is stored as the one canonical NaN.
pub struct Save;

impl Task for Load {
    type Params = (Read<f64, 3>, Write<f32, 1>, Write<f64, 2>, Write<f64, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "load"
    }

    fn notation(&self) -> Option<Notation> {
        let notation = particles().param("snapshot", [":", "targets", ":"]).param("mass", ["targets"]);
        Some(["x", "v", "at"].into_iter().fold(notation, |notation, name| notation.param(name, [":", "targets"])))
    }

    fn leaf(
        &self,
        (snapshot, mut mass, mut x, mut v, mut at): (
            View<'_, f64, 3>,
            ViewMut<'_, f32, 1>,
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
            }
        }
    }
}

impl Task for Save {
    type Params = (Read<f32, 1>, Read<f64, 2>, Read<f64, 2>, Write<f64, 3>);

    fn name(&self) -> &'static str {
        "save"
    }

    fn notation(&self) -> Option<Notation> {
        let notation = particles().param("mass", ["targets"]).param("x", [":", "targets"]).param("v", [":", "targets"]);
        Some(notation.param("snapshot", [":", "targets", ":"]))
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
}
