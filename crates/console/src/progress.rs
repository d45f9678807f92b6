//! The progress bar: on a terminal only, on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use multigrain::Progress;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
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

/// What launchers of MPI call their programs, from the first letters on.
const LAUNCHERS: [&str; 6] = ["mpirun", "mpiexec", "orterun", "orted", "prte", "hydra_"];

/// Whether the launcher that stands above this process on its node writes errors to a terminal.
fn launchers_stderr_is_terminal() -> bool {
    let mut process = rustix::process::getppid().map_or(0, |process| process.as_raw_nonzero().get());
    let mut found = false;
    loop {
        let of = Path::new("/proc").join(process.to_string());
        let Ok(stat) = std::fs::read_to_string(of.join("stat")) else { return found };
        // The name stands in parentheses, and may hold some.
        let Some((name, rest)) = stat.rsplit_once(')') else { return found };
        let name = name.split_once('(').map_or("", |(_, name)| name);
        if !LAUNCHERS.iter().any(|launcher| name.starts_with(launcher)) {
            return found;
        }
        found = std::fs::read_link(of.join("fd/2")).is_ok_and(|to| {
            let name = to.to_string_lossy();
            ["/dev/pts/", "/dev/tty", "/dev/console"].iter().any(|terminal| name.starts_with(terminal))
        });
        process = rest.split_whitespace().nth(1).and_then(|parent| parent.parse().ok()).unwrap_or(0);
    }
}

/// A terminal behind a launcher, which carries what is written to standard error: each picture of the bar in one piece, so that nothing
/// that others write comes in between.
#[derive(Debug, Default)]
struct Carried(Mutex<Vec<u8>>);

impl Carried {
    fn add(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(())
    }

    fn moved(&self, cells: usize, way: char) -> std::io::Result<()> {
        match cells {
            0 => Ok(()),
            cells => self.add(format!("\x1b[{cells}{way}").as_bytes()),
        }
    }
}

impl TermLike for Carried {
    fn width(&self) -> u16 {
        80
    }

    fn move_cursor_up(&self, n: usize) -> std::io::Result<()> {
        self.moved(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> std::io::Result<()> {
        self.moved(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> std::io::Result<()> {
        self.moved(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> std::io::Result<()> {
        self.moved(n, 'D')
    }

    fn write_line(&self, s: &str) -> std::io::Result<()> {
        self.add(s.as_bytes())?;
        self.add(b"\n")
    }

    fn write_str(&self, s: &str) -> std::io::Result<()> {
        self.add(s.as_bytes())
    }

    fn clear_line(&self) -> std::io::Result<()> {
        self.add(b"\r\x1b[2K")
    }

    fn flush(&self) -> std::io::Result<()> {
        let picture = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        std::io::stderr().write_all(&picture)
    }
}

/// A bar that is shown, or nothing.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// A bar if standard error is a terminal and `wanted`.
    pub fn new(app: &str, wanted: bool) -> Bar {
        match wanted && !crate::failure::is_silent() && std::io::stderr().is_terminal() {
            true => Bar::drawn_on(app, ProgressDrawTarget::stderr_with_hz(10)),
            false => Bar(None),
        }
    }

    /// A bar of several processes that a launcher has started, if `wanted` of this one and what the launcher carries goes to a terminal.
    pub fn through_launcher(app: &str, wanted: bool) -> Bar {
        if std::io::stderr().is_terminal() {
            return Bar::new(app, wanted);
        }
        match wanted && !crate::failure::is_silent() && launchers_stderr_is_terminal() {
            true => Bar::drawn_on(app, ProgressDrawTarget::term_like_with_hz(Box::new(Carried::default()), 4)),
            false => Bar(None),
        }
    }

    fn drawn_on(app: &str, target: ProgressDrawTarget) -> Bar {
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
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
            if progress.done >= progress.total {
                bar.force_draw();
            }
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
