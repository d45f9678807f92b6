//! A whole run: pictures are read, encoded on the runtime's strands, and written.
//!
//! As many strands as pictures can be under way at once each take one picture after another, in the order of decoding, and
//! off-load it as a task whose loop is the picture's rows ([`Wave`](crate::wave::Wave)). So the grain is the policy's to decide,
//! task by task: where there are as many pictures as workers, one worker each (frames); where there are fewer, since pictures
//! have few rows or the video ends, several workers share the rows of one (loops). Where pictures are so small that each waits for
//! nearly all of the one before, a task is a few of them, row behind row. To read and to plan a picture, and to write what is
//! complete, is part of the tasks.

use crate::encoder::{Encoded, Encoder, Flight, Next, Options};
use crate::error::Error;
use crate::headers::Properties;
use crate::input::Input;
use crate::kernel::Kernels;
use crate::output::{Output, Written};
use crate::picture::{Block, Picture, Size};
use crate::rate::Rate;
use crate::shown::Shown;
use crate::source::Source;
use crate::wave::{Calls, RaisedOnPanic, instead, lock, pictures_at_once};
use multigrain::Abort;
use multigrain::rooms::team::Steps;
use multigrain::rooms::trace::Trace;
use multigrain::strands::{
    Hosts, Policy, PolicyError, Scheduler, SchedulerError, SchedulerOptions, Statistics, Strand, TaskKind,
};
use multigrain_console::memory::tried;
use multigrain_simd::Isa;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// The rows of a picture, or of a few small ones.
const PICTURES: TaskKind = TaskKind::new(0, "pictures");

/// A part of a row, for comparison.
const CALL: TaskKind = TaskKind::new(1, "call");

/// Rows of a task, at least, where pictures are too small for several to be under way at once: whoever is done with the last
/// one that is left waits for the others.
const TASK_ROWS: usize = 32;

/// Samples of luma of pictures that are under way at once, at most, though two pictures always may; each takes some 7 bytes, and more
/// where pictures are predicted from many.
const AT_ONCE_SAMPLES: usize = 128 << 20;

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
    /// What came of it.
    pub written: Written,
    /// Pictures that could be under way at once.
    pub at_once: usize,
    /// What the policy decided: pictures of one worker, and pictures whose rows several shared.
    pub decided: Statistics,
    /// Calls that were off-loaded by themselves.
    pub calls: CallTimes,
    /// Who computed what when, if it was asked for.
    pub trace: Option<Trace>,
    /// The pictures as players show them, if they were asked for; the file is to be finished.
    pub shown: Option<Shown>,
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

/// Where pictures come from, in the order of decoding.
struct Front<'a, 'i> {
    input: &'a mut Input<'i>,
    encoder: Encoder<'a>,
    bytes: Vec<u8>,
    /// Why there are no more pictures, if not because all were read.
    error: Option<Error>,
}

/// Where they go.
struct Back {
    output: Output,
    /// Where pictures go as players show them.
    shown: Option<Shown>,
    /// Those that were complete before one that comes before them.
    held: BTreeMap<u64, Encoded>,
    /// Where a rate is followed: what was written took so many bits, as far as the encoder was not told.
    taken: Option<Vec<u64>>,
    pictures: u64,
    error: Option<Error>,
}

/// All that strands share.
struct Pipeline<'a, 'i> {
    front: Mutex<Front<'a, 'i>>,
    back: Mutex<Back>,
    /// Pictures written.
    written: Steps,
    /// Pictures that have been begun and are not complete, in the order of decoding.
    under_way: Mutex<VecDeque<Arc<Flight<'a>>>>,
    /// Memory of pictures that have been encoded, to be filled again.
    spare: Mutex<Vec<Source>>,
    is_over: AtomicBool,
    /// Ends all waits, since the run has failed.
    failed: Abort,
    /// The user's.
    abort: &'a Abort,
    watch: &'a (dyn Fn(u64) + Sync),
}

impl<'a, 'i> Pipeline<'a, 'i> {
    fn new(
        front: Front<'a, 'i>,
        (output, shown): (Output, Option<Shown>),
        taken: Option<Vec<u64>>,
        abort: &'a Abort,
        watch: &'a (dyn Fn(u64) + Sync),
    ) -> Pipeline<'a, 'i> {
        Pipeline {
            front: Mutex::new(front),
            back: Mutex::new(Back { output, shown, held: BTreeMap::new(), taken, pictures: 0, error: None }),
            written: Steps::default(),
            under_way: Mutex::new(VecDeque::new()),
            spare: Mutex::new(Vec::new()),
            is_over: AtomicBool::new(false),
            failed: Abort::new(),
            abort,
            watch,
        }
    }

    /// The next picture in the order of decoding; none if there are no more or the run is over.
    fn begin(&self) -> Option<Arc<Flight<'a>>> {
        let mut front = lock(&self.front);
        let Front { input, encoder, bytes, error } = &mut *front;
        loop {
            if self.is_over() {
                return None;
            }
            if self.abort.is_raised() {
                self.fail(&mut lock(&self.back), Error::Interrupted);
                return None;
            }
            match encoder.advance() {
                Next::Picture(flight) => {
                    let flight = Arc::from(flight);
                    lock(&self.under_way).push_back(Arc::clone(&flight));
                    return Some(flight);
                }
                Next::Source => match input.read(bytes) {
                    Ok(true) => {
                        let mut source = lock(&self.spare).pop().unwrap_or_default();
                        source.fill(input.properties().size, bytes);
                        encoder.push(source);
                    }
                    // It was not read on, since a signal came.
                    Err(_) if self.abort.is_raised() => {
                        self.fail(&mut lock(&self.back), Error::Interrupted);
                        return None;
                    }
                    ended => {
                        *error = ended.err();
                        encoder.end();
                    }
                },
                Next::Bits(pictures) => {
                    self.written.wait_for(pictures, &self.failed).ok()?;
                    lock(&self.back)
                        .taken
                        .iter_mut()
                        .flat_map(|taken| taken.drain(..))
                        .for_each(|bits| encoder.learn(bits));
                }
                Next::End => self.is_over.store(true, Ordering::Relaxed),
            }
        }
    }

    /// All rows of a picture are done: it is written as soon as those before it are.
    fn finish(&self, flight: &Flight<'_>) {
        lock(&self.under_way).retain(|other| other.place != flight.place);
        let encoded = flight.encoded();
        let mut back = lock(&self.back);
        if let Some(shown) = &mut back.shown {
            let shot = flight.wave.shot();
            if let Err(error) = shown.add(shot.picture.number, &flight.shown(), &shot.source) {
                return self.fail(&mut back, error);
            }
        }
        back.held.insert(flight.place, encoded);
        while let Some(next) = {
            let place = back.pictures;
            back.held.remove(&place)
        } {
            if let Err(error) = back.output.write(&next) {
                return self.fail(&mut back, error);
            }
            if let Some(taken) = &mut back.taken {
                taken.push(next.units.iter().map(|unit| 8 * unit.len() as u64).sum());
            }
            back.pictures += 1;
            self.written.signal();
            (self.watch)(back.pictures);
        }
    }

    fn fail(&self, back: &mut Back, error: Error) {
        back.error.get_or_insert(error);
        self.is_over.store(true, Ordering::Relaxed);
        self.failed.raise();
    }

    /// No picture is to be begun.
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Pictures by a strand: read, encoded, written. More than one only where one is to be under way at once.
    fn pictures(&self, strand: &Strand<'_>, rows: usize, count: usize) {
        let mut flights = Vec::new();
        flights.resize_with(count, OnceLock::new);
        let next = AtomicUsize::new(0);
        let body = |iterations: std::ops::Range<usize>, ()| {
            let guard = RaisedOnPanic(&self.failed);
            for _ in iterations {
                let flight = &flights[next.fetch_add(1, Ordering::Relaxed) / rows];
                // Whoever comes first begins it, so it has a worker then, and pictures before it have, too.
                if let Some(flight) = flight.get_or_init(|| self.begin()) {
                    self.help(flight);
                    self.step(flight);
                }
            }
            std::mem::forget(guard);
        };
        strand.offload(PICTURES, rows * count, 1, (), body, |(), ()| ());
        flights.into_iter().for_each(|flight| self.spare(flight.into_inner().flatten()));
    }

    fn step(&self, flight: &Flight<'_>) {
        if flight.wave.step(&self.failed) {
            self.finish(flight);
        }
    }

    /// While the picture would wait for others, rows of these are done instead: who is slower, or disturbed, is not waited for. No
    /// row has been claimed meanwhile that others may wait for.
    fn help(&self, flight: &Arc<Flight<'a>>) {
        while let Some(other) = self.instead(flight) {
            self.step(&other);
            self.spare(Some(other));
        }
    }

    /// A picture of which a row is to be done before the next one of this.
    fn instead(&self, flight: &Arc<Flight<'a>>) -> Option<Arc<Flight<'a>>> {
        // Most wait for nothing; others' list is not asked for then.
        if flight.wave.waits() != Some(true) || self.failed.is_raised() {
            return None;
        }
        let under_way = lock(&self.under_way);
        let before = under_way.iter().take_while(|other| other.place < flight.place);
        instead(&flight, before, |flight| flight.wave.waits()).cloned()
    }

    /// For comparison: by the strand itself, but calls.
    fn picture_by_calls(&self, by: &FromStrand<'_, '_>) {
        let flight = self.begin();
        if let Some(flight) = &flight {
            for _ in 0..flight.wave.jobs() {
                if flight.wave.step_by(&self.failed, Some(by)) {
                    self.finish(flight);
                }
            }
        }
        self.spare(flight);
    }

    /// Whoever is the last to have it gives back what it was made of.
    fn spare(&self, flight: Option<Arc<Flight<'_>>>) {
        lock(&self.spare).extend(flight.and_then(Arc::into_inner).map(|flight| flight.wave.into_source()));
    }
}

/// What takes less memory.
pub const LESS_MEMORY: &str = "give fewer --threads, --refs, --long or --bframes, or smaller pictures";

/// Refuses pictures for which the system has no memory: so many as decoders see, each predicted from so many, and so many as they
/// came. What else a run takes is little beside these; where even that is not given, the program ends then
/// ([`multigrain_console::memory`]).
fn check_memory(properties: &Properties, pictures: usize, references: usize, sources: usize) -> Result<(), Error> {
    let source = size_of::<Block>() * properties.size.macroblocks();
    let bytes = pictures * Picture::bytes(properties.size, references) + sources * source;
    let mut memory: Vec<u8> = Vec::new();
    tried(|| memory.try_reserve_exact(bytes)).map_err(|_| {
        let Size { width, height } = properties.size;
        Error::Request(format!(
            "{pictures} pictures of {width} x {height} are in memory at once, and {sources} as they came; they take {} MiB, \
             which the system does not give; {LESS_MEMORY}",
            bytes >> 20
        ))
    })
}

/// Encodes all pictures of the input to the output, and what players show of them, if anywhere. `watch` is told how many are done.
///
/// # Errors
/// The input cannot be read or is cut off, the output cannot be written, or the user ended the run.
pub fn run(
    input: &mut Input<'_>,
    (output, shown): (Output, Option<Shown>),
    options: Options,
    execution: &Execution,
    abort: &Abort,
    watch: &(dyn Fn(u64) + Sync),
) -> Result<Finished, Error> {
    let properties = input.properties();
    let kernels = Kernels::new(execution.isa);
    let encoder = Encoder::new(properties, options, &kernels);
    let sets = encoder.parameter_sets();
    let is_by_call = execution.cut == Cut::Macroblocks(1);
    let workers = if is_by_call { 1 } else { execution.threads };
    let rows = properties.size.rows();
    let at_once = match execution.cut {
        Cut::Rows => {
            let most = (AT_ONCE_SAMPLES / (properties.size.width * properties.size.height)).max(2);
            pictures_at_once(rows, options.structure, options.keys.interval == 1).min(most).min(workers)
        }
        Cut::Macroblocks(_) => 1,
    };
    // One more is being read, and of each but one the last row may be somebody's who helps.
    let (kept, begun) = (options.structure.kept(), 2 * at_once - 1);
    check_memory(&properties, kept + begun, kept, begun + encoder.waiting_at_once() + 1)?;
    let count = if at_once == 1 && workers > 1 { TASK_ROWS.div_ceil(rows) } else { 1 };
    let scheduler = Scheduler::new(SchedulerOptions {
        policy: if is_by_call { Policy::Edtlp } else { execution.policy },
        workers,
        // Whoever is called works on another processor, as the synergistic processors of the thesis did.
        hosts: if is_by_call { Hosts::Own(1) } else { Hosts::Workers },
        trace: execution.trace,
        // Others work beside it: whoever makes its input, or more of its kind. Bound to the first processors it would wait for
        // these while others have nothing to do.
        bind: is_by_call,
        // A picture takes milliseconds: whether sharing it pays needs no trials on calls.
        throttle: false,
        ..SchedulerOptions::default()
    });
    let scheduler = scheduler.map_err(|error| {
        Error::Request(match error {
            SchedulerError::Policy(PolicyError::TeamTooLarge { policy, wanted, workers }) => format!(
                "--policy {policy} has {wanted} threads share each picture, and there are {workers}; give --threads {wanted} or \
                 more, or a smaller number behind the colon"
            ),
            other => other.to_string(),
        })
    })?;
    let taken = matches!(options.rate, Rate::Bits(_)).then(Vec::new);
    let front = Front { input, encoder, bytes: Vec::new(), error: None };
    let pipeline = Pipeline::new(front, (output, shown), taken, abort, watch);
    let strand = |strand: &Strand<'_>| {
        let mut calls = CallTimes::default();
        while !pipeline.is_over() {
            match execution.cut {
                Cut::Rows => pipeline.pictures(strand, rows, count),
                Cut::Macroblocks(macroblocks) => {
                    let by = FromStrand { strand, macroblocks, times: Cell::new(calls) };
                    pipeline.picture_by_calls(&by);
                    calls = by.times.get();
                }
            }
        }
        calls
    };
    let outcome = scheduler.run(vec![strand; at_once])?;
    let unlocked = |error| if let Some(error) = error { Err(error) } else { Ok(()) };
    let back = pipeline.back.into_inner().unwrap_or_else(PoisonError::into_inner);
    unlocked(back.error)?;
    unlocked(lock(&pipeline.front).error.take())?;
    if back.pictures == 0 {
        let front = lock(&pipeline.front);
        return Err(front.input.refused("has no pictures; give one that has".to_owned()));
    }
    Ok(Finished {
        pictures: back.pictures,
        written: back.output.finish(&properties, &sets)?,
        at_once,
        decided: if execution.cut == Cut::Rows { outcome.statistics } else { Statistics::default() },
        calls: outcome.results.into_iter().next().unwrap_or_default(),
        trace: outcome.trace,
        shown: back.shown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{Profile, Structure};
    use crate::levels::Taken;
    use crate::output::Container;
    use crate::rate::Keys;
    use crate::search::Effort;

    /// Of three pictures of eight rows, whose next row needs six of the one before: what helps the last one does just what is needed of
    /// the others, the first ones first, and claims nothing of the last one itself.
    #[test]
    fn who_would_wait_does_rows_of_pictures_before() {
        let mut bytes = b"YUV4MPEG2 W16 H128\n".to_vec();
        for _ in 0..3 {
            bytes.extend(b"FRAME\n");
            bytes.extend([100; 16 * 128 * 3 / 2]);
        }
        let folder = tempfile::tempdir().unwrap();
        let mut input = Input::open(Box::new(&bytes[..]), "it", None, |said| said).unwrap();
        let (properties, kernels, abort) = (input.properties(), Kernels::new(Isa::detect()), Abort::new());
        let options = Options {
            rate: Rate::Constant(30),
            keys: Keys { interval: 250, at_cuts: false },
            effort: Effort { steps: 1, fine: 2, has_parts: false, skips_first: true, enough: 64, intra: 5 },
            profile: Profile::Baseline,
            structure: Structure::PLAIN,
        };
        let output =
            Output::file(&folder.path().join("out"), Container::Bytes, Taken::new(&properties, 1), None).unwrap();
        let encoder = Encoder::new(properties, options, &kernels);
        let front = Front { input: &mut input, encoder, bytes: Vec::new(), error: None };
        let pipeline = Pipeline::new(front, (output, None), None, &abort, &|_| ());
        let flights: Vec<_> = std::iter::from_fn(|| pipeline.begin()).collect();
        let complete = || flights.iter().map(|flight| flight.wave.shot().picture.complete.count()).collect::<Vec<_>>();
        pipeline.help(&flights[0]);
        assert_eq!(complete(), [0, 0, 0], "what waits for nothing helps nobody");
        pipeline.help(&flights[1]);
        assert_eq!(complete(), [6, 0, 0]);
        pipeline.help(&flights[2]);
        assert_eq!(complete(), [8, 6, 0]);
        assert_eq!(lock(&pipeline.under_way).len(), 2, "the first one is written");
        pipeline.step(&flights[2]);
        assert_eq!(complete(), [8, 6, 1]);
        pipeline.failed.raise();
        pipeline.help(&flights[2]);
        assert_eq!(complete(), [8, 6, 1], "a run that failed does no more");
    }
}
