//! Runs of contexts.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use thiserror::Error;

use super::did::Did;
use super::here::within;
use super::line::Line;
use super::sharing::{Contexts, Sharing, Turn};
use crate::bind;
use crate::panic::{catches_panics, panic_message};

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Outcome<R> {
    /// The results, in the order of the contexts.
    pub results: Vec<R>,
    /// For each context what became of it.
    pub did: Vec<Did>,
}

/// Why a run gave no results.
#[derive(Debug, Error)]
pub enum RunError {
    /// Nobody could ever go on.
    #[error("contexts need one processor at least; none was given")]
    Processors,
    /// The system refused a thread. No context has begun.
    #[error("the thread of context {context} could not be started: {source}; ask for fewer contexts")]
    Thread {
        /// Which.
        context: usize,
        /// What the system said.
        source: io::Error,
    },
    /// A context panicked: the first, if several did. The others went on to their ends.
    #[error("context {context} panicked: {message}")]
    Panic {
        /// Which.
        context: usize,
        /// The text of the panic.
        message: String,
    },
}

/// Executes bodies as contexts, in the order in which they ask for processors; returns when all have ended.
///
/// # Errors
/// [`RunError`].
pub fn run<R, F>(shared: &Contexts, bodies: Vec<F>) -> Result<Outcome<R>, RunError>
where
    R: Send,
    F: FnOnce() -> R + Send,
{
    if shared.processors == 0 {
        return Err(RunError::Processors);
    }
    let allowed = bind::allowed();
    let cpus = allowed.get(..shared.processors).unwrap_or_default();
    let (ticks, turn) = match (shared.turn, shared.sharing) {
        (_, Sharing::Fifo | Sharing::System) => (1, None),
        (Turn::Looks(looks), _) => (looks, Some(shared.turn)),
        (Turn::Clock(_) | Turn::Timer(_), _) => (1, Some(shared.turn)),
    };
    // Where the system chooses who runs it chooses among all of these processors.
    let chooses = matches!(shared.sharing, Sharing::Slices | Sharing::System);
    let processors = if shared.sharing == Sharing::System { bodies.len() } else { shared.processors };
    let line = Line::new(processors, bodies.len(), shared.sharing, ticks, if chooses { &[] } else { cpus });
    let line = &line;
    let ended = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(bodies.len());
        for (context, body) in bodies.into_iter().enumerate() {
            let thread = std::thread::Builder::new().name(format!("context-{context}"));
            let started = thread.spawn_scoped(scope, move || {
                catches_panics();
                if chooses && !cpus.is_empty() {
                    bind::among(cpus);
                }
                line.is_here(context, bind::thread());
                within(line, context, turn, || catch_unwind(AssertUnwindSafe(body)))
            });
            match started {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    line.call_off();
                    return Err(RunError::Thread { context, source });
                }
            }
        }
        line.begin();
        Ok(threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>())
    })?;
    let mut outcome = Outcome { results: Vec::with_capacity(ended.len()), did: Vec::with_capacity(ended.len()) };
    for (context, ended) in ended.into_iter().enumerate() {
        let panicked = |thrown| RunError::Panic { context, message: panic_message(thrown) };
        let Some((result, did)) = ended.map_err(panicked)? else { unreachable!("a run that began was not called off") };
        outcome.results.push(result.map_err(panicked)?);
        outcome.did.push(did);
    }
    Ok(outcome)
}
