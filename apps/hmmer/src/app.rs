//! The command: sequences of a database are scored against profiles, and the hits become a table.

pub use crate::args::Args;

use crate::domain::Finder;
use crate::filter;
use crate::generate as inputs;
use crate::kernel;
use crate::profile::{Cutoff, Profile, ProfileError, read_within};
use crate::query::{DOMAINS, Query};
use crate::sequence::text::STANDARD_INPUT;
use crate::sequence::{Database, Limit, SequenceError};
use crate::table::{Threshold, Thresholds};
use crate::task::{self, Filter, SCORES, Score};
use multigrain::app::{AppJob, Application};
use multigrain::prelude::*;
use multigrain::whole;
use multigrain_simd::Isa;
use std::path::Path;
use std::sync::Arc;

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
        let domains = self.looks_for_hits().then(|| domain_work(&profiles, &database)).flatten();
        let source = database.take_source();
        let (job, residues, results) = self.job(&profiles, &database, source)?;
        let job = domains.into_iter().fold(job, |job, (what, bytes)| job.with_work_bytes(what, bytes));
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

/// What it takes at least to find domains, in words and in bytes: one domain as long as its profile, if any sequence can hold
/// one. How much longer regions take is known when they are found.
fn domain_work(profiles: &[Profile], database: &Database) -> Option<(String, u64)> {
    let longest = (0..database.len()).map(|i| database.length(i)).max().unwrap_or(0);
    let bytes = |profile: &&Profile| {
        let region = longest.min(profile.nodes() as u64);
        Finder::working_bytes(profile, region, region)
    };
    let most = profiles.iter().max_by_key(bytes)?;
    let what = format!("finding a domain as long as profile {} of {} nodes", most.name, most.nodes());
    Some((what, bytes(&most)))
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
        let kept_bytes = profiles.iter().map(Profile::kept_bytes).fold(database.kept_bytes(), u64::saturating_add);
        let job = Job::new(Self::NAME, program).with_afterwards(DOMAINS).with_kept_bytes(kept_bytes);
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
        let request = |e: &dyn std::error::Error| Error::Request(e.to_string());
        let profiles = self.profiles(runtime)?;
        let of_profiles = profiles.iter().map(Profile::kept_bytes).sum::<u64>();
        let most = runtime.kept_bytes_max()?.saturating_sub(of_profiles) / size_of::<u64>() as u64;
        let limit = Limit {
            memory_bytes: runtime.memory_bytes()? / MEMORY_SHARE,
            sequences: usize::try_from(most).unwrap_or(usize::MAX),
            directory: target.filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        };
        let database = match &self.database {
            Some(path) => Database::read(path, limit, runtime.workers()?),
            None => {
                // Before there are lengths, for which every residue of those that are like the profile is drawn.
                let tables: u64 = profiles.iter().map(|profile| self.tables_bytes(profile)).sum();
                let kept = of_profiles.saturating_add(Database::indices_bytes(self.n)).saturating_add(tables);
                runtime.check_kept_bytes(Self::NAME, kept, 0, 0)?;
                let (made, sequences) = (inputs::Sequences::new(self.seed, self.n, self.m as usize), self.n as usize);
                let unmade = || Database::of_lengths(made.clone().lengths(), limit, sequences);
                if runtime.only_plans() {
                    Ok(unmade())
                } else {
                    // What takes seconds to be made and would not fit then is refused before: how long it is is known in no time.
                    if self.n >= GENERATED_SLOWLY {
                        self.check_room(runtime, &profiles, unmade())?;
                    }
                    Database::from_reader(made.text(), Path::new("(generated)"), limit, sequences)
                }
            }
        };
        let database = database.map_err(|error| match error {
            SequenceError::NoRoom { sequences } => {
                let bytes = of_profiles.saturating_add(Database::indices_bytes(sequences));
                runtime.check_kept_bytes(Self::NAME, bytes, 0, 0).err().unwrap_or_else(|| request(&error))
            }
            error => request(&error),
        });
        Ok((profiles, database?))
    }

    /// Reads or makes profiles, as long as there is room for them.
    fn profiles(&self, runtime: &Runtime) -> Result<Vec<Profile>, Error> {
        let check = |bytes: u64| runtime.check_kept_bytes(Self::NAME, bytes, 0, 0);
        let (mut bytes, mut checked) = (0, 0);
        let mut has_room = |profile: &Profile| {
            bytes += profile.kept_bytes();
            // To ask takes longer than to read a small profile.
            let is_due = bytes > checked + checked / 8;
            checked = if is_due { bytes } else { checked };
            !is_due || check(bytes).is_ok()
        };
        let nodes = self.m as usize;
        let profiles = match &self.profile {
            Some(path) => read_within(path, &mut has_room),
            None => {
                check(Profile::bytes_of(nodes))?;
                Profile::read(inputs::profile_text(self.seed, nodes), Path::new("(generated)"))
            }
        };
        profiles.map_err(|error| match (&error, check(bytes)) {
            (ProfileError::NoRoom { .. }, Err(refused)) => refused,
            _ => Error::Request(error.to_string()),
        })
    }

    /// Bytes of the tables that a profile is given to the runtime as.
    fn tables_bytes(&self, profile: &Profile) -> u64 {
        match self.max {
            true => size_of_val(&kernel::pack(&profile.local())[..]) as u64,
            false => filter::pack(Isa::detect(), profile, &self.filters()).len() as u64,
        }
    }

    /// Refuses sequences for which there is no room.
    fn check_room(&self, runtime: &Runtime, profiles: &[Profile], mut unmade: Database) -> Result<(), Error> {
        let source = unmade.take_source();
        let (job, ..) = self.job(profiles, &unmade, source)?;
        let fits = runtime.fits(&job).or_else(|_| runtime.plan(&job).map(|_| ()));
        match fits.map_err(|mut error| (error.enough().is_some(), error)) {
            Err((true, error)) => Err(error),
            // Whatever else is wrong is found when it comes to it.
            Ok(()) | Err((false, _)) => Ok(()),
        }
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
}
