//! Model check of [unsaid] in ARBITER.md.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p multigrain-team --release --lib arbiter`

use loom::sync::Arc;
use loom::thread;

use super::wants::Wants;

/// A run begins while the agent finds that nothing is wanted, after another that ends meanwhile. Either the run wakes the agent, or the agent has said
/// that cores are wanted. Every interleaving of two threads.
#[test]
fn a_run_is_said_or_wakes_the_agent() {
    for is_between in [false, true] {
        loom::model(move || {
            let wants = Arc::new(Wants::new());
            assert!(wants.begin(2));
            assert_eq!(wants.now(4, false), 2);
            let runs = Arc::clone(&wants);
            let run = thread::spawn(move || {
                runs.end(2);
                runs.begin(3)
            });
            let said = wants.now(4, is_between);
            let wakes = run.join().unwrap();
            assert!(wakes || said > 0, "nobody says that cores are wanted");
            assert_eq!(wants.now(4, false), 3);
        });
    }
}
