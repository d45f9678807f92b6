//! Recipients, identities and passphrases: where they come from and how they are written.

use crate::error::Error;
use age::secrecy::{ExposeSecret, SecretString};
use age::{Identity, IdentityFile, Recipient, scrypt, x25519};
use multigrain_console::undone_by_signals;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Doublings of scrypt's work for a new passphrase, as in age: 256 MiB and about a second.
const WORK_LOG2: u8 = 18;

/// More than this a file may not ask for, as with age: 4 GiB and some ten seconds.
const WORK_LOG2_MAX: u8 = 22;

/// Longer files are not lists of recipients.
const LIST_BYTES_MAX: u64 = 16 << 20;

fn recipient(text: &str, place: &str) -> Result<Box<dyn Recipient + Send>, Error> {
    let refused = |why: &str| {
        Error::Request(format!(
            "{place}: {why}; a recipient is age1 and 58 letters, as `multigrain encrypt --keygen` prints"
        ))
    };
    match text.parse::<x25519::Recipient>() {
        Ok(recipient) => Ok(Box::new(recipient)),
        Err(_) if text.starts_with("AGE-SECRET-KEY-") => {
            Err(refused("this is a secret identity; give its public recipient instead"))
        }
        Err(_) if text.starts_with("ssh-") => Err(refused("keys of SSH are not supported")),
        Err(why) => Err(refused(&format!("{text:?} is no recipient ({why})"))),
    }
}

/// What a file with keys holds; `-` is standard input.
fn lines_of(path: &Path) -> io::Result<File> {
    match path == Path::new("-") {
        true => Ok(io::stdin().as_fd().try_clone_to_owned()?.into()),
        false => File::open(path),
    }
}

/// Recipients given one by one and in files (one a line; empty lines and lines with # are passed over).
///
/// # Errors
/// A text is no recipient, a file cannot be read or names none.
pub fn recipients(texts: &[String], files: &[impl AsRef<Path>]) -> Result<Vec<Box<dyn Recipient + Send>>, Error> {
    let mut found = Vec::new();
    for text in texts {
        found.push(recipient(text.trim(), "-r")?);
    }
    for path in files {
        let name = path.as_ref().display();
        let unreadable =
            |e: io::Error| Error::Request(format!("cannot read recipients from {name}: {e}; check the path"));
        let mut list = String::new();
        let file = lines_of(path.as_ref()).map_err(unreadable)?;
        file.take(LIST_BYTES_MAX + 1).read_to_string(&mut list).map_err(unreadable)?;
        if list.len() as u64 > LIST_BYTES_MAX {
            return Err(Error::Request(format!(
                "{name} is longer than {} MiB, no list of recipients",
                LIST_BYTES_MAX >> 20
            )));
        }
        let before = found.len();
        for (number, line) in list.lines().enumerate().map(|(n, line)| (n + 1, line.trim())) {
            if !line.is_empty() && !line.starts_with('#') {
                found.push(recipient(line, &format!("{name}, line {number}"))?);
            }
        }
        if found.len() == before {
            return Err(Error::Request(format!("{name} names no recipient; write one a line")));
        }
    }
    Ok(found)
}

/// The identities in files as `--keygen` or age-keygen writes them.
///
/// # Errors
/// A file cannot be read or holds something else.
pub fn identities(files: &[impl AsRef<Path>]) -> Result<Vec<Box<dyn Identity + Send + Sync>>, Error> {
    let mut found = Vec::new();
    for path in files {
        let name = path.as_ref().display().to_string();
        let refused = |e: &dyn std::fmt::Display| {
            Error::Request(format!(
                "cannot read identities from {name}: {e}; an identity is a line AGE-SECRET-KEY-1..., as `multigrain encrypt \
                 --keygen` prints"
            ))
        };
        let file = lines_of(path.as_ref()).map(|lines| lines.take(LIST_BYTES_MAX));
        let file = file.and_then(|lines| IdentityFile::from_buffer(BufReader::new(lines))).map_err(|e| refused(&e))?;
        let identities = file.into_identities().map_err(|e| refused(&e))?;
        if identities.is_empty() {
            return Err(refused(&"it holds none"));
        }
        found.extend(identities);
    }
    Ok(found)
}

fn ask(prompt: &str) -> Result<SecretString, Error> {
    // A signal while nothing is echoed must not leave the terminal so.
    let terminal = File::open("/dev/tty").ok();
    let modes = terminal.and_then(|terminal| tcgetattr(&terminal).ok().map(|modes| (terminal, modes)));
    let _echo = modes.map(|(terminal, modes)| {
        undone_by_signals(move || {
            // Where the terminal has gone there is nobody left to see its echo.
            let _ = tcsetattr(&terminal, OptionalActions::Now, &modes);
        })
    });
    match rpassword::prompt_password(prompt) {
        // Bytes that are no text have all become the same sign: other passphrases would open the file as well.
        Ok(text) if text.contains(char::REPLACEMENT_CHARACTER) => {
            drop(Zeroizing::new(text));
            Err(Error::Request(
                "the passphrase is not text in UTF-8; set the terminal to UTF-8, or use other letters".into(),
            ))
        }
        Ok(text) => Ok(SecretString::from(text)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            Err(Error::Request("no passphrase was typed; start again and end it with Enter".into()))
        }
        Err(e) => Err(Error::Request(format!(
            "there is no terminal to ask for a passphrase ({e}); start it in one, or use recipients and identities"
        ))),
    }
}

/// A passphrase for a new file, asked for twice on the terminal.
///
/// # Errors
/// There is no terminal, or what was typed is empty or differs.
pub fn new_passphrase() -> Result<Box<dyn Recipient + Send>, Error> {
    let passphrase = ask("Passphrase: ")?;
    if passphrase.expose_secret().is_empty() {
        return Err(Error::Request("an empty passphrase protects nothing; type one".into()));
    }
    if ask("The same again: ")?.expose_secret() != passphrase.expose_secret() {
        return Err(Error::Request("the two passphrases differ; start again".into()));
    }
    Ok(Box::new(with_passphrase(passphrase)))
}

/// The recipient that is a passphrase.
pub fn with_passphrase(passphrase: SecretString) -> scrypt::Recipient {
    let mut recipient = scrypt::Recipient::new(passphrase);
    recipient.set_work_factor(WORK_LOG2);
    recipient
}

/// The passphrase of a file, asked for on the terminal.
///
/// # Errors
/// There is no terminal.
pub fn passphrase(name: &str) -> Result<Box<dyn Identity + Send + Sync>, Error> {
    Ok(Box::new(of_passphrase(ask(&format!("Passphrase of {name}: "))?)))
}

/// The identity that is a passphrase.
pub fn of_passphrase(passphrase: SecretString) -> scrypt::Identity {
    let mut identity = scrypt::Identity::new(passphrase);
    identity.set_max_work_factor(WORK_LOG2_MAX);
    identity
}

/// Makes an identity and writes it with its recipient, to a new file that only its owner can read or to standard output.
/// Gives the recipient.
///
/// # Errors
/// The file is there already, or cannot be written; then it is not left half written.
pub fn generate(path: Option<&Path>) -> Result<String, Error> {
    let identity = x25519::Identity::generate();
    let recipient = identity.to_public().to_string();
    let secret = identity.to_string();
    let text = Zeroizing::new(format!("# public key: {recipient}\n{}\n", secret.expose_secret()));
    let Some(path) = path else {
        let mut out = io::stdout().lock();
        let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        return done.map(|()| recipient).map_err(|source| Error::Write { name: "standard output".into(), source });
    };
    let name = path.display().to_string();
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Error::Request(format!(
                "{name} is there already, and what is encrypted to it would be lost; name another file"
            )),
            _ => Error::Request(format!("cannot write {name}: {e}; name another file")),
        })?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|source| {
        // Half a key is of no use; the error that led here is reported.
        let _ = std::fs::remove_file(path);
        Error::Write { name, source }
    })?;
    Ok(recipient)
}
