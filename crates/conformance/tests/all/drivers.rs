//! The drivers that come along pass the suite. `MULTIGRAIN_CASES=500` is longer, `MULTIGRAIN_SEED=n` another.

use multigrain::driver::{DiskDriver, Driver, DriverName, Drivers, LocalDriver};
use multigrain::rooms::store::{Disk, DiskOptions};
use multigrain_conformance::{Extent, all};
use std::sync::Arc;

#[test]
fn views() {
    let shared = Drivers::with_disk(None).get(DriverName::SHARED).unwrap().clone();
    all(&shared, &Extent::USUAL.from_environment());
}

#[test]
fn local_stores() {
    all(&(Arc::new(LocalDriver) as Arc<dyn Driver>), &Extent::USUAL.from_environment());
}

#[test]
fn files() {
    let disk = Disk::new(DiskOptions { staging_bytes: 256 << 10, ..DiskOptions::default() }).unwrap();
    let driver: Arc<dyn Driver> = Arc::new(DiskDriver::new(Arc::new(disk)));
    all(&driver, &Extent { programs: 12, ..Extent::USUAL }.from_environment());
}
