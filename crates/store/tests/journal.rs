//! The journal: whatever is cut off or damaged, the reader yields a prefix of what was appended.

mod support;

use std::sync::Arc;

use multigrain_store::faults::FailKind;
use multigrain_store::{BackendChoice, Disk, Journal, OperationKind, Record, StoreError};
use support::*;

const TEXT: &str = "rows = 7 – of each tile";

fn records(n: u64) -> Vec<Record> {
    (0..n).map(|n| Record { kind: n as u32 % 3, a: n * n, b: !n }).collect()
}

fn written(disk: &Disk, scratch: &Scratch, records: &[Record]) -> Vec<u8> {
    let path = scratch.path("j");
    let mut journal = Journal::create(disk, &path, TEXT).unwrap();
    assert!(journal.is_empty());
    for some in records.chunks(3) {
        journal.append(disk, some).unwrap();
    }
    journal.sync(disk).unwrap();
    assert_eq!(journal.len(), records.len());
    std::fs::read(path).unwrap()
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

#[test]
fn cut_at_every_byte_it_is_a_prefix_and_goes_on() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Pool);
    let all = records(7);
    let bytes = written(&disk, &scratch, &all);
    let header = bytes.len() - 7 * 32;
    for len in 0..=bytes.len() {
        std::fs::write(scratch.path("j"), &bytes[..len]).unwrap();
        let Some((mut journal, found)) = resumed(&disk, &scratch).unwrap() else {
            assert!(len < header, "{len}");
            continue;
        };
        assert_eq!(found, all[..(len - header) / 32], "{len}");
        assert_eq!(read(&disk, &scratch).unwrap(), Some((TEXT.to_owned(), found.clone())));
        let more = Record { kind: 9, a: 9, b: 9 };
        journal.append(&disk, &[more]).unwrap();
        let (_, again) = resumed(&disk, &scratch).unwrap().unwrap();
        assert_eq!(again, [&found[..], &[more]].concat());
    }
}

#[test]
fn damaged_at_any_byte_it_is_a_prefix_or_an_error() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Pool);
    let all = records(5);
    let bytes = written(&disk, &scratch, &all);
    let header = bytes.len() - 5 * 32;
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            std::fs::write(scratch.path("j"), &damaged).unwrap();
            match resumed(&disk, &scratch) {
                Ok(Some((_, found))) => assert_eq!(found, all[..(at - header) / 32], "{at}"),
                // A length that grew by the flip may make the header look cut off.
                Ok(None) => assert!((12..16).contains(&at), "{at}"),
                Err(error) => assert!(at < header, "{at}: {error}"),
            }
        }
    }
}

#[test]
fn what_lies_behind_a_torn_record_never_comes_back() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Pool);
    let all = records(4);
    let mut bytes = written(&disk, &scratch, &all);
    let header = bytes.len() - 4 * 32;
    bytes[header + 32] ^= 1;
    std::fs::write(scratch.path("j"), &bytes).unwrap();
    let (mut journal, found) = resumed(&disk, &scratch).unwrap().unwrap();
    assert_eq!(found, all[..1]);
    journal.append(&disk, &[all[1]]).unwrap();
    let (_, found) = resumed(&disk, &scratch).unwrap().unwrap();
    assert_eq!(found, all[..2], "records 2 and 3 belong to another life");
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
