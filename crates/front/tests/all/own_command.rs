//! A third party's application (`examples/own-command`), built outside of the workspace, has all commands.

use crate::outside;

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

#[test]
fn somebody_elses_application_has_all_commands() {
    let main = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/own-command/src/main.rs"));
    let main = main.unwrap();
    let body = main.split("fn main() -> std::process::ExitCode {\n").nth(1).unwrap().split("\n}").next().unwrap();
    assert_eq!(body.lines().count(), 1, "the example's main has three lines");

    let (_, _, programs) = outside::cargo("own-command", 2, "build");
    let program = programs.join("own-command");
    let folder = tempfile::tempdir().unwrap();
    let own = |arguments: &str| -> Output {
        Command::new(&program).args(arguments.split_whitespace()).current_dir(folder.path()).output().unwrap()
    };
    let text = |arguments: &str| {
        let output = own(arguments);
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let json = |arguments: &str| -> Value { serde_json::from_str(&text(&format!("{arguments} --json"))).unwrap() };

    let help = text("--help");
    for word in ["What my group computes", "machine", "run", "plan", "sim", "trace", "completions", "man"] {
        assert!(help.contains(word), "{word} in {help}");
    }
    assert!(!help.contains("sgemm") && text("run --help").contains("Means of three neighbours"));
    assert_eq!(text("--version"), "own 0.3.0\n");

    // The arrays are larger than the memory, and the result is the same bytes in memory and from the disk.
    let ran = json("run smooth --n 1000003 --machine disk --memory 1MiB -o slow.npy --check --trace run.trace");
    assert_eq!((&ran["app"], &ran["shape"]["n"]), (&"smooth".into(), &1_000_003.into()));
    assert_eq!(ran["checked"]["elements"], 1_000_003);
    json("run smooth --n 1000003 -o fast.npy");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("slow.npy") == read("fast.npy"));
    json("run smooth fast.npy -o again.npy --check");
    assert_eq!(json("plan smooth --n 1000003 --machine disk --memory 1MiB --verify")["edges"], ran["edges"]);
    assert!(json("sim smooth --n 1000003 --machine ps3")["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(json("trace run.trace")["edges"][0]["bytes_down"], ran["edges"][0]["bytes_down"]);
    assert_eq!(json("machine --machine disk --assumed")["memories"][0]["name"], "disk");
    assert!(text("completions bash").contains("smooth"));

    // Messages and programs have the command's own name.
    let wrong = own("run smooth nothing.npy");
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(said.starts_with("own: ") && said.contains("nothing.npy"), "{said}");
    let unknown = own("smoth");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8(unknown.stderr).unwrap().starts_with("own: "));
    let beside = program.with_file_name("own-more");
    std::fs::write(&beside, "#!/bin/sh\necho \"more $1\"\n").unwrap();
    std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(text("more of"), "more of\n");
}
