//! The progress bar: on a terminal only, on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use multigrain::Progress;
use std::io::IsTerminal;
use std::time::Duration;

/// Steps of the bar; it does not move more finely.
const STEPS: u64 = 10_000;

/// A bar that is shown, or nothing.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// A bar if standard error is a terminal and `wanted`.
    pub fn new(app: &str, wanted: bool) -> Bar {
        if !wanted || crate::failure::is_silent() || !std::io::stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(10));
        let template = "{msg}  {bar:40}  {percent:>3} %  {elapsed} elapsed, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(app.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        Bar(Some(bar))
    }

    /// Whether anybody sees it.
    pub fn is_shown(&self) -> bool {
        self.0.is_some()
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
