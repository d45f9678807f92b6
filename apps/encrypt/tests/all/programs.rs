//! The two programs: files, pipes, wrong requests, damaged files, full disks, and age beside them.

use crate::support;

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use support::{Place, content};

const MODES: [&str; 3] = ["age", "aes-128-gcm", "aes-256-gcm"];

/// A directory with an identity `key`, its recipient in `$R`'s place, and content.
fn place(bytes: usize) -> (Place, String) {
    let place = Place::new();
    let recipient = place.keygen("key");
    place.write("content", content(bytes));
    (place, recipient)
}

fn there_is(program: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("skipped: there is no {program} here");
    }
    there
}

#[test]
fn files_and_pipes_go_both_ways() {
    let (place, recipient) = place(700_000);
    for mode in MODES {
        for threads in [1, 2, 5] {
            let with = format!("--threads {threads} --memory 4MiB");
            place.done(&format!("encrypt --mode {mode} {with} -r {recipient} -o sealed content"));
            place.done(&format!("encrypt --mode {mode} {with} -r {recipient} < content > piped"));
            place.done(&format!("cat content | encrypt --mode {mode} {with} -r {recipient} -o half - "));
            for file in ["sealed", "piped", "half"] {
                let out = place.done(&format!("decrypt {with} -i key {file}"));
                assert!(out == place.read("content"), "{mode} {file}");
                place.done(&format!("cat {file} | decrypt {with} -i key -o opened"));
                assert!(place.read("opened") == place.read("content"), "{mode} {file}");
                place.done(&format!("decrypt {with} -i key -o opened {file}"));
                assert!(place.read("opened") == place.read("content"), "{mode} {file}");
            }
        }
    }
    assert_eq!(place.names(), ["content", "half", "key", "opened", "piped", "sealed"]);
}

#[test]
fn nothing_is_content_too() {
    let (place, recipient) = place(0);
    for mode in MODES {
        place.done(&format!("encrypt --mode {mode} -r {recipient} -o sealed content"));
        place.done("decrypt -i key -o opened sealed");
        assert!(place.read("opened").is_empty());
        assert!(place.done(&format!("encrypt --mode {mode} -r {recipient} < /dev/null | decrypt -i key")).is_empty());
        assert!(place.done("decrypt -i key --range .. sealed").is_empty());
    }
}

#[test]
fn armor_is_text_and_is_found_out() {
    let (place, recipient) = place(100_000);
    place.done(&format!("encrypt -a -r {recipient} -o text content"));
    let text = String::from_utf8(place.read("text")).unwrap();
    assert!(text.starts_with("-----BEGIN AGE ENCRYPTED FILE-----\n"));
    assert!(place.done("(echo; cat text; echo) | decrypt -i key") == place.read("content"));
    place.refused(2, "decrypt -i key --range 0..5 text", &["without armor"]);
    place.write("cut", &text[..text.len() - 60]);
    place.refused(1, "decrypt -i key -o opened cut", &["cannot read cut", "armor is cut off", "get the file again"]);
    // A line without an end takes no memory: as much again as the program may have.
    let long = "ulimit -v 400000; (head -c 70 text; head -c 600000000 /dev/zero | tr '\\0' A) | decrypt -i key --threads 1 > /dev/null";
    place.refused(1, long, &["64 columns", "get the file again"]);
    place.write("changed", text.replacen('\n', "\n*", 5));
    place.refused(1, "decrypt -i key -o opened changed", &["cannot read changed", "armor"]);
    for mode in &MODES[1..] {
        place.refused(2, &format!("encrypt -a --mode {mode} -r {recipient} content"), &["--armor", "--mode age"]);
    }
}

#[test]
fn keys_come_from_standard_input_too() {
    let (place, recipient) = place(5_000);
    place.write("recipients", format!("# mine\n{recipient}\n"));
    place.done("encrypt -R - -o sealed content < recipients");
    place.done("decrypt -i - -o opened sealed < key");
    assert!(place.read("opened") == place.read("content"));
    place.refused(2, "encrypt -R - -o other < recipients", &["standard input", "two things"]);
    place.refused(2, "decrypt -i - -o other < key", &["standard input", "two things"]);
    place.refused(2, "decrypt -i - -i - -o other sealed < key", &["standard input", "two things"]);
    // Nor are the keys written over that the shell has opened.
    place.refused(2, "decrypt -i - -o key sealed < key", &["key", "read for its keys"]);
    place.refused(2, "encrypt -R - -o recipients content < recipients", &["recipients", "read for its keys"]);
    assert!(String::from_utf8(place.read("key")).unwrap().contains("AGE-SECRET-KEY-1"));
    assert_eq!(place.names(), ["content", "key", "opened", "recipients", "sealed"]);
}

#[test]
fn parts_are_decrypted() {
    let (place, recipient) = place(300_000);
    let all = place.read("content");
    for mode in MODES {
        place.done(&format!("encrypt --mode {mode} -r {recipient} -o sealed content"));
        let borders = [0, 1, 16383, 16384, 65536, 65537, 131_072, 262_144, 299_999, 300_000];
        for (i, a) in borders.iter().enumerate() {
            for b in &borders[i..] {
                let part = place.done(&format!("decrypt -i key --range {a}..{b} sealed"));
                assert!(part == all[*a..*b], "{mode} {a}..{b}");
            }
        }
        assert!(place.done("decrypt -i key --range 299KB.. sealed") == all[299_000..]);
        place.done("decrypt -i key --range ..64KiB -o part sealed");
        assert!(place.read("part") == all[..65536]);
        place.refused(2, "decrypt -i key --range 5..300001 sealed", &["300000 bytes"]);
        place.refused(2, "cat sealed | decrypt -i key --range 5..6", &["any place"]);
        place.refused(2, "decrypt -i key --range 6..5 sealed", &["before it begins"]);
        // How long the content is, is authentic: a part of a file that was cut is not given.
        let sealed = place.read("sealed");
        for cut in [1, 100, 70_000] {
            place.write("cut", &sealed[..sealed.len() - cut]);
            place.refused(1, "decrypt -i key --range 0..5 cut", &["cut"]);
        }
        // What is damaged elsewhere does not matter.
        let mut damaged = sealed.clone();
        damaged[70_000] ^= 1;
        place.write("damaged", damaged);
        assert!(place.done("decrypt -i key --range 200000..200100 damaged") == all[200_000..200_100]);
        place.refused(1, "decrypt -i key --range 0..100000 -o part2 damaged", &["authentic"]);
        for name in ["cut", "damaged"] {
            std::fs::remove_file(place.path(name)).unwrap();
        }
    }
}

#[test]
fn damaged_files_give_nothing_under_a_name_and_only_what_is_authentic_to_a_pipe() {
    let (place, recipient) = place(300_000);
    let all = place.read("content");
    for mode in MODES {
        place.done(&format!("encrypt --mode {mode} -r {recipient} -o sealed content"));
        let sealed = place.read("sealed");
        let mut flipped = sealed.clone();
        flipped[200_000] ^= 4;
        let other = [&sealed[..150_000], &sealed[160_000..]].concat();
        for damaged in [&sealed[..250_000], &flipped, &[&sealed[..], &sealed[..]].concat(), &other] {
            place.write("damaged", damaged);
            place.refused(1, "decrypt -i key -o opened damaged", &["damaged"]);
            place.refused(1, "cat damaged | decrypt -i key -o opened", &["standard input"]);
            let out = place.refused(1, "decrypt -i key damaged", &["damaged"]);
            assert!(all.starts_with(&out) && out.len() > 100_000, "{mode}: {} bytes", out.len());
            // What had the name keeps it.
            place.write("kept", "as it was");
            place.refused(1, "decrypt -i key -o kept damaged", &["damaged"]);
            assert_eq!(place.read("kept"), b"as it was");
        }
    }
}

#[test]
fn wrong_requests_are_refused_before_anything_is_done() {
    let (place, recipient) = place(1000);
    place.keygen("other");
    place.write("empty", "");
    place.write("list", format!("# mine\n\n{recipient}\n"));
    place.write("bad", format!("{recipient}\nage1nobody\n"));
    place.done("encrypt -R list -o sealed content");
    assert_eq!(place.done("decrypt -i key sealed"), place.read("content"));
    let refused = |command: &str, words: &[&str]| drop(place.refused(2, command, words));
    refused("encrypt -o x content", &["-r", "-p"]);
    refused("encrypt -r nobody -o x content", &["nobody", "age1"]);
    refused("encrypt -r ssh-ed25519 -o x content", &["SSH"]);
    refused("encrypt -R bad -o x content", &["bad, line 2", "age1nobody"]);
    refused("encrypt -R empty -o x content", &["empty names no recipient"]);
    refused("encrypt -R none -o x content", &["none", "No such file"]);
    refused(&format!("encrypt -r {recipient} -o x none"), &["none", "No such file"]);
    refused(&format!("encrypt -r {recipient} -o x ."), &["directory"]);
    refused(&format!("encrypt -r {recipient} -o no/x content"), &["no/x", "create it"]);
    refused(&format!("encrypt -r {recipient} -o content content"), &["input and output"]);
    refused(&format!("encrypt -r {recipient} -o content < content"), &["input and output"]);
    refused("decrypt -i key -o key sealed", &["read for its keys"]);
    refused("encrypt -R list -o list content", &["read for its keys"]);
    refused(&format!("encrypt -r {recipient} --json -o /dev/stdout content"), &["JSON"]);
    refused(&format!("encrypt -r {recipient} -o x --memory 100KiB content"), &["--memory", "KiB"]);
    refused(&format!("encrypt -r {recipient} --json content"), &["--output"]);
    refused(&format!("encrypt -p -r {recipient} -o x content"), &["cannot be used with"]);
    refused("encrypt --keygen -o key", &["there already"]);
    refused("decrypt -o x sealed", &["-i"]);
    refused("decrypt -i none -o x sealed", &["none"]);
    refused("decrypt -i list -o x sealed", &["AGE-SECRET-KEY"]);
    refused("decrypt -i key --threads 0 sealed", &["0"]);
    let failed = |command: &str, words: &[&str]| drop(place.refused(1, command, words));
    failed("decrypt -i other -o x sealed", &["not encrypted to any"]);
    failed("decrypt -i key -o x content", &["no encrypted file"]);
    failed("decrypt -i key -o x empty", &["no encrypted file"]);
    let secret = String::from_utf8(place.read("key")).unwrap();
    let secret = secret.lines().find(|line| line.starts_with("AGE-SECRET")).unwrap();
    refused(&format!("encrypt -r {secret} -o x content"), &["secret identity"]);
    let said = place.run(&format!("encrypt -r {secret} -o x content")).stderr;
    assert!(!String::from_utf8(said).unwrap().contains(secret), "a secret is not repeated");
}

#[test]
fn full_disks_and_readers_that_have_gone_are_told() {
    let (place, recipient) = place(3_000_000);
    for mode in MODES {
        let encrypt = format!("encrypt --mode {mode} -r {recipient}");
        place.done(&format!("{encrypt} -o sealed content"));
        for (command, name) in [(format!("{encrypt} content"), "content"), ("decrypt -i key sealed".into(), "sealed")] {
            place.refused(1, &format!("{command} > /dev/full"), &["standard output", "No space left"]);
            place.refused(1, &format!("{command} -o /dev/full"), &["/dev/full", "No space left"]);
            place.refused(1, &format!("ulimit -f 1000; exec {command} -o x"), &["cannot write x", "File too large"]);
            place.refused(
                1,
                &format!("cat {name} | ( ulimit -f 1000; exec {} -o x )", command.replace(&format!(" {name}"), " ")),
                &["cannot write x"],
            );
            let mut child = place.command(&format!("exec {command}"));
            let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut some = [0; 10];
            child.stdout.take().unwrap().read_exact(&mut some).unwrap();
            let ended = child.wait_with_output().unwrap();
            let said = String::from_utf8(ended.stderr).unwrap();
            assert_eq!((ended.status.code(), said.lines().count()), (Some(1), 1), "{said}");
            assert!(said.contains("Broken pipe"), "{said}");
        }
    }
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let (place, recipient) = place(10);
    let before = place.names();
    let mut command = place.command(&format!("exec encrypt -r {recipient} -o x"));
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than pipe and buffers hold: by then the output is begun.
    let (begun, is_begun) = std::sync::mpsc::channel();
    let filler = std::thread::spawn(move || {
        let mut written = 0u64;
        while stdin.write_all(&[0; 1 << 16]).is_ok() {
            written += 1 << 16;
            if written == 256 << 20 {
                begun.send(()).unwrap();
            }
        }
    });
    is_begun.recv().unwrap();
    let kill = Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap();
    assert!(kill.success());
    let ended = child.wait_with_output().unwrap();
    filler.join().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8(ended.stderr).unwrap().contains("interrupted"));
    assert_eq!(place.names(), before);
}

#[test]
fn a_signal_ends_the_wait_for_a_pipe_that_nobody_feeds() {
    let (place, recipient) = place(10);
    // Some blocks and not the end.
    let some = place.done(&format!("head -c 5000000 /dev/zero | encrypt -r {recipient}"));
    for to in ["", " -o out"] {
        for command in [format!("exec encrypt -r {recipient}{to}"), format!("exec decrypt -i key{to}")] {
            let mut child = place.command(&command);
            let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let mut stdout = child.stdout.take().unwrap();
            let drain = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
            // No pipe holds so much, so the run has begun.
            stdin.write_all(&some[..4_000_000]).unwrap();
            let kill = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().unwrap();
            assert!(kill.success());
            let ended = child.wait_with_output().unwrap();
            drain.join().unwrap().unwrap();
            assert_eq!(ended.status.code(), Some(1));
            assert!(String::from_utf8(ended.stderr).unwrap().contains("interrupted"));
            drop(stdin);
            assert_eq!(place.names(), ["content", "key"]);
        }
    }
}

#[test]
fn a_signal_ends_what_waits_for_a_reader_that_never_reads() {
    let (place, recipient) = place(3_000_000);
    place.done(&format!("encrypt -r {recipient} -o sealed content"));
    for command in [format!("exec encrypt -r {recipient} content"), "exec decrypt -i key sealed".to_owned()] {
        let mut child = place.command(&command);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // It writes; nobody reads the rest, which no pipe holds.
        stdout.read_exact(&mut [0; 16]).unwrap();
        let kill = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().unwrap();
        assert!(kill.success());
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(1));
        assert!(String::from_utf8(ended.stderr).unwrap().contains("interrupted; what was written is not complete"));
        drop(stdout);
    }
}

#[test]
fn json_says_what_was_done() {
    let (place, recipient) = place(100_000);
    let line = place.done(&format!("encrypt --json --threads 2 --mode aes-256-gcm -r {recipient} -o sealed content"));
    let object: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(object["bytes_in"], 100_000);
    assert_eq!(object["bytes_out"], place.read("sealed").len());
    assert_eq!((&object["mode"], &object["threads"]), (&"aes-256-gcm".into(), &2.into()));
    assert!(object["seconds"].as_f64().unwrap() > 0.0);
    place.refused(2, &format!("encrypt --json -r {recipient} -o - content"), &["--json", "-o"]);
    let line = place.done("decrypt --json -i key -o opened sealed");
    let object: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(object["bytes_in"], place.read("sealed").len());
    assert_eq!(object["bytes_out"], 100_000);
}

#[test]
fn identities_are_private_and_none_is_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let recipient = place.keygen("key");
    assert_eq!(std::fs::metadata(place.path("key")).unwrap().permissions().mode() & 0o777, 0o600);
    let text = String::from_utf8(place.read("key")).unwrap();
    assert!(text.contains(&format!("# public key: {recipient}\n")) && text.contains("\nAGE-SECRET-KEY-1"));
    let second = place.run("encrypt --keygen");
    assert!(second.status.success() && !second.stdout.is_empty() && second.stdout != text.as_bytes());
}

#[test]
fn age_and_rage_read_what_is_written_and_the_other_way_round() {
    for program in ["age", "rage"].into_iter().filter(|program| there_is(program)) {
        for bytes in [0, 1, 65_535, 65_536, 65_537, 500_000] {
            let (place, recipient) = place(bytes);
            let content = place.read("content");
            let other = place.keygen("other");
            place.done(&format!("encrypt -r {other} -r {recipient} -o ours content"));
            place.done(&format!("encrypt -a -r {recipient} -o text content"));
            for file in ["ours", "text"] {
                assert!(place.done(&format!("{program} -d -i key {file}")) == content, "{program}, {file} of {bytes}");
            }
            place.done(&format!("{program} -r {other} -r {recipient} -o theirs content"));
            place.done(&format!("{program} -a -r {recipient} -o theirs.txt content"));
            for file in ["theirs", "theirs.txt"] {
                assert!(place.done(&format!("decrypt -i key {file}")) == content, "{program}, {file} of {bytes}");
            }
            // A file of an AES mode is no file of age, and says so.
            place.done(&format!("encrypt --mode aes-128-gcm -r {recipient} -o aes content"));
            assert!(!place.run(&format!("{program} -d -i key aes")).status.success());
        }
    }
    if there_is("age-keygen") {
        let place = Place::new();
        place.write("content", "text");
        assert!(place.run("age-keygen -o key").status.success());
        assert_eq!(place.done("encrypt -r $(age-keygen -y key) content | decrypt -i key"), b"text");
    }
}

/// What a command says and asks on a terminal where these lines are typed.
fn on_a_terminal(place: &Place, command: &str, typed: &str) -> String {
    let script = place.command(command);
    let inner = script.get_args().nth(1).unwrap().to_str().unwrap().to_owned();
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &inner, "/dev/null"]).current_dir(place.path("")).env("SHELL", "/bin/sh");
    let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    // A line is typed when it is asked for: what is typed earlier would be shown.
    let (mut said, mut lines, mut byte) = (String::new(), typed.lines(), [0]);
    let mut asked = 0;
    while output.read(&mut byte).is_ok_and(|read| read == 1) {
        said.push(char::from(byte[0]));
        if said[asked..].ends_with(": ") {
            asked = said.len();
            if let Some(line) = lines.next() {
                // The prompt comes just before echoing ends or just after; wait for the program to read.
                std::thread::sleep(std::time::Duration::from_millis(300));
                input.write_all(format!("{line}\n").as_bytes()).unwrap();
            }
        }
    }
    child.wait().unwrap();
    said
}

#[test]
fn passphrases_are_asked_for_and_not_shown() {
    if !there_is("script") {
        return;
    }
    let (place, recipient) = place(70_000);
    for mode in MODES {
        let said =
            on_a_terminal(&place, &format!("encrypt --mode {mode} -p -o sealed content"), "open sesame\nopen sesame");
        assert!(said.contains("Passphrase: ") && !said.contains("sesame"), "{said}");
        let said = on_a_terminal(&place, "decrypt -o opened sealed", "open sesame");
        assert!(said.contains("Passphrase of sealed: ") && !said.contains("sesame"), "{said}");
        assert!(place.read("opened") == place.read("content"), "{mode}");
        std::fs::remove_file(place.path("opened")).unwrap();
    }
    let said = on_a_terminal(&place, "decrypt -o opened sealed", "sesame");
    assert!(said.contains("not the passphrase"), "{said}");
    let said = on_a_terminal(&place, "encrypt -p -o other content", "one\ntwo");
    assert!(said.contains("differ"), "{said}");
    let said = on_a_terminal(&place, "encrypt -p -o other content", "\n");
    assert!(said.contains("empty"), "{said}");
    place.refused(2, "decrypt -i key -o opened sealed", &["passphrase", "-i"]);
    place.done(&format!("encrypt -r {recipient} -o plain content"));
    place.refused(2, "decrypt -p -o opened plain", &["-i"]);
    assert_eq!(place.names(), ["content", "key", "plain", "sealed"]);
    if there_is("age") {
        on_a_terminal(&place, "encrypt -p -o sealed content", "open sesame\nopen sesame");
        on_a_terminal(&place, "age -d -o opened sealed", "open sesame");
        assert!(place.read("opened") == place.read("content"));
        on_a_terminal(&place, "age -p -o theirs content", "open sesame\nopen sesame");
        on_a_terminal(&place, "decrypt -o again theirs", "open sesame");
        assert!(place.read("again") == place.read("content"));
    }
}
