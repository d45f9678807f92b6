//! The progress bar: on a terminal only, on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use multigrain::Progress;
use std::io::IsTerminal;
use std::time::Duration;

/// Steps of the bar; it does not move more finely.
const STEPS: u64 = 10_000;

/// What is shown of work.
const RUNNING: &str = "{msg}  {bar:40}  {percent:>3} %  {elapsed} elapsed, {eta} left";

fn set_style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
}

/// A bar that is shown, or nothing.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// A bar if standard error is a terminal and `wanted`.
    pub fn new(app: &str, wanted: bool) -> Bar {
        if !wanted || crate::failure::is_silent() || !std::io::stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(10));
        set_style(&bar, RUNNING);
        bar.set_message(app.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        Bar(Some(bar))
    }

    /// Whether anybody sees it.
    pub fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Shows what comes before the work, of which nobody knows how long it takes.
    pub fn prepare(&self, what: &str) {
        if let Some(bar) = &self.0 {
            set_style(bar, &format!("{{msg}}: {what}  {{elapsed}} elapsed"));
        }
    }

    /// Shows the work, which begins now.
    pub fn begin(&self) {
        if let Some(bar) = &self.0 {
            set_style(bar, RUNNING);
            bar.reset_elapsed();
            bar.reset_eta();
        }
    }

    /// Moves the bar.
    pub fn set(&self, progress: Progress) {
        if let Some(bar) = &self.0
            && progress.total > 0.0
        {
            bar.set_position((progress.done / progress.total * STEPS as f64) as u64);
        }
    }

    /// Moves the bar to where a run begins that goes on from an earlier one: what that did tells nothing about the time left.
    pub fn begin_at(&self, progress: Progress) {
        self.set(progress);
        if let Some(bar) = &self.0 {
            bar.reset_eta();
        }
    }

    /// Says what is being done.
    pub fn message(&self, text: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(text);
        }
    }

    /// Takes the bar off the screen while something is printed.
    pub fn suspend(&self, print: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the bar off the screen.
    pub fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}
