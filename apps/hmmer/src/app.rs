//! The command: sequences of a database are scored against profiles, and the hits become a table.

use crate::domain::{Bound, Finder};
use crate::generate as inputs;
use crate::kernel::{self, reference};
use crate::profile::{Profile, null1, read_profiles};
use crate::search::{Search, for_scores};
use crate::sequence::{Database, Limit, SequenceError};
use crate::table::{Footer, Thresholds, rows, write_footer, write_header, write_rows};
use crate::task::{SCORES, Score};
use multigrain::app::{AppJob, Application, Checked, Comparison, rounding_bound};
use multigrain::prelude::*;
use multigrain::whole;
use multigrain_simd::Isa;
use std::f64::consts::LN_2;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scores of protein sequences against profile hidden Markov models, every sequence in full: Viterbi, Forward, hits
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Profiles in HMMER's format (HMMER3/a to /f); one is generated when left out
    #[arg(value_name = "PROFILE", requires = "database")]
    pub profile: Option<PathBuf>,
    /// Protein sequences in FASTA, gzipped or not; generated when left out
    #[arg(value_name = "DATABASE")]
    pub database: Option<PathBuf>,
    /// File for the table of hits, in the layout of hmmsearch's --tblout; without it hits are not looked for
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// File for the Viterbi and Forward scores of every sequence, separated by tabs
    #[arg(long, value_name = "FILE")]
    pub scores: Option<PathBuf>,
    /// Sequences with an E-value of at most this are hits
    #[arg(short = 'E', long, value_name = "X", default_value_t = 10.0, allow_negative_numbers = true)]
    pub evalue: f64,
    /// Number of sequences that E-values refer to, instead of the database's
    #[arg(short = 'Z', long, value_name = "N", allow_negative_numbers = true)]
    pub targets: Option<f64>,
    /// Leaves scores uncorrected for biased composition
    #[arg(long)]
    pub nonull2: bool,
    /// Sequences that are generated
    #[arg(long, value_name = "N", default_value_t = 2000, conflicts_with = "profile")]
    pub n: u64,
    /// Nodes of the profile that is generated
    #[arg(long, value_name = "M", default_value_t = 150, conflicts_with = "profile")]
    pub m: u64,
    /// Seed of generated inputs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Default for Args {
    fn default() -> Args {
        Args {
            profile: None,
            database: None,
            output: None,
            scores: None,
            evalue: 10.0,
            targets: None,
            nonull2: false,
            n: 2000,
            m: 150,
            seed: 1,
        }
    }
}

/// Residues and headers may each take this share of the memory while they are read: they are copied into their array.
const MEMORY_SHARE: u64 = 8;
/// The most nodes and sequences that are generated.
const GENERATED_MAX: (u64, u64) = (100_000, 10_000_000);
/// Cells that `--check` computes again, in random sequences; all of a small search.
const CHECKED_CELLS: u64 = 1 << 25;
/// Hits of which it computes the domains again.
const CHECKED_HITS: usize = 16;
/// What a domain's score may differ by from that in double precision, in bits.
const DOMAIN_BITS: f64 = 2e-3;

/// Name of the second stage in traces.
const DOMAINS: &str = "hmmer-domains";

/// What a search is about.
struct Query {
    profiles: Vec<Profile>,
    database: Database,
    /// For each profile, the array of its scores.
    scores: Vec<usize>,
    args: Args,
}

impl Application for Args {
    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        self.check()?;
        let (profiles, database) = self.inputs(runtime)?;
        let sequences = database.len() as u64;
        let mut program = Program::new();
        let task = program.task(Score::new(Isa::detect(), database.offsets().clone()));
        let residues = program.array::<u8, 1>("residues", [database.residues()], Role::Input)?;
        let mut sources = vec![(residues.index(), database.source())];
        let mut scores = Vec::new();
        for (i, profile) in profiles.iter().enumerate() {
            // One profile needs no number.
            let name = |name: &str| if profiles.len() == 1 { name.to_owned() } else { format!("{name} {i}") };
            let tables = kernel::pack(&profile.local());
            let tables_ = program.array::<f32, 1>(&name("profile"), [tables.len() as u64], Role::Input)?;
            let scores_ = program.array::<f64, 2>(&name("scores"), [sequences, SCORES], Role::Output)?;
            program.call(task, (residues.all(), tables_.all(), scores_.all()), Score::whole())?;
            let bytes = tables.iter().flat_map(|x| x.to_le_bytes()).collect();
            sources.push((tables_.index(), Source::Bytes(bytes)));
            scores.push(scores_.index());
        }
        let job = Job::new("hmmer", program).with_afterwards(DOMAINS);
        let job = [&self.profile, &self.database].into_iter().flatten().fold(job, |job, path| job.with_file_read(path));
        let job = [&self.output, &self.scores].into_iter().flatten().fold(job, |job, path| job.with_file_written(path));
        let job = sources.into_iter().fold(job, |job, (array, source)| job.with_source(array, source));
        let shape = vec![
            ("sequences", sequences),
            ("residues", database.residues()),
            ("profiles", profiles.len() as u64),
            ("nodes", profiles.iter().map(|p| p.nodes() as u64).sum()),
        ];
        let query = Arc::new(Query { profiles, database, scores, args: self.clone() });
        let for_check = query.clone();
        let check = Box::new(move |outcome: &Outcome, seed: u64| for_check.check(outcome, seed));
        let writes = self.output.is_some() || self.scores.is_some();
        let after = writes.then(|| Box::new(move |outcome: &Outcome| query.write(outcome)) as Box<_>);
        Ok(AppJob { job, shape, check, after })
    }
}

impl Args {
    /// Refuses numbers that make no sense, and outputs that could not be written after the work.
    fn check(&self) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Request(what));
        if !(self.evalue > 0.0 && self.evalue.is_finite()) {
            return refuse(format!("--evalue {}: a number above 0 is needed, such as 10 or 1e-5", self.evalue));
        }
        if let Some(n) = self.targets.filter(|n| !(*n > 0.0 && n.is_finite())) {
            return refuse(format!("--targets {n}: a number above 0 is needed, such as 1e6"));
        }
        let (nodes, sequences) = GENERATED_MAX;
        if !(1..=nodes).contains(&self.m) || !(1..=sequences).contains(&self.n) {
            return refuse(format!(
                "--m {} --n {}: 1 to {nodes} nodes and 1 to {sequences} sequences can be generated",
                self.m, self.n
            ));
        }
        Ok([&self.output, &self.scores].into_iter().flatten().try_for_each(|path| whole::check_target(path))?)
    }

    /// Reads or makes profiles and sequences.
    fn inputs(&self, runtime: &Runtime) -> Result<(Vec<Profile>, Database), Error> {
        let target = self.output.as_ref().or(self.scores.as_ref()).and_then(|path| path.parent());
        let limit = Limit {
            memory_bytes: runtime.memory_bytes()? / MEMORY_SHARE,
            directory: target.filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        };
        let request = |e: &dyn std::error::Error| Error::Request(e.to_string());
        let nodes = self.m as usize;
        let profiles = match &self.profile {
            Some(path) => read_profiles(path),
            None => Profile::parse(inputs::profile(self.seed, nodes).as_bytes(), Path::new("(generated)")),
        }
        .map_err(|e| request(&e))?;
        let database = match &self.database {
            Some(path) => Database::read(path, limit),
            None => {
                let text = inputs::sequences(self.seed, self.n, nodes);
                Database::from_text(text.as_bytes(), Path::new("(generated)"), limit)
            }
        };
        Ok((profiles, database.map_err(|e| request(&e))?))
    }

    /// The options that decide what the table holds, as they were typed.
    fn options(&self) -> String {
        let mut text = format!("-E {}", self.evalue);
        if let Some(targets) = self.targets {
            text += &format!(" -Z {targets}");
        }
        if self.nonull2 {
            text += " --nonull2";
        }
        text
    }
}

/// The last part of a path, for tables that are equal wherever they are made.
fn file_name(path: &Option<PathBuf>) -> String {
    let name = path.as_ref().and_then(|path| path.file_name());
    name.map_or_else(|| "(generated)".to_owned(), |name| name.to_string_lossy().into_owned())
}

impl Query {
    /// What is asked for, written whole or not at all.
    fn write(&self, outcome: &Outcome) -> Result<(), Error> {
        let failed = |path: &Path| {
            let name = path.display().to_string();
            move |e: std::io::Error| Error::After(format!("cannot write {name}: {e}; free space, or name another file"))
        };
        let table = self.args.output.as_ref().map(|path| self.table(outcome).map(|text| (path, text))).transpose()?;
        if let Some(path) = &self.args.scores {
            whole::write(path, |out| {
                writeln!(out, "#hmm\tseq\tL\tnull1_nats\tViterbi_nats\tForward_nats\tViterbi_bits\tForward_bits")?;
                self.profiles
                    .iter()
                    .zip(&self.scores)
                    .try_for_each(|(profile, &scores)| {
                        for_scores(outcome, scores, &self.database, |i, scores| {
                            let (name, _) = self.database.header(i).map_err(|e| Error::After(e.to_string()))?;
                            let (length, raw) = (self.database.length(i), [scores.viterbi, scores.forward]);
                            let null = null1(length as usize);
                            let [viterbi, forward] = raw.map(|nats| (nats - null) / LN_2);
                            writeln!(
                                out,
                                "{}\t{name}\t{length}\t{null:.6}\t{:.6}\t{:.6}\t{viterbi:.6}\t{forward:.6}",
                                profile.name, raw[0], raw[1]
                            )
                            .map_err(failed(path))
                        })
                    })
                    .map_err(std::io::Error::other)
            })
            .map_err(|e| as_it_was(e, failed(path)))?;
        }
        match table {
            Some((path, text)) => whole::write(path, |out| out.write_all(&text)).map_err(failed(path)),
            None => Ok(()),
        }
    }

    /// The text of the table.
    fn table(&self, outcome: &Outcome) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        let written = |result: std::io::Result<()>| result.map_err(|e| Error::After(e.to_string()));
        for (number, (profile, &scores)) in self.profiles.iter().zip(&self.scores).enumerate() {
            let targets = self.args.targets.unwrap_or(self.database.len() as f64);
            let thresholds = Thresholds { evalue: self.args.evalue, ..Thresholds::new(targets) };
            let search = Search {
                database: &self.database,
                profile,
                bound: Bound::new(profile.forward, targets, self.args.evalue),
                correct_bias: !self.args.nonull2,
                workers: outcome.machine.workers(),
                memory_bytes: outcome.free_bytes(),
                told: outcome.afterwards(DOMAINS),
            };
            let rows = rows(profile, search.hits(outcome, scores)?, &thresholds);
            if number == 0 {
                written(write_header(&mut text, &rows, &profile.name, profile.accession.as_deref()))?;
            }
            written(write_rows(&mut text, &rows))?;
        }
        let (query_file, target_file) = (file_name(&self.args.profile), file_name(&self.args.database));
        let options = self.args.options();
        let footer = Footer { query_file: &query_file, target_file: &target_file, options: &options };
        written(write_footer(&mut text, footer))?;
        Ok(text)
    }

    /// Compares the scores of random sequences with the recurrences in double precision, as odds: these are what is summed;
    /// and the scores of the domains of random hits with those of their envelopes.
    fn check(&self, outcome: &Outcome, seed: u64) -> Result<Checked, Error> {
        let count = self.database.len();
        let nodes: u64 = self.profiles.iter().map(|p| p.nodes() as u64).sum();
        let cells = self.database.residues().saturating_mul(nodes);
        let part = if cells <= CHECKED_CELLS { 1.0 } else { CHECKED_CELLS as f64 / cells as f64 };
        let uniform = |i: usize| (generate::f64_at(seed, i as u64) + 1.0) / 2.0;
        // At least one, whatever the dice say.
        let surely = (uniform(count) * count as f64) as usize % count;
        let mut comparison = Comparison::default();
        let (mut wrong, mut sequences, mut domains) = (None, 0u64, 0u64);
        let failed = |e: SequenceError| Error::After(e.to_string());
        for (profile, &array) in self.profiles.iter().zip(&self.scores) {
            let nodes = profile.local();
            let targets = self.args.targets.unwrap_or(count as f64);
            let bound = Bound::new(profile.forward, targets, self.args.evalue);
            let mut candidates = Vec::new();
            for_scores(outcome, array, &self.database, |i, scores| {
                if bound.may_be_reported(scores.forward, self.database.length(i) as usize) {
                    candidates.push(i);
                }
                if i != surely && uniform(i) >= part {
                    return Ok(());
                }
                sequences += 1;
                let residues = self.database.sequence(i).map_err(failed)?;
                let exact = reference(&nodes, &residues);
                // Along an alignment, a residue's number is rounded eight times: two constants, products and sums.
                let allowed = rounding_bound(8 * residues.len() as u64 + 8);
                for (found, exact) in [(scores.viterbi, exact.viterbi), (scores.forward, exact.forward)] {
                    let error = if found == exact { 0.0 } else { (found - exact).exp_m1().abs() };
                    if (error > allowed || error.is_nan()) && wrong.is_none() {
                        let name = self.database.header(i).map_err(failed)?.0;
                        wrong =
                            Some(format!("{name} scores {found} nats against {}, {exact} was expected", profile.name));
                    }
                    comparison.add_error(error / allowed, 1);
                }
                Ok(())
            })?;
            let mut finder = Finder::new(profile);
            let each = candidates.len().div_ceil(CHECKED_HITS).max(1);
            let begin = (uniform(count + 1) * each as f64) as usize;
            for &i in candidates.iter().skip(begin).step_by(each) {
                let residues = self.database.sequence(i).map_err(failed)?;
                let Some(hit) = finder.hit(&residues, !self.args.nonull2, &bound) else { continue };
                for domain in &hit.domains {
                    domains += 1;
                    let error = domain.error_bits(&nodes, &residues) / DOMAIN_BITS;
                    if (error > 1.0 || error.is_nan()) && wrong.is_none() {
                        let name = self.database.header(i).map_err(failed)?.0;
                        wrong =
                            Some(format!("the domain at {} to {} of {name} is scored wrong", domain.from, domain.to));
                    }
                    comparison.add_error(error, 1);
                }
            }
        }
        let all = count as u64 * self.profiles.len() as u64;
        let covered = format!(
            "Viterbi and Forward scores of {sequences} of {all} sequences, {}, and {domains} domains of hits, against the \
             recurrences in double precision",
            if sequences == all { "all of them" } else { "chosen at random" }
        );
        Ok(Checked { wrong, ..comparison.checked(1.0, covered) })
    }
}

/// An error that was ours before it passed through a writer, or the writer's own.
fn as_it_was(error: std::io::Error, failed: impl FnOnce(std::io::Error) -> Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => failed(error),
    }
}
