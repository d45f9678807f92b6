//! What is registered is what the workspace has.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn multigrain(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_multigrain")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Programs of the manifests, as `PACKAGE NAME`.
fn programs() -> BTreeSet<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut programs = BTreeSet::new();
    for folder in ["apps", "crates"].into_iter().flat_map(|parent| std::fs::read_dir(root.join(parent)).unwrap()) {
        let Ok(manifest) = std::fs::read_to_string(folder.unwrap().path().join("Cargo.toml")) else { continue };
        let name = |text: &str| -> String {
            text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).unwrap().to_owned()
        };
        for binary in manifest.split("[[bin]]").skip(1) {
            if let Some(program) = name(binary).strip_prefix("multigrain-") {
                programs.insert((name(&manifest), program.to_owned()));
            }
        }
    }
    programs
}

#[test]
fn every_program_of_the_workspace_is_registered() {
    let nowhere = tempfile::tempdir().unwrap();
    let command = nowhere.path().join("multigrain");
    if std::fs::hard_link(env!("CARGO_BIN_EXE_multigrain"), &command).is_err() {
        std::fs::copy(env!("CARGO_BIN_EXE_multigrain"), &command).unwrap();
    }
    let programs = programs();
    assert!(programs.len() >= 6, "{programs:?}");
    for (package, program) in programs {
        // Where it is not built, the command says which package builds it: so it knows both.
        let output = Command::new(&command).arg(&program).env("PATH", nowhere.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{program}: {said}");
        assert!(said.contains(&format!("cargo build --release -p {package}\n")), "{program}: {said}");
    }
}

#[test]
fn every_application_of_the_workspace_is_registered_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps");
    for command in ["run", "plan", "sim"] {
        let help = multigrain(&[command, "--help"]);
        for folder in std::fs::read_dir(&root).unwrap() {
            let folder = folder.unwrap().path();
            let Ok(text) = std::fs::read_to_string(folder.join("src/app.rs")) else { continue };
            let Some(name) = text.lines().find_map(|line| line.trim().strip_prefix("const NAME: &'static str = \""))
            else {
                continue;
            };
            let name = name.trim_end_matches("\";");
            let lines = help.lines().filter(|line| line.starts_with(&format!("  {name} "))).count();
            assert_eq!(lines, 1, "{name} in {help}");
        }
    }
}

#[test]
fn completions_and_pages_know_options_of_applications() {
    let script = multigrain(&["completions", "bash"]);
    for word in ["gravity", "--steps", "--memory", "--machine", "completions"] {
        assert!(script.contains(word), "{word} is missing");
    }
    for shell in ["zsh", "fish"] {
        assert!(multigrain(&["completions", shell]).contains("gravity"));
    }
    let folder = tempfile::tempdir().unwrap();
    multigrain(&["man", folder.path().to_str().unwrap()]);
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(page("multigrain.1").contains("multigrain\\-run(1)"));
    assert!(page("multigrain-run.1").contains("multigrain\\-run\\-sgemm(1)"));
    let sgemm = page("multigrain-run-sgemm.1");
    assert!(sgemm.contains("Product of two matrices") && sgemm.contains("\\-\\-check"), "{sgemm}");
    let refused = Command::new(env!("CARGO_BIN_EXE_multigrain")).args(["man", "/nonexistent"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
