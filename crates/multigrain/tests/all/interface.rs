//! The public interface, listed and kept on purpose: `interface.txt` beside each crate that others build on. It is read from
//! the sources (what macros make is not in it), so it needs no more than a compiler; who changes what is public changes the
//! list in the same commit: `MULTIGRAIN_WRITE=1 cargo test -p multigrain --test all interface::`.

use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, UseTree, Visibility};

/// A module: its items, and whether somebody outside can name it.
struct Module {
    items: Vec<Item>,
}

/// All modules of a crate by their paths, `` the root.
#[derive(Default)]
struct Sources(BTreeMap<String, Module>);

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| {
        let text = a.to_token_stream().to_string();
        text.starts_with("# [cfg") && !text.contains("feature") && (text.contains("test") || text.contains("loom"))
    })
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}::{name}") }
}

impl Sources {
    fn read(&mut self, file: &Path, folder: &Path, path: &str) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let items = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display())).items;
        self.enter(items, folder, path);
    }

    fn enter(&mut self, items: Vec<Item>, folder: &Path, path: &str) {
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if is_test(&module.attrs) {
                continue;
            }
            let (name, below) = (module.ident.to_string(), joined(path, &module.ident.to_string()));
            let inside = folder.join(&name);
            match &module.content {
                Some((_, items)) => self.enter(items.clone(), &inside, &below),
                None => {
                    let beside = folder.join(format!("{name}.rs"));
                    let file = if beside.is_file() { beside } else { inside.join("mod.rs") };
                    self.read(&file, &inside, &below);
                }
            }
        }
        self.0.insert(path.to_owned(), Module { items });
    }

    /// The path of a module that `segments`, as written in module `from`, lead to.
    fn module(&self, from: &str, segments: &[String]) -> Option<String> {
        let mut path = from.to_owned();
        for (i, segment) in segments.iter().enumerate() {
            path = match segment.as_str() {
                "crate" if i == 0 => String::new(),
                "self" if i == 0 => path,
                "super" => path.rsplit_once("::").map_or(String::new(), |(above, _)| above.to_owned()),
                name => joined(&path, name),
            };
        }
        self.0.contains_key(&path).then_some(path)
    }
}

/// The list of a crate.
struct List<'a> {
    sources: &'a Sources,
    lines: BTreeSet<String>,
    /// Names of types that somebody outside can name, for their methods.
    types: BTreeSet<String>,
}

/// Tokens as people write them.
fn text(tokens: impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" < ", "<"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("- >", "->"),
        ("& ", "&"),
        ("& ", "&"),
        ("' ", "'"),
        (" ,", ","),
        (" :", ":"),
        (" ;", ";"),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        ("[ ", "["),
        (" ]", "]"),
        ("# [", "#["),
        (" !", "!"),
        ("->", " -> "),
        ("  ", " "),
        (" ?", "?"),
        ("? ", "?"),
        (",)", ")"),
    ] {
        text = text.replace(from, to);
    }
    text
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

impl List<'_> {
    fn module(&mut self, path: &str, shown: &str) {
        let Some(module) = self.sources.0.get(path) else { return };
        for item in &module.items {
            match item {
                Item::Mod(m) if is_public(&m.vis) && !is_test(&m.attrs) => {
                    let (below, name) = (joined(path, &m.ident.to_string()), joined(shown, &m.ident.to_string()));
                    self.lines.insert(format!("mod {name}"));
                    self.module(&below, &name);
                }
                Item::Use(used) if is_public(&used.vis) => self.used(path, shown, &mut Vec::new(), &used.tree),
                other => self.item(other, shown, None),
            }
        }
    }

    /// What `pub use` makes public here: items of this crate with all they are, names of others as they are named.
    fn used(&mut self, path: &str, shown: &str, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(way) => {
                before.push(way.ident.to_string());
                self.used(path, shown, before, &way.tree);
                before.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.used(path, shown, before, tree)),
            UseTree::Glob(_) => match self.sources.module(path, before) {
                Some(module) => self.module(&module, shown),
                None => drop(self.lines.insert(format!("use {} = {}::*", joined(shown, "*"), before.join("::")))),
            },
            UseTree::Name(_) | UseTree::Rename(_) => {
                let (name, new) = match tree {
                    UseTree::Rename(named) => (named.ident.to_string(), named.rename.to_string()),
                    UseTree::Name(named) => (named.ident.to_string(), named.ident.to_string()),
                    _ => return,
                };
                let whole = [&before[..], std::slice::from_ref(&name)].concat();
                // What the crate shows under another path as well is listed there.
                if before.first().is_some_and(|first| first == "crate") {
                    self.lines.insert(format!("use {} = {}", joined(shown, &new), whole.join("::")));
                    return;
                }
                if let Some(module) = self.sources.module(path, &whole) {
                    self.lines.insert(format!("mod {}", joined(shown, &new)));
                    return self.module(&module, &joined(shown, &new));
                }
                let Some(module) = self.sources.module(path, before).filter(|_| !before.is_empty()) else {
                    self.lines.insert(format!("use {} = {}", joined(shown, &new), whole.join("::")));
                    return;
                };
                let before_count = self.lines.len();
                for item in &self.sources.0[&module].items {
                    match item {
                        Item::Use(further) if !matches!(further.vis, Visibility::Inherited) => {
                            self.renamed(&module, shown, &mut Vec::new(), &further.tree, &name);
                        }
                        item => self.item(item, shown, Some(&name)),
                    }
                }
                // What a macro makes is known by its name only.
                if self.lines.len() == before_count {
                    self.lines.insert(format!("use {} = {}", joined(shown, &new), whole.join("::")));
                }
            }
        }
    }

    /// One name out of what a module has from elsewhere.
    fn renamed(&mut self, path: &str, shown: &str, before: &mut Vec<String>, tree: &UseTree, wanted: &str) {
        match tree {
            UseTree::Path(way) => {
                before.push(way.ident.to_string());
                self.renamed(path, shown, before, &way.tree, wanted);
                before.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.renamed(path, shown, before, tree, wanted));
            }
            UseTree::Name(named) if named.ident == wanted => self.used(path, shown, before, tree),
            UseTree::Rename(named) if named.rename == wanted => self.used(path, shown, before, tree),
            _ => {}
        }
    }

    fn item(&mut self, item: &Item, shown: &str, wanted: Option<&str>) {
        let named = |ident: &syn::Ident| wanted.is_none_or(|wanted| ident == wanted);
        let at = |ident: &syn::Ident| joined(shown, &ident.to_string());
        match item {
            Item::Fn(f) if is_public(&f.vis) && named(&f.sig.ident) => {
                self.lines.insert(format!("fn {}: {}", at(&f.sig.ident), text(&f.sig)));
            }
            Item::Struct(s) if is_public(&s.vis) && named(&s.ident) => {
                self.types.insert(s.ident.to_string());
                self.lines.insert(format!("struct {}{} {}", at(&s.ident), text(&s.generics), fields(&s.fields, true)));
            }
            Item::Enum(e) if is_public(&e.vis) && named(&e.ident) => {
                self.types.insert(e.ident.to_string());
                let exhaustive = if text_of(&e.attrs).contains("non_exhaustive") { " (more may come)" } else { "" };
                self.lines.insert(format!("enum {}{}{exhaustive}", at(&e.ident), text(&e.generics)));
                for v in &e.variants {
                    self.lines.insert(format!("enum {}::{} {}", at(&e.ident), v.ident, fields(&v.fields, false)));
                }
            }
            Item::Trait(t) if is_public(&t.vis) && named(&t.ident) => {
                let safety = t.unsafety.map_or("", |_| "unsafe ");
                let above =
                    if t.supertraits.is_empty() { String::new() } else { format!(": {}", text(&t.supertraits)) };
                self.lines.insert(format!("{safety}trait {}{}{above}", at(&t.ident), text(&t.generics)));
                for item in &t.items {
                    let line = match item {
                        TraitItem::Fn(f) => {
                            format!("{}{}", text(&f.sig), if f.default.is_some() { " (has a default)" } else { "" })
                        }
                        TraitItem::Const(c) => format!("const {}: {}", c.ident, text(&c.ty)),
                        TraitItem::Type(ty) => format!("type {}", ty.ident),
                        _ => continue,
                    };
                    self.lines.insert(format!("trait {} has {line}", at(&t.ident)));
                }
            }
            Item::Const(c) if is_public(&c.vis) && named(&c.ident) => {
                self.lines.insert(format!("const {}: {}", at(&c.ident), text(&c.ty)));
            }
            Item::Type(ty) if is_public(&ty.vis) && named(&ty.ident) => {
                self.lines.insert(format!("type {}{} = {}", at(&ty.ident), text(&ty.generics), text(&ty.ty)));
            }
            _ => {}
        }
    }

    /// Methods, and implementations of traits, of the types that can be named.
    fn implementations(&mut self) {
        for item in self.sources.0.values().flat_map(|module| &module.items) {
            let Item::Impl(block) = item else { continue };
            let syn::Type::Path(of) = &*block.self_ty else { continue };
            let Some(name) = of.path.segments.last().map(|s| s.ident.to_string()) else { continue };
            if !self.types.contains(&name) || is_test(&block.attrs) {
                continue;
            }
            if let Some((of_trait, _)) = &block.trait_ {
                self.lines.insert(format!("{} is {}", text(&block.self_ty), text(of_trait)));
                continue;
            }
            for item in &block.items {
                let line = match item {
                    ImplItem::Fn(f) if is_public(&f.vis) => text(&f.sig),
                    ImplItem::Const(c) if is_public(&c.vis) => format!("const {}: {}", c.ident, text(&c.ty)),
                    _ => continue,
                };
                self.lines.insert(format!("{} has {line}", text(&block.self_ty)));
            }
        }
    }
}

fn text_of(attributes: &[Attribute]) -> String {
    attributes.iter().map(|a| a.to_token_stream().to_string()).collect()
}

/// Public fields; those of a variant are.
fn fields(fields: &Fields, only_public: bool) -> String {
    let shown = fields.iter().filter(|f| !only_public || is_public(&f.vis));
    let shown: Vec<String> = shown
        .map(|f| f.ident.as_ref().map_or_else(|| text(&f.ty), |name| format!("{name}: {}", text(&f.ty))))
        .collect();
    let private = if shown.len() < fields.len() { [", .."].concat() } else { String::new() };
    format!("{{ {}{private} }}", shown.join(", ")).replace("{ , .. }", "{ .. }").replace("{  }", "{}")
}

fn listed(folder: &Path) -> String {
    let mut sources = Sources::default();
    sources.read(&folder.join("src/lib.rs"), &folder.join("src"), "");
    let mut list = List { sources: &sources, lines: BTreeSet::new(), types: BTreeSet::new() };
    list.module("", "");
    list.implementations();
    list.lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn the_public_interface_is_the_one_that_is_listed() {
    let crates: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["multigrain", "program", "front", "console"] {
        let (found, file) = (listed(&crates.join(name)), crates.join(name).join("interface.txt"));
        if std::env::var_os("MULTIGRAIN_WRITE").is_some() {
            std::fs::write(&file, &found).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        let (found, kept): (BTreeSet<&str>, BTreeSet<&str>) = (found.lines().collect(), kept.lines().collect());
        let (new, gone): (Vec<_>, Vec<_>) = (found.difference(&kept).collect(), kept.difference(&found).collect());
        assert!(
            new.is_empty() && gone.is_empty(),
            "the public interface of {name} has changed; where that is meant, MULTIGRAIN_WRITE=1 cargo test -p multigrain \
             --test all interface:: writes {}\nnew: {new:#?}\ngone: {gone:#?}",
            file.display()
        );
    }
}

/// The reader sees what a compiler makes public, and nothing else.
#[test]
fn the_reader_sees_what_is_public() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("src");
    std::fs::create_dir_all(source.join("inner")).unwrap();
    std::fs::write(
        source.join("lib.rs"),
        "mod inner; mod other { pub fn lost() {} pub struct Lost; impl Lost { pub fn gone(&self) {} } }\n\
         pub use inner::{Kept, deep::far}; pub use std::path::Path as Way; pub mod open { pub const N: u8 = 1; }\n\
         #[cfg(test)] mod tests { pub fn none() {} } fn hidden() {}",
    )
    .unwrap();
    std::fs::write(
        source.join("inner.rs"),
        "pub mod deep; pub struct Kept { pub a: u8, b: u8 } impl Kept { pub fn new(a: u8) -> Kept { Kept { a, b: a } } fn no() {} }\n\
         impl Clone for Kept { fn clone(&self) -> Kept { Kept { a: self.a, b: self.b } } } pub fn unused() {}",
    )
    .unwrap();
    std::fs::write(source.join("inner/deep.rs"), "pub fn far<T: Copy>(of: &[T]) -> Option<T> { None }").unwrap();
    let expected = [
        "Kept has fn new(a: u8) -> Kept",
        "Kept is Clone",
        "const open::N: u8",
        "fn far: fn far<T: Copy>(of: &[T]) -> Option<T>",
        "mod open",
        "struct Kept { a: u8, .. }",
        "use Way = std::path::Path",
    ];
    assert_eq!(listed(folder.path()).lines().collect::<Vec<_>>(), expected);
}
