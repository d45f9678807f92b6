//! Somebody else's memory (`examples/custom-driver`), built outside of the workspace, runs our applications with the same bytes
//! and passes the conformance suite.

use crate::outside;

use std::process::{Command, Output};

#[test]
fn somebody_elses_memory_runs_our_applications() {
    let (_, _, programs) = outside::cargo("custom-driver", 4, "build");
    let folder = tempfile::tempdir().unwrap();
    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/custom-driver/scrambled.toml");
    std::fs::copy(machine, folder.path().join("scrambled.toml")).unwrap();
    let custom = |arguments: &str| -> Output {
        let mut command = Command::new(programs.join("custom-driver"));
        command.args(arguments.split_whitespace()).current_dir(folder.path()).output().unwrap()
    };
    let done = |arguments: &str| {
        let output = custom(arguments);
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let ran = done("run saxpy --n 200003 --machine scrambled.toml -o scrambled.npy --check --json");
    assert!(ran.contains("\"bytes_down\""), "{ran}");
    done("run saxpy --n 200003 --machine local -o local.npy");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("scrambled.npy") == read("local.npy"));
    assert!(done("plan saxpy --n 200003 --machine scrambled.toml --verify").contains("dram - scratchpad"));
    done("sim saxpy --n 200003 --machine scrambled.toml");

    // Who does not know the driver says which there are; it knows no settings, and no memory can lie below.
    let text = std::fs::read_to_string(machine).unwrap();
    for (from, to, says) in [
        ("\"scrambled\"\nread", "\"scrabbled\"\nread", "drivers: shared, disk, local, cuda, mpi, link, scrambled"),
        ("[memory.processor]", "[memory.settings]\nkey = 7\n[memory.processor]", "has no setting \"key\""),
    ] {
        assert!(text.contains(from));
        std::fs::write(folder.path().join("wrong.toml"), text.replace(from, to)).unwrap();
        let refused = custom("run saxpy --n 1000 --machine wrong.toml");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && said.contains(says), "{said}");
    }
}

#[test]
fn somebody_elses_memory_conforms() {
    let (output, ..) = outside::cargo("custom-driver", 4, "test");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
}
