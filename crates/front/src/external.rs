//! Subcommands that are programs of their own.
//!
//! `COMMAND NAME`, where NAME is none of the command's own, is the executable `COMMAND-NAME`: the one beside this
//! program, else the first on PATH. It takes this process over (exec), so arguments, standard streams, exit status and
//! signals are its own. Applications with heavy dependencies are such programs, so that who builds the command does not
//! compile them.

use crate::Front;
use multigrain_console::{Failure, definition, leave_stdout_as_it_was};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that the command knows.
pub(crate) struct Program {
    /// What follows the command's name in its file's name.
    pub(crate) name: &'static str,
    /// The package that builds it.
    pub(crate) package: &'static str,
    /// What it is for, in the list of commands.
    pub(crate) about: &'static str,
}

/// Whether a file can be executed.
fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Where programs are looked for: beside this one (beside the file itself where the command is a link), then on PATH.
fn folders() -> Vec<PathBuf> {
    let beside = env::current_exe().ok().and_then(|program| program.parent().map(Path::to_owned));
    let path = env::var_os("PATH").unwrap_or_default();
    beside.into_iter().chain(env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty())).collect()
}

/// Names of the programs in a folder, whose files' names begin with `prefix`.
fn names_in(folder: &Path, prefix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    // Few names begin so, and every file that is looked at takes some microseconds.
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_str()?.strip_prefix(prefix)?.to_owned();
        is_executable(&entry.path()).then_some(name)
    };
    entries.flatten().filter_map(name).collect()
}

/// The executable of a registered program.
pub(crate) fn built(front: &Front, name: &str) -> Result<PathBuf, Failure> {
    let unknown = || Failure::Request(format!("{name} is no program of {}", front.name));
    let program = front.programs.iter().find(|program| program.name == name).ok_or_else(unknown)?;
    front.find(OsStr::new(name)).ok_or_else(|| front.not_built(program))
}

impl Front {
    /// What the names of programs' files begin with.
    fn prefix(&self) -> String {
        format!("{}-", self.name)
    }

    /// The executable of a name.
    fn find(&self, name: &OsStr) -> Option<PathBuf> {
        if name.is_empty() || name.as_bytes().contains(&b'/') {
            return None;
        }
        let mut file = OsString::from(self.prefix());
        file.push(name);
        folders().iter().map(|folder| folder.join(&file)).find(|path| is_executable(path))
    }

    /// The registered programs that lie beside the command.
    fn beside(&self) -> impl Iterator<Item = (&Program, PathBuf)> {
        let folder = folders().into_iter().next().unwrap_or_default();
        let path = move |program: &Program| folder.join(self.prefix() + program.name);
        self.programs.iter().map(move |p| (p, path(p))).filter(|(_, path)| is_executable(path))
    }

    /// The command's own subcommands, unless these arguments (without the command's name) begin with one: also the registered
    /// programs that lie beside it in its list, and all others that can be run known by name, so that a misspelt one is answered
    /// with its neighbours.
    pub(crate) fn with_programs(&self, own: clap::Command, arguments: &[OsString]) -> clap::Command {
        let mut command = own;
        // Every folder on PATH would be read.
        if arguments.first().is_some_and(|name| name != "help" && command.find_subcommand(name).is_some()) {
            return command;
        }
        let beside: Vec<&str> = self.beside().map(|(program, _)| program.name).collect();
        for Program { name, about, .. } in &self.programs {
            command = command.subcommand(clap::Command::new(*name).about(*about).hide(!beside.contains(name)));
        }
        let mut others: Vec<String> = folders().iter().flat_map(|folder| names_in(folder, &self.prefix())).collect();
        others.sort_unstable();
        others.dedup();
        for name in others {
            if command.find_subcommand(&name).is_none() {
                command = command.subcommand(clap::Command::new(name).hide(true));
            }
        }
        command
    }

    /// The command's own subcommands, and the registered programs that lie beside it with all their options, as they tell
    /// them; one that tells nothing has its name only.
    pub(crate) fn with_definitions(&self, own: clap::Command) -> clap::Command {
        self.beside().fold(own, |command, (program, path)| {
            let asked = Command::new(path).arg(definition::ASK).stdin(Stdio::null()).output();
            let told = asked.ok().and_then(|told| String::from_utf8(told.stdout).ok());
            let found = told.and_then(|told| definition::understood(program.name, &told));
            command.subcommand(found.unwrap_or_else(|| clap::Command::new(program.name).about(program.about)))
        })
    }

    fn not_built(&self, program: &Program) -> Failure {
        let Program { name, package, .. } = program;
        Failure::Request(format!(
            "{name} is a program of its own, and there is no {}{name} beside this command or on PATH; build it: cargo build \
             --release -p {package}",
            self.prefix()
        ))
    }

    /// Becomes the program that the arguments (without the command's name) ask for; returns where they ask for a subcommand
    /// of the command's own, or for none that there is.
    ///
    /// # Errors
    /// The program cannot be started, or is a registered one that has not been built.
    pub(crate) fn take_over(&self, arguments: &[OsString]) -> Result<(), Failure> {
        let (name, rest) = match arguments {
            [help, name] if help == "help" => (name, vec![OsString::from("--help")]),
            [name, rest @ ..] => (name, rest.to_vec()),
            [] => return Ok(()),
        };
        if name == "help" || name.as_bytes().starts_with(b"-") || self.own().find_subcommand(name).is_some() {
            return Ok(());
        }
        let Some(path) = self.find(name) else {
            return match self.programs.iter().find(|program| name == program.name) {
                None => Ok(()),
                Some(program) => Err(self.not_built(program)),
            };
        };
        if multigrain::ranks::joined().is_some() {
            return crate::run::alone();
        }
        leave_stdout_as_it_was();
        // Returns only where the program could not be started.
        let refused = Command::new(&path).args(rest).exec();
        Err(Failure::Run(format!("cannot start {}: {refused}; build it again", path.display())))
    }
}
