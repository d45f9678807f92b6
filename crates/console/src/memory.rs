//! Memory that the system does not give.

use crate::failure::name;
use multigrain::whole;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The system's allocator, for a program's `#[global_allocator]`. Where the system gives no more, the program says so in one
/// line with what to do, discards what is half written, and ends with status 2; the library of Rust would abort it.
#[derive(Debug)]
pub struct Memory {
    advice: &'static str,
}

thread_local! {
    /// Whether the thread looks for itself whether it got what it asked for.
    static TRIES: Cell<bool> = const { Cell::new(false) };
}

/// Has something tried: what it allocates, by `try_reserve` and the like, may be refused.
pub fn tried<T>(attempt: impl FnOnce() -> T) -> T {
    let before = TRIES.replace(true);
    let found = attempt();
    TRIES.set(before);
    found
}

impl Memory {
    /// `advice` says what takes less.
    pub const fn new(advice: &'static str) -> Memory {
        Memory { advice }
    }

    fn given(&self, memory: *mut u8, bytes: usize) -> *mut u8 {
        if memory.is_null() && !TRIES.get() {
            self.end(bytes);
        }
        memory
    }

    /// Nothing in here allocates or waits for a lock: whoever holds one may be here, too.
    #[cold]
    fn end(&self, bytes: usize) -> ! {
        static ENDS: AtomicBool = AtomicBool::new(false);
        while ENDS.swap(true, Ordering::Relaxed) {
            std::thread::sleep(Duration::from_secs(1));
        }
        TRIES.set(true);
        let mut line = [0_u8; 512];
        let mut rest = &mut line[..];
        let (name, advice) = (name(), self.advice);
        let _ = writeln!(rest, "{name}: the system does not give {bytes} more bytes of memory; {advice}");
        let left = rest.len();
        let text = &line[..line.len() - left];
        // SAFETY: text of so many bytes. Where even standard error is gone, there is nobody to tell.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        whole::discard_all();
        // SAFETY: ends the process; other threads may be anywhere, so nothing of theirs is ended in order.
        unsafe { libc::_exit(2) }
    }
}

// SAFETY: what the system's allocator gives and takes.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller.
        self.given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller.
        self.given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by the caller.
        self.given(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}
