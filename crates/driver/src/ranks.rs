//! Ranks: the processes of a cluster that execute one run together.
//!
//! Each makes the same plan and executes the steps of the root's child that has its number. What they tell each other is here,
//! whatever carries it ([`Link`]): signals and barriers of plans, what all have to know of all, that a run is to end and why,
//! and that each is still there. A rank from which nothing was heard for [`PATIENCE`] is lost, and the run ends everywhere.
//!
//! ```text
//! one rank         gather ... signals, waits, barriers ... gather    bye
//! fails            -> Ended to all; whoever waits for anything, then or later, learns it
//! is gone          its successor hears nothing of it -> Ended to all
//! ```
//! The first end that a rank hears of is the one that it believes.

use crate::exchange::Exchange;
use multigrain_team::{Abort, Aborted};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// After so long a silence a rank is taken for lost.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How often a rank is heard of at least.
const BEAT: Duration = Duration::from_millis(500);
/// Who was away for so long (suspended, or without a processor) may not judge the silence of others.
const AWAY: Duration = Duration::from_secs(2);

/// Carries messages between ranks.
pub trait Link: Send + Sync {
    /// Sends a message, and does not wait for whoever receives it. Messages of one rank to one other arrive in their order, and
    /// are handed to its [`Ranks::deliver`].
    fn send(&self, to: usize, message: Vec<u8>);
}

/// Why a run ends on all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The rank that failed or is lost.
    pub rank: usize,
    /// The exit status of all.
    pub status: u8,
    /// Whether it answers no more.
    pub lost: bool,
    /// What happened there, in words.
    pub text: String,
}

/// What all ranks have in common, as one of them sees it.
pub struct Ranks {
    rank: usize,
    /// The node of each rank.
    nodes: Vec<String>,
    link: Box<dyn Link>,
    pub(crate) exchange: Exchange,
    state: Mutex<State>,
    changed: Condvar,
    /// Signals of each rank's steps, from the first run on.
    signals: Vec<multigrain_team::Steps>,
    /// Barriers that all have come to.
    met: multigrain_team::Steps,
    /// How far each is, as far as this one knows.
    done: Mutex<Vec<Progress>>,
}

/// How far a run is; of one rank, what it has done of what there is to do for all together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Floating-point operations (or calls, for a program without any) that are done.
    pub done: f64,
    /// All of them.
    pub total: f64,
}

struct State {
    /// At the first rank: what each has given of what is gathered, the oldest first.
    pieces: Vec<VecDeque<Vec<u8>>>,
    gathered: VecDeque<Vec<Vec<u8>>>,
    /// At the first rank: how often each has come to a barrier, and how often all were told to go on.
    came: Vec<u64>,
    released: u64,
    /// Barriers that this rank has come to.
    barriers: u64,
    ended: Option<(Ended, Instant)>,
    /// The exit status of each that is done.
    byes: Vec<Option<u8>>,
    heard: Instant,
    told: Option<Instant>,
    /// It has said that it is done.
    leaving: bool,
    looked: Instant,
}

const SIGNAL: u8 = 0;
const CAME: u8 = 1;
const GO_ON: u8 = 2;
const PIECE: u8 = 3;
const GATHERED: u8 = 4;
const ENDED: u8 = 5;
const ALIVE: u8 = 6;
const BYE: u8 = 7;
// 8 to 12 are of exchanges.
const DONE: u8 = 13;

impl Ranks {
    /// One of as many ranks as there are nodes named, of which each rank has the name of its own.
    pub fn new(rank: usize, nodes: Vec<String>, link: Box<dyn Link>) -> Arc<Ranks> {
        let (count, now) = (nodes.len(), Instant::now());
        assert!(rank < count, "rank {rank} of {count}");
        let state = State {
            pieces: vec![VecDeque::new(); count],
            gathered: VecDeque::new(),
            came: vec![0; count],
            released: 0,
            barriers: 0,
            ended: None,
            byes: vec![None; count],
            heard: now,
            told: None,
            leaving: false,
            looked: now,
        };
        Arc::new(Ranks {
            rank,
            nodes,
            link,
            exchange: Exchange::default(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            signals: (0..count).map(|_| multigrain_team::Steps::default()).collect(),
            met: multigrain_team::Steps::default(),
            done: Mutex::new(vec![Progress::default(); count]),
        })
    }

    /// This one.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a rank.
    pub fn node(&self, rank: usize) -> &str {
        &self.nodes[rank]
    }

    /// A rank, for people.
    pub fn name(&self, rank: usize) -> String {
        format!("rank {rank} on node {}", self.nodes[rank])
    }

    /// Whether this rank speaks for all: the first, or who comes next where that is lost.
    pub fn speaks(&self) -> bool {
        let first_is_lost = self.state().ended.as_ref().is_some_and(|(ended, _)| ended.lost && ended.rank == 0);
        self.rank == usize::from(first_is_lost && self.count() > 1)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, to: usize, kind: u8, bytes: &[u8]) {
        let mut message = Vec::with_capacity(1 + bytes.len());
        message.push(kind);
        message.extend_from_slice(bytes);
        self.send(to, message);
    }

    /// Sends a message, whose first byte is its kind.
    pub(crate) fn send(&self, to: usize, message: Vec<u8>) {
        match to == self.rank {
            true => self.deliver(to, &message),
            false => self.link.send(to, message),
        }
    }

    /// Sends what is queued for owners of arrays, as far as so many messages may be under way.
    pub(crate) fn send_queued(&self) {
        self.exchange.send_queued(self.count(), &|to, message| self.send(to, message));
    }

    fn tell_all(&self, kind: u8, bytes: &[u8]) {
        // Oneself last: whoever is woken by it may end, and with it this process.
        (0..self.count()).filter(|&to| to != self.rank).for_each(|to| self.tell(to, kind, bytes));
        self.tell(self.rank, kind, bytes);
    }

    /// Takes a message that a link has carried.
    pub fn deliver(&self, from: usize, message: &[u8]) {
        let Some((&kind, bytes)) = message.split_first() else { return };
        let mut state = self.state();
        if from == self.before() {
            state.heard = Instant::now();
        }
        if kind == DONE {
            drop(state);
            if let Some((done, total)) = bytes.split_first_chunk().zip(bytes.last_chunk()).map(|((a, _), b)| (a, b)) {
                self.dones()[from] = Progress { done: f64::from_le_bytes(*done), total: f64::from_le_bytes(*total) };
            }
            return;
        }
        if kind > BYE {
            drop(state);
            self.exchange.deliver(from, kind, bytes, self.count(), &|to, message| self.send(to, message));
            return;
        }
        match kind {
            SIGNAL => {
                drop(state);
                self.signals[from].signal();
                return;
            }
            CAME => {
                state.came[from] += 1;
                if state.came.iter().all(|&came| came > state.released) {
                    state.released += 1;
                    drop(state);
                    self.tell_all(GO_ON, &[]);
                }
                return;
            }
            GO_ON => {
                drop(state);
                self.met.signal();
                return;
            }
            PIECE => {
                state.pieces[from].push_back(bytes.to_vec());
                if state.pieces.iter().all(|pieces| !pieces.is_empty()) {
                    let all: Vec<Vec<u8>> = state.pieces.iter_mut().filter_map(VecDeque::pop_front).collect();
                    drop(state);
                    self.tell_all(GATHERED, &packed(&all));
                }
                return;
            }
            GATHERED => state.gathered.push_back(unpacked(bytes)),
            ENDED => {
                if let Some(ended) = Ended::read(bytes, self.count()) {
                    state.ended.get_or_insert((ended, Instant::now()));
                }
            }
            BYE => state.byes[from] = Some(bytes.first().copied().unwrap_or_default()),
            _ => {}
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The rank whose silence this one would notice.
    fn before(&self) -> usize {
        (self.rank + self.count() - 1) % self.count()
    }

    /// Says that it is still there, and looks whether the rank before it is. To be called by whoever carries messages, several
    /// times a second.
    pub fn beat(&self) {
        let (now, before) = (Instant::now(), self.before());
        let mut state = self.state();
        if before == self.rank {
            return;
        }
        if now.duration_since(state.looked) > AWAY {
            state.heard = now;
        }
        state.looked = now;
        let is_due = !state.leaving && state.told.is_none_or(|told| now.duration_since(told) >= BEAT);
        if is_due {
            state.told = Some(now);
        }
        let is_lost =
            state.ended.is_none() && state.byes[before].is_none() && now.duration_since(state.heard) > PATIENCE;
        drop(state);
        if is_due {
            self.tell((self.rank + 1) % self.count(), ALIVE, &[]);
        }
        if is_lost {
            self.lost(before);
        }
    }

    /// Ends the run everywhere, since a rank answers no more.
    pub fn lost(&self, rank: usize) {
        let text = format!("it answers no more (nothing was heard of it for {} seconds)", PATIENCE.as_secs());
        self.end_with(&Ended { rank, status: 1, lost: true, text });
    }

    /// Ends the run everywhere, since this rank cannot go on; nothing where it ends already.
    pub fn end(&self, status: u8, text: &str) {
        self.end_with(&Ended { rank: self.rank, status, lost: false, text: text.to_owned() });
    }

    fn end_with(&self, ended: &Ended) {
        if self.ended().is_none() {
            self.tell_all(ENDED, &ended.written());
        }
    }

    /// Why the run ends, if it does before its time.
    pub fn ended(&self) -> Option<Ended> {
        self.state().ended.as_ref().map(|(ended, _)| ended.clone())
    }

    /// For how long that has been known.
    pub fn ended_for(&self) -> Option<Duration> {
        self.state().ended.as_ref().map(|(_, since)| since.elapsed())
    }

    /// Raises a flag when the run ends before its time, until what is given is dropped.
    pub fn watch<'s>(self: &Arc<Self>, abort: &'s Abort, scope: &'s std::thread::Scope<'s, '_>) -> Watch {
        let ranks = Arc::clone(self);
        every(LOOK, scope, move || {
            let ends = ranks.ended().is_some();
            if ends {
                abort.raise();
            }
            !ends
        })
    }

    fn dones(&self) -> MutexGuard<'_, Vec<Progress>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody has done anything: all have met since the run before.
    pub fn begin(&self) {
        self.dones().fill(Progress::default());
    }

    /// How far this rank is; the first learns it by [`tell_done`](Ranks::tell_done).
    pub fn did(&self, done: Progress) {
        self.dones()[self.rank] = done;
    }

    /// Tells the first rank how far this one is.
    pub fn tell_done(&self) {
        let Progress { done, total } = self.dones()[self.rank];
        if self.rank != 0 {
            self.tell(0, DONE, &[done.to_le_bytes(), total.to_le_bytes()].concat());
        }
    }

    /// How far all are together; the first rank knows.
    pub fn done(&self) -> Progress {
        let add =
            |sum: Progress, one: &Progress| Progress { done: sum.done + one.done, total: sum.total.max(one.total) };
        self.dones().iter().fold(Progress::default(), add)
    }

    /// Tells the first rank now and then how far this one is, and the first shows how far all are, until what is given is dropped.
    pub fn show<'s>(
        self: &Arc<Self>,
        show: Option<&'s (dyn Fn(Progress) + Sync)>,
        scope: &'s std::thread::Scope<'s, '_>,
    ) -> Watch {
        let ranks = Arc::clone(self);
        every(SHOW, scope, move || {
            ranks.tell_done();
            if let Some(show) = show {
                show(ranks.done());
            }
            true
        })
    }

    /// Bytes of arrays that other ranks own and this one has fetched or stored, from its beginning on.
    pub fn moved_bytes(&self) -> u64 {
        self.exchange.moved.load(Ordering::Relaxed)
    }

    /// Bytes of other ranks' parts of arrays that this process has touched: memory of theirs.
    pub fn near_bytes(&self) -> u64 {
        self.exchange.near_bytes()
    }

    /// Each gives some bytes, and has those of all, in the order of the ranks. All call it, in the same order.
    ///
    /// # Errors
    /// The run ends before its time.
    pub fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, Ended> {
        self.tell(0, PIECE, own);
        let mut state = self.state();
        loop {
            if let Some(all) = state.gathered.pop_front() {
                return Ok(all);
            }
            if let Some((ended, _)) = &state.ended {
                return Err(ended.clone());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells all that this rank's steps have come to their next signal.
    pub fn signal(&self) {
        self.tell_all(SIGNAL, &[]);
    }

    /// Waits until another has given so many signals, counted from the first run on.
    ///
    /// # Errors
    /// The flag was raised before.
    pub fn wait(&self, rank: usize, signals: u64, abort: &Abort) -> Result<(), Aborted> {
        self.signals[rank].wait_for(signals, abort)
    }

    /// The signals of a rank so far.
    pub fn signals(&self, rank: usize) -> u64 {
        self.signals[rank].count()
    }

    /// Waits until all have come to their next barrier. One thread of a rank at a time calls it.
    ///
    /// # Errors
    /// The flag was raised before.
    pub fn meet(&self, abort: &Abort) -> Result<(), Aborted> {
        let number = {
            let mut state = self.state();
            state.barriers += 1;
            state.barriers
        };
        self.tell(0, CAME, &[]);
        self.met.wait_for(number, abort)
    }

    /// This rank is done; waits until all are, or some is lost. Gives the exit status of all: that of the first that failed,
    /// else of the first rank.
    pub fn bye(&self, status: u8) -> u8 {
        // Nothing is sent behind it.
        self.state().leaving = true;
        self.tell_all(BYE, &[status]);
        let mut state = self.state();
        let since = Instant::now();
        loop {
            let is_lost = state.ended.as_ref().is_some_and(|(ended, _)| ended.lost);
            let failed = state.ended.as_ref().map(|(ended, _)| ended.status);
            let all_are = state.byes.iter().all(Option::is_some);
            if all_are || is_lost && since.elapsed() > GRACE {
                return failed.or(state.byes[0]).unwrap_or(status);
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How often who watches looks.
const LOOK: Duration = Duration::from_millis(20);
/// How often it is told how far a rank is.
const SHOW: Duration = Duration::from_millis(250);
/// So long others are waited for where one is lost.
const GRACE: Duration = Duration::from_secs(2);

/// Looks every so often, as long as that says so.
fn every<'s>(
    pause: Duration,
    scope: &'s std::thread::Scope<'s, '_>,
    mut look: impl FnMut() -> bool + Send + 's,
) -> Watch {
    let over = Arc::new((Mutex::new(false), Condvar::new()));
    let watched = Arc::clone(&over);
    scope.spawn(move || {
        let mut is_over = watched.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_over && look() {
            is_over = watched.1.wait_timeout(is_over, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    });
    Watch(over)
}

/// Who looks until this is dropped.
pub struct Watch(Arc<(Mutex<bool>, Condvar)>);

impl Drop for Watch {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

impl Ended {
    fn written(&self) -> Vec<u8> {
        let mut bytes = (self.rank as u32).to_le_bytes().to_vec();
        bytes.extend([self.status, u8::from(self.lost)]);
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }

    fn read(bytes: &[u8], ranks: usize) -> Option<Ended> {
        let (rank, rest) = bytes.split_first_chunk::<4>()?;
        let ([status, lost], text) = rest.split_first_chunk::<2>()?;
        let rank = (u32::from_le_bytes(*rank) as usize).min(ranks - 1);
        Some(Ended { rank, status: *status, lost: *lost != 0, text: String::from_utf8_lossy(text).into_owned() })
    }
}

fn packed(all: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for one in all {
        bytes.extend_from_slice(&(one.len() as u64).to_le_bytes());
        bytes.extend_from_slice(one);
    }
    bytes
}

fn unpacked(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<8>() {
        let (one, rest) = rest.split_at((u64::from_le_bytes(*len) as usize).min(rest.len()));
        all.push(one.to_vec());
        bytes = rest;
    }
    all
}

/// The ranks of this process's cluster.
static JOINED: RwLock<Option<Arc<Ranks>>> = RwLock::new(None);

/// Makes the ranks known that this process is one of: to runtimes that are made from here on.
pub fn join(ranks: Arc<Ranks>) {
    *JOINED.write().unwrap_or_else(PoisonError::into_inner) = Some(ranks);
}

/// The ranks that this process is one of; none where it is alone.
pub fn joined() -> Option<Arc<Ranks>> {
    JOINED.read().unwrap_or_else(PoisonError::into_inner).clone()
}
