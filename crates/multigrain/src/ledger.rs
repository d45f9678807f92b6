//! The ledger of a runtime: whose turn it is, and what is kept of the main memory beyond a run.
//!
//! Every run is planned for all workers and for the whole budget. So runs of one runtime are executed one after the other,
//! in the order in which they were begun: two at once would take twice the memory, and keep each other from their cores.
//! What outlives a run (the arrays of an [`Outcome`](crate::Outcome), a [`Prepared`](crate::Prepared) job) is a
//! [`Lease`]; a run that does not find room beside the leases of others is refused, with the numbers.
//!
//! There is one order of locks: the turn, then this ledger's sums, which nobody holds while waiting. Who has the turn waits
//! for no other turn and no memory, so nobody waits for ever: a run that is begun from within a run, on its own thread or a
//! worker's, would, and is refused. (One that a leaf begins on a thread of its own making, and waits for, cannot be told from others.)

use crate::error::Error;
use multigrain_machine::readable_bytes;
use multigrain_team::Abort;
use std::any::Any;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

/// How often who waits for a turn looks whether its run was ended meanwhile.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(crate) struct Ledger {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the next who comes.
    next: u64,
    /// Whose turn it is.
    serving: u64,
    /// Who has taken it.
    holder: Option<ThreadId>,
    /// Who has gone away without taking it.
    gone: BTreeSet<u64>,
    /// Bytes of all leases, their plans aside.
    held_bytes: u64,
    /// By address: bytes of each plan that leases hold, and how many do.
    plans: BTreeMap<usize, (u64, usize)>,
}

/// The right to run; given back when dropped.
pub(crate) struct Turn<'l> {
    ledger: &'l Ledger,
}

/// Bytes of the main memory, and a plan that may be others' as well; given back when dropped.
pub(crate) struct Lease {
    ledger: Arc<Ledger>,
    bytes: u64,
    plan: Held,
}

/// A plan; the ledger looks at nothing but whose it is.
type Held = Arc<dyn Any + Send + Sync>;

/// What a run asks for.
pub(crate) struct Need {
    pub(crate) bytes: u64,
    /// What it leaves of that which a process takes for itself: others' plans may lie there.
    pub(crate) own_left_bytes: u64,
}

/// By what the ledger knows a plan: leases keep it where it is.
fn address(plan: &Held) -> usize {
    Arc::as_ptr(plan).cast::<()>() as usize
}

impl Ledger {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn, in the order of coming; `is_worker` says whether this thread is one of those that execute runs.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the flag is raised meanwhile; [`Error::Request`] from within a run.
    pub(crate) fn turn(&self, abort: Option<&Abort>, is_worker: impl FnOnce() -> bool) -> Result<Turn<'_>, Error> {
        let this = std::thread::current().id();
        let mut state = self.state();
        if state.holder == Some(this) || state.holder.is_some() && is_worker() {
            let what = "a run was begun from within a run of the same runtime; begin it when that is over";
            return Err(Error::Request(what.into()));
        }
        let mine = state.next;
        state.next += 1;
        while state.serving != mine || state.holder.is_some() {
            if abort.is_some_and(Abort::is_raised) {
                state.gone.insert(mine);
                state.skip_gone();
                self.changed.notify_all();
                return Err(Error::Interrupted { resume: false });
            }
            state = match abort {
                Some(_) => self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state.holder = Some(this);
        Ok(Turn { ledger: self })
    }

    /// Enters what stays behind after a run: so many bytes, and a plan of so many. Only who has the turn does this.
    pub(crate) fn lease(self: &Arc<Self>, bytes: u64, plan: Held, plan_bytes: u64) -> Lease {
        let mut state = self.state();
        state.held_bytes = state.held_bytes.saturating_add(bytes);
        state.plans.entry(address(&plan)).or_insert((plan_bytes, 0)).1 += 1;
        drop(state);
        Lease { ledger: self.clone(), bytes, plan }
    }

    /// Whether what a run of a plan needs fits beside all leases; gives the bytes that they leave.
    ///
    /// # Errors
    /// [`Error::Request`], with the numbers.
    pub(crate) fn check(&self, app: &str, need: Need, plan: &Held, capacity_bytes: u64) -> Result<u64, Error> {
        let Need { bytes, own_left_bytes } = need;
        let state = self.state();
        let others = state.plans.iter().filter(|(held, _)| **held != address(plan));
        let plans = others.map(|(_, (bytes, _))| *bytes).fold(0, u64::saturating_add);
        let held = state.held_bytes.saturating_add(plans.saturating_sub(own_left_bytes));
        drop(state);
        if let Some(left) = capacity_bytes.checked_sub(bytes.saturating_add(held)) {
            return Ok(left);
        }
        Err(Error::Request(format!(
            "{app} does not fit now: it needs {} of {}, and {} are held by results and prepared jobs that are still in use; \
             let go of them first, or give more memory",
            readable_bytes(bytes),
            readable_bytes(capacity_bytes),
            readable_bytes(held)
        )))
    }
}

impl State {
    /// Passes the turn by those who have gone.
    fn skip_gone(&mut self) {
        while self.holder.is_none() && self.gone.remove(&self.serving) {
            self.serving += 1;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.ledger.state();
        state.holder = None;
        state.serving += 1;
        state.skip_gone();
        // Waking nobody is a system call as well.
        let somebody_waits = state.serving != state.next;
        drop(state);
        if somebody_waits {
            self.ledger.changed.notify_all();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.ledger.state();
        state.held_bytes -= self.bytes;
        if let Entry::Occupied(mut plan) = state.plans.entry(address(&self.plan)) {
            plan.get_mut().1 -= 1;
            if plan.get().1 == 0 {
                plan.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_after_the_other_whoever_goes_away() {
        let ledger = Ledger::default();
        let (inside, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let raised = Abort::new();
        raised.raise();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (ledger, inside, done, raised) = (&ledger, &inside, &done, &raised);
                scope.spawn(move || {
                    for round in 0..50 {
                        let calm = Abort::new();
                        let abort = [None, Some(raised), Some(&calm)][(thread + round) % 3];
                        let Ok(_turn) = ledger.turn(abort, || false) else { continue };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(done.load(Ordering::SeqCst) >= 2 * 8 * 50 / 3, "{done:?}");
        let state = ledger.state();
        assert!(state.gone.is_empty() && state.next == state.serving && state.holder.is_none());
    }

    #[test]
    fn a_run_within_a_run_is_refused() {
        let ledger = Ledger::default();
        let turn = ledger.turn(None, || false).unwrap();
        assert!(matches!(ledger.turn(None, || false), Err(Error::Request(_))));
        drop(turn);
        drop(ledger.turn(None, || false).unwrap());
    }

    #[test]
    fn leases_are_given_back() {
        let ledger = Arc::new(Ledger::default());
        let [mine, other]: [Held; 2] = [Arc::new(1), Arc::new(2)];
        let check = |bytes, plan| ledger.check("job", Need { bytes, own_left_bytes: 5 }, plan, 100);
        check(100, &mine).unwrap();
        let lease = ledger.lease(30, mine.clone(), 0);
        let text = check(71, &mine).unwrap_err().to_string();
        assert!(text.contains("job does not fit now") && text.contains("30 B"), "{text}");
        check(70, &mine).unwrap();
        drop(lease);
        check(100, &mine).unwrap();
        // A plan is held once, whoever shares it, and is not what its own run has to find room beside.
        let leases = [ledger.lease(0, other.clone(), 25), ledger.lease(0, other.clone(), 25)];
        assert_eq!(check(80, &mine).unwrap(), 0);
        check(81, &mine).unwrap_err();
        check(100, &other).unwrap();
        drop(leases);
        check(100, &mine).unwrap();
    }
}
