//! Somebody else's memory, in one file: a scratchpad whose contents are scrambled, so that only its own transfers can make
//! sense of them, and that a program reaches by a machine file:
//!
//! ```toml
//! [memory.edge]
//! driver = "scrambled"
//! ```
//!
//! A real one would hand the rows to a DMA engine or to a network; here each byte is XORed on its way. Leaves cannot work on
//! scrambled bytes, so the memory has a processor of its own: it unscrambles the whole for a leaf, and scrambles it again.

use multigrain::driver::{
    Child, Direction, Driver, DriverFacts, Location, Receipt, Site, Span, StoreError, Transfer, rows,
};
use multigrain::rooms::store::AlignedBuffer;
use multigrain_front::Front;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

fn main() -> std::process::ExitCode {
    multigrain::driver::register(Arc::new(Scrambled)).expect("nobody else has the name");
    Front::new("custom", env!("CARGO_PKG_VERSION"), "saxpy, on a memory of our own")
        .application::<multigrain_saxpy::app::Args>()
        .main()
}

/// What planning needs to know: blocks are copied by whoever needs them, and leaves run on the memory's own processor.
const FACTS: DriverFacts = DriverFacts { name: "scrambled", own_processor: true, ..DriverFacts::COPIES };

const KEY: u8 = 0xa5;

struct Scrambled;

impl Driver for Scrambled {
    fn facts(&self) -> &'static DriverFacts {
        &FACTS
    }

    fn reserve(&self, site: &Site<'_>) -> Result<Option<Box<dyn Child>>, StoreError> {
        Ok(Some(Box::new(Scratchpad(AlignedBuffer::new(site.bytes.max(1) as usize)?))))
    }
}

struct Scratchpad(AlignedBuffer);

impl Scratchpad {
    fn scramble(&self) {
        // SAFETY: one thread at a time executes what this memory's child does, and no transfer outlasts `issue`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr(), self.0.len()) };
        bytes.iter_mut().for_each(|byte| *byte ^= KEY);
    }
}

// SAFETY: the buffer is its own, and nothing is on its way when `issue` returns.
unsafe impl Child for Scratchpad {
    fn span(&self) -> Span {
        Span { start: self.0.as_mut_ptr(), len_bytes: self.0.len() as u64 }
    }

    unsafe fn issue(&self, transfer: &Transfer<'_>) -> Result<Option<Box<dyn Receipt>>, StoreError> {
        let Location::Memory(block) = &transfer.location else {
            let what = format!("{} has no address", (transfer.name)());
            return Err(StoreError::Driver { driver: FACTS.name.into(), what });
        };
        let mut here = self.0.as_mut_ptr().wrapping_add(transfer.offset_bytes as usize);
        for (there, bytes) in rows(block) {
            // SAFETY: a row of the block, in the parent and here; nobody else uses either until this returns.
            let (here_row, there_row) =
                unsafe { (std::slice::from_raw_parts_mut(here, bytes), std::slice::from_raw_parts_mut(there, bytes)) };
            let (from, to) = match transfer.direction {
                Direction::Read => (there_row, here_row),
                Direction::Write => (here_row, there_row),
            };
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from ^ KEY);
            here = here.wrapping_add(bytes);
        }
        Ok(None)
    }

    unsafe fn run(&self, leaf: &mut (dyn FnMut() + Send)) -> std::thread::Result<()> {
        self.scramble();
        let done = catch_unwind(AssertUnwindSafe(leaf));
        self.scramble();
        done
    }
}

/// It holds what every driver promises.
#[test]
fn conforms() {
    let driver: Arc<dyn Driver> = Arc::new(Scrambled);
    multigrain_conformance::all(&driver, &multigrain_conformance::Extent::SMALL);
}
