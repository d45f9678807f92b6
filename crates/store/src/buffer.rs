//! Page-aligned memory for staging, arenas and direct I/O.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use crate::error::{Errno, StoreError};

/// From this size on the kernel is asked for huge pages: fewer page faults, and fewer pieces of memory in a direct transfer.
/// Paravirtual disks take 254 at once, so a transfer of 1 MiB in small pages becomes two.
const HUGE_PAGES_FROM_BYTES: usize = 1 << 20;
/// Alignment of a huge page on every architecture that this runs on.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The last huge page is asked for whole where what it takes beyond the buffer is at most one part in so many of the buffer,
/// or nobody else uses it: else it would be memory that nobody counts.
const WASTED_PART: usize = 64;

/// Bytes of a buffer for which huge pages are asked, when so many are spare.
fn huge_bytes(len_bytes: usize, spare_bytes: u64) -> usize {
    let most = spare_bytes.max((len_bytes / WASTED_PART) as u64);
    match len_bytes.checked_next_multiple_of(HUGE_PAGE_BYTES) {
        _ if len_bytes < HUGE_PAGES_FROM_BYTES => 0,
        Some(whole) if (whole - len_bytes) as u64 <= most => whole,
        _ => len_bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES,
    }
}

/// Only for its alignment.
#[repr(align(4096))]
struct Page;

/// Zeroed anonymous memory, aligned to 4096 bytes (to 2 MiB from 1 MiB on, unless it is [shared](AlignedBuffer::shared)).
///
/// The memory is not touched when it is made: pages appear on first use, on the NUMA node of the toucher.
/// Others may write through [`as_mut_ptr`](Self::as_mut_ptr) while a transfer or a task owns a part of it; who owns
/// which part when is the caller's business, so the slice views are `unsafe`.
pub struct AlignedBuffer {
    start: NonNull<u8>,
    len_bytes: usize,
    mapping: NonNull<u8>,
    mapping_bytes: usize,
    /// By which other processes find it.
    _file: Option<OwnedFd>,
}

// SAFETY: the buffer owns its mapping alone; nothing in it belongs to a thread. Access to the bytes goes through raw
// pointers or `unsafe` views, whose users uphold exclusion.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; a shared reference gives out only pointers and `unsafe` views.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// Alignment of the first byte that is always kept.
    pub const ALIGNMENT_BYTES: usize = 4096;

    /// `len_bytes` of zeroed memory.
    ///
    /// # Errors
    /// [`StoreError::Memory`] when the operating system refuses the mapping.
    pub fn new(len_bytes: usize) -> Result<AlignedBuffer, StoreError> {
        AlignedBuffer::with_spare(len_bytes, 0)
    }

    /// The same where so many bytes beyond these are nobody's: the last huge page may take of them.
    ///
    /// # Errors
    /// As [`AlignedBuffer::new`].
    pub fn with_spare(len_bytes: usize, spare_bytes: u64) -> Result<AlignedBuffer, StoreError> {
        let refused = |errno| StoreError::Memory { asked_bytes: len_bytes as u64, errno };
        if len_bytes == 0 {
            // An empty buffer maps nothing; its address is aligned and never read.
            let start = NonNull::<Page>::dangling().cast();
            return Ok(AlignedBuffer::mapped(start, 0, 0, None));
        }
        let huge = len_bytes >= HUGE_PAGES_FROM_BYTES;
        let (page_bytes, slack) = if huge { (HUGE_PAGE_BYTES, HUGE_PAGE_BYTES) } else { (Self::ALIGNMENT_BYTES, 0) };
        let whole_bytes = len_bytes.checked_next_multiple_of(page_bytes);
        let mapping_bytes =
            whole_bytes.and_then(|n| n.checked_add(slack)).ok_or_else(|| refused(Errno(libc::ENOMEM)))?;
        let mapping = map(mapping_bytes, None).map_err(refused)?;
        let skip = if huge { mapping.addr().get().wrapping_neg() % HUGE_PAGE_BYTES } else { 0 };
        // SAFETY: `skip` is below the slack that was added to the mapping, so the result lies inside it.
        let start = unsafe { mapping.add(skip) };
        let huge_bytes = huge_bytes(len_bytes, spare_bytes);
        if huge_bytes > 0 {
            advise_huge(start, huge_bytes);
        }
        Ok(AlignedBuffer { start, len_bytes, mapping, mapping_bytes, _file: None })
    }

    /// The first bytes of a mapping, which is its own from here on.
    pub(crate) fn mapped(
        start: NonNull<u8>,
        len_bytes: usize,
        mapping_bytes: usize,
        file: Option<OwnedFd>,
    ) -> AlignedBuffer {
        AlignedBuffer { start, len_bytes, mapping: start, mapping_bytes, _file: file }
    }

    /// The file that others map.
    #[cfg(test)]
    pub(crate) fn file(&self) -> Option<BorrowedFd<'_>> {
        self._file.as_ref().map(std::os::fd::AsFd::as_fd)
    }

    /// Bytes in the buffer.
    pub fn len(&self) -> usize {
        self.len_bytes
    }

    /// Whether the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// Address of the first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Address of the first byte, for writing. Who writes upholds exclusion (see the type).
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes as a slice.
    ///
    /// # Safety
    /// Nobody writes the buffer while the slice lives.
    pub unsafe fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping holds `len_bytes` initialised (zeroed) bytes; the caller excludes writers.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len_bytes) }
    }

    /// The bytes as a mutable slice; the exclusive borrow excludes other users of this handle.
    ///
    /// # Safety
    /// No transfer or task that was given a pointer into the buffer is still under way.
    pub unsafe fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the caller vouches for the pointers that were given out.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len_bytes) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.mapping_bytes > 0 {
            unmap(self.mapping, self.mapping_bytes);
        }
    }
}

impl std::fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.len_bytes)
    }
}

/// Maps so many bytes, of their own or of a file.
pub(crate) fn map(bytes: usize, file: Option<BorrowedFd<'_>>) -> Result<NonNull<u8>, Errno> {
    // No swap space is set aside: arenas are sized to the memory. (Miri does not know the flag.)
    let no_reserve = if cfg!(miri) { 0 } else { libc::MAP_NORESERVE };
    let kind = if file.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
    let file = file.map_or(-1, |file| file.as_raw_fd());
    // SAFETY: a mapping at an address of the kernel's choice touches no existing memory.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, kind | no_reserve, file, 0)
    };
    if address == libc::MAP_FAILED {
        Err(Errno::last())
    } else {
        NonNull::new(address.cast()).ok_or(Errno(libc::ENOMEM))
    }
}

fn advise_huge(start: NonNull<u8>, bytes: usize) {
    if cfg!(miri) {
        return;
    }
    // Only advice: where the kernel has no huge pages nothing is lost, so the result is of no interest.
    // SAFETY: the range lies inside a mapping that the caller has just made and still owns.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

fn unmap(mapping: NonNull<u8>, bytes: usize) {
    // SAFETY: called once, from drop, with the address and length that mmap returned; nothing refers to it any more.
    unsafe { libc::munmap(mapping.as_ptr().cast(), bytes) };
}

/// Gives memory that the process has freed back to the system, where the allocator keeps it.
pub fn give_free_memory_back() {
    // SAFETY: it touches nothing but free memory of the allocator.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives the pages of the program's own code back to the system's cache of its file, from which those that are executed again are
/// mapped again, as at first: what only planning executes need not count in a run. Segments with pages that are the process's
/// own (a debugger's breakpoints, relocations, patches) stay as they are.
pub fn give_code_back() {
    // SAFETY: it is called for each object that is loaded until it is not answered by zero, with no data of ours.
    #[cfg(all(target_os = "linux", not(miri)))]
    unsafe {
        libc::dl_iterate_phdr(Some(give_segments_back), std::ptr::null_mut());
    }
}

/// Of the first object, which is the program itself, what is not written to and holds the file's bytes alone.
#[cfg(all(target_os = "linux", not(miri)))]
unsafe extern "C" fn give_segments_back(
    object: *mut libc::dl_phdr_info,
    _: usize,
    _: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the object and its headers are valid as long as this is executed. Pages that the file alone gives are read from it
    // again when they are touched next.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let headers = std::slice::from_raw_parts((*object).dlpi_phdr, (*object).dlpi_phnum.into());
        for header in headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W == 0) {
            let begin = (*object).dlpi_addr as usize + header.p_vaddr as usize;
            let (first, end) = (begin.next_multiple_of(page), (begin + header.p_memsz as usize) / page * page);
            if first < end && is_of_file(first / page, end / page).unwrap_or(false) {
                libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_DONTNEED);
            }
        }
    }
    1
}

/// Whether none of the pages with these numbers is the process's own: Linux's `pagemap` tells of each by bit 63 that it is in memory,
/// by 62 that it is swapped out, and by 61 that it is a file's.
#[cfg(all(target_os = "linux", not(miri)))]
fn is_of_file(first: usize, end: usize) -> std::io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let mut entries = vec![0; 8 * (end - first)];
    std::fs::File::open("/proc/self/pagemap")?.read_exact_at(&mut entries, 8 * first as u64)?;
    let mut bits = entries.as_chunks::<8>().0.iter().map(|entry| u64::from_ne_bytes(*entry) >> 61);
    Ok(bits.all(|bits| matches!(bits, 0b000 | 0b101)))
}

/// Has allocations of this process from 128 KiB on, what the allocator begins with, be mappings of their own always, so
/// that what is freed is the system's again at once.
/// Without this, the allocator of the C library keeps up to twice the largest allocation that was ever freed (mallopt(3),
/// `M_MMAP_THRESHOLD`), which no limit of memory can count.
pub fn keep_no_free_memory() {
    // SAFETY: a parameter of the allocator, which it sets under its own lock.
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(miri))]
    #[test]
    fn a_page_that_was_written_is_not_the_files() {
        // SAFETY: it touches no memory.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        // This program, which has more pages.
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        // SAFETY: a private mapping of a file that is longer, which nobody else uses.
        unsafe {
            let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, std::os::fd::AsRawFd::as_raw_fd(&file));
            let mapped = libc::mmap(std::ptr::null_mut(), 4 * page, access, libc::MAP_PRIVATE, fd, 0);
            assert_ne!(mapped, libc::MAP_FAILED);
            let (bytes, first) = (mapped.cast::<u8>(), mapped as usize / page);
            assert!(is_of_file(first, first + 4).unwrap(), "untouched");
            let read = bytes.add(2 * page).read_volatile();
            assert!(is_of_file(first, first + 4).unwrap(), "read");
            bytes.add(2 * page).write_volatile(!read);
            assert!(!is_of_file(first, first + 4).unwrap(), "written");
            assert!(is_of_file(first, first + 2).unwrap() && is_of_file(first + 3, first + 4).unwrap());
            libc::munmap(mapped, 4 * page);
        }
    }

    #[test]
    fn huge_pages_take_little_more_than_the_buffer() {
        for len in (0..9 << 20).step_by(77_777).chain([256 << 20, (256 << 20) + 1]) {
            let huge = huge_bytes(len, 0);
            assert_eq!(huge % HUGE_PAGE_BYTES, 0);
            assert!(huge <= len + len / WASTED_PART && huge + HUGE_PAGE_BYTES > len || huge == 0, "{len}: {huge}");
        }
        let huge = |spare| [1, 2, 5].map(|mib: usize| huge_bytes(mib << 20, spare) >> 20);
        assert_eq!([huge(0), huge((1 << 20) - 1), huge(1 << 20)], [[0, 2, 4], [0, 2, 4], [2, 2, 6]]);
    }

    #[test]
    fn zeroed_aligned_and_writable() {
        for len in [0, 1, 4095, 4096, 4097, 5 << 20] {
            let mut buffer = AlignedBuffer::new(len).unwrap();
            assert_eq!(buffer.as_ptr().addr() % AlignedBuffer::ALIGNMENT_BYTES, 0);
            assert_eq!(buffer.len(), len);
            // SAFETY: nobody else holds a pointer into the buffer.
            let bytes = unsafe { buffer.as_mut_slice() };
            assert_eq!(bytes.len(), len);
            assert!(bytes.iter().step_by(61).all(|&b| b == 0));
            if let Some(last) = bytes.last_mut() {
                *last = 7;
            }
        }
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(matches!(AlignedBuffer::new(usize::MAX - 10), Err(StoreError::Memory { .. })));
        if !cfg!(miri) {
            assert!(matches!(AlignedBuffer::new(usize::MAX / 2), Err(StoreError::Memory { .. })));
        }
    }
}
