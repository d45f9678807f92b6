//! Partitions as NEXUS files have them, IQ-TREE's among them.
//!
//! ```text
//! #nexus
//! begin sets;
//!   charset first = 1-300\3 2-300\3;
//!   charset second = 3-300\3 301 400-500;
//!   charpartition mine = HKY+G:first, GTR+I+G:second;
//! end;
//! ```

use super::Entry;
use crate::alignment::nexus::{statements, word};
use std::collections::HashMap;

/// The sets of a text without comments, with their models where a `charpartition` names them; the error is what is wrong and
/// where.
pub(super) fn entries(text: &str) -> Result<Vec<Entry<'_>>, (String, &str)> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut models: HashMap<&str, &str> = HashMap::new();
    for statement in statements(text) {
        let (name, rest) = word(statement);
        let parts = || rest.split_once('=').ok_or_else(|| (format!("{name} is NAME = ..."), statement));
        match name.to_ascii_uppercase().as_str() {
            "CHARSET" => {
                let (name, sites) = parts()?;
                if sites.contains(':') {
                    return Err(("sites of other files: put all sites into one alignment".to_owned(), sites.trim()));
                }
                let ranges = sites.split([',', ' ', '\t', '\n', '\r']).filter(|range| !range.is_empty()).collect();
                entries.push(Entry { model: None, name: name.trim(), ranges, at: statement });
            }
            "CHARPARTITION" => {
                for part in outer(parts()?.1) {
                    let pair = part.split_once(':').map(|(model, name)| (name.trim(), model.trim()));
                    let (name, model) = pair.ok_or_else(|| ("a part is MODEL:CHARSET".to_owned(), part.trim()))?;
                    models.insert(name, model);
                }
            }
            _ => {}
        }
    }
    if !models.is_empty() {
        // Sets that the partition does not name belong to other partitions.
        entries.retain(|entry| models.contains_key(entry.name));
    }
    for entry in &mut entries {
        entry.model = models.remove(entry.name);
    }
    match models.into_iter().next() {
        Some((name, model)) => Err((format!("there is no charset {name}"), model)),
        None => Ok(entries),
    }
}

/// What stands between commas outside of braces.
fn outer(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth <= 0
    })
}
