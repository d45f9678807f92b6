//! What can be typed.

use crate::app::range::ContentRange;
use crate::error::Error;
use crate::mode::Mode;
use clap::{Args, Parser, ValueEnum};
use multigrain::parse_bytes;
use multigrain::whole::is_same_file;
use std::path::{Path, PathBuf};

/// Encrypts a file or a pipe so that only its recipients can read it, as age does or faster
#[derive(Parser, Debug)]
#[command(name = "multigrain encrypt", version)]
pub struct EncryptArgs {
    /// Encrypts to this recipient, age1...; may be given several times
    #[arg(short, long, value_name = "RECIPIENT")]
    pub recipient: Vec<String>,
    /// Encrypts to the recipients in this file, one a line (- is standard input); may be given several times
    #[arg(short = 'R', long, value_name = "FILE")]
    pub recipients_file: Vec<PathBuf>,
    /// Encrypts with a passphrase, asked for on the terminal
    #[arg(short, long, conflicts_with_all = ["recipient", "recipients_file"])]
    pub passphrase: bool,
    /// How the content is encrypted
    #[arg(long, value_enum, default_value_t = ModeName::Age)]
    pub mode: ModeName,
    /// Writes text that survives being sent as text
    #[arg(short, long)]
    pub armor: bool,
    /// Makes a new identity instead, and writes it to --output or to standard output
    #[arg(long, conflicts_with_all = ["recipient", "recipients_file", "passphrase", "mode", "armor", "json", "input"])]
    pub keygen: bool,
    /// Measures so many bytes in memory, for `multigrain bench encrypt`
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, hide = true)]
    pub bench: Option<u64>,
    /// What both programs can be told.
    #[command(flatten)]
    pub common: Common,
}

/// Decrypts what `multigrain encrypt`, age or rage encrypted; the mode is found out
#[derive(Parser, Debug)]
#[command(name = "multigrain decrypt", version)]
pub struct DecryptArgs {
    /// A file with identities, as --keygen or age-keygen writes them (- is standard input); may be given several times
    #[arg(short, long, value_name = "FILE")]
    pub identity: Vec<PathBuf>,
    /// Decrypts with a passphrase, asked for on the terminal; without -i a file that has one is asked for it anyway
    #[arg(short, long, conflicts_with = "identity")]
    pub passphrase: bool,
    /// Decrypts these bytes of the content only, such as 0..4KiB, 1MiB.. or ..100; the input must be a file
    #[arg(long, value_name = "A..B")]
    pub range: Option<ContentRange>,
    /// What both programs can be told.
    #[command(flatten)]
    pub common: Common,
}

/// What both programs can be told.
#[derive(Args, Debug)]
pub struct Common {
    /// The input [default: standard input]
    pub input: Option<PathBuf>,
    /// Where the result goes, whole or not at all [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What buffers may use, such as 4MiB [default: 64 MiB, or what all threads need]; a passphrase takes 256 MiB beside
    /// them for a moment, or what the file asks for, up to 4 GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory: Option<u64>,
    /// Number of threads, instead of one for each processor
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Prints one JSON object; the result must go to a file
    #[arg(long, requires = "output")]
    pub json: bool,
}

fn threads(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if (1..=4096).contains(&number) { Ok(number) } else { Err(format!("{number} is not within 1..=4096")) }
}

impl Common {
    /// The input, unless it is standard input.
    pub(super) fn input(&self) -> Option<&Path> {
        self.input.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Refuses standard input for keys where it is the input.
    ///
    /// # Errors
    /// It is both, or is named twice among `read`, the files with keys.
    pub(super) fn check_keys(&self, read: &[PathBuf]) -> Result<(), Error> {
        let from_stdin =
            read.iter().filter(|path| **path == Path::new("-")).count() + usize::from(self.input().is_none());
        match from_stdin > 1 && read.iter().any(|path| path == Path::new("-")) {
            true => {
                Err(Error::Request("standard input is to be read for two things; name a file for one of them".into()))
            }
            false => Ok(()),
        }
    }

    /// The output, unless it is standard output; `read` are the files with keys.
    ///
    /// # Errors
    /// It is the input, or holds keys that are used, or standard output is also to have the JSON object, or it is the file to which standard output goes and so the JSON object.
    pub(super) fn output(&self, read: &[PathBuf]) -> Result<Option<&Path>, Error> {
        let output = self.output.as_deref().filter(|path| *path != Path::new("-"));
        let Some(path) = output else {
            return match self.json {
                true => {
                    Err(Error::Request("--json goes to standard output; name a file for the result with -o".into()))
                }
                false => Ok(None),
            };
        };
        let is = |what: &str| Err(Error::Request(format!("{} is {what}; name another output", path.display())));
        if path.is_file() {
            // Standard input may be a file, too, which the shell has opened.
            let real = |path: &Path| if path == Path::new("-") { PathBuf::from("/dev/stdin") } else { path.to_owned() };
            if is_same_file(&real(self.input().unwrap_or(Path::new("-"))), path) {
                return is("input and output");
            }
            if read.iter().any(|keys| is_same_file(&real(keys), path)) {
                return is("also read for its keys");
            }
        }
        if self.json && is_same_file(Path::new("/dev/stdout"), path) {
            return is("where the JSON object goes");
        }
        Ok(output)
    }
}

/// The modes as they are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// age v1: ChaCha20-Poly1305 in chunks of 64 KiB; age and rage can read it
    Age,
    /// C2SP chunked encryption: AES-128-GCM in chunks of 16 KiB; faster, read by `multigrain decrypt` only
    #[value(name = "aes-128-gcm")]
    Aes128,
    /// The same with AES-256-GCM
    #[value(name = "aes-256-gcm")]
    Aes256,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Mode {
        match name {
            ModeName::Age => Mode::Age,
            ModeName::Aes128 => Mode::Aes128,
            ModeName::Aes256 => Mode::Aes256,
        }
    }
}
