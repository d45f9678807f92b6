//! Subcommands that are programs of their own.
//!
//! `multigrain NAME`, where NAME is none of the command's own, is the executable `multigrain-NAME`: the one beside this
//! program, else the first on PATH. It takes this process over (exec), so arguments, standard streams, exit status and
//! signals are its own. Applications with heavy dependencies are such programs, so that who builds the command does not
//! compile them.

use crate::failure::Failure;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of this workspace.
struct Program {
    /// What follows `multigrain-` in its file's name.
    name: &'static str,
    /// The package that builds it.
    package: &'static str,
    /// What it is for, in the list of commands.
    about: &'static str,
}

/// The programs of this workspace; a test compares them with the manifests.
const PROGRAMS: &[Program] = &[
    Program {
        name: "encrypt",
        package: "multigrain-encrypt",
        about: "Encrypts a file or a pipe on all processors, as age does or with AES-GCM",
    },
    Program { name: "decrypt", package: "multigrain-encrypt", about: "Decrypts what encrypt, age or rage encrypted" },
    Program { name: "encode", package: "multigrain-encode", about: "Encodes a video as H.264 on all processors" },
    Program {
        name: "queens",
        package: "multigrain-queens",
        about: "Counts the ways to put n queens on an n x n board",
    },
];

/// What the file's name begins with.
const PREFIX: &str = "multigrain-";

/// Whether a file can be executed.
fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Where programs are looked for: beside this one (beside the file itself where the command is a link), then on PATH.
fn folders() -> Vec<PathBuf> {
    let beside = env::current_exe().ok().and_then(|program| program.parent().map(Path::to_owned));
    let path = env::var_os("PATH").unwrap_or_default();
    beside.into_iter().chain(env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty())).collect()
}

/// The executable of a name.
pub(crate) fn find(name: &OsStr) -> Option<PathBuf> {
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return None;
    }
    let mut file = OsString::from(PREFIX);
    file.push(name);
    folders().iter().map(|folder| folder.join(&file)).find(|path| is_executable(path))
}

/// Names of the programs in a folder.
fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let name = |path: PathBuf| Some(path.file_name()?.to_str()?.strip_prefix(PREFIX)?.to_owned());
    entries.flatten().map(|entry| entry.path()).filter(|path| is_executable(path)).filter_map(name).collect()
}

/// The command's own subcommands, with the programs of this workspace that lie beside it in its list, and with all
/// others that can be run known by name, so that a misspelt one is answered with its neighbours.
pub(crate) fn with_programs(own: clap::Command) -> clap::Command {
    let mut command = own;
    let folders = folders();
    for program in PROGRAMS {
        let beside =
            folders.first().is_some_and(|folder| is_executable(&folder.join(format!("{PREFIX}{}", program.name))));
        command = command.subcommand(clap::Command::new(program.name).about(program.about).hide(!beside));
    }
    let mut others: Vec<String> = folders.iter().flat_map(|folder| names_in(folder)).collect();
    others.sort_unstable();
    others.dedup();
    for name in others {
        if command.find_subcommand(&name).is_none() {
            command = command.subcommand(clap::Command::new(name).hide(true));
        }
    }
    command
}

fn not_built(program: &Program) -> Failure {
    let Program { name, package, .. } = program;
    Failure::Request(format!(
        "{name} is a program of its own, and there is no {PREFIX}{name} beside this command or on PATH; build it: cargo build \
         --release -p {package}"
    ))
}

/// The executable of a program of this workspace.
///
/// # Errors
/// It has not been built.
pub(crate) fn built(name: &str) -> Result<PathBuf, Failure> {
    let unknown = || Failure::Request(format!("{name} is no program of this workspace"));
    let program = PROGRAMS.iter().find(|program| program.name == name).ok_or_else(unknown)?;
    find(OsStr::new(name)).ok_or_else(|| not_built(program))
}

/// Becomes the program that the arguments (without the command's name) ask for; returns where they ask for a subcommand
/// of the command's own, or for none that there is.
///
/// # Errors
/// The program cannot be started, or is one of this workspace that has not been built.
pub(crate) fn take_over(own: &clap::Command, arguments: &[OsString]) -> Result<(), Failure> {
    let (name, rest) = match arguments {
        [help, name] if help == "help" => (name, vec![OsString::from("--help")]),
        [name, rest @ ..] => (name, rest.to_vec()),
        [] => return Ok(()),
    };
    if name == "help" || name.as_bytes().starts_with(b"-") || own.find_subcommand(name).is_some() {
        return Ok(());
    }
    let Some(path) = find(name) else {
        return match PROGRAMS.iter().find(|program| name == program.name) {
            None => Ok(()),
            Some(program) => Err(not_built(program)),
        };
    };
    // Returns only where the program could not be started.
    let refused = Command::new(&path).args(rest).exec();
    Err(Failure::Run(format!("cannot start {}: {refused}; build it again", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The list says what the manifests say, and one line about each.
    #[test]
    fn programs_are_those_of_the_workspace() {
        let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps");
        let mut built = BTreeMap::new();
        for entry in std::fs::read_dir(apps).unwrap() {
            let folder = entry.unwrap().path();
            let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
            let package =
                manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).unwrap().to_owned();
            for line in manifest.split("[[bin]]").skip(1) {
                let name = line.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).unwrap();
                if let Some(name) = name.strip_prefix(PREFIX) {
                    built.insert(name.to_owned(), package.clone());
                }
            }
        }
        let listed: BTreeMap<String, String> =
            PROGRAMS.iter().map(|p| (p.name.to_owned(), p.package.to_owned())).collect();
        assert_eq!(listed, built);
        assert!(PROGRAMS.iter().all(|p| !p.about.is_empty() && !p.about.contains('\n')));
    }
}
