//! Some steps of velocity Verlet (Swope, Andersen, Berens and Wilson 1982) on all particles.

use super::forces::{forces_work, pull};
use super::moves::{double, kick, kick_drift};
use super::{Forces, Kick, KickDrift, SOURCES_MULTIPLE, Step, columns, targets_multiple};
use crate::kernel::Points;
use multigrain::prelude::{
    CallShape, DynTask, LeafContext, Program, Read, Region, Scalars, SubCall, Task, Tunable, Tunables, Update, View,
    ViewMut, Work, Write, blocks,
};
use multigrain_simd::Isa;
use std::sync::Arc;

/// Steps of all particles, as many as the call's scalars say. `a` holds the accelerations at the beginning, and again at
/// the end.
pub struct Advance {
    isa: Isa,
    forces: Arc<dyn DynTask>,
    kick_drift: Arc<dyn DynTask>,
    kick: Arc<dyn DynTask>,
}

impl Advance {
    /// The task for an instruction set that this processor supports; any other is replaced by plain code.
    pub fn new(isa: Isa) -> Advance {
        let isa = if isa.is_supported() { isa } else { Isa::Scalar };
        Advance {
            isa,
            forces: Program::erase(Forces::new(isa)),
            kick_drift: Program::erase(KickDrift),
            kick: Program::erase(Kick),
        }
    }

    /// The scalars of `steps` steps.
    pub fn scalars(step: &Step, steps: u64) -> Scalars {
        let bits = [step.gravity.to_bits(), step.dt.to_bits(), steps];
        bits.into_iter().fold(Scalars::new(), Scalars::with_u64).with_f32(step.softening2)
    }
}

fn steps_of(scalars: &Scalars) -> (Step, u64) {
    let step = Step { gravity: double(scalars, 0), dt: double(scalars, 1), softening2: scalars.f32(3) };
    (step, scalars.u64(2))
}

impl Task for Advance {
    type Params = (Read<f32, 1>, Update<f64, 2>, Update<f64, 2>, Update<f64, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "advance"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["mass", "x", "v", "a", "at"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        let n = call.shapes[0].dims()[0];
        vec![
            Tunable { name: "targets", extent: n, multiple: targets_multiple(n) },
            Tunable { name: "sources", extent: n, multiple: SOURCES_MULTIPLE },
        ]
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].dims()[0];
        let (targets, sources) = (tunables.get("targets", n), tunables.get("sources", n));
        if targets >= n && sources >= n {
            let all = (1..5).map(|p| (p, columns(0, n)));
            let mass = (0, Region::new(&[0], &[n]));
            return vec![SubCall::itself([mass].into_iter().chain(all), &call.scalars)];
        }
        let (step, steps) = steps_of(&call.scalars);
        let mut calls = Vec::new();
        for _ in 0..steps {
            for (i, len) in blocks(n, targets) {
                let rows = columns(i, len);
                let args = [(1, rows), (2, rows), (3, rows), (4, rows)];
                calls.push(SubCall::of(&self.kick_drift, args, &step.kick_drift_scalars()));
            }
            for (i, len) in blocks(n, targets) {
                for (j, count) in blocks(n, sources) {
                    let mass = Region::new(&[j], &[count]);
                    let args = [(0, mass), (4, columns(j, count)), (4, columns(i, len)), (3, columns(i, len))];
                    calls.push(SubCall::of(&self.forces, args, &step.forces_scalars()));
                }
            }
            for (i, len) in blocks(n, targets) {
                let args = [(2, columns(i, len)), (3, columns(i, len))];
                calls.push(SubCall::of(&self.kick, args, &step.kick_scalars()));
            }
        }
        calls
    }

    fn leaf(
        &self,
        (mass, mut x, mut v, mut a, mut at): (
            View<'_, f32, 1>,
            ViewMut<'_, f64, 2>,
            ViewMut<'_, f64, 2>,
            ViewMut<'_, f64, 2>,
            ViewMut<'_, f32, 2>,
        ),
        context: &mut LeafContext<'_>,
    ) {
        let (step, steps) = steps_of(context.scalars);
        for _ in 0..steps {
            kick_drift((step.kick(), step.dt), &mut x, &mut v, &mut a, &mut at);
            let points = Points { data: at.as_ptr(), pitch: at.pitch(), len: at.len(1) };
            // SAFETY: `at` is a block of this shape and pitch that nobody writes meanwhile, `a` is accessed by this call
            // alone, and `new` made sure of the instruction set.
            unsafe { pull(self.isa, step.softening2, &mass, points, points, &mut a) };
            for d in 0..3 {
                kick(step.kick(), v.row_mut(&[d]), a.row(&[d]));
            }
        }
    }

    fn work(&self, call: &CallShape) -> Work {
        let (n, steps) = (call.shapes[0].dims()[0], call.scalars.u64(2) as f64);
        let forces = forces_work(n, n);
        Work { flops: steps * (forces.flops + 18.0 * n as f64), bytes: steps * (forces.bytes + 228.0 * n as f64) }
    }
}
