//! What `/proc` sums up for a thread (proc_pid_stat(5), proc_pid_status(5), the kernel's `sched-stats.rst`): text in, numbers
//! out, and what happened between two readings.

/// What a thread has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Pages that had no memory yet: from `stat`.
    pub(crate) minor_faults: u64,
    /// Pages that had to be read from a disk.
    pub(crate) major_faults: u64,
    /// Where it ran last.
    pub(crate) processor: u32,
    /// Nanoseconds in which it could have run and had no processor, from `schedstat`; 0 where the system does not count them.
    pub(crate) delay_ns: u64,
    /// How often it waited by itself, from `status`.
    pub(crate) voluntary: u64,
    /// How often another was put before it.
    pub(crate) involuntary: u64,
}

impl Sums {
    /// Reads `/proc/self/task/THREAD/stat`. The name in it, in parentheses, may have anything in it.
    pub(crate) fn read_stat(&mut self, text: &str) -> Option<()> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        // The first behind the name is the third of all.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let (minor, major, processor) = (field(10)?, field(12)?, field(39)?);
        (self.minor_faults, self.major_faults, self.processor) = (minor, major, u32::try_from(processor).ok()?);
        Some(())
    }

    /// Reads `/proc/self/task/THREAD/schedstat`.
    pub(crate) fn read_schedstat(&mut self, text: &str) -> Option<()> {
        self.delay_ns = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(())
    }

    /// Reads `/proc/self/task/THREAD/status`.
    pub(crate) fn read_status(&mut self, text: &str) -> Option<()> {
        let count = |key: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            value.trim().parse::<u64>().ok()
        };
        (self.voluntary, self.involuntary) = (count("voluntary_ctxt_switches")?, count("nonvoluntary_ctxt_switches")?);
        Some(())
    }

    /// What happened since an earlier reading.
    pub(crate) fn since(&self, earlier: &Sums) -> Sums {
        Sums {
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            processor: self.processor,
            delay_ns: self.delay_ns.saturating_sub(earlier.delay_ns),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

/// The numbers in a list such as `0-3,7`, as the system writes sets of processors.
pub(crate) fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for part in list.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.parse::<u32>().ok()?, to.parse::<u32>().ok()?);
        // More processors than any system has.
        found.extend((from <= to && to < 1 << 16).then_some(from..=to)?);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "77 (a) b (c)) S 1 77 77 0 -1 4194304 120 7 3 9 5 6 0 0 20 0 1 0 5000 1000 200 1 1 1 0 0 0 0 0 0 0 0 0 0 \
                        17 5 0 0 0 0 0\n";

    #[test]
    fn what_the_kernel_writes_is_read() {
        let mut sums = Sums::default();
        sums.read_stat(STAT).unwrap();
        sums.read_schedstat("1000 250 17\n").unwrap();
        sums.read_status("Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t34\n").unwrap();
        let expected =
            Sums { minor_faults: 120, major_faults: 3, processor: 5, delay_ns: 250, voluntary: 12, involuntary: 34 };
        assert_eq!(sums, expected);
        let later = Sums { minor_faults: 125, processor: 2, involuntary: 30, ..sums };
        let between = later.since(&sums);
        assert_eq!((between.minor_faults, between.processor, between.involuntary, between.delay_ns), (5, 2, 0, 0));
    }

    #[test]
    fn what_is_missing_is_not_made_up() {
        let mut sums = Sums::default();
        assert_eq!(sums.read_stat("77 (a) S 1 2 3"), None);
        assert_eq!(sums.read_stat(""), None);
        assert_eq!(sums.read_schedstat("1000"), None);
        assert_eq!(sums.read_status("voluntary_ctxt_switches:\t12\n"), None);
        assert_eq!(sums, Sums::default());
    }

    #[test]
    fn lists_of_processors() {
        assert_eq!(numbers("0-3,7\n"), Some(vec![0, 1, 2, 3, 7]));
        assert_eq!(numbers("5"), Some(vec![5]));
        assert_eq!((numbers("3-1"), numbers(""), numbers("0-4294967295")), (None, None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text in ".{0,200}") {
            let mut sums = Sums::default();
            let _ = (sums.read_stat(&text), sums.read_schedstat(&text), sums.read_status(&text), numbers(&text));
        }
    }
}
