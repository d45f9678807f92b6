//! Passphrases, typed on a terminal of the test's own.

use crate::support;

use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{Place, content};

/// A terminal, and a program that was started in it.
struct Terminal {
    /// What a person types and sees.
    person: File,
    /// The program's side.
    line: File,
    seen: Vec<u8>,
}

impl Terminal {
    fn new() -> Terminal {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let name = std::path::Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        // The terminal is not to become the test's own.
        let flags = rustix::fs::OFlags::NOCTTY.bits() as i32;
        let line = File::options().read(true).write(true).custom_flags(flags).open(name).unwrap();
        Terminal { person: File::from(person), line, seen: Vec::new() }
    }

    /// Starts a program whose terminal this is.
    fn start(&self, place: &Place, program: &str, words: &[&str]) -> Child {
        let mut command = Command::new(program);
        command.args(words).current_dir(place.path(""));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let line = self.line.try_clone().unwrap();
        // SAFETY: between fork and exec it calls the system only, and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                setsid()?;
                Ok(ioctl_tiocsctty(&line)?)
            })
        };
        command.spawn().unwrap()
    }

    /// Waits until the program has written this, and forgets what came before.
    fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            let mut bytes = [0; 256];
            let read = self.person.read(&mut bytes).unwrap();
            self.seen.extend(&bytes[..read]);
        }
        self.seen.clear();
    }

    fn type_in(&mut self, text: &str) {
        self.person.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until nothing is echoed, which is just after the prompt.
    fn becomes_silent(&self) {
        let looks = 10_000;
        let silent = (0..looks).any(|_| {
            !self.echoes() || {
                std::thread::sleep(Duration::from_millis(1));
                false
            }
        });
        assert!(silent, "what is typed is still shown after {looks} looks");
    }

    fn echoes(&self) -> bool {
        tcgetattr(&self.line).unwrap().local_modes.contains(LocalModes::ECHO)
    }
}

const ENCRYPT: &str = env!("CARGO_BIN_EXE_multigrain-encrypt");
const DECRYPT: &str = env!("CARGO_BIN_EXE_multigrain-decrypt");

#[test]
fn a_passphrase_is_typed_and_not_shown() {
    let (place, mut terminal) = (Place::new(), Terminal::new());
    place.write("content", content(100_000));
    let mut child = terminal.start(&place, ENCRYPT, &["-p", "-o", "sealed", "content"]);
    for prompt in ["Passphrase: ", "The same again: "] {
        terminal.until(prompt);
        terminal.becomes_silent();
        terminal.type_in("correct horse\n");
    }
    assert!(child.wait().unwrap().success());
    assert!(terminal.echoes());
    let mut child = terminal.start(&place, DECRYPT, &["-o", "opened", "sealed"]);
    terminal.until("Passphrase of sealed: ");
    terminal.becomes_silent();
    terminal.type_in("correct horse\n");
    assert!(child.wait().unwrap().success());
    assert!(place.read("opened") == content(100_000));
    assert!(!String::from_utf8_lossy(&terminal.seen).contains("horse"));
}

#[test]
fn an_interrupt_at_the_prompt_gives_the_echo_back() {
    let (place, mut terminal) = (Place::new(), Terminal::new());
    place.write("content", content(1_000));
    let mut child = terminal.start(&place, ENCRYPT, &["-p", "-o", "sealed", "content"]);
    terminal.until("Passphrase: ");
    terminal.becomes_silent();
    terminal.type_in("\u{3}");
    assert!(!child.wait().unwrap().success());
    assert!(terminal.echoes());
    assert_eq!(place.names(), ["content"]);
}
