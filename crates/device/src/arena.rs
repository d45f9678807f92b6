//! Memory that is mapped twice: where everybody knows it, and where only the device's own threads do.
//!
//! At the known addresses nothing can be read or written but while the device's processor executes a leaf; whoever follows
//! one of them at another time is ended by the system (SIGSEGV), as he is beyond either end, where pages without memory lie. The
//! copy engine works at the other addresses, which nobody else is told.

use multigrain::driver::StoreError;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::ptr::null_mut;

/// The pages of the arena, and of those around it.
const PAGE_BYTES: usize = 4096;

/// Pages of zeros, twice.
pub(crate) struct Arena {
    /// The known addresses, with a page before and a page behind.
    known: *mut c_void,
    /// The other addresses.
    own: *mut c_void,
    bytes: usize,
    guarded: bool,
}

// SAFETY: addresses belong to no thread; who follows them is told by `open` and by the copy engine's contract.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Unless it is `guarded` the known addresses are open to everybody all the time.
    pub(crate) fn new(bytes: u64, guarded: bool) -> Result<Arena, StoreError> {
        let refused = |errno: Errno| StoreError::Memory { asked_bytes: bytes, errno: errno.into() };
        let bytes = usize::try_from(bytes).ok().and_then(|n| n.max(1).checked_next_multiple_of(PAGE_BYTES));
        let bytes = bytes.filter(|n| n.checked_add(2 * PAGE_BYTES).is_some()).ok_or(refused(Errno::NOMEM))?;
        let file = memfd_create("device", MemfdFlags::CLOEXEC).map_err(refused)?;
        ftruncate(&file, bytes as u64).map_err(refused)?;
        // SAFETY: new mappings at addresses of the system's choice touch nothing that exists; the last of them replaces pages of
        // the first, which nobody knows yet.
        unsafe {
            let known = mmap_anonymous(null_mut(), bytes + 2 * PAGE_BYTES, ProtFlags::empty(), MapFlags::PRIVATE);
            let known = known.map_err(refused)?;
            let mut arena = Arena { known, own: null_mut(), bytes, guarded };
            let rights = ProtFlags::READ | ProtFlags::WRITE;
            arena.own = mmap(null_mut(), bytes, rights, MapFlags::SHARED, &file, 0).map_err(refused)?;
            let (place, first) = (arena.start().cast(), if guarded { ProtFlags::empty() } else { rights });
            mmap(place, bytes, first, MapFlags::SHARED | MapFlags::FIXED, &file, 0).map_err(refused)?;
            Ok(arena)
        }
    }

    /// The first of the known addresses.
    pub(crate) fn start(&self) -> *mut u8 {
        self.known.cast::<u8>().wrapping_add(PAGE_BYTES)
    }

    /// Where the copy engine finds it.
    pub(crate) fn own(&self) -> *mut u8 {
        self.own.cast()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Lets the known addresses be followed or not.
    pub(crate) fn open(&self, open: bool) -> Result<(), Errno> {
        if !self.guarded {
            return Ok(());
        }
        let rights = if open { MprotectFlags::READ | MprotectFlags::WRITE } else { MprotectFlags::empty() };
        // SAFETY: the pages are this arena's; what is in them stays.
        unsafe { mprotect(self.start().cast(), self.bytes, rights) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, with these lengths; the arena is the last that knows them, its threads have ended.
        unsafe {
            let _ = munmap(self.known, self.bytes + 2 * PAGE_BYTES);
            if !self.own.is_null() {
                let _ = munmap(self.own, self.bytes);
            }
        }
    }
}
