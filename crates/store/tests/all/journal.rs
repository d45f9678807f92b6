//! The journal: whatever is cut off or damaged, the reader yields a prefix of what was appended.

use crate::support;

use std::sync::Arc;

use multigrain_store::faults::FailKind;
use multigrain_store::{BackendChoice, Disk, Journal, OperationKind, Record, StoreError};
use support::*;

const TEXT: &str = "rows = 7 – of each tile";

fn records(n: u64) -> Vec<Record> {
    (0..n).map(|n| Record { kind: n as u32 % 3, a: n * n, b: !n }).collect()
}

/// A journal of these records, of which so many are made durable before the others are appended.
fn half_durable(disk: &Disk, scratch: &Scratch, records: &[Record], durable: usize) -> Vec<u8> {
    let path = scratch.path("j");
    let mut journal = Journal::create(disk, &path, TEXT).unwrap();
    assert!(journal.is_empty());
    for some in records[..durable].chunks(3) {
        journal.append(disk, some).unwrap();
    }
    journal.sync(disk).unwrap();
    journal.append(disk, &records[durable..]).unwrap();
    assert_eq!(journal.len(), records.len());
    std::fs::read(path).unwrap()
}

fn written(disk: &Disk, scratch: &Scratch, records: &[Record]) -> Vec<u8> {
    half_durable(disk, scratch, records, records.len())
}

fn resumed(disk: &Disk, scratch: &Scratch) -> Result<Option<(Journal, Vec<Record>)>, StoreError> {
    let mut records = Vec::new();
    let journal = Journal::resume(disk, scratch.path("j"), |record| records.push(record))?;
    Ok(journal.map(|journal| (journal, records)))
}

type Read = Option<(String, Vec<Record>)>;

fn read(disk: &Disk, scratch: &Scratch) -> Result<Read, StoreError> {
    let mut records = Vec::new();
    let text = Journal::read(disk, scratch.path("j"), |record| records.push(record))?;
    Ok(text.map(|text| (text, records)))
}

/// Bytes of a header with its marks and the text.
const HEADER: usize = 48 + TEXT.len() + 8;

fn assert_damaged(error: &StoreError, what: &str) {
    assert!(matches!(error, StoreError::NotAJournal { ours: true, .. }), "{what}: {error:?}");
    let text = error.to_string();
    assert!(text.contains("damaged") && text.contains("--discard") && text.contains("/j"), "{what}: {text}");
}

#[test]
fn cut_at_every_byte_it_is_a_prefix_with_all_that_was_durable_or_damaged() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Pool);
    let all = records(7);
    for durable in [0, 1, 4, 7] {
        let bytes = half_durable(&disk, &scratch, &all, durable);
        for len in 0..=bytes.len() {
            std::fs::write(scratch.path("j"), &bytes[..len]).unwrap();
            let what = format!("{durable} records are durable, cut to {len} bytes");
            let (mut journal, found) = match resumed(&disk, &scratch) {
                Ok(found) => found.unwrap(),
                Err(error) => {
                    assert!(len < HEADER + durable * 32, "{what}: {error}");
                    assert_damaged(&error, &what);
                    assert_damaged(&read(&disk, &scratch).unwrap_err(), &what);
                    continue;
                }
            };
            assert!(len >= HEADER + durable * 32, "{what}");
            assert_eq!(found, all[..(len - HEADER) / 32], "{what}");
            assert_eq!(read(&disk, &scratch).unwrap(), Some((TEXT.to_owned(), found.clone())));
            let more = Record { kind: 9, a: 9, b: 9 };
            journal.append(&disk, &[more]).unwrap();
            let (_, again) = resumed(&disk, &scratch).unwrap().unwrap();
            assert_eq!(again, [&found[..], &[more]].concat());
        }
    }
}

#[test]
fn of_every_flipped_bit_what_was_durable_is_there_or_it_is_damaged() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Pool);
    let all = records(5);
    let bytes = half_durable(&disk, &scratch, &all, 3);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            std::fs::write(scratch.path("j"), &damaged).unwrap();
            let what = format!("bit {bit} of byte {at}");
            match resumed(&disk, &scratch) {
                // One of two marks may be lost.
                Ok(Some((_, found))) if at < HEADER => {
                    assert!((16..48).contains(&at), "{what}");
                    assert_eq!(found, all);
                }
                Ok(Some((_, found))) => {
                    assert!(at >= HEADER + 3 * 32, "{what}");
                    assert_eq!(found, all[..(at - HEADER) / 32], "{what}");
                }
                Ok(None) => panic!("{what}: it counts as none"),
                // Of another version, it says.
                Err(error) => assert!((8..12).contains(&at) || at < HEADER + 3 * 32, "{what}: {error}"),
            }
        }
    }
}

#[test]
fn what_lies_behind_a_torn_record_never_comes_back() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Pool);
    let all = records(4);
    let mut bytes = half_durable(&disk, &scratch, &all, 1);
    bytes[HEADER + 32] ^= 1;
    std::fs::write(scratch.path("j"), &bytes).unwrap();
    let (mut journal, found) = resumed(&disk, &scratch).unwrap().unwrap();
    assert_eq!(found, all[..1]);
    journal.append(&disk, &[all[1]]).unwrap();
    let (_, found) = resumed(&disk, &scratch).unwrap().unwrap();
    assert_eq!(found, all[..2], "records 2 and 3 belong to another life");
}

/// It takes the place of what has its name, and is never half there: what others know by another name stays as it is.
#[test]
fn what_has_the_name_of_a_new_journal_is_not_written_to() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Pool);
    for name in ["j", "j.new"] {
        for symbolic in [false, true] {
            std::fs::write(scratch.path("precious"), b"precious").unwrap();
            match symbolic {
                true => std::os::unix::fs::symlink(scratch.path("precious"), scratch.path(name)).unwrap(),
                false => std::fs::hard_link(scratch.path("precious"), scratch.path(name)).unwrap(),
            }
            written(&disk, &scratch, &records(3));
            assert_eq!(std::fs::read(scratch.path("precious")).unwrap(), b"precious", "{name} {symbolic}");
            assert_eq!(scratch.names(), ["j", "precious"]);
            std::fs::remove_file(scratch.path("j")).unwrap();
        }
    }
    // Nor is one gone on with that others may have, as a copy made of links.
    let before = written(&disk, &scratch, &records(3));
    std::fs::hard_link(scratch.path("j"), scratch.path("copy")).unwrap();
    let refused = resumed(&disk, &scratch).map(|_| ()).expect_err("a copy has its bytes too");
    assert!(refused.to_string().contains("has 2 names"), "{refused}");
    assert_eq!(std::fs::read(scratch.path("copy")).unwrap(), before);
    std::fs::remove_file(scratch.path("j")).unwrap();
    std::os::unix::fs::symlink(scratch.path("copy"), scratch.path("j")).unwrap();
    assert!(resumed(&disk, &scratch).is_err(), "a link to another file");
    assert_eq!(std::fs::read(scratch.path("copy")).unwrap(), before);
}

/// A run that is killed has appended what is on no disk yet; the next one believes it, and the power may fail then.
#[test]
fn what_is_gone_on_with_is_durable() {
    let scratch = Scratch::new();
    let plain = disk(BackendChoice::Pool);
    written(&plain, &scratch, &records(7));
    let faults = Arc::new(FailKind::new(OperationKind::Sync, 0, libc::EIO));
    let fails = disk_with(BackendChoice::Pool, faults).unwrap();
    let refused = resumed(&fails, &scratch).map(|_| ()).expect_err("it was not flushed");
    assert!(matches!(refused, StoreError::File { operation: OperationKind::Sync, .. }), "{refused}");
    assert_eq!(resumed(&plain, &scratch).unwrap().unwrap().1, records(7));
}

#[test]
fn what_is_no_journal_is_told_and_left_alone() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Pool);
    assert!(resumed(&disk, &scratch).unwrap().is_none());
    assert!(read(&disk, &scratch).unwrap().is_none());
    let mut bytes = written(&disk, &scratch, &records(2));
    std::fs::write(scratch.path("j"), b"dear diary").unwrap();
    assert!(matches!(resumed(&disk, &scratch), Err(StoreError::NotAJournal { .. })));
    assert!(matches!(read(&disk, &scratch), Err(StoreError::NotAJournal { .. })));
    assert_eq!(std::fs::read(scratch.path("j")).unwrap(), b"dear diary");
    bytes[8] += 1;
    std::fs::write(scratch.path("j"), &bytes).unwrap();
    let error = resumed(&disk, &scratch).expect_err("of another version");
    assert!(error.to_string().contains("version"), "{error}");
}

#[test]
fn a_failed_append_can_be_repeated() {
    let scratch = Scratch::new();
    // The header is the first append.
    let disk = disk_with(BackendChoice::Pool, Arc::new(FailKind::new(OperationKind::Append, 2, libc::ENOSPC))).unwrap();
    let all = records(2);
    let mut journal = Journal::create(&disk, scratch.path("j"), TEXT).unwrap();
    journal.append(&disk, &all[..1]).unwrap();
    let error = journal.append(&disk, &all[1..]).unwrap_err();
    assert!(error.to_string().contains("append to"), "{error}");
    assert_eq!(journal.len(), 1);
    let healthy = support::disk(BackendChoice::Pool);
    journal.append(&healthy, &all[1..]).unwrap();
    assert_eq!(resumed(&healthy, &scratch).unwrap().unwrap().1, all);
    journal.remove(&healthy);
    assert!(scratch.names().is_empty());
}

#[test]
fn what_is_no_journal_is_neither_replaced_nor_removed() {
    let (scratch, disk) = (Scratch::new(), disk(BackendChoice::Pool));
    let path = scratch.path("j");
    std::fs::write(&path, "of somebody else").unwrap();
    let refused = Journal::create(&disk, &path, TEXT).expect_err("it is no journal");
    assert!(matches!(refused, StoreError::NotAJournal { ours: false, .. }), "{refused}");
    Journal::remove_at(&disk, &path);
    assert_eq!(std::fs::read(&path).unwrap(), b"of somebody else");
    // What is left of one is.
    for len in [0, 3, 8, 11] {
        std::fs::remove_file(&path).unwrap();
        drop(Journal::create(&disk, &path, TEXT).unwrap());
        std::fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
        drop(Journal::create(&disk, &path, TEXT).unwrap());
        std::fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
        Journal::remove_at(&disk, &path);
        assert!(!path.exists(), "{len}");
        // Or zeros, where the power was lost.
        std::fs::write(&path, [0; 30]).unwrap();
    }
}
