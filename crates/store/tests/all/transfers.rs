//! Random blocks of random arrays, read and written through every backend, against plain memory.

use crate::support;

use std::sync::Arc;

use multigrain_store::{
    AlignedBuffer, BackendChoice, Counters, Direction, Disk, ElementType, Fragment, Slack, StoreError, Stride,
    TransferList,
};
use support::*;

const SKEWS: [usize; 6] = [0, 0, 0, 512, 64, 3];
const GAPS: [usize; 4] = [0, 0, 512, 40];

fn random_array(random: &mut Random) -> (ElementType, Vec<u64>) {
    let element = ELEMENTS[random.below(4) as usize];
    let shape = match random.below(5) {
        0 => vec![1 + random.below(300_000)],
        1 => vec![1 + random.below(200), 1 + random.below(1500)],
        2 => vec![1 + random.below(12), 1 + random.below(20), 1 + random.below(700)],
        // Rows of whole blocks: the path without copies.
        3 => vec![1 + random.below(40), 1024 * (1 + random.below(4))],
        // Narrow rows: many fragments in a block.
        _ => vec![1 + random.below(3000), 1 + random.below(40)],
    };
    (element, shape)
}

fn round(random: &mut Random, disk: &Disk, scratch: &Scratch, raw: bool) {
    let (element, shape) = random_array(random);
    let path = scratch.path("array");
    let file = if raw {
        disk.create_raw(&path, element, &shape, false).unwrap()
    } else {
        disk.create_npy(&path, element, &shape, false).unwrap()
    };
    let mut reference = random.bytes(file.data_bytes() as usize);
    write_all(disk, &file, &reference).unwrap();
    for _ in 0..4 {
        let block = Block::random(random, &shape);
        let row_bytes = block.row_bytes(element);
        let skew = SKEWS[random.below(6) as usize];
        let gap = GAPS[random.below(4) as usize];
        let mut canvas = Canvas::new(block.rows(), row_bytes, skew, gap);
        let write = random.below(2) == 0;
        if write {
            let bytes = random.bytes(row_bytes * block.rows() as usize);
            for (row, bytes) in bytes.chunks_exact(row_bytes).enumerate() {
                let place = skew + row * canvas.pitch;
                // SAFETY: no transfer uses the canvas yet.
                let target = unsafe { canvas.buffer.as_mut_slice() };
                target[place..place + row_bytes].copy_from_slice(bytes);
                let at = block.offset(&shape, element, row as u64);
                reference[at..at + row_bytes].copy_from_slice(bytes);
            }
        }
        let direction = if write { Direction::Write } else { Direction::Read };
        let (start, len, pitch) = (&block.start, &block.len, canvas.pitch as u64);
        let list = TransferList::block(&file, direction, start, len, canvas.memory(), pitch, "block".into()).unwrap();
        assert_eq!(list.len_bytes(), row_bytes as u64 * block.rows());
        // SAFETY: the canvas outlives the wait.
        disk.wait(unsafe { disk.submit(list) }).unwrap();
        // SAFETY: the transfer is done.
        let bytes = unsafe { canvas.buffer.as_mut_slice() };
        for row in 0..block.rows() {
            let at = block.offset(&shape, element, row);
            let place = skew + row as usize * canvas.pitch;
            assert_eq!(
                &bytes[place..place + row_bytes],
                &reference[at..at + row_bytes],
                "{shape:?} {element} {block:?} row {row} {direction:?}"
            );
            assert!(bytes[place + row_bytes..place + canvas.pitch].iter().all(|&b| b == Canvas::GUARD));
        }
        assert!(bytes[..skew].iter().all(|&b| b == Canvas::GUARD));
    }
    assert!(read_all(disk, &file).unwrap() == reference, "{shape:?} {element}");
    disk.publish(&file).unwrap();
    let found = std::fs::read(&path).unwrap();
    assert!(found[file.data_offset_bytes() as usize..] == reference[..], "{shape:?} {element} as published");
    let again = if raw { disk.open_raw(&path, element, &shape) } else { disk.open_npy(&path) }.unwrap();
    assert_eq!((again.element(), again.shape()), (element, &shape[..]));
    assert!(read_all(disk, &again).unwrap() == reference, "{shape:?} {element} as input");
}

#[test]
fn random_blocks_match_plain_memory() {
    let mut random = Random::new(1);
    let scratch = Scratch::new();
    for backend in backends() {
        let disk = disk(backend);
        println!("{}", disk.backend_name());
        for n in 0..40 {
            round(&mut random, &disk, &scratch, n % 2 == 0);
        }
    }
    assert_eq!(scratch.names(), ["array"]);
}

/// Runs of an array with room around them in memory: the run arrives, nothing beyond the room is touched, and where there
/// is room for all pages of the run, they come in operations of about 1 MiB and nothing else does.
#[test]
fn reads_may_fill_the_room_around_them() {
    const PAGE: u64 = 4096;
    let mut random = Random::new(5);
    let scratch = Scratch::new();
    let elements = 1_500_000u64;
    let bytes = random.bytes(4 * elements as usize);
    for backend in backends() {
        let disk = disk(backend);
        let path = scratch.path("x.npy");
        let file = disk.create_npy(&path, ElementType::F32, &[elements], false).unwrap();
        write_all(&disk, &file, &bytes).unwrap();
        for n in 0..60 {
            let len = 1 + random.below(if n % 3 == 0 { elements } else { 4000 });
            let start = if n % 7 == 0 { elements - len } else { random.below(elements - len + 1) };
            let first = file.data_offset_bytes() + 4 * start;
            let (head, tail) = (first % PAGE, (first + 4 * len).wrapping_neg() % PAGE);
            let slack = match n % 4 {
                0 => Slack::default(),
                1 => Slack { before_bytes: random.below(PAGE), after_bytes: random.below(PAGE) },
                _ => Slack { before_bytes: head, after_bytes: tail },
            };
            let alike = n % 5 != 0;
            let at = (PAGE + if alike { head } else { (head + 64) % PAGE }) as usize;
            let end = at + 4 * len as usize;
            let mut buffer = AlignedBuffer::new(end + 2 * PAGE as usize).unwrap();
            // SAFETY: no transfer uses the buffer yet.
            unsafe { buffer.as_mut_slice() }.fill(Canvas::GUARD);
            let memory = buffer.as_mut_ptr().wrapping_add(at);
            let list = TransferList::block(&file, Direction::Read, &[start], &[len], memory, 0, "run".into()).unwrap();
            let before = disk.counters();
            // SAFETY: the buffer outlives the wait.
            disk.wait(unsafe { disk.submit(list.with_slack(slack)) }).unwrap();
            let after = disk.counters();
            // SAFETY: the transfer is done.
            let found = unsafe { buffer.as_mut_slice() };
            let what = format!("{len} elements from {start}, {slack:?}, alike: {alike}");
            assert!(found[at..end] == bytes[4 * start as usize..][..4 * len as usize], "{what}");
            let guard = |bytes: &[u8]| bytes.iter().all(|&b| b == Canvas::GUARD);
            assert!(guard(&found[..at - slack.before_bytes as usize]), "{what}");
            assert!(guard(&found[end + slack.after_bytes as usize..]), "{what}");
            assert_eq!(after.bytes_read - before.bytes_read, 4 * len, "{what}");
            if file.is_direct() && alike && slack.before_bytes >= head && slack.after_bytes >= tail {
                let pages = head + 4 * len + tail;
                assert_eq!(after.device_bytes_read - before.device_bytes_read, pages, "{what}");
                let operations = ((pages + (1 << 19)) >> 20).max(1);
                assert_eq!(after.operations - before.operations, operations, "{what}");
            }
        }
        disk.discard(&file);
    }
}

#[test]
fn the_page_cache_stands_in_where_direct_io_is_refused() {
    // The kernel's memory file system reports no alignment for direct I/O.
    let Ok(directory) = tempdir_in_shm() else { return };
    let disk = disk(BackendChoice::Auto);
    let file = disk.create_npy(directory.join("a.npy"), ElementType::F32, &[100, 33], false).unwrap();
    let bytes = Random::new(2).bytes(13200);
    write_all(&disk, &file, &bytes).unwrap();
    assert_eq!(read_all(&disk, &file).unwrap(), bytes);
    println!("direct: {}", file.is_direct());
    disk.discard(&file);
    std::fs::remove_dir_all(directory).unwrap();
}

fn tempdir_in_shm() -> std::io::Result<std::path::PathBuf> {
    let path = std::path::PathBuf::from(format!("/dev/shm/multigrain-store-{}", std::process::id()));
    std::fs::create_dir_all(&path).map(|()| path)
}

/// Columns of an array written at once by different transfers: neighbours share blocks of the file everywhere, and in
/// the arrays of few rows they do so at the same time.
#[test]
fn neighbours_written_at_once_do_not_undo_each_other() {
    let mut random = Random::new(3);
    let scratch = Scratch::new();
    for backend in backends() {
        let disk = disk(backend);
        for (rows, columns, tile) in
            [(400u64, 1000u64, 77u64), (64, 5000, 1250), (2000, 60, 7), (1, 60_000, 37), (2, 9000, 300)]
        {
            let shape = [rows, columns];
            let file = disk.create_npy(scratch.path("a.npy"), ElementType::F32, &shape, false).unwrap();
            let reference = random.bytes((rows * columns * 4) as usize);
            let mut tickets = Vec::new();
            for column in (0..columns).step_by(tile as usize) {
                let len = tile.min(columns - column);
                let memory = reference.as_ptr().cast_mut().wrapping_add((column * 4) as usize);
                let (start, len) = ([0, column], [rows, len]);
                let list =
                    TransferList::block(&file, Direction::Write, &start, &len, memory, columns * 4, "tile".into());
                // SAFETY: the reference outlives the waits, and the tiles are disjoint.
                tickets.push(unsafe { disk.submit(list.unwrap()) });
            }
            for ticket in tickets {
                disk.wait(ticket).unwrap();
            }
            assert!(read_all(&disk, &file).unwrap() == reference);
            disk.discard(&file);
        }
    }
}

#[test]
fn unwaited_tickets() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Auto);
    let file = disk.create_npy(scratch.path("a.npy"), ElementType::U8, &[8 << 20], false).unwrap();
    let bytes = Random::new(4).bytes(8 << 20);
    write_all(&disk, &file, &bytes).unwrap();
    let memory = Arc::new(multigrain_store::AlignedBuffer::new(8 << 20).unwrap());
    let list =
        TransferList::block(&file, Direction::Read, &[0], &[8 << 20], memory.as_mut_ptr(), 0, "read".into()).unwrap();
    // SAFETY: the memory outlives the disk.
    drop(unsafe { disk.submit(list) });
    // Dropping the disk waits for the transfer.
    drop(disk);
    // SAFETY: nothing is under way any more.
    assert!(unsafe { memory.as_slice() } == bytes);
}

#[test]
fn refused_before_anything_moves() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Auto);
    let path = scratch.path("a.npy");
    let output = disk.create_npy(&path, ElementType::F32, &[4, 5], false).unwrap();
    let block = |file, start: &[u64], len: &[u64]| {
        TransferList::block(file, Direction::Write, start, len, std::ptr::null_mut(), 20, "b".into())
    };
    for (start, len) in
        [(vec![0, 0], vec![5, 1]), (vec![0, 5], vec![1, 1]), (vec![u64::MAX, 0], vec![2, 1]), (vec![0], vec![1])]
    {
        assert!(matches!(block(&output, &start, &len), Err(StoreError::OutOfBounds { .. })), "{start:?} {len:?}");
    }
    let fragment = |offset, len| Fragment { file_offset_bytes: offset, memory: std::ptr::null_mut(), len_bytes: len };
    for (offset, len, count) in [(0, 4, 1), (4096, 81, 1), (4096, 4, 22), (4096, 4, u64::MAX), (u64::MAX, 2, 1)] {
        let mut list = TransferList::new(&output, Direction::Write, "f".into());
        list.push_strided(fragment(offset, len), &[Stride { count, file_bytes: 4, memory_bytes: 4 }]);
        // SAFETY: refused before any memory is touched.
        let ticket = unsafe { disk.submit(list) };
        assert!(ticket.is_done());
        assert!(matches!(ticket.wait(), Err(StoreError::OutsideData { .. })), "{offset} {len} {count}");
    }
    // Nothing to move is done at once, also for an array without elements.
    let empty = block(&output, &[4, 0], &[0, 5]).unwrap();
    // SAFETY: no fragments.
    disk.wait(unsafe { disk.submit(empty) }).unwrap();
    disk.publish(&output).unwrap();
    for file in [&output, &disk.open_npy(&path).unwrap()] {
        let list = block(file, &[0, 0], &[1, 1]).unwrap();
        // SAFETY: refused before any memory is touched.
        let result = disk.wait(unsafe { disk.submit(list) });
        assert!(matches!(result, Err(StoreError::ReadOnly { .. })));
    }
    let none = disk.create_npy(&path, ElementType::F32, &[0, 5], false).unwrap();
    assert!(read_all(&disk, &none).unwrap().is_empty());
    disk.publish(&none).unwrap();
    assert_eq!(disk.open_npy(&path).unwrap().shape(), [0, 5]);
}

#[test]
fn counters_tell_payload_and_device_bytes() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Auto);
    let file = disk.create_npy(scratch.path("a.npy"), ElementType::U8, &[10_000], false).unwrap();
    let bytes = vec![1; 10_000];
    write_all(&disk, &file, &bytes).unwrap();
    read_all(&disk, &file).unwrap();
    let Counters { bytes_read, bytes_written, device_bytes_read, device_bytes_written, operations } = disk.counters();
    assert_eq!((bytes_read, bytes_written), (10_000, 10_000));
    assert!(device_bytes_read >= 10_000 && device_bytes_written >= 10_000);
    assert!(operations >= 5, "create, reserve, header, write, read");
}

#[test]
fn strides_nest_and_merge() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Auto);
    let file = disk.create_raw(scratch.path("a"), ElementType::U8, &[1 << 17], false).unwrap();
    let reference = Random::new(5).bytes(1 << 17);
    write_all(&disk, &file, &reference).unwrap();
    let mut memory = vec![0u8; 1 << 16];
    // Seven nested repetitions of two that never continue each other: more than a cursor keeps inline.
    let strides: Vec<Stride> = [6, 5, 4, 3, 2, 1, 0]
        .map(|d| Stride { count: 2, file_bytes: 1536 * (1 << d) / 2, memory_bytes: 5 << (6 - d) })
        .to_vec();
    let mut list = TransferList::new(&file, Direction::Read, "nested".into());
    let first = Fragment { file_offset_bytes: 17, memory: memory.as_mut_ptr(), len_bytes: 5 };
    list.push_strided(first, &strides);
    assert_eq!((list.fragments(), list.len_bytes()), (128, 640));
    // SAFETY: the memory outlives the wait.
    disk.wait(unsafe { disk.submit(list) }).unwrap();
    for n in 0..128usize {
        let (at, to) = (0..7).fold((17, 0), |(at, to), d| {
            let on = n >> d & 1;
            (at + on * (1536 * (1 << d) / 2), to + on * (5 << (6 - d)))
        });
        assert_eq!(memory[to..to + 5], reference[at..at + 5], "{n}");
    }
    disk.discard(&file);

    // A block as wide as the array is one fragment, whatever its rank.
    let file = disk.create_raw(scratch.path("b"), ElementType::F32, &[6, 7, 8], false).unwrap();
    let list = TransferList::block(&file, Direction::Read, &[1, 0, 0], &[4, 7, 8], memory.as_mut_ptr(), 32, "w".into());
    assert_eq!(list.unwrap().fragments(), 1);
    disk.discard(&file);
    assert!(scratch.names().is_empty());
}
