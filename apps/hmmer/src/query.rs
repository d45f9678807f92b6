//! What is asked of a search, from the results of its run to its files.

use crate::args::Args;
use crate::domain::Bound;
use crate::filter::{ForwardFilter, STAGES};
use crate::profile::{Profile, null1};
use crate::search::{Kept, Search, for_scores, for_stages};
use crate::sequence::Database;
use crate::table::{
    Footer, Rows, Thresholds, rows, write_domain_header, write_domains, write_footer, write_header, write_report,
    write_report_header, write_rows, write_stockholm,
};
use multigrain::prelude::*;
use multigrain::whole;
use std::f64::consts::LN_2;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the second stage in traces.
pub(crate) const DOMAINS: &str = "hmmer-domains";

/// What writes a file's content.
pub(crate) type WriteTo<'a> = dyn FnMut(&mut dyn Write) -> std::io::Result<()> + 'a;

/// Domains of which an alignment is made.
fn aligned(found: &[Rows]) -> usize {
    found.iter().flat_map(|rows| &rows.domains).filter(|domain| domain.is_significant).count()
}

/// What a search is about.
pub(crate) struct Query {
    pub(crate) profiles: Vec<Profile>,
    pub(crate) database: Database,
    /// The array of its residues.
    pub(crate) residues: usize,
    /// For each profile, the array of its scores, or of how many filters sequences pass.
    pub(crate) results: Vec<usize>,
    /// For each profile, what is reported.
    pub(crate) thresholds: Vec<Thresholds>,
    pub(crate) args: Args,
}

/// The last part of a path, for tables that are equal wherever they are made.
fn file_name(path: &Option<PathBuf>) -> String {
    let name = path.as_ref().and_then(|path| path.file_name());
    name.map_or_else(|| "(generated)".to_owned(), |name| name.to_string_lossy().into_owned())
}

impl Query {
    /// What is asked for, written whole or not at all; what was found, in words.
    pub(crate) fn write(&self, outcome: &Outcome) -> Result<Option<String>, Error> {
        let found = self.found(outcome)?;
        self.each_file(outcome, found.as_deref(), |path, write| {
            let failed = |e: std::io::Error| {
                Error::After(format!("cannot write {}: {e}; free space, or name another file", path.display()))
            };
            whole::write(path, |out| write(out)).map_err(|e| as_it_was(e, failed))
        })?;
        let Some(found) = found else { return Ok(None) };
        let mut words = self.in_words(&found);
        if let Some(path) = &self.args.alignment {
            words += &match aligned(&found) {
                0 => format!("; no domain is significant, so there is no {}", path.display()),
                aligned => format!("; {aligned} significant domains are aligned in {}", path.display()),
            };
        }
        Ok(Some(words))
    }

    /// Calls `each` with every file that is asked for and what writes its content.
    pub(crate) fn each_file(
        &self,
        outcome: &Outcome,
        found: Option<&[Rows]>,
        mut each: impl FnMut(&Path, &mut WriteTo<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(path) = &self.args.scores {
            each(path, &mut |mut out| self.write_scores(&mut out, outcome, path).map_err(std::io::Error::other))?;
        }
        let Some(found) = found else { return Ok(()) };
        if let Some(path) = &self.args.output {
            each(path, &mut |mut out| self.write_table(&mut out, found))?;
        }
        if let Some(path) = &self.args.domtblout {
            each(path, &mut |mut out| self.write_domain_table(&mut out, found))?;
        }
        if let Some(path) = &self.args.report {
            each(path, &mut |mut out| self.write_report(&mut out, found))?;
        }
        // Nothing to align leaves no file, as a Stockholm file holds an alignment.
        if let Some(path) = self.args.alignment.as_ref().filter(|_| aligned(found) > 0) {
            each(path, &mut |mut out| {
                let mut queries = self.profiles.iter().zip(found);
                queries.try_for_each(|(profile, rows)| write_stockholm(&mut out, profile, rows).map(drop))
            })?;
        }
        Ok(())
    }

    /// The scores of all sequences, a line each.
    fn write_scores(&self, out: &mut impl Write, outcome: &Outcome, path: &Path) -> Result<(), Error> {
        let failed = |e: std::io::Error| {
            Error::After(format!("cannot write {}: {e}; free space, or name another file", path.display()))
        };
        writeln!(out, "#hmm\tseq\tL\tnull1_nats\tViterbi_nats\tForward_nats\tViterbi_bits\tForward_bits")
            .map_err(failed)?;
        for (profile, &scores) in self.profiles.iter().zip(&self.results) {
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
                .map_err(failed)
            })?;
        }
        Ok(())
    }

    /// The hits of every profile, if they are asked for.
    pub(crate) fn found(&self, outcome: &Outcome) -> Result<Option<Vec<Rows>>, Error> {
        if !self.args.looks_for_hits() {
            return Ok(None);
        }
        let memory_bytes = outcome.work_bytes();
        let kept = Kept::default();
        let mut found = Vec::new();
        for (number, (profile, thresholds)) in self.profiles.iter().zip(&self.thresholds).enumerate() {
            let search = Search {
                outcome,
                residues: self.residues,
                database: &self.database,
                profile,
                bound: Bound::new(profile.forward, thresholds),
                filter: self.filter(profile),
                align: self.args.shows_domains(),
                correct_bias: !self.args.nonull2,
                workers: outcome.machine.workers(),
                memory_bytes,
                kept: &kept,
                told: outcome.afterwards(DOMAINS),
            };
            let hits = search.hits(self.candidates(outcome, number)?)?;
            match kept.is_too_much() {
                false => found.push(rows(profile, hits, thresholds)),
                // Those of the other profiles are counted.
                true => found = Vec::new(),
            }
        }
        kept.check(outcome)?;
        Ok(Some(found))
    }

    /// The last filter, if there are any.
    pub(crate) fn filter(&self, profile: &Profile) -> Option<ForwardFilter> {
        (!self.args.max).then(|| ForwardFilter::new(profile, &self.args.filters()))
    }

    /// Sequences that can be hits of profile `number`, as far as the run tells.
    pub(crate) fn candidates(&self, outcome: &Outcome, number: usize) -> Result<Vec<usize>, Error> {
        let mut candidates = Vec::new();
        let (profile, array) = (&self.profiles[number], self.results[number]);
        let bound = Bound::new(profile.forward, &self.thresholds[number]);
        match self.args.max {
            true => for_scores(outcome, array, &self.database, |i, scores| {
                if bound.may_be_reported(scores.forward, self.database.length(i) as usize) {
                    candidates.push(i);
                }
                Ok(())
            })?,
            false => for_stages(outcome, array, &self.database, |i, stage| {
                if stage == STAGES {
                    candidates.push(i);
                }
                Ok(())
            })?,
        }
        Ok(candidates)
    }

    /// The table of hits.
    fn write_table(&self, out: &mut impl Write, found: &[Rows]) -> std::io::Result<()> {
        for (number, (profile, rows)) in self.profiles.iter().zip(found).enumerate() {
            if number == 0 {
                write_header(out, &rows.hits, &profile.name, profile.accession.as_deref())?;
            }
            write_rows(out, &rows.hits)?;
        }
        self.write_footer(out)
    }

    /// The table of their domains.
    fn write_domain_table(&self, out: &mut impl Write, found: &[Rows]) -> std::io::Result<()> {
        for (number, (profile, rows)) in self.profiles.iter().zip(found).enumerate() {
            if number == 0 {
                write_domain_header(out, &rows.hits, &profile.name, profile.accession.as_deref())?;
            }
            write_domains(out, rows, profile.nodes())?;
        }
        self.write_footer(out)
    }

    /// Hits, domains and alignments.
    fn write_report(&self, out: &mut impl Write, found: &[Rows]) -> std::io::Result<()> {
        let (query, target) = (file_name(&self.args.profile), file_name(&self.args.database));
        write_report_header(out, &query, &target, &self.args.options())?;
        let searched = (self.database.len() as u64 + self.database.empty(), self.database.residues());
        for (profile, rows) in self.profiles.iter().zip(found) {
            write_report(out, profile, rows, searched)?;
        }
        writeln!(out, "[ok]")
    }

    fn write_footer(&self, out: &mut impl Write) -> std::io::Result<()> {
        let (query_file, target_file) = (file_name(&self.args.profile), file_name(&self.args.database));
        let options = self.args.options();
        write_footer(out, Footer { query_file: &query_file, target_file: &target_file, options: &options })
    }

    /// How many hits there are, and the best.
    fn in_words(&self, found: &[Rows]) -> String {
        let hits: usize = found.iter().map(|rows| rows.hits.len()).sum();
        let significant: usize = found.iter().map(|rows| rows.significant).sum();
        let sequences = self.database.len() as u64 + self.database.empty();
        let of = match self.profiles.len() {
            1 => String::new(),
            profiles => format!(" for {} of {profiles} profiles", found.iter().filter(|r| !r.hits.is_empty()).count()),
        };
        let best = found.iter().filter_map(|rows| rows.hits.first());
        let best = best.max_by(|a, b| a.full.score.total_cmp(&b.full.score)).map_or_else(
            || "; a larger -E, or --max, shows more".to_owned(),
            |row| format!("; the best is {} with {:.1} bits (E = {:.1e})", row.target, row.full.score, row.full.evalue),
        );
        format!("{hits} in {sequences} sequences{of}, {significant} of them significant{best}")
    }
}

/// An error that was ours before it passed through a writer, or the writer's own.
fn as_it_was(error: std::io::Error, failed: impl FnOnce(std::io::Error) -> Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => failed(error),
    }
}
