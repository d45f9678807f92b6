//! What the files under /proc and /sys say, as functions of their text.

/// The CPUs in a list such as `0-3,8,10-11`; `None` if it is not one.
pub(crate) fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // A kernel has a few thousand CPUs at most; anything larger is not a CPU list.
        if last < first || last > 1 << 20 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Bytes in a cache size such as `1024K`.
pub(crate) fn cache_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 10),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 20),
            None => (text, 0),
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// Bytes of `key` (`MemAvailable`, `MemTotal`) in the text of /proc/meminfo.
pub(crate) fn meminfo(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Where the process stands in the control groups: the path in the unified hierarchy, and the path in the hierarchy of
/// a version 1 controller.
pub(crate) fn cgroup_path(text: &str, controller: Option<&str>) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = match controller {
            None => number == "0" && controllers.is_empty(),
            Some(name) => controllers.split(',').any(|controller| controller == name),
        };
        is_it.then(|| path.to_string())
    })
}

/// A limit of a control group in bytes; `max` and the huge number of version 1 are none.
pub(crate) fn cgroup_limit(text: &str) -> Option<u64> {
    // Version 1 writes "no limit" as the largest multiple of a page below 2^63.
    text.trim().parse::<u64>().ok().filter(|bytes| *bytes < 1 << 62)
}

/// How many CPUs a quota allows, from the text of `cpu.max`: `200000 100000`.
pub(crate) fn cpu_quota(text: &str) -> Option<usize> {
    let mut fields = text.split_whitespace();
    let (quota, period): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let cpus = (quota.checked_add(period.checked_sub(1)?)?).checked_div(period)?;
    Some((cpus as usize).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cpu_lists() {
        assert_eq!(cpu_list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(cpu_list("5\n"), Some(vec![5]));
        assert_eq!(cpu_list("\n"), Some(vec![]));
        assert_eq!(cpu_list("3-1"), None);
        assert_eq!(cpu_list("0-99999999999"), None);
        assert_eq!(cpu_list("zero"), None);
    }

    #[test]
    fn reads_cache_sizes() {
        assert_eq!(cache_size("1024K\n"), Some(1 << 20));
        assert_eq!(cache_size("2M"), Some(2 << 20));
        assert_eq!(cache_size("512"), Some(512));
        assert_eq!(cache_size("0K"), None);
        assert_eq!(cache_size(""), None);
    }

    #[test]
    fn reads_meminfo() {
        let text = "MemTotal:       24684084 kB\nMemFree:        23514584 kB\nMemAvailable:   24186520 kB\n";
        assert_eq!(meminfo(text, "MemAvailable"), Some(24_186_520 * 1024));
        assert_eq!(meminfo(text, "MemTotal"), Some(24_684_084 * 1024));
        assert_eq!(meminfo(text, "Mem"), None);
        assert_eq!(meminfo("MemAvailable: much\n", "MemAvailable"), None);
    }

    #[test]
    fn finds_control_groups_of_both_versions() {
        let text = "4:memory:/jobs/17\n2:cpuacct,cpu:/jobs\n0::/user.slice\n";
        assert_eq!(cgroup_path(text, Some("memory")).as_deref(), Some("/jobs/17"));
        assert_eq!(cgroup_path(text, Some("cpu")).as_deref(), Some("/jobs"));
        assert_eq!(cgroup_path(text, None).as_deref(), Some("/user.slice"));
        assert_eq!(cgroup_path("4:memory:/jobs\n", None), None);
    }

    #[test]
    fn reads_limits_and_quotas() {
        assert_eq!(cgroup_limit("536870912\n"), Some(512 << 20));
        assert_eq!(cgroup_limit("max\n"), None);
        assert_eq!(cgroup_limit("9223372036854771712\n"), None);
        assert_eq!(cpu_quota("200000 100000\n"), Some(2));
        assert_eq!(cpu_quota("150000 100000\n"), Some(2));
        assert_eq!(cpu_quota("1000 100000\n"), Some(1));
        assert_eq!(cpu_quota("max 100000\n"), None);
        assert_eq!(cpu_quota("-1 100000"), None);
        assert_eq!(cpu_quota("1000 0"), None);
    }
}
