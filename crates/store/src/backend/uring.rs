//! io_uring: operations are queued in shared memory and submitted together with the wait for completions.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use io_uring::{IoUring, opcode, types};
use rustix::event::{EventfdFlags, eventfd};

use super::{Backend, Completion, RawOperation};
use crate::buffer::AlignedBuffer;
use crate::error::Errno;
use crate::transfer::Direction;

/// Key of the read that waits for the waker.
const EVENT_KEY: u64 = u64::MAX;
/// The kernel takes at most 1 GiB in one registered buffer; kept a multiple of a huge page.
const REGISTERED_BYTES_MAX: usize = 1 << 30;

/// A counter in the kernel that the ring can wait for.
pub(crate) struct Event(Arc<OwnedFd>);

impl Event {
    pub(crate) fn signal(&self) {
        // Fails only when the counter would overflow, and then the I/O thread is awake anyway.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// A ring, used by one thread.
pub(crate) struct Uring {
    ring: IoUring,
    event: Arc<OwnedFd>,
    /// Where the kernel puts the counter; boxed, so that it stays where it is.
    event_value: Box<[u8; 8]>,
    armed: bool,
    /// Memory that the kernel has been told of, in parts of [`REGISTERED_BYTES_MAX`].
    registered: Option<Arc<AlignedBuffer>>,
}

impl Uring {
    /// A ring for `depth` operations at once. To be called on the thread that will use it.
    pub(crate) fn new(depth: u32) -> Result<(Uring, Event), Errno> {
        let entries = depth.saturating_mul(2).clamp(8, 4096);
        // One issuer and deferred completion work spare interrupts of the thread (kernel 6.1); older kernels do without.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(entries * 2)
            .build(entries)
            .or_else(|_| IoUring::builder().setup_cqsize(entries * 2).build(entries))?;
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if ![opcode::Read::CODE, opcode::Write::CODE].iter().all(|&code| probe.is_supported(code)) {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let uring =
            Uring { ring, event: Arc::clone(&event), event_value: Box::new([0; 8]), armed: false, registered: None };
        Ok((uring, Event(event)))
    }

    /// Registers memory with the kernel, so that operations in it need not pin its pages each time. The pages are made
    /// present at once. To be called once at the most; where it is not possible (the limit of locked memory), everything
    /// works unregistered.
    pub(crate) fn register(&mut self, memory: &Arc<AlignedBuffer>) -> Result<(), Errno> {
        let part = |start: usize| {
            let len = (memory.len() - start).min(REGISTERED_BYTES_MAX);
            libc::iovec { iov_base: memory.as_mut_ptr().wrapping_add(start).cast(), iov_len: len }
        };
        let parts: Vec<_> = (0..memory.len()).step_by(REGISTERED_BYTES_MAX).map(part).collect();
        // SAFETY: the parts lie in `memory`, which is kept alive until after the ring is gone.
        unsafe { self.ring.submitter().register_buffers(&parts)? };
        self.registered = Some(Arc::clone(memory));
        Ok(())
    }

    /// The registered part that the memory lies in, by its number.
    fn registered_part(&self, memory: *mut u8, len_bytes: u32) -> Option<u16> {
        let registered = self.registered.as_ref()?;
        let start = memory.addr().checked_sub(registered.as_ptr().addr())?;
        let last = start + (len_bytes as usize).saturating_sub(1);
        let part = start / REGISTERED_BYTES_MAX;
        (last < registered.len() && last / REGISTERED_BYTES_MAX == part).then_some(part as u16)
    }

    fn push(&mut self, entry: &io_uring::squeue::Entry) {
        // SAFETY: what the entry refers to stays valid until its completion: the contract of `start`, and for the
        // event the boxed value, which lives as long as the ring (see `drop`).
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The queue is full of entries that the kernel has not yet taken.
            if let Err(error) = self.ring.submit() {
                survivable(&error);
            }
        }
    }

    fn arm(&mut self) {
        if !self.armed {
            let fd = types::Fd(self.event.as_fd().as_raw_fd());
            let entry = opcode::Read::new(fd, self.event_value.as_mut_ptr(), 8).build().user_data(EVENT_KEY);
            self.push(&entry);
            self.armed = true;
        }
    }
}

/// Errors of the wait itself that pass: a signal, or a kernel short of memory for the moment. Anything else means that
/// the ring is unusable while the kernel may still write to memory that others will reuse, and there is no safe way on.
fn survivable(error: &std::io::Error) {
    match error.raw_os_error() {
        Some(libc::EINTR) => {}
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => std::thread::sleep(std::time::Duration::from_millis(1)),
        _ => {
            eprintln!("io_uring broke down while transfers were in flight: {error}; ending the process at once");
            std::process::abort();
        }
    }
}

impl Backend for Uring {
    unsafe fn start(&mut self, operation: RawOperation) {
        let RawOperation { key, direction, fd, offset_bytes, memory, len_bytes } = operation;
        let fd = types::Fd(fd);
        let entry = match (direction, self.registered_part(memory, len_bytes)) {
            (Direction::Read, Some(index)) => {
                opcode::ReadFixed::new(fd, memory, len_bytes, index).offset(offset_bytes).build()
            }
            (Direction::Read, None) => opcode::Read::new(fd, memory, len_bytes).offset(offset_bytes).build(),
            (Direction::Write, Some(index)) => {
                opcode::WriteFixed::new(fd, memory, len_bytes, index).offset(offset_bytes).build()
            }
            (Direction::Write, None) => opcode::Write::new(fd, memory, len_bytes).offset(offset_bytes).build(),
        };
        self.push(&entry.user_data(key));
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) {
        self.arm();
        while let Err(error) = self.ring.submit_and_wait(1) {
            survivable(&error);
            if !self.ring.completion().is_empty() {
                break;
            }
        }
        for entry in self.ring.completion() {
            if entry.user_data() == EVENT_KEY {
                self.armed = false;
                continue;
            }
            let result = u32::try_from(entry.result()).map_err(|_| Errno(-entry.result()));
            completions.push(Completion { key: entry.user_data(), result });
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // The scheduler has reaped every transfer. The read on the event may still be armed, and the kernel may write
        // its eight bytes after the ring's descriptor is closed: satisfy it, and wait for it.
        while self.armed {
            Event(Arc::clone(&self.event)).signal();
            self.reap_event();
        }
    }
}

impl Uring {
    fn reap_event(&mut self) {
        if let Err(error) = self.ring.submit_and_wait(1) {
            survivable(&error);
        }
        if self.ring.completion().any(|entry| entry.user_data() == EVENT_KEY) {
            self.armed = false;
        }
    }
}
