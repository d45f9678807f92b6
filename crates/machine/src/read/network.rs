//! The table `[memory.network]`, which is given as a whole.

use super::{At, Reader, missing};
use crate::draft::DraftMemory;
use crate::error::{MachineError, Problem};
use crate::network::{Network, Shape};
use crate::units::{parse_bandwidth, parse_time};

/// Keys of each shape, beside those of all.
const SHAPES: [(&str, &[&str]); 4] = [
    ("crossbar", &[]),
    ("fat tree", &["leaf", "up", "link"]),
    ("torus", &["sizes", "link"]),
    ("dragonfly", &["router", "group", "global", "link"]),
];
const KEYS: [&str; 3] = ["shape", "message", "source"];

impl Reader<'_> {
    pub(super) fn network(&self, at: &At<'_>, name: &str, memory: &mut DraftMemory) -> Result<Network, MachineError> {
        let table = at.value.as_table().ok_or_else(|| at.wrong_type("a [memory.network] table"))?;
        let shape = table.get("shape").ok_or_else(|| missing(at, "network.shape", "shape = \"crossbar\""))?;
        let shape = self.at(shape, Some(name), "network", "shape");
        let found = shape.text("a shape such as \"fat tree\"")?;
        let Some((shape, own)) = SHAPES.into_iter().find(|(name, _)| *name == found) else {
            return Err(shape.error(Problem::UnknownShape { found: found.into() }));
        };
        let (mut wholes, mut sizes, mut link, mut message_ns, mut source) = ([None; 5], None, None, 0.0, None);
        for (key, value) in table {
            let at = self.at(value, Some(name), "network", key.get_ref());
            memory.lines.insert(at.key.clone(), at.line);
            let word = key.get_ref().as_ref();
            if !own.contains(&word) && !KEYS.contains(&word) {
                let known = [&KEYS[..], own].concat().join(", ");
                return Err(self.unknown(key, Some(name), "network", &format!("{known} (of a {shape})")));
            }
            match word {
                "shape" => {}
                "sizes" => sizes = Some(self.sizes(&at, name)?),
                "link" => link = Some(at.quantity("a bandwidth such as \"50 GB/s\"", parse_bandwidth)?),
                "message" => message_ns = at.quantity("a time such as \"200 ns\"", parse_time)?,
                "source" => source = Some(at.text("a text")?.to_string()),
                whole => {
                    let place = ["leaf", "up", "router", "group", "global"].iter().position(|key| *key == whole);
                    wholes[place.unwrap_or(0)] = Some(at.whole("a whole number such as 16")? as usize);
                }
            }
        }
        let missing = |key: &str, example| missing(at, key, example);
        let [leaf, up, router, group, global] = wholes;
        let link = link.ok_or_else(|| missing("network.link", "link = \"50 GB/s\""));
        let shape = match shape {
            "fat tree" => Shape::FatTree {
                leaf: leaf.ok_or_else(|| missing("network.leaf", "leaf = 32"))?,
                up: up.ok_or_else(|| missing("network.up", "up = 16"))?,
                link_bytes_per_second: link?,
            },
            "torus" => Shape::Torus {
                sizes: sizes.ok_or_else(|| missing("network.sizes", "sizes = [10, 10, 10]"))?,
                link_bytes_per_second: link?,
            },
            "dragonfly" => Shape::Dragonfly {
                router: router.ok_or_else(|| missing("network.router", "router = 4"))?,
                group: group.ok_or_else(|| missing("network.group", "group = 8"))?,
                global: global.ok_or_else(|| missing("network.global", "global = 4"))?,
                link_bytes_per_second: link?,
            },
            _ => Shape::Crossbar,
        };
        Ok(Network { shape, message_ns, source })
    }

    fn sizes(&self, at: &At<'_>, name: &str) -> Result<Vec<usize>, MachineError> {
        let expected = "a list of whole numbers such as [10, 10, 10]";
        let list = at.value.as_array().ok_or_else(|| at.wrong_type(expected))?;
        list.iter().map(|size| Ok(self.at(size, Some(name), "network", "sizes").whole(expected)? as usize)).collect()
    }
}
