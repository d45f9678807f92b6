//! What is said of memory before a run against what the run allocates.

#[path = "all/support/mod.rs"]
mod support;

use multigrain::Abort;
use multigrain_phylo::app::{Needs, prepare, run};
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use support::program::{Silent, args, evolved, folder, path};

/// Counts what is allocated.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// With what an allocator keeps of each allocation.
fn taken(bytes: usize) -> usize {
    bytes.max(24) + 8
}

fn more(bytes: usize) {
    let held = HELD.fetch_add(taken(bytes), Relaxed) + taken(bytes);
    MOST.fetch_max(held, Relaxed);
}

// SAFETY: all is done by the system's allocator, with what it was called with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(taken(layout.size()), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // What is aligned to more than the system's allocator does by itself is there twice while it is copied.
        if layout.align() > 16 {
            more(size);
            HELD.fetch_sub(taken(layout.size()), Relaxed);
        } else {
            HELD.fetch_sub(taken(layout.size()), Relaxed);
            more(size);
        }
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// One measurement at a time: the counters are those of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `call` returns, and the most that it had at once.
fn most<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = call();
    (result, (MOST.load(Relaxed) - before) as u64)
}

/// Whole runs: what is allocated, and what was said before, without the program itself; and what of that is for threads.
fn compared(typed: &[&str]) -> [u64; 3] {
    let ([stated, of_threads], taken) = most(|| {
        let args = args(typed);
        let mut prepared = prepare(&args).unwrap();
        let scheduler = args.scheduler(&mut prepared).unwrap();
        let (needs, options) = (Needs::of(&prepared), scheduler.options());
        run(&prepared, &scheduler, Arc::new(Abort::new()), &Silent).unwrap();
        let missing = needs.vectors - prepared.vectors;
        let stated = needs.without(missing, options.strands_max.unwrap(), options.workers) - Needs::OWN_BYTES;
        [stated, needs.thread * options.workers as u64]
    });
    [taken, stated, of_threads]
}

/// Of so little nothing need be said.
const SMALL: u64 = 512 << 10;

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Fixed,
    Fitted,
    Fast,
    Search,
    Bootstraps,
    Ultrafast,
    Corrected,
    Tested,
    Chosen,
}

const ALL: [What; 9] = [
    What::Fixed,
    What::Fitted,
    What::Fast,
    What::Search,
    What::Bootstraps,
    What::Ultrafast,
    What::Corrected,
    What::Tested,
    What::Chosen,
];

/// Runs `what` on data of this shape.
fn shape(what: What, taxa: usize, sites: usize, partitions: usize, is_unlinked: bool, is_short: bool) -> [u64; 3] {
    let letters = evolved(taxa, sites);
    let ranges = (0..partitions).map(|p| format!("{}-{}", p * sites / partitions + 1, (p + 1) * sites / partitions));
    let model = if what == What::Fixed { "JC" } else { "HKY+G4" };
    let of = |(p, range): (usize, String)| match what {
        What::Chosen => format!("DNA, p{p} = {range}\n"),
        _ => format!("{model}, p{p} = {range}\n"),
    };
    let file: String = ranges.enumerate().map(of).collect();
    let names: Vec<String> = letters.lines().skip(1).map(|l| l.split(' ').next().unwrap().to_owned()).collect();
    let (tree, folder) = (format!("({}:0.1);", names.join(":0.1,")), folder(&[("a.phy", &letters), ("p.txt", &file)]));
    std::fs::write(folder.path().join("t.nwk"), tree).unwrap();
    let [alignment, partition_file, tree] = ["a.phy", "p.txt", "t.nwk"].map(|name| path(folder.path(), name));
    let mut typed = vec![&*alignment, "--threads", "2", "--force"];
    match what {
        What::Fixed => typed.extend(["--evaluate", &tree, "--fixed"]),
        What::Fitted => typed.extend(["--evaluate", &tree]),
        What::Fast => typed.push("--fast"),
        What::Search => typed.extend(["--searches", "1"]),
        What::Bootstraps => typed.extend(["--fast", "--bootstraps", "4"]),
        What::Ultrafast => typed.extend(["--fast", "--ufboot", "200"]),
        What::Corrected => typed.extend(["--fast", "--ufboot", "60", "--bnni"]),
        What::Tested => typed.extend(["--evaluate", &tree, "--alrt", "50"]),
        What::Chosen => typed.extend(["--evaluate", &tree, "--model", "auto"]),
    }
    match partitions {
        1 if what != What::Chosen => typed.extend(["--model", model]),
        1 => {}
        _ => typed.extend(["--partitions", &partition_file]),
    }
    if is_unlinked && partitions > 1 {
        typed.extend(["--branches", "unlinked"]);
    }
    let needs = |typed: &[&str]| Needs::of(&prepare(&args(typed)).unwrap());
    let least = needs(&typed).least_bytes(2).to_string();
    if is_short {
        typed.extend(["--memory", &least]);
    }
    compared(&typed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// No run allocates more than was said before it, and what was said is not much more than twice what it allocates.
    #[test]
    fn memory_is_what_was_stated(
        what in prop::sample::select(&ALL[..]), size in 0usize..40, sites in 100usize..400, partitions in 1usize..4,
        is_unlinked in any::<bool>(), is_short in any::<bool>(),
    ) {
        let _alone = alone();
        let (taxa, sites) = match what {
            // Of many taxa and a chunk or two of patterns: each is a large part of what there is.
            What::Fixed | What::Fast => (100 + 5 * size, 20 + sites / 4),
            What::Chosen => (6, sites),
            What::Search | What::Ultrafast | What::Corrected => (10 + size / 4, 4 * sites),
            _ => (20 + size, 2 * sites),
        };
        let [taken, stated, of_threads] = shape(what, taxa, sites, partitions, is_unlinked, is_short);
        prop_assert!(taken <= stated + stated / 20 + SMALL, "{} bytes taken, {} stated", taken, stated);
        // Of threads it is said what each takes that makes the matrices of a whole tree.
        let most = 2 * taken + of_threads + SMALL;
        prop_assert!(stated <= most, "{} bytes stated, {} taken", stated, taken);
    }
}

/// An alignment is read where there is just enough memory for it, plain and compressed, and refused with a word where there is
/// not; neither takes more than there is.
#[test]
fn reading_keeps_to_its_memory() {
    let _alone = alone();
    let (phylip, fasta) = (evolved(40, 30_000), {
        let letters = evolved(40, 30_000);
        let lines = letters.lines().skip(1).map(|line| line.split_once(' ').unwrap());
        let text = |(name, row): (&str, &str)| {
            let rows: Vec<&str> = (0..row.len()).step_by(60).map(|at| &row[at..(at + 60).min(row.len())]).collect();
            format!(">{name}\n{}\n", rows.join("\n"))
        };
        lines.map(text).collect::<String>()
    });
    // One letter a line.
    let lines = || phylip.lines().skip(1).map(|line| line.split_once(' ').unwrap());
    let column = |row: &str| row.chars().flat_map(|letter| [letter, '\n']).collect::<String>();
    let narrow: String = lines().map(|(name, row)| format!(">{name}\n{}", column(row))).collect();
    let tall: String = lines().map(|(name, row)| format!("{name} {}", column(row))).collect();
    let tall = format!("40 30000\n{tall}");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(phylip.as_bytes()).unwrap();
    let folder = folder(&[("a.phy", &phylip), ("a.fa", &fasta), ("narrow.fa", &narrow), ("narrow.phy", &tall)]);
    std::fs::write(folder.path().join("a.gz"), packed.finish().unwrap()).unwrap();
    for name in ["a.phy", "a.fa", "a.gz", "narrow.fa", "narrow.phy"] {
        let alignment = path(folder.path(), name);
        let read = |memory: u64| prepare(&args(&[&alignment, "--model", "JC", "--memory", &memory.to_string()]));
        let needs = Needs::of(&read(1 << 40).unwrap());
        let (prepared, taken) = most(|| read(needs.reading).map(|prepared| prepared.sites));
        let room = needs.reading - Needs::OWN_BYTES;
        assert_eq!(prepared.unwrap(), 30_000);
        assert!(taken <= room + SMALL && 2 * taken > room, "{name}: {taken} bytes taken, {room} stated");
        let (refused, _) = most(|| read(needs.reading - 1).map(|_| ()).unwrap_err());
        assert!(refused.exit_status() == 2 && refused.to_string().contains("ask for more --memory"), "{refused}");
        let letters = phylip.len() as u64;
        let (refused, taken) = most(|| read(Needs::OWN_BYTES + letters / 2).map(|_| ()).unwrap_err());
        assert!(taken <= letters / 2 + SMALL, "{name}: {taken} bytes taken");
        assert!(refused.to_string().contains("ask for more --memory"), "{refused}");
    }
    // Of a compressed one it is said what it takes with its text.
    let length = std::fs::metadata(folder.path().join("a.gz")).unwrap().len();
    let memory = (Needs::OWN_BYTES + phylip.len() as u64 + length / 2).to_string();
    let refused = prepare(&args(&[&path(folder.path(), "a.gz"), "--model", "JC", "--memory", &memory])).unwrap_err();
    let refused = refused.to_string();
    let between = |from: &str, to: &str| refused.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned();
    let sizes = [between(" takes ", " of memory"), between("there are ", ":")].map(|size| {
        let exact = size.rsplit_once('(').map_or(&*size, |(_, exact)| exact.trim_end_matches(')'));
        multigrain::parse_bytes(exact).unwrap()
    });
    assert!(sizes[0] > sizes[1], "{refused}");
}
