//! What a runtime has for all of its runs: what was chosen, and the way to files.

use crate::error::Error;
use crate::limits::main_memory;
use crate::options::{MachineChoice, Options};
use multigrain_driver::spread::Beside;
use multigrain_driver::{DiskDriver, Drivers};
use multigrain_engine::Part;
use multigrain_store::buffer::keep_no_free_memory;
use multigrain_store::{Disk, DiskOptions};
use std::sync::Arc;

/// The part of a memory that transfer buffers take at most.
pub(crate) const BUFFERS_SHARE: u64 = 8;

/// What was chosen, and the way to files.
pub(crate) struct Means {
    pub(crate) options: Options,
    pub(crate) disk: Arc<Disk>,
}

impl Means {
    /// # Errors
    /// When the way to files that was asked for is refused by the system.
    pub(crate) fn new(mut options: Options) -> Result<Means, Error> {
        options.ranks = options.ranks.or_else(multigrain_driver::ranks::joined).filter(|ranks| ranks.count() > 1);
        if options.memory_bytes.is_some() || matches!(options.machine, MachineChoice::Given(_)) {
            keep_no_free_memory();
        }
        let staging_bytes = buffer_bytes(&options) as usize;
        let faults = options.faults.clone();
        let disk = Disk::new(DiskOptions { backend: options.backend, staging_bytes, faults, ..DiskOptions::default() })
            .map_err(Error::File)?;
        Ok(Means { options, disk: Arc::new(disk) })
    }

    /// What moves bytes along the edges of its machines; of the main memory so many bytes are spare.
    pub(crate) fn drivers(&self, spare_bytes: u64) -> Drivers {
        let disk = || DiskDriver::new(self.disk.clone()).with_spare(spare_bytes);
        let known = Drivers::with_disk(Some(disk()));
        let known = match self.options.ranks {
            Some(_) => known.replaced_by(&[Arc::new(Beside(disk()))]),
            None => known,
        };
        known.replaced_by(&self.options.drivers)
    }

    /// What of a machine is this process's.
    pub(crate) fn part(&self) -> Part {
        let planned = || self.options.planned_ranks.map(|ranks| Part { rank: 0, ranks });
        let ranks = self.options.ranks.as_ref().map(|ranks| Part { rank: ranks.rank(), ranks: ranks.count() });
        ranks.or_else(planned).unwrap_or(Part::WHOLE)
    }
}

/// Transfer buffers serve what is not aligned; the blocks themselves need the memory more.
fn buffer_bytes(options: &Options) -> u64 {
    let (least, most) = (1 << 20, 8 << 20);
    let share = |memory: u64| (memory / 128).clamp(least, most).min(memory / BUFFERS_SHARE);
    let given = || match &options.machine {
        MachineChoice::Given(machine) => Some(main_memory(machine).capacity_bytes),
        MachineChoice::Detected => None,
    };
    options.disk_buffer_bytes.unwrap_or_else(|| options.memory_bytes.or_else(given).map_or(most, share))
}
