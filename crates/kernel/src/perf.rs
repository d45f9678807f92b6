//! perf_event_open(2), and the rings that it fills.

use crate::events::{Event, Tracepoints, read};
use crate::ring::parts;
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_FLAG_FD_CLOEXEC, PERF_SAMPLE_CPU, PERF_SAMPLE_RAW, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
    PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT, perf_event_attr, perf_event_mmap_page,
};
use perf_event_open_sys::{ioctls, perf_event_open};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whose events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    /// Of one thread of this process, wherever it runs.
    Thread(u32),
    /// Of everybody on one processor.
    Processor(u32),
}

/// Why there is no ring.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: io::Error,
    /// The events were had, and their ring was not.
    pub(crate) mapping: bool,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { error, mapping: false }
    }
}

/// Bytes of a ring, a power of two; at least a page.
pub(crate) const RING_BYTES: usize = 128 << 10;

/// The clock that events are given: not adjusted by anybody, so its line through two moments is straight.
const CLOCK: c_int = rustix::time::ClockId::MonotonicRaw as c_int;

fn attributes() -> perf_event_attr {
    let mut attributes = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        sample_type: u64::from(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU),
        clockid: CLOCK,
        ..perf_event_attr::default()
    };
    attributes.set_sample_id_all(1);
    attributes.set_use_clockid(1);
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark = (RING_BYTES / 2) as u32;
    attributes
}

fn open(attributes: &mut perf_event_attr, whose: Whose) -> io::Result<OwnedFd> {
    let (thread, processor) = match whose {
        Whose::Thread(thread) => (thread as i32, -1),
        Whose::Processor(processor) => (-1, processor as c_int),
    };
    // SAFETY: the attributes are initialised, with their size, and outlive the call; nothing that they ask for writes to
    // this process's memory.
    let file = unsafe { perf_event_open(attributes, thread, processor, -1, PERF_FLAG_FD_CLOEXEC.into()) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made it, so it is open and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// A ring, its mapping, and the events that go into it.
#[derive(Debug)]
pub(crate) struct Ring {
    file: OwnedFd,
    /// Events of tracepoints that go into the same ring.
    others: Vec<OwnedFd>,
    /// A page that says what was written, and behind it the bytes.
    mapping: NonNull<u8>,
    page_bytes: usize,
    ring_bytes: usize,
    copied: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone, and any thread may read it and unmap it.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens the events of switches.
    pub(crate) fn open(whose: Whose) -> Result<Ring, Refusal> {
        let mut attributes = attributes();
        (attributes.type_, attributes.config) = (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY.into());
        attributes.set_context_switch(1);
        // What needs no privilege; switches are told all the same.
        attributes.set_exclude_kernel(1);
        attributes.set_exclude_hv(1);
        let file = open(&mut attributes, whose)?;
        let page_bytes = rustix::param::page_size();
        let ring_bytes = RING_BYTES.max(page_bytes);
        // SAFETY: a new mapping at an address that the system chooses replaces nothing.
        let mapping = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap(std::ptr::null_mut(), page_bytes + ring_bytes, access, MapFlags::SHARED, &file, 0)
        };
        let mapping = mapping.map_err(|errno| Refusal { error: errno.into(), mapping: true })?;
        let Some(mapping) = NonNull::new(mapping.cast()) else {
            return Err(io::Error::other("the ring was mapped nowhere").into());
        };
        Ok(Ring { file, others: Vec::new(), mapping, page_bytes, ring_bytes, copied: Vec::new() })
    }

    /// Adds the events of a tracepoint on the same processor, those that pass a filter.
    pub(crate) fn add(&mut self, tracepoint: u16, processor: u32, filter: Option<&str>) -> io::Result<()> {
        let mut attributes = attributes();
        (attributes.type_, attributes.config) = (PERF_TYPE_TRACEPOINT, tracepoint.into());
        attributes.sample_type |= u64::from(PERF_SAMPLE_RAW);
        attributes.__bindgen_anon_1.sample_period = 1;
        let file = open(&mut attributes, Whose::Processor(processor))?;
        if let Some(filter) = filter {
            let filter = CString::new(filter).map_err(io::Error::other)?;
            // SAFETY: the text ends with a zero and outlives the call, which only reads it.
            done(unsafe { ioctls::SET_FILTER(file.as_raw_fd(), filter.as_ptr().cast_mut()) })?;
        }
        // SAFETY: both are open files of perf events; the call keeps what it needs of them itself.
        done(unsafe { ioctls::SET_OUTPUT(file.as_raw_fd(), self.file.as_raw_fd()) })?;
        self.others.push(file);
        Ok(())
    }

    fn page(&self) -> *mut perf_event_mmap_page {
        self.mapping.as_ptr().cast()
    }

    /// Takes what has been written.
    pub(crate) fn read(&mut self, tracepoints: &Tracepoints, found: &mut Vec<Event>) {
        // SAFETY: the page is mapped as long as this value is, its counts are aligned, and both sides use them as atomic words.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*self.page()).data_head),
                AtomicU64::from_ptr(&raw mut (*self.page()).data_tail),
            )
        };
        // What was written before the kernel moved the head is seen behind this.
        let (from, to) = (tail.load(Ordering::Relaxed), head.load(Ordering::Acquire));
        self.copied.clear();
        for part in parts(self.ring_bytes, from, to) {
            // SAFETY: `parts` gives ranges within the ring, which is mapped behind the page. The kernel does not write
            // between tail and head before the tail has moved.
            let bytes = unsafe {
                std::slice::from_raw_parts(self.mapping.as_ptr().add(self.page_bytes + part.start), part.len())
            };
            self.copied.extend_from_slice(bytes);
        }
        // The kernel may write there again once nothing more is read.
        tail.store(to, Ordering::Release);
        read(&self.copied, tracepoints, found);
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, of this length, and nothing borrows from it.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.page_bytes + self.ring_bytes) };
    }
}

fn done(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
