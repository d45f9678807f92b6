//! Random programs on random machines with a disk, of which the power fails at a random operation: of what was written
//! since a file was last made durable, any part may be there and any part not, and names may be those of before. The run
//! is continued to the results of sequential execution, whatever was lost.

mod support;

use multigrain::Settings;
use multigrain::rooms::plan::testing::Rng;
use multigrain::rooms::store::faults::Faults;
use multigrain::rooms::store::{Operation, OperationKind, Verdict};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::random::{Failure, RandomCase, interrupted, many_interrupted};

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

/// `None` when the case proves nothing: no disk, no result, or no plan. Else whether some run continued.
fn one(seed: u64) -> Result<Option<bool>, Failure> {
    let Some(mut case) = RandomCase::new(seed, 0x706f_7765)? else { return Ok(None) };
    // Each store by itself, or some together.
    let interval = Some(Duration::from_micros(case.rng.pick(&[0, 100, 400, 1600]).copied().unwrap_or(0)));
    interrupted(&mut case, 4, interval, |case, setup, before, operations| {
        let n = case.rng.below(operations);
        let faults = Arc::new(PowerLoss { n, known: Mutex::default() });
        // What was there before is as durable as it will ever be.
        for path in case.left()? {
            let content = std::fs::read(&path)?;
            faults.known.lock().unwrap().durable.insert(path, content);
        }
        let resume = before > 0;
        let settings = Settings { resume, discard: !resume, journal_interval: interval, ..Settings::default() };
        let _ = setup.runtime(Some(faults.clone())).run(&case.job, settings);
        let left = case.left()?;
        faults.known.lock().unwrap().lose(&left, &mut case.rng)?;
        Ok(format!("power lost at {n}, "))
    })
}

#[test]
fn runs_that_lose_power_continue_to_the_same_bytes() {
    many_interrupted(50, one);
}
