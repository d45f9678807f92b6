//! Stencils over many steps: a task that shows every element it read, and random programs of it.

use super::rng::Rng;
use multigrain_program::notation::{along, around, whole};
use multigrain_program::{
    Access, AnyArray, AnyParams, AnyView, AnyViews, ElementType, Index, LeafContext, Notation, Program, ProgramError,
    Role, Scalars, Shape, Task,
};

const AXES: [&str; 3] = ["i", "j", "k"];

/// Each element of `out` is a hash over what is near it in `u` and in `by`, in order, which tells places beyond the ends of the
/// array from all others. Parameters: u, by (read), out (written); scalar 0 is hashed in.
#[derive(Clone, Debug)]
pub struct Windows {
    /// How far is near, before and after along each of up to three dimensions, in `u`.
    pub reach: Vec<(u64, u64)>,
    /// The same in `by`; without it, only the first element of all counts.
    pub by: Option<Vec<(u64, u64)>>,
    /// Whether the leaf wants scratch memory, which it spoils.
    pub scratch: bool,
}

/// Combines a hash with what comes next.
pub fn mix(at: u64, value: u64) -> u64 {
    (at.rotate_left(7) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Windows {
    /// A random task for blocks of so many dimensions.
    pub fn random(rng: &mut Rng, rank: usize) -> Windows {
        let mut reach = |far: u64| (0..rank).map(|_| (rng.below(far), rng.below(far))).collect::<Vec<_>>();
        let (near, by) = (reach(3), reach(3));
        Windows { reach: near, by: rng.percent(60).then_some(by), scratch: rng.percent(30) }
    }
}

/// Hashes what is near an element of a block of which `before` elements lie before the first that counts.
fn near(block: &AnyView<'_>, at: &[usize], before: &[usize], reach: &[(u64, u64)], mut hash: u64) -> u64 {
    let widths: Vec<usize> = reach.iter().map(|(b, a)| (b + a + 1) as usize).collect();
    let mut place = vec![0; at.len()];
    for number in 0..widths.iter().product() {
        let (mut rest, mut inside): (usize, bool) = (number, true);
        for d in (0..at.len()).rev() {
            place[d] = (before[d] + at[d] + rest % widths[d]).wrapping_sub(reach[d].0 as usize);
            rest /= widths[d];
            inside &= (place[d] as u64) < block.dims()[d];
        }
        let value = match place.split_last() {
            Some((last, rows)) if inside => block.row::<u64>(rows)[*last],
            _ => u64::MAX,
        };
        hash = mix(hash, value);
    }
    hash
}

impl Task for Windows {
    type Params = AnyParams;

    fn name(&self) -> &'static str {
        "windows"
    }

    fn parameters(&self) -> AnyParams {
        let mut params = AnyParams::default();
        for access in [Access::Read, Access::Read, Access::Write] {
            params.push(access, ElementType::U64, self.reach.len());
        }
        params
    }

    fn notation(&self) -> Option<Notation> {
        let axes = &AXES[..self.reach.len()];
        let index = |(&axis, &(before, after)): (&&'static str, &(u64, u64))| match before + after {
            0 => along(axis),
            _ => around(axis, before, after),
        };
        let cut = |reach: &[(u64, u64)]| axes.iter().zip(reach).map(index).collect::<Vec<Index>>();
        let by = self.by.as_ref().map_or_else(|| axes.iter().map(|_| whole()).collect(), |by| cut(by));
        let notation = Notation::axes(axes.iter().copied()).flops(1.0);
        Some(notation.param("u", cut(&self.reach)).param("by", by).param("out", axes.iter().copied()))
    }

    fn scratch_bytes(&self, call: &multigrain_program::CallShape, _: u64) -> u64 {
        if self.scratch { 8 * call.shapes[2].dims()[0] } else { 0 }
    }

    fn leaf(&self, mut views: AnyViews<'_>, context: &mut LeafContext<'_>) {
        let (u, by, mut out) = (views.read(0), views.read(1), views.written(2));
        if self.scratch {
            assert!(context.scratch.len() as u64 >= 8 * out.dims()[0], "scratch memory");
            context.scratch.fill(0xa5);
        }
        let mut windows = 0;
        let mut befores = |reach: &[(u64, u64)]| {
            let mut before = |&(before, after): &(u64, u64)| {
                windows += usize::from(before + after > 0);
                if before + after > 0 { context.before(windows - 1) } else { 0 }
            };
            reach.iter().map(&mut before).collect::<Vec<usize>>()
        };
        let of_u = befores(&self.reach);
        let of_by = self.by.as_ref().map(|reach| (reach, befores(reach)));
        let dims: Vec<usize> = out.dims().iter().map(|&d| d as usize).collect();
        let mut at = vec![0; dims.len()];
        for number in 0..dims.iter().product() {
            let mut rest: usize = number;
            for d in (0..dims.len()).rev() {
                (at[d], rest) = (rest % dims[d], rest / dims[d]);
            }
            let hash = near(&u, &at, &of_u, &self.reach, context.scalars.u64(0));
            let hash = match &of_by {
                Some((reach, before)) => near(&by, &at, before, reach, hash),
                None => mix(hash, by.row::<u64>(&vec![0; dims.len() - 1])[0]),
            };
            if let Some((last, rows)) = at.split_last() {
                out.row_mut::<u64>(rows)[*last] = hash;
            }
        }
    }
}

/// A random program of steps: each call reads what the one before has written, from array to array in turns or in a row, on
/// whole arrays or on a block of them. Arrays have random roles, so some versions between are results; and now and then
/// another call reads one, or a step has another scalar than its neighbours.
pub fn random_steps(seed: u64) -> Program {
    let mut rng = Rng::new(seed ^ 0x0073_7465_7073);
    let rank = rng.range(1, 3) as usize;
    let longest = [400, 30, 11][rank - 1];
    let shape = Shape::new(&(0..rank).map(|_| rng.range(1, longest)).collect::<Vec<u64>>());
    let mut program = Program::new();
    let task = program.task(Windows::random(&mut rng, rank));
    let mut declare = || -> Result<(Vec<AnyArray>, AnyArray, AnyArray), ProgramError> {
        let mut array = |name: &str, role: Role| program.any_array(name, ElementType::U64, shape, role);
        let first = *rng.pick(&[Role::Input, Role::InOut]).unwrap_or(&Role::Input);
        let mut arrays = vec![array("first", first)?];
        for number in 1..=rng.range(if first == Role::Input { 2 } else { 1 }, 3) {
            let roles = [Role::Temporary, Role::Temporary, Role::Output, Role::InOut];
            arrays.push(array(&format!("u{number}"), *rng.pick(&roles).unwrap_or(&Role::Output))?);
        }
        Ok((arrays, array("by", Role::Input)?, array("seen", Role::Output)?))
    };
    let Ok((arrays, by, seen)) = declare() else { return program };
    let block: Vec<(u64, u64)> = shape.dims().iter().map(|&n| (rng.below(n), n)).collect();
    let part = rng.percent(25);
    let of = |array: AnyArray| match part {
        true => {
            let (start, len): (Vec<u64>, Vec<u64>) = block.iter().map(|&(start, n)| (start, n - start)).unzip();
            array.block(&start, &len)
        }
        false => array.all(),
    };
    let (steps, in_turns) = (rng.range(2, 24), rng.percent(70));
    let (mut from, mut scalar, mut next) = (0, 1, 0);
    for step in 0..steps {
        let count = if in_turns { arrays.len().min(3) } else { arrays.len() };
        next = (next + 1) % count;
        // An input is not written.
        while next == from || next == 0 && program.arrays()[0].role == Role::Input {
            next = (next + 1) % count;
        }
        if rng.percent(6) {
            scalar += 1;
        }
        let call =
            program.any_call(task, &[of(arrays[from]), of(by), of(arrays[next])], Scalars::new().with_u64(scalar));
        if call.is_err() {
            break;
        }
        from = next;
        if rng.percent(6) && step + 1 < steps {
            let _ = program.any_call(task, &[of(arrays[from]), of(by), of(seen)], Scalars::new().with_u64(99));
        }
    }
    finished(program, &arrays, task, by, seen)
}

/// The last version is seen as a result.
fn finished(
    mut program: Program,
    arrays: &[AnyArray],
    task: multigrain_program::TaskHandle<Windows>,
    by: AnyArray,
    seen: AnyArray,
) -> Program {
    let written = program.calls().last().map(|call| call.args[2].array as usize);
    if let Some(last) = written.and_then(|number| arrays.iter().find(|array| array.index() == number)) {
        let _ = program.any_call(task, &[last.all(), by.all(), seen.all()], Scalars::new().with_u64(7));
    }
    program
}
