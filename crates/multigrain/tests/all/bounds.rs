//! What is called a lower bound is one: no program moves less, whichever arrays its calls share and however much of them they
//! touch.

use multigrain::MachineChoice;
use multigrain::prelude::*;

#[task(axes(i, j, k every 64), flops = 2.0)]
fn product(#[at(i, k)] x: Read<f32, 2>, #[at(j, k)] y: Read<f32, 2>, #[at(i, j)] z: Write<f32, 2>) {
    let _ = (&x, &y, &z);
}

#[task(axes(i, j), flops = 1.0)]
fn sum(#[at(i, j)] x: Read<f32, 2>, #[at(i, j)] y: Read<f32, 2>, #[at(i, j)] z: Write<f32, 2>) {
    let _ = (&x, &y, &z);
}

#[task(axes(i, j), flops = 1.0)]
fn change(#[at(i, j)] z: Update<f32, 2>) {
    let _ = &z;
}

const N: u64 = 768;

/// Bytes that the plan moves below the disk, and the bound on them.
fn moved(write: impl FnOnce(&mut Program, Array<f32, 2>, Array<f32, 2>)) -> (u64, u64) {
    let mut program = Program::new();
    let a = program.array::<f32, 2>("a", [N, N], Role::Input).unwrap();
    let z = program.array::<f32, 2>("z", [N, N], Role::Output).unwrap();
    write(&mut program, a, z);
    let machine = MachineChoice::Given(Box::new(Machine::shipped("disk").unwrap()));
    let runtime = Runtime::new(Options { machine, memory_bytes: Some(2 << 20), ..Options::default() }).unwrap();
    let planned = runtime.plan(&Job::new("bounds", program)).unwrap();
    let edge = &planned.edges[0];
    (edge.traffic.bytes_down + edge.traffic.bytes_up, edge.lower_bound_bytes)
}

#[test]
fn no_program_moves_less_than_its_bound() {
    let array = 4 * N * N;
    let none = Scalars::new;
    let (bytes, bound) = moved(|p, a, z| {
        let task = p.task(sum);
        p.call(task, (a.all(), a.all(), z.all()), none()).unwrap();
    });
    assert!(bytes >= bound && bound == 2 * array, "an array given twice: {bytes} bytes, bound {bound}");
    let (bytes, bound) = moved(|p, a, z| {
        let task = p.task(product);
        p.call(task, (a.all(), a.all(), z.all()), none()).unwrap();
    });
    assert!(bytes >= bound && bound == 2 * array, "a product with itself: {bytes} bytes, bound {bound}");
    let (bytes, bound) = moved(|p, _, z| {
        let task = p.task(change);
        p.call(task, (z.all(),), none()).unwrap();
    });
    assert!(bytes >= bound && bound == array, "what holds nothing is not read: {bytes} bytes, bound {bound}");
    let (bytes, bound) = moved(|p, a, z| {
        let task = p.task(sum);
        let half = a.block([0, 0], [N / 2, N]);
        p.call(task, (half, half, z.block([0, 0], [N / 2, N])), none()).unwrap();
        p.call(task, (half, half, z.block([N / 2, 0], [N / 2, N])), none()).unwrap();
    });
    assert!(bytes >= bound && bound == array / 2 + array, "half of an input: {bytes} bytes, bound {bound}");
    let (bytes, bound) = moved(|p, a, z| {
        let task = p.task(sum);
        let rows = N / 8;
        for at in (0..N).step_by(rows as usize) {
            let (x, z) = (a.block([at, 0], [rows, N]), z.block([at, 0], [rows, N]));
            p.call(task, (x, x, z), none()).unwrap();
        }
    });
    assert!(bytes >= bound && bound == 2 * array, "block by block: {bytes} bytes, bound {bound}");
}
