//! `multigrain run`.

use crate::args::RunArgs;
use crate::failure::{Failure, say};
use crate::interrupt::Interrupt;
use crate::output::print;
use crate::progress::Bar;
use crate::{json, report};
use multigrain::app::{AppJob, Checked};
use multigrain::rooms::trace::Spill;
use multigrain::{Machine, Outcome, Progress, Runtime, Settings, whole};

/// A run with what the reports need besides the outcome.
pub(crate) struct Finished<'a> {
    /// What was run.
    pub(crate) app: &'a AppJob,
    /// What the run was.
    pub(crate) outcome: &'a Outcome,
    /// Peak resident size of the process when the run ended, in bytes.
    pub(crate) peak_rss_bytes: u64,
    /// The comparison with the reference, if it was asked for.
    pub(crate) checked: Option<Checked>,
    /// Whether an interrupted run was to be continued.
    pub(crate) resume_asked: bool,
}

/// Runs an application and reports.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let runtime = Runtime::new(args.common.options()?)?;
    args.trace.as_deref().map(whole::check_target).transpose()?;
    let app = args.app.prepare(&runtime)?;
    let spill = args.trace.as_deref().map(Spill::create).transpose().map_err(|e| Failure::Request(e.to_string()))?;
    let bar = Bar::new(&app.job.app, !args.common.json);
    let moved = |progress: Progress| bar.set(progress);
    let settings = Settings {
        resume: args.resume,
        full_trace: false,
        trace: spill.clone(),
        abort: Some(&interrupt.abort),
        journal_interval: args.journal_interval,
    let interrupt = Interrupt::install()?;
        progress: bar.is_shown().then_some(&moved as &(dyn Fn(Progress) + Sync)),
    };
    let ran = runtime.run(&app.job, settings);
    bar.clear();
    let peak_rss_bytes = peak_rss_bytes()?;
    let begin = || interrupt.begin();
    interrupt.run_is_over();
    if let Some(after) = &app.after {
        after(&outcome).map_err(|e| Failure::Run(e.to_string()))?;
    }
    if let Some(spill) = &spill {
        on_start: Some(&begin),
        spill.publish().map_err(|e| {
            say("the run is done and its results are complete");
            Failure::Run(e.to_string())
        })?;
    }
    let outcome = match (ran, &spill) {
        (Ok(outcome), _) => outcome,
        (Err(error), Some(spill)) => {
            // Of a run that has not begun there is no trace.
            if spill.publish().is_ok() {
                say(&format!("the trace up to here is in {}", spill.path().display()));
            }
            return Err(error.into());
        }
        (Err(error), None) => return Err(error.into()),
    };
    let checked = match args.check {
        true => Some((app.check)(&outcome).map_err(|e| Failure::Run(format!("the check could not be made: {e}")))?),
        false => None,
    };
    let finished = Finished { app: &app, outcome: &outcome, peak_rss_bytes, checked, resume_asked: args.resume };
    let printed = print(&match args.common.json {
        true => json::line(&json::run(&finished)),
        false => report::run(&finished),
    });
    match &finished.checked {
        Some(checked) if !checked.holds() => Err(Failure::Run(format!(
            "the check failed: the largest relative error of {} elements is {:.2e}, {:.2e} is allowed; \
             the result is not to be used",
            checked.elements, checked.max_relative_error, checked.tolerance
        ))),
        _ => printed,
    }
}

/// Peak resident size of this process so far (`VmHWM`, proc_pid_status(5)).
fn peak_rss_bytes() -> Result<u64, Failure> {
    let failed = |why: String| Failure::Run(format!("cannot read the peak memory from /proc/self/status: {why}"));
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| failed(e.to_string()))?;
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map(|kib: u64| kib * 1024).ok_or_else(|| failed("it has no VmHWM".to_owned()))
}

/// Capacity of the memory that `--memory` sets: the one below a disk, or the root.
pub(crate) fn budget_bytes(machine: &Machine) -> u64 {
    use multigrain::rooms::machine::Driver;
    let below_disk = machine.memories().iter().find(|m| m.edge.is_some_and(|e| e.driver == Driver::Disk));
    below_disk.unwrap_or_else(|| machine.memory(machine.root())).capacity_bytes
}
