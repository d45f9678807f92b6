//! From a machine to the text of a machine file.

use crate::costs::{self, Costs};
use crate::host::{Contexts, Host};
use crate::memory::{Edge, LeafRate, Memory, Processor};
use crate::network::{Network, Shape};
use crate::tree::Machine;
use crate::units::{format_bandwidth, format_bytes, format_flops, format_time};
use std::fmt::Write;

impl Machine {
    /// The text of a machine file that reads back as exactly this machine.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        line(&mut text, "name", &quoted(&self.name));
        line(&mut text, "description", &quoted(&self.description));
        for memory in self.memories() {
            self.write_memory(&mut text, memory);
        }
        text
    }

    fn write_memory(&self, text: &mut String, memory: &Memory) {
        text.push_str("\n[[memory]]\n");
        line(text, "name", &quoted(&memory.name));
        if let Some(parent) = memory.parent {
            line(text, "parent", &quoted(&self.memory(parent).name));
        }
        if memory.count != 1 {
            line(text, "count", &memory.count.to_string());
        }
        line(text, "capacity", &quoted(&format_bytes(memory.capacity_bytes)));
        if let Some(path) = memory.path.as_ref().and_then(|path| path.to_str()) {
            line(text, "path", &quoted(path));
        }
        source(text, &memory.source);
        if let Some(edge) = &memory.edge {
            text.push_str("[memory.edge]\n");
            write_edge(text, edge);
            source(text, &memory.edge_source);
        }
        if let Some(network) = &memory.network {
            write_network(text, network);
        }
        if !memory.settings.is_empty() {
            text.push_str("[memory.settings]\n");
            memory.settings.iter().for_each(|(key, value)| line(text, key, &quoted(value)));
        }
        if let Some(processor) = &memory.processor {
            text.push_str("[memory.processor]\n");
            write_processor(text, processor);
            source(text, &memory.processor_source);
        }
        for leaf in &memory.leaves {
            write_leaf(text, leaf);
        }
        if let Some(host) = &memory.host {
            write_host(text, host);
        }
        if let Some(contexts) = &memory.contexts {
            write_contexts(text, contexts);
        }
    }
}

fn write_edge(text: &mut String, edge: &Edge) {
    line(text, "driver", &quoted(edge.driver.name));
    line(text, "read", &quoted(&format_bandwidth(edge.read_bytes_per_second)));
    line(text, "write", &quoted(&format_bandwidth(edge.write_bytes_per_second)));
    line(text, "latency", &quoted(&format_time(edge.latency_ns)));
    // What the driver does without is told where the edge has it.
    let usual = edge.driver.costs.values();
    for (((key, unit), cost), (usual, none)) in
        costs::KEYS.iter().zip(edge.costs.values()).zip(usual.into_iter().zip(Costs::NONE.values()))
    {
        if cost != usual || usual != none {
            line(text, costs::in_table(key), &quoted(&unit.format(cost)));
        }
    }
    if let Some(rate) = edge.sibling_bytes_per_second {
        line(text, "sibling", &quoted(&format_bandwidth(rate)));
    }
    let rules = &edge.rules;
    if rules.alignment_bytes != 1 {
        line(text, "alignment", &quoted(&format_bytes(rules.alignment_bytes)));
    }
    if let Some(bytes) = rules.transfer_bytes_max {
        line(text, "transfer_max", &quoted(&format_bytes(bytes)));
    }
    if let Some(entries) = rules.list_entries_max {
        line(text, "list_max", &entries.to_string());
    }
    if let Some(transfers) = rules.in_flight_max {
        line(text, "in_flight_max", &transfers.to_string());
    }
    if rules.strict {
        line(text, "strict", "true");
    }
}

fn write_network(text: &mut String, network: &Network) {
    text.push_str("[memory.network]\n");
    line(text, "shape", &quoted(network.shape.name()));
    match &network.shape {
        Shape::Crossbar => {}
        Shape::FatTree { leaf, up, .. } => {
            line(text, "leaf", &leaf.to_string());
            line(text, "up", &up.to_string());
        }
        Shape::Torus { sizes, .. } => line(text, "sizes", &format!("{sizes:?}")),
        Shape::Dragonfly { router, group, global, .. } => {
            line(text, "router", &router.to_string());
            line(text, "group", &group.to_string());
            line(text, "global", &global.to_string());
        }
    }
    if let Some(rate) = network.shape.link_bytes_per_second() {
        line(text, "link", &quoted(&format_bandwidth(rate)));
    }
    line(text, "message", &quoted(&format_time(network.message_ns)));
    source(text, &network.source);
}

fn write_processor(text: &mut String, processor: &Processor) {
    line(text, "kind", &quoted(processor.kind.name()));
    line(text, "rate", &quoted(&format_flops(processor.flops_per_second)));
    line(text, "call_overhead", &quoted(&format_time(processor.call_overhead_ns)));
    if processor.code_bytes != 0 {
        line(text, "code", &quoted(&format_bytes(processor.code_bytes)));
    }
}

fn write_host(text: &mut String, host: &Host) {
    text.push_str("[memory.host]\n");
    line(text, "cores", &host.cores.to_string());
    line(text, "threads", &host.threads_per_core.to_string());
    line(text, "scheduler", &quoted(host.scheduler.name()));
    line(text, "interrupts", &host.interrupts_per_second.to_string());
    source(text, &host.source);
}

fn write_contexts(text: &mut String, contexts: &Contexts) {
    text.push_str("[memory.contexts]\n");
    line(text, "scheduler", &quoted(contexts.scheduler.name()));
    line(text, "switch", &quoted(&format_time(contexts.switch_ns)));
    line(text, "look", &quoted(&format_time(contexts.look_ns)));
    line(text, "spawn", &quoted(&format_time(contexts.spawn_ns)));
    line(text, "spread", &toml::Value::Float(contexts.spread).to_string());
    source(text, &contexts.source);
}

/// Names of tasks are one line; as keys they need quotes, and nothing but quotes and backslashes escaped.
fn write_leaf(text: &mut String, leaf: &LeafRate) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "[memory.leaf.\"{}\"]", leaf.task.replace('\\', "\\\\").replace('"', "\\\""));
    if let Some(rate) = leaf.flops_per_second {
        line(text, "rate", &quoted(&format_flops(rate)));
    }
    if let Some(bytes) = leaf.bytes_per_second {
        line(text, "bytes", &quoted(&format_bandwidth(bytes)));
    }
    if let Some(ns) = leaf.call_overhead_ns {
        line(text, "call_overhead", &quoted(&format_time(ns)));
    }
    source(text, &leaf.source);
}

fn source(text: &mut String, source: &Option<String>) {
    if let Some(source) = source {
        line(text, "source", &quoted(source));
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}
