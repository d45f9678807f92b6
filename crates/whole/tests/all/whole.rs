//! What is under a name, and what is beside it, whatever happens on the way.

use multigrain_whole::{TargetError, WholeFile, begin_writeback, check_target, is_same_file, write};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_failure_leaves_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    write(&path, |out| out.write_all(b"first")).unwrap();
    let failed = write(&path, |out| {
        out.write_all(&[b'x'; 1 << 20])?;
        assert!(names(directory.path()).len() <= 2, "what is written has no name, or one");
        Err(io::Error::other("no"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no");
    let panicked = std::panic::catch_unwind(|| write::<io::Error>(&path, |_| panic!("on purpose")));
    assert!(panicked.is_err());
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert_eq!(names(directory.path()), ["table"]);
}

#[test]
fn the_name_appears_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let mut file = WholeFile::create(&path).unwrap();
    file.write_all(b"half").unwrap();
    assert!(!path.exists());
    file.write_all(b" and half").unwrap();
    assert_eq!(file.path(), path);
    file.publish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"half and half");
    assert_eq!(names(directory.path()), ["table"]);
}

#[test]
fn links_are_followed_and_stay() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let inside = |name: &str| directory.path().join(name);
    fs::create_dir(inside("there")).unwrap();
    symlink("there/table", inside("one")).unwrap();
    symlink("one", inside("two")).unwrap();
    for content in ["first", "second"] {
        check_target(&inside("two")).unwrap();
        write(&inside("two"), |out| out.write_all(content.as_bytes())).unwrap();
        assert_eq!(fs::read(inside("there/table")).unwrap(), content.as_bytes());
        assert!(fs::symlink_metadata(inside("two")).unwrap().is_symlink(), "{content}");
    }
    assert_eq!(names(directory.path()), ["one", "there", "two"]);
    assert!(is_same_file(&inside("two"), &inside("there/../there/table")));
    assert!(is_same_file(&inside("not yet"), &inside("there/../not yet")));
    symlink("circle", inside("circle")).unwrap();
    assert!(check_target(&inside("circle")).is_err());
}

#[test]
fn what_is_write_protected_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    fs::write(&path, "kept").unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let message = check_target(&path).unwrap_err().to_string();
    assert!(message.contains("write-protected"), "{message}");
    assert_eq!(fs::read(&path).unwrap(), b"kept");
}

#[test]
fn two_writers_of_one_file_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let (mut one, mut two) = (WholeFile::create(&path).unwrap(), WholeFile::create(&path).unwrap());
    one.write_all(b"one").unwrap();
    two.write_all(b"two and more").unwrap();
    two.publish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two and more");
    one.publish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one");
    assert_eq!(names(directory.path()), ["table"]);
}

#[test]
fn a_part_of_a_killed_process_is_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    fs::write(directory.path().join(format!("table.{}.part", std::process::id())), "something long").unwrap();
    write(&path, |out| out.write_all(b"short")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"short");
    assert_eq!(names(directory.path()), ["table"]);
}

/// A process that may write files of 512 bytes stands for a disk without room: the test is executed again in one.
#[test]
fn a_full_disk_is_an_error() {
    const INSIDE: &str = "MULTIGRAIN_TEST_WITHOUT_ROOM";
    if std::env::var_os(INSIDE).is_none() {
        let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact whole::a_full_disk_is_an_error";
        let this = std::env::current_exe().unwrap();
        let ran = Command::new("sh").args(["-c", script]).arg(this).env(INSIDE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table");
    let failed = write(&path, |out| out.write_all(&[b'x'; 2000]));
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    assert!(names(directory.path()).is_empty());
    write(&path, |out| out.write_all(b"little")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"little");
}

#[test]
fn a_link_in_the_place_of_a_part_is_not_followed() {
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, other) = (directory.path().join("table"), elsewhere.path().join("other"));
    fs::write(&other, "somebody else's").unwrap();
    let part = directory.path().join(format!("table.{}.part", std::process::id()));
    std::os::unix::fs::symlink(&other, &part).unwrap();
    write(&path, |out| out.write_all(b"mine")).unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"somebody else's");
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    assert_eq!(names(directory.path()), ["table"]);
}

#[test]
fn what_cannot_be_written_is_refused_before() {
    let directory = tempfile::tempdir().unwrap();
    let inside = |name: &str| directory.path().join(name);
    check_target(&inside("table")).unwrap();
    fs::write(inside("there"), "already").unwrap();
    check_target(&inside("there")).unwrap();
    assert_eq!(fs::read(inside("there")).unwrap(), b"already");
    let refused = |path: &Path, words: &str| {
        let message = check_target(path).unwrap_err().to_string();
        assert!(message.contains(words) && message.contains(path.to_str().unwrap()), "{message}");
        assert!(write::<io::Error>(path, |_| Ok(())).is_err(), "{}", path.display());
    };
    refused(directory.path(), "it is a directory; name a file");
    refused(&inside(".."), "it is a directory");
    refused(&inside("no/table"), "there is no directory");
    refused(&inside("there/table"), "not a directory");
    // Not even a privileged process may replace these by a file.
    refused(Path::new("/dev/null"), "a device or a pipe");
    let refused = check_target(Path::new("/proc/table"));
    assert!(matches!(refused, Err(TargetError::Refused { .. })), "{refused:?}");
    assert_eq!(names(directory.path()), ["there"]);
}

#[test]
fn what_is_longer_than_its_pieces_on_the_way_to_the_disk_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long");
    // Three times over the length after which the way to the disk begins, in writes that do not divide it.
    let bytes: Vec<u8> = (0..(25 << 20) + 13_u32).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    let mut file = WholeFile::create(&path).unwrap();
    bytes.chunks(1_000_003).for_each(|piece| file.write_all(piece).unwrap());
    file.publish().unwrap();
    assert!(std::fs::read(&path).unwrap() == bytes);
    // Places that no file has are nobody's fault.
    let file = std::fs::File::open(&path).unwrap();
    begin_writeback(&file, u64::MAX, u64::MAX);
    begin_writeback(&file, 1 << 40, 0);
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[test]
fn what_takes_the_place_of_a_private_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for mode in [0o600, 0o640, 0o755] {
        let path = folder.path().join(format!("{mode:o}"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        write(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
    }
}

/// Names as long as a file system has them, and longer ones.
#[test]
fn a_name_that_is_too_long_is_told_before_the_work() {
    let directory = tempfile::tempdir().unwrap();
    // Characters of two bytes, so that some piece of the name ends within one.
    for name in ["a".repeat(255), format!("a{}", "ä".repeat(127)), "ä".repeat(127)] {
        let path = directory.path().join(&name);
        check_target(&path).unwrap();
        write(&path, |out| out.write_all(b"all")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all");
        fs::remove_file(&path).unwrap();
    }
    for name in ["a".repeat(256), "ä".repeat(128), format!("{}x", "a/".repeat(3000))] {
        let error = check_target(&directory.path().join(&name)).unwrap_err();
        assert!(!error.to_string().contains("another directory"), "{error}");
    }
    let error = check_target(&directory.path().join("a".repeat(256))).unwrap_err();
    assert!(matches!(error, TargetError::NameTooLong { .. }), "{error}");
    assert!(names(directory.path()).is_empty());
}
