//! The application: the same bytes on every machine, however blocks are cut and wherever a run was interrupted; what
//! moves does not grow with the steps; trajectories that are known.

use multigrain::app::Application;
use multigrain::prelude::*;
use multigrain::rooms::plan::Plan;
use multigrain::rooms::plan::testing::Rng;
use multigrain::rooms::store::faults::{Count, DieAt, FailAt, Faults};
use multigrain::rooms::store::npy;
use multigrain::{MachineChoice, testing};
use multigrain_gravity::app::Args;
use multigrain_gravity::simulation::Simulation;
use multigrain_gravity::task::Step;
use multigrain_simd::Isa;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const EIO: i32 = 5;

fn runtime_on(machine: Machine, memory_bytes: Option<u64>, threads: usize, faults: Option<Arc<dyn Faults>>) -> Runtime {
    let disk_buffer_bytes = Some(testing::TEST_BUFFER_BYTES);
    let machine = MachineChoice::Given(Box::new(machine));
    Runtime::new(Options {
        machine,
        memory_bytes,
        threads: Some(threads),
        disk_buffer_bytes,
        faults,
        ..Options::default()
    })
    .unwrap()
}

/// A shipped machine of this computer, with its files, if it has any, in `directory`.
fn machine(name: &str, directory: &Path) -> Machine {
    let machine = Machine::shipped(name).unwrap();
    let root = machine.memory(machine.root()).name.clone();
    match name.contains("disk") {
        true => machine.with(&root, |m| m.path = Some(directory.to_owned())).unwrap(),
        false => machine,
    }
}

fn args(n: u64, steps: u64, every: u64) -> Args {
    Args { n: Some(n), steps, snapshots: Some(every), seed: n + steps, ..Args::default() }
}

fn snapshots(runtime: &Runtime, args: &Args) -> Vec<u8> {
    let app = args.prepare(runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let decl = &app.job.arrays()[1];
    assert_eq!(decl.name, "snapshots");
    outcome.read(1, &Region::whole(decl.shape)).unwrap()
}

#[test]
fn random_machines_give_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let args = |seed| {
        let mut rng = Rng::new(seed);
        let n = *rng.pick(&[1, 2, 37, 256, 640, 1100]).unwrap();
        let energies = rng.below(2).eq(&0).then(|| directory.path().join(format!("energies-{seed}.npy")));
        Args { softening: *rng.pick(&[0.0, 0.05]).unwrap(), energies, ..args(n, rng.range(1, 12), rng.range(1, 12)) }
    };
    let ran = testing::on_random_machines(0..60, 12, directory.path(), args, |seed, _, checked| {
        assert!(checked.holds() && checked.elements > 0, "seed {seed}: {checked:?}");
    });
    assert!(ran > 30, "only {ran} of 60 cases fit");
}

#[test]
fn compositions_budgets_and_threads_do_not_show() {
    let directory = tempfile::tempdir().unwrap();
    let args = args(1300, 10, 5);
    let computer = |threads| Runtime::new(Options { threads: Some(threads), ..Options::default() }).unwrap();
    let expected = snapshots(&computer(1), &args);
    for threads in 2..=4 {
        assert!(snapshots(&computer(threads), &args) == expected, "{threads} threads");
    }
    for (name, budgets) in [
        ("disk", [None, Some(480 * KIB), Some(416 * KIB)]),
        ("local", [None; 3]),
        ("disk+local", [None, Some(480 * KIB), Some(16 << 20)]),
    ] {
        for (threads, memory) in (1..).zip(budgets) {
            let runtime = runtime_on(machine(name, directory.path()), memory, threads, None);
            assert!(snapshots(&runtime, &args) == expected, "{name}, {memory:?}, {threads} threads");
        }
    }
}

/// The energies and momenta of a run, whose file is `energies.npy` in `directory`.
fn energies(runtime: &Runtime, args: &Args, directory: &Path) -> Vec<u8> {
    let path = directory.join("energies.npy");
    let app = Args { energies: Some(path.clone()), ..args.clone() }.prepare(runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let checked = (app.check)(&outcome, 1).unwrap();
    assert!(checked.holds(), "{checked:?}");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    bytes[npy::DATA_OFFSET_BYTES as usize..].to_vec()
}

#[test]
fn energies_are_the_same_bits_on_every_machine() {
    let directory = tempfile::tempdir().unwrap();
    let args = args(1300, 10, 5);
    let computer = |threads| Runtime::new(Options { threads: Some(threads), ..Options::default() }).unwrap();
    let expected = energies(&computer(1), &args, directory.path());
    assert_eq!(expected.len(), 3 * 6 * 8);
    assert!(energies(&computer(3), &args, directory.path()) == expected);
    for (name, memory) in [("disk", Some(480 * KIB)), ("local", None), ("disk+local", Some(480 * KIB))] {
        let runtime = runtime_on(machine(name, directory.path()), memory, 2, None);
        assert!(energies(&runtime, &args, directory.path()) == expected, "{name}");
    }
    let values = numbers(&expected);
    let drift = (values[12] + values[13]) / (values[0] + values[1]) - 1.0;
    // A Plummer sphere in these units: energy -1/4, virial equilibrium; 1300 particles and softening change a tenth.
    assert!((values[0] + values[1] + 0.25).abs() < 0.025 && drift.abs() < 1e-3, "{values:?}");
    assert!(values[2..5].iter().all(|p| p.abs() < 1e-12 * values[5].max(1.0)), "at rest as a whole: {values:?}");
}

#[test]
fn energies_of_an_interrupted_run_are_those_of_a_whole_one() {
    let directory = tempfile::tempdir().unwrap();
    let args = Args { energies: Some(directory.path().join("energies.npy")), ..long(directory.path()) };
    let [out, sums] = ["out.npy", "energies.npy"].map(|name| directory.path().join(name));
    let count = Arc::new(Count::default());
    let runtime = small(directory.path(), Some(count.clone()));
    let job = args.prepare(&runtime).unwrap().job;
    runtime.run(&job, settings(false)).unwrap();
    let expected = [&out, &sums].map(|path| std::fs::read(path).unwrap());
    [&out, &sums].into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
    for k in 1..8 {
        let runtime = small(directory.path(), Some(Arc::new(DieAt { n: k * count.operations() / 8 })));
        assert!(runtime.run(&job, settings(false)).is_err(), "killed at {k} of 8");
        drop(runtime);
        small(directory.path(), None).run(&job, settings(true)).unwrap();
        assert!([&out, &sums].map(|path| std::fs::read(path).unwrap()) == expected, "killed at {k} of 8");
        [&out, &sums].into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}

#[test]
fn wrong_energies_fail_the_check() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime_on(machine("disk", directory.path()), None, 2, None);
    let sums = directory.path().join("energies.npy");
    let args = Args { energies: Some(sums.clone()), softening: 0.1, ..args(40, 10, 5) };
    let app = args.prepare(&runtime).unwrap();
    for element in [0, 1, 2, 5, 13, 17] {
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        assert!((app.check)(&outcome, 1).unwrap().holds());
        let mut content = std::fs::read(&sums).unwrap();
        let at = npy::DATA_OFFSET_BYTES as usize + 8 * element;
        let value = f64::from_le_bytes(content[at..at + 8].try_into().unwrap());
        content[at..at + 8].copy_from_slice(&(value + 1e-6).to_le_bytes());
        std::fs::write(&sums, content).unwrap();
        assert!(!(app.check)(&outcome, 1).unwrap().holds(), "element {element}");
    }
}

#[test]
fn particles_at_one_place_lie_in_each_others_wells() {
    let directory = tempfile::tempdir().unwrap();
    // Two at one place, softened: their potential energy is -m m / softening; a third at distance 3 of both.
    let text = "mass,x,y,z,vx,vy,vz\n2,1,0,0,0,0,0\n3,1,0,0,0,0,0\n4,1,3,0,0,0,0\n";
    let args = Args { softening: 4.0, steps: 1, dt: 0.0, ..csv(directory.path(), text) };
    let found = numbers(&energies(&Runtime::new(Options::default()).unwrap(), &args, directory.path()));
    assert_eq!(found[..2], [0.0, -(6.0 / 4.0 + 8.0 / 5.0 + 12.0 / 5.0)], "{found:?}");
}

#[test]
fn blocks_of_blocks_equal_the_whole() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut args = args(*rng.pick(&[3, 300, 900]).unwrap(), rng.range(1, 4), 2);
        args.energies = (seed % 2 == 0).then(|| "unused.npy".into());
        let runtime = Runtime::new(Options::default()).unwrap();
        let job = args.prepare(&runtime).unwrap().job;
        let [whole, split] = testing::whole_and_split(&job, 1 + seed as usize % 3, seed).unwrap();
        assert!(whole == split, "seed {seed}, {args:?}");
    }
}

#[test]
fn with_enough_memory_what_moves_does_not_grow_with_the_steps() {
    let directory = tempfile::tempdir().unwrap();
    for (name, edge) in [("disk", "disk - dram"), ("disk+local", "disk - dram")] {
        for n in [500, 4096] {
            let moved = |steps| {
                let runtime = runtime_on(machine(name, directory.path()), Some(64 << 20), 2, None);
                let app = Args { n: Some(n), steps, ..Args::default() }.prepare(&runtime).unwrap();
                let planned = runtime.plan(&app.job).unwrap();
                let edge = planned.edges.iter().find(|e| e.name == edge).unwrap();
                edge.traffic.bytes_down + edge.traffic.bytes_up
            };
            let few = moved(3);
            assert_eq!(few, moved(40), "{name}, {n} particles");
            assert_eq!(few, moved(1000), "{name}, {n} particles");
        }
    }
}

#[test]
fn local_stores_keep_their_particles_and_exchange_places_only() {
    let runtime = runtime_on(machine("local", Path::new(".")), None, 2, None);
    let n = 8192;
    let moved = |steps| {
        let app = Args { n: Some(n), steps, ..Args::default() }.prepare(&runtime).unwrap();
        let traffic = runtime.plan(&app.job).unwrap().edges[0].traffic;
        traffic.bytes_down + traffic.bytes_up
    };
    let each_step = (moved(96) - moved(32)) / 64;
    // Each of the two reads the other's places, 12 bytes a particle, which were written once; a state is 88 bytes.
    assert!(each_step <= 3 * 12 * n, "{each_step} bytes a step");
}

#[test]
fn many_steps_are_planned_with_little() {
    let runtime = Runtime::new(Options { threads: Some(2), ..Options::default() }).unwrap();
    let app = Args { n: Some(8192), steps: 2000, ..Args::default() }.prepare(&runtime).unwrap();
    let planned = runtime.plan(&app.job).unwrap();
    // The steps of one call are planned once.
    let plans = planned.plan.all();
    assert!(plans[0].is_in_parts(), "{}", planned.plan);
    let calls: usize = plans.iter().map(|plan| plan.calls.len()).sum();
    assert!(calls < 12 * 2000, "{calls} calls");
    let dependence = |plan: &&Plan| Some(plan.passes.iter().find(|p| p.pass == "dependence")?.summary.clone());
    let summaries: Vec<String> = plans.iter().filter_map(dependence).collect();
    assert!(!summaries.is_empty());
    for summary in summaries {
        let number = |text: &str| -> u64 { text.split(' ').next().unwrap().parse().unwrap() };
        let (calls, hazards) = (number(&summary), number(summary.rsplit(", ").next().unwrap()));
        assert!(hazards < 40 * calls, "{summary}");
    }
}

#[test]
fn a_run_over_strict_edges_that_is_killed_anywhere_is_continued() {
    let directory = tempfile::tempdir().unwrap();
    let (out, out_in) = (directory.path().join("out.npy"), directory.path().to_owned());
    let on = |faults| runtime_on(machine("disk+ps3", &out_in), None, 2, faults);
    let args = Args { output: Some(out.clone()), ..args(512, 2, 2) };
    let count = Arc::new(Count::default());
    let runtime = on(Some(count.clone() as Arc<dyn Faults>));
    let job = args.prepare(&runtime).unwrap().job;
    runtime.run(&job, settings(false)).unwrap();
    let expected = std::fs::read(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    let operations = count.operations();
    for n in 0..operations {
        // Who dies after the result has its name leaves the whole of it.
        assert!(on(Some(Arc::new(DieAt { n }))).run(&job, settings(false)).is_err() || out.exists(), "killed at {n}");
        if let Err(why) = on(None).run(&job, settings(true)) {
            panic!("killed at {n} of {operations}: {why}");
        }
        assert!(std::fs::read(&out).unwrap() == expected, "killed at {n} of {operations}");
        std::fs::remove_file(&out).unwrap();
    }
}

/// No block of all steps fits then, and a list of all their calls would be long.
#[test]
fn particles_that_outgrow_local_stores_are_planned_stage_by_stage() {
    let runtime = runtime_on(machine("ps3", Path::new(".")), None, 2, None);
    let calls = |steps| {
        let app =
            Args { n: Some(200_000), steps, snapshots: Some(steps), ..Args::default() }.prepare(&runtime).unwrap();
        let planned = runtime.plan(&app.job).unwrap();
        assert_eq!(planned.refused, None, "a run is possible");
        planned.plan.all().iter().map(|plan| plan.calls.len()).sum::<usize>()
    };
    let (few, many) = (calls(64), calls(1024));
    // Each call of eight steps is one more part, with all that is in the plan of one.
    assert!(many - few <= 1024 / 8 + 1024 / 16, "{few} calls, {many}");
}

#[test]
fn long_steps_go_on_from_every_snapshot() {
    let loads = |particles, every| {
        let step = Step { dt: 1e-3, gravity: 1.0, softening2: 1e-4 };
        let simulation = Simulation { particles, steps: 1000, every, step, energies: false };
        let program = simulation.build(Isa::Scalar).unwrap().program;
        let is_load = |call: &&Call| program.tasks()[call.task as usize].name() == "load";
        program.calls().iter().filter(is_load).count()
    };
    assert_eq!(loads(30_000, 20), 50);
    assert_eq!(loads(30_000, 10), 50, "not more often than every 16 steps");
    assert_eq!(loads(1000, 20), 8, "128 steps of few particles take no second");
}

/// A disk machine whose memory holds a part of the particles.
fn small(directory: &Path, faults: Option<Arc<dyn Faults>>) -> Runtime {
    runtime_on(machine("disk", directory), Some(360 * KIB), 2, faults)
}

/// A run of several legs, so that it goes on from snapshots.
fn long(directory: &Path) -> Args {
    Args { output: Some(directory.join("out.npy")), ..args(700, 300, 60) }
}

fn settings<'a>(resume: bool) -> Settings<'a> {
    Settings { resume, journal_interval: Some(Duration::ZERO), ..Settings::default() }
}

#[test]
fn a_run_that_is_killed_anywhere_continues_with_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let args = long(directory.path());
    let out = directory.path().join("out.npy");
    let count = Arc::new(Count::default());
    let runtime = small(directory.path(), Some(count.clone()));
    let job = args.prepare(&runtime).unwrap().job;
    let whole = runtime.run(&job, settings(false)).unwrap();
    let expected = std::fs::read(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    let operations = count.operations();
    let mut saved = 0;
    for k in 0..24 {
        let runtime = small(directory.path(), Some(Arc::new(DieAt { n: k * operations / 24 })));
        // Who dies after the result has its name leaves the whole of it.
        assert!(runtime.run(&job, settings(false)).is_err() || out.exists(), "killed at {k} of 24");
        assert!(!out.exists() || std::fs::read(&out).unwrap() == expected, "killed at {k} of 24");
        drop(runtime);
        let outcome = small(directory.path(), None).run(&job, settings(true)).unwrap();
        assert!(std::fs::read(&out).unwrap() == expected, "killed at {k} of 24");
        saved += u64::from(outcome.flops < 0.6 * whole.flops);
        std::fs::remove_file(&out).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing else is left");
    }
    assert!(saved >= 3, "a run that was nearly done must not begin anew: {saved} of 24");
}

#[test]
fn what_a_failing_disk_leaves_can_be_thrown_away() {
    let directory = tempfile::tempdir().unwrap();
    let args = long(directory.path());
    let out = directory.path().join("out.npy");
    let count = Arc::new(Count::default());
    let runtime = small(directory.path(), Some(count.clone()));
    let job = args.prepare(&runtime).unwrap().job;
    runtime.run(&job, settings(false)).unwrap();
    let expected = std::fs::read(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    let mut failed = 0;
    for k in 0..12 {
        let n = k * count.operations() / 12;
        let runtime = small(directory.path(), Some(Arc::new(FailAt { n, errno: EIO })));
        if let Err(error) = runtime.run(&job, settings(false)) {
            failed += 1;
            assert!(!out.exists() || std::fs::read(&out).unwrap() == expected, "operation {n}: {error}");
        }
        let discard = Settings { discard: true, ..settings(false) };
        small(directory.path(), None).run(&job, discard).unwrap();
        assert!(std::fs::read(&out).unwrap() == expected, "operation {n}");
        std::fs::remove_file(&out).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "operation {n}: something is left");
    }
    assert!(failed > 6, "{failed} of 12");
}

#[test]
fn a_snapshot_goes_on_as_if_the_run_had_not_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    let half = directory.path().join("half.npy");
    let first = Args { output: Some(half.clone()), steps: 20, ..args(150, 40, 20) };
    let whole = Args { seed: first.seed, ..args(150, 40, 20) };
    runtime.run(&first.prepare(&runtime).unwrap().job, Settings::default()).unwrap();
    let second = Args { particles: Some(half), n: None, ..first.clone() };
    let second = Args { output: None, ..second };
    let (whole, second) = (snapshots(&runtime, &whole), snapshots(&runtime, &second));
    let row = whole.len() / 3;
    assert!(whole[row..] == second, "steps 20 to 40");
}

fn csv(directory: &Path, text: &str) -> Args {
    let path = directory.join("bodies.csv");
    std::fs::write(&path, text).unwrap();
    Args { particles: Some(path), ..Args::default() }
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn two_bodies_go_round_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    // Masses 1/2 at distance 1 in circles of radius 1/2: angular speed 1.
    let text = "mass,x,y,z,vx,vy,vz\n.5,.5,0,0,0,.5,0\n.5,-.5,0,0,0,-.5,0\n";
    let steps = 6000;
    let dt = std::f64::consts::TAU / steps as f64;
    let runtime = Runtime::new(Options::default()).unwrap();
    let orbit = Args { steps, dt, softening: 0.0, snapshots: Some(steps / 4), ..csv(directory.path(), text) };
    let found = numbers(&snapshots(&runtime, &orbit));
    let places = |s: usize| [found[14 * s + 1], found[14 * s + 2]];
    for (s, want) in [[0.5, 0.0], [0.0, 0.5], [-0.5, 0.0], [0.0, -0.5], [0.5, 0.0]].into_iter().enumerate() {
        // The phase of Verlet's orbit errs by dt^2/24 a radian; single precision adds less than 1e-5.
        assert!((0..2).all(|d| (places(s)[d] - want[d]).abs() < 2e-5), "quarter {s}: {:?}", places(s));
    }
}

#[test]
fn the_check_finds_one_altered_number_and_blocks_that_are_lost_or_swapped() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime_on(machine("disk", directory.path()), None, 2, None);
    for (seed, (n, steps, every)) in (0..).zip([(40, 10, 5), (300, 60, 60), (3, 9, 1)]) {
        let out = directory.path().join(format!("out{seed}.npy"));
        let args = Args { output: Some(out.clone()), ..args(n, steps, every) };
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        for draw in 0..3 {
            testing::alterations(&out, None, seed + draw, || {
                let checked = (app.check)(&outcome, draw).unwrap();
                assert!(checked.holds() != checked.wrong.is_some(), "{checked:?}");
                checked.holds()
            });
        }
    }
}

/// Two particles of one snapshot in the middle change places: masses, momentum and centre of mass stay as they are, and few
/// trajectories of so many are computed again.
#[test]
fn particles_that_change_places_show_where_every_step_has_its_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime_on(machine("disk", directory.path()), None, 2, None);
    let out = directory.path().join("out.npy");
    let n = 300;
    let args = Args { output: Some(out.clone()), ..args(n, 12, 1) };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let checked = (app.check)(&outcome, 1).unwrap();
    assert!(checked.holds() && checked.covered.contains("before and after"), "{checked:?}");
    let mut content = std::fs::read(&out).unwrap();
    let data = content.len() - 13 * n as usize * 56;
    let row = |i: usize| data + (6 * n as usize + i) * 56;
    for byte in 0..56 {
        content.swap(row(20) + byte, row(77) + byte);
    }
    std::fs::write(&out, content).unwrap();
    let wrong = (app.check)(&outcome, 1).unwrap().wrong.unwrap();
    assert!(wrong.contains("snapshot 6 is not between") || wrong.contains("snapshot 5 is not between"), "{wrong}");
}

/// A run too long to be computed again, of which the check still knows what every step keeps.
#[test]
fn one_kick_that_one_particle_misses_shows_where_no_trajectory_is_affordable() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime_on(machine("disk", directory.path()), None, 2, None);
    let out = directory.path().join("out.npy");
    // 64 million interactions, but by steps so long that neither a trajectory nor a track has a bound.
    let args = Args { output: Some(out.clone()), softening: 0.05, dt: 0.01, ..args(400, 400, 400) };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let checked = (app.check)(&outcome, 1).unwrap();
    assert!(checked.holds() && checked.covered.contains("0 of 1 trajectories"), "{checked:?}");
    // That is no verdict, and it says what would help.
    assert!(checked.uncovered.as_ref().is_some_and(|what| what.contains("--snapshots 50")), "{checked:?}");
    let mut content = std::fs::read(&out).unwrap();
    // The velocity of a particle of the last snapshot changes by what a step gives it: about dt.
    let at = content.len() - 8 * (7 * 100 - 4);
    let value = f64::from_le_bytes(content[at..at + 8].try_into().unwrap());
    content[at..at + 8].copy_from_slice(&(value + 0.01).to_le_bytes());
    std::fs::write(&out, content).unwrap();
    let checked = (app.check)(&outcome, 1).unwrap();
    assert!(!checked.holds() && checked.wrong.unwrap().contains("momentum"));
}

/// Particles that a check cannot have again all at once, in so little memory.
const MANY: usize = 7000;

fn little(directory: &Path) -> Runtime {
    runtime_on(machine("disk", directory), Some(480 * KIB), 2, None)
}

/// More particles than can be computed again, in one leg of several steps: what is altered in the last snapshot shows all the
/// same.
#[test]
fn what_is_altered_among_many_particles_shows_by_tracks() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = little(directory.path());
    let out = directory.path().join("out.npy");
    let n = MANY;
    let args = Args { output: Some(out.clone()), softening: 0.05, ..args(n as u64, 5, 5) };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let checked = (app.check)(&outcome, 1).unwrap();
    assert!(checked.holds() && checked.uncovered.is_none(), "{checked:?}");
    assert!(checked.covered.contains("0 of 1 trajectories") && checked.covered.contains("ways of"), "{checked:?}");
    println!("{}", checked.covered);
    let content = std::fs::read(&out).unwrap();
    let row = |i: usize| content.len() - (n - i) * 56;
    let wrong = |what: &str, alter: &dyn Fn(&mut [u8])| {
        let mut altered = content.clone();
        alter(&mut altered);
        std::fs::write(&out, altered).unwrap();
        let checked = (app.check)(&outcome, 2).unwrap();
        assert!(!checked.holds() && checked.wrong.is_some(), "{what}: {checked:?}");
    };
    let swapped = |content: &mut [u8], from: usize, to: usize, columns: std::ops::Range<usize>| {
        columns.flat_map(|c| 8 * c..8 * c + 8).for_each(|byte| content.swap(row(from) + byte, row(to) + byte));
    };
    wrong("two particles swapped", &|content| swapped(content, 20, 6077, 0..7));
    wrong("two blocks of particles swapped", &|content| {
        (0..64).for_each(|i| swapped(content, 1024 + i, 3080 + i, 0..7));
    });
    // Neither momentum nor centre of mass changes.
    wrong("two particles' places swapped", &|content| swapped(content, 5, 6, 1..4));
    wrong("two blocks' velocities swapped", &|content| {
        (0..64).for_each(|i| swapped(content, 64 + i, 6400 + i, 4..7));
    });
    for column in [1, 6] {
        wrong("one number altered", &|content| {
            let at = row(3333) + 8 * column;
            let value = f64::from_le_bytes(content[at..at + 8].try_into().unwrap());
            content[at..at + 8].copy_from_slice(&(value + 1e-3).to_le_bytes());
        });
    }
}

/// Two particles of one snapshot in the middle change places where a snapshot is not taken after every step.
#[test]
fn particles_that_change_places_show_between_any_snapshots() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = little(directory.path());
    let out = directory.path().join("out.npy");
    let n = MANY;
    let args = Args { output: Some(out.clone()), softening: 0.05, ..args(n as u64, 16, 2) };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let checked = (app.check)(&outcome, 1).unwrap();
    assert!(checked.holds() && checked.covered.contains("0 of 8 trajectories"), "{checked:?}");
    let mut content = std::fs::read(&out).unwrap();
    let row = |i: usize| content.len() - 5 * n * 56 - (n - i) * 56;
    let (a, b) = (row(20), row(6077));
    (0..56).for_each(|byte| content.swap(a + byte, b + byte));
    std::fs::write(&out, content).unwrap();
    for draw in 1..4 {
        assert!(!(app.check)(&outcome, draw).unwrap().holds(), "draw {draw}");
    }
}

#[test]
fn energy_is_kept_as_the_method_keeps_it() {
    let runtime = Runtime::new(Options::default()).unwrap();
    let drift = |dt: f64| {
        let args = Args { n: Some(300), steps: (0.5 / dt) as u64, dt, softening: 0.05, ..Args::default() };
        let app = args.prepare(&runtime).unwrap();
        let outcome = runtime.run(&app.job, Settings::default()).unwrap();
        let checked = (app.check)(&outcome, 1).unwrap();
        let figure = |name| checked.figures.iter().find(|(n, _)| *n == name).unwrap().1;
        assert!(figure("momentum drift") < 1e-7, "{checked:?}");
        assert!(figure("force error") < 1e-6, "{checked:?}");
        figure("energy drift")
    };
    assert!(drift(1.0 / 1024.0) < 1e-4);
    assert!(drift(1.0 / 4096.0) < 1e-5);
}

#[test]
fn a_picture_is_drawn_and_lost_particles_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    let picture = directory.path().join("orbits.png");
    let args = Args { n: Some(50), steps: 30, picture: Some(picture.clone()), ..Args::default() };
    let app = args.prepare(&runtime).unwrap();
    assert_eq!(app.job.arrays()[1].shape.dims(), [31, 50, 7], "a picture takes snapshots");
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    (app.after.expect("a picture is drawn"))(&outcome).unwrap();
    let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&picture).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut samples = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut samples).unwrap();
    assert!(info.width.max(info.height) <= 1024 && info.width.min(info.height) >= 512);
    let lit = samples.iter().filter(|&&s| s > 60).count();
    assert!(lit > 500, "{lit} of {} samples are lit", samples.len());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);

    // Two that nearly meet fly apart beyond all numbers.
    let text = "mass,x,y,z,vx,vy,vz\n1e6,0,0,0,0,0,0\n1e6,1e-12,0,0,0,0,0\n";
    let args = Args { softening: 0.0, steps: 3, dt: 1e300, ..csv(directory.path(), text) };
    let app = args.prepare(&runtime).unwrap();
    let outcome = runtime.run(&app.job, Settings::default()).unwrap();
    let error = (app.after.expect("places are looked at"))(&outcome).unwrap_err();
    assert!(error.exit_status() == 1 && error.to_string().contains("--softening"), "{error}");
}

#[test]
fn wrong_requests_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    let cases = [
        (Args { n: Some(0), ..Args::default() }, "--n 0"),
        (Args { n: Some(u64::MAX), ..Args::default() }, "--n"),
        (Args { dt: f64::NAN, ..Args::default() }, "--dt NaN"),
        (Args { softening: -1.0, ..Args::default() }, "--softening -1"),
        (Args { softening: 1e-30, ..Args::default() }, "--softening"),
        (Args { gravity: f64::INFINITY, ..Args::default() }, "--gravity"),
        (Args { steps: u64::MAX, ..Args::default() }, "steps"),
        (Args { picture: Some(directory.path().join("a.jpg")), ..Args::default() }, "PNG"),
        (Args { picture: Some(directory.path().join("no/a.png")), ..Args::default() }, "no directory"),
        (csv(directory.path(), "mass,x\n"), "line 1"),
    ];
    for (args, part) in cases {
        let message = testing::refusal(&runtime, &args);
        assert!(message.contains(part), "{message} lacks {part}");
    }
}

#[test]
fn particles_are_not_replaced_by_their_orbits() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = Runtime::new(Options::default()).unwrap();
    let path = directory.path().join("two.csv");
    std::fs::write(&path, "mass,x,y,z,vx,vy,vz\n1,0,0,0,0,0,0\n1,1,0,0,0,0,0\n").unwrap();
    let before = std::fs::read(&path).unwrap();
    let args = Args { particles: Some(path.clone()), steps: 2, ..Args::default() };
    for args in
        [Args { output: Some(path.clone()), ..args.clone() }, Args { energies: Some(path.clone()), ..args.clone() }]
    {
        let ran = args.prepare(&runtime).and_then(|app| runtime.run(&app.job, Settings::default()).map(|_| ()));
        let error = ran.expect_err("the input would be lost").to_string();
        // Arrays are not written under such a name either.
        assert!(error.contains("would replace the input") || error.contains("not as .csv"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_local_store_with_the_rules_of_the_cell_takes_odd_numbers_of_particles() {
    let place = Path::new(".");
    for n in [2, 333, 1001] {
        let args = args(n, 6, 2);
        let strict = runtime_on(machine("ps3", place), None, 2, None);
        let plain = runtime_on(machine("local", place), None, 2, None);
        assert!(snapshots(&strict, &args) == snapshots(&plain, &args), "{n} particles");
    }
}

#[test]
fn a_plan_is_that_of_a_run() {
    let directory = tempfile::tempdir().unwrap();
    for (name, n, steps) in [("disk", 3001, 7), ("disk+local", 4100, 3), ("smp", 517, 20)] {
        let planned = |only_plans| {
            let machine = MachineChoice::Given(Box::new(machine(name, directory.path())));
            let options =
                Options { machine, threads: Some(2), memory_bytes: Some(4 << 20), only_plans, ..Options::default() };
            let runtime = Runtime::new(options).unwrap();
            let app = Args { n: Some(n), steps, ..Args::default() }.prepare(&runtime).unwrap();
            runtime.plan(&app.job).unwrap().plan.to_string()
        };
        assert_eq!(planned(true), planned(false), "{name}, {n} particles");
    }
}

/// What is found without a search needs more here.
#[test]
fn what_fits_with_a_search_is_planned() {
    for (n, steps, bytes) in [(6916, 9, 2_590_515), (5596, 11, 2_095_308)] {
        let machine = MachineChoice::Given(Box::new(machine("server", Path::new("."))));
        let runtime = Runtime::new(Options { machine, memory_bytes: Some(bytes), ..Options::default() }).unwrap();
        let app = Args { n: Some(n), steps, ..Args::default() }.prepare(&runtime).unwrap();
        runtime.plan(&app.job).unwrap();
    }
}
