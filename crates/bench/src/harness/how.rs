//! How things are measured: what can be typed besides the rows.

use multigrain::parse_bytes;
use std::path::PathBuf;

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
    /// Where `levels` and `collectives` alone [default: .], `papers`, `scaling` and `dispatch` [default: nowhere] put their
    /// figures
    #[arg(long, value_name = "DIR")]
    pub(crate) figures: Option<PathBuf>,
    /// Threads of both sides
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4096))]
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
}
