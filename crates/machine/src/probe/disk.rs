//! The bandwidth and latency of a disk: direct I/O on a temporary file that has no name, so that nothing is left
//! behind however the process ends.

use super::{EdgeFigures, Limits, dram::median, failure};
use crate::error::MachineError;
use rustix::fs::{FallocateFlags, Mode, OFlags};
#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of one transfer when bandwidth is measured.
const BLOCK_BYTES: u64 = 1 << 20;
/// Transfers in flight when bandwidth is measured.
const IN_FLIGHT: usize = 8;
/// Bytes of one transfer when latency is measured: a page.
const PAGE_BYTES: u64 = 4096;
/// A huge page, which runs ask for as well: in small pages a transfer of a block has more pieces than paravirtual disks take
/// at once, and reaches half of the rate. No device asks direct I/O for a larger alignment of memory.
const ALIGNMENT_BYTES: usize = 2 << 20;
/// Reads that a latency is the median of, at most.
const LATENCY_READS_MAX: usize = 500;

pub(crate) struct DiskFigures {
    pub(crate) figures: EdgeFigures,
    /// Whether the page cache was passed by.
    pub(crate) direct: bool,
}

/// Measures the disk under `dir`.
pub(crate) fn measure(dir: &Path, limits: &Limits) -> Result<DiskFigures, MachineError> {
    let failed = |what: &'static str| move |error: io::Error| failure(what, format!("{}: {error}", dir.display()));
    let free = rustix::fs::statvfs(dir)
        .map_err(|error| failed("the free space of the disk")(error.into()))
        .map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))?;
    // A quarter of what is free, so that nobody else runs out of space meanwhile.
    let blocks = limits.disk_bytes_max.min(free / 4) / BLOCK_BYTES;
    if blocks == 0 {
        let reason = format!("{}: no space for a temporary file", dir.display());
        return Err(failure("the disk", reason));
    }
    let (file, direct) = temporary(dir).map_err(failed("the disk"))?;
    // Without it each write would first extend the file, which serialises writes; file systems without it still work.
    let _ = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, blocks * BLOCK_BYTES);
    let time = limits.disk_time * 2 / 5;
    let (written, write_bytes_per_second) =
        stream(blocks, blocks, time, |buffer, offset| file.write_all_at(buffer, offset))
            .map_err(failed("writing to the disk"))?;
    let (_, read_bytes_per_second) =
        stream(u64::MAX, written, time, |buffer, offset| file.read_exact_at(buffer, offset))
            .map_err(failed("reading from the disk"))?;
    let (bytes, time) = (written * BLOCK_BYTES, limits.disk_time / 10);
    let latency_ns = latency_ns(&file, bytes, time).map_err(failed("the latency of the disk"))?;
    let page_ns = page_ns(&file, bytes, time).map_err(failed("the fragments of the disk"))?;
    let fragment_ns = Some((page_ns - PAGE_BYTES as f64 / read_bytes_per_second * 1e9).max(0.0));
    let figures = EdgeFigures { read_bytes_per_second, write_bytes_per_second, latency_ns, fragment_ns };
    Ok(DiskFigures { figures, direct })
}

/// A file without a name in `dir`, and whether its transfers pass the page cache by.
fn temporary(dir: &Path) -> io::Result<(File, bool)> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let nameless = |flags: OFlags| -> io::Result<File> {
        match rustix::fs::open(dir, flags | OFlags::TMPFILE, mode) {
            Ok(file) => Ok(file.into()),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
                // The file system has no nameless files: take the name away at once.
                let path = dir.join(format!(".multigrain-probe-{}.part", std::process::id()));
                let file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
                std::fs::remove_file(&path)?;
                Ok(file.into())
            }
            Err(error) => Err(error.into()),
        }
    };
    match nameless(flags | OFlags::DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            Ok((nameless(flags)?, false))
        }
        Err(error) => Err(error),
    }
}

/// Memory for direct I/O: aligned, and filled with bytes that do not compress.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new(len: u64, seed: u64) -> Aligned {
        let len = len as usize;
        let mut bytes: Vec<u8> = Vec::with_capacity(len.next_multiple_of(ALIGNMENT_BYTES) + ALIGNMENT_BYTES);
        let start = bytes.as_ptr().align_offset(ALIGNMENT_BYTES);
        #[cfg(target_os = "linux")]
        {
            let huge = bytes.as_mut_ptr().wrapping_add(start).cast();
            // SAFETY: whole pages that belong to the vector, and advice changes no content. A system that refuses it measures
            // with small pages, with which it would run.
            let _ = unsafe { madvise(huge, len.next_multiple_of(ALIGNMENT_BYTES), Advice::LinuxHugepage) };
        }
        let mut state = seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15) | 1;
        bytes.extend((0..(start + len).div_ceil(8)).flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        }));
        Aligned { bytes, start, len }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// Moves blocks with several transfers in flight until `time` is over or `blocks` are moved; block numbers wrap around
/// after `span`. Returns the blocks moved, all at the beginning of the file, and the bytes per second.
fn stream(
    blocks: u64,
    span: u64,
    time: Duration,
    transfer: impl Fn(&mut [u8], u64) -> io::Result<()> + Sync,
) -> io::Result<(u64, f64)> {
    let mut buffers: Vec<Aligned> = (0..IN_FLIGHT as u64).map(|seed| Aligned::new(BLOCK_BYTES, seed)).collect();
    let (next, transfer) = (&AtomicU64::new(0), &transfer);
    let start = Instant::now();
    let moved: io::Result<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = buffers
            .iter_mut()
            .map(|buffer| {
                std::thread::Builder::new().spawn_scoped(scope, move || -> io::Result<u64> {
                    let mut moved = 0;
                    loop {
                        // Relaxed: the number only has to be handed out once, nothing is published with it.
                        let block = next.fetch_add(1, Ordering::Relaxed);
                        // The first block of each thread is moved however short the time is.
                        if block >= blocks || (moved > 0 && start.elapsed() >= time) {
                            return Ok(moved);
                        }
                        transfer(buffer.get(), (block % span) * BLOCK_BYTES)?;
                        moved += 1;
                    }
                })
            })
            .collect();
        let mut total = 0;
        for thread in threads {
            total += thread?.join().map_err(|_| io::Error::other("a measuring thread failed"))??;
        }
        Ok(total)
    });
    let moved = moved?;
    let bytes_per_second = (moved * BLOCK_BYTES) as f64 / start.elapsed().as_secs_f64().max(1e-9);
    Ok((moved.min(span), bytes_per_second))
}

/// Offsets of pages at irregular places among the first `bytes` of a file.
fn pages(seed: u64, bytes: u64) -> impl Iterator<Item = u64> {
    // The multiplier of Knuth's linear congruential generator: far steps, never in sequence.
    let next = |page: &u64| Some(page.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(next(&seed), next).map(move |page| (page >> 16) % (bytes / PAGE_BYTES) * PAGE_BYTES)
}

/// The median of single reads of a page.
fn latency_ns(file: &File, bytes: u64, time: Duration) -> io::Result<f64> {
    let mut buffer = Aligned::new(PAGE_BYTES, 1);
    let mut times_ns = Vec::new();
    let start = Instant::now();
    for offset in pages(0, bytes).take(LATENCY_READS_MAX) {
        let before = Instant::now();
        file.read_exact_at(buffer.get(), offset)?;
        times_ns.push(before.elapsed().as_secs_f64() * 1e9);
        if start.elapsed() >= time {
            break;
        }
    }
    Ok(median(&mut times_ns))
}

/// How long a page takes when several are in flight.
fn page_ns(file: &File, bytes: u64, time: Duration) -> io::Result<f64> {
    let start = Instant::now();
    let read = |seed: u64| -> io::Result<u64> {
        let mut buffer = Aligned::new(PAGE_BYTES, seed);
        for (offset, done) in pages(seed, bytes).zip(1..) {
            file.read_exact_at(buffer.get(), offset)?;
            if start.elapsed() >= time {
                return Ok(done);
            }
        }
        Ok(0)
    };
    let read = &read;
    let done: io::Result<u64> = std::thread::scope(|scope| {
        let spawn = |seed| std::thread::Builder::new().spawn_scoped(scope, move || read(seed));
        let threads: Vec<_> = (1..=IN_FLIGHT as u64).map(spawn).collect();
        threads.into_iter().try_fold(0, |done, thread| {
            Ok(done + thread?.join().map_err(|_| io::Error::other("a measuring thread failed"))??)
        })
    });
    Ok(start.elapsed().as_secs_f64() * 1e9 / done?.max(1) as f64)
}
