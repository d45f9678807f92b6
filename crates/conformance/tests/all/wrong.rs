//! Drivers that are wrong in the ways in which drivers are: the suite finds each of them.

use multigrain::driver::{
    Child, Direction, Driver, DriverFacts, LocalDriver, Location, Receipt, Site, Span, StoreError, Transfer,
};
use multigrain::prelude::Region;
use multigrain_conformance::{Extent, all};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    /// Nothing: the suite has no complaint.
    Nothing,
    /// A fetch forgets the last row of a block that has several.
    LastRow,
    /// A fetch writes a little beyond its block.
    Beyond,
    /// Every tenth transfer is lost.
    Tenth,
    /// Stores go nowhere.
    StoresNowhere,
    /// All children have one memory.
    OneMemory,
    /// The memory is smaller than what was asked for.
    TooSmall,
}

struct WrongDriver(Wrong, Mutex<Option<Arc<dyn Child>>>);

impl Driver for WrongDriver {
    fn facts(&self) -> &'static DriverFacts {
        static FACTS: DriverFacts = DriverFacts { name: "wrong", ..DriverFacts::COPIES };
        &FACTS
    }

    fn reserve(&self, site: &Site<'_>) -> Result<Option<Box<dyn Child>>, StoreError> {
        let made = || Ok::<_, StoreError>(Arc::<dyn Child>::from(LocalDriver.reserve(site)?.expect("copies")));
        let inner = match self.0 {
            Wrong::OneMemory => {
                let mut one = self.1.lock().unwrap();
                let new = one.take().filter(|one| one.span().len_bytes >= site.memory.capacity_bytes);
                let inner = new.map_or_else(made, Ok)?;
                *one = Some(inner.clone());
                inner
            }
            _ => made()?,
        };
        Ok(Some(Box::new(WrongChild { wrong: self.0, inner, issued: AtomicU64::new(0) })))
    }
}

struct WrongChild {
    wrong: Wrong,
    inner: Arc<dyn Child>,
    issued: AtomicU64,
}

// SAFETY: it moves less than it should, or within the block; two children with one memory are what is to be noticed.
unsafe impl Child for WrongChild {
    fn span(&self) -> Span {
        let span = self.inner.span();
        match self.wrong {
            Wrong::TooSmall => Span { len_bytes: span.len_bytes / 1000, ..span },
            _ => span,
        }
    }

    unsafe fn issue(&self, transfer: &Transfer<'_>) -> Result<Option<Box<dyn Receipt>>, StoreError> {
        let Location::Memory(part) = transfer.location else { unreachable!("it has no files") };
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        let lens = part.shape();
        match (self.wrong, transfer.direction) {
            (Wrong::LastRow, Direction::Read) if lens.dims()[0] > 1 => {
                let mut len = lens.dims().to_vec();
                len[0] -= 1;
                let less = part.part(&Region::new(&vec![0; len.len()], &len)).unwrap();
                let Transfer { direction, offset_bytes, slack, timed, name, .. } = *transfer;
                let transfer =
                    Transfer { direction, location: Location::Memory(less), offset_bytes, slack, timed, name };
                // SAFETY: less than what the caller vouches for.
                unsafe { self.inner.issue(&transfer) }
            }
            (Wrong::Beyond, Direction::Read) => {
                // SAFETY: as the caller says; what is written besides lies in the memory.
                unsafe {
                    let moved = self.inner.issue(transfer);
                    let end = transfer.offset_bytes + lens.elements() * part.element().size_bytes();
                    let span = self.inner.span();
                    let beyond = span.len_bytes.saturating_sub(end).min(64);
                    span.start.add(end as usize).write_bytes(0xff, beyond as usize);
                    moved
                }
            }
            (Wrong::Tenth, _) if number % 10 == 9 => Ok(None),
            (Wrong::StoresNowhere, Direction::Write) => Ok(None),
            // SAFETY: as the caller says.
            _ => unsafe { self.inner.issue(transfer) },
        }
    }
}

fn complaint(wrong: Wrong) -> Option<String> {
    let driver: Arc<dyn Driver> = Arc::new(WrongDriver(wrong, Mutex::new(None)));
    let result = catch_unwind(AssertUnwindSafe(|| all(&driver, &Extent { programs: 16, ..Extent::SMALL })));
    result.err().map(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[test]
fn wrong_drivers_are_found() {
    assert_eq!(complaint(Wrong::Nothing), None);
    for wrong in [Wrong::LastRow, Wrong::Beyond, Wrong::Tenth, Wrong::StoresNowhere, Wrong::OneMemory, Wrong::TooSmall]
    {
        let said = complaint(wrong).unwrap_or_else(|| panic!("{wrong:?} is not found"));
        assert!(said.contains("seed"), "{wrong:?}: {said}");
    }
}
