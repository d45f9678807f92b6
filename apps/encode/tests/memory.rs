//! What a run asks the system for before it begins is what its pictures take.

use multigrain_encode::picture::{Picture, Size};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, and bytes that it has given.
struct Counted;

static GIVEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: what the system's allocator gives and takes.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        GIVEN.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        GIVEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static MEMORY: Counted = Counted;

#[test]
fn pictures_take_what_is_told() {
    // Of 720p: one alone, and with what is found in each of sixteen others.
    for (references, size) in [1, 2, 16].into_iter().zip([(1280, 720), (98, 66), (640, 272)]) {
        let size = Size { width: size.0, height: size.1 };
        let before = GIVEN.load(Ordering::Relaxed);
        let picture = Picture::new(size, references);
        let taken = GIVEN.load(Ordering::Relaxed) - before;
        let told = Picture::bytes(size, references);
        // The list of fields, and what the test's own thread allocates, are all that is beside it.
        assert!(told <= taken && taken < told + 4096, "{size:?}, {references}: {told} bytes are told, {taken} taken");
        drop(picture);
    }
}
