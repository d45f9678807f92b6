//! Peak resident memory stays below the budget plus 64 MiB, however large the data are. The run is a process of its own,
//! so that its peak is its own.

mod support;

use multigrain::prelude::*;
use multigrain::{MachineChoice, parse_bytes};

const BUDGET: &str = "24 MiB";
const ALLOWANCE_BYTES: u64 = 64 << 20;
/// Each of three arrays has 64 MiB.
const N: u64 = 4096;

/// c = a + b transposed: every block is used once, rows and columns alike.
struct AddTransposed;

impl Task for AddTransposed {
    type Params = (Read<f32, 2>, Read<f32, 2>, Write<f32, 2>);
    fn name(&self) -> &'static str {
        "add transposed"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["a", "b", "c"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        let tunable = |name, d: usize| Tunable { name, extent: call.shapes[2].dims()[d], multiple: 1 };
        vec![tunable("rows", 0), tunable("columns", 1)]
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (m, n) = (call.shapes[2].dims()[0], call.shapes[2].dims()[1]);
        let (rows, columns) = (tunables.get("rows", m), tunables.get("columns", n));
        let sub = |(i, di): (u64, u64), (j, dj): (u64, u64)| {
            let (straight, turned) = (Region::new(&[i, j], &[di, dj]), Region::new(&[j, i], &[dj, di]));
            SubCall::itself([(0, straight), (1, turned), (2, straight)], &call.scalars)
        };
        blocks(m, rows).flat_map(|r| blocks(n, columns).map(move |c| (r, c))).map(|(r, c)| sub(r, c)).collect()
    }
    fn leaf(&self, (a, b, mut c): (View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f32, 2>), _: &mut LeafContext<'_>) {
        for i in 0..c.len(0) {
            c.row_mut(&[i]).copy_from_slice(a.row(&[i]));
        }
        for j in 0..b.len(0) {
            for (i, b) in b.row(&[j]).iter().enumerate() {
                c.row_mut(&[i])[j] += b;
            }
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[2].elements() as f64;
        Work { flops: n, bytes: 12.0 * n }
    }
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

/// The run; does nothing unless the other test starts it in a process of its own.
#[test]
fn run_within_a_budget() {
    let Some(directory) = std::env::var_os("MULTIGRAIN_TEST_BUDGET_DIR").map(std::path::PathBuf::from) else { return };
    let mut program = Program::new();
    let task = program.task(AddTransposed);
    let a = program.array::<f32, 2>("a", [N, N], Role::Input).unwrap();
    let b = program.array::<f32, 2>("b", [N, N], Role::Input).unwrap();
    let c = program.array::<f32, 2>("c", [N, N], Role::Output).unwrap();
    program.call(task, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
    let sink = directory.join("c.npy");
    let job = Job::new("add transposed", program)
        .with_source(a.index(), Source::Generated { seed: 1 })
        .with_source(b.index(), Source::Generated { seed: 2 })
        .with_sink(c.index(), Sink::Npy(sink));
    let machine = support::disk_machine(&directory, 1 << 30, 2, None);
    let options = Options {
        machine: MachineChoice::Given(Box::new(machine)),
        memory_bytes: Some(parse_bytes(BUDGET).unwrap()),
        ..Options::default()
    };
    let outcome = Runtime::new(options).unwrap().run(&job, Settings::default()).unwrap();
    for (i, j) in [(0, 0), (7, 4000), (4095, 4095), (2048, 1)] {
        let found = outcome.read_f32(c.index(), &Region::new(&[i, j], &[1, 1])).unwrap()[0];
        assert_eq!(found, generate::f32_at(1, i * N + j) + generate::f32_at(2, j * N + i));
    }
    println!("peak {}", peak_bytes());
}

#[test]
fn peak_memory_stays_within_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "run_within_a_budget", "--nocapture", "--test-threads=1"])
        .env("MULTIGRAIN_TEST_BUDGET_DIR", directory.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{text}\n{}", String::from_utf8_lossy(&child.stderr));
    let peak: u64 = text.split_once("peak ").unwrap().1.lines().next().unwrap().trim().parse().unwrap();
    let budget = parse_bytes(BUDGET).unwrap();
    eprintln!("peak {peak} bytes of {}", budget + ALLOWANCE_BYTES);
    assert!(3 * 4 * N * N > 2 * (budget + ALLOWANCE_BYTES), "the data would fit: nothing is proved");
    assert!(peak < budget + ALLOWANCE_BYTES, "peak {peak}, budget {budget}");
}
