//! What events mean for workers: a state machine for each worker's thread. Events in the order of their times go in,
//! intervals come out.

use std::collections::HashMap;

use multigrain_trace::{Kind, Taken};

use crate::events::{Event, Request};

/// Others that are told apart while a worker is woken and does not run: what more of them have counts for nobody.
const OTHERS_MAX: usize = 64;
/// Requests to disks that are remembered until they are completed.
const REQUESTS_MAX: usize = 1 << 16;

/// Something that a worker's lane shows: a record, in nanoseconds and with threads by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) worker: u32,
    pub(crate) kind: Kind,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) number: Subject,
    pub(crate) index: u16,
    pub(crate) subject: Subject,
    pub(crate) detail: u8,
}

/// What a record's number or subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Nothing,
    Thread(u32),
    /// A number as it is.
    Number(u32),
}

impl From<Option<u32>> for Subject {
    fn from(thread: Option<u32>) -> Subject {
        thread.map_or(Subject::Nothing, Subject::Thread)
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing has been seen since this moment.
    Unseen(u64),
    /// Events were lost: what it does now is not known.
    Unknown,
    Running,
    /// Somebody else has its processor, if it is known who.
    Off {
        since: u64,
        taken: Taken,
        by: Option<u32>,
        processor: u32,
    },
}

#[derive(Clone, Debug)]
struct Lane {
    state: State,
    /// When it was woken, by whom, and whether by an interrupt.
    woken: Option<(u64, u32, bool)>,
    /// Who had which processor since then, and for how long.
    ran: Vec<((u32, u32), u64)>,
    processor: Option<u32>,
}

/// A request under way: when it was issued, by whom, its sectors, whether it writes.
type UnderWay = (u64, u32, u32, bool);

/// The workers' threads.
#[derive(Debug)]
pub(crate) struct Lanes {
    workers: HashMap<u32, u32>,
    lanes: Vec<Lane>,
    /// Who has each processor, if that is known, and since when.
    running: HashMap<u32, (Option<u32>, u64)>,
    requests: HashMap<Request, UnderWay>,
    lost: u64,
}

impl Lanes {
    /// Of these threads, from a moment on.
    pub(crate) fn new(threads: &[u32], begin: u64) -> Lanes {
        let workers = threads.iter().enumerate().map(|(worker, thread)| (*thread, worker as u32)).collect();
        let lane = Lane { state: State::Unseen(begin), woken: None, ran: Vec::new(), processor: None };
        let (running, requests) = (HashMap::new(), HashMap::new());
        Lanes { workers, lanes: vec![lane; threads.len()], running, requests, lost: 0 }
    }

    /// Events that found no room.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes the next event.
    pub(crate) fn take(&mut self, event: Event, seen: &mut Vec<Seen>) {
        match event {
            Event::Lost { count, .. } => {
                self.running.clear();
                self.lost = self.lost.saturating_add(count);
                for lane in &mut self.lanes {
                    (lane.state, lane.woken) = (State::Unknown, None);
                }
            }
            Event::Out { at, processor, thread, preempted, next } => {
                self.turn(processor, next, at, seen);
                let Some((_, lane)) = self.lane(thread) else { return };
                let taken = if preempted { Taken::Preempted } else { Taken::Blocked };
                let by = if preempted { culprit(next) } else { next };
                lane.state = State::Off { since: at, taken, by, processor };
                (lane.woken, lane.processor) = (None, Some(processor));
            }
            Event::Woken { at, thread, by, interrupt } => {
                let Some((_, lane)) = self.lane(thread) else { return };
                // A thread that runs had not gone to sleep yet, and one is woken once.
                if matches!(lane.state, State::Off { .. } | State::Unseen(_)) && lane.woken.is_none() {
                    lane.woken = Some((at, by, interrupt));
                    lane.ran.clear();
                }
            }
            Event::In { at, processor, thread } => {
                self.turn(processor, Some(thread), at, seen);
                let Some((worker, lane)) = self.lane(thread) else { return };
                seen.extend(lane.off(worker, at));
                seen.extend(lane.ready(worker, at, processor));
                if let Some(before) = lane.processor.filter(|before| *before != processor) {
                    seen.push(Seen {
                        worker,
                        kind: Kind::Migration,
                        start: at,
                        end: at,
                        number: Subject::Number(processor),
                        index: multigrain_trace::NO_INDEX,
                        subject: Subject::Number(before),
                        detail: 0,
                    });
                }
                (lane.state, lane.woken, lane.processor) = (State::Running, None, Some(processor));
            }
            Event::Issued { at, by, request, sectors, writes } => {
                if self.requests.len() < REQUESTS_MAX {
                    self.requests.insert(request, (at, by, sectors, writes));
                }
            }
            Event::Completed { at, request } => {
                let Some((start, by, sectors, writes)) = self.requests.remove(&request) else { return };
                let worker = self.workers.get(&by).copied().unwrap_or(0);
                seen.push(Seen {
                    worker,
                    kind: Kind::Request,
                    start,
                    end: at.max(start),
                    number: Subject::Number(sectors),
                    index: multigrain_trace::NO_INDEX,
                    subject: Subject::Thread(by),
                    detail: u8::from(writes),
                });
            }
        }
    }

    /// A worker is where nobody looks: until it comes back, nothing is known of it.
    pub(crate) fn unseen(&mut self, worker: usize) {
        if let Some(lane) = self.lanes.get_mut(worker) {
            (lane.state, lane.woken) = (State::Unknown, None);
        }
    }

    /// Observation ends: who does not run now has not run until now.
    pub(crate) fn end(&mut self, at: u64, seen: &mut Vec<Seen>) {
        for (worker, lane) in self.lanes.iter_mut().enumerate() {
            if matches!(lane.state, State::Off { .. }) {
                seen.extend(lane.off(worker as u32, at));
            }
            lane.state = State::Unknown;
        }
    }

    /// From now on somebody has a processor, or nobody who is known: so ends the time of who had it before.
    fn turn(&mut self, processor: u32, now: Option<u32>, at: u64, seen: &mut Vec<Seen>) {
        let (before, from) = *self.running.entry(processor).or_insert((None, at));
        if before == now {
            return;
        }
        self.running.insert(processor, (now, at));
        let comes = now.and_then(|now| self.workers.get(&now));
        for (worker, lane) in (0..).zip(&mut self.lanes) {
            if let Some(before) = before {
                lane.add((processor, before), from, at);
            }
            match lane.state {
                // Its own return ends all of the time, once it runs.
                State::Off { taken: Taken::Preempted, by, processor: its, .. }
                    if its == processor && comes != Some(&worker) && by != culprit(now) =>
                {
                    seen.extend(lane.off(worker, at));
                    lane.state = State::Off { since: at, taken: Taken::Preempted, by: culprit(now), processor };
                }
                _ => {}
            }
        }
    }

    fn lane(&mut self, thread: u32) -> Option<(u32, &mut Lane)> {
        let worker = *self.workers.get(&thread)?;
        Some((worker, self.lanes.get_mut(worker as usize)?))
    }
}

/// Who keeps a worker from a processor that it could have: never nobody, so 0 is one of another space of numbers, or a bound on
/// all of them.
fn culprit(thread: Option<u32>) -> Option<u32> {
    thread.filter(|thread| *thread != 0)
}

impl Lane {
    /// The time without a processor that ends now, if there was one, or its part in which one and the same had the processor.
    fn off(&self, worker: u32, at: u64) -> Option<Seen> {
        let (start, taken, by, processor) = match self.state {
            State::Off { since, taken, by, processor } => (since, taken, by, processor),
            State::Unseen(since) => (since, Taken::Unseen, None, u32::MAX),
            State::Running | State::Unknown => return None,
        };
        let (kind, detail) = (Kind::Away, taken as u8);
        let (end, index, subject) = (at.max(start), multigrain_trace::NO_INDEX, by.into());
        let number = Subject::Number(processor);
        Some(Seen { worker, kind, start, end, number, index, subject, detail })
    }

    /// Somebody had a processor: as far as it has been woken since, that counts.
    fn add(&mut self, who: (u32, u32), from: u64, to: u64) {
        let Some((woken, ..)) = self.woken else { return };
        let length = to.saturating_sub(from.max(woken));
        match self.ran.iter().position(|(other, _)| *other == who) {
            Some(place) => self.ran[place].1 += length,
            None if self.ran.len() < OTHERS_MAX => self.ran.push((who, length)),
            None => {}
        }
    }

    /// The end of that time in which it had been woken, and who had longest the processor that it has got. One that was
    /// preempted could have run all the time.
    fn ready(&self, worker: u32, at: u64, processor: u32) -> Option<Seen> {
        if matches!(self.state, State::Off { taken: Taken::Preempted, .. }) {
            return None;
        }
        let (start, by, interrupt) = self.woken?;
        let there = self.ran.iter().filter(|((its, _), _)| *its == processor);
        let longest = there.max_by_key(|(_, length)| *length).map(|((_, thread), _)| *thread);
        let (kind, detail) = (Kind::Ready, u8::from(interrupt));
        let (end, index, number) = (at.max(start), multigrain_trace::NO_INDEX, Subject::Thread(by));
        Some(Seen { worker, kind, start, end, number, index, subject: longest.into(), detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(events: &[Event], end: u64) -> (Vec<Seen>, u64) {
        let mut lanes = Lanes::new(&[11, 12], 10);
        let mut seen = Vec::new();
        events.iter().for_each(|event| lanes.take(*event, &mut seen));
        lanes.end(end, &mut seen);
        (seen, lanes.lost())
    }

    fn short(seen: &[Seen]) -> Vec<(u32, Kind, u64, u64, Subject, u8)> {
        seen.iter().map(|s| (s.worker, s.kind, s.start, s.end, s.subject, s.detail)).collect()
    }

    fn out(at: u64, thread: u32, preempted: bool, next: u32) -> Event {
        Event::Out { at, processor: 0, thread, preempted, next: Some(next) }
    }

    fn enter(at: u64, thread: u32, processor: u32) -> Event {
        Event::In { at, processor, thread }
    }

    #[test]
    fn set_aside_blocked_woken_and_moved() {
        let events = [
            Event::In { at: 20, processor: 0, thread: 11 },
            out(30, 11, true, 99),
            Event::In { at: 45, processor: 0, thread: 11 },
            out(50, 11, false, 0),
            Event::Woken { at: 70, thread: 11, by: 12, interrupt: false },
            Event::Woken { at: 71, thread: 11, by: 13, interrupt: false },
            Event::In { at: 80, processor: 1, thread: 11 },
            // Nobody's business.
            out(85, 77, true, 11),
            out(90, 11, true, 99),
        ];
        let (seen, lost) = run(&events, 100);
        let expected = [
            (0, Kind::Away, 10, 20, Subject::Nothing, Taken::Unseen as u8),
            (0, Kind::Away, 30, 45, Subject::Thread(99), Taken::Preempted as u8),
            (0, Kind::Away, 50, 80, Subject::Thread(0), Taken::Blocked as u8),
            (0, Kind::Ready, 70, 80, Subject::Nothing, 0),
            (0, Kind::Migration, 80, 80, Subject::Number(0), 0),
            (0, Kind::Away, 90, 100, Subject::Thread(99), Taken::Preempted as u8),
        ];
        assert_eq!((short(&seen), lost), (expected.to_vec(), 0));
        assert_eq!((seen[3].number, seen[4].number), (Subject::Thread(12), Subject::Number(1)));
    }

    #[test]
    fn it_was_set_aside_for_each_who_had_its_processor_in_turn() {
        let leave = |at, thread, next| Event::Out { at, processor: 0, thread, preempted: false, next };
        let events = [
            enter(20, 11, 0),
            out(30, 11, true, 90),
            enter(31, 90, 0),
            leave(33, 90, Some(91)),
            enter(34, 91, 0),
            // Another processor is none of its business.
            enter(35, 92, 1),
            Event::Out { at: 99, processor: 1, thread: 92, preempted: false, next: None },
            // Nobody, or one of another space of numbers: neither is a culprit.
            leave(60, 91, Some(0)),
            enter(61, 0, 0),
            out(65, 0, true, 90),
            enter(66, 90, 0),
            leave(70, 90, Some(11)),
            enter(71, 11, 0),
        ];
        let (seen, _) = run(&events, 100);
        let parts = [(30, 33, 90.into()), (33, 60, 91.into()), (60, 65, None), (65, 71, 90.into())];
        let part = |(start, end, by): (u64, u64, Option<u32>)| {
            (0, Kind::Away, start, end, Subject::from(by), Taken::Preempted as u8)
        };
        assert_eq!(short(&seen)[1..], parts.map(part));
    }

    /// Where only its own thread is seen, another worker that is is one of those who came between.
    #[test]
    fn of_those_who_came_between_a_worker_may_be_all_that_is_seen() {
        let leave = |at, thread| Event::Out { at, processor: 0, thread, preempted: true, next: None };
        let events = [enter(20, 11, 0), leave(30, 11), enter(40, 12, 0), leave(50, 12), enter(60, 11, 0)];
        let (seen, _) = run(&events, 60);
        let by = |thread| Subject::from(thread);
        let parts: Vec<_> = seen.iter().filter(|s| s.worker == 0).map(|s| (s.start, s.end, s.subject)).collect();
        assert_eq!(parts[1..], [(30, 40, by(None)), (40, 50, by(Some(12))), (50, 60, by(None))]);
    }

    #[test]
    fn a_woken_worker_waited_for_who_had_its_processor_longest() {
        let leave = |at, thread, next| Event::Out { at, processor: 1, thread, preempted: false, next: Some(next) };
        let woken = Event::Woken { at: 50, thread: 11, by: 12, interrupt: false };
        let before = [enter(20, 11, 0), enter(21, 91, 1), out(30, 11, false, 0), woken];
        let since = [leave(80, 91, 92), enter(80, 92, 1), leave(85, 92, 11), enter(85, 11, 1)];
        let ready = |events: &[Event]| {
            let (seen, _) = run(events, 90);
            seen.iter().filter(|s| s.kind == Kind::Ready).map(|s| (s.start, s.end, s.subject)).collect::<Vec<_>>()
        };
        // 92 was the last, for an instant only; what 91 had before the waking, or 0 elsewhere, does not count.
        assert_eq!(ready(&[&before[..], &since].concat()), [(50, 85, Subject::Thread(91))]);
        // Who had it was not seen to begin.
        assert_eq!(ready(&[&before[..], &[enter(85, 11, 2)]].concat()), [(50, 85, Subject::Nothing)]);
    }

    #[test]
    fn what_was_lost_is_not_made_up() {
        let events = [
            Event::In { at: 20, processor: 0, thread: 11 },
            out(30, 11, true, 99),
            Event::Lost { at: 40, count: 4 },
            Event::In { at: 45, processor: 0, thread: 11 },
            out(50, 12, false, 0),
        ];
        let (seen, lost) = run(&events, 60);
        let expected = [
            (0, Kind::Away, 10, 20, Subject::Nothing, Taken::Unseen as u8),
            (1, Kind::Away, 50, 60, Subject::Thread(0), Taken::Blocked as u8),
        ];
        assert_eq!((short(&seen), lost), (expected.to_vec(), 4));
    }

    #[test]
    fn what_a_worker_does_where_nobody_looks_is_not_made_up() {
        let mut lanes = Lanes::new(&[11], 10);
        let mut seen = Vec::new();
        let mut take = |lanes: &mut Lanes, event| lanes.take(event, &mut seen);
        take(&mut lanes, enter(20, 11, 0));
        take(&mut lanes, out(30, 11, true, 99));
        lanes.unseen(0);
        // Who has the processor where it was is none of its business any more.
        take(&mut lanes, out(50, 99, false, 98));
        take(&mut lanes, enter(70, 11, 0));
        take(&mut lanes, out(80, 11, true, 98));
        lanes.end(90, &mut seen);
        let expected = [
            (0, Kind::Away, 10, 20, Subject::Nothing, Taken::Unseen as u8),
            (0, Kind::Away, 80, 90, Subject::Thread(98), Taken::Preempted as u8),
        ];
        assert_eq!(short(&seen), expected);
    }

    #[test]
    fn a_thread_that_was_preempted_needs_nobody_to_wake_it() {
        let events = [
            out(30, 11, true, 99),
            Event::Woken { at: 35, thread: 11, by: 12, interrupt: true },
            Event::In { at: 40, processor: 0, thread: 11 },
            // It runs: a waking changes nothing, now or at its next turn.
            Event::Woken { at: 41, thread: 11, by: 12, interrupt: true },
            out(42, 11, false, 0),
            Event::In { at: 44, processor: 0, thread: 11 },
        ];
        let (seen, _) = run(&events, 50);
        assert_eq!(short(&seen).iter().map(|s| s.1).collect::<Vec<_>>(), [Kind::Away, Kind::Away]);
    }

    #[test]
    fn requests_to_disks_belong_to_who_issued_them() {
        let request = (8, 4096);
        let events = [
            Event::Issued { at: 20, by: 12, request, sectors: 8, writes: true },
            Event::Completed { at: 25, request: (8, 1) },
            Event::Completed { at: 60, request },
            Event::Completed { at: 61, request },
        ];
        let (seen, _) = run(&events, 70);
        assert_eq!(short(&seen), [(1, Kind::Request, 20, 60, Subject::Thread(12), 1)]);
        assert_eq!(seen[0].number, Subject::Number(8));
    }

    fn event() -> impl Strategy<Value = Event> {
        let thread = || 10..14_u32;
        prop_oneof![
            (thread(), 0..2_u32).prop_map(|(thread, processor)| Event::In { at: 0, processor, thread }),
            (thread(), 0..2_u32, any::<bool>(), proptest::option::of(0..100_u32)).prop_map(
                |(thread, processor, preempted, next)| Event::Out { at: 0, processor, thread, preempted, next }
            ),
            (thread(), thread(), any::<bool>()).prop_map(|(thread, by, interrupt)| Event::Woken {
                at: 0,
                thread,
                by,
                interrupt
            }),
            (thread(), 0..3_u64).prop_map(|(by, sector)| Event::Issued {
                at: 0,
                by,
                request: (1, sector),
                sectors: 8,
                writes: false
            }),
            (0..3_u64).prop_map(|sector| Event::Completed { at: 0, request: (1, sector) }),
            (1..3_u64).prop_map(|count| Event::Lost { at: 0, count }),
        ]
    }

    proptest! {
        /// One processor that has them in any order, and a worker that never waits by itself: each has as much of the worker's
        /// time as it ran while the worker did not, and those times touch.
        #[test]
        fn what_others_ran_is_what_a_worker_was_set_aside_for(turns in proptest::collection::vec((0..4_usize, 2..50_u64), 1..40)) {
            let threads = [11, 90, 91, 0];
            let (mut events, mut at, mut expected) = (vec![enter(10, 11, 0)], 10, [0; 4]);
            let (mut running, mut last) = (0, 10);
            for (next, length) in turns.into_iter().chain([(0, 2)]) {
                at += length;
                // Each has it until the next takes it; the worker from when it enters.
                if running != 0 {
                    expected[running] += length;
                }
                if next != running {
                    events.push(out(at, threads[running], true, threads[next]));
                    events.push(enter(at + 1, threads[next], 0));
                    if next == 0 {
                        expected[running] += 1;
                        at += 1;
                    }
                }
                (running, last) = (next, at);
            }
            let (seen, _) = run(&events, last);
            let set_aside: Vec<&Seen> = seen[1..].iter().collect();
            for (other, thread) in (1..4).zip([Some(90), Some(91), None]) {
                let his = set_aside.iter().filter(|s| s.subject == Subject::from(thread));
                prop_assert_eq!(his.map(|s| s.end - s.start).sum::<u64>(), expected[other]);
            }
        }

        /// Whatever comes in whatever order of kinds: a worker's times without a processor do not overlap, and lie between
        /// the beginning and the end; a time in which it was ready is the end of one of them.
        #[test]
        fn a_worker_is_away_once_at_a_time(events in proptest::collection::vec((event(), 0..5_u64), 0..80)) {
            let mut at = 10;
            let events: Vec<Event> = events.into_iter().map(|(mut event, later)| {
                at += later;
                match &mut event {
                    Event::In { at: t, .. } | Event::Out { at: t, .. } | Event::Woken { at: t, .. }
                    | Event::Issued { at: t, .. } | Event::Completed { at: t, .. } | Event::Lost { at: t, .. } => *t = at,
                }
                event
            }).collect();
            let (seen, _) = run(&events, at + 1);
            for worker in 0..2 {
                let away: Vec<&Seen> = seen.iter().filter(|s| s.worker == worker && s.kind == Kind::Away).collect();
                for pair in away.windows(2) {
                    prop_assert!(pair[0].end <= pair[1].start);
                }
                for interval in &away {
                    prop_assert!(interval.start >= 10 && interval.end <= at + 1 && interval.start <= interval.end);
                }
                for ready in seen.iter().filter(|s| s.worker == worker && s.kind == Kind::Ready) {
                    prop_assert!(away.iter().any(|away| away.start <= ready.start && away.end == ready.end));
                }
            }
        }
    }
}
