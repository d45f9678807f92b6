//! In a process of its own, since it ends what every thread writes.

use multigrain_whole::{WholeFile, discard_all};
use std::io::Write;

#[test]
fn what_is_under_way_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let mut file = WholeFile::create(&path).unwrap();
    file.write_all(b"half").unwrap();
    // Some file systems have no files without a name.
    assert!(std::fs::read_dir(directory.path()).unwrap().count() <= 1);
    discard_all();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    // What is gone is not published.
    assert!(file.publish().is_err());
    assert!(!path.exists());
}
