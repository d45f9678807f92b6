//! Advice that was followed before it is given: where there is too little memory, the refusal names so much that the same
//! request was seen to be planned with.
//!
//! One refusal knows what it met: the block that did not fit, the tables that were too large. What comes after that is known
//! when the request is planned with what would have been enough for it, and so on.

use crate::application::Request;
use crate::args::Common;
use multigrain::rooms::plan::Enough;
use multigrain::{Error, Machine, Options, Runtime, main_memory};
use multigrain_console::Failure;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// So long after the beginning the advice is followed: people are told within a second that what they ask for does not fit.
const FOLLOWED_UNTIL: Duration = Duration::from_millis(800);

/// Of a refusal for want of a memory that is not the one whose capacity `--memory` gives: where that stands.
fn stands_elsewhere(error: &mut Error, common: &Common) -> Option<String> {
    let machine = match &common.machine {
        Some(name) => Machine::named(name),
        None => Machine::detect(Path::new(".")),
    };
    let main = &main_memory(machine.as_ref().ok()?).name;
    let memory = error.enough()?.0.to_owned();
    (memory != *main).then(|| format!("{error}, in a file of the machine (--memory is how much {main} holds)"))
}

/// What a run has ended with. Planning with more than it was given would take more than that, so of a refusal for want of
/// memory it is told who can.
pub(crate) fn to_plan(ended: Result<(), Failure>, common: &Common) -> Result<(), Failure> {
    let Err(Failure::Facade(mut error)) = ended else { return ended };
    if let Some(told) = stands_elsewhere(&mut error, common) {
        return Err(Failure::Request(told));
    }
    match error.enough() {
        Some(_) => Err(Failure::Request(format!("{error}; the command plan looks for what is enough"))),
        None => Err(Failure::Facade(error)),
    }
}

/// What a plan that was asked for at a moment has ended with; of a refusal for want of memory, with as much as was enough, or, where that is not found in
/// time, with the most that was found to be needed, and said so.
pub(crate) fn followed(
    begun: Instant,
    ended: Result<(), Failure>,
    common: &Common,
    request: &Request,
) -> Result<(), Failure> {
    let Err(Failure::Facade(mut error)) = ended else { return ended };
    if let Some(told) = stands_elsewhere(&mut error, common) {
        return Err(Failure::Request(told));
    }
    let mut then = None;
    if let Some((memory, enough)) = error.enough() {
        let (common, request, memory, first) = (common.clone(), request.clone(), memory.to_owned(), *enough);
        let (sender, receiver) = mpsc::channel();
        // It ends with the process, which does not wait for it.
        let follow = move || follow(&common, &request, &memory, first, &sender);
        let until = begun + FOLLOWED_UNTIL;
        if std::thread::Builder::new().spawn(follow).is_ok() {
            let ended = loop {
                match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(Followed::More(more)) => *enough = more,
                    Ok(Followed::Otherwise(why)) => then = Some(why),
                    Err(ended) => break ended,
                }
            };
            if ended == RecvTimeoutError::Timeout {
                return Err(Failure::Request(format!("{error}; perhaps more: what is enough was not found in time")));
            }
        }
    }
    Err(match then {
        Some(why) => Failure::Request(format!("{error}; and even then {why}")),
        None => Failure::Facade(error),
    })
}

/// What following the advice has met.
enum Followed {
    /// More of the same memory is needed.
    More(Enough),
    /// It is refused for another reason.
    Otherwise(String),
}

/// Plans with so much of a memory, then with what is asked for then, until nothing more is.
fn follow(common: &Common, request: &Request, memory: &str, first: Enough, found: &Sender<Followed>) {
    let mut given = first;
    loop {
        let Err(mut error) = planned(common, request, given.bytes()) else { return };
        given = match error.enough() {
            Some((of, more)) if of == memory && more.bytes() > given.bytes() => *more,
            // Advice that was followed and is given again was too little.
            Some((of, _)) if of == memory => Enough::from_need(given.bytes()),
            _ => {
                let why = stands_elsewhere(&mut error, common).unwrap_or_else(|| error.to_string());
                // Nobody is there any more, or has heard it.
                let _ = found.send(Followed::Otherwise(why));
                return;
            }
        };
        if found.send(Followed::More(given)).is_err() {
            return;
        }
    }
}

fn planned(common: &Common, request: &Request, memory_bytes: u64) -> Result<(), Error> {
    let Ok(options) = common.options() else { return Ok(()) };
    let runtime = Runtime::new(Options { memory_bytes: Some(memory_bytes), only_plans: true, ..options })?;
    runtime.fits(&request.prepare(&runtime)?.job)
}
