//! Where the result goes: a file, a pipe or a device, looked at before any work.

use crate::error::Error;
use crate::pipeline::Output;
use multigrain::whole::{self, WholeFile};
use multigrain_console::Interrupt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// Where the result is to go.
pub(super) enum Destination<'a> {
    /// A file that appears whole or not at all.
    Whole(&'a Path),
    /// A pipe, a terminal or a device.
    Stream(File, String),
}

/// Looks at the output, before any work; nothing is written.
///
/// # Errors
/// Nothing can be written there.
pub(super) fn destination(path: Option<&Path>) -> Result<Destination<'_>, Error> {
    let Some(path) = path else {
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        let name = "standard output".to_owned();
        return match stdout {
            Ok(stdout) => Ok(Destination::Stream(stdout.into(), name)),
            Err(source) => Err(Error::Write { name, source }),
        };
    };
    let is_stream = std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    if is_stream {
        let name = path.display().to_string();
        let file = File::options().write(true).open(path);
        let file = file.map_err(|e| Error::Request(format!("cannot write {name}: {e}; name a file")))?;
        return Ok(Destination::Stream(file, name));
    }
    whole::check_target(path).map_err(|e| Error::Request(e.to_string()))?;
    Ok(Destination::Whole(path))
}

impl Destination<'_> {
    /// Says to what is to be seen to when a signal comes.
    pub(super) fn told(&self, interrupt: &Interrupt) {
        match self {
            Destination::Whole(_) => interrupt.begin(),
            Destination::Stream(..) => interrupt.begin_stream(),
        }
    }

    /// Whether a person would see what is written.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Destination::Stream(file, _) if file.is_terminal())
    }

    /// Begins the output.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn begin(self) -> Result<Begun, Error> {
        match self {
            Destination::Stream(file, name) => Ok(Begun { name, to: To::Stream(file) }),
            Destination::Whole(path) => {
                let name = path.display().to_string();
                match WholeFile::create(path) {
                    Ok(file) => Ok(Begun { name, to: To::Whole(file) }),
                    Err(source) => Err(Error::Write { name, source }),
                }
            }
        }
    }
}

enum To {
    Whole(WholeFile),
    Stream(File),
}

/// An output that is being written. Without [`finish`](Self::finish), a file of it does not stay.
pub(super) struct Begun {
    pub(super) name: String,
    to: To,
}

impl Begun {
    /// Writes in order, from the beginning.
    pub(super) fn stream(&mut self) -> &mut dyn Write {
        match &mut self.to {
            To::Whole(file) => file,
            To::Stream(file) => file,
        }
    }

    /// For content behind the `start` bytes that were written in order: at any place, where that is possible.
    pub(super) fn output(&mut self, start: u64) -> Output<'_> {
        match &mut self.to {
            To::Whole(file) => Output::File(file.file(), start),
            To::Stream(file) => Output::Stream(file),
        }
    }

    /// Gives a file its name.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self.to {
            To::Whole(file) => file.publish().map_err(|source| Error::Write { name: self.name, source }),
            To::Stream(_) => Ok(()),
        }
    }
}
