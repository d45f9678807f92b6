//! The command `machine`.

use crate::Front;
use crate::args::MachineArgs;
use crate::json;
use crate::leaves;
use multigrain::{Machine, whole};
use multigrain_console::Failure;
use multigrain_console::{print, write_whole};
use std::path::Path;

/// Shows a machine, measured where it is this computer, and writes it if asked.
pub(crate) fn machine(front: &Front, args: &MachineArgs) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        whole::check_target(path)?;
        // A name of a shipped machine is no file.
        whole::check_keeps(path, args.machine.as_ref().map(Path::new).filter(|read| read.is_file()))?;
    }
    let mut machine = match &args.machine {
        None => Machine::detect(Path::new("."))?,
        Some(name) => Machine::named(name)?,
    };
    let here = is_this_computer(&machine);
    if here && !args.assumed {
        machine = machine.probe()?;
    }
    if let Some(apps) = &args.leaves {
        machine = leaves::measured(front, machine, apps, here)?;
    }
    if let Some(path) = &args.output {
        write_whole(path, &machine.to_toml())?;
    }
    if args.json {
        let value = json::machine(&machine).map_err(|e| Failure::Run(format!("cannot write JSON: {e}")))?;
        return print(&json::line(&value));
    }
    let mut text = machine.render();
    if !here {
        text += "\nnothing was measured: this machine is described, not built on the one detected here\n";
    }
    print(&text)
}

/// Whether the machine was built from what was detected. What is only described (a PlayStation 3, a cluster) keeps the
/// constants of its description: measuring here would say nothing of it.
fn is_this_computer(machine: &Machine) -> bool {
    machine.memories().iter().any(|m| m.source.as_deref().is_some_and(|s| s.starts_with("detected")))
}
