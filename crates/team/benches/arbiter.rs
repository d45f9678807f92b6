//! How long it takes until a core changes hands between two processes: taken back by who begins to compute, and lent by who ends. Beside this
//! program runs another of it, which computes all the time; what it may use is asked of the system until it has changed.
//!
//! `MULTIGRAIN_WEIGHT=10 cargo bench -p multigrain-team --bench arbiter`

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use multigrain_team::{Team, TeamOptions};
    use rustix::thread::{Pid, sched_getaffinity};
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    const WORKS: &str = "MULTIGRAIN_BENCH_WORKS";
    const TURNS: usize = 100;
    /// Longer than a process is taken to be between two runs.
    const IDLE: Duration = Duration::from_millis(120);

    pub(super) fn main() {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let team = Team::new(TeamOptions { workers, ..TeamOptions::default() }).expect("a team");
        if std::env::var_os(WORKS).is_some() {
            return team.run(|| {
                println!("{}", rustix::thread::gettid());
                loop {
                    let _ = team.fork(0..workers, &|_| (0..10_000).for_each(|_| std::hint::spin_loop()));
                }
            });
        }
        if std::env::var_os("MULTIGRAIN_WEIGHT").is_none() {
            return println!("programs share processors that have a weight: set MULTIGRAIN_WEIGHT, such as 10");
        }
        if workers == 1 {
            return println!("there is one processor: it has no other to lend");
        }
        let mut other = Other::start();
        let (mut back, mut lent) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            other.until(|has| has == workers);
            std::thread::sleep(IDLE);
            let begin = Instant::now();
            team.run(|| {
                other.until(|has| has < workers);
                back.push(begin.elapsed());
            });
            // One that ends lends what it had: a third, once this one is no longer taken to be between two runs.
            let third = Other::start();
            std::thread::sleep(IDLE);
            other.until(|has| has < workers);
            drop(third);
            // From when it is gone: until a process that is killed has ended takes as long as the system wants.
            let begin = Instant::now();
            other.until(|has| has == workers);
            lent.push(begin.elapsed());
        }
        other.child.kill().expect("the other ends");
        for (what, times) in [("taken back", &mut back), ("lent by one that is killed", &mut lent)] {
            times.sort();
            let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e6;
            println!("{what}: median {:.0} us, 90 % {:.0} us, worst {:.0} us", at(50), at(90), at(100));
        }
    }

    /// The process beside this one, and the thread that leads its run.
    struct Other {
        child: Child,
        threads: Vec<Pid>,
    }

    impl Other {
        fn start() -> Other {
            let own = std::env::current_exe().expect("this program");
            let mut child = Command::new(own).env(WORKS, "1").stdout(Stdio::piped()).spawn().expect("another of it");
            let mut line = String::new();
            BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("its thread");
            let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("its threads");
            let numbers = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
            let is_worker = |number: &i32| {
                let name = std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
                name.starts_with("worker-") || line.trim() == number.to_string()
            };
            Other { child, threads: numbers.filter(is_worker).filter_map(Pid::from_raw).collect() }
        }

        /// Until its workers have so many processors together.
        fn until(&mut self, holds: impl Fn(usize) -> bool) {
            loop {
                let mut all: Vec<usize> = Vec::new();
                for &thread in &self.threads {
                    let mask = sched_getaffinity(Some(thread)).expect("its processors");
                    all.extend((0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)));
                }
                all.sort_unstable();
                all.dedup();
                if holds(all.len()) {
                    return;
                }
            }
        }
    }

    impl Drop for Other {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
