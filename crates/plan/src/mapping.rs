//! Mappings: values of tunables for each task and memory, from a file, instead of the planner's own choice.

use crate::PlanError;
use std::collections::BTreeMap;

/// Values of tunables. The file reads `[sgemm.dram]` (task, memory into whose blocks the task is split) followed by
/// `m = 4096` and so on; what is not given is chosen by the planner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    values: BTreeMap<String, BTreeMap<String, BTreeMap<String, u64>>>,
}

impl Mapping {
    /// Reads a mapping from TOML.
    ///
    /// # Errors
    /// When the text is not of that form; the message carries file and line.
    pub fn parse(text: &str, file: &str) -> Result<Mapping, PlanError> {
        let values = toml::from_str(text).map_err(|e| PlanError::MappingFile {
            file: file.to_owned(),
            message: e.to_string().trim_end().to_owned(),
        })?;
        Ok(Mapping { values })
    }

    /// The text that [`parse`](Self::parse) reads as this mapping.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (task, memories) in &self.values {
            for (memory, values) in memories {
                // In quotes: a name may have spaces.
                text += &format!("[{task:?}.{memory:?}]\n");
                values.iter().for_each(|(name, value)| text += &format!("{name:?} = {value}\n"));
            }
        }
        text
    }

    /// Sets one value.
    pub fn set(&mut self, task: &str, memory: &str, tunable: &str, value: u64) {
        let tasks = self.values.entry(task.to_owned()).or_default();
        tasks.entry(memory.to_owned()).or_default().insert(tunable.to_owned(), value);
    }

    /// The values for a task and a memory.
    pub fn get(&self, task: &str, memory: &str) -> impl Iterator<Item = (&str, u64)> {
        self.values.get(task).and_then(|m| m.get(memory)).into_iter().flatten().map(|(n, &v)| (n.as_str(), v))
    }

    /// Takes over the values of another mapping, in the place of its own.
    pub fn overlay(&mut self, other: &Mapping) {
        for (task, memory) in other.entries() {
            other.get(task, memory).for_each(|(name, value)| self.set(task, memory, name, value));
        }
    }

    /// Tasks and memories that are mapped.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().flat_map(|(task, m)| m.keys().map(|memory| (task.as_str(), memory.as_str())))
    }
}
