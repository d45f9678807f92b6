//! The files of a room and their order: no files use each other in a circle.
//!
//! What a file uses is read from its words: the paths in it, in `use` and elsewhere, as far as they lead into its own room; a path
//! through a `pub use` leads to where the thing is made. What is compiled for tests only is left out. So is what a module takes of
//! the files below it (`foo.rs` of `foo/part.rs`), of which it consists; what these take of it counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module by its names from the root of its room.
type Name = Vec<String>;

/// What a file says.
#[derive(Default)]
struct Module {
    /// What its `use` names here: each with its path, and whether it is handed on (`pub use`).
    uses: BTreeMap<String, (Vec<String>, bool)>,
    /// Paths of which it uses everything (`use path::*`).
    everything: Vec<Vec<String>>,
    /// All other paths.
    paths: Vec<Vec<String>>,
    /// What it makes.
    made: BTreeSet<String>,
    /// All words outside of `use`.
    words: BTreeSet<String>,
}

/// Words, `::`, and other signs, without comments, strings and characters.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let c = chars[i];
        let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
        } else if c == '/' && at(i + 1) == '*' {
            while i < chars.len() && !(chars[i] == '*' && at(i + 1) == '/') {
                i += 1;
            }
            i += 2;
        } else if c == 'r' && at(i + 1 + hashes) == '"' {
            // A raw string ends at a quote with as many hashes.
            i += 2 + hashes;
            while i < chars.len() && !(chars[i] == '"' && (1..=hashes).all(|k| at(i + k) == '#')) {
                i += 1;
            }
            i += 1 + hashes;
        } else if c == '"' {
            i += 1;
            while i < chars.len() && chars[i] != '"' {
                i += if chars[i] == '\\' { 2 } else { 1 };
            }
            i += 1;
        } else if c == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'') {
            i += 2;
            while i < chars.len() && (chars[i] != '\'' || at(i - 1) == '\\' && at(i - 2) != '\\') {
                i += 1;
            }
            i += 1;
        } else if is_word(c) {
            let begin = i;
            while is_word(at(i)) {
                i += 1;
            }
            found.push(chars[begin..i].iter().collect());
        } else if c == ':' && at(i + 1) == ':' {
            found.push("::".to_owned());
            i += 2;
        } else {
            if !c.is_whitespace() {
                found.push(c.to_string());
            }
            i += 1;
        }
    }
    found
}

/// Behind the item that begins at a token: after its `;` or its braces, or at the end of what it stands in.
fn behind_item(tokens: &[String], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < tokens.len() {
        match &*tokens[at] {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" if depth == 0 => return at,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 && tokens[at] == "}" {
                    return at + 1;
                }
            }
            ";" | "," if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// The paths of a `use`, each with the name that it gives; returns where it ends.
fn read_use(tokens: &[String], mut at: usize, before: &[String], found: &mut Vec<(String, Vec<String>)>) -> usize {
    let mut path = before.to_vec();
    let mut name = None;
    let mut has_braces = false;
    loop {
        match tokens.get(at).map_or(";", |token| token) {
            "{" => {
                has_braces = true;
                loop {
                    at = read_use(tokens, at + 1, &path, found);
                    if tokens.get(at).is_none_or(|token| token != ",") {
                        break;
                    }
                }
            }
            "as" => {
                name = tokens.get(at + 1).cloned();
                at += 1;
            }
            "::" => {}
            "," | "}" | ";" => break,
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        at += 1;
    }
    if !has_braces && path.len() > before.len().min(1) {
        let last = path.last().cloned().unwrap_or_default();
        found.push((name.unwrap_or(last), path));
    }
    at
}

fn read(text: &str) -> Module {
    let tokens = tokens(text);
    let is = |at: usize, what: &str| tokens.get(at).is_some_and(|token| token == what);
    let mut module = Module::default();
    // Modules within the file: at which depth of braces each began.
    let (mut within, mut depth) = (Vec::new(), 0_usize);
    // There, `super` is the file itself.
    let seen_from_file = |path: Vec<String>, within: &[usize]| -> Vec<String> {
        let up = path.iter().take_while(|word| *word == "super").count();
        match up {
            0 => path,
            up if up <= within.len() => std::iter::once("self".to_owned()).chain(path[up..].to_vec()).collect(),
            _ => path[within.len()..].to_vec(),
        }
    };
    let mut at = 0;
    while at < tokens.len() {
        let token = &*tokens[at];
        if token == "#" && is(at + 1, "[") {
            let end = (at..tokens.len()).find(|&i| tokens[i] == "]").unwrap_or(tokens.len());
            let inside = &tokens[at..end];
            let has = |what: &str| inside.iter().any(|token| token == what);
            at = if has("cfg") && has("test") && !has("not") && !has("any") {
                behind_item(&tokens, end + 1)
            } else {
                end + 1
            };
            continue;
        }
        match token {
            "use" => {
                let is_public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
                let mut found = Vec::new();
                at = read_use(&tokens, at + 1, &[], &mut found);
                for (name, path) in found {
                    let mut path = seen_from_file(path, &within);
                    if path.last().is_some_and(|last| last == "*") {
                        path.pop();
                        module.everything.push(path);
                    } else {
                        module.uses.insert(name, (path, is_public));
                    }
                }
            }
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if within.last() == Some(&depth) {
                    within.pop();
                }
            }
            "mod" if is(at + 2, "{") || is(at + 1, "$") && is(at + 3, "{") => within.push(depth),
            "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" | "mod" => {
                module.made.extend(tokens.get(at + 1).cloned());
            }
            "macro_rules" => module.made.extend(tokens.get(at + 2).cloned()),
            _ if token.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                module.words.insert(token.to_owned());
                if is(at + 1, "::") && (at == 0 || tokens[at - 1] != "::") {
                    let mut path = vec![token.to_owned()];
                    while is(at + 1, "::") && tokens.get(at + 2).is_some_and(|t| t.starts_with(char::is_alphabetic)) {
                        path.push(tokens[at + 2].clone());
                        module.words.insert(tokens[at + 2].clone());
                        at += 2;
                    }
                    module.paths.push(seen_from_file(path, &within));
                }
            }
            _ => {}
        }
        at += 1;
    }
    module
}

/// The files of a room.
struct Room(BTreeMap<Name, Module>);

impl Room {
    /// Of files by their paths below `src`.
    fn new(files: &BTreeMap<String, String>) -> Room {
        let name = |path: &str| -> Name {
            let path = path.trim_end_matches(".rs");
            let path = path.strip_suffix("/mod").unwrap_or(path);
            path.split('/').filter(|part| *part != "lib" && *part != "main").map(str::to_owned).collect()
        };
        // Beside a library, the file of its program is another room's root, which nobody can use.
        let is_read = |path: &str| path != "main.rs" || !files.contains_key("lib.rs");
        let is_test = |name: &Name| name.last().is_some_and(|last| last == "tests");
        let read = files.iter().filter(|(path, _)| is_read(path)).map(|(path, text)| (name(path), read(text)));
        Room(read.filter(|(name, _)| !is_test(name)).collect())
    }

    /// The file where the thing is made to which a path in a file leads, and its name, if that is in this room.
    fn find(&self, from: &Name, path: &[String], steps: usize) -> Option<(Name, String)> {
        let below = |name: &Name, word: &String| -> Option<Name> {
            let name: Name = name.iter().chain([word]).cloned().collect();
            self.0.contains_key(&name).then_some(name)
        };
        let module = self.0.get(from)?;
        // Names that lead to each other are no names.
        if steps == 0 {
            return None;
        }
        let up = path.iter().take_while(|word| *word == "super").count();
        let first = path.first()?;
        let (mut now, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => (from[..from.len().checked_sub(up)?].to_vec(), &path[up..]),
            _ if below(from, first).is_some() => (from.clone(), path),
            _ => {
                let (known, _) = module.uses.get(first).filter(|(known, _)| known.first() != Some(first))?;
                return self.find(from, &[known, &path[1..]].concat(), steps - 1);
            }
        };
        while let Some(next) = rest.first().and_then(|word| below(&now, word)) {
            (now, rest) = (next, &rest[1..]);
        }
        let Some(word) = rest.first() else { return Some((now, "itself".to_owned())) };
        let here = self.0.get(&now)?;
        if here.made.contains(word) {
            return Some((now, word.clone()));
        }
        let handed_on = here.uses.get(word).and_then(|(known, _)| self.find(&now, known, steps - 1));
        let by_all = || {
            let mut all = here.everything.iter();
            all.find_map(|known| {
                let (made, name) = self.find(&now, &[known, rest].concat(), steps - 1)?;
                self.0[&made].made.contains(&name).then_some((made, name))
            })
        };
        handed_on.or_else(by_all).or(Some((now, word.clone())))
    }

    /// Which files each uses, and what of them.
    fn arrows(&self) -> BTreeMap<&Name, BTreeMap<Name, BTreeSet<String>>> {
        let mut arrows: BTreeMap<&Name, BTreeMap<Name, BTreeSet<String>>> = BTreeMap::new();
        for (from, module) in &self.0 {
            let used = module.uses.iter().filter(|(name, (_, is_public))| !is_public || module.words.contains(*name));
            let paths = used.map(|(_, (path, _))| path).chain(&module.everything).chain(&module.paths);
            for (to, what) in paths.filter_map(|path| self.find(from, path, 16)) {
                if !to.starts_with(from) {
                    arrows.entry(from).or_default().entry(to).or_default().insert(what);
                }
            }
        }
        arrows
    }

    /// The circles, in words.
    fn circles(&self) -> Vec<String> {
        let arrows = self.arrows();
        let reached = |from: &Name| -> BTreeSet<Name> {
            let (mut reached, mut open) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(next) = open.pop() {
                for to in arrows.get(&next).into_iter().flat_map(|to| to.keys()) {
                    if reached.insert(to.clone()) {
                        open.push(to.clone());
                    }
                }
            }
            reached
        };
        let reached: BTreeMap<&Name, BTreeSet<Name>> = self.0.keys().map(|name| (name, reached(name))).collect();
        let circle = |name: &Name| -> BTreeSet<Name> {
            reached[name].iter().filter(|other| reached[*other].contains(name)).cloned().collect()
        };
        let circles: BTreeSet<BTreeSet<Name>> = self.0.keys().map(circle).filter(|circle| !circle.is_empty()).collect();
        let shown = |circle: &BTreeSet<Name>| {
            let mut lines = String::new();
            for from in circle {
                for (to, what) in arrows[from].iter().filter(|(to, _)| circle.contains(*to)) {
                    let what: Vec<&str> = what.iter().map(String::as_str).collect();
                    lines += &format!("    {} -> {}: {}\n", from.join("/"), to.join("/"), what.join(", "));
                }
            }
            lines
        };
        circles.iter().map(shown).collect()
    }
}

/// The files below a folder, by their paths from it.
fn files(folder: &Path, at: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder.join(at)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if at.is_empty() { name } else { format!("{at}/{name}") };
        if entry.path().is_dir() {
            files(folder, &path, found);
        } else if path.ends_with(".rs") {
            found.insert(path, std::fs::read_to_string(entry.path()).unwrap());
        }
    }
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut arrows, mut circles) = (0, String::new());
    for parent in ["crates", "apps"] {
        for entry in std::fs::read_dir(root.join(parent)).unwrap() {
            let path = entry.unwrap().path();
            if !path.join("Cargo.toml").is_file() {
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            let mut of_room = BTreeMap::new();
            files(&path.join("src"), "", &mut of_room);
            let room = Room::new(&of_room);
            arrows += room.arrows().values().map(BTreeMap::len).sum::<usize>();
            for circle in room.circles() {
                circles += &format!("{parent}/{name}\n{circle}");
            }
        }
    }
    assert!(arrows > 1000, "only {arrows} arrows were found: the files are not read");
    assert!(
        circles.is_empty(),
        "files use each other in a circle; what both need belongs into the lower one:\n{circles}"
    );
}

fn made_up(files: &[(&str, &str)]) -> Vec<String> {
    Room::new(&files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()).circles()
}

#[test]
fn a_circle_is_found_with_what_ties_it() {
    let lib = ("lib.rs", "mod a; mod b; mod c; pub use c::C;");
    let two = made_up(&[
        lib,
        ("a.rs", "use crate::b::{self, B as Other};\npub struct A;"),
        ("b.rs", "pub struct B(super::a::A);"),
    ]);
    assert_eq!(two, ["    a -> b: B, itself\n    b -> a: A\n"]);
    // Through a name that the root hands on, through everything of a module, from within a module in the file.
    let three = made_up(&[
        lib,
        ("a.rs", "mod inner { use super::super::b::*; }\npub struct A;"),
        ("b.rs", "pub fn f() { crate::C::new() }"),
        ("c/mod.rs", "mod deep; pub use deep::C;"),
        ("c/deep.rs", "use crate::a; pub struct C(a::A);"),
    ]);
    assert_eq!(three, ["    a -> b: itself\n    b -> c/deep: C\n    c/deep -> a: A, itself\n"]);
}

#[test]
fn what_is_no_circle_is_not_found() {
    let none: [String; 0] = [];
    let lib = ("lib.rs", "mod a; mod b;");
    let b = ("b.rs", "use crate::a::A;\npub struct B(A);");
    let texts = [
        "pub struct A; // crate::b::B",
        "/* use crate::b::B; */ pub struct A;",
        "pub struct A; const SHOWN: &str = \"crate::b::B \\\" crate::b::B\"; const RAW: &str = r#\"\"crate::b::B\"#;",
        "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }",
        "pub struct A; #[cfg(test)] use crate::b::B;",
        "pub struct A; const QUOTE: [char; 3] = ['\"', '\\'', 'x']; // crate::b::B",
        "mod inner { use super::A; } pub struct A;",
    ];
    for text in texts {
        assert_eq!(made_up(&[lib, ("a.rs", text), b]), none, "{text}");
    }
    // A module consists of the files below it.
    let below =
        [("lib.rs", "mod a;"), ("a.rs", "mod part; use part::P; pub struct A(P);"), ("a/part.rs", "use super::A;")];
    assert_eq!(made_up(&below), none);
}
