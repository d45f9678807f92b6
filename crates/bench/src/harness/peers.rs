//! Which peers there are: `peers.json`, written by `bench/install-peers.sh`.

use multigrain_console::Failure;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Names the folder of the peers, as the install script takes it.
const FOLDER_VARIABLE: &str = "MULTIGRAIN_PEERS";

/// How to install a peer that is not there.
const INSTALL: &str = "bench/install-peers.sh installs it";

/// What `peers.json` lists.
pub(crate) struct Catalogue {
    entries: Vec<Value>,
    /// Why there are no entries.
    empty: String,
}

impl Catalogue {
    /// Reads the list. None there is no error: every peer is then missing.
    pub(crate) fn load() -> Result<Catalogue, Failure> {
        let Some(file) = file() else {
            return Ok(Catalogue { entries: Vec::new(), empty: format!("not installed; {INSTALL}") });
        };
        let refuse = |why: String| {
            let name = file.display();
            Failure::Request(format!(
                "cannot use the list of peers {name}: {why}; bench/install-peers.sh writes it anew"
            ))
        };
        let text = std::fs::read_to_string(&file).map_err(|e| refuse(e.to_string()))?;
        let entries = serde_json::from_str(&text).map_err(|e| refuse(e.to_string()))?;
        Ok(Catalogue { entries, empty: format!("not listed in {}; {INSTALL}", file.display()) })
    }

    /// The command that starts a peer, or why it cannot be had.
    pub(crate) fn command(&self, name: &str) -> Result<Vec<String>, String> {
        let Some(entry) = self.entries.iter().find(|e| e["name"] == name) else {
            return Err(self.empty.clone());
        };
        if let Some(why) = entry["missing"].as_str() {
            return Err(if why.contains("install-peers.sh") { why.to_owned() } else { format!("{why}; {INSTALL}") });
        }
        let words = entry["command"].as_array().map(Vec::as_slice).unwrap_or_default();
        let command: Vec<String> = words.iter().filter_map(|w| w.as_str().map(str::to_owned)).collect();
        if command.is_empty() || command.len() != words.len() {
            return Err("its entry in peers.json has no command; bench/install-peers.sh writes it anew".to_owned());
        }
        Ok(command)
    }
}

/// The folder that is named, or `target/peers` above the current directory or above this program.
fn file() -> Option<PathBuf> {
    const LIST: &str = "peers.json";
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        return Some(Path::new(&folder).join(LIST)).filter(|f| f.exists());
    }
    let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    starts
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors())
        .map(|above| above.join("target/peers").join(LIST))
        .find(|file| file.exists())
}
