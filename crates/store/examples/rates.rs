//! The rates of the disk under a directory: `cargo run --release -p multigrain-store --example rates -- [DIRECTORY]`.
//!
//! Prints, as medians of several interleaved rounds, the sequential read, write and half-and-half rate, and the rate of
//! block reads and writes whose rows are short, for data on page boundaries and 128 bytes behind one (the header of a
//! file that NumPy wrote); with the processor time that each took.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use multigrain_store::{
    AlignedBuffer, ArrayFile, BackendChoice, Direction, Disk, DiskOptions, ElementType, StoreError, Ticket,
    TransferList,
};

const MIB: u64 = 1 << 20;
const FILE_BYTES: u64 = 512 * MIB;
const CHUNK_BYTES: u64 = 16 * MIB;
const ROUNDS: usize = 5;
/// Where the data of the two files starts.
const SKEWS: [u64; 2] = [0, 128];

fn main() -> Result<(), StoreError> {
    let directory = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let backend = match std::env::args().nth(2).as_deref() {
        Some("pool") => BackendChoice::Pool,
        Some("uring") => BackendChoice::Uring,
        _ => BackendChoice::Auto,
    };
    let disk = Disk::new(DiskOptions { backend, ..DiskOptions::default() })?;
    println!("{}; {} MiB files", disk.backend_name(), FILE_BYTES / MIB);
    let bench = Bench::new(&disk, &directory)?;
    let mut cases: Vec<(String, Case)> = vec![
        ("sequential read, page".into(), Case::Sequential(0, false)),
        ("sequential read, 128 bytes".into(), Case::Sequential(1, false)),
        ("sequential read, 128 bytes, memory alike".into(), Case::Alike),
        ("sequential write, page".into(), Case::Sequential(0, true)),
        ("sequential write, 128 bytes".into(), Case::Sequential(1, true)),
        ("half read, half write, sum".into(), Case::Mixed),
    ];
    for (row_kib, pitch_kib) in [(4, 8), (4, 16), (4, 64), (8, 64), (32, 64)] {
        for (file, place) in ["page", "128 bytes"].into_iter().enumerate() {
            for (write, name) in [(false, "read"), (true, "write")] {
                let case = Case::Rows { file, row_kib, pitch_kib, write };
                cases.push((format!("{name} rows of {row_kib} KiB, pitch {pitch_kib} KiB, {place}"), case));
            }
        }
    }
    let mut rates = vec![Vec::new(); cases.len()];
    for round in 0..=ROUNDS {
        for ((_, case), rates) in cases.iter().zip(&mut rates) {
            let (cpu, start) = (cpu_seconds(), Instant::now());
            let (bytes, fragments) = bench.run(case)?;
            let seconds = start.elapsed().as_secs_f64();
            let cpu = cpu_seconds() - cpu;
            // The first round warms up.
            if round > 0 {
                let fragments = fragments as f64;
                rates.push([
                    bytes as f64 / seconds / MIB as f64,
                    fragments / seconds,
                    cpu / fragments * 1e6,
                    cpu / seconds,
                ]);
            }
        }
    }
    println!("{:52} {:>9} {:>11} {:>11} {:>9}", "", "MiB/s", "fragments/s", "CPU us/frag", "CPU share");
    for ((name, _), rates) in cases.iter().zip(&mut rates) {
        rates.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let [rate, fragments, micros, share] = rates[rates.len() / 2];
        println!("{name:52} {rate:9.0} {fragments:11.0} {micros:11.2} {share:9.2}");
    }
    bench.clean();
    Ok(())
}

enum Case {
    /// File, write.
    Sequential(usize, bool),
    /// The file at byte 128 into memory that starts 128 bytes behind a page too.
    Alike,
    Mixed,
    Rows {
        file: usize,
        row_kib: u64,
        pitch_kib: u64,
        write: bool,
    },
}

struct Bench<'a> {
    disk: &'a Disk,
    /// Data on a page boundary, data at byte 128.
    inputs: [ArrayFile; 2],
    paths: [PathBuf; 2],
    outputs: [ArrayFile; 2],
    memory: Arc<AlignedBuffer>,
}

impl Bench<'_> {
    fn new<'a>(disk: &'a Disk, directory: &Path) -> Result<Bench<'a>, StoreError> {
        let memory = Arc::new(AlignedBuffer::new(8 * CHUNK_BYTES as usize)?);
        let paths = [directory.join("rates-0.raw"), directory.join("rates-1.raw")];
        let mut files = Vec::new();
        for (path, extra) in paths.iter().zip([0, 128]) {
            let file = disk.create_raw(path, ElementType::U8, &[FILE_BYTES + extra], false)?;
            stream(disk, &file, Direction::Write, &memory, 0, 0)?;
            disk.publish(&file)?;
            files.push(disk.open_raw(path, ElementType::U8, &[FILE_BYTES + extra])?);
        }
        let shape = [FILE_BYTES + 128];
        let outputs = [
            disk.create_temporary(directory, ElementType::U8, &shape)?,
            disk.create_temporary(directory, ElementType::U8, &shape)?,
        ];
        for output in &outputs {
            stream(disk, output, Direction::Write, &memory, 0, 0)?;
        }
        let inputs: [ArrayFile; 2] = files.try_into().expect("two files");
        Ok(Bench { disk, inputs, paths, outputs, memory })
    }

    /// Bytes and fragments moved.
    fn run(&self, case: &Case) -> Result<(u64, u64), StoreError> {
        let (disk, memory) = (self.disk, &*self.memory);
        let fragments = FILE_BYTES / MIB;
        match *case {
            Case::Sequential(file, false) => stream(disk, &self.inputs[file], Direction::Read, memory, SKEWS[file], 0)?,
            Case::Sequential(file, true) => {
                stream(disk, &self.outputs[file], Direction::Write, memory, SKEWS[file], 0)?
            }
            Case::Alike => stream(disk, &self.inputs[1], Direction::Read, memory, SKEWS[1], SKEWS[1])?,
            Case::Mixed => {
                mixed(disk, &self.inputs[0], &self.outputs[0], memory)?;
                return Ok((2 * FILE_BYTES, 2 * fragments));
            }
            Case::Rows { file, row_kib, pitch_kib, write } => {
                let (open, direction) = match write {
                    false => (&self.inputs[file], Direction::Read),
                    true => (&self.outputs[file], Direction::Write),
                };
                return rows(disk, open, direction, memory, [row_kib << 10, pitch_kib << 10, SKEWS[file]]);
            }
        }
        Ok((FILE_BYTES, fragments))
    }

    fn clean(&self) {
        for path in &self.paths {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn chunk(file: &ArrayFile, direction: Direction, at: u64, memory: *mut u8) -> Result<TransferList, StoreError> {
    TransferList::block(file, direction, &[at], &[CHUNK_BYTES], memory, 0, "chunk".into())
}

/// Moves the file in chunks, three in flight.
fn stream(
    disk: &Disk,
    file: &ArrayFile,
    direction: Direction,
    memory: &AlignedBuffer,
    skew: u64,
    memory_skew: u64,
) -> Result<(), StoreError> {
    let mut tickets = std::collections::VecDeque::new();
    for (n, at) in (0..FILE_BYTES).step_by(CHUNK_BYTES as usize).enumerate() {
        if tickets.len() == 3 {
            wait_first(disk, &mut tickets)?;
        }
        let place = memory.as_mut_ptr().wrapping_add((n % 4) * CHUNK_BYTES as usize + memory_skew as usize);
        // SAFETY: the buffer outlives the waits, and a place is used again only after its transfer is done.
        tickets.push_back(unsafe { disk.submit(chunk(file, direction, skew + at, place)?) });
    }
    while !tickets.is_empty() {
        wait_first(disk, &mut tickets)?;
    }
    Ok(())
}

fn mixed(disk: &Disk, input: &ArrayFile, output: &ArrayFile, memory: &AlignedBuffer) -> Result<(), StoreError> {
    let mut tickets = std::collections::VecDeque::new();
    for (n, at) in (0..FILE_BYTES).step_by(CHUNK_BYTES as usize).enumerate() {
        for (half, (file, direction)) in [(input, Direction::Read), (output, Direction::Write)].into_iter().enumerate()
        {
            if tickets.len() == 6 {
                wait_first(disk, &mut tickets)?;
            }
            let place = memory.as_mut_ptr().wrapping_add((half * 4 + n % 4) * CHUNK_BYTES as usize);
            // SAFETY: as in `stream`.
            tickets.push_back(unsafe { disk.submit(chunk(file, direction, at, place)?) });
        }
    }
    while !tickets.is_empty() {
        wait_first(disk, &mut tickets)?;
    }
    Ok(())
}

/// Moves a column of blocks of an array with rows of 64 KiB, into packed memory.
fn rows(
    disk: &Disk,
    file: &ArrayFile,
    direction: Direction,
    memory: &AlignedBuffer,
    [row_bytes, pitch, skew]: [u64; 3],
) -> Result<(u64, u64), StoreError> {
    let count = FILE_BYTES / pitch;
    let mut list = TransferList::new(file, direction, "rows".into());
    let first =
        multigrain_store::Fragment { file_offset_bytes: skew, memory: memory.as_mut_ptr(), len_bytes: row_bytes };
    // As many rows as fit the memory, all at once.
    let count = count.min(memory.len() as u64 / row_bytes);
    list.push_strided(first, &[multigrain_store::Stride { count, file_bytes: pitch, memory_bytes: row_bytes }]);
    // SAFETY: the buffer outlives the wait.
    disk.wait(unsafe { disk.submit(list) })?;
    Ok((count * row_bytes, count))
}

fn wait_first(disk: &Disk, tickets: &mut std::collections::VecDeque<Ticket>) -> Result<(), StoreError> {
    tickets.pop_front().map_or(Ok(()), |ticket| disk.wait(ticket))
}

/// User and system time of the process.
fn cpu_seconds() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure, for which zero bytes are valid too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
