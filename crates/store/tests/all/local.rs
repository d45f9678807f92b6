//! Local stores: copies against plain memory, the Cell's rules, and what they cost.

use crate::support;

use multigrain_store::local::{LocalCounters, Rows};
use multigrain_store::{AlignedBuffer, LocalRules, LocalStore, RuleError, StoreError};
use support::*;

#[test]
fn copies_match_plain_memory_under_any_rules() {
    let mut random = Random::new(30);
    for round in 0..if cfg!(miri) { 2 } else { 300 } {
        let strict = round % 2 == 0;
        let rules = strict.then(|| LocalRules::cell(64 << 10));
        let mut store = LocalStore::new(128 << 10, rules).unwrap();
        let rows = 1 + random.below(40);
        let row_bytes = 1 + random.below(3000);
        // Under rules both pitches are whole units and both starts alike.
        let unit = if strict { 16 } else { 1 };
        let skew = random.below(16);
        let mut pitch = || (row_bytes + random.below(50)).next_multiple_of(unit);
        let (pitch_bytes, parent_pitch) = (pitch(), pitch());
        let offset_bytes = 16 * random.below(8) + skew;
        if offset_bytes + rows * pitch_bytes > 128 << 10 {
            continue;
        }
        let mut parent = AlignedBuffer::new((rows * parent_pitch + 64) as usize).unwrap();
        let original = random.bytes(parent.len());
        // SAFETY: no pointers given out.
        unsafe { parent.as_mut_slice() }.copy_from_slice(&original);
        let at = parent.as_mut_ptr().wrapping_add(skew as usize);
        let block = Rows { offset_bytes, pitch_bytes, rows, row_bytes };
        // SAFETY: the rows lie in the parent buffer, nobody else uses it.
        unsafe { store.fetch(block, at, parent_pitch) }.unwrap();
        // SAFETY: no pointers are in use.
        unsafe { parent.as_mut_slice() }.fill(0);
        // SAFETY: as above.
        unsafe { store.store(block, at, parent_pitch) }.unwrap();
        // SAFETY: the copies are over.
        let found = unsafe { parent.as_slice() };
        for (n, (&found, &original)) in found.iter().zip(&original).enumerate() {
            let n = n as u64;
            let inside = n >= skew && (n - skew) / parent_pitch < rows && (n - skew) % parent_pitch < row_bytes;
            assert_eq!(found, if inside { original } else { 0 }, "{block:?} byte {n}");
        }
        let counters = store.counters();
        assert_eq!((counters.bytes_in, counters.bytes_out), (rows * row_bytes, rows * row_bytes));
        assert!(counters.commands >= 2 && counters.lists >= 2);
    }
}

/// Commands and lists of one fetch of contiguous bytes that start `skew` bytes into a unit.
fn cost(rows: u64, row_bytes: u64, pitch_bytes: u64, skew: u64) -> (u64, u64) {
    let mut store = LocalStore::new(240 << 10, Some(LocalRules::cell(16 << 10))).unwrap();
    let parent = AlignedBuffer::new(1 << 20).unwrap();
    let source = parent.as_ptr().wrapping_add(skew as usize);
    let block = Rows { offset_bytes: skew, pitch_bytes, rows, row_bytes };
    // SAFETY: the rows lie in the parent buffer.
    unsafe { store.fetch(block, source, pitch_bytes) }.unwrap();
    (store.counters().commands, store.counters().lists)
}

#[test]
fn copies_are_split_as_the_rules_say() {
    assert_eq!(cost(1, 16 << 10, 16 << 10, 0), (1, 1));
    assert_eq!(cost(1, (16 << 10) + 16, 1 << 15, 0), (2, 1));
    assert_eq!(cost(1, 16, 16, 0), (1, 1));
    assert_eq!(cost(1, 15, 16, 0), (4, 1), "8 + 4 + 2 + 1");
    assert_eq!(cost(1, 15, 16, 1), (4, 1), "1 + 2 + 4 + 8");
    assert_eq!(cost(1, 32, 32, 8), (3, 1), "8 + 16 + 8");
    assert_eq!(cost(10, 100, 112, 0), (20, 1), "96 + 4 each");
    assert_eq!(cost(4, 4096, 4096, 0), (1, 1), "contiguous rows are one command");
    assert_eq!(cost(2049, 16, 32, 0), (2049, 2));
    // Rows whose position in the unit changes: 3 bytes every 5 bytes.
    assert_eq!(cost(3, 3, 5, 0), (2 + 2 + 2, 1), "0: 2+1, 5: 1+2, 10: 2+1");
}

#[test]
fn siblings_exchange_bytes_at_the_price_of_a_row() {
    let rules = LocalRules::cell(16 << 10);
    let [mut one, mut other] = [0, 0].map(|_| LocalStore::new(240 << 10, Some(rules)).unwrap());
    let (at, bytes) = (4096 + 4, (16 << 10) + 20);
    // SAFETY: nobody else uses these stores.
    let (from, to) = unsafe { (one.exchange(at, bytes, true).unwrap(), other.exchange(at, bytes, false).unwrap()) };
    from.iter_mut().zip(0u32..).for_each(|(byte, n)| *byte = (n % 251) as u8);
    to.copy_from_slice(from);
    let expected: Vec<u8> = (0..bytes as u32).map(|n| (n % 251) as u8).collect();
    // SAFETY: as above.
    assert!(unsafe { other.exchange(at, bytes, true) }.unwrap() == expected);
    // 4 and 8 bytes up to a unit, 16 KiB, 8 bytes.
    let commands = 4;
    let counted = LocalCounters { bytes_in: 0, bytes_out: bytes, commands, lists: 1 };
    assert_eq!(one.counters(), counted);
    let both = LocalCounters { bytes_in: bytes, commands: 2 * commands, lists: 2, ..counted };
    assert_eq!(other.counters(), both);
    // SAFETY: refused.
    let error = unsafe { one.exchange((240 << 10) - 8, 16, true) }.unwrap_err();
    assert!(matches!(error, RuleError::Bounds { .. }), "{error}");
    // SAFETY: as above.
    assert!(unsafe { one.exchange(0, 0, true) }.unwrap().is_empty());
}

#[test]
fn broken_rules_are_named() {
    let rules = LocalRules::cell(128 << 10);
    let error = LocalStore::new((128 << 10) + 1, Some(rules)).unwrap_err();
    assert!(matches!(error, StoreError::Local(RuleError::Capacity { .. })), "{error}");
    assert!(LocalStore::new((128 << 10) + 1, None).is_ok());
    for (alignment_bytes, transfer_bytes_max, list_entries_max) in
        [(0, 16, 1), (24, 48, 1), (16, 0, 1), (16, 24, 1), (16, 16, 0)]
    {
        let odd = LocalRules { alignment_bytes, transfer_bytes_max, list_entries_max, ..rules };
        assert!(matches!(LocalStore::new(64, Some(odd)), Err(StoreError::Local(RuleError::Rules { .. }))));
    }

    let mut store = LocalStore::new(4096, Some(rules)).unwrap();
    let parent = AlignedBuffer::new(8192).unwrap();
    let mut fetch = |block, skew: usize, pitch| {
        // SAFETY: refused before anything is copied, or inside the parent buffer.
        unsafe { store.fetch(block, parent.as_ptr().wrapping_add(skew), pitch) }
    };
    let block = Rows { offset_bytes: 0, pitch_bytes: 64, rows: 4, row_bytes: 40 };
    let error = fetch(block, 4, 64).unwrap_err();
    assert_eq!(
        error,
        RuleError::Alignment { row_bytes: 40, parent_skew_bytes: 4, local_skew_bytes: 0, alignment_bytes: 16 }
    );
    assert!(error.to_string().starts_with("alignment:"), "{error}");
    assert!(matches!(fetch(block, 0, 72), Err(RuleError::Alignment { .. })), "the second row is not alike");
    for (offset_bytes, pitch_bytes, rows) in
        [(4096, 64, 1), (0, 64, 65), (u64::MAX, 1, 2), (0, u64::MAX, 3), (4057, 0, 1)]
    {
        let error = fetch(Rows { offset_bytes, pitch_bytes, rows, row_bytes: 40 }, 0, 64).unwrap_err();
        assert!(matches!(error, RuleError::Bounds { .. }), "{error}");
    }
    assert_eq!(store.counters(), LocalCounters::default(), "nothing was copied");
    // Nothing is nothing, wherever it is.
    let none = Rows { offset_bytes: u64::MAX, pitch_bytes: 3, rows: 0, row_bytes: 9 };
    // SAFETY: no rows.
    unsafe { store.fetch(none, std::ptr::null(), 5) }.unwrap();
}
