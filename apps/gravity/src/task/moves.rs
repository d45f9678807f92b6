//! The two halves of a step besides the forces, particle by particle.

use super::{PARTICLES_MULTIPLE, columns};
use multigrain::prelude::{
    CallShape, LeafContext, Read, Scalars, SubCall, Task, Tunable, Tunables, Update, View, ViewMut, Work, Write, blocks,
};

/// v += a dt/2; x += v dt; at = x in single precision; a = 0. The scalars are (G dt/2, dt).
pub struct KickDrift;

/// v += a dt/2. The scalar is G dt/2.
pub struct Kick;

fn tunables(call: &CallShape) -> Vec<Tunable> {
    vec![Tunable { name: "particles", extent: call.shapes[0].dims()[1], multiple: PARTICLES_MULTIPLE }]
}

fn split(call: &CallShape, tunables: &Tunables, params: usize) -> Vec<SubCall> {
    let n = call.shapes[0].dims()[1];
    let cut = blocks(n, tunables.get("particles", n));
    cut.map(|(start, len)| SubCall::itself((0..params).map(|p| (p, columns(start, len))), &call.scalars)).collect()
}

/// Scalar `i` of a call as the double-precision number it is.
pub(super) fn double(scalars: &Scalars, i: usize) -> f64 {
    f64::from_bits(scalars.u64(i))
}

/// [`KickDrift`] on blocks of any pitch.
pub(super) fn kick_drift(
    (kick, dt): (f64, f64),
    x: &mut ViewMut<'_, f64, 2>,
    v: &mut ViewMut<'_, f64, 2>,
    a: &mut ViewMut<'_, f64, 2>,
    at: &mut ViewMut<'_, f32, 2>,
) {
    for d in 0..3 {
        let moved = x.row_mut(&[d]).iter_mut().zip(v.row_mut(&[d]));
        for (((x, v), a), at) in moved.zip(a.row_mut(&[d])).zip(at.row_mut(&[d])) {
            *v += kick * *a;
            *x += dt * *v;
            *at = *x as f32;
            *a = 0.0;
        }
    }
}

/// [`Kick`] on rows.
pub(super) fn kick(kick: f64, v: &mut [f64], a: &[f64]) {
    v.iter_mut().zip(a).for_each(|(v, a)| *v += kick * a);
}

impl Task for KickDrift {
    type Params = (Update<f64, 2>, Update<f64, 2>, Update<f64, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "kick_drift"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["x", "v", "a", "at"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        tunables(call)
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        split(call, tunables, 4)
    }

    fn leaf(
        &self,
        (mut x, mut v, mut a, mut at): (
            ViewMut<'_, f64, 2>,
            ViewMut<'_, f64, 2>,
            ViewMut<'_, f64, 2>,
            ViewMut<'_, f32, 2>,
        ),
        context: &mut LeafContext<'_>,
    ) {
        let scalars = context.scalars;
        kick_drift((double(scalars, 0), double(scalars, 1)), &mut x, &mut v, &mut a, &mut at);
    }

    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].elements() as f64;
        Work { flops: 4.0 * n, bytes: 52.0 * n }
    }
}

impl Task for Kick {
    type Params = (Update<f64, 2>, Read<f64, 2>);

    fn name(&self) -> &'static str {
        "kick"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["v", "a"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        tunables(call)
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        split(call, tunables, 2)
    }

    fn leaf(&self, (mut v, a): (ViewMut<'_, f64, 2>, View<'_, f64, 2>), context: &mut LeafContext<'_>) {
        for d in 0..3 {
            kick(double(context.scalars, 0), v.row_mut(&[d]), a.row(&[d]));
        }
    }

    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].elements() as f64;
        Work { flops: 2.0 * n, bytes: 24.0 * n }
    }
}
