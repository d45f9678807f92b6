//! Calls that are executed where their arrays lie, which may be in files: the parts of a plan, one after the other, and what a
//! group of kinds of children is given.

use crate::error::{CallName, Ended, EngineError};
use crate::home::Place;
use crate::interpreter::{Interpreter, in_program};
use multigrain_driver::{Direction, Location, Opaque, Slack, StoreError, Transfer};
use multigrain_plan::{Body, Plan};
use multigrain_program::Region;
use multigrain_trace::Activity;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::PoisonError;

impl Interpreter<'_, '_> {
    /// Executes a plan in parts.
    pub(crate) fn parts(&self, plan: &Plan, instance: usize, worker: usize, places: &[Place<'_>]) -> Result<(), Ended> {
        let led = self.memories.branch(plan).led(worker, 0);
        (0..plan.calls.len() as u32).try_for_each(|number| {
            let done = self.part(plan, number, instance, led.clone(), places);
            done.map_err(|Ended| self.ended_within(plan, instance, number, instance))
        })
    }

    /// Executes a call where its arguments lie, by a plan of its own, whoever does it leading these workers. To whoever keeps a
    /// log it is one call: it begins before any of its blocks is stored, and is done with the last.
    pub(crate) fn part(
        &self,
        plan: &Plan,
        number: u32,
        instance: usize,
        led: Range<usize>,
        places: &[Place<'_>],
    ) -> Result<(), Ended> {
        if self.abort.is_raised() {
            return Err(Ended);
        }
        let (call, class) = (&plan.calls[number as usize], plan.class_of[number as usize]);
        let params = plan.tasks[call.task as usize].params();
        let misplaced = || self.misplaced(plan, number);
        let Body::Inner(inner) = &plan.classes[class as usize].body else { return Err(misplaced()) };
        let numbered = in_program(plan, number);
        // What is updated and lies in two places: which of them it is read from.
        let mut carried: SmallVec<[(&dyn Opaque, u32); 1]> = SmallVec::new();
        let mut here: SmallVec<[Place<'_>; 4]> = SmallVec::new();
        for (argument, (arg, param)) in (0..).zip(call.args.iter().zip(params)) {
            let place = places.get(arg.array as usize);
            let side = match self.sides.filter(|_| self.is_root(plan)) {
                None => 0,
                Some(sides) if !param.access.writes() => sides.reads(numbered, argument),
                Some(sides) => {
                    let (from, to) = (sides.reads(numbered, argument), sides.writes(numbered, argument));
                    if let Some(Place::Twins(files)) = place
                        && param.access.reads()
                        && from != to
                    {
                        carried.push((&*files[from], argument));
                    }
                    to
                }
            };
            let place = place.and_then(|place| place.part(&arg.region, side));
            here.push(place.ok_or_else(misplaced)?);
        }
        let log = self.log.as_ref().filter(|_| self.is_root(plan));
        let written = || (0..).zip(params).zip(&here).filter(|((_, param), _)| param.access.writes());
        let since = self.moment();
        if let Some(log) = log {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            for ((argument, _), _) in written() {
                log.begin(numbered, argument).map_err(|e| self.part_fault(plan, number, e))?;
            }
            self.record_overhead(plan, led.start, Activity::Journal, since);
        }
        for (from, argument) in carried {
            // Of several ranks one does, and the others wait for it: who is through with it writes there.
            let ranks = self.ranks_of(inner);
            if let Some(Place::Part(to, region)) = here.get(argument as usize)
                && ranks.is_none_or(|ranks| ranks.all.rank() == 0)
            {
                self.carry_over(plan, number, (inner, instance), (from, *to), region)?;
            }
            if let Some(ranks) = ranks {
                ranks.all.meet(self.abort).map_err(|_| Ended)?;
            }
        }
        let since = self.moment();
        let executed = match plan.lent(class) {
            none if none.is_empty() => self.execute(inner, instance, led.start, &here),
            lent => {
                let lent = places.get(lent).ok_or_else(misplaced)?;
                let all: SmallVec<[Place<'_>; 4]> = here.iter().chain(lent).cloned().collect();
                self.execute(inner, instance, led.start, &all)
            }
        };
        self.record_call(plan, led.clone(), number, since);
        executed?;
        let since = self.moment();
        if let Some(log) = log {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            for ((argument, _), place) in written() {
                if let Place::Part(array, _) = place {
                    log.done(numbered, argument, *array).map_err(|e| self.part_fault(plan, number, e))?;
                }
            }
            self.record_overhead(plan, led.start, Activity::Journal, since);
        }
        Ok(())
    }

    /// Copies a region from one of an array's two places to the other, where a part then updates it.
    fn carry_over(
        &self,
        plan: &Plan,
        number: u32,
        (inner, instance): (&Plan, usize),
        (from, to): (&dyn Opaque, &dyn Opaque),
        region: &Region,
    ) -> Result<(), Ended> {
        let Some(own) = self.memories.below(inner, instance) else {
            return Err(self.misplaced(plan, number));
        };
        let name = || CallName::of(plan, number).to_string();
        for piece in region.pieces(own.span.len_bytes / from.element().size_bytes()) {
            if self.abort.is_raised() {
                return Err(Ended);
            }
            for (array, direction) in [(from, Direction::Read), (to, Direction::Write)] {
                let location = Location::Opaque(array, piece);
                let slack = Slack::default();
                let transfer = Transfer { direction, location, offset_bytes: 0, slack, timed: false, name: &name };
                // SAFETY: the piece fits the child's memory, which is nobody's between two parts and outlives the transfer.
                let receipt = unsafe { own.child.issue(&transfer) };
                let done = receipt.and_then(|receipt| receipt.map_or(Ok(()), |receipt| receipt.wait()));
                done.map_err(|e| self.part_fault(plan, number, e))?;
            }
        }
        Ok(())
    }

    fn part_fault(&self, plan: &Plan, call: u32, source: impl Into<StoreError>) -> Ended {
        self.fail(EngineError::Store { what: CallName::of(plan, call).to_string(), source: source.into() })
    }
}
