//! Writing what was asked for: standard output and short files.

use crate::failure::Failure;
use multigrain::whole;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the process began without standard output.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Looks before `main`: what is closed then is opened by the runtime of Rust as `/dev/null`, where all that is written is lost
/// without an error.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: asks about a descriptor's flags, and touches no memory.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        IS_CLOSED.store(flags < 0, Ordering::Relaxed);
    }
    look
};

/// Whether there is a standard output; whoever began the process may have closed it (`>&-`).
pub fn has_stdout() -> bool {
    !IS_CLOSED.load(Ordering::Relaxed)
}

/// Closes standard output again where the process began without it, so that a program that takes the process over sees it.
pub fn leave_stdout_as_it_was() {
    if !has_stdout() {
        // SAFETY: what is open there now is what the runtime put there; whoever writes to it is told by an error.
        unsafe { libc::close(libc::STDOUT_FILENO) };
    }
}

/// Writes to standard output. A reader that has gone (`| head`) is no fault of the run.
pub fn print(text: &str) -> Result<(), Failure> {
    if crate::failure::is_silent() {
        return Ok(());
    }
    if !has_stdout() {
        return Err(Failure::Run("cannot write to standard output: it is closed".to_owned()));
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(e) => Err(Failure::Run(format!("cannot write to standard output: {e}"))),
    }
}

/// Writes a short file, whole or not at all.
pub fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    whole::check_target(path)?;
    let refused = |e| Failure::Run(format!("cannot write {}: {e}; free space, or choose another file", path.display()));
    whole::write(path, |out| out.write_all(text.as_bytes())).map_err(refused)
}
