//! The machine files under machines/, built in, so that they can be named from any directory.

use crate::error::{MachineError, Problem};
use crate::tree::Machine;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../machines/", $name, ".toml")))),+]
    };
}

/// Name and text of each shipped machine: this computer first, then the machines of the runtime paper, then
/// larger ones.
const SHIPPED: [(&str, &str); 16] = shipped![
    "local",
    "disk",
    "disk+local",
    "xeon",
    "smp",
    "ata-disk",
    "cluster",
    "cell",
    "cell-blade",
    "ps3",
    "cluster-of-smps",
    "disk+ps3",
    "cluster-of-ps3s",
    "server",
    "gpu-server",
    "thousand-nodes",
];

/// What other crates bring along.
static REGISTERED: RwLock<Vec<(&str, &str)>> = RwLock::new(Vec::new());

/// Those of this room, and then what is registered.
fn all() -> Vec<(&'static str, &'static str)> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    SHIPPED.iter().chain(&*registered).copied().collect()
}

impl Machine {
    /// The names of the machine files that are built in.
    pub fn shipped_names() -> impl ExactSizeIterator<Item = &'static str> {
        all().into_iter().map(|(name, _)| name)
    }

    /// Ships one more, with a driver that is not of this room. A name that is taken keeps its machine.
    pub fn ship(name: &'static str, text: &'static str) {
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        if !SHIPPED.iter().chain(&*registered).any(|(known, _)| *known == name) {
            registered.push((name, text));
        }
    }

    /// The text of a built-in machine file.
    pub fn shipped_text(name: &str) -> Option<&'static str> {
        all().into_iter().find(|(known, _)| *known == name).map(|(_, text)| text)
    }

    /// How a built-in machine file is called in messages.
    pub(crate) fn shipped_file(name: &str) -> String {
        format!("machines/{name}.toml")
    }

    /// A built-in machine; those that build on this computer detect it.
    ///
    /// # Errors
    /// No machine of this name, or the detection fails.
    pub fn shipped(name: &str) -> Result<Machine, MachineError> {
        let text = Machine::shipped_text(name).ok_or_else(|| {
            let known: Vec<&str> = Machine::shipped_names().collect();
            Problem::UnknownShipped { name: name.into(), known: known.join(", ") }
        })?;
        crate::read::parse_shipped(text, &Machine::shipped_file(name))
    }

    /// A machine by what a person typed: the name of a shipped one, or the path of a machine file. A text with a slash
    /// or the ending `.toml` is a path.
    ///
    /// # Errors
    /// As [`Machine::shipped`] and [`Machine::read`].
    pub fn named(text: &str) -> Result<Machine, MachineError> {
        if crate::read::is_path(text) { Machine::read(Path::new(text)) } else { Machine::shipped(text) }
    }
}
