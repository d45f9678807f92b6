//! What it costs to hand out independent jobs, by queue and by mailboxes, beside crossbeam-channel, rayon and oneTBB; and
//! figure 5.8 of the thesis that compared both ways, for this computer.
//!
//! The job is that figure's: 16 KiB combined with the stream of a counter. The stream is splitmix64's here, which needs no
//! instructions of its own and takes as long as AES in counter mode does with them: some 3.5 us.

mod page;
mod work;

use crate::entry::{Entry, What};
use crate::harness::Bench;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Bar, Figure, Row, Unit};
use multigrain::jobs::{Batching, Dispatch, JobOptions, Team, TeamOptions};
use multigrain::strands::{Hosts, Policy, Scheduler, SchedulerOptions, Strand, TaskKind};
use multigrain_console::Failure;
use page::page;
use std::convert::Infallible;
use std::time::{Duration, Instant};
use work::{BYTES, Work};

pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "dispatch",
    about: "Independent jobs by queue and by mailboxes; crossbeam-channel, rayon, oneTBB. Alone also over lengths of jobs and numbers of workers, as a table and figures",
    unasked: true,
    what: What::RowsAndPage(rows, page),
}];

/// The ways to hand out.
const BOTH: [Dispatch; 2] = [Dispatch::Queue, Dispatch::Mailbox];

fn team(workers: usize) -> Result<Team, Failure> {
    Team::new(TeamOptions { workers, ..TeamOptions::default() }).map_err(|e| Failure::Run(e.to_string()))
}

/// All rows.
pub(crate) fn rows(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    Ok(vec![
        empty(bench)?,
        one_at_a_time(bench)?,
        busy_host(bench)?,
        many_workers(bench)?,
        idle_workers(bench)?,
        policies(bench)?,
    ])
}

/// A turn: nanoseconds a job of so many.
fn turn<'a>(team: &'a Team, work: &'a Work, options: JobOptions, jobs: u64) -> Turn<'a> {
    Box::new(move || Ok(work.run(team, &options, jobs)?.seconds * 1e9 / jobs as f64))
}

fn figure(name: &str, samples: Vec<f64>) -> Figure {
    Figure { name: name.to_owned(), version: None, samples, missing: None }
}

fn empty(bench: &Bench<'_>) -> Result<Row, Failure> {
    let (team, work, jobs) = (team(bench.threads())?, Work::new(0), bench.size(2_000_000, 10_000));
    let options = JobOptions::default();
    work.check(&team, &options)?;
    work.check(&team, &JobOptions { dispatch: Dispatch::Mailbox, ..options })?;
    let mailbox = JobOptions { dispatch: Dispatch::Mailbox, ..options };
    let mut turns = [turn(&team, &work, options, jobs), turn(&team, &work, mailbox, jobs)];
    let peer = |label: &str, name: &str, work: &str| {
        let count = if name == "tbb" { "calls" } else { "jobs" };
        let mut options = vec![("work", work.to_owned()), (count, jobs.to_string())];
        options.extend((work == "batches").then(|| ("batch", "2048".to_owned())));
        Contender::start(bench, name, label, &options)
    };
    let mut peers = [
        peer("crossbeam-channel", "jobs", "channel"),
        peer("crossbeam-channel, one way", "jobs", "one-way"),
        peer("crossbeam-channel, batches of 2048", "jobs", "batches"),
        peer("rayon par_bridge", "jobs", "bridge"),
        peer("rayon spawn", "jobs", "spawn"),
        peer("oneTBB parallel_pipeline", "tbb", "pipeline"),
    ];
    let mut samples = alternate(bench, "dispatch", bench.args.rounds, &mut turns, &mut peers)?.into_iter();
    drop(turns);
    let ours = samples.next().unwrap_or_default();
    let mailbox = crate::harness::row::median(&samples.next().unwrap_or_default()).unwrap_or(f64::NAN);
    let [channel, others @ ..] = peers.map(Figure::from);
    let mut row = Row::new(
        "dispatch-empty",
        Unit::Nanoseconds,
        ours,
        [channel],
        Bar::RatioAtLeast(3.0),
        vec![
            "what the bar compares is the batching: whoever sends batches by a channel has it as well, see below"
                .into(),
            format!(
                "an empty job from the source to the sink by the queue, on {} workers; by mailboxes {mailbox:.1} ns",
                bench.threads()
            ),
            "the bar is the rate of crossbeam-channel with jobs and results, as ours; one way, nothing comes back"
                .into(),
        ],
    );
    // The bar names one peer, so the others stand in the notes.
    for other in others {
        let text = match (other.median(), &other.missing) {
            (Some(median), _) => format!("{}: {median:.1} ns", other.name),
            (None, why) => format!("{}: {}", other.name, why.as_deref().unwrap_or("no figure")),
        };
        row.notes.push(text);
    }
    Ok(row)
}

/// The way there and back of one job.
fn one_at_a_time(bench: &Bench<'_>) -> Result<Row, Failure> {
    let (team, work, jobs) = (team(2)?, Work::new(0), bench.size(100_000, 1_000));
    let options = JobOptions { batch: Batching::Fixed(1), in_flight: 1, host_works: false, ..JobOptions::default() };
    let both = BOTH.map(|dispatch| JobOptions { dispatch, ..options });
    for options in &both {
        work.check(&team, options)?;
    }
    let mut turns = both.map(|options| turn(&team, &work, options, jobs));
    let mut samples = alternate(bench, "dispatch", bench.args.rounds, &mut turns, &mut [])?.into_iter();
    Ok(Row::new(
        "dispatch-latency",
        Unit::Nanoseconds,
        samples.next().unwrap_or_default(),
        vec![figure("mailbox", samples.next().unwrap_or_default())],
        Bar::None,
        vec!["an empty job from the host to a worker and its result back, one at a time, by the queue".into()],
    ))
}

/// The thesis's finding: a host that works starves its workers at their mailboxes, not at a queue.
fn busy_host(bench: &Bench<'_>) -> Result<Row, Failure> {
    let (team, work, jobs) = (team(bench.threads())?, Work::new(BYTES), bench.size(20_000, 200));
    let options = JobOptions { batch: Batching::Fixed(1), ..JobOptions::default() };
    let both = BOTH.map(|dispatch| JobOptions { dispatch, ..options });
    for options in &both {
        work.check(&team, options)?;
    }
    let [queue, mailbox] = both.map(|options| turn(&team, &work, options, jobs));
    let alone: Turn<'_> = Box::new(|| Ok(work.alone_seconds(jobs) * 1e9 / jobs as f64));
    let samples = alternate(bench, "dispatch", bench.args.rounds, &mut [queue, mailbox, alone], &mut [])?;
    let [queue, mailbox, alone] = <[Vec<f64>; 3]>::try_from(samples).expect("one for each that takes a turn");
    Ok(Row::new(
        "dispatch-busy",
        Unit::Nanoseconds,
        queue,
        vec![figure("mailbox", mailbox)],
        Bar::RatioAtLeast(1.0),
        vec![format!(
            "a job of 16 KiB that takes {:.2} us alone, by the queue, handed out one by one by a host that works; {} workers",
            crate::harness::row::median(&alone).unwrap_or(f64::NAN) / 1e3,
            bench.threads()
        )],
    ))
}

/// More workers than processors.
fn many_workers(bench: &Bench<'_>) -> Result<Row, Failure> {
    let many = (4 * bench.threads()).max(8);
    let (few_team, many_team, work) = (team(bench.threads())?, team(many)?, Work::new(BYTES));
    let jobs = bench.size(20_000, 200);
    let options = JobOptions::default();
    work.check(&many_team, &options)?;
    let mut turns = [turn(&many_team, &work, options, jobs), turn(&few_team, &work, options, jobs)];
    let mut samples = alternate(bench, "dispatch", bench.args.rounds, &mut turns, &mut [])?.into_iter();
    drop(turns);
    Ok(Row::new(
        format!("dispatch-{many}"),
        Unit::Nanoseconds,
        samples.next().unwrap_or_default(),
        vec![figure(&format!("{} workers", bench.threads()), samples.next().unwrap_or_default())],
        Bar::RatioAtLeast(0.9),
        vec![format!("a job of 16 KiB by the queue on {many} workers, beside a team of {}", bench.threads())],
    ))
}

/// What workers cost that have nothing to do: the processor time of this process in a second in which the source has no job,
/// and in one between two calls.
fn idle_workers(bench: &Bench<'_>) -> Result<Row, Failure> {
    let many = (4 * bench.threads()).max(8);
    let (team, work) = (team(many)?, Work::new(0));
    let pause = Duration::from_millis(bench.size(1_000, 20));
    let asleep = || {
        let before = processor_seconds();
        std::thread::sleep(pause);
        (processor_seconds() - before) / pause.as_secs_f64() * 1e9
    };
    let within = |dispatch| -> Turn<'_> {
        let (team, work) = (&team, &work);
        Box::new(move || {
            let options = JobOptions { dispatch, ..JobOptions::default() };
            let (mut next, mut used_ns) = (0, f64::NAN);
            let source = || {
                next += 1;
                if next == 10_000 {
                    // They have worked, and have gone to sleep.
                    std::thread::sleep(Duration::from_millis(20));
                    used_ns = asleep();
                }
                Ok::<_, Infallible>((next < 20_000).then_some(next))
            };
            let done = team.jobs(&options, source, |_| (), |(), job: u64| Ok(work.alone(job % 2)), |_| Ok(()));
            done.map_err(|e| Failure::Run(e.to_string()))?;
            Ok(used_ns)
        })
    };
    let between: Turn<'_> = Box::new(|| {
        work.check(&team, &JobOptions::default())?;
        std::thread::sleep(Duration::from_millis(20));
        Ok(asleep())
    });
    let mut turns = [within(Dispatch::Queue), within(Dispatch::Mailbox), between];
    let samples = alternate(bench, "dispatch", bench.args.rounds, &mut turns, &mut [])?;
    let [ours, mailbox, between] = <[Vec<f64>; 3]>::try_from(samples).expect("one for each that takes a turn");
    let median = |samples: &[f64]| crate::harness::row::median(samples).unwrap_or(f64::NAN);
    Ok(Row::new(
        format!("dispatch-idle-{many}"),
        Unit::Nanoseconds,
        ours,
        None::<Figure>,
        Bar::AtMost(1e6),
        vec![format!(
            "processor time of {many} threads in a second in which the source waits, by the queue; by mailboxes {:.0} ns, \
             between two calls {:.0} ns",
            median(&mailbox),
            median(&between)
        )],
    ))
}

/// What all threads of this process have used.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Searches that off-load to workers of their own, under a policy: a task that waits is taken by the worker that is done, or
/// handed over by the host, which computes.
fn policies(bench: &Bench<'_>) -> Result<Row, Failure> {
    const TASK: TaskKind = TaskKind::new(0, "task");
    let (searches, tasks) = (4 * bench.threads(), bench.size(500, 5));
    let work = Work::new(BYTES);
    let search = |strand: &Strand<'_>| {
        // As much between tasks as in one of them.
        (0..tasks).fold(0_u64, |sum, _| sum.wrapping_add(strand.offload_call(TASK, || work.alone(1)) ^ work.alone(1)))
    };
    let schedulers = BOTH.map(|dispatch| {
        Scheduler::new(SchedulerOptions {
            policy: Policy::Edtlp,
            workers: (bench.threads() - 1).max(1),
            hosts: Hosts::Own(1),
            strands_max: Some(searches),
            throttle: false,
            dispatch,
            ..SchedulerOptions::default()
        })
    });
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for scheduler in schedulers {
        let scheduler = scheduler.map_err(|e| Failure::Run(e.to_string()))?;
        turns.push(Box::new(move || {
            let begin = Instant::now();
            let outcome = scheduler.run(vec![&search; searches]).map_err(|e| Failure::Run(e.to_string()))?;
            let seconds = begin.elapsed().as_secs_f64();
            match outcome.results.iter().all(|sum| *sum == outcome.results[0]) {
                true => Ok(seconds * 1e9 / (searches as u64 * tasks) as f64),
                false => Err(Failure::Run("searches of the same tasks found different sums".into())),
            }
        }));
    }
    let mut samples = alternate(bench, "dispatch", bench.args.rounds, &mut turns, &mut [])?.into_iter();
    Ok(Row::new(
        "dispatch-policy",
        Unit::Nanoseconds,
        samples.next().unwrap_or_default(),
        vec![figure("mailbox", samples.next().unwrap_or_default())],
        Bar::None,
        vec![format!(
            "a task of 16 KiB of one of {searches} searches under edtlp, by the queue; one thread computes as much between tasks"
        )],
    ))
}
