//! Jobs on files, machines that hold little, and what every proof asks of them.
#![allow(dead_code)]

pub(crate) mod pairs;
pub(crate) mod random;

use multigrain::rooms::machine::{Driver, Edge, Machine, Memory, MemoryId, Processor, ProcessorKind, TransferRules};
use multigrain::rooms::plan::testing::{Combine, Product, Rng, Scale, Stencil, Transpose};
use multigrain::rooms::program::{ElementType, Program, Role, Scalars};
use multigrain::rooms::store::faults::Faults;
use multigrain::rooms::store::{BackendChoice, npy};
use multigrain::{Error, Job, MachineChoice, Mapping, Options, Outcome, Runtime, Settings, Sink, Source};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Transfer buffers, bytes: the least that a disk takes.
pub(crate) const BUFFER_BYTES: u64 = 256 << 10;

/// A disk above a main memory of `dram_bytes` besides transfer buffers; below it cores that share it, and local stores.
pub(crate) fn disk_machine(directory: &Path, dram_bytes: u64, cores: usize, local_bytes: Option<u64>) -> Machine {
    let mut memories = vec![Memory { path: Some(directory.to_owned()), ..Memory::root("disk", 1 << 40) }];
    let disk = Edge { rules: TransferRules::default(), ..Edge::new(Driver::DISK, 2e9, 8e4) };
    memories.push(Memory::child("dram", MemoryId(0), 1, dram_bytes + BUFFER_BYTES, disk));
    add_cores(&mut memories, cores, local_bytes)
}

/// A main memory with cores that share it, and local stores.
pub(crate) fn memory_machine(cores: usize, local_bytes: Option<u64>) -> Machine {
    add_cores(&mut vec![Memory::root("dram", 1 << 30)], cores, local_bytes)
}

fn add_cores(memories: &mut Vec<Memory>, cores: usize, local_bytes: Option<u64>) -> Machine {
    let parent = MemoryId(memories.len() - 1);
    let capacity = memories[parent.0].capacity_bytes;
    memories.push(Memory::child("core", parent, cores, capacity, Edge::new(Driver::SHARED, 2e10, 100.0)));
    if let Some(bytes) = local_bytes {
        let parent = MemoryId(memories.len() - 1);
        memories.push(Memory::child("local", parent, 1, bytes, Edge::new(Driver::LOCAL, 2e10, 100.0)));
    }
    let processor =
        Processor { kind: ProcessorKind::Cpu, flops_per_second: 1e9, call_overhead_ns: 100.0, code_bytes: 0 };
    memories.last_mut().unwrap().processor = Some(processor);
    Machine::new("test", "A machine for tests.", std::mem::take(memories)).unwrap()
}

/// What a runtime of these tests is made with.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) machine: Machine,
    /// Tiles, given so that no run spends its time on choosing them.
    pub(crate) mapping: Mapping,
    pub(crate) backend: BackendChoice,
}

impl Setup {
    pub(crate) fn runtime(&self, faults: Option<Arc<dyn Faults>>) -> Runtime {
        Runtime::new(Options {
            machine: MachineChoice::Given(Box::new(self.machine.clone())),
            backend: self.backend,
            mapping: self.mapping.clone(),
            disk_buffer_bytes: Some(BUFFER_BYTES),
            faults,
            ..Options::default()
        })
        .unwrap()
    }
}

/// A job on files, on a machine.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) setup: Setup,
    pub(crate) job: Job,
    pub(crate) outputs: Vec<PathBuf>,
    directory: tempfile::TempDir,
}

/// One run with the settings of a proof.
pub(crate) fn run(runtime: &Runtime, job: &Job, resume: bool, interval: Option<Duration>) -> Result<Outcome, Error> {
    runtime.run(job, Settings { resume, journal_interval: interval, ..Settings::default() })
}

impl Case {
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The bytes of the results, each under its final name.
    pub(crate) fn results(&self) -> Vec<Vec<u8>> {
        self.outputs
            .iter()
            .map(|path| std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
            .collect()
    }

    /// Names in the directory that are no inputs.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.directory())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with("in"))
            .collect();
        names.sort();
        names
    }

    /// Removes everything but the inputs.
    pub(crate) fn clear(&self) {
        for name in self.left() {
            std::fs::remove_file(self.directory().join(name)).unwrap();
        }
    }

    /// The bytes of an undisturbed run, compared with sequential execution. Leaves nothing behind.
    pub(crate) fn expected(&self) -> Vec<Vec<u8>> {
        let outcome =
            run(&self.setup.runtime(None), &self.job, false, None).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        assert!(outcome.plan.calls.len() >= 4, "{}: {} calls prove little", self.name, outcome.plan.calls.len());
        let results = self.results();
        let mut arrays = self.initial();
        self.job.program().run_sequential(&mut arrays).unwrap();
        let mut number = 0;
        for (decl, bytes) in self.job.arrays().iter().zip(&arrays) {
            if matches!(decl.role, Role::Output | Role::InOut) {
                let found = &results[number];
                assert!(found[found.len() - bytes.len()..] == bytes[..], "{}: {} is wrong", self.name, decl.name);
                number += 1;
            }
        }
        assert_eq!(self.left().len(), self.outputs.len(), "{}: {:?}", self.name, self.left());
        self.clear();
        results
    }

    fn initial(&self) -> Vec<Vec<u8>> {
        self.job
            .arrays()
            .iter()
            .map(|decl| {
                let path = self.directory().join(format!("in-{}.npy", decl.name));
                match std::fs::read(path) {
                    Ok(content) => content[content.len() - decl.bytes() as usize..].to_vec(),
                    Err(_) => vec![0; decl.bytes() as usize],
                }
            })
            .collect()
    }
}

/// A directory for thousands of short runs: in memory where there is such a file system, because there every flush of
/// a disk takes milliseconds. `MULTIGRAIN_TEST_DIR` names another.
pub(crate) fn directory() -> tempfile::TempDir {
    let given = std::env::var_os("MULTIGRAIN_TEST_DIR").map(PathBuf::from);
    let memory = PathBuf::from("/dev/shm");
    match given.or_else(|| memory.is_dir().then_some(memory)) {
        Some(parent) => tempfile::tempdir_in(parent).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

/// Tiles for the tasks of a program on a machine.
fn mapping(program: &Program, machine: &Machine) -> Mapping {
    let mut mapping = Mapping::default();
    let has_task = |name: &str| program.tasks().iter().any(|task| task.name() == name);
    let has_local = machine.memories().iter().any(|memory| memory.name == "local");
    for task in ["product", "product update"].into_iter().filter(|_| has_task("product")) {
        for (name, dram, core) in [("m", 30, 15), ("n", 35, 35), ("k", 48, 48)] {
            mapping.set(task, "dram", name, dram);
            mapping.set(task, "core", name, core);
        }
    }
    for (task, dram, core) in [
        ("scale", [16, 48], [8, 48]),
        ("combine", [14, 25], [7, 25]),
        ("stencil", [14, 25], [7, 25]),
        ("transpose", [14, 25], [7, 25]),
    ]
    .into_iter()
    .filter(|(task, ..)| has_task(task))
    {
        for (d, name) in ["d0", "d1"].into_iter().enumerate() {
            mapping.set(task, "dram", name, dram[d]);
            mapping.set(task, "core", name, core[d]);
            if has_local {
                mapping.set(task, "local", name, [4, 16][d]);
            }
        }
    }
    mapping
}

/// A job from a program: every input and every array that is updated is read from a .npy file of random small numbers,
/// every result goes to one.
pub(crate) fn case(
    name: &'static str,
    program: Program,
    machine: impl FnOnce(&Path) -> Machine,
    backend: BackendChoice,
) -> Case {
    let directory = directory();
    let mut rng = Rng::new(7);
    let mut job = Job::new(name, program);
    let mut outputs = Vec::new();
    for (i, decl) in job.arrays().to_vec().iter().enumerate() {
        assert_eq!(decl.element, ElementType::F32);
        if matches!(decl.role, Role::Input | Role::InOut) {
            let path = directory.path().join(format!("in-{}.npy", decl.name));
            let mut content = npy::write(decl.element, decl.shape.dims()).unwrap();
            for _ in 0..decl.shape.elements() {
                content.extend(((rng.below(33) as f32 - 16.0) / 8.0).to_le_bytes());
            }
            std::fs::write(&path, content).unwrap();
            job = job.with_source(i, Source::Npy(path));
        }
        if matches!(decl.role, Role::Output | Role::InOut) {
            let path = directory.path().join(format!("{}.npy", decl.name));
            job = job.with_sink(i, Sink::Npy(path.clone()));
            outputs.push(path);
        }
    }
    let machine = machine(directory.path());
    let mapping = mapping(job.program(), &machine);
    Case { name, setup: Setup { machine, mapping, backend }, job, outputs, directory }
}

/// A product whose k is split: blocks of c are read and written again, or kept.
pub(crate) fn product(backend: BackendChoice) -> Case {
    let mut program = Program::new();
    let task = program.task(Product::<f32>::default());
    let a = program.array::<f32, 2>("a", [60, 90], Role::Input).unwrap();
    let b = program.array::<f32, 2>("b", [90, 70], Role::Input).unwrap();
    let c = program.array::<f32, 2>("c", [60, 70], Role::Output).unwrap();
    program.call(task, (a.all(), b.all(), c.all()), Scalars::new()).unwrap();
    case("product", program, |d| disk_machine(d, 24 << 10, 2, None), backend)
}

/// An update in place, by blocks.
pub(crate) fn update(backend: BackendChoice) -> Case {
    let mut program = Program::new();
    let task = program.task(Scale::<f32, 2>::default());
    let x = program.array::<f32, 2>("x", [64, 96], Role::InOut).unwrap();
    let a = program.array::<f32, 2>("a", [64, 96], Role::Input).unwrap();
    program.call(task, (x.all(), a.all()), Scalars::new()).unwrap();
    case("update", program, |d| disk_machine(d, 16 << 10, 2, Some(4 << 10)), backend)
}

/// Several calls with results that are written twice, a temporary that does not fit, and two results.
pub(crate) fn pipeline(backend: BackendChoice) -> Case {
    let mut program = Program::new();
    let combine = program.task(Combine::<f32, 2>::default());
    let scale = program.task(Scale::<f32, 2>::default());
    let stencil = program.task(Stencil::<f32>::default());
    let transpose = program.task(Transpose::<f32>::default());
    let shape = [40, 50];
    let a = program.array::<f32, 2>("a", shape, Role::Input).unwrap();
    let x = program.array::<f32, 2>("x", shape, Role::InOut).unwrap();
    let t = program.array::<f32, 2>("t", shape, Role::Temporary).unwrap();
    let y = program.array::<f32, 2>("y", [50, 40], Role::Output).unwrap();
    let none = Scalars::new;
    program.call(scale, (x.all(), a.all()), none()).unwrap();
    program.call(stencil, (x.all(), t.all()), none().with_u64(0).with_u64(0)).unwrap();
    program.call(transpose, (t.all(), y.all()), none()).unwrap();
    program.call(scale, (x.all(), t.all()), none()).unwrap();
    let (top, bottom) = (y.block([0, 0], [25, 40]), y.block([25, 0], [25, 40]));
    program.call(scale, (top, bottom), none()).unwrap();
    program.call(combine, (t.all(), a.all(), x.block([0, 0], shape)), none().with_u64(2)).unwrap();
    program.call(scale, (x.all(), a.all()), none()).unwrap();
    case("pipeline", program, |d| disk_machine(d, 12 << 10, 2, None), backend)
}

/// Every job of these proofs.
pub(crate) fn cases(backend: BackendChoice) -> Vec<Case> {
    vec![product(backend), update(backend), pipeline(backend)]
}

/// io_uring where it can be had, and the pool.
pub(crate) fn backends() -> Vec<BackendChoice> {
    vec![BackendChoice::Auto, BackendChoice::Pool]
}
