//! What the tests share: content, pipelines from memory to memory, the programs.
#![allow(dead_code)]

use multigrain::Abort;
use multigrain_encrypt::cipher::ContentKey;
use multigrain_encrypt::pipeline::{Ends, Input, Output, Part, Pipeline, WHOLE, Way};
use multigrain_encrypt::{Error, Mode};
use std::path::PathBuf;
use std::process::{Command, Output as Ran, Stdio};

/// Content that repeats nowhere within a chunk.
pub(crate) fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// A key that depends on its number only.
pub(crate) fn key(mode: Mode, number: u8) -> ContentKey {
    match mode {
        Mode::Age => ContentKey::age(&[number; 16], &[number.wrapping_add(1); 16]),
        Mode::Aes128 => ContentKey::chunked(mode, &[number; 16], &[number; 24], b"").0,
        Mode::Aes256 => ContentKey::chunked(mode, &[number; 32], &[number; 24], b"").0,
    }
}

/// A stream through a pipeline: what came out, and how it ended.
pub(crate) fn through(
    pipeline: &Pipeline,
    way: Way,
    key: &ContentKey,
    part: Part,
    mut input: &[u8],
) -> (Vec<u8>, Result<(), Error>) {
    let mut out = Vec::new();
    let ends = Ends { input: "in", output: "out", abort: &Abort::new(), progress: &|_| {} };
    let done = pipeline.run(way, key, part, Input::Stream(&mut input), Output::Stream(&mut out), &ends);
    let done = done.map(|moved| assert_eq!(moved.bytes_out, out.len() as u64));
    (out, done)
}

/// A whole message through a pipeline.
pub(crate) fn sealed(pipeline: &Pipeline, key: &ContentKey, content: &[u8]) -> Vec<u8> {
    let (sealed, done) = through(pipeline, Way::Seal, key, WHOLE, content);
    done.unwrap();
    sealed
}

/// A directory in which the programs run.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A shell command in which `encrypt` and `decrypt` are the programs.
    pub(crate) fn command(&self, command: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        let (encrypt, decrypt) = (env!("CARGO_BIN_EXE_multigrain-encrypt"), env!("CARGO_BIN_EXE_multigrain-decrypt"));
        let script = command.replace("encrypt ", &format!("{encrypt} ")).replace("decrypt ", &format!("{decrypt} "));
        shell.arg("-c").arg(script).current_dir(self.0.path()).stdin(Stdio::null());
        shell
    }

    pub(crate) fn run(&self, command: &str) -> Ran {
        self.command(command).output().unwrap()
    }

    /// Runs it and expects success and silence.
    #[track_caller]
    pub(crate) fn done(&self, command: &str) -> Vec<u8> {
        let ran = self.run(command);
        assert!(ran.status.success() && ran.stderr.is_empty(), "{command}: {ran:?}");
        ran.stdout
    }

    /// Runs it and expects one line that names these words, this status, and no new file.
    #[track_caller]
    pub(crate) fn refused(&self, status: i32, command: &str, words: &[&str]) -> Vec<u8> {
        let before = self.names();
        let ran = self.run(command);
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(status), "{command}: {said}");
        assert!(said.starts_with("multigrain: "), "{command}: {said}");
        for word in words {
            assert!(said.contains(word), "{command}: {word:?} is missing in {said}");
        }
        assert_eq!(self.names(), before, "{command}");
        ran.stdout
    }

    /// Makes an identity in `key` and gives its recipient.
    pub(crate) fn keygen(&self, name: &str) -> String {
        let ran = self.run(&format!("encrypt --keygen -o {name}"));
        assert!(ran.status.success(), "{ran:?}");
        let said = String::from_utf8(ran.stderr).unwrap();
        said.trim_end().strip_prefix("multigrain: public key: ").unwrap().to_owned()
    }
}
