//! More contexts than processors: small cases by hand, a plain reference, and the bound of direct hand-off.

use multigrain_schedule::contexts::{Class, Contexts, Entered, Handed, Release, Slices};
use proptest::prelude::*;

#[test]
fn slices_are_those_of_linux() {
    let at = |hz, nice| Slices::Linux { interrupts_per_second: hz }.ticks(Class::normal(nice));
    // 100 ms are two and a half ticks of 40 ms; at 1000 interrupts ten of 10 ms, and nice -20 has 800 ms.
    assert_eq!([at(250, 0), at(250, 19), at(250, -1), at(250, -20)], [2, 1, 8, 16]);
    assert_eq!([at(1000, 0), at(1000, 10), at(1000, 19), at(1000, -20)], [10, 5, 1, 80]);
    assert_eq!(at(100, 0), 1);
    // Priority 98 of real time: 8 * 42 / 20.
    assert_eq!(Slices::Linux { interrupts_per_second: 250 }.ticks(Class::round_robin(1)), 16);
    assert_eq!(Slices::Equal(0).ticks(Class::normal(0)), 1);
}

fn contexts(processors: usize, release: Release, slices: u32, count: usize) -> Contexts {
    let mut contexts = Contexts::new(processors, release, Slices::Equal(slices));
    for _ in 0..count {
        let context = contexts.add(Class::normal(0), 0);
        contexts.start(context);
    }
    contexts
}

fn handed(processor: usize, last: u32, next: u32) -> Handed {
    Handed { processor, last: Some(last), next: Some(next) }
}

#[test]
fn a_hand_off_goes_to_the_head_of_the_queue() {
    let mut of = contexts(2, Release::Bind, 2, 5);
    let entered: Vec<Entered> = (0..5).map(|context| of.enter(context)).collect();
    assert_eq!(entered[..3], [Entered::Bound(0), Entered::Bound(1), Entered::Waits]);
    assert_eq!((of.tick(0), of.tick(1), of.waiting()), (vec![], vec![], 3));
    // The second tick: 2 and 3 are next, 4 stays first, 0 and 1 follow it.
    assert_eq!((of.tick(0), of.tick(1)), (vec![handed(0, 0, 2)], vec![handed(1, 1, 3)]));
    assert_eq!((of.on(0), of.on(1), of.waiting()), (Some(2), Some(3), 3));
    assert_eq!(of.leave(3), [handed(1, 3, 4)]);
    assert_eq!(of.leave(4), [handed(1, 4, 0)]);
    assert_eq!(of.leave(2), [handed(0, 2, 1)]);
    // Nobody waits: who leaves keeps its processor until somebody does, or until it is thrown away.
    assert_eq!((of.leave(0), of.on(1)), (vec![], Some(0)));
    let free = Handed { processor: 1, last: Some(0), next: None };
    assert_eq!((of.destroy(0), of.on(1)), (vec![free], None));
}

#[test]
fn a_freed_processor_goes_to_whoever_comes_first() {
    let mut of = contexts(1, Release::Free, 1, 3);
    (0..3).for_each(|context| assert_eq!(of.enter(context) == Entered::Bound(0), context == 0));
    assert_eq!(of.tick(0), [handed(0, 0, 1)]);
    assert_eq!((of.on(0), of.waiting()), (None, 1));
    // 0 comes before 1, which goes to the end of the queue, behind 2.
    assert_eq!((of.enter(0), of.enter(1)), (Entered::Bound(0), Entered::Waits));
    assert_eq!(of.tick(0), [handed(0, 0, 2)]);
}

#[test]
fn real_time_takes_from_the_worst_and_from_nobody_equal() {
    for release in [Release::Free, Release::Bind] {
        let mut of = Contexts::new(2, release, Slices::Equal(1));
        let classes =
            [Class::normal(0), Class::normal(5), Class::fifo(1), Class::fifo(1), Class::fifo(1), Class::fifo(2)];
        for class in classes {
            let context = of.add(class, 0);
            of.start(context);
        }
        assert_eq!((of.enter(0), of.enter(1)), (Entered::Bound(0), Entered::Bound(1)));
        assert_eq!(of.enter(2), Entered::Took { processor: 1, victim: 1 });
        assert_eq!(of.enter(3), Entered::Took { processor: 0, victim: 0 });
        assert_eq!(of.enter(4), Entered::Waits);
        assert_eq!(of.enter(5), Entered::Took { processor: 0, victim: 3 });
        // First come, first served, to the end.
        assert_eq!((of.tick(0), of.tick(1)), (vec![], vec![]));
        assert_eq!(of.waiting(), if release == Release::Bind { 4 } else { 1 });
    }
}

#[test]
fn a_gang_has_processors_together_or_not_at_all() {
    let mut of = Contexts::new(3, Release::Gang, Slices::Equal(1));
    for gang in [0, 0, 1, 1, 2] {
        let context = of.add(Class::normal(0), gang);
        of.start(context);
    }
    assert_eq!((of.enter(0), of.fill()), (Entered::Waits, vec![]));
    of.enter(1);
    assert_eq!(of.fill().len(), 2);
    for context in 2..5 {
        of.enter(context);
        // Gang 1 is first and does not fit, so gang 2 waits too.
        assert_eq!(of.fill(), []);
    }
    assert_eq!(of.tick(0).len(), 3);
    assert_eq!((0..5).map(|context| of.runs(context)).collect::<Vec<_>>(), [false, false, true, true, true]);
}

/// The algorithm once more, as plainly as can be: everything is searched for.
struct Plain {
    release: Release,
    slice: u32,
    /// For each context: class rank and whether it shares, ticks left.
    of: Vec<(u8, bool, u32)>,
    on: Vec<Option<usize>>,
    queue: Vec<usize>,
    done: Vec<bool>,
}

impl Plain {
    fn head(&mut self, worst: u8) -> Option<usize> {
        let best = self.queue.iter().map(|c| self.of[*c].0).min().filter(|best| *best <= worst)?;
        let at = self.queue.iter().position(|c| self.of[*c].0 == best)?;
        Some(self.queue.remove(at))
    }

    fn enter(&mut self, context: usize) {
        if let Some(free) = self.on.iter().position(Option::is_none) {
            self.on[free] = Some(context);
            return;
        }
        let own = self.of[context].0;
        let worst = self.on.iter().flatten().map(|c| self.of[*c].0).max().unwrap_or(0);
        if own < 100 && worst > own {
            let at = self.on.iter().position(|c| c.is_some_and(|c| self.of[c].0 == worst)).unwrap();
            let victim = self.on[at].replace(context).unwrap();
            if self.release == Release::Bind && !self.done[victim] {
                self.queue.push(victim);
            }
            return;
        }
        self.queue.push(context);
    }

    fn give(&mut self, processor: usize, worst: u8) {
        let Some(next) = self.head(worst) else { return };
        let last = self.on[processor].take().unwrap();
        if self.release == Release::Bind {
            self.on[processor] = Some(next);
            if !self.done[last] {
                self.queue.push(last);
            }
        }
    }

    fn tick(&mut self, processor: usize) {
        let Some(context) = self.on[processor] else { return };
        let (rank, shares, left) = &mut self.of[context];
        if !*shares {
            return;
        }
        *left = left.saturating_sub(1);
        if *left == 0 {
            *left = self.slice;
            let rank = *rank;
            self.give(processor, rank);
        }
    }

    fn leave(&mut self, context: usize) {
        self.done[context] = true;
        self.queue.retain(|c| *c != context);
        if let Some(at) = self.on.iter().position(|c| *c == Some(context)) {
            self.give(at, u8::MAX);
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Enter(usize),
    Tick(usize),
    Leave(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => any::<usize>().prop_map(Act::Enter),
        4 => any::<usize>().prop_map(Act::Tick),
        1 => any::<usize>().prop_map(Act::Leave),
    ]
}

proptest! {
    #[test]
    fn does_what_the_plain_one_does(
        bind in any::<bool>(),
        processors in 1..5usize,
        slice in 1..4u32,
        kinds in prop::collection::vec((0..4u8, any::<bool>()), 1..12),
        acts in prop::collection::vec(act(), 0..200),
    ) {
        let release = if bind { Release::Bind } else { Release::Free };
        let mut tested = Contexts::new(processors, release, Slices::Equal(slice));
        let count = kinds.len();
        let mut plain = Plain {
            release,
            slice,
            of: Vec::new(),
            on: vec![None; processors],
            queue: Vec::new(),
            done: vec![false; count],
        };
        for (kind, turns) in kinds {
            // Two priorities of normal contexts, two of real time.
            let (class, rank, shares) = match (kind, turns) {
                (0 | 1, _) => (Class::normal(kind as i8), 120 + kind, true),
                (_, true) => (Class::round_robin(kind), 99 - kind, true),
                (_, false) => (Class::fifo(kind), 99 - kind, false),
            };
            let context = tested.add(class, 0);
            tested.start(context);
            plain.of.push((rank, shares, slice));
        }
        for act in acts {
            match act {
                Act::Enter(n) => {
                    let context = n % count;
                    // Who has or waits for a processor does not ask for one.
                    if plain.queue.contains(&context) || plain.on.contains(&Some(context)) || plain.done[context] {
                        continue;
                    }
                    tested.enter(context as u32);
                    plain.enter(context);
                }
                Act::Tick(n) => {
                    tested.tick(n % processors);
                    plain.tick(n % processors);
                }
                Act::Leave(n) => {
                    tested.leave((n % count) as u32);
                    plain.leave(n % count);
                }
            }
            let on: Vec<Option<usize>> = (0..processors).map(|p| tested.on(p).map(|c| c as usize)).collect();
            prop_assert_eq!(&on, &plain.on);
            prop_assert_eq!(tested.waiting(), plain.queue.len());
            if bind {
                // No processor is free while somebody waits.
                prop_assert!(tested.waiting() == 0 || on.iter().all(Option::is_some));
            }
        }
    }

    /// The bound of the module's page: behind `i` others on `p` processors with slices of `s` ticks, at most `(i / p + 1) s` ticks.
    #[test]
    fn nobody_starves_under_hand_off(
        processors in 1..8usize,
        slice in 1..6u32,
        work in prop::collection::vec((0..40u32, 1..60u32), 1..40),
    ) {
        let mut tested = Contexts::new(processors, Release::Bind, Slices::Equal(slice));
        let count = work.len();
        let mut left: Vec<u32> = work.iter().map(|(_, ticks)| *ticks).collect();
        let mut promised: Vec<Option<u32>> = vec![None; count];
        for _ in 0..count {
            tested.add(Class::normal(0), 0);
        }
        let bound = |ahead: usize| (ahead / processors + 1) as u32 * slice;
        for now in 0..10_000u32 {
            for (context, (arrives, _)) in work.iter().enumerate() {
                if *arrives == now {
                    tested.start(context as u32);
                    let ahead = tested.waiting();
                    if tested.enter(context as u32) == Entered::Waits {
                        promised[context] = Some(now + bound(ahead));
                    }
                }
            }
            let got = |handed: Vec<Handed>, promised: &mut Vec<Option<u32>>, waiting: usize| {
                for Handed { last, next, .. } in handed {
                    if let Some(next) = next {
                        promised[next as usize] = None;
                    }
                    if let Some(last) = last.filter(|last| left[*last as usize] > 0) {
                        promised[last as usize] = Some(now + bound(waiting - 1));
                    }
                }
            };
            for processor in 0..processors {
                let handed = tested.tick(processor);
                let waiting = tested.waiting();
                got(handed, &mut promised, waiting);
            }
            for processor in 0..processors {
                let Some(context) = tested.on(processor).filter(|c| left[*c as usize] > 0) else { continue };
                left[context as usize] -= 1;
                if left[context as usize] == 0 {
                    for Handed { next, .. } in tested.leave(context) {
                        promised[next.unwrap() as usize] = None;
                    }
                }
            }
            for (context, until) in promised.iter().enumerate() {
                prop_assert!(until.is_none_or(|until| now <= until), "context {} still waits at {}", context, now);
            }
            if left.iter().all(|left| *left == 0) {
                return Ok(());
            }
        }
        prop_assert!(false, "some never end: {:?}", left);
    }

    /// Gangs of any sizes: each has processors as a whole or not, and all of them get to their ends.
    #[test]
    fn gangs_do_not_starve(
        processors in 1..8usize,
        slice in 1..4u32,
        gangs in prop::collection::vec((1..8usize, 1..20u32), 1..10),
    ) {
        let mut tested = Contexts::new(processors, Release::Gang, Slices::Equal(slice));
        let mut left = Vec::new();
        for (gang, (members, ticks)) in gangs.iter().enumerate() {
            for _ in 0..(*members).min(processors) {
                let context = tested.add(Class::normal(0), gang as u32);
                tested.start(context);
                left.push((gang, *ticks));
            }
        }
        for context in 0..left.len() {
            tested.enter(context as u32);
            tested.fill();
        }
        let most: u32 = gangs.iter().map(|(_, ticks)| ticks + slice).sum();
        for _ in 0..=most {
            for gang in 0..gangs.len() {
                let mut of = (0..left.len()).filter(|c| left[*c].0 == gang && left[*c].1 > 0).map(|c| tested.runs(c as u32));
                if let Some(first) = of.next() {
                    prop_assert!(of.all(|runs| runs == first), "gang {} is torn", gang);
                }
            }
            for processor in 0..processors {
                tested.tick(processor);
            }
            for (context, (_, left)) in left.iter_mut().enumerate() {
                if *left > 0 && tested.runs(context as u32) {
                    *left -= 1;
                    if *left == 0 {
                        tested.leave(context as u32);
                    }
                }
            }
        }
        prop_assert!(left.iter().all(|(_, left)| *left == 0), "{:?}", left);
    }
}
