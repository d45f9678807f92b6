//! Results compared with what plain code finds, and files with what was found.

use crate::domain::{Bound, Finder};
use crate::filter::Reference;
use crate::kernel::{Scores, reference};
use crate::query::{Query, WriteTo};
use crate::search::{for_scores, for_stages, sequence};
use crate::sequence::SequenceError;
use multigrain::app::{Checked, Comparison, rounding_bound};
use multigrain::generate;
use multigrain::prelude::{Error, Outcome};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::Path;

/// Cells that `--check` computes again, in random sequences; all of a small search.
const CHECKED_CELLS: u64 = 1 << 25;
/// Hits of which it computes the domains again.
const CHECKED_HITS: usize = 16;
/// What a domain's score may differ by from that in double precision, in bits.
const DOMAIN_BITS: f64 = 2e-3;

impl Query {
    /// Compares the scores of random sequences with the recurrences in double precision, as odds: these are what is
    /// summed; or how many filters they pass with what plain recurrences say. And the scores of the domains of random hits
    /// with those of their envelopes, and every file, byte for byte, with what follows from the results for it.
    pub(crate) fn check(&self, outcome: &Outcome, seed: u64) -> Result<Checked, Error> {
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
        let looked_at = |i: usize| i == surely || uniform(i) < part;
        for (number, (profile, &array)) in self.profiles.iter().zip(&self.results).enumerate() {
            let nodes = profile.local();
            let scored = |i: usize, scores: Scores| {
                if !looked_at(i) {
                    return Ok(());
                }
                sequences += 1;
                let residues = sequence(outcome, self.residues, &self.database, i)?;
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
            };
            match self.args.max {
                true => for_scores(outcome, array, &self.database, scored)?,
                false => {
                    let mut plain = Reference::new(profile, &self.args.filters());
                    for_stages(outcome, array, &self.database, |i, stage| {
                        if !looked_at(i) {
                            return Ok(());
                        }
                        sequences += 1;
                        let expected = plain.passed(&sequence(outcome, self.residues, &self.database, i)?);
                        if stage != expected && wrong.is_none() {
                            let name = self.database.header(i).map_err(failed)?.0;
                            wrong = Some(format!("{name} passes {stage} filters of {}, not {expected}", profile.name));
                        }
                        comparison.add_error(if stage == expected { 0.0 } else { f64::INFINITY }, 1);
                        Ok(())
                    })?;
                }
            }
            let candidates = self.candidates(outcome, number)?;
            let bound = Bound::new(profile.forward, &self.thresholds[number]);
            let mut finder = Finder::new(profile).with_filter(self.filter(profile)).with_limit(outcome.work_bytes());
            let each = candidates.len().div_ceil(CHECKED_HITS).max(1);
            let begin = (uniform(count + 1) * each as f64) as usize;
            for &i in candidates.iter().skip(begin).step_by(each) {
                let residues = sequence(outcome, self.residues, &self.database, i)?;
                // What takes more memory than there is ended the search already.
                let Ok(Some(hit)) = finder.hit(&residues, !self.args.nonull2, &bound) else { continue };
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
        let mut files = Vec::new();
        if self.args.outputs().next().is_some() {
            let found = self.found(outcome)?;
            self.each_file(outcome, found.as_deref(), |path, write| {
                let name = path.display();
                match Beside::compare(path, write) {
                    Ok(None) => files.push(format!("all of {name}")),
                    Ok(Some(line)) => {
                        comparison.add_error(f64::INFINITY, 1);
                        wrong.get_or_insert_with(|| format!("line {line} of {name} is not what was found"));
                    }
                    // A run that was given no time to write them has no files.
                    Err(e) if e.kind() == ErrorKind::NotFound => files.push(format!("not {name}, which is not there")),
                    Err(e) => return Err(Error::After(format!("cannot read {name}: {e}"))),
                }
                Ok(())
            })?;
        }
        let files: String = files.into_iter().map(|file| format!("; {file}")).collect();
        let all = count as u64 * self.profiles.len() as u64;
        let what = if self.args.max { "Viterbi and Forward scores" } else { "filters passed" };
        let covered = format!(
            "{what} of {sequences} of {all} sequences, {}, and {domains} domains of hits, against plain \
             recurrences{files}",
            if sequences == all { "all of them" } else { "chosen at random" }
        );
        Ok(Checked { wrong, ..comparison.checked(1.0, covered) })
    }
}

/// Takes what would be written to a file, and compares it with what is there.
struct Beside {
    there: BufReader<File>,
    line: u64,
    differs: bool,
}

impl Beside {
    /// The first line of a file that is not what `write` writes, from 1 on, if any.
    fn compare(path: &Path, write: &mut WriteTo<'_>) -> io::Result<Option<u64>> {
        let mut beside = Beside { there: BufReader::new(File::open(path)?), line: 1, differs: false };
        let written = write(&mut beside);
        if !beside.differs {
            written?;
            // More than that would be no part of it either.
            beside.differs = beside.there.read(&mut [0])? > 0;
        }
        Ok(beside.differs.then_some(beside.line))
    }
}

impl Write for Beside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut there = [0; 4096];
        let there = &mut there[..bytes.len().min(4096)];
        let read = self.there.read(there)?;
        for (expected, found) in bytes.iter().zip(&there[..read]) {
            if expected != found {
                self.differs = true;
                return Err(io::Error::other("the file differs"));
            }
            self.line += u64::from(*found == b'\n');
        }
        if read == 0 && !bytes.is_empty() {
            self.differs = true;
            return Err(io::Error::other("the file ends"));
        }
        Ok(read)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
