//! The command: sequences of a database are scored against profiles, and the hits become a table.

use crate::domain::Finder;
use crate::filter::{self, Filters};
use crate::generate as inputs;
use crate::kernel;
use crate::profile::{Cutoff, Profile, read_profiles};
use crate::query::{DOMAINS, Query};
use crate::sequence::text::STANDARD_INPUT;
use crate::sequence::{Database, Limit};
use crate::table::{Threshold, Thresholds};
use crate::task::{self, Filter, SCORES, Score};
use multigrain::app::{AppJob, Application};
use multigrain::prelude::*;
use multigrain::whole;
use multigrain_simd::Isa;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options that say what is reported, which cutoffs of profiles say instead.
const THRESHOLDS: [&str; 8] = [
    "evalue",
    "score",
    "domain_evalue",
    "domain_score",
    "include_evalue",
    "include_score",
    "include_domain_evalue",
    "include_domain_score",
];

/// Protein sequences that profile hidden Markov models describe: the hits of hmmsearch
#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("tables").multiple(true))]
pub struct Args {
    /// Profiles of HMMER3 (text or binary) or HMMER2 (text), gzipped or not, - for the standard input; one is generated when left
    /// out
    #[arg(value_name = "PROFILE", requires = "database")]
    pub profile: Option<PathBuf>,
    /// Protein sequences in FASTA or Stockholm, gzipped or not, - for the standard input; generated when left out
    #[arg(value_name = "DATABASE")]
    pub database: Option<PathBuf>,
    /// File for the table of hits, in the layout of hmmsearch's --tblout; without it hits are not looked for
    #[arg(short, long, group = "tables", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// File for the table of the hits' domains, in the layout of hmmsearch's --domtblout
    #[arg(long, group = "tables", value_name = "FILE")]
    pub domtblout: Option<PathBuf>,
    /// File for hits, domains and their alignments, in the layout of hmmsearch's output
    #[arg(long, group = "tables", value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// File for the alignment of all significant domains, in Stockholm format
    #[arg(short = 'A', long, group = "tables", value_name = "FILE")]
    pub alignment: Option<PathBuf>,
    /// File for the Viterbi and Forward scores of every sequence, separated by tabs; all are there with --max only
    #[arg(long, value_name = "FILE", requires = "max")]
    pub scores: Option<PathBuf>,
    /// Every sequence is scored in full: no filter, more hits near the threshold
    #[arg(long, conflicts_with_all = ["f1", "f2", "f3", "nobias"])]
    pub max: bool,
    /// P-value that MSV, the first filter, lets pass
    #[arg(long = "F1", value_name = "X", default_value_t = 0.02)]
    pub f1: f64,
    /// P-value that Viterbi, the second filter, lets pass
    #[arg(long = "F2", value_name = "X", default_value_t = 1e-3)]
    pub f2: f64,
    /// P-value that Forward, the third filter, lets pass
    #[arg(long = "F3", value_name = "X", default_value_t = 1e-5)]
    pub f3: f64,
    /// Filters leave biased composition alone
    #[arg(long)]
    pub nobias: bool,
    /// Sequences with an E-value of at most this are hits
    #[arg(requires = "tables", short = 'E', long, value_name = "X", default_value_t = 10.0)]
    pub evalue: f64,
    /// Sequences with a score of at least this, in bits, are hits, instead of -E
    #[arg(short = 'T', long, requires = "tables", value_name = "X", conflicts_with = "evalue")]
    pub score: Option<f64>,
    /// Domains of hits with an E-value of at most this are reported
    #[arg(long = "domE", requires = "tables", value_name = "X", default_value_t = 10.0)]
    pub domain_evalue: f64,
    /// Domains of hits with a score of at least this are reported, instead of --domE
    #[arg(long = "domT", requires = "tables", value_name = "X", conflicts_with = "domain_evalue")]
    pub domain_score: Option<f64>,
    /// Hits with an E-value of at most this are significant
    #[arg(long = "incE", requires = "tables", value_name = "X", default_value_t = 0.01)]
    pub include_evalue: f64,
    /// Hits with a score of at least this are significant, instead of --incE
    #[arg(long = "incT", requires = "tables", value_name = "X", conflicts_with = "include_evalue")]
    pub include_score: Option<f64>,
    /// Domains of significant hits with an E-value of at most this are significant
    #[arg(long = "incdomE", requires = "tables", value_name = "X", default_value_t = 0.01)]
    pub include_domain_evalue: f64,
    /// Domains of significant hits with a score of at least this are significant, instead of --incdomE
    #[arg(long = "incdomT", requires = "tables", value_name = "X", conflicts_with = "include_domain_evalue")]
    pub include_domain_score: Option<f64>,
    /// The profile's gathering cutoffs (GA) are all thresholds
    #[arg(long = "cut_ga", requires = "tables", conflicts_with_all = THRESHOLDS)]
    pub cut_ga: bool,
    /// The profile's noise cutoffs (NC) are all thresholds
    #[arg(long = "cut_nc", requires = "tables", conflicts_with_all = THRESHOLDS, conflicts_with = "cut_ga")]
    pub cut_nc: bool,
    /// The profile's trusted cutoffs (TC) are all thresholds
    #[arg(long = "cut_tc", requires = "tables", conflicts_with_all = THRESHOLDS, conflicts_with_all = ["cut_ga", "cut_nc"])]
    pub cut_tc: bool,
    /// Number of sequences that E-values refer to, instead of the database's
    #[arg(short = 'Z', long, value_name = "N")]
    pub targets: Option<f64>,
    /// Number of sequences that E-values of domains refer to, instead of that of the hits
    #[arg(long = "domZ", value_name = "N")]
    pub domain_targets: Option<f64>,
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
    #[arg(long, default_value_t = 1, conflicts_with = "profile")]
    pub seed: u64,
}

impl Default for Args {
    fn default() -> Args {
        Args {
            profile: None,
            database: None,
            output: None,
            domtblout: None,
            report: None,
            alignment: None,
            scores: None,
            max: false,
            f1: 0.02,
            f2: 1e-3,
            f3: 1e-5,
            nobias: false,
            evalue: 10.0,
            score: None,
            domain_evalue: 10.0,
            domain_score: None,
            include_evalue: 0.01,
            include_score: None,
            include_domain_evalue: 0.01,
            include_domain_score: None,
            cut_ga: false,
            cut_nc: false,
            cut_tc: false,
            targets: None,
            domain_targets: None,
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
/// So many sequences take tenths of a second to be made.
const GENERATED_SLOWLY: u64 = 50_000;

impl Application for Args {
    const NAME: &'static str = "hmmer";

    fn prepare(&self, runtime: &Runtime) -> Result<AppJob, Error> {
        self.check()?;
        let (profiles, mut database) = self.inputs(runtime)?;
        let sequences = database.len() as u64;
        let thresholds =
            profiles.iter().map(|p| self.thresholds(p, sequences + database.empty())).collect::<Result<Vec<_>, _>>()?;
        if self.looks_for_hits() {
            check_domains(runtime, &profiles, &database)?;
        }
        let source = database.take_source();
        let (job, residues, results) = self.job(&profiles, &database, source)?;
        let shape = vec![
            ("sequences", sequences),
            ("residues", database.residues()),
            ("profiles", profiles.len() as u64),
            ("nodes", profiles.iter().map(|p| p.nodes() as u64).sum()),
        ];
        let query = Arc::new(Query { profiles, database, residues, results, thresholds, args: self.clone() });
        let for_check = query.clone();
        let check = Box::new(move |outcome: &Outcome, seed: u64| for_check.check(outcome, seed));
        let writes = self.outputs().next().is_some();
        let after = writes.then(|| Box::new(move |outcome: &Outcome| query.write(outcome)) as Box<_>);
        Ok(AppJob { job, shape, check, after })
    }
}

/// Refuses a search that has no memory for one domain as long as its profile, if any sequence can hold one. How much longer
/// regions take is known when they are found.
fn check_domains(runtime: &Runtime, profiles: &[Profile], database: &Database) -> Result<(), Error> {
    let longest = (0..database.len()).map(|i| database.length(i)).max().unwrap_or(0);
    profiles.iter().try_for_each(|profile| {
        let region = longest.min(profile.nodes() as u64);
        let what = format!("to find a domain as long as profile {} of {} nodes", profile.name, profile.nodes());
        runtime.check_work_bytes(Args::NAME, &what, Finder::working_bytes(profile, region, region))
    })
}

impl Args {
    /// What is run, and its arrays of residues and of results.
    fn job(
        &self,
        profiles: &[Profile],
        database: &Database,
        source: Source,
    ) -> Result<(Job, usize, Vec<usize>), Error> {
        let sequences = database.len() as u64;
        let mut program = Program::new();
        let (score, filter) = (
            Score::new(Isa::detect(), database.offsets().clone()),
            Filter::new(Isa::detect(), database.offsets().clone()),
        );
        let isa = filter.isa();
        let (score, filter) = match self.max {
            true => (Some(program.task(score)), None),
            false => (None, Some(program.task(filter))),
        };
        let residues = program.array::<u8, 1>("residues", [database.residues()], Role::Input)?;
        let mut sources = vec![(residues.index(), source)];
        let mut results = Vec::new();
        for (i, profile) in profiles.iter().enumerate() {
            // One profile needs no number.
            let name = |name: &str| if profiles.len() == 1 { name.to_owned() } else { format!("{name} {i}") };
            if let Some(task) = score {
                let tables = kernel::pack(&profile.local());
                let tables_ = program.array::<f32, 1>(&name("profile"), [tables.len() as u64], Role::Input)?;
                let scores = program.array::<f64, 2>(&name("scores"), [sequences, SCORES], Role::Output)?;
                program.call(task, (residues.all(), tables_.all(), scores.all()), task::whole())?;
                let bytes = tables.iter().flat_map(|x| x.to_le_bytes()).collect();
                sources.push((tables_.index(), Source::Bytes(bytes)));
                results.push(scores.index());
            } else if let Some(task) = filter {
                let tables = filter::pack(isa, profile, &self.filters());
                let tables_ = program.array::<u8, 1>(&name("profile"), [tables.len() as u64], Role::Input)?;
                let stages = program.array::<u8, 1>(&name("stages"), [sequences], Role::Output)?;
                program.call(task, (residues.all(), tables_.all(), stages.all()), task::whole())?;
                sources.push((tables_.index(), Source::Bytes(tables)));
                results.push(stages.index());
            }
        }
        let job = Job::new(Self::NAME, program).with_afterwards(DOMAINS).with_kept_bytes(database.kept_bytes());
        let files = [&self.profile, &self.database].into_iter().flatten().filter(|p| p.as_os_str() != STANDARD_INPUT);
        let job = files.fold(job, |job, path| job.with_file_read(path));
        let job = self.outputs().fold(job, |job, path| job.with_file_written(path));
        let job = sources.into_iter().fold(job, |job, (array, source)| job.with_source(array, source));
        Ok((job, residues.index(), results))
    }

    /// Refuses numbers that make no sense, and outputs that could not be written after the work.
    fn check(&self) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::Request(what));
        if [&self.profile, &self.database].iter().all(|p| p.as_ref().is_some_and(|p| p.as_os_str() == STANDARD_INPUT)) {
            return refuse("profiles and sequences cannot both come from the standard input; name a file".to_owned());
        }
        let positive = [
            ("--evalue", Some(self.evalue), "10 or 1e-5"),
            ("--domE", Some(self.domain_evalue), "10 or 1e-5"),
            ("--incE", Some(self.include_evalue), "0.01"),
            ("--incdomE", Some(self.include_domain_evalue), "0.01"),
            ("--targets", self.targets, "1e6"),
            ("--domZ", self.domain_targets, "100"),
            ("--F1", Some(self.f1), "0.02"),
            ("--F2", Some(self.f2), "0.001"),
            ("--F3", Some(self.f3), "1e-5"),
        ];
        for (name, value, such_as) in positive {
            if let Some(value) = value.filter(|value| !(*value > 0.0 && value.is_finite())) {
                return refuse(format!("{name} {value}: a number above 0 is needed, such as {such_as}"));
            }
        }
        let scores = [
            ("--score", self.score),
            ("--domT", self.domain_score),
            ("--incT", self.include_score),
            ("--incdomT", self.include_domain_score),
        ];
        if let Some((name, Some(value))) = scores.into_iter().find(|(_, value)| value.is_some_and(|x| !x.is_finite())) {
            return refuse(format!("{name} {value}: a number of bits is needed, such as 25"));
        }
        let (nodes, sequences) = GENERATED_MAX;
        if !(1..=nodes).contains(&self.m) || !(1..=sequences).contains(&self.n) {
            return refuse(format!(
                "--m {} --n {}: 1 to {nodes} nodes and 1 to {sequences} sequences can be generated",
                self.m, self.n
            ));
        }
        Ok(self.outputs().try_for_each(|path| whole::check_target(path))?)
    }

    /// Reads or makes profiles and sequences.
    fn inputs(&self, runtime: &Runtime) -> Result<(Vec<Profile>, Database), Error> {
        let target = self.outputs().next().and_then(|path| path.parent());
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
            Some(path) => Database::read(path, limit, runtime.workers()?),
            None => {
                runtime.check_kept_bytes(Self::NAME, Database::indices_bytes(self.n), 0, 0)?;
                self.check_room(runtime, &profiles)?;
                let text = inputs::Sequences::new(self.seed, self.n, nodes);
                Database::from_reader(text, Path::new("(generated)"), limit, self.n as usize)
            }
        };
        Ok((profiles, database.map_err(|e| request(&e))?))
    }

    /// Refuses sequences that take seconds to be made and would not fit then: how long they are is known in no time.
    fn check_room(&self, runtime: &Runtime, profiles: &[Profile]) -> Result<(), Error> {
        if self.n < GENERATED_SLOWLY {
            return Ok(());
        }
        let lengths = inputs::Sequences::new(self.seed, self.n, self.m as usize).lengths();
        let database = Database::of_lengths(lengths, self.n as usize);
        let (job, ..) = self.job(profiles, &database, Source::Generated { seed: self.seed })?;
        match runtime.plan(&job).map_err(|mut error| (error.enough().is_some(), error)) {
            Err((true, error)) => Err(error),
            // Whatever else is wrong is found when it comes to it.
            Ok(_) | Err((false, _)) => Ok(()),
        }
    }

    /// Files that are written.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.output, &self.domtblout, &self.report, &self.alignment, &self.scores].into_iter().flatten()
    }

    /// Whether hits are asked for.
    pub(crate) fn looks_for_hits(&self) -> bool {
        self.output.is_some() || self.shows_domains()
    }

    /// Whether anything tells where domains are.
    pub(crate) fn shows_domains(&self) -> bool {
        self.domtblout.is_some() || self.report.is_some() || self.alignment.is_some()
    }

    /// The thresholds of the filters.
    pub(crate) fn filters(&self) -> Filters {
        Filters { msv: self.f1, viterbi: self.f2, forward: self.f3, bias: !self.nobias }
    }

    /// What is reported of a profile's hits in so many sequences.
    fn thresholds(&self, profile: &Profile, sequences: u64) -> Result<Thresholds, Error> {
        let either = |score: Option<f64>, evalue| score.map_or(Threshold::Evalue(evalue), Threshold::Score);
        let all = Thresholds {
            targets: self.targets.unwrap_or(sequences as f64),
            domain_targets: self.domain_targets,
            report: either(self.score, self.evalue),
            report_domains: either(self.domain_score, self.domain_evalue),
            include: either(self.include_score, self.include_evalue),
            include_domains: either(self.include_domain_score, self.include_domain_evalue),
        };
        let cutoffs = [
            (self.cut_ga, "ga", profile.gathering),
            (self.cut_nc, "nc", profile.noise),
            (self.cut_tc, "tc", profile.trusted),
        ];
        let Some((_, name, cutoff)) = cutoffs.into_iter().find(|(asked, ..)| *asked) else { return Ok(all) };
        let Cutoff { sequence, domain } = cutoff.ok_or_else(|| {
            let (upper, profile) = (name.to_uppercase(), &profile.name);
            Error::Request(format!("--cut_{name}: profile {profile} has no line {upper}; give -T and --domT instead"))
        })?;
        let (sequence, domain) = (Threshold::Score(sequence), Threshold::Score(domain));
        Ok(Thresholds { report: sequence, include: sequence, report_domains: domain, include_domains: domain, ..all })
    }

    /// The options that decide what the table holds, as they can be typed.
    pub(crate) fn options(&self) -> String {
        let default = Args::default();
        // The first is always told.
        let mut text = self.score.map_or_else(|| format!("-E {}", self.evalue), |score| format!("-T {score}"));
        let scores = [
            ("--domT", self.domain_score),
            ("--incT", self.include_score),
            ("--incdomT", self.include_domain_score),
            ("-Z", self.targets),
            ("--domZ", self.domain_targets),
        ];
        let numbers = [
            ("--domE", self.domain_evalue, default.domain_evalue),
            ("--incE", self.include_evalue, default.include_evalue),
            ("--incdomE", self.include_domain_evalue, default.include_domain_evalue),
            ("--F1", self.f1, default.f1),
            ("--F2", self.f2, default.f2),
            ("--F3", self.f3, default.f3),
        ];
        let numbers =
            numbers.into_iter().filter(|(_, value, usual)| value != usual).map(|(name, value, _)| (name, Some(value)));
        for (name, value) in numbers.chain(scores) {
            text += &value.map_or_else(String::new, |value| format!(" {name} {value}"));
        }
        let flags = [
            ("--max", self.max),
            ("--nobias", self.nobias),
            ("--cut_ga", self.cut_ga),
            ("--cut_nc", self.cut_nc),
            ("--cut_tc", self.cut_tc),
            ("--nonull2", self.nonull2),
        ];
        for (name, _) in flags.into_iter().filter(|(_, on)| *on) {
            text += &format!(" {name}");
        }
        text
    }
}
