//! A file that is no longer what it was is noticed.

use crate::support;

use multigrain_store::{BackendChoice, ElementType};
use std::os::unix::fs::FileExt;
use support::*;

#[test]
fn length_time_and_sampled_content_tell_files_apart() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Pool);
    // Looked at as a whole; the longest of these; sampled.
    for len in [0, 1, 100, 1 << 20, (1 << 20) + 1, 5_000_001] {
        let path = scratch.path("f");
        let content = Random::new(len as u64).bytes(len);
        std::fs::write(&path, &content).unwrap();
        let before = disk.state_of(&path).unwrap();
        assert_eq!(before, disk.state_of(&path).unwrap());
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        let time = file.metadata().unwrap().modified().unwrap();
        let mut altered = vec![0, len / 2, len.saturating_sub(1)];
        if len > 1 << 20 {
            // In the middle lies no sample.
            altered.remove(1);
            let again = Random::new(1).bytes(len);
            file.write_all_at(&again, 0).unwrap();
            file.set_modified(time).unwrap();
            let other = disk.state_of(&path).unwrap();
            assert!(!other.holds_what(&before) && other.modified == before.modified, "{len} bytes, made anew");
            file.write_all_at(&content, 0).unwrap();
            file.set_modified(time).unwrap();
        }
        for at in altered.into_iter().filter(|&at| at < len) {
            file.write_all_at(&[!content[at]], at as u64).unwrap();
            file.set_modified(time).unwrap();
            let other = disk.state_of(&path).unwrap();
            assert!(!other.holds_what(&before) && other.modified == before.modified, "byte {at} of {len}");
            file.write_all_at(&content[at..=at], at as u64).unwrap();
            file.set_modified(time).unwrap();
            assert!(disk.state_of(&path).unwrap().holds_what(&before), "byte {at} of {len}, put back");
        }
        file.set_modified(time + std::time::Duration::from_nanos(1)).unwrap();
        assert!(!disk.state_of(&path).unwrap().holds_what(&before), "touched");
        file.set_modified(time).unwrap();
        file.set_len(len as u64 + 1).unwrap();
        file.set_modified(time).unwrap();
        assert!(!disk.state_of(&path).unwrap().holds_what(&before), "longer");
    }
}

#[test]
fn an_open_file_is_looked_at_whatever_has_its_name() {
    let scratch = Scratch::new();
    for backend in backends() {
        let disk = disk(backend);
        let path = scratch.path("raw");
        std::fs::write(&path, vec![7; 9000]).unwrap();
        let before = disk.state_of(&path).unwrap();
        let file = disk.open_raw(&path, ElementType::U8, &[9000]).unwrap();
        assert!(disk.is_still(&file, &before).unwrap());
        std::fs::write(scratch.path("new"), vec![8; 9000]).unwrap();
        std::fs::rename(scratch.path("new"), &path).unwrap();
        assert!(disk.is_still(&file, &before).unwrap());
        assert!(!disk.state_of(&path).unwrap().holds_what(&before));
    }
}

/// Two copies of one content are the same, whenever they were made; one byte more, and they are not.
#[test]
fn of_a_file_without_a_name_all_bytes_count_and_no_time() {
    use std::os::fd::AsRawFd;
    let (scratch, disk) = (Scratch::new(), disk(BackendChoice::Pool));
    let content = Random::new(3).bytes(3_000_001);
    let state = |content: &[u8], time: u64| {
        let path = scratch.path("copy");
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.write_all_at(content, 0).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(time)).unwrap();
        disk.state_of(format!("/proc/self/fd/{}", file.as_raw_fd()).as_ref()).unwrap()
    };
    assert_eq!(state(&content, 1), state(&content, 2));
    for at in [0, 777_777, 3_000_000] {
        let mut other = content.clone();
        other[at] ^= 1;
        assert_ne!(state(&content, 1), state(&other, 1), "byte {at}");
    }
}
