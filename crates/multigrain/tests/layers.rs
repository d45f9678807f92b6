//! The rooms and their order: a room uses only rooms below it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Rooms from the bottom up; those of one layer do not use each other.
const LAYERS: &[&[&str]] = &[
    &["whole", "schedule", "macro"],
    &["machine", "trace", "program", "simd"],
    &["plan", "store", "team"],
    &["engine", "sim"],
    &["multigrain"],
    &["console"],
    &["saxpy", "sgemv", "sgemm", "conv2d", "fft3d", "gravity", "hmmer", "phylo", "encrypt", "queens", "encode"],
    &["cli"],
];

fn layer(room: &str) -> usize {
    let found = LAYERS.iter().position(|rooms| rooms.contains(&room));
    found.unwrap_or_else(|| panic!("room {room} has no layer: say in this test where it belongs"))
}

/// Folders of all members: room name and path.
fn rooms() -> BTreeMap<String, PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut rooms = BTreeMap::new();
    for parent in ["crates", "apps"] {
        for entry in std::fs::read_dir(root.join(parent)).unwrap() {
            let path = entry.unwrap().path();
            if path.join("Cargo.toml").is_file() {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                assert!(rooms.insert(name.clone(), path).is_none(), "two rooms are called {name}");
            }
        }
    }
    rooms
}

/// The rooms that a room uses, outside of its tests and benchmarks.
fn uses(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let mut tables = vec![&manifest];
    if let Some(targets) = manifest.get("target").and_then(|t| t.as_table()) {
        tables.extend(targets.values().filter_map(|t| t.as_table()));
    }
    let mut found = Vec::new();
    for table in tables {
        for kind in ["dependencies", "build-dependencies"] {
            let names = table.get(kind).and_then(|d| d.as_table()).into_iter().flat_map(|d| d.keys());
            found.extend(names.filter_map(|name| match name.strip_prefix("multigrain") {
                Some("") => Some("multigrain".to_owned()),
                Some(rest) => rest.strip_prefix('-').map(str::to_owned),
                None => None,
            }));
        }
    }
    found
}

#[test]
fn rooms_use_only_rooms_below() {
    let rooms = rooms();
    for name in LAYERS.iter().flat_map(|rooms| rooms.iter()) {
        assert!(rooms.contains_key(*name), "room {name} is gone: take it out of this test");
    }
    let mut arrows = 0;
    for (room, path) in &rooms {
        for used in uses(path) {
            assert!(rooms.contains_key(&used), "{room} uses {used}, which is no room");
            assert!(layer(&used) < layer(room), "{room} uses {used}, which does not lie below it");
            if layer(room) == layer("hmmer") {
                assert!(
                    matches!(&*used, "multigrain" | "console" | "simd"),
                    "application {room} uses {used} past the facade"
                );
            }
            arrows += 1;
        }
    }
    assert!(arrows > rooms.len(), "only {arrows} arrows were found: the manifests are not read");
}

#[test]
fn every_room_says_what_it_is_for() {
    for (room, path) in rooms() {
        let file = ["lib.rs", "main.rs"].map(|f| path.join("src").join(f)).into_iter().find(|f| f.is_file());
        let text = std::fs::read_to_string(file.unwrap_or_else(|| panic!("{room} has no root file"))).unwrap();
        let doc: String = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        assert!(doc.len() > 200, "{room} opens with {doc:?}: say what comes in, what goes out, what it never does");
    }
}
