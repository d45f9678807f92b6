//! `multigrain bench`: our runs beside their peers, taking turns in one run.
//!
//! A row is one measurement of ours, the same work done by each of its peers, the ratio of the medians and the bar that
//! it is held against. What a peer is, how it is installed and how it talks stands in `bench/README.md`.

mod alignments;
mod call;
mod collectives;
mod dispatch;
mod driver;
mod encode;
mod encrypt;
mod fft3d;
mod files;
mod from_files;
mod grains;
mod gravity;
mod in_memory;
mod levels;
mod lines;
mod papers;
mod peers;
mod products;
mod queens;
mod rounds;
mod row;
mod search;
mod show;
mod sim;
mod strands;
mod svg;
mod trees;

use crate::failure::{Failure, say};
use crate::interrupt::Interrupt;
use crate::output::print;
use crate::run::fresh_seed;
use clap::ValueEnum;
use multigrain::app::AppJob;
use multigrain::{Abort, Error, Options, Outcome, Report, Runtime, Settings, parse_bytes};
use peers::Catalogue;
use row::Row;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// Product of two matrices in memory; MKL, OpenBLAS
    Sgemm,
    /// Product of matrices in files, within 512 MiB; our own speed in memory
    SgemmFiles,
    /// Product of matrices in files, within 128 MiB; NumPy memory maps, dask
    SgemmPeers,
    /// y = a x + y in memory; MKL, OpenBLAS
    Saxpy,
    /// Product of a matrix and a vector in memory; MKL, OpenBLAS
    Sgemv,
    /// a x + y from files; the disk's rate
    SaxpyFiles,
    /// Product of a matrix and a vector from files; the disk's rate
    SgemvFiles,
    /// Convolution from files; the disk's rate
    Conv2dFiles,
    /// Convolution in memory; OpenCV
    Conv2d,
    /// Fourier transform of 256^3 complex numbers in memory, in place; FFTW, MKL
    Fft3d,
    /// Fourier transform of 4 GiB from a file to another, within 512 MiB; the disk's rate, NumPy memory maps
    Fft3dFiles,
    /// A profile against a database of protein sequences, all filters off; hmmsearch --max
    Hmmer,
    /// Direct N-body, 100 steps in memory; a loop by hand with AVX-512 rsqrt14
    Gravity,
    /// Empty calls; oneTBB, StarPU
    Call,
    /// Every application on every machine that this computer can be, and where its time goes, as a table and figures;
    /// only when it is named
    Levels,
    /// 1 to 16 searches for trees under every policy, as a table and figures; only when it is named
    Multigrain,
    /// Barrier, broadcast, reduce, allreduce among threads; std, hurdles, libgomp, LLVM OpenMP, Open MPI
    Collectives,
    /// The simulator: an event, a Fourier transform on a thousand nodes
    Sim,
    /// Switches, off-loads and shared loops of strands; oneTBB, libgomp, rayon; searches in miniature under each policy
    Strands,
    /// Independent jobs by queue and by mailboxes; crossbeam-channel, rayon, oneTBB. Alone also over lengths of jobs and
    /// numbers of workers, as a table and figures
    Dispatch,
    /// Likelihood kernels of trees; BEAGLE
    PhyloKernels,
    /// One search for a maximum-likelihood tree; RAxML, IQ-TREE
    PhyloSearch,
    /// Bootstraps of a maximum-likelihood tree; RAxML, IQ-TREE
    PhyloBootstraps,
    /// Encryption in memory and of files; one core of aws-lc, a copy of the memory, age; only when it is named
    Encrypt,
    /// Video as H.264; x264, one worker, the same kernels off-loaded call by call; only when it is named
    Encode,
    /// All solutions of 16 queens on one core, of 17 on all threads; a look-ahead search with bit vectors, one worker
    Queens,
    /// Published figures beside simulated ones, and their figures drawn; only when it is named
    Papers,
    /// How two applications and a thousand bootstraps scale on larger machines, in virtual time; only when it is named
    Scaling,
}

impl Name {
    /// Whether it prints something else than rows beside peers.
    fn is_alone(self) -> bool {
        matches!(self, Name::Levels | Name::Papers | Name::Scaling | Name::Multigrain)
    }
}

/// Our runs beside their peers, in turns: medians, ratios, and whether each bar holds
#[derive(clap::Args, Debug)]
pub(crate) struct BenchArgs {
    /// What to measure [default: everything that is not only measured when it is named]
    #[arg(value_enum, value_name = "ROW")]
    rows: Vec<Name>,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
    /// Turns of each side
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Small sizes: shows that everything works; bars are not judged
    #[arg(long)]
    quick: bool,
    /// Memory budget of the rows from files, instead of each row's own
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Where the rows from files put their files
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Shows of `collectives` every algorithm at every group size, instead of a line for each operation and a picture
    #[arg(long)]
    verbose: bool,
    /// Where `levels` and `collectives` alone [default: .], `papers`, `scaling` and `dispatch` [default: nowhere] put their
    /// figures
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Threads of both sides
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: u32,
    /// Profile of the row hmmer, instead of a generated one
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Alignment of the rows phylo-search, phylo-bootstraps and multigrain, instead of generated ones
    #[arg(long, value_name = "FILE")]
    alignment: Option<PathBuf>,
    /// Numbers of searches of `multigrain`, such as 1,3,8 [default: 1 to 16]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000))]
    searches: Vec<u32>,
    /// Keeps what `multigrain` measures in this file and counts what is there already, so that it can be run in parts
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Video (YUV4MPEG2) of the rows encode, instead of a generated one
    #[arg(long, value_name = "FILE")]
    video: Option<PathBuf>,
    /// Database of the row hmmer, instead of a generated one
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
    /// A peer that is silent for so many seconds is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    peer_timeout: u64,
}

/// What every row needs.
pub(crate) struct Bench<'a> {
    args: &'a BenchArgs,
    catalogue: Catalogue,
    abort: Arc<Abort>,
}

impl Bench<'_> {
    fn threads(&self) -> usize {
        self.args.threads as usize
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.args.peer_timeout)
    }

    /// The full size, or the small one.
    fn size(&self, full: u64, quick: u64) -> u64 {
        if self.args.quick { quick } else { full }
    }

    /// A runtime with the bench's threads or others, and a memory budget for rows from files.
    fn runtime(&self, threads: usize, memory_bytes: Option<u64>) -> Result<Runtime, Error> {
        Runtime::new(Options { threads: Some(threads), memory_bytes, ..Options::default() })
    }

    fn settings(&self) -> Settings<'_> {
        Settings { abort: Some(&self.abort), ..Settings::default() }
    }

    fn row(&self, name: Name) -> Result<Vec<Row>, Failure> {
        match name {
            Name::Sgemm => in_memory::sgemm(self),
            Name::Saxpy => in_memory::saxpy(self),
            Name::Sgemv => in_memory::sgemv(self),
            Name::Conv2d => in_memory::conv2d(self),
            Name::SgemmFiles => products::within_memory_speed(self),
            Name::SgemmPeers => products::beside_peers(self),
            Name::SaxpyFiles => from_files::saxpy(self),
            Name::SgemvFiles => from_files::sgemv(self),
            Name::Conv2dFiles => from_files::conv2d(self),
            Name::Hmmer => search::hmmer(self),
            Name::Fft3d => fft3d::in_memory(self),
            Name::Fft3dFiles => fft3d::from_files(self),
            Name::Gravity => gravity::gravity(self),
            Name::Call => call::call(self),
            Name::Levels => Err(Failure::Request("levels has figures of its own: ask for it alone".into())),
            Name::Papers => Err(Failure::Request("papers has figures of its own: ask for it alone".into())),
            Name::Multigrain => Err(Failure::Request("multigrain has figures of its own: ask for it alone".into())),
            Name::Scaling => Err(Failure::Request("scaling has figures of its own: ask for it alone".into())),
            Name::Collectives => collectives::collectives(self),
            Name::Sim => sim::sim(self),
            Name::Strands => strands::strands(self),
            Name::Dispatch => dispatch::rows(self),
            Name::PhyloKernels => trees::kernels(self),
            Name::PhyloSearch => trees::search(self),
            Name::PhyloBootstraps => trees::bootstraps(self),
            Name::Encrypt => encrypt::encrypt(self),
            Name::Encode => encode::encode(self),
            Name::Queens => queens::queens(self),
        }
    }
}

/// What is measured must be right: a result of the row's own job is checked before its turns.
fn right(app: &AppJob, outcome: &Outcome) -> Result<String, Failure> {
    let checked = (app.check)(outcome, fresh_seed())?;
    match checked.holds() {
        true => Ok(format!("checked: {}", checked.covered)),
        false => Err(Failure::Run(format!(
            "the result of {} is wrong{}; multigrain run {} --check says more",
            app.job.app,
            checked.wrong.map(|wrong| format!(" ({wrong})")).unwrap_or_default(),
            app.job.app
        ))),
    }
}

/// Seconds of a run, from its first step to its last.
fn run_seconds(report: &Report) -> f64 {
    report.seconds
}

/// A failure in words.
fn reason(failure: Failure) -> String {
    match failure {
        Failure::Facade(error) => error.to_string(),
        Failure::Request(why) | Failure::Run(why) => why,
        Failure::ReaderGone => "standard output was closed".into(),
    }
}

/// Measures and prints.
pub(crate) fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let simulated = match args.rows[..] {
        [Name::Papers] => Some(papers::papers(args.figures.as_deref())?),
        [Name::Scaling] => Some(papers::scaling(args.figures.as_deref())?),
        _ => None,
    };
    if let Some((text, value)) = simulated {
        return print(&if args.json { crate::json::line(&value) } else { text });
    }
    let interrupt = Interrupt::install()?;
    interrupt.begin();
    let bench = Bench { args, catalogue: Catalogue::load()?, abort: interrupt.abort.clone() };
    if args.rows[..] == [Name::Levels] {
        let (text, value) = levels::levels(&bench, args.figures.as_deref().unwrap_or(Path::new(".")))?;
        return print(&if args.json { crate::json::line(&value) } else { text });
    }
    if args.rows[..] == [Name::Multigrain] {
        let (text, value) = grains::grains(&bench, args.figures.as_deref().unwrap_or(Path::new(".")))?;
        return print(&if args.json { crate::json::line(&value) } else { text });
    }
    let everything: Vec<Name> = Name::value_variants()
        .iter()
        .copied()
        .filter(|n| !n.is_alone() && !matches!(n, Name::Encode | Name::Encrypt))
        .collect();
    let names = if args.rows.is_empty() { &everything[..] } else { &args.rows[..] };
    let (mut rows, mut failed) = (Vec::new(), 0);
    for &name in names {
        let label = name.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default();
        match bench.row(name) {
            Ok(measured) => rows.extend(measured),
            Err(Failure::Facade(Error::Interrupted { .. })) => {
                return Err(Failure::Run("interrupted; nothing is left behind".into()));
            }
            // The other rows are worth having all the same.
            Err(failure) => {
                let why = reason(failure);
                say(&format!("{label}: {why}"));
                rows.push(Row::failed(&label, why));
                failed += 1;
            }
        }
    }
    let page = (args.rows[..] == [Name::Dispatch]).then(|| dispatch::page(&bench, args.figures.as_deref()));
    let (text, value) = page.transpose()?.unwrap_or_default();
    print(&match args.json {
        true => {
            let mut all = show::json(&rows, args.quick, args.threads, args.rounds);
            if !value.is_null() {
                all["page"] = value;
            }
            crate::json::line(&all)
        }
        false if names == [Name::Collectives] && !args.verbose => collectives::summary(&rows),
        false => {
            rows.retain(|row| args.verbose || !collectives::is_of_survey(row));
            format!("{}{}{text}", show::text(&rows, args.quick), if text.is_empty() { "" } else { "\n" })
        }
    })?;
    match failed {
        0 => Ok(()),
        1 => Err(Failure::Run("one row could not be measured".into())),
        n => Err(Failure::Run(format!("{n} rows could not be measured"))),
    }
}
