//! A whole run: pictures are read, encoded on the runtime's strands, and written.
//!
//! One strand goes through the video, a few pictures at a time. For these it off-loads one loop, whose iterations are the rows
//! of all these pictures ([`Wave`](crate::wave::Wave)) and, first of all, the reading of the pictures that come next. How many
//! workers share the loop is the policy's to say.

use crate::encoder::{Encoded, Encoder, Options};
use crate::error::Error;
use crate::input::Input;
use crate::kernel::Kernels;
use crate::output::Output;
use crate::picture::Source;
use crate::wave::Calls;
use multigrain::Abort;
use multigrain::rooms::trace::Trace;
use multigrain::strands::{Hosts, Policy, Scheduler, SchedulerOptions, Strand, TaskKind};
use multigrain_simd::Isa;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Rows of pictures under way and the reading of others.
const ROWS: TaskKind = TaskKind::new(0, "rows");

/// A part of a row, for comparison.
const CALL: TaskKind = TaskKind::new(1, "call");

/// Samples of luma that are read ahead, at most: some pictures, but not more memory than this times 1.5.
const AHEAD_SAMPLES: usize = 16 << 20;

/// Pictures that are encoded in one loop, at most. More would gain nothing: a loop ends with a row that nobody shares.
const TOGETHER: usize = 8;

/// What is off-loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Rows of several pictures.
    Rows,
    /// For comparison: the search for so many macroblocks, and half samples of a row. One is call by call.
    Macroblocks(usize),
}

/// How a run is executed.
#[derive(Clone, Copy, Debug)]
pub struct Execution {
    /// Workers.
    pub threads: usize,
    /// Who gets how many.
    pub policy: Policy,
    /// The instruction set of the kernels.
    pub isa: Isa,
    /// Whether it is written down who computed what when.
    pub trace: bool,
    /// What is off-loaded.
    pub cut: Cut,
}

/// What was done.
#[derive(Debug)]
pub struct Finished {
    /// Pictures.
    pub pictures: u64,
    /// Bytes of the output.
    pub bytes: u64,
    /// Calls that were off-loaded by themselves.
    pub calls: CallTimes,
    /// Who computed what when, if it was asked for.
    pub trace: Option<Trace>,
}

/// Calls that were off-loaded by themselves, instead of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimes {
    /// How many.
    pub count: u64,
    /// Nanoseconds in which whoever made them waited.
    pub waited_ns: u64,
    /// Nanoseconds that they took themselves.
    pub took_ns: u64,
}

/// Off-loads calls from a strand.
struct FromStrand<'a, 's> {
    strand: &'a Strand<'s>,
    macroblocks: usize,
    times: Cell<CallTimes>,
}

impl Calls for FromStrand<'_, '_> {
    fn call(&self, body: &(dyn Fn() + Sync)) {
        let began = Instant::now();
        let took = self.strand.offload_call(CALL, || {
            let began = Instant::now();
            body();
            began.elapsed()
        });
        let CallTimes { count, waited_ns, took_ns } = self.times.get();
        let (waited, took) = (began.elapsed().as_nanos() as u64, took.as_nanos() as u64);
        self.times.set(CallTimes { count: count + 1, waited_ns: waited_ns + waited, took_ns: took_ns + took });
    }

    fn pair(&self, first: &(dyn Fn() + Sync), second: &(dyn Fn() + Sync)) {
        let both = |range: std::ops::Range<usize>, ()| range.for_each(|i| if i == 0 { first() } else { second() });
        self.strand.offload(CALL, 2, 1, (), both, |(), ()| ());
    }

    fn macroblocks(&self) -> usize {
        self.macroblocks
    }
}

/// Pictures that are read by one of the workers while the others encode.
struct Reader<'a, 'i> {
    input: &'a mut Input<'i>,
    ready: Vec<Source>,
    spare: Vec<Source>,
    bytes: Vec<u8>,
    has_ended: bool,
    error: Option<Error>,
}

impl Reader<'_, '_> {
    /// Reads up to so many pictures.
    fn read(&mut self, count: usize) {
        while self.ready.len() < count && !self.has_ended {
            match self.input.read(&mut self.bytes) {
                Ok(true) => {
                    let mut source = self.spare.pop().unwrap_or_default();
                    source.fill(self.input.properties().size, &self.bytes);
                    self.ready.push(source);
                }
                ended => {
                    self.has_ended = true;
                    self.error = ended.err();
                }
            }
        }
    }
}

/// Encodes all pictures of the input. `watch` is told how many are done.
///
/// # Errors
/// The input cannot be read or is cut off, the output cannot be written, or the user ended the run.
pub fn run(
    input: &mut Input<'_>,
    mut output: Output,
    options: Options,
    execution: &Execution,
    abort: &Abort,
    watch: &(dyn Fn(u64) + Sync),
) -> Result<Finished, Error> {
    let properties = input.properties();
    let mut encoder = Encoder::new(properties, options, Kernels::new(execution.isa));
    let sets = encoder.parameter_sets();
    let is_by_call = execution.cut == Cut::Macroblocks(1);
    let scheduler = Scheduler::new(SchedulerOptions {
        policy: if is_by_call { Policy::Edtlp } else { execution.policy },
        workers: if is_by_call { 1 } else { execution.threads },
        // Whoever is called works on another processor, as the synergistic processors of the thesis did.
        hosts: if is_by_call { Hosts::Own(1) } else { Hosts::Workers },
        trace: execution.trace,
        // A loop takes milliseconds: whether sharing it pays needs no trials.
        throttle: false,
        ..SchedulerOptions::default()
    });
    let scheduler = scheduler.map_err(|e| Error::Request(e.to_string()))?;
    let together = (AHEAD_SAMPLES / (properties.size.width * properties.size.height)).clamp(1, TOGETHER);
    let reader = Mutex::new(Reader {
        input,
        ready: Vec::new(),
        spare: Vec::new(),
        bytes: Vec::new(),
        has_ended: false,
        error: None,
    });
    let lock = || reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let strand = |strand: &Strand<'_>| -> Result<Finished, Error> {
        lock().read(together);
        let (mut pictures, mut calls) = (0, CallTimes::default());
        loop {
            let sources = std::mem::take(&mut lock().ready);
            // Those that wait for others are encoded when none come.
            let is_end = sources.is_empty();
            if abort.is_raised() {
                return Err(Error::Interrupted);
            }
            let encoded: Vec<Encoded> = encoder.encode(sources, is_end, |wave| {
                if let Cut::Macroblocks(macroblocks) = execution.cut {
                    let by = FromStrand { strand, macroblocks, times: Cell::new(calls) };
                    lock().read(together);
                    (0..wave.jobs()).for_each(|_| wave.step_by(Some(&by)));
                    calls = by.times.get();
                    return;
                }
                let is_read = AtomicBool::new(false);
                let body = |iterations: std::ops::Range<usize>, ()| {
                    for _ in iterations {
                        match is_read.swap(true, Ordering::Relaxed) {
                            false => lock().read(together),
                            true => wave.step(),
                        }
                    }
                };
                strand.offload(ROWS, wave.jobs() + 1, 1, (), body, |(), ()| ());
            });
            encoded.iter().try_for_each(|picture| output.write(picture))?;
            pictures += encoded.len() as u64;
            watch(pictures);
            if is_end {
                break;
            }
            lock().spare.extend(encoder.spare());
        }
        if let Some(error) = lock().error.take() {
            return Err(error);
        }
        if pictures == 0 {
            return Err(Error::Input {
                name: "the input".to_owned(),
                why: "has no pictures; give one that has".to_owned(),
            });
        }
        Ok(Finished { pictures, bytes: output.finish(&properties, &sets)?, calls, trace: None })
    };
    let mut outcome = scheduler.run(vec![strand])?;
    let finished = outcome.results.pop().unwrap_or(Err(Error::Interrupted))?;
    Ok(Finished { trace: outcome.trace, ..finished })
}
