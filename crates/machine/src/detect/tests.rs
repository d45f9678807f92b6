//! Detection on canned /proc and /sys folders.

use super::*;
use std::fs;

/// A folder with these files, as one computer's /proc and /sys.
struct Canned {
    dir: tempfile::TempDir,
}

impl Canned {
    fn new(files: &[(&str, &str)]) -> Canned {
        let canned = Canned { dir: tempfile::tempdir().unwrap() };
        canned.add("proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable:   1048576 kB\n");
        for (path, text) in files {
            canned.add(path, text);
        }
        canned
    }

    fn add(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn cpu(&self, cpu: usize, siblings: &str, caches: &[(u64, &str, &str, &str)]) {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        self.add(&format!("{folder}/topology/thread_siblings_list"), siblings);
        for (index, (level, kind, size, shared)) in caches.iter().enumerate() {
            let cache = format!("{folder}/cache/index{index}");
            self.add(&format!("{cache}/level"), &format!("{level}\n"));
            self.add(&format!("{cache}/type"), &format!("{kind}\n"));
            self.add(&format!("{cache}/size"), &format!("{size}\n"));
            self.add(&format!("{cache}/shared_cpu_list"), &format!("{shared}\n"));
        }
    }

    fn system(&self) -> System {
        System { proc: self.dir.path().join("proc"), sys: self.dir.path().join("sys") }
    }
}

#[test]
fn memory_is_what_the_kernel_says_is_available() {
    assert_eq!(Canned::new(&[]).system().available_bytes(), Ok(1 << 30));
    assert_eq!(Canned::new(&[]).system().total_bytes(), Ok(2 << 30));
}

#[test]
fn memory_is_limited_by_any_control_group_above() {
    let canned = Canned::new(&[
        ("proc/self/cgroup", "0::/jobs/17\n"),
        ("sys/fs/cgroup/jobs/17/memory.max", "max\n"),
        ("sys/fs/cgroup/jobs/memory.max", "536870912\n"),
        ("sys/fs/cgroup/jobs/memory.current", "134217728\n"),
    ]);
    assert_eq!(canned.system().available_bytes(), Ok(384 << 20));
    assert_eq!(canned.system().total_bytes(), Ok(512 << 20));
}

#[test]
fn memory_is_limited_by_a_version_1_control_group() {
    let canned = Canned::new(&[
        ("proc/self/cgroup", "4:memory:/not/visible/here\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n"),
    ]);
    assert_eq!(canned.system().available_bytes(), Ok(256 << 20));
}

#[test]
fn a_used_up_control_group_is_not_a_memory_of_zero_bytes() {
    let canned = Canned::new(&[
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/memory.max", "1000\n"),
        ("sys/fs/cgroup/memory.current", "2000\n"),
    ]);
    assert_eq!(canned.system().available_bytes(), Ok(1));
}

#[test]
fn no_meminfo_is_an_error() {
    let canned = Canned::new(&[("proc/meminfo", "MemTotal: 1 kB\n")]);
    let error = canned.system().available_bytes().unwrap_err();
    assert!(error.to_string().contains("MemAvailable"), "{error}");
}

#[test]
fn two_threads_of_one_core_count_once() {
    let canned = Canned::new(&[]);
    for cpu in 0..4 {
        let siblings = format!("{},{}\n", cpu % 2, cpu % 2 + 2);
        let shared = siblings.trim();
        let caches = [
            (1, "Data", "32K", shared),
            (1, "Instruction", "64K", shared),
            (2, "Unified", "1024K", shared),
            (3, "Unified", "16384K", "0-3"),
        ];
        canned.cpu(cpu, &siblings, &caches);
    }
    let cores = canned.system().cores(&[0, 1, 2, 3]);
    assert_eq!(cores, Cores { cpus: vec![0, 1], nodes: vec![vec![0, 1]], cache_bytes: Some(1 << 20) });
    // Only the second thread of the second core.
    assert_eq!(canned.system().cores(&[3]).cpus, [3]);
}

#[test]
fn a_cache_that_cores_share_is_divided() {
    let canned = Canned::new(&[]);
    for cpu in 0..4 {
        let caches = [(1, "Data", "32K", &*cpu.to_string()), (2, "Unified", "2048K", "0-3")];
        canned.cpu(cpu, &format!("{cpu}\n"), &caches);
    }
    assert_eq!(canned.system().cores(&[0, 1, 2, 3]).cache_bytes, Some(512 << 10));
    assert_eq!(canned.system().cores(&[0, 1]).cache_bytes, Some(1 << 20));
}

#[test]
fn without_a_second_level_the_first_counts_and_without_any_none() {
    let canned = Canned::new(&[]);
    canned.cpu(0, "0\n", &[(1, "Instruction", "64K", "0"), (1, "Data", "48K", "0"), (3, "Unified", "8M", "0")]);
    assert_eq!(canned.system().cores(&[0]).cache_bytes, Some(48 << 10));
    assert_eq!(canned.system().cores(&[7]), Cores { cpus: vec![7], nodes: vec![vec![7]], cache_bytes: None });
}

#[test]
fn a_quota_limits_the_cores() {
    let canned = Canned::new(&[
        ("proc/self/cgroup", "0::/\n2:cpu,cpuacct:/\n"),
        ("sys/fs/cgroup/cpu.max", "300000 100000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
    ]);
    assert_eq!(canned.system().cores(&[0, 1, 2, 3]).cpus, [0, 1]);
}

#[test]
fn nodes_become_a_level_when_they_are_equal() {
    let canned = Canned::new(&[
        ("sys/devices/system/node/online", "0-2\n"),
        ("sys/devices/system/node/node0/cpulist", "0-1\n"),
        ("sys/devices/system/node/node1/cpulist", "2-3\n"),
        ("sys/devices/system/node/node2/cpulist", "\n"),
    ]);
    let cores = canned.system().cores(&[0, 1, 2, 3]);
    assert_eq!(cores.nodes, [[0, 1], [2, 3]]);
    assert_eq!(canned.system().cores(&[0, 1, 2]).nodes, [[0, 1, 2]]);

    let machine = assemble(canned.dir.path(), 1 << 40, 1 << 30, &cores).unwrap();
    let names: Vec<&str> = machine.memories().iter().map(|memory| memory.name.as_str()).collect();
    assert_eq!(names, ["disk", "dram", "node", "core"]);
    assert_eq!(machine.workers(), 4);
    assert_eq!(machine.memory(MemoryId(2)).capacity_bytes, 512 << 20);
}

#[test]
fn this_computer_is_one_chain_from_disk_to_core() {
    let dir = tempfile::tempdir().unwrap();
    let machine = Machine::detect(dir.path()).unwrap();
    let [disk, dram, .., leaf] = machine.memories() else { panic!("{machine:?}") };
    assert!(machine.memories().windows(2).enumerate().all(|(above, pair)| pair[1].parent == Some(MemoryId(above))));
    assert_eq!(disk.path.as_deref(), Some(dir.path()));
    assert_eq!(dram.edge.unwrap().driver, Driver::DISK);
    assert_eq!(leaf.edge.unwrap().driver, Driver::SHARED);
    assert_eq!(machine.workers(), cores().unwrap().cpus.len());
    assert!(machine.memories()[1..].iter().all(|memory| memory.edge_source.as_deref() == Some(ASSUMED)));
}

#[test]
fn a_directory_that_is_a_file_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Machine::detect(file.path()).unwrap_err();
    assert!(matches!(error.problem, Problem::NotADirectory { .. }), "{error}");
}
