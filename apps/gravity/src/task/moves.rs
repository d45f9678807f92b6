//! The two halves of a step besides the forces, particle by particle.

use super::particles;
use multigrain::prelude::{LeafContext, Notation, Read, Task, Update, View, ViewMut, Write};

/// v += a dt/2; x += v dt; at = x in single precision. The scalars are (G dt/2, dt).
pub struct KickDrift;

/// v += a dt/2. The scalar is G dt/2.
pub struct Kick;

/// One row of [`KickDrift`].
pub(super) fn kick_drift(by: f64, dt: f64, (x, v, a, at): (&mut [f64], &mut [f64], &[f64], &mut [f32])) {
    for (((x, v), a), at) in x.iter_mut().zip(v).zip(a).zip(at) {
        *v += by * *a;
        *x += dt * *v;
        *at = *x as f32;
    }
}

/// One row of [`Kick`].
pub(super) fn kick(by: f64, v: &mut [f64], a: &[f64]) {
    v.iter_mut().zip(a).for_each(|(v, a)| *v += by * a);
}

impl Task for KickDrift {
    type Params = (Update<f64, 2>, Update<f64, 2>, Read<f64, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "kick_drift"
    }

    fn notation(&self) -> Option<Notation> {
        let state = ["x", "v", "a", "at"];
        Some(state.into_iter().fold(particles().flops(12.0), |axes, name| axes.param(name, [":", "targets"])))
    }

    fn leaf(
        &self,
        (mut x, mut v, a, mut at): (ViewMut<'_, f64, 2>, ViewMut<'_, f64, 2>, View<'_, f64, 2>, ViewMut<'_, f32, 2>),
        context: &mut LeafContext<'_>,
    ) {
        for d in 0..3 {
            let rows = (x.row_mut(&[d]), v.row_mut(&[d]), a.row(&[d]), at.row_mut(&[d]));
            kick_drift(context.scalars.f64(0), context.scalars.f64(1), rows);
        }
    }
}

impl Task for Kick {
    type Params = (Update<f64, 2>, Read<f64, 2>);

    fn name(&self) -> &'static str {
        "kick"
    }

    fn notation(&self) -> Option<Notation> {
        Some(particles().flops(6.0).param("v", [":", "targets"]).param("a", [":", "targets"]))
    }

    fn leaf(&self, (mut v, a): (ViewMut<'_, f64, 2>, View<'_, f64, 2>), context: &mut LeafContext<'_>) {
        for d in 0..3 {
            kick(context.scalars.f64(0), v.row_mut(&[d]), a.row(&[d]));
        }
    }
}
