//! Applications by their names, and the words that were typed behind them.

use clap::{ArgMatches, Command};
use multigrain::app::{AppJob, Application};
use multigrain::{Error, Runtime};
use std::sync::Arc;

/// An application that can be named.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// Jobs by which its leaves are measured, as they would be typed behind its name.
    pub(crate) leaf_jobs: &'static [&'static str],
    /// Its arguments.
    pub(crate) command: fn() -> Command,
    pub(crate) request: fn(&ArgMatches) -> Result<Request, clap::Error>,
}

impl Entry {
    pub(crate) fn of<A: Application + clap::Args + Send + Sync + 'static>() -> Entry {
        Entry {
            name: A::NAME,
            leaf_jobs: A::LEAF_JOBS,
            command: || with_negative_numbers(A::augment_args(Command::new(A::NAME))),
            request: |found| {
                let args = A::from_arg_matches(found)?;
                Ok(Request(Arc::new(move |runtime| args.prepare(runtime))))
            },
        }
    }
}

/// Options take what looks like a negative number as their value, so that whoever needs a number says what is wrong with it.
pub(crate) fn with_negative_numbers(command: Command) -> Command {
    let is_option = |arg: &clap::Arg| !arg.is_positional() && arg.get_action().takes_values();
    let command = command.mut_args(|arg| if is_option(&arg) { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(with_negative_numbers)
}

/// An application with the arguments that were typed.
#[derive(Clone)]
pub struct Request(Arc<Prepare>);

type Prepare = dyn Fn(&Runtime) -> Result<AppJob, Error> + Send + Sync;

impl Request {
    /// Looks at the inputs and makes the job. Nothing is written.
    ///
    /// # Errors
    /// Those of [`Application::prepare`].
    pub fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        (self.0)(runtime)
    }
}
