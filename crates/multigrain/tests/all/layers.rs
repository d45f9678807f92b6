//! The rooms and their order: a room uses only rooms below it. And their picture, which README shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Rooms from the bottom up; those of one layer do not use each other.
const LAYERS: &[&[&str]] = &[
    &["whole", "schedule", "macro", "simd"],
    &["machine", "trace", "program"],
    &["plan", "store", "team", "kernel"],
    &["driver"],
    &["engine", "sim"],
    &["multigrain"],
    &["console", "conformance", "device", "mpi"],
    &[
        "saxpy", "sgemv", "sgemm", "conv2d", "fft3d", "gravity", "hmmer", "phylo", "encrypt", "queens", "encode",
        "proxy", "front",
    ],
    &["cli"],
    &["bench"],
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
                assert!(matches!(&*used, "multigrain" | "console" | "simd"), "{room} uses {used} past the facade");
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

/// A box of the picture: its title, the rooms in it, and its middle and width.
struct Drawn {
    rooms: Vec<String>,
    title: String,
    x: usize,
    y: usize,
    width: usize,
}

const ROW: usize = 64;
const BOX: usize = 34;
const GAP: usize = 28;
const WIDTH: usize = 860;

/// Rooms from the top down, applications in one box. An arrow leads from a room to one that it uses, unless it gets there by
/// way of another.
fn picture(rooms: &BTreeMap<String, PathBuf>) -> String {
    let mut boxes: Vec<Drawn> = Vec::new();
    for (row, names) in LAYERS.iter().rev().enumerate() {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let (apps, others): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| rooms[name].ends_with(format!("apps/{name}")));
        let apps = Some(apps).filter(|apps| !apps.is_empty());
        let groups: Vec<Vec<String>> = apps.into_iter().chain(others.into_iter().map(|name| vec![name])).collect();
        let title = |group: &[String]| group.join("  ");
        let widths: Vec<usize> = groups.iter().map(|group| 8 * title(group).len() + 24).collect();
        let mut left = (WIDTH - widths.iter().sum::<usize>() - GAP * (widths.len() - 1)) / 2;
        for (group, width) in groups.into_iter().zip(widths) {
            let title = title(&group);
            boxes.push(Drawn { rooms: group, title, x: left + width / 2, y: 20 + ROW * row, width });
            left += width + GAP;
        }
    }
    let of = |room: &str| boxes.iter().position(|b| b.rooms.iter().any(|r| r == room)).unwrap();
    let mut arrows: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); boxes.len()];
    for (room, path) in rooms {
        arrows[of(room)].extend(uses(path).iter().map(|used| of(used)));
    }
    // Boxes are numbered from the top, so what lies below is complete from the end on.
    let mut reached: Vec<BTreeSet<usize>> = arrows.clone();
    for i in (0..boxes.len()).rev() {
        let further: Vec<usize> = reached[i].iter().flat_map(|&j| reached[j].iter().copied()).collect();
        reached[i].extend(further);
    }
    let height = 20 + ROW * LAYERS.len();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"14\">\n<title>Rooms, and which uses which</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (from, drawn) in boxes.iter().enumerate() {
        for &to in &arrows[from] {
            if arrows[from].iter().any(|&by| by != to && reached[by].contains(&to)) {
                continue;
            }
            let (below, up) = (&boxes[to], drawn.y + BOX);
            let (x, y, down) = (drawn.x, below.x, below.y);
            // Down first, so that lines do not hide behind the boxes between.
            let _ = writeln!(
                svg,
                "<path d=\"M{x} {up}C{x} {} {y} {} {y} {down}\" fill=\"none\" stroke=\"#8a94a6\"/>",
                up + (down - up) / 2,
                down - (down - up) / 2
            );
        }
    }
    for Drawn { title, x, y, width, .. } in &boxes {
        let left = x - width / 2;
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{y}\" width=\"{width}\" height=\"{BOX}\" rx=\"5\" fill=\"#eef2f8\" stroke=\"#5b6b85\"/>\n\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{title}</text>",
            y + 22
        );
    }
    svg + "</svg>\n"
}

/// The picture in the tree is the one of the manifests; `MULTIGRAIN_WRITE=1` writes it anew.
#[test]
fn the_picture_shows_the_rooms_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (file, drawn) = (root.join("docs/rooms.svg"), picture(&rooms()));
    if std::env::var_os("MULTIGRAIN_WRITE").is_some() {
        std::fs::write(&file, &drawn).unwrap();
    }
    let shown = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        shown == drawn,
        "docs/rooms.svg is out of date: MULTIGRAIN_WRITE=1 cargo test -p multigrain --test all layers::"
    );
    assert!(std::fs::read_to_string(root.join("README.md")).unwrap().contains("(docs/rooms.svg)"));
}
