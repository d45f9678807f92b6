//! The ranks that execute runs together, over MPI: one thread carries their messages, and is the only one that calls it.
//!
//! What is to be sent comes by a channel; in between the thread looks for what has come, and pauses longer the longer nothing has:
//! so it makes progress while workers compute, and takes next to nothing of their processors. It also sees that ranks are
//! there at all ([`Ranks::beat`]), and ends a run by force that does not end by itself.

use crate::comm::Letter;
use crate::cores::share;
use crate::start::abort;
use crate::{Comm, Mpi, MpiError, Threads, ffi};
use multigrain::ranks::{Link, Ranks};
use multigrain::rooms::machine::detect::cores;
use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The first pause, and the longest: how late a message may be noticed.
const PAUSES: [Duration; 2] = [Duration::from_micros(10), Duration::from_micros(200)];
/// How often it says that this rank is there.
const BEAT: Duration = Duration::from_millis(100);
/// So long after a rank has failed all others have ended by themselves, or are ended.
const END: Duration = Duration::from_millis(3500);
/// Bytes of a node's name, and of the list of its cores, as ranks tell them.
const NAME_BYTES: usize = 256;
const CORES_BYTES: usize = 4096;

/// What the thread that calls MPI is named until all ranks are there, and from then on: so `top -H` and `/proc` tell where a start hangs.
const STARTING: &str = "mpi starting";
const STARTED: &CStr = c"mpi";

enum Order {
    Send(usize, Vec<u8>),
    /// Everybody is done.
    Close,
}

struct Outbox(Sender<Order>);

impl Link for Outbox {
    fn send(&self, to: usize, message: Vec<u8>) {
        // Where nobody carries it any more, all have said that they are done.
        let _ = self.0.send(Order::Send(to, message));
    }
}

/// This process as a rank of what `mpirun` has started.
pub struct Post {
    ranks: Arc<Ranks>,
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

/// Whether a launcher of MPI has started this process.
pub fn is_launched() -> bool {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"].iter().any(|name| std::env::var_os(name).is_some())
}

/// What a rank learns of the others at the beginning.
struct Found {
    /// The processors of this rank, where those of its node share all.
    share: Option<Vec<usize>>,
    orders: Sender<Order>,
    ranks: Arc<Ranks>,
}

impl Post {
    /// Starts MPI in a thread of its own. Binds this thread, and those that it starts from here on, to a share of the node's cores
    /// where the launcher has not bound the ranks of a node to different ones. Collective.
    ///
    /// # Errors
    /// MPI refuses, or the system refuses the thread.
    pub fn start() -> Result<Post, MpiError> {
        let (tell, told) = channel();
        let cpus = cores().map(|cores| cores.cpus).unwrap_or_default();
        let thread = std::thread::Builder::new().name(STARTING.into()).spawn(move || carry(&cpus, &tell));
        let refused = |text: String| MpiError::Refused { what: "the thread that calls MPI cannot be had", text };
        let thread = thread.map_err(|error| refused(error.to_string()))?;
        let found = told.recv().map_err(|_| refused("it has ended".to_owned()))??;
        if let Some(share) = &found.share {
            let mut mask = rustix::thread::CpuSet::new();
            share.iter().for_each(|&cpu| mask.set(cpu));
            // Where the system refuses it, ranks share their cores.
            let _ = rustix::thread::sched_setaffinity(None, &mask);
        }
        Ok(Post { ranks: found.ranks, orders: found.orders, thread })
    }

    /// All ranks.
    pub fn ranks(&self) -> &Arc<Ranks> {
        &self.ranks
    }

    /// This rank is done, with an exit status; waits until all are, and ends MPI. Gives the exit status of all. Where a rank is
    /// lost, MPI could not be ended in order: then the process ends here.
    pub fn finish(self, status: u8) -> u8 {
        // A launcher asks the others to end as soon as one has with a status that is not 0.
        // SAFETY: no arguments; what signals do from here on is known to all threads.
        unsafe { ffi::mg_deaf() };
        let status = self.ranks.bye(status);
        if self.ranks.ended().is_some_and(|ended| ended.lost) {
            std::process::exit(i32::from(status));
        }
        let _ = self.orders.send(Order::Close);
        let _ = self.thread.join();
        status
    }
}

/// Text in so many bytes.
fn padded(text: &str, bytes: usize) -> Vec<u8> {
    let mut padded = text.as_bytes().to_vec();
    padded.resize(bytes, 0);
    padded
}

/// Everybody's text of so many bytes.
fn texts(world: &Comm<'_>, own: &str, bytes: usize) -> Result<Vec<String>, MpiError> {
    let mut all = vec![0; bytes * world.size() as usize];
    all[bytes * world.rank() as usize..][..bytes].copy_from_slice(&padded(own, bytes));
    world.allgather(&mut all)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    Ok(all.chunks(bytes).map(text).collect())
}

/// What the thread does, from the start of MPI to its end.
fn carry(cpus: &[usize], tell: &Sender<Result<Found, MpiError>>) {
    let started = Mpi::start(Threads::Funneled);
    let mpi = match started {
        Ok(mpi) => mpi,
        Err(error) => return drop(tell.send(Err(error))),
    };
    match begun(&mpi, cpus) {
        Ok((world, found, orders)) => {
            let ranks = Arc::clone(&found.ranks);
            // A name is for people: without it all goes on.
            let _ = rustix::thread::set_name(STARTED);
            let _ = tell.send(Ok(found));
            serve(&world, &ranks, &orders);
        }
        Err(error) => drop(tell.send(Err(error))),
    }
}

fn begun<'mpi>(mpi: &'mpi Mpi, cpus: &[usize]) -> Result<(Comm<'mpi>, Found, Receiver<Order>), MpiError> {
    let world = mpi.world()?;
    if mpi.threads() < Threads::Funneled {
        let text = "it was built without threads; use one that gives MPI_THREAD_FUNNELED".to_owned();
        return Err(MpiError::Refused { what: "MPI cannot be used beside other threads", text });
    }
    let nodes = texts(&world, &mpi.node_name(), NAME_BYTES)?;
    let list: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    let lists = texts(&world, &list.join(" ").chars().take(CORES_BYTES).collect::<String>(), CORES_BYTES)?;
    let rank = world.rank() as usize;
    let alike: Vec<usize> =
        (0..nodes.len()).filter(|&other| nodes[other] == nodes[rank] && lists[other] == lists[rank]).collect();
    let number = alike.iter().position(|&other| other == rank).unwrap_or(0);
    let share = (alike.len() > 1 && !cpus.is_empty()).then(|| share(cpus, number, alike.len()));
    let (orders, inbox) = channel();
    let ranks = Ranks::new(rank, nodes, Box::new(Outbox(orders.clone())));
    Ok((world, Found { share, orders, ranks }, inbox))
}

/// Carries messages until all ranks are done.
fn serve(world: &Comm<'_>, ranks: &Ranks, orders: &Receiver<Order>) {
    let mut under_way: VecDeque<Letter> = VecDeque::new();
    let (mut pause, mut beaten) = (PAUSES[0], Instant::now());
    let mut closing = false;
    ranks.beat();
    while !closing || !under_way.is_empty() {
        let mut idle = true;
        let mut next = orders.try_recv();
        loop {
            match next {
                Ok(Order::Send(to, message)) => {
                    idle = false;
                    under_way.push_back(world.post(to as u32, message));
                }
                Ok(Order::Close) | Err(TryRecvError::Disconnected) => {
                    closing = true;
                    break;
                }
                Err(TryRecvError::Empty) => break,
            }
            next = orders.try_recv();
        }
        under_way.retain(|letter| !world.is_sent(letter));
        while let Some((from, message)) = world.receive_any() {
            idle = false;
            ranks.deliver(from as usize, &message);
        }
        if beaten.elapsed() >= BEAT {
            beaten = Instant::now();
            ranks.beat();
            end_by_force(ranks);
        }
        if !idle || closing {
            pause = PAUSES[0];
            continue;
        }
        match orders.recv_timeout(pause) {
            Ok(Order::Send(to, message)) => under_way.push_back(world.post(to as u32, message)),
            Ok(Order::Close) | Err(RecvTimeoutError::Disconnected) => closing = true,
            Err(RecvTimeoutError::Timeout) => pause = (2 * pause).min(PAUSES[1]),
        }
    }
}

/// Ends all ranks where some has failed and this one has not ended by itself for long.
fn end_by_force(ranks: &Ranks) {
    // Who speaks is first: the others end with it.
    let patience = if ranks.speaks() { END } else { END + BEAT * 5 };
    let Some(ended) = ranks.ended().filter(|_| ranks.ended_for().is_some_and(|since| since > patience)) else { return };
    let line = format!("multigrain: {}: {}; the run ends on all ranks\n", ranks.name(ended.rank), ended.text);
    abort(ended.status.into(), if ranks.speaks() { &line } else { "" })
}
