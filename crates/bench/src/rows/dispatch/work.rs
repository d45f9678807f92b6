//! The jobs that are handed out.

use multigrain::jobs::{JobOptions, JobsError, Team};
use multigrain_console::Failure;
use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

/// A job of the thesis: so many bytes.
pub(super) const BYTES: usize = 16 << 10;

/// Jobs of a check, which is whole before anything is timed.
const CHECKED: u64 = 2_000;

/// The stream of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014) at one
/// place.
fn mixed(counter: u64) -> u64 {
    let z = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Jobs of one kind: some words that each job combines with a stream of its own. Of no words it does nothing.
pub(super) struct Work {
    input: Vec<u64>,
}

/// What a run took.
pub(super) struct Run {
    /// The sum of all results.
    pub(super) sum: u64,
    pub(super) seconds: f64,
    /// From the source to the sink, of each job, in nanoseconds; only where it is asked for.
    pub(super) latencies_ns: Vec<f64>,
}

impl Work {
    /// Jobs on so many bytes.
    pub(super) fn new(bytes: usize) -> Work {
        Work { input: (0..bytes as u64 / 8).map(mixed).collect() }
    }

    /// The words of one job's output, summed; or the job's number.
    fn execute(&self, output: &mut Vec<u64>, job: u64) -> u64 {
        if self.input.is_empty() {
            return black_box(job);
        }
        let first = job.wrapping_mul(self.input.len() as u64);
        output.clear();
        output.extend(self.input.iter().zip(first..).map(|(word, counter)| word ^ mixed(counter)));
        black_box(&mut *output).iter().fold(0, |sum, word| sum.wrapping_add(*word))
    }

    pub(super) fn alone(&self, jobs: u64) -> u64 {
        let mut output = Vec::new();
        (0..jobs).fold(0, |sum: u64, job| sum.wrapping_add(self.execute(&mut output, job)))
    }

    /// Seconds of so many jobs on one thread, with nobody to hand them out.
    pub(super) fn alone_seconds(&self, jobs: u64) -> f64 {
        let begin = Instant::now();
        black_box(self.alone(jobs));
        begin.elapsed().as_secs_f64()
    }

    /// Whether the results are those of a loop.
    pub(super) fn check(&self, team: &Team, options: &JobOptions) -> Result<(), Failure> {
        let (found, expected) = (self.run(team, options, CHECKED)?.sum, self.alone(CHECKED));
        match found == expected {
            true => Ok(()),
            false => Err(Failure::Run(format!(
                "the results of {CHECKED} jobs add up to {found}, not to {expected}, under {options:?}"
            ))),
        }
    }

    /// So many jobs.
    pub(super) fn run(&self, team: &Team, options: &JobOptions, jobs: u64) -> Result<Run, Failure> {
        let (mut next, mut sum) = (0, 0_u64);
        let source = || {
            next += 1;
            Ok::<_, Infallible>((next <= jobs).then_some(next - 1))
        };
        let work = |output: &mut Vec<u64>, job| Ok(self.execute(output, job));
        let sink = |result| {
            sum = sum.wrapping_add(result);
            Ok(())
        };
        let begin = Instant::now();
        team.jobs(options, source, |_| Vec::new(), work, sink).map_err(failed)?;
        Ok(Run { sum, seconds: begin.elapsed().as_secs_f64(), latencies_ns: Vec::new() })
    }

    /// So many jobs, each with the time from source to sink.
    pub(super) fn latencies(&self, team: &Team, options: &JobOptions, jobs: u64) -> Result<Run, Failure> {
        let (mut next, mut sum, mut latencies_ns) = (0, 0_u64, Vec::with_capacity(jobs as usize));
        let source = || {
            next += 1;
            Ok::<_, Infallible>((next <= jobs).then(|| (next - 1, Instant::now())))
        };
        let work = |output: &mut Vec<u64>, (job, begin)| Ok((self.execute(output, job), begin));
        let sink = |(result, begin): (u64, Instant)| {
            sum = sum.wrapping_add(result);
            latencies_ns.push(begin.elapsed().as_secs_f64() * 1e9);
            Ok(())
        };
        let begin = Instant::now();
        team.jobs(options, source, |_| Vec::new(), work, sink).map_err(failed)?;
        Ok(Run { sum, seconds: begin.elapsed().as_secs_f64(), latencies_ns })
    }
}

fn failed(error: JobsError<Infallible>) -> Failure {
    Failure::Run(error.to_string())
}
