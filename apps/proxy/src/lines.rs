//! Lines of the log: whoever reads them and stops keeps nobody waiting, and those about whom anybody can make come and go are some at once,
//! then few, so that nobody fills the disk.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A line is no longer than what a pipe takes at once where it takes something (PIPE_BUF is 4096, with the program's name).
const BYTES_MAX: usize = 4000;

/// Says something on standard error, or leaves it out where whoever reads that does not: workers wait for nobody.
pub fn say(text: &str) {
    // One at a time: where one line has room, two may have none.
    static LEFT_OUT: Mutex<u64> = Mutex::new(0);
    let mut left_out = LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    if *left_out > 0 && has_room() {
        multigrain_console::say(&format!("{left_out} lines were left out here: nobody read them"));
        *left_out = 0;
    }
    match has_room() {
        true => {
            let end = (0..=text.len().min(BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end));
            multigrain_console::say(&text[..end.unwrap_or(0)]);
        }
        false => *left_out += 1,
    }
}

/// Whether standard error takes something at once; where it is gone, it does nothing.
fn has_room() -> bool {
    let (errors, at_once) = (std::io::stderr(), Timespec { tv_sec: 0, tv_nsec: 0 });
    poll(&mut [PollFd::new(&errors, PollFlags::OUT)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Lines at once, and how often there is another one.
const LINES_MAX: u32 = 50;
const EVERY: Duration = Duration::from_secs(6);

/// What may be said.
#[derive(Debug)]
pub struct Lines {
    used: u32,
    since: Instant,
    left_out: u64,
}

impl Lines {
    /// Nothing was said.
    pub fn new(now: Instant) -> Lines {
        Lines { used: 0, since: now, left_out: 0 }
    }

    /// Says something, unless too much was said.
    pub fn tell(&mut self, text: &str) {
        for line in self.lines(text, Instant::now()) {
            say(&line);
        }
    }

    fn lines(&mut self, text: &str, now: Instant) -> Vec<String> {
        let earned = (now.saturating_duration_since(self.since).as_nanos() / EVERY.as_nanos()) as u32;
        self.since += earned * EVERY;
        self.used = self.used.saturating_sub(earned);
        if self.used >= LINES_MAX {
            self.left_out += 1;
            return Vec::new();
        }
        self.used += 1;
        let before = std::mem::take(&mut self.left_out);
        let before = (before > 0).then(|| format!("{before} lines were left out here"));
        before.into_iter().chain([text.to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_and_goes_all_the_time_does_not_fill_the_log() {
        let began = Instant::now();
        let mut lines = Lines::new(began);
        // A thousand a second, for a day.
        let day = (0..86_400_u64).map(|second| {
            let at = began + Duration::from_secs(second);
            (0..1000).map(|_| lines.lines("is gone", at).len()).sum::<usize>()
        });
        let all: usize = day.sum();
        assert!((14_000..=30_000).contains(&all), "{all}");
        let at = began + Duration::from_secs(90_000);
        let said = lines.lines("is here", at);
        assert!(said.len() == 2 && said[0].contains("left out") && said[1] == "is here", "{said:?}");
        assert_eq!(lines.lines("is here, too", at), ["is here, too"]);
    }
}
