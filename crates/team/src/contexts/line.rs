//! Contexts, their processors, and the threads that wait for them. CONTEXTS.md has the states and the races; the names in brackets
//! are those of the races.

use multigrain_schedule::contexts::{Class, Contexts, Entered, Handed, Release, Slices};

use super::sharing::Sharing;
use crate::bind;
use crate::pad::Padded;
use crate::signal::Signal;
use crate::spin::SpinLimit;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Mutex, Ordering, lock, yield_now};

/// The context has a processor: that in its [`Place`].
const HAS: u64 = 1 << 1;
/// A processor was free when this was set; the context's thread has to ask for it.
const ASK: u64 = 1 << 2;
/// The run has come to nothing before it began.
const OFF: u64 = 1 << 3;

/// Where a context's thread waits.
#[derive(Debug)]
struct Place {
    signal: Signal,
    /// The processor that it was given last, and when, in ticks; `NOT_GIVEN` if it asked and found it free.
    processor: AtomicUsize,
    given: AtomicU64,
    /// What the system calls the thread; 0 where that is not known.
    thread: AtomicU32,
    /// The processor to which the thread is bound; `NOWHERE` if it is not.
    bound: AtomicUsize,
}

const NOT_GIVEN: u64 = u64::MAX;
const NOWHERE: usize = usize::MAX;

/// What a context's thread was woken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) processor: usize,
    /// When, in ticks, if another gave it.
    pub(super) at: Option<u64>,
}

/// All contexts of a run.
#[derive(Debug)]
pub(super) struct Line {
    contexts: Mutex<Contexts>,
    places: Box<[Padded<Place>]>,
    sharing: Sharing,
    /// What the system calls the processors; empty if threads are not bound.
    cpus: Box<[usize]>,
}

impl Line {
    /// So many contexts, with turns of so many ticks, on processors that the system calls so; none, if threads are not to be bound.
    pub(super) fn new(processors: usize, contexts: usize, sharing: Sharing, ticks: u32, cpus: &[usize]) -> Line {
        let (class, release) = match sharing {
            Sharing::Fifo | Sharing::System => (Class::fifo(1), Release::Bind),
            Sharing::Slices => (Class::normal(0), Release::Free),
            Sharing::HandOff => (Class::normal(0), Release::Bind),
        };
        let mut machine = Contexts::new(processors, release, Slices::Equal(ticks));
        for _ in 0..contexts {
            let context = machine.add(class, 0);
            machine.start(context);
        }
        let place = || Place {
            signal: Signal::new(1),
            processor: AtomicUsize::new(0),
            given: AtomicU64::new(NOT_GIVEN),
            thread: AtomicU32::new(0),
            bound: AtomicUsize::new(NOWHERE),
        };
        let places = (0..contexts).map(|_| Padded(place())).collect();
        Line { contexts: Mutex::new(machine), places, sharing, cpus: cpus.into() }
    }

    /// For a context's own thread, before it waits first.
    pub(super) fn is_here(&self, context: usize, thread: u32) {
        self.places[context].thread.store(thread, Ordering::Relaxed);
    }

    /// All ask, in their order, before any of them runs: else the first would go on at the ends of its turns, since nobody waited.
    pub(super) fn begin(&self) {
        let mut contexts = lock(&self.contexts);
        let enter = |context| (context, contexts.enter(context as u32));
        let entered: Vec<(usize, Entered)> = (0..self.places.len()).map(enter).collect();
        drop(contexts);
        entered.into_iter().for_each(|(context, entered)| self.entered(context, entered));
    }

    /// There will be no run: all threads that wait, or will, are told.
    pub(super) fn call_off(&self) {
        self.places.iter().for_each(|place| {
            place.signal.raise(OFF);
        });
    }

    fn ask(&self, context: usize) {
        let entered = lock(&self.contexts).enter(context as u32);
        self.entered(context, entered);
    }

    fn entered(&self, context: usize, entered: Entered) {
        // All are of one class, so nobody takes a processor from another.
        if let Entered::Bound(processor) | Entered::Took { processor, .. } = entered {
            self.give(context, processor, None);
        }
    }

    /// For whoever the machine has just let bind it [given once].
    fn give(&self, context: usize, processor: usize, given: Option<u64>) {
        let place = &self.places[context];
        // Relaxed, all: the thread sees by the bit what it is given.
        let thread = place.thread.load(Ordering::Relaxed);
        if let Some(&cpu) = self.cpus.get(processor)
            && thread != 0
            && place.bound.load(Ordering::Relaxed) != processor
            && bind::other_to(thread, cpu)
        {
            place.bound.store(processor, Ordering::Relaxed);
        }
        place.processor.store(processor, Ordering::Relaxed);
        place.given.store(given.unwrap_or(NOT_GIVEN), Ordering::Relaxed);
        place.signal.raise(HAS);
    }

    /// For a context's own thread: returns when it has a processor; `None` if there is no run.
    pub(super) fn wait(&self, context: usize) -> Option<Given> {
        let place = &self.places[context];
        loop {
            // Without an abort flag a wait has no way to fail. Who spins takes the processor from the one that it waits for.
            let _ = place.signal.wait_until(|word| word & (HAS | ASK | OFF) != 0, SpinLimit::from_polls(0), None);
            let word = place.signal.lower(HAS | ASK);
            if word & HAS != 0 {
                let processor = place.processor.load(Ordering::Relaxed);
                // Its thread was not known yet when it was given the first.
                if let Some(&cpu) = self.cpus.get(processor)
                    && place.bound.load(Ordering::Relaxed) != processor
                    && bind::to(cpu)
                {
                    place.bound.store(processor, Ordering::Relaxed);
                }
                let at = Some(place.given.load(Ordering::Relaxed)).filter(|at| *at != NOT_GIVEN);
                return Some(Given { processor, at });
            }
            if word & OFF != 0 {
                return None;
            }
            self.ask(context);
        }
    }

    /// For a context's own thread, which has a processor: a tick of its turn; whether it has lost the processor. What follows then is
    /// [`Line::wait`].
    pub(super) fn tick(&self, context: usize, now: u64) -> bool {
        // Its own processor is written by itself, or before it was woken.
        let processor = self.places[context].processor.load(Ordering::Relaxed);
        let handed = lock(&self.contexts).tick(processor);
        self.hand(&handed, now);
        if handed.is_empty() {
            return false;
        }
        if self.sharing == Sharing::Slices {
            // Whoever the system lets come first has the processor.
            yield_now();
            self.ask(context);
        }
        true
    }

    /// For a context's own thread, which has a processor: the context has ended.
    pub(super) fn end(&self, context: usize, now: u64) {
        let handed = lock(&self.contexts).destroy(context as u32);
        self.hand(&handed, now);
    }

    /// Those that are next are woken; to bind and to wake takes the system longer than all that needs the lock.
    fn hand(&self, handed: &[Handed], now: u64) {
        for Handed { processor, next, .. } in handed {
            let Some(next) = next.map(|next| next as usize) else { continue };
            match self.sharing {
                Sharing::Slices => {
                    self.places[next].signal.raise(ASK);
                }
                Sharing::Fifo | Sharing::HandOff | Sharing::System => self.give(next, *processor, Some(now)),
            }
        }
    }
}
