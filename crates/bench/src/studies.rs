//! What prints something else than rows beside peers: tables and figures of their own. Each is asked for alone.

use crate::entry::Entry;
use multigrain_console::Failure;
use std::path::Path;

mod grains;
mod levels;
mod loops;
mod papers;

/// Refuses a folder for figures that is none, before anything is measured.
fn check_folder(folder: Option<&Path>) -> Result<(), Failure> {
    match folder {
        Some(folder) if !folder.is_dir() => {
            let folder = folder.display();
            Err(Failure::Request(format!("--figures {folder}: no such directory; name one that exists")))
        }
        _ => Ok(()),
    }
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::study(
        "levels",
        "Every application on every machine that this computer can be, and where its time goes, as a table and figures; only when it is named",
        levels::levels,
    ),
    Entry::study(
        "multigrain",
        "1 to 16 searches for trees under every policy, as a table and figures; only when it is named",
        grains::grains,
    ),
    Entry::study(
        "loops",
        "More tasks than workers, in turns by direct hand-off and otherwise, beside the system's own threads, as a table and a figure; only when it is named",
        loops::loops,
    ),
    Entry::simulated(
        "papers",
        "Published figures beside simulated ones, and their figures drawn; only when it is named",
        papers::papers,
    ),
    Entry::simulated(
        "scaling",
        "How two applications and a thousand bootstraps scale on larger machines, in virtual time; only when it is named",
        papers::scaling,
    ),
];
