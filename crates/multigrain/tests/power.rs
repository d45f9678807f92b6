//! Random programs on random machines with a disk, of which the power fails at a random operation: of what was written
//! since a file was last made durable, any part may be there and any part not, and names may be those of before. The run
//! is continued to the results of sequential execution, whatever was lost.

mod support;

use multigrain::rooms::plan::testing::Rng;
use multigrain::rooms::store::faults::{Count, Faults};
use multigrain::rooms::store::{Operation, OperationKind, Verdict};
use multigrain::{Error, Settings};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::random::{Failure, RandomCase, cases};
use support::run;

/// What a disk writes whole.
const SECTOR: usize = 512;

/// Ends everything before operation `n`, and knows what is durable by then.
struct PowerLoss {
    n: u64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// What files held when they were last made durable.
    durable: HashMap<PathBuf, Vec<u8>>,
    /// Final names that are not durable yet.
    named: Vec<PathBuf>,
}

impl Faults for PowerLoss {
    fn before(&self, operation: &Operation<'_>) -> Verdict {
        let mut known = self.known.lock().unwrap();
        if operation.number >= self.n {
            return Verdict::Dead;
        }
        let path = operation.path.to_owned();
        match operation.kind {
            // What others write meanwhile may be durable, too; it is not believed.
            OperationKind::Sync => {
                if let Ok(content) = std::fs::read(&path) {
                    known.durable.insert(path, content);
                }
            }
            OperationKind::Rename => known.named.push(path),
            OperationKind::SyncDirectory => known.named.retain(|name| name.parent() != path.parent()),
            _ => {}
        }
        Verdict::Go
    }
}

/// The name of a result while it is written.
fn part(name: &Path) -> PathBuf {
    let mut part = name.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

impl Known {
    /// Leaves in a folder what the power might have left.
    fn lose(&self, left: &[PathBuf], rng: &mut Rng) -> std::io::Result<()> {
        for path in left {
            let now = std::fs::read(path)?;
            let was_named = self.durable.get(&part(path)).filter(|_| !self.durable.contains_key(path));
            let nothing = Vec::new();
            let before = self.durable.get(path).or(was_named).unwrap_or(&nothing);
            let is_journal = path.extension().is_some_and(|extension| extension == "journal");
            let lost = if is_journal && now.starts_with(before) {
                // It grows at its end alone; a record may be torn.
                now[..rng.range(before.len() as u64, now.len() as u64) as usize].to_vec()
            } else if is_journal {
                if rng.percent(50) { now } else { before.clone() }
            } else {
                // All of it, nothing, or anything between.
                let there = rng.pick(&[0, 20, 50, 80, 100]).copied().unwrap_or(0);
                let mut lost = now;
                for (number, sector) in lost.chunks_mut(SECTOR).enumerate() {
                    if !rng.percent(there) {
                        let old = before.get(number * SECTOR..).unwrap_or(&[]);
                        let len = old.len().min(sector.len());
                        sector[..len].copy_from_slice(&old[..len]);
                        sector[len..].fill(0);
                    }
                }
                lost
            };
            std::fs::write(path, lost)?;
            if self.named.contains(path) && !part(path).exists() && rng.percent(50) {
                std::fs::rename(path, part(path))?;
            }
        }
        Ok(())
    }
}

/// `None` when the case proves nothing: no disk, no result, or no plan. Else whether the last run continued.
fn one(seed: u64) -> Result<Option<bool>, Failure> {
    let Some(mut case) = RandomCase::new(seed, 0x706f_7765)? else { return Ok(None) };
    let setup = case.setup(case.dram_bytes)?;
    // Each store by itself, or some together.
    let interval = Some(Duration::from_micros(case.rng.pick(&[0, 100, 400, 1600]).copied().unwrap_or(0)));
    let count = Arc::new(Count::new());
    match run(&setup.runtime(Some(count.clone())), &case.job, false, interval) {
        Ok(_) => case.clear()?,
        Err(Error::Plan(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let mut continued = false;
    for _ in 0..4 {
        let mut what = String::new();
        for time in 0..case.rng.range(1, 3) {
            let n = case.rng.below(count.operations());
            what += &format!("power lost at {n}, ");
            let faults = Arc::new(PowerLoss { n, known: Mutex::default() });
            // What was there before is as durable as it will ever be.
            for path in case.left()? {
                let content = std::fs::read(&path)?;
                faults.known.lock().unwrap().durable.insert(path, content);
            }
            let resume = time > 0;
            let settings = Settings { resume, discard: !resume, journal_interval: interval, ..Settings::default() };
            let _ = setup.runtime(Some(faults.clone())).run(&case.job, settings);
            let left = case.left()?;
            faults.known.lock().unwrap().lose(&left, &mut case.rng)?;
        }
        let outcome = run(&setup.runtime(None), &case.job, true, interval).map_err(|e| format!("{what}{e}"))?;
        continued |= outcome.resumed;
        case.compare(&what)?;
        case.nothing_else_is_left(&what)?;
        case.clear()?;
    }
    Ok(Some(continued))
}

#[test]
fn runs_that_lose_power_continue_to_the_same_bytes() {
    let mut continued = 0;
    let (ran, seeds) = cases(50, |seed| {
        let found = one(seed)?;
        continued += u64::from(found == Some(true));
        Ok(found.is_some())
    });
    eprintln!("{seeds}, {continued} continued");
    assert!(ran < 50 || continued * 3 > ran, "only {continued} of {ran} cases continued: the proof is too weak");
}
