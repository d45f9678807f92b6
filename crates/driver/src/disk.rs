//! Files: direct asynchronous transfers between them and a buffer.

use crate::{Child, Driver, Location, Receipt, Site, Span, Transfer};
use multigrain_machine::{Driver as Name, DriverFacts};
use multigrain_program::Region;
use multigrain_store::{AlignedBuffer, ArrayFile, Disk, StoreError, Ticket, TransferList};
use multigrain_trace::Tick;
use std::any::Any;
use std::sync::Arc;

/// The parent keeps arrays in files, which are reached through a [`Disk`].
pub struct DiskDriver {
    disk: Arc<Disk>,
    spare_bytes: u64,
}

impl DiskDriver {
    /// With this way to files.
    pub fn new(disk: Arc<Disk>) -> DiskDriver {
        DiskDriver { disk, spare_bytes: 0 }
    }

    /// The same for a memory of which so many bytes are used by nobody: the last of its huge pages may be taken whole.
    #[must_use]
    pub fn with_spare(self, spare_bytes: u64) -> DiskDriver {
        DiskDriver { spare_bytes, ..self }
    }
}

impl Driver for DiskDriver {
    fn facts(&self) -> &'static DriverFacts {
        Name::DISK.facts()
    }

    fn reserve(&self, site: &Site<'_>) -> Result<Option<Box<dyn Child>>, StoreError> {
        let len_bytes = usize::try_from(site.bytes).unwrap_or(usize::MAX).max(1);
        let buffer = AlignedBuffer::with_spare(len_bytes, self.spare_bytes)?;
        Ok(Some(Box::new(Filled { disk: Arc::clone(&self.disk), buffer })))
    }
}

/// A buffer that is filled from files.
struct Filled {
    disk: Arc<Disk>,
    buffer: AlignedBuffer,
}

impl Filled {
    fn list(&self, transfer: &Transfer<'_>, file: &ArrayFile, region: &Region) -> Result<TransferList, StoreError> {
        let memory = self.buffer.as_mut_ptr().wrapping_add(transfer.offset_bytes as usize);
        let row_bytes = region.len().last().copied().unwrap_or(1) * file.element().size_bytes();
        let (start, len) = (region.start(), region.len());
        let list =
            TransferList::block(file, transfer.direction, start, len, memory, row_bytes, (transfer.name)().into())?;
        Ok(list.with_slack(transfer.slack))
    }
}

// SAFETY: the buffer is its own; a list is checked against file and buffer, and a ticket counts its operations.
unsafe impl Child for Filled {
    fn span(&self) -> Span {
        Span { start: self.buffer.as_mut_ptr(), len_bytes: self.buffer.len() as u64 }
    }

    unsafe fn issue(&self, transfer: &Transfer<'_>) -> Result<Option<Box<dyn Receipt>>, StoreError> {
        let found = match &transfer.location {
            Location::Opaque(array, region) => (*array as &dyn Any).downcast_ref::<ArrayFile>().zip(Some(region)),
            Location::Memory(_) => None,
        };
        let Some((file, region)) = found else {
            let what = format!("{} does not lie in a file", (transfer.name)());
            return Err(StoreError::Driver { driver: Name::DISK.name.into(), what });
        };
        let list = self.list(transfer, file, region)?;
        // SAFETY: the caller vouches for the bytes of the child, which lie in the buffer, and for those of the file; the
        // buffer outlives the transfer, since it is the engine's until all receipts are over.
        let ticket = unsafe { if transfer.timed { self.disk.submit_timed(list) } else { self.disk.submit(list) } };
        Ok(Some(Box::new(ticket)))
    }
}

impl Receipt for Ticket {
    fn wait(&self) -> Result<(), StoreError> {
        Ticket::wait(self)
    }

    fn times(&self) -> Option<[Tick; 2]> {
        Ticket::times(self)
    }
}
