//! The tree as text for people: one line a memory, indented by depth, in aligned columns.

use crate::memory::{Memory, MemoryId};
use crate::tree::Machine;
use crate::units::{approximate_bandwidth, approximate_bytes, approximate_flops, approximate_time};

const COLUMNS: [(&str, Align); 8] = [
    ("memory", Align::Left),
    ("count", Align::Right),
    ("capacity", Align::Right),
    ("edge", Align::Left),
    ("read", Align::Right),
    ("write", Align::Right),
    ("latency", Align::Right),
    ("processor", Align::Left),
];

#[derive(Clone, Copy, PartialEq)]
enum Align {
    Left,
    Right,
}

impl Machine {
    /// The tree as aligned text: each memory with its capacity, the edge to its parent with bandwidth and latency, its
    /// processor, and below the table where the constants come from.
    pub fn render(&self) -> String {
        let mut rows: Vec<Vec<String>> = vec![COLUMNS.iter().map(|(title, _)| title.to_string()).collect()];
        rows.extend(self.ids().map(|id| self.row(id)));
        let mut text = if self.description.is_empty() {
            format!("{}\n\n", self.name)
        } else {
            format!("{}: {}\n\n", self.name, self.description)
        };
        let widths: Vec<usize> = (0..COLUMNS.len())
            .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        for row in &rows {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(COLUMNS) {
                let fill = " ".repeat(width - cell.chars().count());
                match align {
                    Align::Left => line += &format!("{cell}{fill}  "),
                    Align::Right => line += &format!("{fill}{cell}  "),
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text.push('\n');
        for memory in self.memories() {
            for line in sources(memory) {
                text += &format!("{}: {line}\n", memory.name);
            }
        }
        text
    }

    fn row(&self, id: MemoryId) -> Vec<String> {
        let memory = self.memory(id);
        let mut depth = 0;
        let mut at = memory.parent;
        while let Some(parent) = at {
            depth += 1;
            at = self.memory(parent).parent;
        }
        let edge = |text: fn(&crate::Edge) -> String| memory.edge.as_ref().map_or("-".into(), text);
        vec![
            format!("{}{}", "  ".repeat(depth), memory.name),
            memory.count.to_string(),
            approximate_bytes(memory.capacity_bytes),
            edge(|edge| edge.driver.to_string()),
            edge(|edge| approximate_bandwidth(edge.read_bytes_per_second)),
            edge(|edge| approximate_bandwidth(edge.write_bytes_per_second)),
            edge(|edge| approximate_time(edge.latency_ns)),
            memory.processor.map_or("-".into(), |processor| {
                format!("{} {}", processor.kind, approximate_flops(processor.flops_per_second))
            }),
        ]
    }
}

/// Where the constants of a memory come from, a line each, what its siblings give, and its directory.
fn sources(memory: &Memory) -> Vec<String> {
    let mut lines = Vec::new();
    let unknown = "source not given";
    lines.push(format!("capacity {}", memory.source.as_deref().unwrap_or(unknown)));
    if memory.edge.is_some() {
        lines.push(format!("edge {}", memory.edge_source.as_deref().unwrap_or(unknown)));
    }
    if let Some(rate) = memory.edge.and_then(|edge| edge.sibling_bytes_per_second) {
        lines.push(format!("siblings {} from one to another", approximate_bandwidth(rate)));
    }
    if let Some(network) = &memory.network {
        let (shape, message) = (network.shape.name(), approximate_time(network.message_ns));
        let source = network.source.as_deref().unwrap_or(unknown);
        lines.push(format!("network {shape}, {message} a message: {source}"));
    }
    if memory.processor.is_some() {
        lines.push(format!("processor {}", memory.processor_source.as_deref().unwrap_or(unknown)));
    }
    if let Some(host) = &memory.host {
        let (cores, threads, scheduler) = (host.cores, host.threads_per_core, host.scheduler.name());
        let source = host.source.as_deref().unwrap_or(unknown);
        lines.push(format!("host {cores} x {threads} hardware threads under {scheduler}: {source}"));
    }
    if let Some(contexts) = &memory.contexts {
        let source = contexts.source.as_deref().unwrap_or(unknown);
        lines.push(format!("contexts under {}: {source}", contexts.scheduler.name()));
    }
    if let Some(path) = &memory.path {
        lines.push(format!("directory {}", path.display()));
    }
    lines
}
