//! The front room: a command of one's own, with everything that can be done with an application.
//!
//! In come the types of applications (arguments that make a job, [`Application`]), words that were typed, files and signals;
//! out go text or one JSON object on standard output, one line on standard error when something goes wrong, and an exit status:
//! 0 done, 1 the run failed, 2 the request is wrong, 3 the check could neither show the result right nor wrong. This room only translates between people and the facade: it knows no
//! application by name, never decides how anything is computed, and no panic leaves it.
//!
//! A whole program, in which `Double` has `#[derive(clap::Args)]` and is an [`Application`] (`examples/own-command` in the
//! repository has one from end to end):
//!
//! ```no_run
//! # use multigrain::{Error, Runtime, app::{AppJob, Application}};
//! # #[derive(clap::Args)]
//! # struct Double {}
//! # impl Application for Double {
//! #     const NAME: &'static str = "double";
//! #     fn prepare(&self, _: &Runtime) -> Result<AppJob, Error> { Err(Error::Request("nothing to double".into())) }
//! # }
//! use multigrain_front::Front;
//!
//! fn main() -> std::process::ExitCode {
//!     Front::new("own", env!("CARGO_PKG_VERSION"), "What my group computes").application::<Double>().main()
//! }
//! ```
//!
//! It has the commands `machine`, `run`, `plan`, `sim` and `trace` with all their options, `completions` and `man`; any other
//! word is a program `own-WORD`, which is looked for beside it and on PATH, and takes over.

mod advice;
mod application;
mod args;
mod external;
mod json;
mod leaves;
mod loops;
mod machine;
mod pages;
mod plan;
mod report;
mod run;
mod sim;
mod strands;
mod trace;

pub use application::Request;
pub use run::fresh_seed;

use application::{Entry, with_negative_numbers};
use args::{MachineArgs, PlanArgs, RunArgs, SimArgs, TraceArgs};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use external::Program;
use loops::LoopsArgs;
use multigrain::app::Application;
use multigrain_console::Failure;
use pages::{CompletionsArgs, ManArgs};
use std::path::PathBuf;
use std::process::ExitCode;
use strands::StrandsArgs;

/// A command: its name, its applications, and the programs that it finds.
pub struct Front {
    name: &'static str,
    version: &'static str,
    about: &'static str,
    applications: Vec<Entry>,
    programs: Vec<Program>,
}

/// What is asked for.
enum Asked {
    Machine(MachineArgs),
    Run(RunArgs, Request),
    Plan(PlanArgs, Request),
    Sim(SimArgs, Request),
    Loops(SimArgs, LoopsArgs),
    Strands(SimArgs, StrandsArgs),
    Trace(TraceArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

impl Asked {
    /// Whether this can be done, on all ranks where there are several.
    fn is_for_ranks(&self) -> bool {
        matches!(self, Asked::Run(..)) || multigrain::ranks::joined().is_none_or(|r| r.count() == 1)
    }
}

impl Front {
    /// A command without applications. Its name is what is typed, the first word of its messages, and what the names of its
    /// programs begin with.
    pub const fn new(name: &'static str, version: &'static str, about: &'static str) -> Front {
        Front { name, version, about, applications: Vec::new(), programs: Vec::new() }
    }

    /// With an application: its name is [`Application::NAME`], its line in the help the first of the type's description.
    pub fn application<A: Application + Args + Send + Sync + 'static>(mut self) -> Front {
        self.applications.push(Entry::of::<A>());
        self
    }

    /// With a program of its own, the executable `COMMAND-name` that `package` builds. Programs that nobody has registered are
    /// found as well. One that is registered stands in the list of commands where it lies beside the command; for completions
    /// and manual pages it is asked for its options (by one argument, [`multigrain_console::definition::ASK`], which
    /// [`multigrain_console::program`] answers; it must end, whatever it makes of it); and where it is not found, how to build
    /// it is told.
    pub fn program(mut self, name: &'static str, package: &'static str, about: &'static str) -> Front {
        self.programs.push(Program { name, package, about });
        self
    }

    /// Does what the arguments of this process ask for.
    pub fn main(self) -> ExitCode {
        ExitCode::from(self.status())
    }

    /// The same, with the exit status as a number, for whoever has something to do before the process ends.
    pub fn status(self) -> u8 {
        // Before anything that a program which takes over would inherit.
        let arguments: Vec<_> = std::env::args_os().collect();
        multigrain_console::called(self.name);
        if let Err(failure) = self.each_name_once() {
            return failure.told();
        }
        if let Err(failure) = self.take_over(arguments.get(1..).unwrap_or_default()) {
            return failure.told();
        }
        let begun = std::time::Instant::now();
        multigrain_console::begin();
        let programs = self.with_programs(self.own(), arguments.get(1..).unwrap_or_default());
        let parsed = programs.try_get_matches_from(arguments);
        let asked = match parsed.and_then(|found| self.asked(&found)) {
            Ok(asked) => asked,
            Err(usage) => return multigrain_console::usage(&usage),
        };
        multigrain_console::finished(|| match &asked {
            asked if !asked.is_for_ranks() => run::alone(),
            Asked::Machine(args) => machine::machine(&self, args),
            Asked::Run(args, request) => advice::to_plan(run::run(args, request), &args.common),
            Asked::Plan(args, request) => advice::followed(begun, plan::plan(args, request), &args.common, request),
            Asked::Sim(args, request) => advice::followed(begun, sim::sim(args, request), &args.common, request),
            Asked::Loops(args, loops) => loops::loops(args, loops),
            Asked::Strands(args, of) => strands::strands(args, of),
            Asked::Trace(args) => trace::trace(args),
            Asked::Completions(args) => pages::completions(&self, args),
            Asked::Man(args) => pages::man(&self, args),
        })
    }

    /// An application with arguments as they would be typed, words apart by spaces.
    ///
    /// # Errors
    /// There is no such application, or it refuses the arguments.
    pub fn typed(&self, application: &str, arguments: &str) -> Result<Request, Failure> {
        self.each_name_once()?;
        let refused = |why: &dyn std::fmt::Display| Failure::Request(format!("{application} {arguments}: {why}"));
        let found = self.applications.iter().find(|entry| entry.name == application);
        let entry = found.ok_or_else(|| refused(&"there is no application of this name"))?;
        let command = (entry.command)().no_binary_name(true);
        let parsed = command.try_get_matches_from(arguments.split_whitespace());
        parsed.and_then(|found| (entry.request)(&found)).map_err(|e| refused(&e))
    }

    /// The executable of a program that was registered.
    ///
    /// # Errors
    /// It was not, or it has not been built.
    pub fn built(&self, program: &str) -> Result<PathBuf, Failure> {
        external::built(self, program)
    }

    /// Refuses what would make a name mean two things: two applications, two programs, a program and a subcommand.
    fn each_name_once(&self) -> Result<(), Failure> {
        let once = |kind: &str, names: &[&str]| {
            let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
            twice.map_or(Ok(()), |(_, name)| {
                Err(Failure::Request(format!(
                    "{} registers two {kind} by the name {name}: give one of them another name",
                    self.name
                )))
            })
        };
        let own = self.own();
        let commands = own.get_subcommands().map(Command::get_name).chain(["help"]);
        once("applications", &self.applications.iter().map(|entry| entry.name).collect::<Vec<_>>())?;
        once("commands", &commands.chain(self.programs.iter().map(|program| program.name)).collect::<Vec<_>>())
    }

    /// The command's own subcommands.
    fn own(&self) -> Command {
        let with_applications = |command: Command| {
            let command = command.subcommand_required(true).arg_required_else_help(true);
            let command = command.subcommand_value_name("APP").subcommand_help_heading("Applications");
            command.subcommands(self.applications.iter().map(|entry| (entry.command)()))
        };
        let command = Command::new(self.name)
            .version(self.version)
            .about(self.about)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand(MachineArgs::augment_args(Command::new("machine")))
            .subcommand(with_applications(RunArgs::augment_args(Command::new("run"))))
            .subcommand(with_applications(PlanArgs::augment_args(Command::new("plan"))))
            .subcommand(
                with_applications(SimArgs::augment_args(Command::new("sim")))
                    .subcommand(LoopsArgs::augment_args(Command::new(loops::NAME)))
                    .subcommand(StrandsArgs::augment_args(Command::new(strands::NAME))),
            )
            .subcommand(TraceArgs::augment_args(Command::new("trace")))
            .subcommand(CompletionsArgs::augment_args(Command::new("completions")))
            .subcommand(ManArgs::augment_args(Command::new("man")));
        with_negative_numbers(command)
    }

    fn asked(&self, found: &ArgMatches) -> Result<Asked, clap::Error> {
        Ok(match found.subcommand() {
            Some(("machine", found)) => Asked::Machine(MachineArgs::from_arg_matches(found)?),
            Some(("run", found)) => Asked::Run(RunArgs::from_arg_matches(found)?, self.request(found)?),
            Some(("plan", found)) => Asked::Plan(PlanArgs::from_arg_matches(found)?, self.request(found)?),
            Some(("sim", found)) if found.subcommand_name() == Some(loops::NAME) => {
                let of = found.subcommand_matches(loops::NAME).unwrap_or(found);
                Asked::Loops(SimArgs::from_arg_matches(found)?, LoopsArgs::from_arg_matches(of)?)
            }
            Some(("sim", found)) if found.subcommand_name() == Some(strands::NAME) => {
                let of = found.subcommand_matches(strands::NAME).unwrap_or(found);
                Asked::Strands(SimArgs::from_arg_matches(found)?, StrandsArgs::from_arg_matches(of)?)
            }
            Some(("sim", found)) => Asked::Sim(SimArgs::from_arg_matches(found)?, self.request(found)?),
            Some(("trace", found)) => Asked::Trace(TraceArgs::from_arg_matches(found)?),
            Some(("completions", found)) => Asked::Completions(CompletionsArgs::from_arg_matches(found)?),
            Some(("man", found)) => Asked::Man(ManArgs::from_arg_matches(found)?),
            _ => return Err(self.own().error(clap::error::ErrorKind::InvalidSubcommand, "no such command")),
        })
    }

    fn request(&self, found: &ArgMatches) -> Result<Request, clap::Error> {
        let named = found.subcommand().and_then(|(name, found)| {
            let entry = self.applications.iter().find(|entry| entry.name == name)?;
            Some((entry.request)(found))
        });
        let missing = || self.own().error(clap::error::ErrorKind::MissingSubcommand, "no application is named");
        named.unwrap_or_else(|| Err(missing()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use multigrain::app::AppJob;
    use multigrain::{Error, Runtime};

    #[derive(clap::Args)]
    struct Double {}

    impl Application for Double {
        const NAME: &'static str = "double";
        fn prepare(&self, _: &Runtime) -> Result<AppJob, Error> {
            Err(Error::Request("nothing to double".into()))
        }
    }

    #[test]
    fn a_name_that_means_two_things_is_refused() {
        let front = || Front::new("own", "1", "Tests").application::<Double>();
        let refused = |front: Front| match front.typed("double", "") {
            Err(Failure::Request(why)) => Some(why),
            _ => None,
        };
        let program = |front: Front, name| front.program(name, "own-package", "A program");
        assert_eq!(refused(front()), None);
        assert_eq!(refused(program(front(), "double")), None, "it is typed where no application is");
        for (front, what) in [
            (front().application::<Double>(), "two applications by the name double"),
            (program(program(front(), "draw"), "draw"), "two commands by the name draw"),
            (program(front(), "run"), "two commands by the name run"),
        ] {
            let found = refused(front).unwrap_or_default();
            assert!(found.contains(what) && found.contains("another name"), "{found}");
        }
    }
}
