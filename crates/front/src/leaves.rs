//! How fast leaves are on this computer, for the simulator.

use crate::Front;
use multigrain::{Machine, MachineChoice, Options, Runtime, fit_leaf_rates};
use multigrain_console::Failure;

/// How often each job is run.
const TIMES: usize = 5;

/// The machine with the rates of the leaves of these applications, or of all that name jobs for it.
pub(crate) fn measured(front: &Front, machine: Machine, apps: &[String], here: bool) -> Result<Machine, Failure> {
    if !here {
        let name = &machine.name;
        return Err(Failure::Request(format!(
            "--leaves measures on this computer, machine {name} is another: give its leaf rates in its file"
        )));
    }
    let measurable = || front.applications.iter().filter(|entry| !entry.leaf_jobs.is_empty());
    let known: Vec<&str> = measurable().map(|entry| entry.name).collect();
    if known.is_empty() {
        return Err(Failure::Request("--leaves: no application of this command names jobs for it".to_owned()));
    }
    if let Some(unknown) = apps.iter().find(|app| !known.contains(&app.as_str())) {
        return Err(Failure::Request(format!("--leaves {unknown}: leaves can be measured of {}", known.join(", "))));
    }
    let root_is_disk = machine.memories().iter().any(|m| m.edge.is_some_and(|edge| edge.driver.files));
    let in_memory = if root_is_disk { machine.without_root() } else { machine.clone() };
    let options = Options { machine: MachineChoice::Given(Box::new(in_memory)), ..Options::default() };
    let runtime = Runtime::new(options)?;
    let mut samples = Vec::new();
    for entry in measurable().filter(|entry| apps.is_empty() || apps.iter().any(|asked| asked == entry.name)) {
        for arguments in entry.leaf_jobs {
            let app = front.typed(entry.name, arguments)?.prepare(&runtime)?;
            samples.extend(runtime.measure_leaves(&app.job, TIMES)?);
        }
    }
    let rates = fit_leaf_rates(&samples, "measured: leaves of small jobs in memory, all workers at work");
    // What computes is the last of the list: no leaf stands before its parents.
    let leaf = machine.memories().last().map(|memory| memory.name.clone()).unwrap_or_default();
    Ok(machine.with(&leaf, |memory| {
        memory.leaves.retain(|old| !rates.iter().any(|new| new.task == old.task));
        memory.leaves.extend(rates);
    })?)
}
