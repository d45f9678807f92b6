//! io_uring: operations are queued in shared memory, submitted by whoever starts them, awaited by whoever waits.

use std::sync::Arc;

use io_uring::{IoUring, opcode, types};

use super::{Backend, Completion, RawOperation};
use crate::buffer::AlignedBuffer;
use crate::error::Errno;
use crate::transfer::Direction;

/// Places in the table of registered memory; each takes at most 1 GiB.
const REGISTERED_MAX: usize = 256;
/// The kernel takes at most 1 GiB in one registered buffer; kept a multiple of a huge page.
const REGISTERED_BYTES_MAX: usize = 1 << 30;
/// io_uring_enter(2): wait for completions.
const ENTER_GETEVENTS: u32 = 1;

struct Registered {
    start: usize,
    end: usize,
    index: u16,
}

/// A ring. Whoever holds it alone uses its queues; others may block at it through [`UringNews`].
pub(crate) struct Uring {
    ring: Arc<IoUring>,
    /// Entries that are queued and not yet submitted.
    queued: usize,
    staging: Arc<AlignedBuffer>,
    /// Once the first operation on the staging memory has begun: the parts of it that are registered, or why none is. To pin
    /// it takes longer than a small run, which perhaps never uses it.
    registered: Option<Result<Vec<Registered>, Errno>>,
}

/// Where to block until an operation of a [`Uring`] is complete.
pub(crate) struct UringNews(Arc<IoUring>);

impl UringNews {
    /// Blocks while the queue of completions is empty.
    pub(crate) fn wait(&self) {
        // SAFETY: nothing is submitted and no argument is passed; the call touches neither queue in this process.
        let waited = unsafe { self.0.submitter().enter::<libc::sigset_t>(0, 1, ENTER_GETEVENTS, None) };
        if let Err(error) = waited {
            survivable(&error);
        }
    }
}

impl Uring {
    /// A ring for `depth` operations at once, most of them on this memory.
    pub(crate) fn new(depth: u32, staging: &Arc<AlignedBuffer>) -> Result<(Uring, UringNews), Errno> {
        let entries = depth.saturating_mul(2).clamp(8, 4096);
        let ring: IoUring = IoUring::builder().setup_cqsize(entries * 2).build(entries)?;
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if ![opcode::Read::CODE, opcode::Write::CODE].iter().all(|&code| probe.is_supported(code)) {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        // Without a table of buffers `register` reports the reason and everything works unregistered.
        let _ = ring.submitter().register_buffers_sparse(REGISTERED_MAX as u32);
        let ring = Arc::new(ring);
        let news = UringNews(Arc::clone(&ring));
        Ok((Uring { ring, queued: 0, staging: Arc::clone(staging), registered: None }, news))
    }

    /// Registers the staging memory so that operations on it need not pin it each time.
    fn register(&self) -> Result<Vec<Registered>, Errno> {
        let begin = self.staging.as_ptr().addr();
        let (mut parts, mut done) = (Vec::new(), 0);
        while done < self.staging.len() {
            let len = (self.staging.len() - done).min(REGISTERED_BYTES_MAX);
            let index = parts.len();
            if index == REGISTERED_MAX {
                return Err(Errno(libc::ENOSPC));
            }
            let part = libc::iovec { iov_base: self.staging.as_mut_ptr().wrapping_add(done).cast(), iov_len: len };
            // SAFETY: the range lies in `staging`, which is kept alive until after the ring is gone.
            unsafe { self.ring.submitter().register_buffers_update(index as u32, &[part], None)? };
            let start = begin + done;
            parts.push(Registered { start, end: start + len, index: index as u16 });
            done += len;
        }
        Ok(parts)
    }

    /// The registered buffer that the memory lies in.
    fn registered_index(&mut self, memory: *mut u8, len_bytes: u32) -> Option<u16> {
        let start = memory.addr();
        let end = start + len_bytes as usize;
        let begin = self.staging.as_ptr().addr();
        if start < begin || begin + self.staging.len() < end {
            return None;
        }
        if self.registered.is_none() {
            self.registered = Some(self.register());
        }
        let parts = self.registered.as_ref()?.as_ref().ok()?;
        parts.iter().find(|r| r.start <= start && end <= r.end).map(|r| r.index)
    }

    fn push(&mut self, entry: &io_uring::squeue::Entry) {
        loop {
            // SAFETY: `&mut self` is the only way to the queue of submissions. What the entry refers to stays valid
            // until its completion: the contract of `start`.
            let pushed = unsafe { self.ring.submission_shared().push(entry) };
            if pushed.is_ok() {
                self.queued += 1;
                return;
            }
            // The queue is full of entries that the kernel has not yet taken.
            self.submit();
        }
    }
}

/// Errors of the call itself that pass: a signal, or a kernel short of memory for the moment. Anything else means that
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
    fn name(&self) -> String {
        match &self.registered {
            None => "io_uring".to_owned(),
            Some(Ok(_)) => "io_uring, registered buffers".to_owned(),
            Some(Err(errno)) => format!("io_uring, unregistered buffers ({errno}; {})", locked_memory_limit()),
        }
    }

    unsafe fn start(&mut self, operation: RawOperation) {
        let RawOperation { key, direction, fd, offset_bytes, memory, len_bytes } = operation;
        let fd = types::Fd(fd);
        let entry = match (direction, self.registered_index(memory, len_bytes)) {
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

    fn submit(&mut self) {
        while self.queued > 0 {
            match self.ring.submit() {
                Ok(taken) => self.queued -= taken.min(self.queued),
                Err(error) => survivable(&error),
            }
        }
    }

    fn take(&mut self, completions: &mut Vec<Completion>) {
        // SAFETY: `&mut self` is the only way to the queue of completions.
        for entry in unsafe { self.ring.completion_shared() } {
            let result = u32::try_from(entry.result()).map_err(|_| Errno(-entry.result()));
            completions.push(Completion { key: entry.user_data(), result });
        }
    }
}

fn locked_memory_limit() -> String {
    match rustix::process::getrlimit(rustix::process::Resource::Memlock).current {
        Some(bytes) => format!("locked memory is limited to {bytes} bytes"),
        None => "locked memory is not limited".to_owned(),
    }
}
