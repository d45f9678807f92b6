//! Arrays of all ranks, whose messages are calls here.

use super::{Direction, ElementType, MESSAGE_BYTES, Ranks, Region, Spread, UNDER_WAY, lock, owned};
use crate::exchange::{DATA, PLACE_BYTES};
use crate::ranks::{Link, Progress};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock, Weak};

/// What a message begins with: its kind and number, the array's, how many pieces it is of.
const HEAD_BYTES: usize = 1 + 8 + 4 + 4;

type All = Arc<OnceLock<Vec<Weak<Ranks>>>>;

/// Messages are calls, none of which is longer than is promised; a lost rank's go nowhere.
struct Calls(usize, All, Option<usize>);

impl Link for Calls {
    fn send(&self, to: usize, message: Vec<u8>) {
        assert!(message.len() <= MESSAGE_BYTES + HEAD_BYTES, "{} bytes of kind {}", message.len(), message[0]);
        if Some(to) != self.2 {
            self.1.get().unwrap()[to].upgrade().unwrap().deliver(self.0, &message);
        }
    }
}

/// Ranks, of which so many in a row are on one node each.
fn ranks(count: usize, on_node: usize, lost: Option<usize>) -> Vec<Arc<Ranks>> {
    let all = All::default();
    let nodes: Vec<String> = (0..count).map(|rank| format!("node{}", rank / on_node)).collect();
    let one = |rank| Ranks::new(rank, nodes.clone(), Box::new(Calls(rank, Arc::clone(&all), lost)));
    let made: Vec<Arc<Ranks>> = (0..count).map(one).collect();
    all.get_or_init(|| made.iter().map(Arc::downgrade).collect());
    made
}

#[test]
fn what_one_has_stored_all_read_though_it_lies_elsewhere() {
    const SHAPE: [u64; 2] = [11, 13];
    // In the last, ranks with odd numbers are refused the memory of others, which are not refused theirs.
    for (count, on_node, refused) in [
        (1, 1, false),
        (2, 1, false),
        (3, 1, false),
        (2, 2, false),
        (3, 2, false),
        (5, 2, false),
        (4, 4, false),
        (2, 2, true),
        (5, 3, true),
    ] {
        let met = Barrier::new(count);
        let (all, met) = (ranks(count, on_node, None), &met);
        std::thread::scope(|scope| {
            for (rank, ranks) in all.iter().enumerate() {
                scope.spawn(move || {
                    let array = Spread::new(ranks, "a", ElementType::F64, &SHAPE).unwrap();
                    met.wait();
                    let refused = cfg!(miri) || refused && rank % 2 == 1;
                    if refused {
                        lock(&ranks.exchange.near).clear();
                    }
                    // Rows of every rank by turns, in two parts: most lie at others, some across two of them.
                    for row in (rank as u64..SHAPE[0]).step_by(count) {
                        for (first, len) in [(0, 5), (5, 8)] {
                            let region = Region::new(&[row, first], &[1, len]);
                            let mut bytes: Vec<f64> = (first..first + len).map(|i| (row * 100 + i) as f64).collect();
                            let start = bytes.as_mut_ptr().cast();
                            // SAFETY: the region's bytes, which live until it was waited for.
                            if let Some(receipt) = unsafe { array.begin(&region, Direction::Write, start) } {
                                receipt.wait().unwrap();
                            }
                        }
                    }
                    met.wait();
                    let mut bytes = vec![0.0f64; 10 * 7];
                    // SAFETY: as above.
                    unsafe { array.read(&Region::new(&[1, 3], &[10, 7]), bytes.as_mut_ptr().cast()) }.unwrap();
                    let expected: Vec<f64> =
                        (1..11).flat_map(|row| (3..10).map(move |i| f64::from(row * 100 + i))).collect();
                    assert_eq!(bytes, expected, "rank {rank} of {count}");
                    // Of a column each element is a fragment.
                    let mut column = vec![0.0f64; 11];
                    // SAFETY: as above.
                    unsafe { array.read(&Region::new(&[0, 6], &[11, 1]), column.as_mut_ptr().cast()) }.unwrap();
                    assert!(column.iter().enumerate().all(|(row, &x)| x == (row * 100 + 6) as f64), "{column:?}");
                    met.wait();
                    assert!(count == 1 || ranks.moved_bytes() > 0);
                    // Who is alone on the node asks others, and who has them all there asks nobody.
                    let near = (0..count).filter(|&other| other != rank && other / on_node == rank / on_node).count();
                    assert_eq!(lock(&ranks.exchange.near).len(), if refused { 0 } else { near });
                    let has_asked = lock(&ranks.exchange.desk).number > 0;
                    assert_eq!(has_asked, count > 1 && (refused || near + 1 < count), "rank {rank} of {count}");
                    assert!(lock(&ranks.exchange.desk).asked.is_empty() && lock(&ranks.exchange.desk).queue.is_empty());
                });
            }
        });
    }
}

#[test]
fn few_messages_are_under_way_and_an_end_is_heard() {
    let all = ranks(2, 1, Some(1));
    let arrays: Vec<Spread> =
        all.iter().map(|ranks| Spread::new(ranks, "a", ElementType::F64, &[1000]).unwrap()).collect();
    let mut bytes = vec![0.0f64; 1000];
    let region = Region::new(&[0], &[1000]);
    // SAFETY: the region's bytes, which live until the receipt does not.
    let receipt = unsafe { arrays[0].begin(&region, Direction::Read, bytes.as_mut_ptr().cast()) }.unwrap();
    let desk = &all[0].exchange.desk;
    let kept = {
        let desk = lock(desk);
        assert_eq!((desk.asked.len(), desk.queue.len()), (UNDER_WAY, 1));
        // What is not sent yet was not even made: of 4000 bytes of the other's these are the first.
        let each = MESSAGE_BYTES as u64 - PLACE_BYTES;
        let left = desk.queue[0].pieces.clone().map(|piece| piece.bytes).sum::<u64>();
        assert_eq!(left, 4000 - UNDER_WAY as u64 * each);
        desk.asked[&1].content_bytes
    };
    all[0].end(1, "it has ended");
    assert!(receipt.wait().unwrap_err().to_string().contains("it has ended"));
    drop((receipt, bytes));
    // An answer that comes too late touches nothing.
    let mut answer = 1u64.to_le_bytes().to_vec();
    answer.resize(8 + kept as usize, 7);
    all[0].deliver(1, &[&[DATA], &answer[..]].concat());
    let desk = lock(desk);
    assert!(desk.queue.is_empty(), "what nobody waits for is not sent");
}

/// What all others ask of one rank at once, which answers nothing, is bounded: that is the memory its answers take.
#[test]
fn an_owner_is_asked_for_few_messages_however_many_ask() {
    struct Asked(Arc<AtomicUsize>);
    impl Link for Asked {
        fn send(&self, to: usize, message: Vec<u8>) {
            assert_eq!(to, 0);
            let (count, places) = message[13..].split_first_chunk::<4>().unwrap();
            let of = |place: &[u8]| u64::from_le_bytes(place[8..16].try_into().unwrap()) as usize;
            assert_eq!(places.len(), 16 * u32::from_le_bytes(*count) as usize);
            self.0.fetch_add(places.chunks_exact(16).map(of).sum::<usize>(), Ordering::Relaxed);
        }
    }
    for count in [2, 3, 4, 5, 9, 17] {
        let asked = Arc::new(AtomicUsize::new(0));
        let nodes: Vec<String> = (0..count).map(|rank| format!("node{rank}")).collect();
        let (elements, mut receipts) = (1000 * count as u64, Vec::new());
        for rank in 1..count {
            let ranks = Ranks::new(rank, nodes.clone(), Box::new(Asked(Arc::clone(&asked))));
            let array = Spread::new(&ranks, "a", ElementType::F64, &[elements]).unwrap();
            let mut bytes = vec![0.0f64; 1000];
            // Two transfers: the second must not ask for more than the first alone would.
            for from in [0, 500] {
                let region = Region::new(&[from], &[500]);
                // SAFETY: nobody answers, so nothing is written.
                receipts.push(unsafe { array.begin(&region, Direction::Read, bytes.as_mut_ptr().cast()) }.unwrap());
            }
        }
        let asked = asked.load(Ordering::Relaxed);
        assert!(asked > 0 && asked <= UNDER_WAY * MESSAGE_BYTES, "{asked} bytes by {count} ranks");
    }
}

#[test]
fn every_element_has_one_owner_and_ranges_are_alike() {
    for elements in [0, 1, 5, 4095, 4096, 8192, 10_000, 20_480, 1 << 20, (1 << 33) + 12_345] {
        for ranks in 1..9 {
            let ranges: Vec<_> = (0..ranks).map(|rank| owned(elements, rank, ranks)).collect();
            assert_eq!((ranges[0].start, ranges[ranks - 1].end), (0, elements));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
            let most = ranges.iter().map(|range| range.end - range.start).max().unwrap();
            assert!(most <= elements / ranks as u64 + 4096 * 2, "{ranges:?}");
            let whole = |range: &std::ops::Range<u64>| range.start.is_multiple_of(4096);
            assert!(elements / (ranks as u64) < 4096 || ranges.iter().all(whole), "{ranges:?}");
        }
    }
}

#[test]
fn the_first_knows_how_far_all_are() {
    for count in 1..6 {
        let all = ranks(count, 1, None);
        for step in 1..4 {
            for (rank, ranks) in all.iter().enumerate() {
                ranks.did(Progress { done: (step * (rank + 1)) as f64, total: 45.0 });
                ranks.tell_done();
            }
            let sum = step * count * (count + 1) / 2;
            assert_eq!(all[0].done(), Progress { done: sum as f64, total: 45.0 });
        }
        all.iter().for_each(|ranks| ranks.begin());
        assert_eq!(all[0].done(), Progress::default());
        // Of a message that is cut off nothing is taken.
        all[0].deliver(count - 1, &[13, 1, 2, 3]);
        assert_eq!(all[0].done(), Progress::default());
    }
}

#[test]
fn a_part_that_is_not_the_whole_of_its_rank_is_asked_for() {
    let all = ranks(2, 2, None);
    let arrays: Vec<Spread> =
        all.iter().map(|ranks| Spread::new(ranks, "a", ElementType::F64, &[64]).unwrap()).collect();
    // SAFETY: of 64 elements the second rank has the last 32.
    (0..32).for_each(|at| unsafe { arrays[1].own_start().cast::<f64>().add(at).write(at as f64) });
    let other = super::Share { buffer: multigrain_store::AlignedBuffer::new(256).unwrap(), bytes: 248..504 };
    lock(&all[0].exchange.near).insert((0, 1), Arc::new(other));
    let mut bytes = [0.0f64; 16];
    // SAFETY: the region's bytes.
    unsafe { arrays[0].read(&Region::new(&[40], &[16]), bytes.as_mut_ptr().cast()) }.unwrap();
    assert!(bytes.iter().zip(8..).all(|(&found, at)| found == f64::from(at)), "{bytes:?}");
}
