//! Elements of odd sizes, in little memory and in much, and what is read of them afterwards.

use multigrain::prelude::*;
use std::sync::Arc;

/// Three numbers: a size that divides no power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
struct Triple([f32; 3]);

// SAFETY: three numbers without padding, of which each bit pattern is one.
unsafe impl Element for Triple {
    const NAME: &'static str = "triple";
    const DESCR: &'static str = "<V12";
}

/// Larger than the pieces in which arrays are filled.
#[derive(Clone, Copy)]
#[repr(C)]
struct Page([u64; 3 << 16]);

impl Default for Page {
    fn default() -> Page {
        Page([0; 3 << 16])
    }
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}..", &self.0[..4])
    }
}

// SAFETY: numbers without padding, of which each bit pattern is one.
unsafe impl Element for Page {
    const NAME: &'static str = "page";
    const DESCR: &'static str = "<V1572864";
}

#[task(axes(i))]
fn copy(#[at(i)] x: Read<Triple, 1>, #[at(i)] y: Write<Triple, 1>) {
    for i in 0..y.len(0) {
        y[[i]] = x[[i]];
    }
}

#[task(axes(i))]
fn look(#[at(i)] x: Update<Page, 1>) {
    let _ = x.len(0);
}

/// A copy of generated triples, and the number of its result.
fn triples(n: u64) -> (Job, usize) {
    let mut program = Program::new();
    let task = program.task(copy);
    let x = program.array::<Triple, 1>("x", [n], Role::Input).unwrap();
    let y = program.array::<Triple, 1>("y", [n], Role::Output).unwrap();
    program.call(task, (x.all(), y.all()), Scalars::new()).unwrap();
    (Job::new("triples", program).with_source(x, Source::Generated { seed: 1 }), y.index())
}

#[test]
fn generated_elements_do_not_depend_on_the_memory() {
    let n = 300_000;
    let (job, y) = triples(n);
    let run = |memory: &str| {
        let outcome = Runtime::with_memory(memory).unwrap().run(&job, Settings::default()).unwrap();
        outcome.read(y, &Region::new(&[0], &[n])).unwrap()
    };
    let (much, little) = (run("64 MiB"), run("1 MiB"));
    assert!(much == little);
    let zeros = much.chunks_exact(12).filter(|element| **element == [0; 12]).count();
    assert!(zeros < 10, "{zeros} elements of {n} are zero");
}

#[test]
fn elements_may_be_longer_than_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..4 * size_of::<Page>()).map(|i| (i % 251) as u8).collect();
    let path = folder.path().join("pages");
    std::fs::write(&path, &bytes).unwrap();
    let mut program = Program::new();
    let task = program.task(look);
    let x = program.array::<Page, 1>("x", [4], Role::InOut).unwrap();
    program.call(task, (x.all(),), Scalars::new()).unwrap();
    let job = Job::new("pages", program).with_source(x, Source::Raw(path));
    for memory in ["64 MiB", "6 MiB"] {
        let outcome = Runtime::with_memory(memory).unwrap().run(&job, Settings::default()).unwrap();
        assert!(outcome.read(x.index(), &Region::new(&[0], &[4])).unwrap() == bytes, "{memory}");
    }
}

/// The plan that an outcome shows is its owner's; it once told how long a buffer is that a file fills.
#[test]
fn results_are_read_as_they_were_made_whatever_plan_is_shown() {
    let n = 1 << 16;
    let (job, y) = triples(n);
    let mut outcome = Runtime::with_memory("1 MiB").unwrap().run(&job, Settings::default()).unwrap();
    let whole = Region::new(&[0], &[n]);
    let before = outcome.read(y, &whole).unwrap();
    let mut plan = (*outcome.plan).clone();
    plan.arrays[y].element = ElementType::U8;
    outcome.plan = Arc::new(plan);
    assert!(outcome.read(y, &whole).unwrap() == before);
}
