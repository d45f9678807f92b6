//! The file of options: read, and known by its lines where something is wrong.

use super::{Placement, Transport};
use serde::Deserialize;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) source: Vec<Spanned<FileSource>>,
    #[serde(default)]
    pub(super) user: Vec<Spanned<FileUser>>,
    pub(super) listen: Option<Spanned<String>>,
    pub(super) http: Option<Spanned<String>>,
    pub(super) rtsps: Option<Spanned<String>>,
    pub(super) https: Option<Spanned<String>>,
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) trust: Option<PathBuf>,
    pub(super) udp_port: Option<Spanned<u16>>,
    pub(super) transport: Option<Transport>,
    pub(super) workers: Option<Spanned<usize>>,
    pub(super) placement: Option<Placement>,
    pub(super) reorder_ms: Option<Spanned<u64>>,
    pub(super) gather_ms: Option<Spanned<f64>>,
    pub(super) queue: Option<Spanned<Size>>,
    pub(super) viewers: Option<Spanned<usize>>,
    pub(super) connections_an_address: Option<Spanned<usize>>,
    pub(super) drain_s: Option<Spanned<u64>>,
    pub(super) transparent: Option<String>,
    /// The file's name and its text, to tell lines.
    #[serde(skip)]
    place: (String, String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSource {
    pub(super) name: Option<String>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) urls: Vec<String>,
    pub(super) transport: Option<Transport>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileUser {
    pub(super) name: String,
    pub(super) password: String,
    /// The streams that may be watched; all, where this is left out.
    pub(super) streams: Option<Vec<String>>,
}

/// Bytes, or such as "8MiB".
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Size {
    Bytes(u64),
    Text(String),
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Size::Bytes(bytes) => bytes.fmt(f),
            Size::Text(text) => f.write_str(text),
        }
    }
}

/// A text of an option as it may stand in a message: not an address, in which a password may be, wherever that stands.
pub(crate) fn shown(text: &str) -> &str {
    if text.contains("://") || text.contains('@') { "an address" } else { text }
}

/// What there has to be, in other words than a library's.
fn wanted(expected: &str) -> &str {
    match expected {
        "usize" | "u64" => "a number without a sign or a point",
        "u16" => "a number from 0 to 65535",
        "a string" => "a text in quotes",
        "f64" => "a number",
        other => other,
    }
}

/// Whether a message quotes something that may be of the file.
fn quotes(message: &str) -> bool {
    message.replace("`=`", "").replace("`_`", "").contains(['"', '`'])
}

pub(super) fn file(path: &Path) -> Result<File, String> {
    let shown = shown(&path.to_string_lossy()).to_owned();
    let bytes = std::fs::read(path).map_err(|e| format!("cannot read {shown}: {e}; give the name of a TOML file"))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = 1 + e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        format!("{shown}, line {line}: this is no text in UTF-8; give the name of a TOML file, or save it so")
    })?;
    let read: Result<File, toml::de::Error> = toml::from_str(&text);
    let read = read.map_err(|e| {
        // The error's own text quotes the line, which may hold a password.
        let start = e.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text[..start].matches('\n').count();
        let begins = text[..start].rsplit('\n').next().unwrap_or_default().trim_start();
        let table = ["source", "user"].into_iter().find(|name| {
            let is_key = begins.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='));
            is_key || text[start..].starts_with(&format!("[{name}]"))
        });
        let message = e.message();
        let wrong = match table {
            Some(table) => return format!("{shown}, line {line}: write [[{table}]], since there may be several"),
            None if message.starts_with("invalid basic string") => "a text ends with \" in the same line".to_owned(),
            None if message.contains("untagged enum Size") => "there has to be a size, such as \"8MiB\"".to_owned(),
            None if message.starts_with("key with no value") => "this line is not whole: KEY = VALUE".to_owned(),
            None if message.starts_with("duplicate key") => "this was given before".to_owned(),
            // A key that is none may be anything, and numbers that were taken for passwords are quoted as well.
            None => match message.rsplit_once(", expected ") {
                Some((what, keys)) if what.starts_with("unknown field") => {
                    format!("there is no such key, but {}", keys.trim_start_matches("one of "))
                }
                Some((what, names)) if what.starts_with("unknown variant") => format!("there has to be {names}"),
                Some((what, expected)) if what.starts_with("invalid ") => {
                    format!("there has to be {}", wanted(expected))
                }
                // In a library's words, but nothing of the file: what it expects, and keys that are missing, it knows without.
                Some((what, _)) if !quotes(what) => message.to_owned(),
                None if !quotes(message) || message.starts_with("missing field `") => message.to_owned(),
                _ => "this cannot be read".to_owned(),
            },
        };
        format!("{shown}, line {line}: {wrong}; correct it there")
    });
    read.map(|file| File { place: (shown, text), ..file })
}

impl File {
    /// Where something stands in it.
    pub(super) fn line(&self, span: &Range<usize>) -> String {
        let (shown, text) = &self.place;
        let before = text.get(..span.start).unwrap_or_default();
        format!("{shown}, line {}", 1 + before.matches('\n').count())
    }

    /// What is given as an option, or else here, and how people know it.
    pub(super) fn pick<T: Display>(
        &self,
        key: &str,
        given: Option<T>,
        filed: Option<Spanned<T>>,
    ) -> Option<(T, String)> {
        let option = format!("--{}", key.replace('_', "-"));
        let given = given.map(|value| (format!("{option} {}", shown(&value.to_string())), value));
        let filed = || {
            filed.map(|value| {
                // A text in the wrong place may be a password; the line says where it is.
                (format!("{}: {key}", self.line(&value.span())), value.into_inner())
            })
        };
        given.or_else(filed).map(|(place, value)| (value, place))
    }
}
