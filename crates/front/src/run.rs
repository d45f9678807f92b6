//! The command `run`.

use crate::application::Request;
use crate::args::RunArgs;
use crate::report::{Afterwards, Finished};
use crate::{json, report};
use multigrain::app::Checked;
use multigrain::rooms::kernel;
use multigrain::rooms::trace::{Spill, Trace};
use multigrain::{Job, Progress, Runtime, Settings, is_beside, whole};
use multigrain_console::Bar;
use multigrain_console::Interrupt;
use multigrain_console::print;
use multigrain_console::{Failure, say};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::time::Instant;

/// Runs an application and reports.
pub(crate) fn run(args: &RunArgs, request: &Request) -> Result<(), Failure> {
    args.common.same_on_all_ranks()?;
    let runtime = Runtime::new(args.common.options()?)?;
    let ranks = multigrain::ranks::joined();
    let is_first = ranks.as_ref().is_none_or(|ranks| ranks.rank() == 0);
    let trace = args.trace.as_ref().map(|path| match &ranks {
        Some(ranks) => multigrain::ranks::trace_path(ranks, path),
        None => path.clone(),
    });
    trace.as_deref().map(check_trace_target).transpose()?;
    check_kernel(args, ranks.is_some())?;
    let interrupt = Interrupt::install()?;
    let mut app = request.prepare(&runtime)?;
    app.job = args.common.with_files_read(app.job);
    if args.check {
        app.job = app.job.with_check();
    }
    if args.observe {
        app.job = app.job.with_observer_bytes(kernel::memory_bytes(runtime.workers()?));
    }
    trace.as_deref().map(|path| check_trace(path, &app.job)).transpose()?;
    let spill = trace.as_deref().map(Spill::create).transpose().map_err(|e| Failure::Request(e.to_string()))?;
    let bar = match ranks {
        Some(_) => Bar::through_launcher(&app.job.app, !args.common.json && is_first),
        None => Bar::new(&app.job.app, !args.common.json),
    };
    let moved = |progress: Progress| bar.set(progress);
    bar.prepare("planning");
    let begin = || {
        bar.begin();
        interrupt.begin();
    };
    let settings = Settings {
        resume: args.resume,
        discard: args.discard,
        full_trace: false,
        trace: spill.clone(),
        kernel: args.observe,
        abort: Some(&interrupt.abort),
        on_start: Some(&begin),
        journal_interval: args.journal_interval,
        progress: bar.is_shown().then_some(&moved as &(dyn Fn(Progress) + Sync)),
    };
    let ran = runtime.run(&app.job, settings);
    bar.clear();
    let outcome = match (ran, &spill) {
        (Ok(outcome), _) => outcome,
        (Err(error), Some(spill)) => {
            // Of a run that has not begun there is no trace, and of one of several ranks that of the first.
            tell_observed(spill);
            if is_first && spill.publish().is_ok() {
                say(&format!("the trace up to here is in {}", spill.path().display()));
            }
            return Err(error.into());
        }
        (Err(error), None) => return Err(error.into()),
    };
    if !is_first {
        // The first looks at the results, and tells.
        return Ok(());
    }
    let peak_rss_bytes = read_peak_rss_bytes()?;
    match outcome.kept_beside().filter(|_| app.after.is_some()) {
        Some(result) => interrupt.is_kept_beside(result),
        None => interrupt.run_is_over(),
    }
    // Nothing is run again, and whoever looks at the results has its room.
    runtime.forget();
    let after = match &app.after {
        Some(after) => {
            let begin = Instant::now();
            let found = match after(&outcome) {
                Ok(found) => found,
                Err(error) => return Err(Failure::Run(outcome.keep(error).to_string())),
            };
            interrupt.run_is_over();
            Some(Afterwards { seconds: begin.elapsed().as_secs_f64(), peak_rss_bytes: read_peak_rss_bytes()?, found })
        }
        None => None,
    };
    if let Some(spill) = &spill {
        tell_observed(spill);
        spill.publish().map_err(|e| {
            say("the run is done and its results are complete");
            Failure::Run(e.to_string())
        })?;
    }
    let checked = match args.check {
        true => {
            let checked = (app.check)(&outcome, fresh_seed());
            Some(checked.map_err(|e| Failure::Run(format!("the check could not be made: {e}")))?)
        }
        false => None,
    };
    let finished = Finished {
        app: &app,
        machine: &outcome.machine,
        seconds: outcome.seconds,
        breakdown: &outcome.breakdown,
        edges: &outcome.edges,
        flops: outcome.flops,
        io: &outcome.backend,
        resumed: outcome.resumed,
        simulated: false,
        peak_rss_bytes,
        ranks: &outcome.ranks,
        after,
        checked,
        resume_asked: args.resume,
    };
    let printed = print(&match args.common.json {
        true => json::line(&json::run(&finished)),
        false => report::run(&finished),
    });
    match &finished.checked {
        Some(checked) if !checked.holds() => Err(Failure::Run(format!(
            "the check failed: {}the largest error is {:.2e} of {:.2e} allowed; the result is not to be used",
            checked.wrong.as_ref().map(|wrong| format!("{wrong}; ")).unwrap_or_default(),
            checked.max_relative_error,
            checked.tolerance
        ))),
        Some(Checked { uncovered: Some(uncovered), .. }) => printed
            .and(Err(Failure::Undecided(format!("the check found nothing wrong, and cannot say right: {uncovered}")))),
        _ => printed,
    }
}

/// Refuses what several ranks cannot do together.
pub(crate) fn alone() -> Result<(), Failure> {
    Err(Failure::Request("ranks run applications together, and do nothing else: start this without mpirun".into()))
}

/// Refuses, before any work, to observe where that cannot be.
fn check_kernel(args: &RunArgs, on_ranks: bool) -> Result<(), Failure> {
    match args.observe {
        true if on_ranks => Err(Failure::Request(
            "--observe observes the workers of one process, and ranks are several: leave it out, or run without mpirun"
                .into(),
        )),
        true => kernel::check().map_err(|e| Failure::Request(e.to_string())),
        false => Ok(()),
    }
}

/// Says by what the operating system was observed, if it was.
fn tell_observed(spill: &Spill) {
    let Some(observed) = spill.observed() else { return };
    let Some(info) = &observed.by else { return };
    say(&format!("--observe: {}", info.source));
    for refused in &info.refused {
        say(&format!("--observe could tell more: {refused}"));
    }
    if observed.lost > 0 {
        say(&format!("--observe: {} events found no room and are missing from the trace", observed.lost));
    }
}

/// Refuses, before any work, a file that no trace can or may be written to.
pub(crate) fn check_trace_target(path: &Path) -> Result<(), Failure> {
    Trace::check_target(path).map_err(|e| Failure::Request(e.to_string()))
}

/// Refuses a trace under the name of a file that the run reads or writes.
pub(crate) fn check_trace(path: &Path, job: &Job) -> Result<(), Failure> {
    let taken = job.files_read().chain(job.files_written()).any(|other| whole::is_same_file(path, other))
        || job.files_written().any(|result| is_beside(result, path));
    match taken {
        true => Err(Failure::Request(format!(
            "the trace would replace {}, which the run itself reads or writes; give it another name",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Another seed every time: what is random in a check must not depend on what is checked.
pub fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Peak resident size of this process so far (`VmHWM`, proc_pid_status(5)).
fn read_peak_rss_bytes() -> Result<u64, Failure> {
    let failed = |why: String| Failure::Run(format!("cannot read the peak memory from /proc/self/status: {why}"));
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| failed(e.to_string()))?;
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map(|kib: u64| kib * 1024).ok_or_else(|| failed("it has no VmHWM".to_owned()))
}
