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
use multigrain::Abort;
use multigrain::rooms::trace::Trace;
use multigrain::strands::{Policy, Scheduler, SchedulerOptions, TaskKind};
use multigrain_simd::Isa;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of pictures under way and the reading of others.
const ROWS: TaskKind = TaskKind::new(0, "rows");

/// Samples of luma that are read ahead, at most: some pictures, but not more memory than this times 1.5.
const AHEAD_SAMPLES: usize = 16 << 20;

/// Pictures that are encoded in one loop, at most. More would gain nothing: a loop ends with a row that nobody shares.
const TOGETHER: usize = 8;

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
}

/// What was done.
#[derive(Debug)]
pub struct Finished {
    /// Pictures.
    pub pictures: u64,
    /// Bytes of the output.
    pub bytes: u64,
    /// Who computed what when, if it was asked for.
    pub trace: Option<Trace>,
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
    let scheduler = Scheduler::new(SchedulerOptions {
        policy: execution.policy,
        workers: execution.threads,
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
    let strand = |strand: &multigrain::strands::Strand<'_>| -> Result<Finished, Error> {
        lock().read(together);
        let mut pictures = 0;
        loop {
            let sources = std::mem::take(&mut lock().ready);
            if sources.is_empty() {
                break;
            }
            if abort.is_raised() {
                return Err(Error::Interrupted);
            }
            let encoded: Vec<Encoded> = encoder.encode(&sources, |wave| {
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
            pictures += sources.len() as u64;
            watch(pictures);
            lock().spare.extend(sources);
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
        Ok(Finished { pictures, bytes: output.finish(&properties, &sets)?, trace: None })
    };
    let mut outcome = scheduler.run(vec![strand])?;
    let finished = outcome.results.pop().unwrap_or(Err(Error::Interrupted))?;
    Ok(Finished { trace: outcome.trace, ..finished })
}
