//! Buffers that other processes of this computer map: files without names in its memory, which one finds by the other's process.

use crate::buffer::{AlignedBuffer, map};
use crate::error::StoreError;
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use std::collections::HashSet;
use std::ffi::CStr;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::{AsFd, AsRawFd};

/// Where a buffer lies that another process may map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPlace {
    process: u32,
    file: u32,
    /// Stands behind the buffer, so that what is mapped is what was meant.
    mark: u64,
}

/// By what files are told from others' in `/proc`.
const NAME: &CStr = c"multigrain";
/// A file that others map stays as long as it is.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
/// Bytes behind a buffer that others may map: a page, which begins with its mark.
const MARK_BYTES: usize = AlignedBuffer::ALIGNMENT_BYTES;

impl SharedPlace {
    /// Bytes that a place is told in.
    pub const BYTES: usize = 16;

    /// As it is told.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let number = u128::from(self.process) << 96 | u128::from(self.file) << 64 | u128::from(self.mark);
        number.to_le_bytes()
    }

    /// What was told.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> SharedPlace {
        let number = u128::from_le_bytes(bytes);
        SharedPlace { process: (number >> 96) as u32, file: (number >> 64) as u32, mark: number as u64 }
    }
}

impl AlignedBuffer {
    /// `len_bytes` of zeroed memory that other processes may map, where the system has such memory: else there is no place for them.
    ///
    /// # Errors
    /// As [`AlignedBuffer::new`].
    pub fn shared(len_bytes: usize) -> Result<(AlignedBuffer, Option<SharedPlace>), StoreError> {
        match AlignedBuffer::in_file(len_bytes) {
            Some((buffer, place)) => Ok((buffer, Some(place))),
            None => Ok((AlignedBuffer::new(len_bytes)?, None)),
        }
    }

    fn in_file(len_bytes: usize) -> Option<(AlignedBuffer, SharedPlace)> {
        let mapping_bytes = mapped_bytes(len_bytes)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Some systems refuse files that could be executed; before Linux 6.3 there are no others.
        let file = rustix::fs::memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL)
            .or_else(|_| rustix::fs::memfd_create(NAME, flags))
            .ok()?;
        rustix::fs::ftruncate(&file, mapping_bytes as u64).ok()?;
        rustix::fs::fcntl_add_seals(&file, SEALS | SealFlags::SEAL).ok()?;
        if counts_strictly() {
            set_aside(&file, mapping_bytes as u64).ok()?;
        }
        let start = map(mapping_bytes, Some(file.as_fd())).ok()?;
        let mark = RandomState::new().hash_one((len_bytes, start.addr()));
        // SAFETY: the page behind the buffer is a part of the mapping, which nobody else has yet.
        unsafe { start.add(mapping_bytes - MARK_BYTES).cast::<u64>().write(mark) };
        let place = SharedPlace { process: std::process::id(), file: u32::try_from(file.as_raw_fd()).ok()?, mark };
        Some((AlignedBuffer::mapped(start, len_bytes, mapping_bytes, Some(file)), place))
    }

    /// The memory of another process's buffer of so many bytes; none where it cannot be had: the process is elsewhere or has ended, or the
    /// system refuses it.
    pub fn of_other(place: SharedPlace, len_bytes: usize) -> Option<AlignedBuffer> {
        let mapping_bytes = mapped_bytes(len_bytes)?;
        let path = format!("/proc/{}/fd/{}", place.process, place.file);
        // Where the number means another process's file, as between containers, that is not opened: a device might do something then.
        let name = rustix::fs::readlink(&path, Vec::new()).ok()?;
        if !name.to_bytes().starts_with(&[b"/memfd:", NAME.to_bytes()].concat()) {
            return None;
        }
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()?;
        // What is mapped beyond a file's end cannot be touched, so it has the right length, and keeps it.
        let is_kept = rustix::fs::fcntl_get_seals(&file).ok()?.contains(SEALS);
        if !is_kept || rustix::fs::fstat(&file).ok()?.st_size as u64 != mapping_bytes as u64 {
            return None;
        }
        let start = map(mapping_bytes, Some(file.as_fd())).ok()?;
        let buffer = AlignedBuffer::mapped(start, len_bytes, mapping_bytes, None);
        // SAFETY: the file is as long as the mapping, and nobody writes the mark once its place was told.
        let mark = unsafe { start.add(mapping_bytes - MARK_BYTES).cast::<u64>().read() };
        (mark == place.mark).then_some(buffer)
    }
}

/// Whether the system lets nobody have more memory than there is (vm.overcommit_memory = 2): what is mapped of memory of its own is counted
/// at once then, but that of such a file page by page, and who touches one too many is ended.
fn counts_strictly() -> bool {
    std::fs::read("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.starts_with(b"2"))
}

/// Has a file's memory now, as far as there is so much.
fn set_aside(file: impl AsFd, bytes: u64) -> rustix::io::Result<()> {
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes)
}

/// Bytes of some buffers that this process has touched, of files that others may have made; 0 where the system does not tell.
pub fn touched_bytes<'a>(buffers: impl Iterator<Item = &'a AlignedBuffer>) -> u64 {
    let starts: HashSet<u64> =
        buffers.filter(|buffer| !buffer.is_empty()).map(|buffer| buffer.as_ptr().addr() as u64).collect();
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let (mut is_one, mut sum) = (false, 0);
    for line in maps.lines() {
        if let Some(kib) = line.strip_prefix("Rss:") {
            let kib: u64 = kib.trim().strip_suffix("kB").and_then(|kib| kib.trim().parse().ok()).unwrap_or_default();
            sum += if is_one { kib << 10 } else { 0 };
        } else if let Some((start, _)) = line.split_once('-') {
            // Other lines have no number in front of a hyphen.
            is_one = u64::from_str_radix(start, 16).map_or(is_one, |start| starts.contains(&start));
        }
    }
    sum
}

/// Bytes of the mapping of a buffer with its mark.
fn mapped_bytes(len_bytes: usize) -> Option<usize> {
    // Miri has no such files.
    let whole = len_bytes.checked_next_multiple_of(AlignedBuffer::ALIGNMENT_BYTES).filter(|_| !cfg!(miri))?;
    whole.checked_add(MARK_BYTES).filter(|&bytes| i64::try_from(bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_writes_the_other_reads_and_nothing_else_is_taken_for_it() {
        let (pipe, _other) = std::io::pipe().unwrap();
        for len in [0, 1, 4096, 10_000, 3 << 20] {
            let (buffer, place) = AlignedBuffer::shared(len).unwrap();
            assert_eq!(buffer.len(), len);
            assert_eq!(place.is_none(), cfg!(miri), "this system has memory that others can map");
            let Some(place) = place else { continue };
            assert_eq!(SharedPlace::from_bytes(place.to_bytes()), place);
            let other = AlignedBuffer::of_other(place, len).unwrap();
            // SAFETY: one after the other.
            unsafe {
                assert!(other.as_slice().iter().all(|&byte| byte == 0));
                (0..len).for_each(|at| buffer.as_mut_ptr().add(at).write(at as u8 ^ 7));
                assert!(other.as_slice().iter().enumerate().all(|(at, &byte)| byte == at as u8 ^ 7));
                if len > 0 {
                    other.as_mut_ptr().add(len - 1).write(1);
                    assert_eq!(buffer.as_slice()[len - 1], 1);
                }
            }
            for wrong in [
                SharedPlace { mark: place.mark ^ 1, ..place },
                SharedPlace { file: 1 << 20, ..place },
                SharedPlace { file: pipe.as_raw_fd() as u32, ..place },
                SharedPlace { process: u32::MAX, ..place },
            ] {
                assert!(AlignedBuffer::of_other(wrong, len).is_none(), "{wrong:?}");
            }
            assert!(AlignedBuffer::of_other(place, len + 8192).is_none());
            // Nobody takes from others what they have mapped.
            let path = format!("/proc/self/fd/{}", place.file);
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            assert!(file.set_len(0).is_err() && file.set_len(1 << 30).is_err());
            drop(buffer);
            assert!(AlignedBuffer::of_other(place, len).is_none());
            // Who has it keeps it.
            // SAFETY: nobody else has it any more.
            assert_eq!(unsafe { other.as_slice() }.len(), len);
        }
    }
    #[test]
    #[cfg_attr(miri, ignore = "it has no such files")]
    fn a_file_that_may_become_shorter_is_not_mapped() {
        let (buffer, place) = AlignedBuffer::shared(5000).unwrap();
        let place = place.unwrap();
        let file = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, mapped_bytes(5000).unwrap() as u64).unwrap();
        let start = map(mapped_bytes(5000).unwrap(), Some(file.as_fd())).unwrap();
        // SAFETY: the page behind the buffer, which nobody else has.
        unsafe { start.add(8192).cast::<u64>().write(place.mark) };
        let other = SharedPlace { file: file.as_raw_fd() as u32, ..place };
        assert!(AlignedBuffer::of_other(other, 5000).is_none());
        rustix::fs::fcntl_add_seals(&file, SEALS).unwrap();
        assert!(AlignedBuffer::of_other(other, 5000).is_some());
        drop((AlignedBuffer::mapped(start, 5000, mapped_bytes(5000).unwrap(), None), buffer));
    }

    #[test]
    #[cfg_attr(miri, ignore = "it has no such files")]
    fn memory_is_counted_as_it_is_touched_unless_it_was_set_aside() {
        const LEN: usize = 3 << 20;
        let (buffer, place) = AlignedBuffer::shared(LEN).unwrap();
        let other = AlignedBuffer::of_other(place.unwrap(), LEN).unwrap();
        let blocks =
            |buffer: &AlignedBuffer| rustix::fs::fstat(buffer.file().unwrap()).unwrap().st_blocks as usize * 512;
        if !counts_strictly() {
            assert!(blocks(&buffer) <= MARK_BYTES);
        }
        // SAFETY: nobody else writes or reads.
        (0..1 << 20).step_by(4096).for_each(|at| unsafe { other.as_mut_ptr().add(at).write(1) });
        let touched = touched_bytes([&other].into_iter()) as usize;
        assert!((1 << 20..=(1 << 20) + MARK_BYTES).contains(&touched), "{touched}");
        assert!(touched_bytes([&buffer].into_iter()) as usize <= MARK_BYTES, "what others touch is theirs");
        set_aside(buffer.file().unwrap(), LEN as u64).unwrap();
        assert!(blocks(&buffer) >= LEN);
    }
}
