//! What can be typed behind the commands, apart from the applications.

use clap::ValueEnum;
use multigrain::rooms::machine::{UnitError, parse_time};
use multigrain::rooms::store::BackendChoice;
use multigrain::{Error, Job, Machine, MachineChoice, Mapping, Options, parse_bytes};
use multigrain_console::Failure;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The memories of this computer or of a machine file, with every edge's bandwidth and latency
#[derive(clap::Args, Debug)]
pub(crate) struct MachineArgs {
    /// A shipped machine (local, disk, disk+local, ...) or a machine file, instead of this computer
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// Writes the machine as a machine file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Measures nothing: constants stay as they were detected or written
    #[arg(long)]
    pub(crate) assumed: bool,
    /// Measures also how fast the leaves of these applications are, for simulations; without a list, of all that need
    /// no files
    #[arg(long, value_name = "APP,..", num_args = 0.., value_delimiter = ',', conflicts_with = "assumed")]
    pub(crate) leaves: Option<Vec<String>>,
}

/// Runs an application
#[derive(clap::Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Checks the whole result by other code in double precision, with probes that are random each time, and says what was
    /// covered
    #[arg(long, global = true, help_heading = COMMON)]
    pub(crate) check: bool,
    /// Continues a run of the same command that was interrupted or failed, if there is one
    #[arg(long, global = true, help_heading = COMMON)]
    pub(crate) resume: bool,
    /// Throws away what such a run has left, and begins again
    #[arg(long, global = true, help_heading = COMMON, conflicts_with = "resume")]
    pub(crate) discard: bool,
    /// How often completed work is made durable for --resume, such as 500 ms [default: 2 s]
    #[arg(long, value_name = "TIME", value_parser = interval, global = true, help_heading = COMMON)]
    pub(crate) journal_interval: Option<Duration>,
    /// Records every leaf, wait and transfer into this file, for the command `trace`
    #[arg(long, value_name = "FILE", global = true, help_heading = COMMON)]
    pub(crate) trace: Option<PathBuf>,
    /// Adds to the trace what the operating system did with the workers: when others were put before them, and who, as far as
    /// the system lets it be known
    #[arg(long, global = true, help_heading = COMMON, requires = "trace")]
    pub(crate) observe: bool,
}

/// What a run would move and need, without running it
#[derive(clap::Args, Debug)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Proves with the independent checker that the plan does what the program means
    #[arg(long, global = true, help_heading = COMMON)]
    pub(crate) verify: bool,
    /// Plans as so many ranks of a cluster do, each with this memory and these workers, and says what goes from one to another
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536), global = true)]
    pub(crate) ranks: Option<u32>,
}

/// What a run would be on any machine that can be described, in virtual time
#[derive(clap::Args, Debug)]
pub(crate) struct SimArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Records every leaf, wait and transfer into this file, for the command `trace`
    #[arg(long, value_name = "FILE", global = true, help_heading = COMMON)]
    pub(crate) trace: Option<PathBuf>,
    /// Lays the prediction over the trace of a real run of the same job
    #[arg(long, value_name = "FILE", global = true, help_heading = COMMON)]
    pub(crate) compare: Option<PathBuf>,
}

/// Where the time of a traced run went, what its length was made of, what it waited for longest, and how to avoid it
#[derive(clap::Args, Debug)]
pub(crate) struct TraceArgs {
    /// A file written by a run with --trace
    pub(crate) file: PathBuf,
    /// Writes the trace in another format instead
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Option<TraceTarget>,
    /// Where to, instead of beside the trace (for Paraver the .prv file; .pcf and .row lie beside it)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a trace can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceTarget {
    /// JSON that opens in Perfetto and in Chrome
    Perfetto,
    /// Three files for Paraver: .prv, .pcf and .row
    Paraver,
    /// One page that opens in any browser
    Html,
}

fn interval(text: &str) -> Result<Duration, UnitError> {
    // The unit's parser gives nanoseconds; more than five centuries is as good as never.
    parse_time(text).map(|ns| Duration::from_nanos(ns as u64))
}

/// A size; a bare number is one of bytes.
fn size(text: &str) -> Result<u64, UnitError> {
    text.trim().parse().or_else(|_| parse_bytes(text))
}

const COMMON: &str = "Options of every application";

/// What every application can be told.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = COMMON)]
pub(crate) struct Common {
    /// A shipped machine (local, disk, disk+local, ...) or a machine file, instead of this computer
    #[arg(long, value_name = "NAME|FILE", global = true)]
    pub(crate) machine: Option<String>,
    /// Capacity of the main memory, such as 256MiB or 1.5 GB, instead of the machine's
    // A size below zero is refused as a size, and not as an option that nobody knows.
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true, global = true)]
    pub(crate) memory: Option<u64>,
    /// Number of workers, instead of the machine's
    #[arg(long, value_name = "N", global = true)]
    pub(crate) threads: Option<usize>,
    /// Tunables to be used instead of the planner's choice
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) mapping: Option<PathBuf>,
    /// How files are reached
    #[arg(long, value_enum, default_value_t = Io::Auto, global = true)]
    pub(crate) io: Io,
    /// Prints one JSON object
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// How files are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Io {
    /// io_uring, or a pool of threads where the kernel refuses it
    Auto,
    /// io_uring or nothing
    Uring,
    /// A pool of threads with positional reads and writes
    Pool,
}

impl Common {
    /// Where several ranks run together: refuses files that are not the same for all.
    pub(crate) fn same_on_all_ranks(&self) -> Result<(), Failure> {
        let Some(ranks) = multigrain::ranks::joined() else { return Ok(()) };
        let text = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
        let machine = self.machine.as_ref().map_or_else(String::new, |name| text(name.as_ref()));
        let mapping = self.mapping.as_deref().map_or_else(String::new, text);
        Ok(multigrain::ranks::same(&ranks, &[("machine file", machine), ("mapping", mapping)])?)
    }

    /// The job, which may replace no file that these options name.
    pub(crate) fn with_files_read(&self, job: Job) -> Job {
        let machine = self.machine.as_deref().map(Path::new).filter(|path| path.is_file());
        machine.into_iter().chain(self.mapping.as_deref()).fold(job, Job::with_file_read)
    }

    /// The runtime's options.
    pub(crate) fn options(&self) -> Result<Options, Failure> {
        let machine = match &self.machine {
            None => MachineChoice::Detected,
            Some(name) => MachineChoice::Given(Box::new(Machine::named(name)?)),
        };
        let mapping = match &self.mapping {
            None => Mapping::default(),
            Some(path) => {
                let file = path.display().to_string();
                let text = multigrain::whole::open_input(path)
                    .and_then(std::io::read_to_string)
                    .map_err(|e| Failure::Request(format!("cannot read mapping {file}: {e}; check the path")))?;
                Mapping::parse(&text, &file).map_err(Error::from)?
            }
        };
        let backend = match self.io {
            Io::Auto => BackendChoice::Auto,
            Io::Uring => BackendChoice::Uring,
            Io::Pool => BackendChoice::Pool,
        };
        Ok(Options {
            machine,
            memory_bytes: self.memory,
            threads: self.threads,
            mapping,
            backend,
            ..Options::default()
        })
    }
}
