//! What the tests share: a scratch directory on a real file system, a seeded generator, plain references.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use multigrain_store::{
    AlignedBuffer, ArrayFile, BackendChoice, Direction, Disk, DiskOptions, ElementType, Faults, StoreError,
    TransferList,
};

pub const ELEMENTS: [ElementType; 12] = ElementType::KNOWN;

/// A directory that is removed with its contents.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        // Not /tmp, which may be a tmpfs: direct I/O needs a real file system to be tested.
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("store-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Names of the files in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// Seeds from `MULTIGRAIN_SEED` if it is set, and prints the seed: it shows when the test fails.
    pub fn new(default: u64) -> Random {
        let seed = std::env::var("MULTIGRAIN_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(default);
        println!("MULTIGRAIN_SEED={seed}");
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound` (the bias of the remainder does not matter here).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(len);
        bytes
    }
}

/// A disk with small staging, so that tests meet its limits.
pub fn disk(backend: BackendChoice) -> Disk {
    Disk::new(DiskOptions { backend, staging_bytes: 256 << 10, queue_depth: 16, faults: None }).unwrap()
}

pub fn disk_with(backend: BackendChoice, faults: std::sync::Arc<dyn Faults>) -> Result<Disk, StoreError> {
    Disk::new(DiskOptions { backend, staging_bytes: 256 << 10, queue_depth: 16, faults: Some(faults) })
}

/// The backends that this kernel has.
pub fn backends() -> Vec<BackendChoice> {
    let mut backends = vec![BackendChoice::Pool];
    match Disk::new(DiskOptions { backend: BackendChoice::Uring, ..DiskOptions::default() }) {
        Ok(_) => backends.push(BackendChoice::Uring),
        Err(error) => println!("only the pool is tested: {error}"),
    }
    backends
}

/// Writes all data of a file from bytes.
pub fn write_all(disk: &Disk, file: &ArrayFile, bytes: &[u8]) -> Result<(), StoreError> {
    assert_eq!(bytes.len() as u64, file.data_bytes());
    let zero = vec![0; file.shape().len()];
    let row = file.shape().last().copied().unwrap_or(1) * file.element().size_bytes();
    let memory = bytes.as_ptr().cast_mut();
    let list = TransferList::block(file, Direction::Write, &zero, file.shape(), memory, row, "all".into())?;
    // SAFETY: the bytes outlive the wait below, and a write only reads them.
    let ticket = unsafe { disk.submit(list) };
    disk.wait(ticket)
}

/// Reads all data of a file.
pub fn read_all(disk: &Disk, file: &ArrayFile) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0u8; file.data_bytes() as usize];
    let zero = vec![0; file.shape().len()];
    let row = file.shape().last().copied().unwrap_or(1) * file.element().size_bytes();
    let memory = bytes.as_mut_ptr();
    let list = TransferList::block(file, Direction::Read, &zero, file.shape(), memory, row, "all".into())?;
    // SAFETY: the bytes outlive the wait below and nobody else uses them.
    let ticket = unsafe { disk.submit(list) };
    disk.wait(ticket)?;
    Ok(bytes)
}

/// A block of a row-major array, for the plain reference.
#[derive(Clone, Debug)]
pub struct Block {
    pub start: Vec<u64>,
    pub len: Vec<u64>,
}

impl Block {
    pub fn random(random: &mut Random, shape: &[u64]) -> Block {
        let start: Vec<u64> = shape.iter().map(|&n| random.below(n)).collect();
        let len = shape.iter().zip(&start).map(|(&n, &s)| 1 + random.below(n - s)).collect();
        Block { start, len }
    }

    pub fn rows(&self) -> u64 {
        self.len[..self.len.len() - 1].iter().product()
    }

    pub fn row_bytes(&self, element: ElementType) -> usize {
        *self.len.last().unwrap() as usize * element.size_bytes() as usize
    }

    /// Offset of row number `row` of the block in the array's data.
    pub fn offset(&self, shape: &[u64], element: ElementType, row: u64) -> usize {
        let rank = shape.len();
        let mut rest = row;
        let mut index = self.start.clone();
        for d in (0..rank - 1).rev() {
            index[d] += rest % self.len[d];
            rest /= self.len[d];
        }
        let linear = (0..rank).fold(0, |n, d| n * shape[d] + index[d]);
        linear as usize * element.size_bytes() as usize
    }
}

/// Memory for blocks, with guard bytes between rows that no transfer may touch.
pub struct Canvas {
    pub buffer: AlignedBuffer,
    pub skew: usize,
    pub pitch: usize,
}

impl Canvas {
    pub const GUARD: u8 = 0xA5;

    pub fn new(rows: u64, row_bytes: usize, skew: usize, gap: usize) -> Canvas {
        let pitch = row_bytes + gap;
        let mut buffer = AlignedBuffer::new(skew + pitch * rows as usize + 64).unwrap();
        // SAFETY: just made, no pointers given out.
        unsafe { buffer.as_mut_slice() }.fill(Canvas::GUARD);
        Canvas { buffer, skew, pitch }
    }

    pub fn memory(&self) -> *mut u8 {
        self.buffer.as_mut_ptr().wrapping_add(self.skew)
    }
}
