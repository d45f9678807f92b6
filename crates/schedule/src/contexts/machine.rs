//! The state machine.

use super::{Class, Release, Slices};
use std::collections::{BTreeMap, VecDeque};

/// What a context that asked for a processor is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It has this processor, which was free.
    Bound(usize),
    /// It has this processor, which was taken from another context; under [`Release::Free`] its owner has to be woken.
    Took {
        /// The processor.
        processor: usize,
        /// Whose it was.
        victim: u32,
    },
    /// It waits.
    Waits,
}

/// A processor changes hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// The processor.
    pub processor: usize,
    /// Who had it; `None` if it was free.
    pub last: Option<u32>,
    /// Who is next; `None` if nobody waits, or nobody fits. Under [`Release::Free`] the processor is free, this context no longer waits, and its owner
    /// has to be woken, to ask again; otherwise it has the processor.
    pub next: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Its owner does something else, or asks for a processor.
    Away,
    Waits,
    Has(usize),
}

#[derive(Clone, Debug)]
struct Context {
    class: Class,
    gang: u32,
    /// Ticks left of its slice.
    slice: u32,
    place: Place,
    /// It has nothing to do any more, but still has its processor.
    done: bool,
}

/// Contexts, processors, and who waits.
#[derive(Clone, Debug)]
pub struct Contexts {
    release: Release,
    slices: Slices,
    processors: Vec<Option<u32>>,
    contexts: Vec<Context>,
    /// For each priority, best first.
    queues: BTreeMap<u8, VecDeque<u32>>,
    waiting: usize,
}

impl Contexts {
    /// So many processors, all free, and no context.
    pub fn new(processors: usize, release: Release, slices: Slices) -> Contexts {
        Contexts {
            release,
            slices,
            processors: vec![None; processors],
            contexts: Vec::new(),
            queues: BTreeMap::new(),
            waiting: 0,
        }
    }

    /// One more context, whose owner does something else as yet. Gives its number, counted from 0. Contexts of one `gang` belong
    /// together where that matters; they are of one class, and no more than there are processors.
    pub fn add(&mut self, class: Class, gang: u32) -> u32 {
        self.contexts.push(Context { class, gang, slice: 0, place: Place::Away, done: false });
        (self.contexts.len() - 1) as u32
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Who has a processor, whether it still has something to do or not.
    pub fn on(&self, processor: usize) -> Option<u32> {
        self.processors[processor]
    }

    /// Whether a context has a processor.
    pub fn runs(&self, context: u32) -> bool {
        matches!(self.contexts[context as usize].place, Place::Has(_))
    }

    /// How many processors there are.
    pub fn processors(&self) -> usize {
        self.processors.len()
    }

    fn gangs(&self) -> bool {
        self.release == Release::Gang
    }

    /// A context has something to do: its slice begins. To be followed by [`Contexts::enter`].
    pub fn start(&mut self, context: u32) {
        let of = &mut self.contexts[context as usize];
        (of.slice, of.done) = (self.slices.ticks(of.class), false);
    }

    /// A context's owner asks for a processor. With gangs nobody has one before [`Contexts::fill`].
    pub fn enter(&mut self, context: u32) -> Entered {
        let of = &self.contexts[context as usize];
        debug_assert!(of.place == Place::Away, "context {context} asks for what it has");
        if !self.gangs() {
            if let Some(free) = self.processors.iter().position(Option::is_none) {
                self.bind(context, free);
                return Entered::Bound(free);
            }
            if of.class.is_real_time()
                && let Some((processor, victim)) = self.victim(of.class.priority)
            {
                self.contexts[victim as usize].place = Place::Away;
                if self.release == Release::Bind {
                    self.put_back(victim);
                }
                self.bind(context, processor);
                return Entered::Took { processor, victim };
            }
        }
        self.wait(context);
        Entered::Waits
    }

    /// The worst context that is worse than this priority; of equals, that of the first processor.
    fn victim(&self, priority: u8) -> Option<(usize, u32)> {
        let rank = |context: u32| self.contexts[context as usize].class.priority;
        let held = self.processors.iter().enumerate().filter_map(|(p, held)| Some((p, (*held)?)));
        held.filter(|(_, held)| rank(*held) > priority).max_by_key(|(p, held)| (rank(*held), std::cmp::Reverse(*p)))
    }

    fn bind(&mut self, context: u32, processor: usize) {
        self.processors[processor] = Some(context);
        self.contexts[context as usize].place = Place::Has(processor);
    }

    fn wait(&mut self, context: u32) {
        let of = &mut self.contexts[context as usize];
        of.place = Place::Waits;
        self.queues.entry(of.class.priority).or_default().push_back(context);
        self.waiting += 1;
    }

    /// A context that has lost its processor waits for another, if it has something to do.
    fn put_back(&mut self, context: u32) {
        if !self.contexts[context as usize].done {
            self.wait(context);
        }
    }

    /// Takes the context that is next out of its queue: the first of the best priority, if that is `worst` or better.
    fn next(&mut self, worst: u8) -> Option<u32> {
        let (_, queue) = self.queues.range_mut(..=worst).find(|(_, queue)| !queue.is_empty())?;
        let next = queue.pop_front()?;
        self.waiting -= 1;
        self.contexts[next as usize].place = Place::Away;
        Some(next)
    }

    /// The ticker looks at a processor: what changes hands. One call a processor and tick, in order.
    pub fn tick(&mut self, processor: usize) -> Vec<Handed> {
        let Some(last) = self.processors[processor] else { return Vec::new() };
        let slices = self.slices;
        let of = &mut self.contexts[last as usize];
        if !of.class.sliced {
            return Vec::new();
        }
        of.slice = of.slice.saturating_sub(1);
        if of.slice > 0 {
            return Vec::new();
        }
        of.slice = slices.ticks(of.class);
        let worst = of.class.priority;
        if self.gangs() {
            return self.turn(last);
        }
        match self.next(worst) {
            None => Vec::new(),
            next => vec![self.hand(processor, next)],
        }
    }

    /// A processor goes from the context that has it to the next.
    fn hand(&mut self, processor: usize, next: Option<u32>) -> Handed {
        let last = self.processors[processor].take();
        if let Some(last) = last {
            self.contexts[last as usize].place = Place::Away;
        }
        if self.release == Release::Bind {
            if let Some(next) = next {
                self.bind(next, processor);
            }
            if let Some(last) = last {
                self.put_back(last);
            }
        }
        Handed { processor, last, next }
    }

    /// A context has nothing to do any more. It leaves its processor only if somebody waits.
    pub fn leave(&mut self, context: u32) -> Vec<Handed> {
        let of = &mut self.contexts[context as usize];
        of.done = true;
        let Place::Has(processor) = of.place else {
            self.forget(context);
            return Vec::new();
        };
        if self.gangs() {
            self.contexts[context as usize].place = Place::Away;
            self.processors[processor] = None;
            return self.fill();
        }
        match self.next(PRIORITIES_WORST) {
            None => Vec::new(),
            next => vec![self.hand(processor, next)],
        }
    }

    /// A context is thrown away: whatever it has is free, and goes to whoever waits.
    pub fn destroy(&mut self, context: u32) -> Vec<Handed> {
        let mut handed = self.leave(context);
        if let Place::Has(processor) = self.contexts[context as usize].place {
            self.processors[processor] = None;
            self.contexts[context as usize].place = Place::Away;
            handed.push(Handed { processor, last: Some(context), next: None });
        }
        handed
    }

    /// A context that waits, if it does, waits no longer.
    fn forget(&mut self, context: u32) {
        let of = &mut self.contexts[context as usize];
        if std::mem::replace(&mut of.place, Place::Away) == Place::Waits
            && let Some(queue) = self.queues.get_mut(&of.class.priority)
        {
            queue.retain(|waits| *waits != context);
            self.waiting -= 1;
        }
    }

    /// With gangs: those that wait longest have free processors, as long as all of the next one fits. To be called whenever
    /// contexts have entered.
    pub fn fill(&mut self) -> Vec<Handed> {
        let mut handed = Vec::new();
        while self.gangs() && self.waiting > 0 {
            let Some(first) = self.queues.values().find_map(|queue| queue.front().copied()) else { break };
            let gang = self.contexts[first as usize].gang;
            let of = |context: &Context| context.gang == gang && !context.done;
            let members = self.contexts.iter().filter(|context| of(context)).count();
            let ready = self.contexts.iter().filter(|context| of(context) && context.place == Place::Waits).count();
            let free: Vec<usize> = (0..self.processors.len()).filter(|p| self.processors[*p].is_none()).collect();
            if ready < members || free.len() < members {
                break;
            }
            let mut free = free.into_iter();
            for context in 0..self.contexts.len() as u32 {
                let is = &self.contexts[context as usize];
                if !(of(is) && is.place == Place::Waits) {
                    continue;
                }
                let priority = is.class.priority;
                if let (Some(processor), Some(queue)) = (free.next(), self.queues.get_mut(&priority)) {
                    queue.retain(|waits| *waits != context);
                    self.waiting -= 1;
                    self.start(context);
                    self.bind(context, processor);
                    handed.push(Handed { processor, last: None, next: Some(context) });
                }
            }
        }
        handed
    }

    /// A gang's slice is over: if another waits, all of it gives way, and whoever fits then follows.
    fn turn(&mut self, member: u32) -> Vec<Handed> {
        if self.waiting == 0 {
            return Vec::new();
        }
        let gang = self.contexts[member as usize].gang;
        let mut handed = Vec::new();
        for processor in 0..self.processors.len() {
            let Some(last) = self.processors[processor] else { continue };
            if self.contexts[last as usize].gang != gang {
                continue;
            }
            self.processors[processor] = None;
            let of = &mut self.contexts[last as usize];
            (of.place, of.slice) = (Place::Away, self.slices.ticks(of.class));
            self.put_back(last);
            handed.push(Handed { processor, last: Some(last), next: None });
        }
        for filled in self.fill() {
            match handed.iter_mut().find(|left| left.processor == filled.processor) {
                Some(left) => left.next = filled.next,
                None => handed.push(filled),
            }
        }
        handed
    }
}

/// The worst priority that there is.
const PRIORITIES_WORST: u8 = super::PRIORITIES - 1;
