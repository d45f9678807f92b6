//! A number that tells two machines apart, equal on every computer and in every release that keeps the fields.

use crate::tree::{Edge, Machine, Memory};

/// FNV-1a, 64 bits (Fowler, Noll and Vo): short, and unlike the standard library's hasher fixed for all time.
struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn float(&mut self, number: f64) {
        // Adding zero turns -0.0 into 0.0, which compares equal to it.
        self.number((number + 0.0).to_bits());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    fn option(&mut self, number: Option<u64>) {
        self.number(u64::from(number.is_some()));
        self.number(number.unwrap_or(0));
    }

    /// What does not change when the same computer is measured again.
    fn structure(&mut self, memory: &Memory) {
        self.text(&memory.name);
        self.option(memory.parent.map(|parent| parent.0 as u64));
        self.number(memory.count as u64);
        self.text(memory.edge.map_or("", |edge| edge.driver.name));
        // Files from before there were any keep their fingerprints.
        for (key, value) in &memory.settings {
            self.text(key);
            self.text(value);
        }
        self.text(memory.processor.map_or("", |processor| processor.kind.name()));
        if let Some(Edge { rules, .. }) = memory.edge {
            self.number(rules.alignment_bytes);
            self.option(rules.transfer_bytes_max);
            self.option(rules.list_entries_max);
            self.option(rules.in_flight_max);
            self.number(u64::from(rules.strict));
        }
    }

    fn constants(&mut self, memory: &Memory) {
        self.number(memory.capacity_bytes);
        if let Some(edge) = memory.edge {
            self.float(edge.read_bytes_per_second);
            self.float(edge.write_bytes_per_second);
            self.float(edge.latency_ns);
            // Files from before there was such a constant keep their fingerprints.
            if let Some(rate) = edge.sibling_bytes_per_second {
                self.float(rate);
            }
            if edge.costs != edge.driver.costs {
                edge.costs.values().into_iter().for_each(|cost| self.float(cost));
            }
        }
        if let Some(processor) = memory.processor {
            self.float(processor.flops_per_second);
            self.float(processor.call_overhead_ns);
            self.number(processor.code_bytes);
        }
    }
}

/// The offset basis of 64-bit FNV-1a.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

impl Machine {
    /// A hash of structure and constants: names, parents, counts, capacities, edges with their rules, processors. Not of
    /// the machine's name and description, the paths and the sources. Detected capacities (free space, available
    /// memory) and measured constants differ from run to run, and so does this; [`Machine::structure_fingerprint`]
    /// does not.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv(BASIS);
        for memory in self.memories() {
            hash.structure(memory);
            hash.constants(memory);
        }
        hash.0
    }

    /// A hash of the structure alone: names, parents, counts, drivers, transfer rules, kinds of processors.
    pub fn structure_fingerprint(&self) -> u64 {
        let mut hash = Fnv(BASIS);
        for memory in self.memories() {
            hash.structure(memory);
        }
        hash.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_fnv_1a() {
        // The published test vectors of FNV-1a, 64 bits.
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut hash = Fnv(BASIS);
            hash.bytes(text.as_bytes());
            assert_eq!(hash.0, expected, "{text:?}");
        }
    }
}
