//! This computer as the operating system describes it: the disk under a directory, DRAM, NUMA nodes where there is more
//! than one, cores. All files are read below two roots, /proc and /sys, so that a test can put canned ones there.

mod text;

use crate::driver::Driver;
use crate::error::{MachineError, Problem};
use crate::memory::{Edge, Memory, MemoryId, Processor, ProcessorKind};
use crate::tree::Machine;
use multigrain_simd::Isa;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What stands in `source` where nothing was measured.
pub const ASSUMED: &str = "assumed";

/// The name of the detected disk.
pub(crate) const DISK: &str = "disk";

/// What a solid-state disk of the last years gives for large direct transfers.
const DISK_BYTES_PER_SECOND: f64 = 2e9;
const DISK_LATENCY_NS: f64 = 100e3;
/// One channel of DDR4 gives more, even when shared with other tenants.
const DRAM_BYTES_PER_SECOND: f64 = 10e9;
const DRAM_LATENCY_NS: f64 = 100.0;
/// At 3 GHz: two units of eight lanes with fused multiply-add, or one of four lanes without.
const CORE_FLOPS_PER_SECOND_WIDE: f64 = 96e9;
const CORE_FLOPS_PER_SECOND: f64 = 12e9;
const CORE_CALL_OVERHEAD_NS: f64 = 100.0;
/// The smallest second-level cache of a processor of the last fifteen years.
const CACHE_BYTES: u64 = 256 << 10;

/// The cores that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// One CPU (hardware thread) of each core, ascending.
    pub cpus: Vec<usize>,
    /// The same CPUs by NUMA node; a single entry when there is one node, or when the nodes differ.
    pub nodes: Vec<Vec<usize>>,
    /// The private cache of a core: level 2, or level 1 data.
    pub cache_bytes: Option<u64>,
}

impl Machine {
    /// This computer: the disk under `dir`, its DRAM as far as it is free for this process, and its cores. Capacities
    /// and counts are read from the operating system; bandwidths, latencies and rates are conservative guesses marked
    /// [`ASSUMED`] until they are measured.
    ///
    /// # Errors
    /// `dir` is not a directory, or /proc, /sys or the affinity mask cannot be read.
    pub fn detect(dir: &Path) -> Result<Machine, MachineError> {
        let computer = System::here();
        let available_bytes = computer.available_bytes()?;
        assemble(dir, free_bytes(dir)?, available_bytes, &computer.cores(&affinity()?))
    }
}

/// The cores that this process may use, for whoever binds threads to them.
///
/// # Errors
/// The affinity mask cannot be read.
pub fn cores() -> Result<Cores, MachineError> {
    Ok(System::here().cores(&affinity()?))
}

/// Bytes of this computer's memory, and no more than any control group of this process allows: what no budget can exceed.
///
/// # Errors
/// /proc cannot be read.
pub fn memory_bytes() -> Result<u64, MachineError> {
    System::here().total_bytes()
}

/// Bytes of the largest cache that the first core of this process can reach, if the kernel tells.
pub fn last_level_cache_bytes() -> Option<u64> {
    let system = System::here();
    let cpu = affinity().ok()?.first().copied()?;
    let sizes = (0..16).filter_map(|index| {
        let file = format!("devices/system/cpu/cpu{cpu}/cache/index{index}/size");
        text::cache_size(&system.sys(&file)?)
    });
    sizes.max()
}

/// The tree of the detected parts.
fn assemble(dir: &Path, free_bytes: u64, available_bytes: u64, cores: &Cores) -> Result<Machine, MachineError> {
    let assumed = || Some(ASSUMED.to_string());
    let mut memories = vec![Memory {
        path: Some(dir.to_path_buf()),
        source: Some("detected: free space of the file system".into()),
        ..Memory::root(DISK, free_bytes)
    }];
    memories.push(Memory {
        source: Some("detected: available memory".into()),
        edge_source: assumed(),
        ..Memory::child(
            "dram",
            MemoryId(0),
            1,
            available_bytes,
            Edge::new(Driver::DISK, DISK_BYTES_PER_SECOND, DISK_LATENCY_NS),
        )
    });
    let shared = Edge::new(Driver::SHARED, DRAM_BYTES_PER_SECOND, DRAM_LATENCY_NS);
    let nodes = cores.nodes.len();
    if nodes > 1 {
        memories.push(Memory {
            source: Some("detected: NUMA nodes".into()),
            edge_source: assumed(),
            ..Memory::child("node", MemoryId(1), nodes, (available_bytes / nodes as u64).max(1), shared)
        });
    }
    let parent = MemoryId(memories.len() - 1);
    let count = cores.nodes[0].len();
    let cache = match cores.cache_bytes {
        Some(_) => "detected: cores of the affinity mask, cache of a core",
        None => "detected: cores of the affinity mask; cache size assumed",
    };
    memories.push(Memory {
        source: Some(cache.into()),
        edge_source: assumed(),
        processor_source: assumed(),
        ..Memory::child("core", parent, count, cores.cache_bytes.unwrap_or(CACHE_BYTES), shared).with_processor(
            Processor {
                kind: ProcessorKind::Cpu,
                flops_per_second: assumed_flops_per_second(),
                call_overhead_ns: CORE_CALL_OVERHEAD_NS,
                code_bytes: 0,
            },
        )
    });
    Machine::new("this computer", "As detected from the operating system.", memories)
}

fn detection(what: &'static str, reason: impl ToString) -> MachineError {
    Problem::Detection { what, reason: reason.to_string() }.into()
}

/// Bytes that an ordinary user can still write under `dir`.
fn free_bytes(dir: &Path) -> Result<u64, MachineError> {
    if !dir.is_dir() {
        return Err(Problem::NotADirectory { path: dir.to_path_buf() }.into());
    }
    let stat = rustix::fs::statvfs(dir).map_err(|error| detection("the free space of the disk", error))?;
    // A full or read-only file system has none; a memory of zero bytes would refuse even to read from it.
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize).max(1))
}

/// The CPUs that this thread may run on, ascending.
fn affinity() -> Result<Vec<usize>, MachineError> {
    let set = rustix::thread::sched_getaffinity(None).map_err(|error| detection("the affinity mask", error))?;
    let cpus: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    if cpus.is_empty() {
        return Err(detection("the affinity mask", "it is empty"));
    }
    Ok(cpus)
}

/// The two file systems in which the kernel describes the computer.
struct System {
    proc: PathBuf,
    sys: PathBuf,
}

impl System {
    fn here() -> System {
        System { proc: "/proc".into(), sys: "/sys".into() }
    }

    fn sys(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.sys.join(path)).ok()
    }

    /// What the kernel estimates to be available, and no more than any control group leaves.
    fn available_bytes(&self) -> Result<u64, MachineError> {
        let available = self.meminfo("MemAvailable")?;
        Ok(self.groups(|limit, used| self.left(limit, used)).fold(available, u64::min).max(1))
    }

    /// All memory, and no more than any control group allows.
    fn total_bytes(&self) -> Result<u64, MachineError> {
        let total = self.meminfo("MemTotal")?;
        Ok(self.groups(|limit, _| text::cgroup_limit(&self.sys(limit)?)).fold(total, u64::min).max(1))
    }

    fn meminfo(&self, key: &str) -> Result<u64, MachineError> {
        let meminfo = std::fs::read_to_string(self.proc.join("meminfo"))
            .map_err(|error| detection("the available memory", error))?;
        text::meminfo(&meminfo, key)
            .ok_or_else(|| detection("the available memory", format!("/proc/meminfo has no {key}")))
    }

    /// What control groups of both versions say of memory: their files of the limit and of what is used.
    fn groups(&self, say: impl Fn(&str, &str) -> Option<u64>) -> impl Iterator<Item = u64> {
        let v2 = self.cgroup_folders(None).into_iter().map(|folder| (folder, "memory.max", "memory.current"));
        let v1 = self
            .cgroup_folders(Some("memory"))
            .into_iter()
            .map(|folder| (folder, "memory.limit_in_bytes", "memory.usage_in_bytes"));
        v2.chain(v1)
            .filter_map(move |(folder, limit, used)| say(&format!("{folder}/{limit}"), &format!("{folder}/{used}")))
    }

    /// What a control group leaves: its limit less what is used.
    fn left(&self, limit: &str, used: &str) -> Option<u64> {
        let limit = text::cgroup_limit(&self.sys(limit)?)?;
        let used = self.sys(used).and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
        Some(limit.saturating_sub(used))
    }

    /// The folders of the process's control group and of all groups above it, below /sys. Inside a container the path
    /// may not exist; the folder of the root then holds the container's own limits.
    fn cgroup_folders(&self, controller: Option<&str>) -> Vec<String> {
        let Ok(text) = std::fs::read_to_string(self.proc.join("self/cgroup")) else { return Vec::new() };
        let Some(path) = text::cgroup_path(&text, controller) else { return Vec::new() };
        let mount = match controller {
            None => "fs/cgroup".to_string(),
            Some(name) => format!("fs/cgroup/{name}"),
        };
        let path = path.trim_matches('/');
        let mut folders = vec![mount.clone()];
        folders.extend(path.match_indices('/').map(|(end, _)| format!("{mount}/{}", &path[..end])));
        if !path.is_empty() {
            folders.push(format!("{mount}/{path}"));
        }
        folders
    }

    /// How many CPUs the control groups' quotas allow.
    fn cpu_quota(&self) -> Option<usize> {
        let v2 = self.cgroup_folders(None).into_iter().map(|folder| self.sys(&format!("{folder}/cpu.max")));
        let v1 = self.cgroup_folders(Some("cpu")).into_iter().map(|folder| {
            let quota = self.sys(&format!("{folder}/cpu.cfs_quota_us"))?;
            Some(format!("{} {}", quota.trim(), self.sys(&format!("{folder}/cpu.cfs_period_us"))?.trim()))
        });
        v2.chain(v1).flatten().filter_map(|text| text::cpu_quota(&text)).min()
    }

    /// The cores behind the CPUs of an affinity mask.
    fn cores(&self, affinity: &[usize]) -> Cores {
        let mut siblings_seen = BTreeSet::new();
        let mut cpus = Vec::new();
        for &cpu in affinity {
            if siblings_seen.contains(&cpu) {
                continue;
            }
            let file = format!("devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            siblings_seen.extend(self.sys(&file).and_then(|text| text::cpu_list(&text)).unwrap_or_default());
            cpus.push(cpu);
        }
        cpus.truncate(self.cpu_quota().unwrap_or(usize::MAX));
        let nodes = self.nodes(&cpus);
        let cache_bytes = cpus.first().and_then(|cpu| self.cache_bytes(*cpu, &siblings_seen));
        Cores { cpus, nodes, cache_bytes }
    }

    /// The CPUs by NUMA node, when there are several nodes with equally many.
    fn nodes(&self, cpus: &[usize]) -> Vec<Vec<usize>> {
        let online = self.sys("devices/system/node/online").and_then(|text| text::cpu_list(&text));
        let mut nodes: Vec<Vec<usize>> = Vec::new();
        for node in online.unwrap_or_default() {
            let list = self.sys(&format!("devices/system/node/node{node}/cpulist"));
            let list = list.and_then(|text| text::cpu_list(&text)).unwrap_or_default();
            let of_node: Vec<usize> = cpus.iter().copied().filter(|cpu| list.contains(cpu)).collect();
            if !of_node.is_empty() {
                nodes.push(of_node);
            }
        }
        let all = nodes.iter().map(Vec::len).sum::<usize>() == cpus.len();
        let equal = nodes.windows(2).all(|pair| pair[0].len() == pair[1].len());
        if all && equal && !nodes.is_empty() { nodes } else { vec![cpus.to_vec()] }
    }

    /// The second-level cache of a core, or its first-level data cache; a cache that several cores share is divided.
    fn cache_bytes(&self, cpu: usize, all_cpus: &BTreeSet<usize>) -> Option<u64> {
        let own = format!("devices/system/cpu/cpu{cpu}");
        let threads = self.sys(&format!("{own}/topology/thread_siblings_list"));
        let threads = threads.and_then(|text| text::cpu_list(&text)).map_or(1, |cpus| cpus.len().max(1));
        let mut best: Option<(u64, u64)> = None;
        for index in 0..16 {
            let file = |name: &str| self.sys(&format!("{own}/cache/index{index}/{name}"));
            let Some(level) = file("level").and_then(|text| text.trim().parse::<u64>().ok()) else { continue };
            let is_data = file("type").is_some_and(|text| text.trim() != "Instruction");
            let Some(size) = file("size").and_then(|text| text::cache_size(&text)) else { continue };
            let shared = file("shared_cpu_list").and_then(|text| text::cpu_list(&text)).unwrap_or_default();
            let in_use = shared.iter().filter(|cpu| all_cpus.contains(cpu)).count().max(1);
            let bytes = (size * threads as u64 / in_use.max(threads) as u64).max(1);
            if is_data && level <= 2 && best.is_none_or(|(best_level, _)| level > best_level) {
                best = Some((level, bytes));
            }
        }
        best.map(|(_, bytes)| bytes)
    }
}

fn assumed_flops_per_second() -> f64 {
    if Isa::Avx2.is_supported() { CORE_FLOPS_PER_SECOND_WIDE } else { CORE_FLOPS_PER_SECOND }
}

#[cfg(test)]
mod tests;
