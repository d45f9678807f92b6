//! What can be typed.

use super::count::Count;
use crate::choose::{Besides, Criterion};
use multigrain::jobs::Dispatch;
use multigrain::parse_bytes;
use multigrain::rooms::team::strands::Policy;
use std::path::PathBuf;

/// Formats that can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FormatChoice {
    /// FASTA where the file begins with '>', PHYLIP elsewhere
    Auto,
    /// FASTA
    Fasta,
    /// PHYLIP: strict or relaxed, sequential or interleaved
    Phylip,
    /// NEXUS: the matrix of a block DATA or CHARACTERS
    Nexus,
}

/// How branch lengths of partitions hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BranchesChoice {
    /// One length of each branch for all partitions
    Linked,
    /// One length of each branch, times a speed of each partition that is fitted
    Scaled,
    /// Every partition has its own
    Unlinked,
}

/// Maximum-likelihood trees from an alignment of DNA or proteins
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Alignment in PHYLIP (strict or relaxed, sequential or interleaved), FASTA or NEXUS, which may be gzipped
    #[arg(value_name = "ALIGNMENT")]
    pub alignment: PathBuf,
    /// Model in RAxML-NG's syntax, such as GTR+F+G4, HKY+FO+I, LG+F+R4, BIN+F+G4+ASC, GTR{1/2/1/1/2/1}+FU{.3/.2/.2/.3}+G4m{0.5};
    /// or auto: the best by --criterion, for each partition that names none; auto+FO and auto+ASC: among those too [default: GTR+F+G4 for DNA, LG+G4 for proteins,
    /// BIN+F+G4 for binary data]
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,
    /// What --model auto chooses by
    #[arg(long, value_enum, default_value_t = Criterion::Bic)]
    pub criterion: Criterion,
    /// Partition file in the style of RAxML, lines such as "DNA, gene = 1-300\3" or "LG+G4, other = 301-500", or of IQ-TREE:
    /// charsets and a charpartition in NEXUS
    #[arg(short = 'q', long, value_name = "FILE")]
    pub partitions: Option<PathBuf>,
    /// Branch lengths of partitions [default: scaled; linked with --fixed]
    #[arg(long, value_enum)]
    pub branches: Option<BranchesChoice>,
    /// Format of the alignment
    #[arg(long, value_enum, default_value_t = FormatChoice::Auto)]
    pub format: FormatChoice,
    /// Searches, each from its own starting tree: a number; auto: five, and five more until the best tree was found twice, but no
    /// more than 20, or than N with auto{N} [with --fast: 1]
    #[arg(short, long, value_name = "N", default_value_t = Count::SEARCHES, default_value_if("fast", "true", "1"))]
    #[arg(value_parser = Count::searches, conflicts_with = "evaluate")]
    pub searches: Count,
    /// Searches that end early, for thousands of taxa: each from one tree, by exchanges of neighbours and short moves
    #[arg(long, conflicts_with = "evaluate")]
    pub fast: bool,
    /// Trees that searches begin with: parsimony, random, or a file of trees in Newick, which are taken in turns
    #[arg(short, long, value_name = "START", default_value = "parsimony", conflicts_with = "evaluate")]
    pub tree: String,
    /// Tree (Newick) that every tree must agree with: its nodes may have many branches, and it may lack taxa, which then stand
    /// anywhere
    #[arg(short = 'g', long, value_name = "TREE", conflicts_with = "evaluate")]
    pub constraint: Option<PathBuf>,
    /// Taxa, separated by commas, at whose branch the best tree, the trees with supports and the picture are rooted
    #[arg(long, value_name = "TAXA", value_delimiter = ',')]
    pub outgroup: Vec<String>,
    /// Bootstrap replicates, whose supports are put on the best tree: a number; autoMRE: until they are enough (Pattengale
    /// and others 2010), but no more than 1000, or than N with autoMRE{N}
    #[arg(short, long, value_name = "N", default_value_t = Count::Number(0))]
    #[arg(value_parser = Count::replicates, conflicts_with = "evaluate")]
    pub bootstraps: Count,
    /// Replicates of the ultrafast bootstrap (UFBoot2: Hoang and others 2018), whose supports are put on the best tree; 1000 are
    /// usual
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "evaluate")]
    pub ufboot: usize,
    /// Every replicate of the ultrafast bootstrap is climbed by exchanges of neighbours on its own sites: takes longer, and
    /// supports are not too high where the model is wrong
    #[arg(long, requires = "ufboot")]
    pub bnni: bool,
    /// Supports of the best tree's branches by the SH-like approximate likelihood-ratio test (Guindon and others 2010) with so
    /// many replicates; 1000 are usual
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "fixed")]
    pub alrt: usize,
    /// Writes the best tree's log-likelihood of every site
    #[arg(long)]
    pub site_likelihoods: bool,
    /// Evaluates this tree (Newick) instead of searching: branch lengths and parameters are fitted
    #[arg(short, long, value_name = "TREE")]
    pub evaluate: Option<PathBuf>,
    /// With --evaluate: exactly the branch lengths of the tree and the parameters of the model
    #[arg(long, requires = "evaluate")]
    pub fixed: bool,
    /// Seed of everything that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Names of output files begin with this, such as runs/beetles [default: the alignment's path]
    #[arg(short, long, value_name = "PREFIX")]
    pub prefix: Option<PathBuf>,
    /// Who computes what: static, edtlp, llp:K, hybrid:K, mgps or marginal; results do not depend on it
    #[arg(long, value_name = "POLICY", default_value_t = Policy::Marginal)]
    pub policy: Policy,
    /// How a task that waits gets to a worker that is done: queue (the worker takes it) or mailbox (a host hands it over);
    /// results do not depend on it
    #[arg(long, value_name = "WAY", default_value_t = Dispatch::Queue)]
    pub dispatch: Dispatch,
    /// Number of workers [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Memory that the run may take, such as 4GiB: where it is short fewer searches are in progress at once, and what has no room
    /// is computed again when it is needed [default: the computer's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Records every decision of the policy with its reason, and who computed what when, into this file, for
    /// `multigrain trace`: up to where it is looked for the first time whether searches and replicates are enough
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Overwrites output files, and forgets a checkpoint
    #[arg(long)]
    pub force: bool,
    /// Continues an interrupted run of the same command from its checkpoint; begins it where there is none yet, and does
    /// nothing where it is finished
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Prints one JSON object
    #[arg(long)]
    pub json: bool,
}

fn size(text: &str) -> Result<u64, String> {
    text.trim().parse().or_else(|_| parse_bytes(text).map_err(|e| e.to_string()))
}

impl Args {
    /// Whether models are chosen.
    pub fn is_auto(&self) -> bool {
        self.chosen_from().is_some()
    }

    /// What models are chosen from besides what is always tried; `None` where a model is named.
    pub fn chosen_from(&self) -> Option<Besides> {
        self.model.as_deref().and_then(Besides::parse)
    }
}
