//! How things are measured: what can be typed besides the rows.

use multigrain::parse_bytes;
use multigrain::rooms::machine::parse_time;
use multigrain::rooms::team::contexts::Sharing;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub(crate) struct How {
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Turns of each side
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Small sizes: shows that everything works; bars are not judged
    #[arg(long)]
    pub(crate) quick: bool,
    /// Memory budget of the rows from files, instead of each row's own
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// Where the rows from files put their files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Shows of `collectives` every algorithm at every group size, instead of a line for each operation and a picture
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Where `levels` and `collectives` alone [default: .], `papers`, `scaling`, `loops` and `dispatch` [default: nowhere] put
    /// their figures
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
    /// Threads of both sides; workers of `loops`
    #[arg(long, visible_alias = "workers", value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: u32,
    /// Profile of the row hmmer, instead of a generated one
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Alignment of the rows phylo-search, phylo-bootstraps and multigrain, instead of generated ones
    #[arg(long, value_name = "FILE")]
    pub(crate) alignment: Option<PathBuf>,
    /// Numbers of searches of `multigrain`, such as 1,3,8 [default: 1 to 16]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) searches: Vec<u32>,
    /// Keeps what `multigrain` measures in this file and counts what is there already, so that it can be run in parts
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: Option<PathBuf>,
    /// Videos (YUV4MPEG2) of the rows encode, beside a generated one
    #[arg(long, value_name = "FILE")]
    pub(crate) video: Vec<PathBuf>,
    /// Database of the row hmmer, instead of a generated one
    #[arg(long, value_name = "FILE")]
    pub(crate) database: Option<PathBuf>,
    /// A peer that is silent for so many seconds is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) peer_timeout: u64,
    #[command(flatten, next_help_heading = "Options of loops")]
    pub(crate) loops: Loops,
}

/// What `loops` shares processors among.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Loops {
    /// Tasks of each program
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) tasks: u32,
    /// What each computes, alone on a processor
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "500 ms")]
    pub(crate) length: Duration,
    /// What each works on, and would have to be saved where processors have local stores
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, default_value = "256 KiB")]
    pub(crate) footprint: u64,
    /// How long a task has a processor, if another waits
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10 ms")]
    pub(crate) slice: Duration,
    /// How they share processors: fifo, slices, hand-off, system, such as system,hand-off [default: all, in this order]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) policy: Vec<Policy>,
    /// What they compute
    #[arg(long, value_enum, default_value_t = Work::Sweep)]
    pub(crate) work: Work,
    /// What tells a task that its slice is over
    #[arg(long, value_enum, default_value_t = Told::Timer)]
    pub(crate) told: Told,
    /// Programs at once, each of so many tasks on the same processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) programs: u32,
    /// So many of the programs spin instead, with twice as many threads as there are processors
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) greedy: u32,
    /// Steps of a task, as they were measured by who started this program
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) chunks: Option<u64>,
    /// One of several programs, which takes its turns when it is told to
    #[arg(long, hide = true, value_enum)]
    pub(crate) member: Option<Member>,
}

/// What one of several programs is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Member {
    /// It executes its tasks.
    Tasks,
    /// It spins.
    Greedy,
}

/// What a task computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Work {
    /// Goes through its footprint, some KiB between two looks
    Sweep,
    /// Multiplies matrices that fill its footprint; looks between register tiles
    Sgemm,
}

/// What tells a task that its slice is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Told {
    /// A timer, whose signal raises a flag
    Timer,
    /// The clock, which it reads at each look
    Clock,
}

/// Who has a processor that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy(pub(crate) Sharing);

impl Policy {
    pub(crate) const ALL: [Policy; 4] =
        [Policy(Sharing::Fifo), Policy(Sharing::Slices), Policy(Sharing::HandOff), Policy(Sharing::System)];

    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            Sharing::Fifo => "fifo",
            Sharing::Slices => "slices",
            Sharing::HandOff => "hand-off",
            Sharing::System => "system",
        }
    }
}

impl std::str::FromStr for Policy {
    type Err = String;
    fn from_str(text: &str) -> Result<Policy, String> {
        let known = Policy::ALL.map(Policy::name).join(", ");
        let found = Policy::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| format!("\"{text}\" is no policy; policies: {known}"))
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let ns = parse_time(text).map_err(|e| e.to_string())?;
    Duration::try_from_secs_f64(ns * 1e-9)
        .map_err(|_| format!("{text} is no time that can pass; give one such as 10 ms"))
}
