//! Subcommands that are programs of their own: found beside the command, then on PATH, and given everything.

use crate::support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use support::{Place, Ran, finished};

/// A directory with a copy of the command in it.
fn place() -> Place {
    let place = Place::new();
    let command = place.path("multigrain");
    if std::fs::hard_link(env!("CARGO_BIN_EXE_multigrain"), &command).is_err() {
        std::fs::copy(env!("CARGO_BIN_EXE_multigrain"), &command).unwrap();
    }
    for folder in ["path", "work"] {
        std::fs::create_dir(place.path(folder)).unwrap();
    }
    place
}

/// Puts a shell script there.
fn script(place: &Place, name: &str, body: &str) {
    place.write(name, format!("#!/bin/sh\n{body}\n"));
    std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The copy of the command, with the folder `path` as PATH (beside the shell's tools).
fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(place.path("multigrain"));
    let path = format!(":{}:/usr/bin:/bin", place.path("path").display());
    command.args(arguments).env("PATH", path).current_dir(place.path("work")).stdin(Stdio::null());
    command
}

fn run(place: &Place, arguments: &[&str]) -> Ran {
    finished(command(place, arguments))
}

#[test]
fn a_program_gets_all_arguments_and_gives_its_status() {
    let place = place();
    script(&place, "multigrain-hello", r#"printf '<%s>' "$@"; echo said >&2; exit 7"#);
    let ran = run(&place, &["hello", "--json", "a b", "", "--help", "-x"]);
    assert_eq!(ran.status, Some(7));
    assert_eq!(ran.stdout, "<--json><a b><><--help><-x>");
    assert_eq!(ran.stderr, "said\n");
    assert_eq!(run(&place, &["help", "hello"]).stdout, "<--help>", "help NAME is NAME --help");
}

#[test]
fn a_program_takes_the_process_over() {
    let place = place();
    script(&place, "multigrain-own", "echo $$");
    let child = command(&place, &["own"]).stdout(Stdio::piped()).spawn().unwrap();
    let process = child.id();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), format!("{process}\n"));
    // A signal that the command itself ignores is not ignored for the program, and ends it as a signal.
    script(&place, "multigrain-killed", "kill -XFSZ $$");
    let status = command(&place, &["killed"]).status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGXFSZ));
}

#[test]
fn beside_comes_before_the_path_and_neither_before_the_commands_own() {
    let place = place();
    script(&place, "path/multigrain-where", "echo path");
    assert_eq!(run(&place, &["where"]).stdout, "path\n");
    script(&place, "multigrain-where", "echo beside");
    assert_eq!(run(&place, &["where"]).stdout, "beside\n");
    script(&place, "multigrain-machine", "echo beside");
    assert!(run(&place, &["machine", "--assumed"]).stdout.contains("dram"));
    // Not what lies in the working directory, not what cannot be executed, and no path.
    script(&place, "work/multigrain-here", "echo here");
    place.write("multigrain-text", "text");
    for name in ["here", "text", "../multigrain-where", ""] {
        let ran = run(&place, &[name]);
        assert_eq!(ran.status, Some(2), "{name}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn a_name_that_is_none_is_answered_with_its_neighbours() {
    let place = place();
    script(&place, "multigrain-enchant", "echo");
    script(&place, "path/multigrain-disenchant", "echo");
    let ran = run(&place, &["enchnat", "--now"]);
    assert_eq!(ran.status, Some(2));
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.starts_with("multigrain: "), "{}", ran.stderr);
    for word in ["enchnat", "'enchant'", "'disenchant'"] {
        assert!(ran.stderr.contains(word), "{word} is missing in: {}", ran.stderr);
    }
    let own = run(&place, &["plam", "sgemm"]);
    assert_eq!(own.status, Some(2));
    assert!(own.stderr.contains("'plan'"), "{}", own.stderr);
    // A stranger's program is not in the list of commands.
    assert!(!run(&place, &["--help"]).stdout.contains("enchant"));
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let place = place();
    script(&place, "multigrain-broken", "");
    place.write("multigrain-broken", "#!/no/such/shell\n");
    let ran = run(&place, &["broken"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("multigrain-broken") && ran.stderr.contains("No such file"), "{}", ran.stderr);
}

/// Completions and manual pages know the options of programs that are not compiled into the command: these tell them.
#[test]
fn programs_tell_their_options() {
    let place = place();
    let told = r#"{"version":"7","about":"Counts","long_about":null,"arguments":[{"id":"board","short":null,"long":"chessboard",
        "help":"Which","long_help":null,"heading":null,"values":["KIND"],"choice":[["torus","Round"]],"defaults":[],
        "hint":"Unknown","repeats":false,"required":false,"hidden":false}]}"#;
    script(&place, "multigrain-queens", &format!("[ \"$*\" = --definition-as-json ] && echo '{told}'"));
    // One that is beside but tells nothing has its name; what is on PATH, and what nobody registered, is not even asked.
    script(&place, "multigrain-encode", "echo usage >&2; exit 2");
    script(&place, "multigrain-stranger", "touch asked");
    script(&place, "path/multigrain-encrypt", "touch asked");
    let bash = run(&place, &["completions", "bash"]);
    assert_eq!((bash.status, bash.stderr.as_str()), (Some(0), ""));
    for word in ["--chessboard", "torus", "encode"] {
        assert!(bash.stdout.contains(word), "{word} is missing");
    }
    assert!(!bash.stdout.contains("stranger"));
    assert_eq!(run(&place, &["man", "."]).status, Some(0));
    let page = String::from_utf8(place.read("work/multigrain-queens.1")).unwrap();
    assert!(page.contains("\\-\\-chessboard") && page.contains("torus: Round"), "{page}");
    assert!(place.path("work/multigrain-encode.1").is_file());
    assert!(!place.path("work/multigrain-stranger.1").exists() && !place.path("work/asked").exists());
}
