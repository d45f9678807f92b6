//! The context that the calling thread is. One of the modules of this crate with `unsafe` in it.

use std::cell::{Cell, RefCell};
use std::ptr::null;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::did::Did;
use super::line::{Given, Line};
use super::sharing::Turn;
use super::timer::{DUE, Timer};

thread_local! {
    static HERE: Cell<*const Here<'static>> = const { Cell::new(null()) };
}

/// A place at which a context may lose its processor, between tiles of a kernel or chunks of a loop: it does if its turn is over and another
/// waits. Then this returns when the context has a processor again, perhaps another. In a thread that is no context it does nothing.
///
/// Whoever calls it must hold no lock that another context wants.
#[inline]
pub fn look() {
    if DUE.with(|due| due.load(Ordering::Relaxed)) {
        look_closer();
    }
}

#[cold]
fn look_closer() {
    // SAFETY: the pointer is null, or to what `within` has on the stack of this very thread.
    if let Some(here) = unsafe { HERE.with(Cell::get).as_ref() } {
        here.over();
    }
}

/// What a context's thread knows of itself.
#[derive(Debug)]
struct Here<'r> {
    line: &'r Line,
    context: usize,
    turn: Turn,
    timer: Option<Timer>,
    /// When the turn is over, in ticks.
    end: Cell<u64>,
    did: RefCell<Did>,
}

pub(super) fn clock() -> u64 {
    multigrain_trace::now().0
}

fn ns(ticks: u64) -> u64 {
    (ticks as f64 * 1e9 / multigrain_trace::ticks_per_second()) as u64
}

fn ticks(time: Duration) -> u64 {
    (time.as_secs_f64() * multigrain_trace::ticks_per_second()) as u64
}

/// Executes the body of a context on this thread once it has a processor, and gives that up; `None` if there is no run. The body does not
/// panic. `turn` is `None` if it has its processor to its end.
pub(super) fn within<R>(line: &Line, context: usize, turn: Option<Turn>, body: impl FnOnce() -> R) -> Option<(R, Did)> {
    let timer = matches!(turn, Some(Turn::Timer(_))).then(Timer::new).and_then(Result::ok);
    DUE.with(|due| due.store(turn.is_some() && timer.is_none(), Ordering::Relaxed));
    let turn = turn.unwrap_or(Turn::Looks(1));
    let here = Here { line, context, turn, timer, end: Cell::new(0), did: RefCell::default() };
    let given = line.wait(context)?;
    here.begin(given);
    HERE.with(|cell| cell.set((&raw const here).cast()));
    let result = body();
    HERE.with(|cell| cell.set(null()));
    DUE.with(|due| due.store(false, Ordering::Relaxed));
    line.end(context, clock());
    let Here { timer, did, .. } = here;
    Some((result, Did { timer: timer.is_some(), ..did.into_inner() }))
}

impl Here<'_> {
    fn begin(&self, given: Given) {
        let now = clock();
        {
            let mut did = self.did.borrow_mut();
            did.bound += 1;
            if let Some(at) = given.at {
                did.hand_over_ns.push(ns(now.saturating_sub(at)));
            }
        }
        self.next_turn(now);
    }

    fn next_turn(&self, now: u64) {
        if let Turn::Clock(time) | Turn::Timer(time) = self.turn {
            self.end.set(now.saturating_add(ticks(time)));
            if let Some(timer) = &self.timer {
                DUE.with(|due| due.store(false, Ordering::Relaxed));
                timer.set(time);
            }
        }
    }

    fn over(&self) {
        let now = clock();
        let by_clock = matches!(self.turn, Turn::Clock(_) | Turn::Timer(_));
        if self.timer.is_none() && by_clock && now < self.end.get() {
            return;
        }
        if !self.line.tick(self.context, now) {
            return self.next_turn(now);
        }
        if by_clock {
            self.did.borrow_mut().late_ns.push(ns(now.saturating_sub(self.end.get())));
        }
        // Before it begins a run can be called off, not after.
        if let Some(given) = self.line.wait(self.context) {
            self.begin(given);
        }
    }
}
