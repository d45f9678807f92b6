//! From the text of a machine file to a draft. The parser keeps the span of every key and value, so that each message
//! has its line.

mod host;
mod network;

use crate::costs;
use crate::detect::DISK;
use crate::draft::{self, DraftEdge, DraftMemory, DraftProcessor};
use crate::driver::Driver;
use crate::error::{MachineError, Place, Problem};
use crate::memory::{LeafRate, ProcessorKind};
use crate::tree::Machine;
use crate::units::{UnitError, parse_bandwidth, parse_bytes, parse_flops, parse_time};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The `base` of a machine file that stands for the computer that it is read on.
pub const THIS_COMPUTER: &str = "this computer";

const TOP_KEYS: &str = "name, description, base, root, memory";
const MEMORY_KEYS: &str = "name, replaces, computes_like, parent, count, capacity, path, source, edge, network, settings, processor, leaf, host, contexts";
/// Beside those of [`costs::KEYS`].
const EDGE_KEYS: &str =
    "driver, read, write, latency, sibling, alignment, transfer_max, list_max, in_flight_max, strict, source";
const PROCESSOR_KEYS: &str = "kind, rate, call_overhead, code, source";
const LEAF_KEYS: &str = "rate, bytes, call_overhead, source";

impl Machine {
    /// Reads the text of a machine file; `file` is its name for messages, and where paths of other files in it begin. A file
    /// with `base = "this computer"` is laid over the detected computer, with the disk under the directory that the file gives
    /// or else the working directory; any other base is a shipped machine or a machine file.
    ///
    /// # Errors
    /// What is wrong, with file, line, memory and key.
    pub fn parse(text: &str, file: &str) -> Result<Machine, MachineError> {
        Machine::parse_on(text, file, Machine::detect)
    }

    /// Like [`Machine::parse`], with another way to find this computer: a function from the directory of its disk.
    ///
    /// # Errors
    /// What is wrong, with file, line, memory and key.
    pub fn parse_on(
        text: &str,
        file: &str,
        this_computer: impl Fn(&Path) -> Result<Machine, MachineError>,
    ) -> Result<Machine, MachineError> {
        parse(text, file, &this_computer, &[identity(file)]).map_err(|error| error.in_file(file))
    }

    /// Reads a machine file.
    ///
    /// # Errors
    /// The file cannot be read, or what is wrong in it.
    pub fn read(path: &Path) -> Result<Machine, MachineError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| MachineError::from(Problem::Unreadable { reason: error.to_string() }).in_file(&file))?;
        Machine::parse(&text, &file)
    }
}

/// Whether what a person typed for a machine is a path, and not the name of one that is shipped.
pub(crate) fn is_path(text: &str) -> bool {
    text.contains('/') || text.ends_with(".toml")
}

/// Reads the text of a machine that is shipped.
pub(crate) fn parse_shipped(text: &str, file: &str) -> Result<Machine, MachineError> {
    parse(text, file, &Machine::detect, &[file.to_owned()]).map_err(|error| error.in_file(file))
}

/// What a file is, however it is named.
fn identity(file: &str) -> String {
    Path::new(file).canonicalize().map_or_else(|_| file.to_owned(), |path| path.display().to_string())
}

/// Reads a machine file: the last of these, each of which is the base of the one before.
fn parse(text: &str, file: &str, this_computer: Computer<'_>, files: &[String]) -> Result<Machine, MachineError> {
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, span.start));
        MachineError::from(Problem::Syntax { message: error.message().into() }).at_line(line)
    })?;
    let reader = Reader { text };
    let (mut name, mut description, mut root, mut base) = (None, None, None, None);
    let mut memories = Vec::new();
    for (key, value) in document.get_ref() {
        let at = reader.at(value, None, "", key.get_ref());
        match key.get_ref().as_ref() {
            "name" => name = Some(at.text("a name such as \"cell\"")?.to_string()),
            "description" => description = Some(at.text("a sentence")?.to_string()),
            "base" => base = Some((at.text("\"this computer\" or a machine")?, at.line)),
            "root" => root = Some((at.text("the name of a memory")?.to_string(), at.line)),
            "memory" => memories = reader.memories(&at)?,
            _ => return Err(reader.unknown(key, None, "", TOP_KEYS)),
        }
    }
    let name =
        name.ok_or_else(|| MachineError::from(Problem::Missing { example: "name = \"cell\"" }).at_key("name"))?;
    let mut drafts = memories;
    match base {
        Some((THIS_COMPUTER, _)) => {
            let is_disk = |memory: &&DraftMemory| memory.replaces.as_ref().unwrap_or(&memory.name) == DISK;
            let disk = drafts.iter().find(is_disk).filter(|memory| memory.path.is_some());
            if let Some(disk) = disk {
                disk.check_path()?;
            }
            let dir = disk.and_then(|disk| disk.path.as_deref()).unwrap_or(Path::new("."));
            let computer = this_computer(dir)?;
            drafts = draft::lay_over(&computer, drafts)?;
        }
        Some((found, line)) => {
            let machine = base_of(found, file, this_computer, files);
            drafts = draft::lay_over(&machine.map_err(|error| error.at(file, line, "base"))?, drafts)?;
        }
        None => {
            if let Some(memory) = drafts.iter().find(|memory| memory.replaces.is_some()) {
                let line = memory.lines.get("replaces").copied();
                let error = MachineError::from(Problem::NeedsBase).at_line(line);
                return Err(error.in_memory(&memory.name).at_key("replaces"));
            }
        }
    }
    draft::computing(&mut drafts)?;
    if let Some((root, line)) = root {
        drafts = draft::cut(drafts, &root).map_err(|error| error.at_line(Some(line)))?;
    }
    draft::finish(&name, &description.unwrap_or_default(), &drafts)
}

/// How this computer is found, by the directory of its disk.
type Computer<'a> = &'a dyn Fn(&Path) -> Result<Machine, MachineError>;

/// The machine that `file` is laid over: one of the shipped, or that of a file beside it.
fn base_of(found: &str, file: &str, this_computer: Computer<'_>, files: &[String]) -> Result<Machine, MachineError> {
    let (label, text, identity) = if is_path(found) {
        let path = Path::new(file).parent().unwrap_or(Path::new("")).join(found);
        let label = path.display().to_string();
        let text = std::fs::read_to_string(&path);
        let unreadable = |error: std::io::Error| Problem::Unreadable { reason: format!("{label}: {error}") };
        (label.clone(), text.map_err(unreadable)?, identity(&label))
    } else {
        let known = || Machine::shipped_names().collect::<Vec<_>>().join(", ");
        let unknown = || Problem::UnknownBase { found: found.into(), known: known() };
        let label = Machine::shipped_file(found);
        (label.clone(), Machine::shipped_text(found).ok_or_else(unknown)?.to_owned(), label)
    };
    let through: Vec<String> = files.iter().cloned().chain([identity.clone()]).collect();
    if let Some(first) = files.iter().position(|before| *before == identity) {
        return Err(Problem::BaseCircle { through: through[first..].to_vec() }.into());
    }
    parse(&text, &label, this_computer, &through).map_err(|error| error.in_file(&label))
}

/// The line of a byte offset, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    1 + text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count()
}

struct Reader<'t> {
    text: &'t str,
}

/// One value and where it stands.
struct At<'v> {
    value: &'v DeValue<'v>,
    memory: Option<&'v str>,
    key: String,
    line: usize,
}

type Key<'t> = Spanned<std::borrow::Cow<'t, str>>;

impl Reader<'_> {
    fn at<'v>(&self, value: &'v Spanned<DeValue<'v>>, memory: Option<&'v str>, table: &str, key: &str) -> At<'v> {
        let key = if table.is_empty() { key.to_string() } else { format!("{table}.{key}") };
        At { value: value.get_ref(), memory, key, line: line_of(self.text, value.span().start) }
    }

    fn unknown(&self, key: &Key<'_>, memory: Option<&str>, table: &str, known: &str) -> MachineError {
        let dot = if table.is_empty() { "" } else { "." };
        Place {
            file: None,
            line: Some(line_of(self.text, key.span().start)),
            memory: memory.map(str::to_string),
            key: Some(format!("{table}{dot}{}", key.get_ref())),
        }
        .error(Problem::UnknownKey { known: known.into() })
    }

    fn memories(&self, at: &At<'_>) -> Result<Vec<DraftMemory>, MachineError> {
        let array = at.value.as_array().ok_or_else(|| at.wrong_type("[[memory]] tables"))?;
        array
            .iter()
            .map(|element| {
                let at = self.at(element, None, "", "memory");
                let table = at.value.as_table().ok_or_else(|| at.wrong_type("a [[memory]] table"))?;
                self.memory(table, at.line)
            })
            .collect()
    }

    fn memory(&self, table: &DeTable<'_>, line: usize) -> Result<DraftMemory, MachineError> {
        let name = table.get("name").ok_or_else(|| {
            let problem = Problem::Missing { example: "name = \"dram\"" };
            MachineError::from(problem).at_line(Some(line)).at_key("memory.name")
        })?;
        let name = self.at(name, None, "memory", "name").text("a name such as \"dram\"")?.to_string();
        let mut memory = DraftMemory { name: name.clone(), ..DraftMemory::default() };
        memory.lines.insert(String::new(), line);
        for (key, value) in table {
            let at = self.at(value, Some(&name), "", key.get_ref());
            memory.lines.insert(at.key.clone(), at.line);
            match key.get_ref().as_ref() {
                "name" => {}
                "replaces" => memory.replaces = Some(at.text("the name of a detected memory")?.to_string()),
                "computes_like" => memory.computes_like = Some(at.text("the name of another memory")?.to_string()),
                "parent" => memory.parent = Some(at.text("the name of the memory above")?.to_string()),
                "count" => memory.count = Some(at.whole("a whole number such as 8")? as usize),
                "capacity" => memory.capacity_bytes = Some(at.quantity("a size such as \"256 MiB\"", parse_bytes)?),
                "path" => memory.path = Some(PathBuf::from(at.text("a directory such as \"/scratch\"")?)),
                "source" => memory.source = Some(at.text("a text")?.to_string()),
                "edge" => memory.edge = Some(self.edge(&at, &name, &mut memory)?),
                "network" => memory.network = Some(self.network(&at, &name, &mut memory)?),
                "settings" => memory.settings = self.settings(&at, &name, &mut memory)?,
                "processor" => memory.processor = Some(self.processor(&at, &name, &mut memory)?),
                "host" => memory.host = Some(self.host(&at, &name, &mut memory)?),
                "contexts" => memory.contexts = Some(self.contexts(&at, &name, &mut memory)?),
                "leaf" => memory.leaves = self.leaves(&at, &name, &mut memory)?,
                _ => return Err(self.unknown(key, Some(&name), "", MEMORY_KEYS)),
            }
        }
        Ok(memory)
    }

    fn edge(&self, at: &At<'_>, name: &str, memory: &mut DraftMemory) -> Result<DraftEdge, MachineError> {
        let table = at.value.as_table().ok_or_else(|| at.wrong_type("a [memory.edge] table"))?;
        let mut edge = DraftEdge::default();
        for (key, value) in table {
            let at = self.at(value, Some(name), "edge", key.get_ref());
            memory.lines.insert(at.key.clone(), at.line);
            let bandwidth = "a bandwidth such as \"25.6 GB/s\"";
            match key.get_ref().as_ref() {
                "driver" => {
                    let found = at.text("a driver such as \"shared\"")?;
                    let unknown = || {
                        let known: Vec<&str> = Driver::all().iter().map(|driver| driver.name).collect();
                        at.error(Problem::UnknownDriver { found: found.into(), known: known.join(", ") })
                    };
                    edge.driver = Some(Driver::named(found).ok_or_else(unknown)?);
                }
                "read" => edge.read = Some(at.quantity(bandwidth, parse_bandwidth)?),
                "write" => edge.write = Some(at.quantity(bandwidth, parse_bandwidth)?),
                "sibling" => edge.sibling = Some(at.quantity(bandwidth, parse_bandwidth)?),
                "latency" => edge.latency_ns = Some(at.quantity("a time such as \"160 ns\"", parse_time)?),
                "alignment" => edge.alignment = Some(at.quantity("a size such as \"16 B\"", parse_bytes)?),
                "transfer_max" => edge.transfer_max = Some(at.quantity("a size such as \"16 KiB\"", parse_bytes)?),
                "list_max" => edge.list_max = Some(at.whole("a whole number such as 2048")?),
                "in_flight_max" => edge.in_flight_max = Some(at.whole("a whole number such as 16")?),
                "strict" => {
                    let strict = at.value.as_bool();
                    edge.strict = Some(strict.ok_or_else(|| at.wrong_type("true or false"))?);
                }
                "source" => edge.source = Some(at.text("a text")?.to_string()),
                other => {
                    match costs::KEYS.iter().zip(&mut edge.costs).find(|((key, _), _)| costs::in_table(key) == other) {
                        Some(((_, unit), cost)) => {
                            let text = at.text(unit.example())?;
                            *cost = Some(unit.parse(text).map_err(|error| at.error(Problem::Unit(error)))?);
                        }
                        None => {
                            let of_costs: Vec<&str> = costs::KEYS.iter().map(|(key, _)| costs::in_table(key)).collect();
                            let known = format!("{EDGE_KEYS}, {}", of_costs.join(", "));
                            return Err(self.unknown(key, Some(name), "edge", &known));
                        }
                    }
                }
            }
        }
        Ok(edge)
    }

    /// What the driver is told: texts, numbers, true or false, all of which it gets as texts.
    fn settings(
        &self,
        at: &At<'_>,
        name: &str,
        memory: &mut DraftMemory,
    ) -> Result<BTreeMap<String, String>, MachineError> {
        let table = at.value.as_table().ok_or_else(|| at.wrong_type("a [memory.settings] table"))?;
        let mut settings = BTreeMap::new();
        for (key, value) in table {
            let at = self.at(value, Some(name), "settings", key.get_ref());
            memory.lines.insert(at.key.clone(), at.line);
            let text = match at.value {
                DeValue::String(text) => text.to_string(),
                DeValue::Boolean(flag) => flag.to_string(),
                DeValue::Integer(_) => at.whole("a whole number")?.to_string(),
                _ => return Err(at.wrong_type("a text, a whole number, true or false")),
            };
            settings.insert(key.get_ref().to_string(), text);
        }
        Ok(settings)
    }

    fn processor(&self, at: &At<'_>, name: &str, memory: &mut DraftMemory) -> Result<DraftProcessor, MachineError> {
        let table = at.value.as_table().ok_or_else(|| at.wrong_type("a [memory.processor] table"))?;
        let mut processor = DraftProcessor::default();
        for (key, value) in table {
            let at = self.at(value, Some(name), "processor", key.get_ref());
            memory.lines.insert(at.key.clone(), at.line);
            match key.get_ref().as_ref() {
                "kind" => {
                    let found = at.text("a kind of processor such as \"cpu\"")?;
                    let kind = ProcessorKind::from_name(found);
                    processor.kind =
                        Some(kind.ok_or_else(|| at.error(Problem::UnknownProcessor { found: found.into() }))?);
                }
                "rate" => processor.rate = Some(at.quantity("a rate such as \"100 GFLOP/s\"", parse_flops)?),
                "call_overhead" => {
                    processor.call_overhead_ns = Some(at.quantity("a time such as \"50 ns\"", parse_time)?);
                }
                "code" => processor.code_bytes = Some(at.quantity("a size such as \"32 KiB\"", parse_bytes)?),
                "source" => processor.source = Some(at.text("a text")?.to_string()),
                _ => return Err(self.unknown(key, Some(name), "processor", PROCESSOR_KEYS)),
            }
        }
        Ok(processor)
    }

    /// `[memory.leaf.TASK]` tables.
    fn leaves(&self, at: &At<'_>, name: &str, memory: &mut DraftMemory) -> Result<Vec<LeafRate>, MachineError> {
        let tables = at.value.as_table().ok_or_else(|| at.wrong_type("[memory.leaf.TASK] tables"))?;
        let mut leaves = Vec::with_capacity(tables.len());
        for (task, value) in tables {
            let at = self.at(value, Some(name), "leaf", task.get_ref());
            memory.lines.insert(at.key.clone(), at.line);
            let table = at.value.as_table().ok_or_else(|| at.wrong_type("a [memory.leaf.TASK] table"))?;
            let mut leaf = LeafRate {
                task: task.get_ref().to_string(),
                flops_per_second: None,
                bytes_per_second: None,
                call_overhead_ns: None,
                source: None,
            };
            let prefix = at.key.clone();
            for (key, value) in table {
                let at = self.at(value, Some(name), &prefix, key.get_ref());
                memory.lines.insert(at.key.clone(), at.line);
                match key.get_ref().as_ref() {
                    "rate" => leaf.flops_per_second = Some(at.quantity("a rate such as \"20 GFLOP/s\"", parse_flops)?),
                    "bytes" => {
                        leaf.bytes_per_second = Some(at.quantity("a bandwidth such as \"10 GB/s\"", parse_bandwidth)?);
                    }
                    "call_overhead" => {
                        leaf.call_overhead_ns = Some(at.quantity("a time such as \"50 ns\"", parse_time)?);
                    }
                    "source" => leaf.source = Some(at.text("a text")?.to_string()),
                    _ => return Err(self.unknown(key, Some(name), &prefix, LEAF_KEYS)),
                }
            }
            leaves.push(leaf);
        }
        Ok(leaves)
    }
}

impl Place {
    fn error(self, problem: Problem) -> MachineError {
        MachineError { place: Box::new(self), problem }
    }
}

/// A key that is missing in a table.
fn missing(table: &At<'_>, key: &str, example: &'static str) -> MachineError {
    let mut error = table.error(Problem::Missing { example });
    error.place.key = Some(key.to_owned());
    error
}

impl<'v> At<'v> {
    fn error(&self, problem: Problem) -> MachineError {
        let memory = self.memory.map(str::to_string);
        Place { file: None, line: Some(self.line), memory, key: Some(self.key.clone()) }.error(problem)
    }

    fn wrong_type(&self, expected: &str) -> MachineError {
        self.error(Problem::WrongType { expected: expected.into(), found: self.value.type_str().into() })
    }

    fn text(&self, expected: &str) -> Result<&'v str, MachineError> {
        self.value.as_str().ok_or_else(|| self.wrong_type(expected))
    }

    /// A quantity with its unit in a text.
    fn quantity<T>(&self, expected: &str, parse: fn(&str) -> Result<T, UnitError>) -> Result<T, MachineError> {
        parse(self.text(expected)?).map_err(|error| self.error(Problem::Unit(error)))
    }

    fn number(&self, expected: &str) -> Result<f64, MachineError> {
        let digits = match self.value {
            DeValue::Float(float) => float.as_str().replace('_', ""),
            DeValue::Integer(_) => self.whole(expected)?.to_string(),
            _ => return Err(self.wrong_type(expected)),
        };
        digits.parse().map_err(|_| self.wrong_type(expected))
    }

    fn whole(&self, expected: &str) -> Result<u64, MachineError> {
        let integer = self.value.as_integer().ok_or_else(|| self.wrong_type(expected))?;
        u64::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| {
            self.error(Problem::OutOfRange { found: integer.as_str().into(), expected: "a whole number, not negative" })
        })
    }
}
