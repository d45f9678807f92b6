//! How other processes and own threads fare.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Whether a process is stopped, as by SIGSTOP.
pub(super) fn is_stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    matches!(state(&stat), Some('T' | 't'))
}

/// The third field of a `stat`; the second, the name in brackets, may hold anything.
fn state(stat: &str) -> Option<char> {
    stat.get(stat.rfind(')')? + 1..)?.trim_start().chars().next()
}

/// Something that can be read once the process has ended, none if the system has no such thing; and whether it has ended already.
pub(super) fn end_of(process: u32) -> (Option<OwnedFd>, bool) {
    let Some(process) = Pid::from_raw(process.cast_signed()) else { return (None, false) };
    match pidfd_open(process, PidfdFlags::empty()) {
        Ok(end) => (Some(end), false),
        Err(error) => (None, error == Errno::SRCH),
    }
}

/// How long a thread of this process was ready to run, and did not, so far.
pub(super) fn set_aside(thread: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        assert_eq!((state("12 (a) R (b) T 1 2"), state("12 (a"), state("12 (a)")), (Some('T'), None, None));
        assert!(!is_stopped(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(end_of(child.id()).1 && !end_of(std::process::id()).1, "who is gone, and who is not");
    }
}
