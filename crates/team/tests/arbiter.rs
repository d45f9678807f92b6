//! Programs that share processors: killed, stopped and continued, and with tables that are not as they should be. Each program is this test's
//! own executable, which is told by [`USER`] to compute until its input ends.
#![cfg(all(target_os = "linux", not(any(loom, miri))))]

use multigrain_team::{Team, TeamOptions};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const USER: &str = "MULTIGRAIN_TEST_USER";

/// Nothing is timed: whoever waits for longer has found a fault.
const HANG: Duration = Duration::from_secs(60);

/// Not a test: what each program does. It says which thread leads its run once that is under way, and answers each line with why it does not
/// share.
#[test]
fn user() {
    if std::env::var_os(USER).is_none() {
        return;
    }
    let workers = std::thread::available_parallelism().unwrap().get();
    let team = Team::new(TeamOptions { workers, ..TeamOptions::default() }).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for line in std::io::stdin().lines() {
                line.unwrap();
                println!("{}", multigrain_team::unshared().unwrap_or_default());
            }
            over.store(true, Ordering::Relaxed);
        });
        team.run(|| {
            println!("leads {}", rustix::thread::gettid());
            while !over.load(Ordering::Relaxed) {
                team.fork(0..workers, &|_| (0..10_000).for_each(|_| std::hint::spin_loop())).unwrap();
            }
        });
    });
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("multigrain-arbiter-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// A program, which ends with its owner.
struct User {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
    leads: String,
}

impl User {
    /// Starts one whose table lies in a folder; `as_what` runs it (a shell's words before it).
    fn start(folder: &Path, before: &str) -> User {
        let mut child = Command::new("sh")
            .args([
                "-c",
                &format!("{before} exec \"$0\" --exact user --nocapture"),
                std::env::current_exe().unwrap().to_str().unwrap(),
            ])
            .env(USER, "1")
            .env("MULTIGRAIN_WEIGHT", "10")
            .env("XDG_RUNTIME_DIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        User { child, said, leads: String::new() }
    }

    fn working(folder: &Path) -> User {
        let mut user = User::start(folder, "");
        user.wait_for_work();
        user
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.said.read_line(&mut line).unwrap() > 0, "a program has ended by itself");
        line.trim().to_owned()
    }

    fn wait_for_work(&mut self) {
        while self.leads.is_empty() {
            if let Some(thread) = self.line().strip_prefix("leads ") {
                self.leads = thread.to_owned();
            }
        }
    }

    fn why_unshared(&mut self) -> String {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
        self.line()
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// The processors that its workers may use.
    fn cores(&self) -> BTreeSet<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of = |task: PathBuf| -> Option<String> {
            let name = std::fs::read_to_string(task.join("comm")).ok()?;
            let status = std::fs::read_to_string(task.join("status")).ok()?;
            let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            (name.starts_with("worker-") || task.ends_with(&self.leads)).then(|| cores.trim().to_owned())
        };
        tasks.filter_map(|task| of(task.ok()?.path())).collect()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < HANG, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

fn table(folder: &Path) -> PathBuf {
    let entries = std::fs::read_dir(folder.join("multigrain")).unwrap();
    entries.map(|entry| entry.unwrap().path()).next().unwrap()
}

/// Each has cores of its own: with two, who come to a core each at least.
fn are_apart(one: &User, other: &User) -> bool {
    let (one, other) = (one.cores(), other.cores());
    !one.is_empty() && !other.is_empty() && one.is_disjoint(&other)
}

/// Programs are killed at random moments, while they begin, wait and compute; another starts for each. The one that lives through all of it
/// has all cores in the end. `MULTIGRAIN_KILLS` says how many are killed.
#[test]
fn no_core_stays_lost_with_the_killed() {
    let folder = scratch("kills");
    let kills = std::env::var("MULTIGRAIN_KILLS").map_or(40, |kills| kills.parse().unwrap());
    let seed =
        std::env::var("MULTIGRAIN_SEED").map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    println!("MULTIGRAIN_SEED={seed}");
    let mut random = seed | 1;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % bound
    };
    let mut one = User::working(&folder);
    let mut others: Vec<User> = Vec::new();
    for _ in 0..kills {
        while others.len() < 3 {
            others.push(User::start(&folder, ""));
        }
        std::thread::sleep(Duration::from_micros(below(20_000)));
        // To drop is to kill.
        drop(others.swap_remove(below(3) as usize));
    }
    let mut last = others.pop().unwrap();
    others.clear();
    last.wait_for_work();
    if cores() > 1 {
        until("two that are left have their own cores", || are_apart(&one, &last));
    }
    drop(last);
    until("the last has all cores", || one.cores().len() == cores());
    assert_eq!(one.why_unshared(), "");
    std::fs::remove_dir_all(folder).unwrap();
}

/// One that is stopped lends its cores until it goes on, and has them again then.
#[test]
fn the_stopped_hold_nobody_up() {
    if cores() == 1 {
        return;
    }
    let folder = scratch("stopped");
    let (one, other) = (User::working(&folder), User::working(&folder));
    until("each has its own cores", || are_apart(&one, &other));
    one.signal("STOP");
    until("the cores of one that is stopped are lent", || other.cores().len() == cores());
    one.signal("CONT");
    until("they are taken back", || are_apart(&one, &other));
    other.signal("STOP");
    drop(one);
    let third = User::working(&folder);
    until("one that comes has all", || third.cores().len() == cores());
    other.signal("CONT");
    until("one that was stopped all the while shares", || are_apart(&third, &other));
    drop((other, third));
    std::fs::remove_dir_all(folder).unwrap();
}

/// What is not as it should be is told, and the run goes on without it; nothing of it is altered.
#[test]
fn other_tables_are_left_alone() {
    let folder = scratch("tables");
    drop(User::working(&folder));
    let path = table(&folder);
    let good = std::fs::read(&path).unwrap();
    let write = |bytes: &[u8], mode: u32| {
        std::fs::remove_file(&path).unwrap();
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).unwrap();
        file.write_all(bytes).unwrap();
        // Whatever the mask is.
        file.set_permissions(PermissionsExt::from_mode(mode)).unwrap();
    };
    let mut version = good.clone();
    version[8] += 1;
    let mut magic = good.clone();
    magic[0] ^= 1;
    let cases: [(&[u8], u32, &str); 5] = [
        (&version, 0o600, "another version"),
        (&magic, 0o600, "damaged"),
        (&good[..100], 0o600, "100 bytes instead of 8192"),
        (&good, 0o644, "not this user's alone"),
        (&[], 0o600, "0 bytes"),
    ];
    for (bytes, mode, told) in cases {
        write(bytes, mode);
        let why = User::working(&folder).why_unshared();
        assert!(why.contains(told) && why.contains("remove it"), "{why}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(User::working(&folder).why_unshared().contains("cannot open"));
    std::fs::remove_file(&path).unwrap();
    // As where the memory is full: no file may have a byte.
    let mut full = User::start(&folder, "trap '' XFSZ; ulimit -f 0;");
    full.wait_for_work();
    assert!(full.why_unshared().contains("cannot make"));
    assert!(!path.exists(), "nothing is left of it");
    let mut weight = User::start(&folder, "export MULTIGRAIN_WEIGHT=heavy;");
    weight.wait_for_work();
    assert!(weight.why_unshared().contains("MULTIGRAIN_WEIGHT is \"heavy\""));
    drop((full, weight));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Where the table is cut short beneath them, programs go on with all that they may use, and say why.
#[test]
fn a_table_that_is_cut_short_is_given_up() {
    let folder = scratch("short");
    let (mut one, mut other) = (User::working(&folder), User::working(&folder));
    std::fs::OpenOptions::new().write(true).open(table(&folder)).unwrap().set_len(0).unwrap();
    for user in [&mut one, &mut other] {
        let mut why = String::new();
        until("it is told", || {
            why = user.why_unshared();
            !why.is_empty()
        });
        assert!(why.contains("cut short"), "{why}");
        until("it has all cores again", || user.cores().len() == cores());
    }
    drop((one, other));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Who does not ask to take part has no seat, and takes nobody's cores.
#[test]
fn who_does_not_ask_has_no_seat() {
    let folder = scratch("off");
    let mut off = User::start(&folder, "unset MULTIGRAIN_WEIGHT;");
    off.wait_for_work();
    assert_eq!(off.why_unshared(), "");
    assert!(!folder.join("multigrain").exists());
    drop(off);
    std::fs::remove_dir_all(folder).unwrap();
}
