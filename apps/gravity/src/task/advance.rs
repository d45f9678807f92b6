//! Some steps of velocity Verlet (Swope, Andersen, Berens and Wilson 1982) on all particles.

use super::forces::pull;
use super::moves::{kick, kick_drift};
use super::{Forces, Kick, KickDrift, SOURCES_MULTIPLE, Step, targets_multiple};
use crate::kernel::Points;
use multigrain::prelude::{
    CallShape, DynTask, LeafContext, Program, Read, Scalars, SubCall, Task, Tunable, Tunables, Update, View, ViewMut,
    Work, Write,
};
use multigrain_simd::Isa;
use std::sync::Arc;

/// Steps of all particles, as many as the call's scalars say. `a` holds the accelerations at the beginning, and again at
/// the end.
pub struct Advance {
    isa: Isa,
    kick_drift: Arc<dyn DynTask>,
    forces: Arc<dyn DynTask>,
    kick: Arc<dyn DynTask>,
}

/// Of the parameters of [`Advance`], those of the parts of a step.
const KICK_DRIFT: [usize; 4] = [1, 2, 3, 4];
const FORCES: [usize; 4] = [0, 4, 4, 3];
const KICK: [usize; 2] = [2, 3];

impl Advance {
    /// The task for so many particles and an instruction set that this processor supports; any other is replaced by plain
    /// code.
    pub fn new(isa: Isa, particles: u64) -> Advance {
        let isa = if isa.is_supported() { isa } else { Isa::Scalar };
        Advance {
            isa,
            kick_drift: Program::erase(KickDrift),
            forces: Program::erase(Forces::new(isa, particles)),
            kick: Program::erase(Kick),
        }
    }

    /// The scalars of `steps` steps.
    pub fn scalars(step: &Step, steps: u64) -> Scalars {
        Scalars::new().with_f64(step.gravity).with_f64(step.dt).with_u64(steps).with_f32(step.softening2)
    }

    /// The parts of a step: each a task, its arguments among those of the call, and its scalars.
    fn parts(&self, step: &Step) -> [(&Arc<dyn DynTask>, &'static [usize], Scalars); 3] {
        [
            (&self.kick_drift, &KICK_DRIFT, step.kick_drift_scalars()),
            (&self.forces, &FORCES, step.forces_scalars()),
            (&self.kick, &KICK, step.kick_scalars()),
        ]
    }
}

fn steps_of(scalars: &Scalars) -> (Step, u64) {
    (Step { gravity: scalars.f64(0), dt: scalars.f64(1), softening2: scalars.f32(3) }, scalars.u64(2))
}

/// A call on some of the arguments of another.
fn on(call: &CallShape, params: &[usize], scalars: &Scalars) -> CallShape {
    CallShape { shapes: params.iter().map(|&param| call.shapes[param]).collect(), scalars: scalars.clone() }
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

    /// The parts of each step, all particles cut into the same blocks.
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].dims()[0];
        if tunables.get("targets", n) >= n && tunables.get("sources", n) >= n {
            return vec![SubCall::whole(call)];
        }
        let (step, steps) = steps_of(&call.scalars);
        let mut calls = Vec::new();
        for (task, params, scalars) in self.parts(&step) {
            let split = task.split(&on(call, params, &scalars), tunables);
            calls.extend(split.into_iter().flatten().map(|sub| sub.within(task, params)));
        }
        (0..steps).flat_map(|_| calls.iter().cloned()).collect()
    }

    /// The parts of each step, each on all particles: for more of them than fit a memory in blocks that are the same in all parts.
    fn stages(&self, call: &CallShape) -> Vec<SubCall> {
        let (step, steps) = steps_of(&call.scalars);
        let parts = self
            .parts(&step)
            .map(|(task, params, scalars)| SubCall::whole(&on(call, params, &scalars)).within(task, params));
        (0..steps).flat_map(|_| parts.iter().cloned()).collect()
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
            for d in 0..3 {
                let rows = (x.row_mut(&[d]), v.row_mut(&[d]), a.row(&[d]), at.row_mut(&[d]));
                kick_drift(step.kick(), step.dt, rows);
            }
            let points = Points { data: at.as_ptr(), pitch: at.pitch(), len: at.len(1) };
            // SAFETY: `at` is a block of this shape and pitch that nobody writes meanwhile, `a` is accessed by this call
            // alone, and `new` made sure of the instruction set.
            unsafe { pull(self.isa, step.softening2, true, &mass, points, points, &mut a) };
            for d in 0..3 {
                kick(step.kick(), v.row_mut(&[d]), a.row(&[d]));
            }
        }
    }

    fn work(&self, call: &CallShape) -> Work {
        let (step, steps) = steps_of(&call.scalars);
        let mut work = Work::default();
        for (task, params, scalars) in self.parts(&step) {
            let part = task.work(&on(call, params, &scalars));
            work.flops += steps as f64 * part.flops;
            work.bytes += steps as f64 * part.bytes;
        }
        work
    }
}
