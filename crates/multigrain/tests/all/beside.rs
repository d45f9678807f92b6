//! What lies beside the results of a run is its own, another run's or somebody else's, and is kept or made way for accordingly.

use crate::support;

use multigrain::prelude::*;
use support::pairs::{MIB, Pairs};
use support::run;

/// A copy made of links (`cp -al`) stays what it is, whatever becomes of the run; a copy of the bytes is gone on with.
#[test]
fn a_copy_of_links_of_an_interrupted_run_is_not_written_to() {
    for name in ["y0.npy.part", "y0.npy.journal"] {
        let pairs = Pairs::new(&[[64, 4096]], &["times"]);
        pairs.killed(MIB, 3);
        let [of, link] = [name, "x-link"].map(|name| pairs.path(name));
        std::fs::hard_link(&of, &link).unwrap();
        let before = std::fs::read(&link).unwrap();
        let refused = pairs.resume(MIB).err().expect("its bytes are another name's too");
        let words = refused.to_string();
        assert!(words.contains(name) && words.contains("2 names") && refused.exit_status() == 2, "{words}");
        assert_eq!(std::fs::read(&link).unwrap(), before);
        let discard = Settings { discard: true, ..Settings::default() };
        assert!(!pairs.runtime(MIB, None).run(&pairs.job(|i| i), discard).unwrap().resumed);
        assert_eq!(std::fs::read(&link).unwrap(), before);
        pairs.check("begun again");
    }
}

/// An input that has the name of a file which is made on the way to a result, as a link to the same bytes.
#[test]
fn an_input_that_is_linked_beside_a_result_is_kept() {
    for name in ["y0.npy.part", "y0.npy.twin.part", "y0.npy.journal", "y0.npy.journal.new"] {
        let pairs = Pairs::new(&[[64, 4096]], &["times"]);
        let before = std::fs::read(pairs.path("x0.npy")).unwrap();
        std::fs::hard_link(pairs.path("x0.npy"), pairs.path(name)).unwrap();
        let refused = run(&pairs.runtime(MIB, None), &pairs.job(|i| i), false, None).err().expect("an input");
        assert!(refused.to_string().contains(name) && refused.exit_status() == 2, "{refused}");
        assert!(std::fs::read(pairs.path("x0.npy")).unwrap() == before);
        assert_eq!(pairs.left(), [name]);
    }
}

/// An input that has the name of a file which is made or removed on the way to a result.
#[test]
fn an_input_that_lies_where_a_run_keeps_its_own_is_kept() {
    for name in [
        "y0.npy.part",
        "y0.npy.twin.part",
        "y0.npy.journal",
        "y0.npy.journal.new",
        "y0.npy.journal.3",
        "y0.npy.journal.40.new",
    ] {
        for in_memory in [false, true] {
            let pairs = Pairs::new(&[[64, 4096]], &["times"]);
            let input = pairs.path(name);
            std::fs::rename(pairs.path("x0.npy"), &input).unwrap();
            let before = std::fs::read(&input).unwrap();
            let runtime = if in_memory { pairs.runtime_in_memory(None) } else { pairs.runtime(MIB, None) };
            let job = pairs.job(|i| i).with_source(0, Source::Npy(input.clone()));
            let refused = run(&runtime, &job, false, None).err().expect("an input");
            assert!(refused.to_string().contains(name) && refused.exit_status() == 2, "{refused}");
            assert!(std::fs::read(&input).unwrap() == before);
        }
    }
}

/// A folder is copied while a run in it is interrupted: the copy speaks of files that are not its own.
#[test]
fn work_is_not_thrown_away_with_a_copy_of_its_journal() {
    let (pairs, copy) = (Pairs::new(&[[64, 4096]], &["times"]), Pairs::new(&[[64, 4096]], &["times"]));
    pairs.killed(MIB, 3);
    let before = pairs.left();
    for name in &before {
        std::fs::copy(pairs.path(name), copy.path(name)).unwrap();
    }
    let job = copy.job(|i| i);
    let refused = run(&copy.runtime(MIB, None), &job, false, None).err().expect("somebody may want the copy");
    assert!(matches!(refused, Error::Unfinished { .. }), "{refused}");
    let discard = Settings { discard: true, ..Settings::default() };
    assert!(!copy.runtime(MIB, None).run(&job, discard).unwrap().resumed);
    assert_eq!(pairs.left(), before);
    assert!(pairs.resume(MIB).unwrap().resumed);
    pairs.check("resumed");
    copy.check("begun again");
}

/// A file that only has the name of a rank's journal is somebody else's.
#[test]
fn what_is_no_journal_is_not_removed() {
    for name in ["y0.npy.journal.1", "y0.npy.journal.2.new"] {
        let pairs = Pairs::new(&[[64, 4096]], &["times"]);
        std::fs::write(pairs.path(name), "precious").unwrap();
        run(&pairs.runtime(MIB, None), &pairs.job(|i| i), false, None).unwrap();
        assert_eq!(std::fs::read(pairs.path(name)).unwrap(), b"precious");
    }
}

/// What another run has come to keep, after this one has looked and before it makes its files.
#[test]
fn work_that_comes_while_a_run_is_planned_is_kept() {
    for in_memory in [false, true] {
        let pairs = Pairs::new(&[[64, 4096]], &["times"]);
        let runtime = if in_memory { pairs.runtime_in_memory(None) } else { pairs.runtime(MIB, None) };
        let other = || _ = pairs.killed(MIB, 3);
        let settings = Settings { on_start: Some(&other), ..Settings::default() };
        let refused = runtime.run(&pairs.job(|i| i), settings).err().expect("another run's work is in the way");
        assert!(matches!(refused, Error::Unfinished { .. }) && refused.exit_status() == 2, "{refused}");
        assert!(pairs.resume(MIB).unwrap().resumed);
        pairs.check("resumed");
    }
}
