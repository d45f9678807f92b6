//! Outputs appear whole or not at all; every operation fails once; a run is killed at every moment.

use crate::support;

use std::sync::{Arc, Mutex};

use multigrain_store::faults::{Count, DieAt, FailAt, FailKind, Faults, Operation, Verdict};
use multigrain_store::{
    BackendChoice, Direction, Disk, ElementType, Journal, OperationKind, Record, StoreError, TransferList,
};
use support::*;

const SHAPE: [u64; 2] = [150, 333];
/// What a run writes, as (start, length): whole blocks with odd ends, and rows that share their blocks.
const WRITTEN: [([u64; 2], [u64; 2]); 3] = [([0, 0], [140, 333]), ([140, 0], [10, 100]), ([140, 100], [10, 233])];

/// A small run: reads an input, writes it in unaligned parts to an output beside a journal, publishes.
fn run(disk: &Disk, scratch: &Scratch) -> Result<(), StoreError> {
    let input = disk.open_npy(scratch.path("in.npy"))?;
    let bytes = read_all(disk, &input)?;
    let output = disk.create_npy(scratch.path("out.npy"), ElementType::F32, &SHAPE, false)?;
    let written = write_parts(disk, scratch, &output, &bytes);
    if written.is_err() {
        disk.discard(&output);
    }
    written
}

fn write_parts(
    disk: &Disk,
    scratch: &Scratch,
    output: &multigrain_store::ArrayFile,
    bytes: &[u8],
) -> Result<(), StoreError> {
    let name = Journal::path_for(&scratch.path("out.npy"));
    let mut journal = Journal::create(disk, &name, "shape 7")?;
    let mut steps = || {
        for (number, (start, len)) in WRITTEN.iter().enumerate() {
            let first = (start[0] * SHAPE[1] + start[1]) as usize * 4;
            let memory = bytes.as_ptr().cast_mut().wrapping_add(first);
            let list = TransferList::block(output, Direction::Write, start, len, memory, SHAPE[1] * 4, "part".into())?;
            // SAFETY: the bytes outlive the wait.
            disk.wait(unsafe { disk.submit(list) })?;
            disk.sync(output)?;
            journal.append(disk, &[Record { kind: 1, a: number as u64, b: 0 }])?;
        }
        disk.publish(output)
    };
    let result = steps();
    journal.remove(disk);
    result
}

fn prepare(scratch: &Scratch) -> Vec<u8> {
    let disk = disk(BackendChoice::Auto);
    let bytes = Random::new(20).bytes((SHAPE[0] * SHAPE[1] * 4) as usize);
    let input = disk.create_npy(scratch.path("in.npy"), ElementType::F32, &SHAPE, false).unwrap();
    write_all(&disk, &input, &bytes).unwrap();
    disk.publish(&input).unwrap();
    bytes
}

/// Either there is no output, or it is the whole one.
fn output_is_whole_or_absent(scratch: &Scratch, bytes: &[u8]) -> bool {
    match std::fs::read(scratch.path("out.npy")) {
        Ok(found) => {
            assert!(found[4096..] == *bytes);
            true
        }
        Err(_) => false,
    }
}

fn operations(backend: BackendChoice, scratch: &Scratch) -> u64 {
    let count = Arc::new(Count::new());
    run(&disk_with(backend, count.clone()).unwrap(), scratch).unwrap();
    std::fs::remove_file(scratch.path("out.npy")).unwrap();
    count.operations()
}

#[test]
fn every_operation_fails_once() {
    let scratch = Scratch::new();
    let bytes = prepare(&scratch);
    for backend in backends() {
        let total = operations(backend, &scratch);
        assert!(total > 20);
        for n in 0..total {
            for errno in [libc::EIO, libc::ENOSPC] {
                let disk = disk_with(backend, Arc::new(FailAt { n, errno })).unwrap();
                let result = run(&disk, &scratch);
                drop(disk);
                let published = output_is_whole_or_absent(&scratch, &bytes);
                match result {
                    Ok(()) => assert!(published, "operation {n} of {total}"),
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.contains("in.npy") || text.contains("out.npy"), "{text}");
                        let kept: Vec<String> =
                            scratch.names().into_iter().filter(|n| n != "in.npy" && n != "out.npy").collect();
                        assert!(kept.is_empty(), "operation {n}: {text} leaves {kept:?}");
                    }
                }
                for name in scratch.names().iter().filter(|n| *n != "in.npy") {
                    std::fs::remove_file(scratch.path(name)).unwrap();
                }
            }
        }
    }
}

/// Kills a run, and remembers what it was denied.
struct Death {
    at: DieAt,
    denied: Mutex<Vec<OperationKind>>,
}

impl Faults for Death {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let verdict = self.at.before(operation);
        if verdict == Verdict::Dead {
            self.denied.lock().unwrap().push(operation.kind);
        }
        verdict
    }
}

#[test]
fn killed_at_every_moment() {
    let scratch = Scratch::new();
    let bytes = prepare(&scratch);
    for backend in backends() {
        let total = operations(backend, &scratch);
        for n in 0..total {
            let death = Arc::new(Death { at: DieAt { n }, denied: Mutex::default() });
            let disk = disk_with(backend, death.clone()).unwrap();
            let result = run(&disk, &scratch);
            // How many operations there are depends on what completes together, so a run may be done before it is killed,
            // or be killed before its last one, the removal of a journal that nobody needs any more.
            let denied = death.denied.lock().unwrap().clone();
            let too_late = denied.is_empty() || denied == [OperationKind::Remove];
            assert!(
                matches!(result, Err(StoreError::Dead)) || too_late,
                "{n} of {total}: {result:?}, although denied {denied:?}"
            );
            if denied.is_empty() {
                assert!(output_is_whole_or_absent(&scratch, &bytes));
                std::fs::remove_file(scratch.path("out.npy")).unwrap();
                continue;
            }
            // The dead do nothing, clean-up included.
            let before = scratch.names();
            assert!(matches!(
                disk.create_raw(scratch.path("more"), ElementType::U8, &[1], false),
                Err(StoreError::Dead)
            ));
            drop(disk);
            assert_eq!(scratch.names(), before);
            output_is_whole_or_absent(&scratch, &bytes);
            // The next run is not hindered by what is left.
            let disk = support::disk(backend);
            run(&disk, &scratch).unwrap();
            assert!(output_is_whole_or_absent(&scratch, &bytes));
            assert_eq!(scratch.names(), ["in.npy", "out.npy"]);
            std::fs::remove_file(scratch.path("out.npy")).unwrap();
        }
    }
}

#[test]
fn a_full_disk_is_told_before_any_work() {
    let scratch = Scratch::new();
    let faults = Arc::new(FailKind::new(OperationKind::Allocate, 0, libc::ENOSPC));
    let disk = disk_with(BackendChoice::Auto, faults).unwrap();
    let error = disk.create_npy(scratch.path("big.npy"), ElementType::F64, &[1000, 1000], false).unwrap_err();
    let StoreError::NoSpace { path, needed_bytes, free_bytes } = &error else { panic!("{error}") };
    assert!(path.ends_with("big.npy.part") && *needed_bytes >= 8_004_096 && *free_bytes > 0);
    assert!(error.to_string().contains("put the file on another file system"), "{error}");
    let resumed = disk.create_npy(scratch.path("big.npy"), ElementType::F64, &[1000, 1000], true);
    assert!(matches!(resumed, Err(StoreError::NoSpace { .. })));
    assert!(scratch.names().is_empty());

    // And one that really does not fit: no disk has an exbibyte.
    let disk = support::disk(BackendChoice::Auto);
    let error = disk.create_npy(scratch.path("huge.npy"), ElementType::U8, &[1 << 60], false).unwrap_err();
    assert!(matches!(error, StoreError::NoSpace { .. } | StoreError::File { .. }), "{error}");
    assert!(scratch.names().is_empty());
    assert!(disk.create_temporary(scratch.directory(), ElementType::U8, &[1 << 60]).is_err());
    assert!(scratch.names().is_empty());
}

#[test]
fn a_transfer_fails_alone_and_is_named() {
    let scratch = Scratch::new();
    let bytes = prepare(&scratch);
    for backend in backends() {
        let faults = Arc::new(FailKind::new(OperationKind::Write, 3, libc::ENOSPC));
        let disk = disk_with(backend, faults).unwrap();
        let output = disk.create_npy(scratch.path("out.npy"), ElementType::F32, &SHAPE, false).unwrap();
        let input = disk.open_npy(scratch.path("in.npy")).unwrap();
        let zero = [0, 0];
        let mut copy = vec![0u8; bytes.len()];
        let pitch = SHAPE[1] * 4;
        let memory = bytes.as_ptr().cast_mut();
        // Rows of 100 elements: unaligned, so that there are several writes.
        let list =
            TransferList::block(&output, Direction::Write, &zero, &[150, 100], memory, pitch, "block (0, 0)".into());
        let read = TransferList::block(&input, Direction::Read, &zero, &SHAPE, copy.as_mut_ptr(), pitch, "all".into());
        // SAFETY: the memory outlives the waits.
        let (failing, working) = unsafe { (disk.submit(list.unwrap()), disk.submit(read.unwrap())) };
        let first = disk.wait(failing);
        disk.wait(working).unwrap();
        assert_eq!(copy, bytes);
        // The header was the first write; the rows are several.
        let text = first.unwrap_err().to_string();
        assert!(text.contains("out.npy") && text.contains("block (0, 0)") && text.contains("free space"), "{text}");
        disk.discard(&output);
        assert_eq!(scratch.names(), ["in.npy"]);
    }
}

#[test]
fn an_input_that_shrinks_is_truncated() {
    let scratch = Scratch::new();
    prepare(&scratch);
    for backend in backends() {
        let disk = disk(backend);
        let path = scratch.path("shrinks.npy");
        std::fs::copy(scratch.path("in.npy"), &path).unwrap();
        let input = disk.open_npy(&path).unwrap();
        for len in [150_000, 4096, 0] {
            std::fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
            let error = read_all(&disk, &input).unwrap_err();
            assert!(matches!(error, StoreError::Truncated { found_bytes, .. } if found_bytes == len), "{len}: {error}");
        }
    }
}

#[test]
fn one_output_one_run() {
    let scratch = Scratch::new();
    let (one, two) = (disk(BackendChoice::Auto), disk(BackendChoice::Pool));
    let path = scratch.path("out.npy");
    let first = one.create_npy(&path, ElementType::F32, &[9], false).unwrap();
    for resume in [false, true] {
        assert!(matches!(two.create_npy(&path, ElementType::F32, &[9], resume), Err(StoreError::Busy { .. })));
    }
    one.discard(&first);
    assert!(scratch.names().is_empty());
    drop(first);
    let second = two.create_npy(&path, ElementType::F32, &[9], false).unwrap();
    write_all(&two, &second, &[5; 36]).unwrap();
    two.publish(&second).unwrap();
    two.publish(&second).unwrap();
    assert_eq!(second.path(), path);
    two.discard(&second);
    assert_eq!(scratch.names(), ["out.npy"], "what is published is not discarded");
    let input = two.open_npy(&path).unwrap();
    assert!(matches!(two.publish(&input), Err(StoreError::ReadOnly { .. })));
}

#[test]
fn a_part_is_continued_only_if_it_matches() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Auto);
    let path = scratch.path("out.npy");
    let bytes = Random::new(21).bytes(4000);
    let create = |shape: &[u64], resume| disk.create_npy(&path, ElementType::F32, shape, resume).unwrap();
    let fresh = create(&[10, 100], true);
    assert!(!fresh.is_resumed(), "there was none");
    write_all(&disk, &fresh, &bytes).unwrap();
    drop(fresh);
    let continued = create(&[10, 100], true);
    assert!(continued.is_resumed());
    assert_eq!(read_all(&disk, &continued).unwrap(), bytes);
    drop(continued);
    // Cut to its exact length, as a death inside `publish` leaves it.
    std::fs::File::options().write(true).open(scratch.path("out.npy.part")).unwrap().set_len(8096).unwrap();
    let continued = create(&[10, 100], true);
    assert!(continued.is_resumed());
    assert_eq!(read_all(&disk, &continued).unwrap(), bytes);
    write_all(&disk, &continued, &bytes).unwrap();
    drop(continued);
    let other = create(&[100, 10], true);
    assert!(!other.is_resumed(), "another shape");
    assert_eq!(read_all(&disk, &other).unwrap(), vec![0; 4000]);
    drop(other);
    let again = create(&[100, 10], false);
    assert!(!again.is_resumed());
    disk.discard(&again);
}

#[test]
fn paths_that_cannot_be_written() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Auto);
    let create = |path: std::path::PathBuf| disk.create_npy(path, ElementType::F32, &[9], false).unwrap_err();
    let error = create(scratch.path("no/such/directory/out.npy"));
    assert!(error.to_string().contains("its directory does not exist"), "{error}");
    assert!(matches!(create(scratch.directory().to_owned()), StoreError::NotAFile { .. }));
    assert!(matches!(create("/dev/null".into()), StoreError::NotAFile { found: "a device or a pipe", .. }));
    std::fs::write(scratch.path("file"), b"").unwrap();
    let error = create(scratch.path("file/out.npy"));
    assert!(error.to_string().contains("not a directory"), "{error}");
    for name in ["one", "other"] {
        std::os::unix::fs::symlink(scratch.path(if name == "one" { "other" } else { "one" }), scratch.path(name))
            .unwrap();
    }
    for circle in ["one/out.npy", "other/out.npy"] {
        let error = create(scratch.path(circle));
        assert!(error.to_string().contains("links lead in a circle"), "{error}");
    }
    ["one", "other"].iter().for_each(|name| std::fs::remove_file(scratch.path(name)).unwrap());
    let error = create(scratch.path(&format!("{}.npy", "long".repeat(100))));
    assert!(error.to_string().contains("choose a shorter name"), "{error}");
    let error = create("/proc/out.npy".into());
    assert!(matches!(error, StoreError::File { .. }), "{error}");
    assert!(disk.create_temporary(scratch.path("none"), ElementType::U8, &[1]).is_err());
    assert_eq!(scratch.names(), ["file"]);
}

#[test]
fn scratch_files_have_no_name() {
    let scratch = Scratch::new();
    for backend in backends() {
        let disk = disk(backend);
        let file = disk.create_temporary(scratch.directory(), ElementType::F64, &[77, 13]).unwrap();
        assert!(scratch.names().is_empty());
        let bytes = Random::new(22).bytes(77 * 13 * 8);
        write_all(&disk, &file, &bytes).unwrap();
        assert_eq!(read_all(&disk, &file).unwrap(), bytes);
    }
}

/// Pieces that lie behind the end say nothing of where that is.
#[test]
fn of_an_input_that_shrank_the_length_that_it_has_is_told() {
    let scratch = Scratch::new();
    prepare(&scratch);
    for backend in backends() {
        let disk = disk(backend);
        let path = scratch.path("shrinks.npy");
        std::fs::copy(scratch.path("in.npy"), &path).unwrap();
        let input = disk.open_npy(&path).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(10_000).unwrap();
        let mut row = [0; 333 * 4];
        let list =
            TransferList::block(&input, Direction::Read, &[149, 0], &[1, 333], row.as_mut_ptr(), 0, "row".into());
        // SAFETY: the memory outlives the wait.
        let error = disk.wait(unsafe { disk.submit(list.unwrap()) }).unwrap_err();
        assert!(matches!(error, StoreError::Truncated { found_bytes: 10_000, .. }), "{error}");
    }
}

/// Remembers what is done to which file.
#[derive(Default)]
struct Seen(Mutex<Vec<(OperationKind, String)>>);

impl Faults for Seen {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let name = operation.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.0.lock().unwrap().push((operation.kind, name));
        Verdict::Go
    }
}

/// The bytes are durable before the name says that they are there, and the name is when publishing returns.
#[test]
fn a_name_is_given_to_what_is_durable_and_made_durable_itself() {
    let scratch = Scratch::new();
    let seen = Arc::new(Seen::default());
    let disk = disk_with(BackendChoice::Auto, seen.clone()).unwrap();
    let output = disk.create_raw(scratch.path("out"), ElementType::U8, &[9], false).unwrap();
    write_all(&disk, &output, &[5; 9]).unwrap();
    seen.0.lock().unwrap().clear();
    disk.publish(&output).unwrap();
    let expected = [
        (OperationKind::Truncate, "out.part"),
        (OperationKind::Sync, "out.part"),
        (OperationKind::Rename, "out"),
        (OperationKind::SyncDirectory, "out"),
    ];
    assert_eq!(*seen.0.lock().unwrap(), expected.map(|(kind, name)| (kind, name.to_owned())));
}

/// What has the name of a `.part` may be known by another name too: it makes way, and is not written to.
#[test]
fn what_has_the_name_of_a_part_is_not_written_to() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Auto);
    let (precious, part, path) = (scratch.path("precious"), scratch.path("out.part"), scratch.path("out"));
    for content in [&b"precious"[..], b"", &[7; 32 << 10]] {
        for resume in [false, true] {
            std::fs::write(&precious, content).unwrap();
            std::fs::hard_link(&precious, &part).unwrap();
            let output = disk.create_raw(&path, ElementType::U8, &[9], resume);
            if resume && content.len() == 32 << 10 {
                // It could be what an interrupted run has left, of which a copy was made with links.
                let refused = output.map(|_| ()).expect_err("it has two names");
                assert!(refused.to_string().contains("has 2 names"), "{refused}");
                assert!(refused.to_string().contains("out.part"), "{refused}");
                std::fs::remove_file(&part).unwrap();
            } else {
                let output = output.unwrap();
                assert!(!output.is_resumed());
                write_all(&disk, &output, &[1; 9]).unwrap();
                disk.publish(&output).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), [1; 9]);
                std::fs::remove_file(&path).unwrap();
            }
            assert!(std::fs::read(&precious).unwrap() == content, "{} bytes, {resume}", content.len());
            assert_eq!(scratch.names(), ["precious"]);
            // A symbolic link is not followed, whatever it leads to.
            std::os::unix::fs::symlink(&precious, &part).unwrap();
            let refused = disk.create_raw(&path, ElementType::U8, &[9], resume).map(|_| ()).expect_err("a link");
            assert!(refused.to_string().contains("a link stands where a file is to be made"), "{refused}");
            assert!(std::fs::read(&precious).unwrap() == content);
            std::fs::remove_file(&part).unwrap();
        }
    }
}

#[test]
fn what_takes_the_place_of_a_private_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    prepare(&scratch);
    let disk = disk(BackendChoice::Auto);
    let mode = |name: &str| std::fs::metadata(scratch.path(name)).unwrap().permissions().mode() & 0o7777;
    for private in [0o600, 0o640, 0o755] {
        std::fs::write(scratch.path("out.npy"), "old").unwrap();
        std::fs::set_permissions(scratch.path("out.npy"), std::fs::Permissions::from_mode(private)).unwrap();
        let output = disk.create_npy(scratch.path("out.npy"), ElementType::F32, &SHAPE, false).unwrap();
        assert_eq!(mode("out.npy.part") & !private, 0, "while it is written");
        disk.discard(&output);
        run(&disk, &scratch).unwrap();
        assert_eq!(mode("out.npy"), private);
    }
}
