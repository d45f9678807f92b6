//! Buffers that other processes of this computer map: files without names in its memory, which one finds by the other's process.

use crate::buffer::{AlignedBuffer, map};
use crate::error::StoreError;
use rustix::fs::{MemfdFlags, Mode, OFlags};
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
        let file = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC).ok()?;
        rustix::fs::ftruncate(&file, mapping_bytes as u64).ok()?;
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
        // Of a file of another length what is mapped beyond its end could not be touched.
        if rustix::fs::fstat(&file).ok()?.st_size as u64 != mapping_bytes as u64 {
            return None;
        }
        let start = map(mapping_bytes, Some(file.as_fd())).ok()?;
        let buffer = AlignedBuffer::mapped(start, len_bytes, mapping_bytes, None);
        // SAFETY: the file is as long as the mapping, and nobody writes the mark once its place was told.
        let mark = unsafe { start.add(mapping_bytes - MARK_BYTES).cast::<u64>().read() };
        (mark == place.mark).then_some(buffer)
    }
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
            drop(buffer);
            assert!(AlignedBuffer::of_other(place, len).is_none());
            // Who has it keeps it.
            // SAFETY: nobody else has it any more.
            assert_eq!(unsafe { other.as_slice() }.len(), len);
        }
    }
}
