//! Lines of the log about whom anybody can make come and go: some at once, then few, so that nobody fills the disk.

use multigrain_console::say;
use std::time::{Duration, Instant};

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
