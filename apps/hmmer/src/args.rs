//! What can be asked of a search.

use crate::filter::Filters;
use std::path::PathBuf;

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

impl Args {
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
