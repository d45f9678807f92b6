//! Alignments of the rows about trees: named ones, or generated ones.

use super::Bench;
use super::files::Scratch;
use clap::Parser;
use multigrain_console::Failure;
use multigrain_phylo::alignment::{Alignment, DataType, Patterns};
use multigrain_phylo::app::{Args, Prepared, prepare};
use multigrain_phylo::generate::{evolve, random_tree};
use multigrain_phylo::model::{Model, ModelSpec};
use multigrain_phylo::random::{Purpose, Random};
use multigrain_phylo::tree::Tree;
use std::path::PathBuf;

/// More than a generated alignment takes.
const FILES_BYTES: u64 = 16 << 20;
/// The parameters of generated DNA: those of a mammals' gene, more or less.
pub(crate) const DNA: &str = "GTR{2/17/2/1/15/1}+FU{0.258/0.266/0.217/0.259}+G4{0.5}";

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Run(error.to_string())
}

/// Sequences that evolved along a random tree under the model with this name.
pub(crate) struct Generated {
    pub(crate) alignment: Alignment,
    pub(crate) tree: Tree,
    pub(crate) model: Model,
    pub(crate) data_type: DataType,
}

/// See [`Generated`]; always the same for the same request.
pub(crate) fn generated(model: &str, taxa: usize, sites: usize) -> Result<Generated, Failure> {
    let mut random = Random::new(42, Purpose::Start, 0);
    let tree = random_tree(taxa, &mut random);
    let spec = ModelSpec::parse(model).map_err(failed)?;
    let data_type = spec.data_type;
    // Where frequencies are counted, the letters of the alphabet are what is counted.
    let letters = Alignment { names: vec![String::new()], rows: vec![data_type.letters().to_vec()] };
    let model = spec.model(&Patterns::new(&letters, 0..data_type.states(), data_type));
    let alignment = evolve(&tree, &model, data_type, sites, &mut random);
    Ok(Generated { alignment, tree, model, data_type })
}

/// An alignment in a file.
pub(crate) struct Source {
    /// Where it is; absolute, since peers run elsewhere.
    pub(crate) file: PathBuf,
    /// What it is, for a note.
    pub(crate) what: String,
    /// What names of result files would begin with: a name that nobody has. Nothing is written.
    prefix: PathBuf,
    /// Holds the file if it was generated.
    _scratch: Option<Scratch>,
}

impl Source {
    /// The alignment that was named with `--alignment`, or generated DNA.
    pub(crate) fn new(bench: &Bench<'_>, taxa: usize, sites: usize) -> Result<Source, Failure> {
        Source::of_model(bench, DNA, taxa, sites)
    }

    /// The same, generated under any model.
    pub(crate) fn of_model(bench: &Bench<'_>, model: &str, taxa: usize, sites: usize) -> Result<Source, Failure> {
        let prefix = bench.args.directory.join(format!("multigrain-bench-{}-trees", std::process::id()));
        if let Some(path) = &bench.args.alignment {
            let why = |e| Failure::Request(format!("--alignment {}: {e}; check the path", path.display()));
            let file = path.canonicalize().map_err(why)?;
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Ok(Source { file, what: name, prefix, _scratch: None });
        }
        let scratch = Scratch::new(&bench.args.directory, FILES_BYTES)?;
        let file = scratch.path("alignment.fasta");
        let Generated { alignment, data_type, .. } = generated(model, taxa, sites)?;
        let rows = alignment.names.iter().zip(&alignment.rows);
        let text: String = rows.map(|(name, row)| format!(">{name}\n{}\n", String::from_utf8_lossy(row))).collect();
        std::fs::write(&file, text).map_err(|e| Failure::Run(format!("cannot write {}: {e}", file.display())))?;
        let kind = if data_type == DataType::Dna { "DNA" } else { "proteins" };
        let what = format!("generated {kind} of {taxa} taxa and {sites} sites");
        Ok(Source { file, what, prefix, _scratch: Some(scratch) })
    }

    /// The request of `multigrain phylo` for it.
    pub(crate) fn request(&self, options: &[&str]) -> Result<Prepared, Failure> {
        let (file, prefix) = (self.file.display().to_string(), self.prefix.display().to_string());
        let words = ["multigrain", &file, "--prefix", &prefix].into_iter().chain(options.iter().copied());
        let Typed { args } = Typed::try_parse_from(words).map_err(failed)?;
        prepare(&args).map_err(|e| Failure::Request(e.to_string()))
    }
}

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: Args,
}
