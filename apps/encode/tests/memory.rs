//! What a run asks the system for before it begins is what its pictures take, and it does not grow with how many come.

use multigrain::Abort;
use multigrain::strands::Policy;
use multigrain_encode::encoder::Options;
use multigrain_encode::headers::{Profile, Ratio, Structure};
use multigrain_encode::input::{Input, Raw};
use multigrain_encode::levels::Taken;
use multigrain_encode::output::{Container, Output};
use multigrain_encode::picture::{Picture, Size};
use multigrain_encode::rate::{Keys, Rate};
use multigrain_encode::run::{Cut, Execution, run};
use multigrain_encode::search::Effort;
use multigrain_simd::Isa;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{BufReader, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The system's allocator, and bytes that it has given, and the most of these so far.
struct Counted;

static GIVEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// What this thread was given, less what it gave back, modulo the word size: others, such as the test runner's, allocate beside it.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// One test at a time.
static COUNTS: Mutex<()> = Mutex::new(());

// SAFETY: what the system's allocator gives and takes.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let given = GIVEN.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(given, Ordering::Relaxed);
        OWN.set(OWN.get().wrapping_add(layout.size()));
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        GIVEN.fetch_sub(layout.size(), Ordering::Relaxed);
        OWN.set(OWN.get().wrapping_sub(layout.size()));
        // SAFETY: by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static MEMORY: Counted = Counted;

#[test]
fn pictures_take_what_is_told() {
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Of 720p: one alone, and with what is found in each of sixteen others.
    for (references, size) in [1, 2, 16].into_iter().zip([(1280, 720), (98, 66), (640, 272)]) {
        let size = Size { width: size.0, height: size.1 };
        let before = OWN.get();
        let picture = Picture::new(size, references);
        let taken = OWN.get().wrapping_sub(before);
        let told = Picture::bytes(size, references);
        // The list of fields is all that is beside it.
        assert!(told <= taken && taken < told + 4096, "{size:?}, {references}: {told} bytes are told, {taken} taken");
        drop(picture);
    }
}

/// Samples that look random, the same every time.
struct Noise(u32);

impl Read for Noise {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        for sample in buffer.iter_mut() {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *sample = (self.0 >> 24) as u8;
        }
        Ok(buffer.len())
    }
}

#[test]
fn memory_does_not_grow_with_the_number_of_pictures() {
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    // High enough for several to be under way at once.
    let size = Size { width: 32, height: 512 };
    let rate = Ratio { over: 25, under: 1 };
    let folder = tempfile::tempdir().unwrap();
    let effort = Effort { steps: 1, fine: 2, has_parts: false, skips_first: true, enough: 64, intra: 5 };
    let most = |pictures: u64, threads: usize, options: Options| {
        let from = BufReader::new(Noise(1).take(pictures * size.bytes() as u64));
        let mut input = Input::open(Box::new(from), "noise", Some(Raw { size, rate }), |said| said).unwrap();
        let taken = Taken::new(&input.properties(), options.structure.kept());
        let output = Output::file(&folder.path().join("out.mp4"), Container::Mp4, taken, None).unwrap();
        let (policy, isa) = (Policy::Marginal, Isa::detect());
        let execution = Execution { threads, policy, isa, trace: false, cut: Cut::Rows };
        let before = GIVEN.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let finished = run(&mut input, (output, None), options, &execution, &Abort::new(), &|_| ()).unwrap();
        assert_eq!(finished.pictures, pictures);
        MOST.load(Ordering::Relaxed) - before
    };
    let keys = Keys { interval: 100, at_cuts: false };
    let plain =
        Options { rate: Rate::Constant(40), keys, effort, profile: Profile::Baseline, structure: Structure::PLAIN };
    let structure = Structure { references: 2, long: 1, bidirectional: 2 };
    let both = Options { rate: Rate::Bits(1e6), profile: Profile::Main, structure, ..plain };
    for options in [plain, both] {
        // One thread takes the same each time; of two, one may be further ahead. Files have an index, of some bytes a picture.
        for (threads, ahead) in [(1, 0), (2, 4)] {
            let [few, many] = [60, 300].map(|pictures| most(pictures, threads, options));
            let picture = Picture::bytes(size, options.structure.kept()) + size.bytes();
            let index = 240 * 64;
            assert!(many <= few + index + ahead * picture, "{threads} threads, {options:?}: {few} and {many} bytes");
        }
    }
}
