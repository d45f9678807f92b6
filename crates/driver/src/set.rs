//! The drivers that there are.

use crate::{Child, DiskDriver, Driver, LocalDriver, Site};
use multigrain_machine::{Driver as Name, DriverFacts, MachineError};
use multigrain_store::StoreError;
use std::sync::{Arc, PoisonError, RwLock};

static REGISTERED: RwLock<Vec<Arc<dyn Driver>>> = RwLock::new(Vec::new());

/// Makes a driver known: to machine files that are read from here on, and to runs on such machines. The same facts again
/// change nothing.
///
/// # Errors
/// Another driver has the name.
pub fn register(driver: Arc<dyn Driver>) -> Result<Name, MachineError> {
    let name = Name::register(driver.facts())?;
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if !registered.iter().any(|other| other.facts().name == name.name) {
        registered.push(driver);
    }
    Ok(name)
}

/// Drivers by name: those that a run may need.
#[derive(Clone)]
pub struct Drivers(Vec<Arc<dyn Driver>>);

impl Drivers {
    /// What comes along, that of disks only with a way to files, and what is registered by now.
    pub fn with_disk(disk: Option<DiskDriver>) -> Drivers {
        let mut drivers: Vec<Arc<dyn Driver>> = vec![Arc::new(Shared), Arc::new(LocalDriver)];
        drivers.extend(disk.map(|disk| Arc::new(disk) as Arc<dyn Driver>));
        drivers.extend(REGISTERED.read().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        Drivers(drivers)
    }

    /// The same with other drivers instead of those of their names.
    #[must_use]
    pub fn replaced_by(self, others: &[Arc<dyn Driver>]) -> Drivers {
        // The first of a name is the one that counts.
        Drivers(others.iter().cloned().chain(self.0).collect())
    }

    /// The driver of this name.
    pub fn get(&self, name: Name) -> Option<&Arc<dyn Driver>> {
        self.0.iter().find(|driver| driver.facts().name == name.name)
    }
}

/// Parent and child share one address space.
struct Shared;

impl Driver for Shared {
    fn facts(&self) -> &'static DriverFacts {
        Name::SHARED.facts()
    }

    fn reserve(&self, _: &Site<'_>) -> Result<Option<Box<dyn Child>>, StoreError> {
        Ok(None)
    }
}
