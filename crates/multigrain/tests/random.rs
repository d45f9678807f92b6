//! Random programs on random machines: the plan passes the independent checker, and the run gives the very bytes that
//! sequential execution gives.

use multigrain::rooms::plan::check::{check, edge_rules};
use multigrain::rooms::plan::testing::{random_bytes, random_machine, random_program};
use multigrain::rooms::program::{Region, Role};
use multigrain::{Error, Job, MachineChoice, Options, Runtime, Settings, Source};

fn one(seed: u64) -> Result<bool, Box<dyn std::error::Error>> {
    let program = random_program(seed);
    let directory = tempfile::tempdir()?;
    let mut machine = random_machine(seed);
    if machine.memory(machine.root()).path.is_some() || machine.memory(machine.root()).name == "disk" {
        let name = machine.memory(machine.root()).name.clone();
        machine = machine.with(&name, |m| m.path = Some(directory.path().to_owned()))?;
    }
    let bytes = random_bytes(&program, seed);
    let mut job = Job::new("random", program.clone());
    for (i, decl) in program.arrays().iter().enumerate() {
        if matches!(decl.role, Role::Input | Role::InOut) {
            job = job.with_source(i, Source::Bytes(bytes[i].clone()));
        }
    }
    let options = Options {
        machine: MachineChoice::Given(Box::new(machine.clone())),
        disk_buffer_bytes: Some(256 << 10),
        ..Options::default()
    };
    let runtime = Runtime::new(options)?;
    let planned = match runtime.plan(&job) {
        Ok(planned) => planned,
        Err(Error::Plan(e)) if e.to_string().contains("does not fit") => return Ok(false),
        Err(Error::Request(e)) if e.contains("does not fit") => return Ok(false),
        Err(e) => return Err(e.into()),
    };
    check(&planned.plan, &edge_rules(&planned.machine)?)?;
    let outcome = runtime.run(&job, Settings::default())?;
    let mut expected = bytes;
    program.run_sequential(&mut expected)?;
    for (i, decl) in program.arrays().iter().enumerate() {
        if matches!(decl.role, Role::Output | Role::InOut) {
            let found = outcome.read(i, &Region::whole(decl.shape))?;
            if found != expected[i] {
                return Err(
                    format!("array {} differs on machine {}\n{}", decl.name, machine.to_toml(), planned.plan).into()
                );
            }
        }
    }
    Ok(true)
}

#[test]
fn runs_equal_sequential_execution() {
    let first: u64 = std::env::var("MULTIGRAIN_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let count: u64 = std::env::var("MULTIGRAIN_CASES").ok().and_then(|s| s.parse().ok()).unwrap_or(200);
    let mut ran = 0;
    for seed in first..first + count {
        match one(seed) {
            Ok(fits) => ran += u64::from(fits),
            Err(e) => panic!("seed {seed} (MULTIGRAIN_SEED={seed} MULTIGRAIN_CASES=1 repeats it): {e}"),
        }
    }
    assert!(count < 100 || ran * 2 > count, "only {ran} of {count} random cases fit: the generator proves too little");
    eprintln!("{ran} of {count} cases ran");
}
