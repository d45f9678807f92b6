//! The tasks: the same bytes on every machine and however blocks are cut.

use multigrain::prelude::*;
use multigrain::rooms::plan::testing::Rng;
use multigrain::testing;
use multigrain_hmmer::filter::{self, Filters};
use multigrain_hmmer::generate;
use multigrain_hmmer::kernel::NODE_FLOATS;
use multigrain_hmmer::profile::Profile;
use multigrain_hmmer::task::{Filter, SCORES, Score, whole};
use multigrain_simd::Isa;
use std::path::Path;
use std::sync::Arc;

/// Sequences of many lengths and two random profiles; tables are any numbers that are not negative.
fn job(seed: u64) -> Job {
    let mut rng = Rng::new(seed);
    let count = rng.range(1, 200);
    let mut offsets = vec![0];
    for _ in 0..count {
        let most = if rng.percent(5) { 3000 } else { 60 };
        offsets.push(offsets[offsets.len() - 1] + rng.range(1, most));
    }
    let total = offsets[count as usize];
    let residues: Vec<u8> = (0..total).map(|_| rng.range(0, 28) as u8).collect();
    let offsets: Arc<Vec<u64>> = offsets.into();
    let mut program = Program::new();
    let (task, filter) = (Score::new(Isa::detect(), offsets.clone()), Filter::new(Isa::detect(), offsets));
    let isa = filter.isa();
    let (task, filter) = (program.task(task), program.task(filter));
    let array = program.array::<u8, 1>("residues", [total], Role::Input).unwrap();
    let mut sources = vec![Source::Bytes(residues)];
    let mut indices = vec![array.index()];
    for i in 0..2 {
        let nodes = rng.range(1, 40);
        let tables: Vec<u8> = (0..nodes * NODE_FLOATS as u64)
            .flat_map(|_| (rng.range(0, 1 << 20) as f32 / (3 << 19) as f32).to_le_bytes())
            .collect();
        let profile =
            program.array::<f32, 1>(&format!("profile {i}"), [nodes * NODE_FLOATS as u64], Role::Input).unwrap();
        let scores = program.array::<f64, 2>(&format!("scores {i}"), [count, SCORES], Role::Output).unwrap();
        program.call(task, (array.all(), profile.all(), scores.all()), whole()).unwrap();
        sources.push(Source::Bytes(tables));
        indices.push(profile.index());
    }
    let text = generate::profile(seed, rng.range(1, 40) as usize);
    let made = &Profile::parse(text.as_bytes(), Path::new("made")).unwrap()[0];
    // Thresholds that let some of the sequences pass each filter.
    let tables = filter::pack(isa, made, &Filters { msv: 0.9, viterbi: 0.5, ..Filters::default() });
    let profile = program.array::<u8, 1>("tables", [tables.len() as u64], Role::Input).unwrap();
    let stages = program.array::<u8, 1>("stages", [count], Role::Output).unwrap();
    program.call(filter, (array.all(), profile.all(), stages.all()), whole()).unwrap();
    sources.push(Source::Bytes(tables));
    indices.push(profile.index());
    let job = Job::new("hmmer", program);
    indices.into_iter().zip(sources).fold(job, |job, (index, source)| job.with_source(index, source))
}

#[test]
fn every_machine_gives_the_bytes_of_sequential_execution() {
    let directory = tempfile::tempdir().unwrap();
    let mut ran = 0;
    for seed in 0..60 {
        let runtime = testing::runtime(testing::machine(seed, 16, directory.path()).unwrap()).unwrap();
        let outcome = testing::run_and_compare(&runtime, &job(seed)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        ran += usize::from(outcome.is_some());
    }
    assert!(ran > 20, "only {ran} of 60 cases fit");
}

#[test]
fn blocks_of_blocks_equal_the_whole() {
    for seed in 0..60 {
        let job = job(seed);
        let (mut whole, mut split) = (testing::initial_bytes(&job), testing::initial_bytes(&job));
        job.program().run_sequential(&mut whole).unwrap();
        testing::run_split(job.program(), &mut split, 1 + seed as usize % 4, seed);
        assert!(whole == split, "seed {seed}");
    }
}
