//! Examples that are no members of the workspace, built as somebody else would.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Copies an example to where it belongs to no workspace, and has cargo do something there with the versions of the workspace's
/// lock file, which are there, without optimisation: what is computed is small. `paths`: how many of our crates it names.
/// Gives its folder, and that of its programs.
pub(crate) fn cargo(name: &str, paths: usize, command: &str) -> (Output, PathBuf, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let example = root.join("examples").join(name);
    let outside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    let place = outside.join(name);
    std::fs::create_dir_all(place.join("src")).unwrap();
    let manifest = std::fs::read_to_string(example.join("Cargo.toml")).unwrap();
    assert_eq!(manifest.matches("\"../../").count(), paths, "{manifest}");
    let manifest = manifest.replace("\"../../", &format!("\"{}/", root.display()));
    let main = std::fs::read_to_string(example.join("src/main.rs")).unwrap();
    for (name, text) in [("Cargo.toml", manifest), ("src/main.rs", main)] {
        // What has not changed is not written, so that it is not built again.
        if std::fs::read_to_string(place.join(name)).ok().as_ref() != Some(&text) {
            std::fs::write(place.join(name), text).unwrap();
        }
    }
    std::fs::copy(root.join("Cargo.lock"), place.join("Cargo.lock")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([command, "--offline", "--quiet", "--config", "profile.dev.debug=false"]).current_dir(&place);
    // Flags of the build of the tests (a model checker's, a sanitiser's) are none of the example's.
    let target = outside.join("target");
    cargo.env("CARGO_TARGET_DIR", &target).env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (output, place, target.join("debug"))
}
