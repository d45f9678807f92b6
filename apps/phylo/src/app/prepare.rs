//! Everything that is read, checked and refused before any work.

use super::args::{Args, BranchesChoice, FormatChoice};
use super::count::Count;
use super::files::{self, Outputs};
use super::room::{OWN_BYTES, available};
use crate::alignment::{Alignment, DataType, Format, Source, read_alignment};
use crate::checkpoint::{self, Hash, Request, Saved};
use crate::choose::{Besides, Criterion};
use crate::constraint::Constraint;
use crate::convergence;
use crate::copies::only;
use crate::error::Error;
use crate::job::Job;
use crate::model::ModelSpec;
use crate::parsimony::START_LENGTH;
use crate::partition::{self, Branches, Partition, Scheme, Unnamed};
use crate::tree::{Newick, Tree};
use multigrain::rooms::store::buffer::keep_no_free_memory;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// After so many searches it is looked whether they found the best tree twice, and after each so many more. Five end alike where
/// an alignment is easy.
pub(super) const SEARCHES_STEP: usize = 5;

/// Fewer distinct sequences than this make no unrooted tree.
const TAXA_MIN: usize = 3;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Searches and replicates.
    Search,
    /// One tree's likelihood; `fixed`: with its lengths and the model's values as they are.
    Evaluate {
        /// The tree, all taxa in it, one set of lengths.
        tree: Box<Tree>,
        /// Whether nothing is fitted.
        fixed: bool,
    },
}

/// What searches begin with.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// Trees of parsimony, each of its own order of taxa.
    Parsimony,
    /// Random trees.
    Random,
    /// These, in turns; of the taxa that take part, with one set of lengths.
    Given(Vec<Tree>),
}

/// A request that makes sense, with all its data.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Names of all taxa, in the alignment's order.
    pub names: Vec<String>,
    /// Number of sites of the alignment.
    pub sites: usize,
    /// Bytes that it took to read the alignment.
    pub reading: u64,
    /// Columns of nothing but gaps.
    pub gap_columns: usize,
    /// The taxa that take part: without copies of identical sequences, except in evaluations.
    pub kept_names: Vec<String>,
    /// For each taxon the position of its representative among those that take part.
    pub representatives: Vec<usize>,
    /// Names, models and sites of the partitions.
    pub schemes: Vec<Scheme>,
    /// The partitions, of the taxa that take part.
    pub partitions: Vec<Partition>,
    /// Whether partitions share branch lengths.
    pub branches: Branches,
    /// What the models of partitions that name none are chosen by; `None` where none is to be chosen.
    pub criterion: Option<Criterion>,
    /// What they are chosen from besides what is always tried.
    pub besides: Besides,
    /// What is to be done.
    pub task: Task,
    /// The jobs that are still to be done, searches first; where as many are made as are enough, with the first of them alone.
    pub jobs: Vec<Job>,
    /// What searches begin with.
    pub start: Start,
    /// What every tree must display, of the taxa that take part.
    pub constraint: Option<Arc<Constraint>>,
    /// The taxa at whose branch trees are rooted; none: at none.
    pub outgroup: Vec<usize>,
    /// How many searches are wanted.
    pub searches: Count,
    /// How many replicates are.
    pub bootstraps: Count,
    /// Replicates of the ultrafast bootstrap.
    pub ultrafast: usize,
    /// Whether they are climbed by exchanges on their own sites.
    pub is_corrected: bool,
    /// Replicates of the SH-aLRT test of the best tree.
    pub alrt: usize,
    /// Whether the best tree's log-likelihood of every site is written.
    pub site_likelihoods: bool,
    /// What earlier runs found, and where they were, from the checkpoint.
    pub saved: Saved,
    /// What checkpoints of this run belong to.
    pub request: Request,
    /// The last line of this run's log once it is finished: names everything that was asked for.
    pub mark: String,
    /// `--resume` of a run that is finished: there is nothing to do.
    pub is_finished: bool,
    /// Where results go.
    pub outputs: Outputs,
    /// What users should know about their data.
    pub notes: Vec<String>,
    /// The run's seed.
    pub seed: u64,
    /// Whether searches and replicates end early.
    pub is_fast: bool,
    /// Where the trace goes, if there is to be one.
    pub trace: Option<PathBuf>,
    /// Whether the log of an earlier part of this run is gone on with.
    pub is_resumed: bool,
    /// Whether files may be replaced that another run has written.
    pub is_forced: bool,
    /// How many conditional likelihood vectors of inner nodes each job has room for: all, where [`Args::scheduler`] has not
    /// found that there is less memory.
    pub vectors: usize,
}

/// Reads and checks everything that the arguments name.
pub fn prepare(args: &Args) -> Result<Prepared, Error> {
    let format = match args.format {
        FormatChoice::Auto => Format::Auto,
        FormatChoice::Fasta => Format::Fasta,
        FormatChoice::Phylip => Format::Phylip,
        FormatChoice::Nexus => Format::Nexus,
    };
    keep_no_free_memory();
    let room = available(args.memory)?.saturating_sub(OWN_BYTES);
    let (alignment, source) = read_alignment(&args.alignment, format, room)?;
    source.check_size(&alignment)?;
    let mut schemes = schemes(args, &alignment)?;
    let choice = branches_choice(args, schemes.len());
    if choice == BranchesChoice::Scaled {
        // A speed that a model names is that of the user.
        schemes.iter_mut().for_each(|scheme| scheme.model.speed = scheme.model.speed.or(Some(None)));
    }
    let mut partitions = partitions(&schemes, &alignment, &source)?;
    let branches = match choice {
        BranchesChoice::Linked => Branches::Linked,
        BranchesChoice::Scaled if partitions.len() > 1 => Branches::Linked,
        BranchesChoice::Unlinked if partitions.len() > 1 => Branches::Unlinked,
        BranchesChoice::Unlinked | BranchesChoice::Scaled => {
            let choice = format!("{choice:?}").to_lowercase();
            let what = format!("--branches {choice} needs --partitions with more than one partition");
            return Err(Error::request(what));
        }
    };
    let mut resolved = Vec::new();
    let mut evaluated_name = "none".to_owned();
    let task = match &args.evaluate {
        None => Task::Search,
        Some(path) => {
            let (tree, added, hash) = read_tree(path, &alignment.names, args.fixed)?;
            evaluated_name = format!("{} {hash:016x}", if args.fixed { "fixed" } else { "fitted" });
            if added > 0 {
                resolved.push(format!(
                    "{} has nodes with more than three branches: {added} branches of no length resolve them",
                    path.display()
                ));
            }
            Task::Evaluate { tree: Box::new(tree), fixed: args.fixed }
        }
    };
    let outgroup = outgroup(&args.outgroup, &alignment.names)?;
    if args.fixed && args.is_auto() {
        return Err(Error::request("--model auto fits candidates, --fixed fits nothing: name a model with its values"));
    }
    if args.fixed {
        refuse_missing(&schemes)?;
    }
    let mut notes = notes(&alignment, &source, &partitions);
    notes.append(&mut resolved);
    let everybody: Vec<usize> = (0..alignment.taxa()).collect();
    let constraint = args.constraint.as_deref().map(|path| constraint(path, &alignment.names)).transpose()?;
    let constrained = constraint.iter().flat_map(|(constraint, _)| constraint.taxa()).collect::<Vec<_>>();
    let (mut kept, mut representatives) = distinct(&partitions, alignment.taxa(), &constrained);
    if kept.len() < TAXA_MIN || task != Task::Search {
        (kept, representatives) = (everybody.clone(), everybody);
    }
    for taxon in (0..alignment.taxa()).filter(|&t| kept[representatives[t]] != t) {
        let original = &alignment.names[kept[representatives[taxon]]];
        let name = &alignment.names[taxon];
        notes.push(format!("{name} is identical to {original}: it is put beside it in every tree"));
    }
    for partition in &mut partitions {
        let tips = kept.iter().map(|&t| std::mem::take(&mut partition.patterns.tips[t])).collect();
        partition.patterns.tips = tips;
    }
    if args.ufboot > 0 && args.searches.most() == 0 {
        return Err(Error::request("--ufboot begins with the trees of searches, but --searches is 0: ask for one"));
    }
    let outputs = Outputs::new(args.prefix.as_deref().unwrap_or(&args.alignment));
    let kept_names: Vec<String> = kept.iter().map(|&t| alignment.names[t].clone()).collect();
    let constraint = match constraint {
        None => None,
        Some((all, newick)) => {
            if all.splits() == 0 {
                notes.push("the constraint has no inner branch: every tree agrees with it".to_owned());
            }
            // All of its taxa take part.
            let own = Constraint::new(&newick, &kept_names).map_err(|e| Error::run(format!("internal error: {e}")))?;
            Some(Arc::new(own))
        }
    };
    let (start, start_name) = start(&args.tree, &alignment.names, &kept_names, constraint.as_deref())?;
    let words = words(args, &task, branches);
    let named = [("tree", start_name), ("evaluate", evaluated_name)];
    let mut request = request(args, &alignment, &schemes, named, constraint.as_deref());
    request.writes = words.iter().map(|word| (*word).to_owned()).chain(args.trace.as_deref().map(trace_name)).collect();
    let mark = mark(args, &request);
    let is_finished = args.resume && was_finished(&outputs, &words, &mark);
    let mut saved = match is_finished {
        true => Saved::default(),
        false => outputs_and_checkpoint(args, &outputs, words, &request)?,
    };
    let is_wanted = |job: &Job| match *job {
        Job::Search(number) => number < args.searches.most(),
        Job::Replicate(number) => number < args.bootstraps.most(),
    };
    saved.found.retain(|f| is_wanted(&f.job));
    saved.begun.retain(|job, _| is_wanted(job));
    let jobs = match &task {
        Task::Search if args.searches.most() + args.bootstraps.most() == 0 => {
            return Err(Error::request("--searches 0 and --bootstraps 0: there is nothing to do"));
        }
        Task::Search => turn(&saved, args.searches.first(SEARCHES_STEP), args.bootstraps.first(convergence::STEP)),
        Task::Evaluate { .. } => Vec::new(),
    };
    let gap_columns = partitions.iter().flat_map(|p| &p.patterns.pattern_of_site).filter(|p| p.is_none()).count();
    let (sites, reading) = (alignment.sites(), source.bytes);
    // Names were made between rows as these were read: where they stayed there, no page that a row took would be free.
    let Alignment { names, rows } = alignment;
    drop((rows, source));
    let names = names.iter().map(|name| name.as_str().to_owned()).collect();
    Ok(Prepared {
        sites,
        reading,
        gap_columns,
        kept_names,
        names,
        representatives,
        schemes,
        partitions,
        branches,
        criterion: args.is_auto().then_some(args.criterion),
        besides: args.chosen_from().unwrap_or_default(),
        task,
        jobs,
        start,
        constraint,
        outgroup,
        searches: args.searches,
        bootstraps: args.bootstraps,
        ultrafast: args.ufboot,
        is_corrected: args.bnni,
        alrt: args.alrt,
        site_likelihoods: args.site_likelihoods,
        saved,
        request,
        mark,
        is_finished,
        outputs,
        notes,
        seed: args.seed,
        is_fast: args.fast,
        trace: args.trace.clone(),
        is_resumed: args.resume,
        is_forced: args.force,
        vectors: usize::MAX,
    })
}

/// Of so many searches and replicates those that have not ended.
pub(super) fn turn(saved: &Saved, searches: usize, replicates: usize) -> Vec<Job> {
    let jobs = (0..searches).map(Job::Search).chain((0..replicates).map(Job::Replicate));
    jobs.filter(|job| !saved.found.iter().any(|found| found.job == *job)).collect()
}

/// Partitions differ in speed more often than not, so that is the default (RAxML-NG's too), unless nothing is fitted.
fn branches_choice(args: &Args, partitions: usize) -> BranchesChoice {
    let default = if partitions > 1 && !args.fixed { BranchesChoice::Scaled } else { BranchesChoice::Linked };
    args.branches.unwrap_or(default)
}

fn schemes(args: &Args, alignment: &Alignment) -> Result<Vec<Scheme>, Error> {
    let given = args.model.as_deref().filter(|_| !args.is_auto()).map(ModelSpec::parse).transpose()?;
    match &args.partitions {
        Some(path) => {
            let unnamed = Unnamed { model: given.as_ref(), data_type: alignment.guess() };
            partition::read_schemes(path, alignment.sites(), unnamed)
        }
        None => {
            let default = || ModelSpec::parse(partition::default_model(alignment.guess()));
            let model = given.map_or_else(default, Ok)?;
            Ok(vec![Scheme::whole(model, alignment.sites())])
        }
    }
}

fn partitions(schemes: &[Scheme], alignment: &Alignment, source: &Source) -> Result<Vec<Partition>, Error> {
    schemes.iter().map(|s| s.partition(alignment, source)).collect()
}

/// Taxa whose patterns are the first of their kind, and for each taxon the position of its representative among them.
/// Leaving identical sequences out loses nothing: a tree with a copy beside its original at no distance has the likelihood
/// of the tree without the copy, and no tree can have more. But the taxa of a constraint, `constrained`, may have to stand
/// elsewhere: they stay, and others are copies of them.
fn distinct(partitions: &[Partition], taxa: usize, constrained: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let row = |taxon: usize| partitions.iter().map(|p| p.patterns.tips[taxon].as_slice()).collect::<Vec<&[u8]>>();
    let mut first_of = HashMap::new();
    let mut originals: Vec<usize> = (0..taxa).collect();
    for &taxon in constrained {
        first_of.entry(row(taxon)).or_insert(taxon);
    }
    for taxon in (0..taxa).filter(|taxon| constrained.binary_search(taxon).is_err()) {
        originals[taxon] = *first_of.entry(row(taxon)).or_insert(taxon);
    }
    let kept: Vec<usize> = (0..taxa).filter(|&taxon| originals[taxon] == taxon).collect();
    let positions = originals.iter().map(|original| kept.partition_point(|kept| kept < original)).collect();
    (kept, positions)
}

fn notes(alignment: &Alignment, source: &Source, partitions: &[Partition]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((taxon, title)) = &source.cut_name {
        notes.push(format!("names end at their first blank: {title:?} is {}", alignment.names[*taxon]));
    }
    let dots: usize = alignment.rows.iter().map(|row| row.iter().filter(|&&letter| letter == b'.').count()).sum();
    if dots > 0 {
        notes.push(format!(
            "{dots} '.' in the sequences: taken for unknown letters, not for those of the first sequence"
        ));
    }
    let protein = partitions.iter().any(|p| p.patterns.data_type == DataType::Protein);
    if protein && alignment.guess() == DataType::Dna {
        notes.push("the letters look like DNA, but a model is one of proteins: --model names another".to_owned());
    }
    for (taxon, name) in alignment.names.iter().enumerate() {
        let only_gaps = |p: &Partition| p.patterns.tips[taxon].iter().all(|&c| c == p.patterns.data_type.gap());
        if partitions.iter().all(only_gaps) {
            notes.push(format!("{name} has nothing but gaps: where it stands in a tree means nothing"));
        }
    }
    notes
}

/// The tree of a file, with the number of branches of no length that its nodes of more branches needed, and a hash of its text.
/// Where lengths are fitted, a tree without any begins with those of a starting tree.
fn read_tree(path: &Path, names: &[String], is_fixed: bool) -> Result<(Tree, usize, u64), Error> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| Error::request(format!("cannot read tree {shown}: {e}")))?;
    let newick = Newick::parse(&text).map_err(|e| Error::request(format!("{shown}, {e}")))?;
    let (newick, added) = newick.resolved();
    let has_lengths = newick.nodes.iter().any(|node| node.length.is_some());
    let length = (!is_fixed && !has_lengths).then_some(START_LENGTH);
    let tree = Tree::from_newick(&newick, names, length).map_err(|e| Error::request(format!("{shown}, {e}")))?;
    let mut hash = Hash::default();
    hash.add(text.as_bytes());
    Ok((tree, added, hash.value()))
}

/// The constraint of a file, of all taxa, and its tree.
fn constraint(path: &Path, names: &[String]) -> Result<(Constraint, Newick), Error> {
    let refused = |what: &dyn std::fmt::Display| Error::request(format!("--constraint {}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| refused(&e))?;
    let newick = Newick::parse(&text).map_err(|e| refused(&e))?;
    let constraint = Constraint::new(&newick, names).map_err(|e| refused(&e))?;
    Ok((constraint, newick))
}

/// Some names, and how many others there are.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    match names.len() {
        0..=SHOWN => names.join(", "),
        all => format!("{} and {} others", names[..SHOWN].join(", "), all - SHOWN),
    }
}

/// What searches begin with, and how that is named in checkpoints.
fn start(
    typed: &str,
    names: &[String],
    kept_names: &[String],
    constraint: Option<&Constraint>,
) -> Result<(Start, String), Error> {
    match typed {
        "parsimony" => return Ok((Start::Parsimony, typed.to_owned())),
        "random" => return Ok((Start::Random, typed.to_owned())),
        _ => {}
    }
    let refused = |what: &dyn std::fmt::Display| {
        Error::request(format!("--tree {typed}: {what}; parsimony, random or a file of trees can be begun with"))
    };
    let text = std::fs::read_to_string(typed).map_err(|e| refused(&e))?;
    let mut trees = Vec::new();
    for newick in Newick::parse_all(&text).map_err(|e| refused(&e))? {
        let (full, _) = newick.resolved();
        // What it has too many or too few is told of the whole tree.
        Tree::from_newick(&full, names, Some(START_LENGTH)).map_err(|e| refused(&e))?;
        let own = only(&full, &|name| kept_names.iter().any(|kept| kept == name));
        let tree = Tree::from_newick(&own, kept_names, Some(START_LENGTH)).map_err(|e| refused(&e))?;
        if let Some(apart) = constraint.and_then(|constraint| constraint.missing(&tree)) {
            let group: Vec<&str> = apart.iter().map(|&taxon| kept_names[taxon].as_str()).collect();
            return Err(Error::request(format!(
                "--tree {typed}: tree {} does not agree with --constraint: none of its branches divides {} from the other \
                 taxa of the constraint",
                trees.len() + 1,
                listed(&group)
            )));
        }
        trees.push(tree);
    }
    if trees.is_empty() {
        return Err(refused(&"there is no tree in this file"));
    }
    let mut hash = Hash::default();
    hash.add(text.as_bytes());
    Ok((Start::Given(trees), format!("given {:016x}", hash.value())))
}

/// The taxa of an outgroup, by number.
fn outgroup(typed: &[String], names: &[String]) -> Result<Vec<usize>, Error> {
    let find = |name: &String| {
        let taxon = names.iter().position(|known| known == name.trim());
        taxon.ok_or_else(|| Error::request(format!("--outgroup: there is no taxon {name:?} in the alignment")))
    };
    let mut taxa = typed.iter().map(find).collect::<Result<Vec<usize>, Error>>()?;
    taxa.sort_unstable();
    taxa.dedup();
    match taxa.len() >= names.len() {
        true => Err(Error::request("--outgroup: all taxa cannot be the outgroup")),
        false => Ok(taxa),
    }
}

fn refuse_missing(schemes: &[Scheme]) -> Result<(), Error> {
    for scheme in schemes {
        let missing = scheme.model.missing();
        if !missing.is_empty() {
            return Err(Error::request(format!(
                "--fixed fits nothing, but the model {} of partition {} has no value for its {}",
                scheme.model,
                scheme.name,
                missing.join(", ")
            )));
        }
    }
    Ok(())
}

/// What results depend on. Numbers of searches and replicates are not among it: a run may be resumed with more.
fn request(
    args: &Args,
    alignment: &Alignment,
    schemes: &[Scheme],
    named: [(&str, String); 2],
    constraint: Option<&Constraint>,
) -> Request {
    let mut hash = Hash::default();
    for (name, row) in alignment.names.iter().zip(&alignment.rows) {
        hash.add(name.as_bytes());
        hash.add(row);
    }
    for scheme in schemes {
        hash.add(scheme.name.as_bytes());
        scheme.sites.iter().for_each(|s| hash.add(&s.to_le_bytes()));
    }
    let model = |scheme: &Scheme| match args.is_auto() && scheme.is_open {
        true => {
            let besides = args.chosen_from().unwrap_or_default();
            format!("the best {} model by {}{besides}", scheme.model.data_type, args.criterion)
        }
        false => scheme.model.to_string(),
    };
    let models: Vec<String> = schemes.iter().map(model).collect();
    let constraint = constraint.map_or("none".to_owned(), |constraint| {
        let mut hash = Hash::default();
        hash.add(&constraint.bytes());
        format!("given {:016x}", hash.value())
    });
    let settings = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("model", models.join(", ")),
        ("branches", format!("{:?}", branches_choice(args, schemes.len())).to_lowercase()),
        ("seed", args.seed.to_string()),
        ("fast", args.fast.to_string()),
        ("constraint", constraint),
        ("outgroup", args.outgroup.join(",")),
    ];
    let settings = settings.into_iter().chain(named).map(|(name, value)| (name.to_owned(), value)).collect();
    Request { alignment: hash.value(), settings, writes: vec![] }
}

/// A line that tells this request, with its numbers of searches and replicates, from others.
fn mark(args: &Args, request: &Request) -> String {
    let mut hash = Hash::default();
    hash.add(&request.alignment.to_le_bytes());
    for (name, value) in &request.settings {
        hash.add(name.as_bytes());
        hash.add(value.as_bytes());
    }
    [args.alrt, args.ufboot, usize::from(args.bnni)].iter().for_each(|count| hash.add(&count.to_le_bytes()));
    [args.searches, args.bootstraps].iter().for_each(|count| hash.add(count.to_string().as_bytes()));
    hash.add(&[u8::from(args.site_likelihoods)]);
    format!("finished: request {:016x}", hash.value())
}

/// The files of a run.
fn words(args: &Args, task: &Task, branches: Branches) -> Vec<&'static str> {
    let mut words = match task {
        Task::Evaluate { .. } => vec![files::BEST_TREE, files::BEST_MODEL, files::LOG],
        Task::Search => vec![files::BEST_TREE, files::BEST_MODEL, files::ML_TREES, files::PICTURE, files::LOG],
    };
    if args.searches.most() == 0 && *task == Task::Search {
        words = vec![files::LOG];
    }
    if branches == Branches::Unlinked && args.searches.most() > 0 {
        words.push(files::PARTITION_TREES);
    }
    if args.bootstraps.most() > 0 {
        words.extend([files::BOOTSTRAPS, files::CONSENSUS]);
        if args.searches.most() > 0 {
            words.extend([files::SUPPORT, files::TRANSFER]);
        }
    }
    if args.ufboot > 0 {
        words.extend([files::ULTRAFAST, files::ULTRAFAST_SUPPORT, files::ULTRAFAST_CONSENSUS]);
    }
    if args.is_auto() {
        words.push(files::MODELS);
    }
    let has_tree = args.searches.most() > 0 || *task != Task::Search;
    if args.alrt > 0 && has_tree {
        words.push(files::ALRT);
    }
    if matches!(task, Task::Evaluate { fixed: true, .. }) {
        words = if args.site_likelihoods { vec![files::LOG] } else { vec![] };
    }
    if args.site_likelihoods && has_tree {
        words.push(files::SITES);
    }
    words
}

/// How a trace is named in checkpoints, from wherever the run is gone on with.
fn trace_name(path: &Path) -> String {
    format!("trace {:?}", std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// Whether the files of exactly this request are there already.
fn was_finished(outputs: &Outputs, words: &[&str], mark: &str) -> bool {
    let log = std::fs::read_to_string(outputs.path(files::LOG)).unwrap_or_default();
    !words.is_empty()
        && !outputs.path(files::CHECKPOINT).exists()
        && words.iter().all(|word| outputs.path(word).exists())
        && log.lines().last() == Some(mark)
}

/// Looks at the files that are to be written, and reads the checkpoint where there is one to go on from.
fn outputs_and_checkpoint(
    args: &Args,
    outputs: &Outputs,
    words: Vec<&'static str>,
    request: &Request,
) -> Result<Saved, Error> {
    let inputs = [Some(&args.alignment), args.partitions.as_ref(), args.evaluate.as_ref(), args.constraint.as_ref()];
    let start = (!["parsimony", "random"].contains(&args.tree.as_str())).then(|| Path::new(&args.tree));
    let inputs: Vec<&Path> = inputs.into_iter().flatten().map(|path| path.as_path()).chain(start).collect();
    let all: Vec<&str> = words.iter().copied().chain([files::CHECKPOINT]).collect();
    outputs.check_inputs(&all, args.trace.as_deref(), &inputs)?;
    let path = outputs.path(files::CHECKPOINT);
    let shown = path.display();
    let (mut saved, mut may_write) = (Saved::default(), Vec::new());
    if args.resume {
        match std::fs::read_to_string(&path) {
            Ok(text) => (saved, may_write) = checkpoint::read(&path, &text, request)?,
            // Nothing was done yet: a job script may always say --resume.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::request(format!("cannot read checkpoint {shown}: {e}"))),
        }
    } else if !words.is_empty() && path.exists() && !args.force {
        return Err(Error::request(format!(
            "{shown} is the checkpoint of an interrupted run: continue it with --resume, start anew with --force, or choose \
             another --prefix"
        )));
    }
    let check = |name: &str, path: &Path, option: &str| {
        files::check(path, args.force || may_write.iter().any(|may| may == name), option)
    };
    // The log of a run that is resumed goes on, and what it chose stays.
    let stays = |word: &&&str| args.resume && [files::LOG, files::MODELS].contains(word);
    words.iter().filter(|word| !stays(word)).try_for_each(|word| check(word, &outputs.path(word), "--prefix"))?;
    args.trace.as_deref().map_or(Ok(()), |path| check(&trace_name(path), path, "--trace"))?;
    Ok(saved)
}
