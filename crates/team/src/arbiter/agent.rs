//! The agent: one thread a process, which says what its process wants, and binds that process's workers to the cores that are theirs at the moment. It sleeps until something changes, a core changes hands, or a turn is over.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use multigrain_schedule::cores::{Division, Member, TURN};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify;
use rustix::time::{ClockId, clock_gettime};

use super::Here;
use super::life;
use super::table::{Refusal, Says, Table};
use crate::spin;

/// How often cores change hands where shares are not whole: long beside what that costs (some 50 us), short beside what people notice.
const TURN_NS: u64 = 40_000_000;
/// How much later than a core changes hands it is looked at: one part of a turn, and what a timer may be early.
const EARLY_NS: u64 = 10_000;
/// From this part of a turn on that workers were ready to run and did not, others have their processors.
const SET_ASIDE: f64 = 0.05;
/// The largest weight.
const LARGEST: u32 = 100;
/// Says which weight a process has that shares its processors.
const WEIGHT: &str = "MULTIGRAIN_WEIGHT";

/// Nanoseconds of the clock that all processes share.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Wakes the agent of this process.
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Waker {
    pub(super) fn wake(&self) {
        // It only fails where the agent has been woken very often and has not yet looked.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// Takes a seat and starts the agent; none where this process takes no part.
pub(super) fn start(here: &'static Here) -> Result<Option<Waker>, Refusal> {
    let Some(weight) = weight()? else { return Ok(None) };
    let allowed = here.cores().allowed.clone();
    if allowed.is_empty() {
        return Err("the system does not say which processors this process may use".into());
    }
    let table = Table::join(&allowed)?;
    let refused = |what: &'static str| move |error: io::Error| format!("the system refuses {what}: {error}");
    // The very file that is open, whatever has its name by now.
    let file = format!("/proc/self/fd/{}", table.file().as_raw_fd());
    let bell = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)
        .and_then(|bell| inotify::add_watch(&bell, file, inotify::WatchFlags::MODIFY).map(|_| bell))
        .map_err(|error| refused("to watch a file")(error.into()))?;
    let woken = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| refused("an event")(error.into()))?;
    let waker = Waker(woken.try_clone().map_err(refused("an event"))?);
    let agent =
        Agent { here, table, said: Member { weight, wanted: 0 }, bell, woken, others: Vec::new(), pace: Pace::new() };
    agent.table.say(agent.said)?;
    let thread = std::thread::Builder::new().name("arbiter".into()).stack_size(256 << 10);
    thread.spawn(move || agent.serve()).map_err(refused("a thread"))?;
    Ok(Some(waker))
}

/// The weight that is asked for; none where this process takes no part.
fn weight() -> Result<Option<u32>, Refusal> {
    let Some(given) = std::env::var_os(WEIGHT) else { return Ok(None) };
    let text = given.to_string_lossy();
    match text.parse() {
        Ok(weight @ 1..=LARGEST) => Ok(Some(weight)),
        _ => Err(format!("{WEIGHT} is {text:?}; give 1 to {LARGEST}")),
    }
}

/// Another process that has a seat.
#[derive(Debug)]
struct Other {
    process: u32,
    /// Can be read once the process has ended.
    end: Option<OwnedFd>,
    /// It has ended. Where it has left a child its seat is still held.
    has_ended: bool,
}

#[derive(Debug)]
struct Agent {
    here: &'static Here,
    table: Table,
    /// What its seat says.
    said: Member,
    bell: OwnedFd,
    woken: OwnedFd,
    others: Vec<Other>,
    pace: Pace,
}

impl Agent {
    fn serve(mut self) {
        let refusal = loop {
            match self.turn() {
                Ok(sleep) => self.sleep(sleep),
                Err(refusal) => break refusal,
            }
        };
        // As if there had never been others.
        *super::locked(&self.here.told.refusal) = Some(refusal);
        let mut cores = self.here.cores();
        let allowed = cores.allowed.clone();
        cores.have(allowed);
        spin::set_crowded(false);
    }

    /// Looks at everything once and does what follows; how long there is nothing to do then, for ever if none.
    fn turn(&mut self) -> Result<Option<Duration>, Refusal> {
        let now = now_ns();
        let count = self.here.cores().allowed.len() as u32;
        let wants = &self.here.told.wants;
        let is_between = now.saturating_sub(self.here.told.ended_ns.load(Ordering::Relaxed)) < TURN_NS;
        let wanted = wants.now(count, is_between);
        if wanted != self.said.wanted {
            self.said.wanted = wanted;
            self.table.say(self.said)?;
        }
        let mut all = self.table.says()?;
        self.watch(&all);
        let has_ended = |process| self.others.iter().any(|other| other.process == process && other.has_ended);
        for other in all.iter_mut().filter(|says| !says.is_mine && says.member.wanted > 0) {
            // Who is stopped wants nothing until it goes on.
            if has_ended(other.process) || life::is_stopped(other.process) {
                other.member.wanted = 0;
            }
        }
        if wanted == 0 {
            // In company, too: whoever begins is heard by its bell.
            let is_over = wants.at_work() == 0 && !is_between;
            return Ok((!is_over).then_some(Duration::from_nanos(TURN_NS)));
        }
        let members: Vec<Member> = all.iter().map(|says| says.member).collect();
        let Some(place) = all.iter().position(|says| says.is_mine) else {
            return Err("its seat in the table was taken from it".into());
        };
        let division = Division::new(count, &members);
        let phase = (now % TURN_NS * u64::from(TURN) / TURN_NS) as u32;
        let mut has: Vec<u32> = division.of(place, phase).collect();
        if has.is_empty() {
            has.extend(division.next_of(place));
        }
        let mut cores = self.here.cores();
        let has: Vec<usize> = has.iter().map(|&core| cores.allowed[core as usize]).collect();
        let is_crowded = has.len() < wants.at_work() as usize;
        cores.have(has);
        let threads = cores.threads();
        drop(cores);
        // Who has fewer cores than workers sets these aside itself.
        spin::set_crowded(is_crowded || self.pace.set_aside(threads, now) > SET_ASIDE);
        // A look that comes a little early is a look in vain.
        let next = division.next_change(phase).unwrap_or(TURN);
        Ok(Some(Duration::from_nanos(u64::from(next - phase) * TURN_NS / u64::from(TURN) + EARLY_NS)))
    }

    /// From now on the ends of these are heard, whoever of them is not this process.
    fn watch(&mut self, all: &[Says]) {
        let others = || all.iter().filter(|says| !says.is_mine);
        self.others.retain(|known| others().any(|says| says.process == known.process));
        for says in others() {
            if self.others.iter().all(|known| known.process != says.process) {
                let (end, has_ended) = life::end_of(says.process);
                self.others.push(Other { process: says.process, end, has_ended });
            }
        }
    }

    /// Until somebody says something, this process begins to work, another ends, or the time is over.
    fn sleep(&mut self, time: Option<Duration>) {
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let ends = self.others.iter().filter_map(|other| other.end.as_ref()).map(AsFd::as_fd);
        let all: Vec<BorrowedFd<'_>> = [self.bell.as_fd(), self.woken.as_fd()].into_iter().chain(ends).collect();
        let mut fds: Vec<PollFd<'_>> = all.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        // Interrupted or refused, it looks again.
        let _ = poll(&mut fds, time.as_ref());
        let ended: Vec<bool> = fds[2..].iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        // An end is heard once.
        let mut ended = ended.into_iter();
        for other in self.others.iter_mut().filter(|other| other.end.is_some()) {
            if ended.next() == Some(true) {
                (other.end, other.has_ended) = (None, true);
            }
        }
        let mut bytes = [0_u8; 4096];
        while rustix::io::read(&self.bell, &mut bytes).is_ok_and(|read| read > 0) {}
        let _ = rustix::io::read(&self.woken, &mut bytes[..8]);
    }
}

/// How often workers were ready to run and did not.
#[derive(Debug)]
struct Pace {
    at_ns: u64,
    /// Of each thread, so far.
    waited: Vec<(u32, Duration)>,
    last: f64,
}

impl Pace {
    fn new() -> Pace {
        Pace { at_ns: 0, waited: Vec::new(), last: 0.0 }
    }

    /// The part of the last turn in which workers were set aside, the mean of all.
    fn set_aside(&mut self, threads: Vec<u32>, now_ns: u64) -> f64 {
        let passed = now_ns.saturating_sub(self.at_ns);
        if passed < TURN_NS / 2 {
            return self.last;
        }
        let waited: Vec<_> =
            threads.into_iter().filter_map(|thread| Some((thread, life::set_aside(thread)?))).collect();
        let more = waited.iter().filter_map(|(thread, now)| {
            let (_, before) = self.waited.iter().find(|(known, _)| known == thread)?;
            Some(now.saturating_sub(*before).as_secs_f64())
        });
        let sum: f64 = more.sum();
        self.last = sum / (passed as f64 * 1e-9) / waited.len().max(1) as f64;
        (self.at_ns, self.waited) = (now_ns, waited);
        self.last
    }
}
