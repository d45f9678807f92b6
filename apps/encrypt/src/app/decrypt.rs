//! `multigrain decrypt`.

use super::args::DecryptArgs;
use super::ends::{Begun, Destination, destination};
use super::range::{ContentRange, Trimmed};
use super::{failure, report};
use crate::armor::without_armor;
use crate::cipher::{ContentKey, Damage, Kind};
use crate::error::Error;
use crate::header::Header;
use crate::keys;
use crate::pipeline::{Ends, Input, Moved, Output, Part, Pipeline, WHOLE, Way};
use multigrain::Progress;
use multigrain_console::{Bar, Failure, Interrupt, Opened, Watched, open};
use std::io::BufReader;
use std::time::Instant;

/// Bytes that are read at once while the header is.
const READ_BYTES: usize = 64 << 10;

/// Decrypts all of a message or a part of it.
///
/// # Errors
/// The request is wrong, or the work failed; then nothing of a file is there.
pub fn decrypt(args: &DecryptArgs) -> Result<(), Failure> {
    let begin = Instant::now();
    let interrupt = Interrupt::install()?;
    args.common.check_keys(&args.identity).map_err(failure)?;
    let input = open(args.common.input())?;
    let to = destination(args.common.output(&args.identity).map_err(failure)?).map_err(failure)?;
    if args.range.is_some() && input.bytes.is_none() {
        return Err(Failure::Request("--range needs a file that can be read at any place; name one".into()));
    }
    let mut identities = keys::identities(&args.identity).map_err(failure)?;
    let watched = Watched { file: &input.file, abort: &interrupt.abort };
    let plain = BufReader::with_capacity(READ_BYTES, watched);
    let mut reader = without_armor(&input.name, plain).map_err(failure)?;
    let header = Header::read(&input.name, &mut *reader.bytes).map_err(failure)?;
    match (header.has_passphrase().map_err(failure)?, args.identity.is_empty()) {
        (true, true) => identities.push(keys::passphrase(&input.name).map_err(failure)?),
        (true, false) => {
            return Err(Failure::Request(format!("{} is encrypted with a passphrase; leave out -i", input.name)));
        }
        (false, true) => {
            return Err(Failure::Request(format!(
                "{} is encrypted to recipients; give the identity of one with -i",
                input.name
            )));
        }
        (false, false) => {}
    }
    let key = header.unlock(&identities).map_err(failure)?;
    // Secrets are not kept longer than they are needed.
    drop(identities);
    let pipeline = Pipeline::new(header.mode(), args.common.threads, args.common.memory).map_err(failure)?;
    let sealed = input.bytes.filter(|_| !reader.armored).map(|bytes| bytes - header.bytes().min(bytes));

    to.told(&interrupt);
    let bar = Bar::new("decrypt", !args.common.json && sealed.is_some() && !to.is_terminal());
    let progress = |done: u64| bar.set(Progress { done: done as f64, total: sealed.unwrap_or(done) as f64 });
    let mut work = |to: Destination<'_>| -> Result<Moved, Error> {
        let message = Message { input: &input, start: header.bytes(), key: &key };
        let range = args.range.map(|range| message.part(range, sealed)).transpose()?;
        let mut out = to.begin()?;
        let (name_in, name_out) = (input.name.clone(), out.name.clone());
        let ends = Ends { input: &name_in, output: &name_out, abort: &interrupt.abort, progress: &progress };
        let moved = match (range, sealed) {
            (Some(range), _) => message.decrypt_part(&range, &pipeline, &mut out, &ends)?,
            (None, Some(sealed)) => {
                let from = Input::File(&input.file, header.bytes(), sealed);
                pipeline.run(Way::Open, &key, WHOLE, from, out.output(0), &ends)?
            }
            (None, None) => {
                let from = Input::Stream(&mut reader.bytes);
                pipeline.run(Way::Open, &key, WHOLE, from, out.output(0), &ends)?
            }
        };
        out.finish()?;
        Ok(Moved { bytes_in: moved.bytes_in + header.bytes(), ..moved })
    };
    let moved = work(to);
    bar.clear();
    let moved = moved.map_err(failure)?;
    interrupt.run_is_over();
    match args.common.json {
        true => report("decrypt", header.mode(), moved, pipeline.team().workers(), begin),
        false => Ok(()),
    }
}

/// An encrypted file whose key is known.
struct Message<'a> {
    input: &'a Opened,
    /// Where the first chunk begins.
    start: u64,
    key: &'a ContentKey,
}

/// A part of it.
struct Section {
    /// Bytes of the content.
    content: std::ops::Range<u64>,
    /// The chunks that hold them.
    chunks: std::ops::Range<u64>,
    /// All bytes of chunks.
    sealed_bytes: u64,
}

impl Message<'_> {
    /// Finds a part. How long the content is, is authentic: its last chunk is opened first.
    fn part(&self, range: ContentRange, sealed_bytes: Option<u64>) -> Result<Section, Error> {
        let name = || self.input.name.clone();
        let Some(sealed_bytes) = sealed_bytes else {
            return Err(Error::Request(format!("--range needs a file without armor, and {} has one", name())));
        };
        let mode = self.key.mode();
        let (chunk, sealed_chunk) = (mode.chunk_bytes() as u64, mode.sealed_chunk_bytes() as u64);
        let damaged = |damage| Error::Damaged { name: name(), damage, chunk_bytes: chunk };
        let truncated = || damaged(Damage { chunk: sealed_bytes / sealed_chunk, kind: Kind::Truncated });
        let content_bytes = mode.content_bytes(sealed_bytes).ok_or_else(truncated)?;
        let last = mode.chunks(content_bytes) - 1;
        let mut tail = vec![0; (sealed_bytes - last * sealed_chunk) as usize];
        let place = self.start + last * sealed_chunk;
        let read = std::os::unix::fs::FileExt::read_exact_at(&self.input.file, &mut tail, place);
        read.map_err(|source| Error::Read { name: name(), source })?;
        let mut opened = vec![0; tail.len()];
        if let (_, Some(damage)) = self.key.open(last, true, &tail, &mut opened) {
            return Err(damaged(damage));
        }
        let content = range.within(content_bytes)?;
        let chunks = content.start / chunk..content.end.div_ceil(chunk).min(last + 1);
        Ok(Section { content, chunks, sealed_bytes })
    }

    /// Decrypts the chunks of a part, in order.
    fn decrypt_part(
        &self,
        section: &Section,
        pipeline: &Pipeline,
        out: &mut Begun,
        ends: &Ends<'_>,
    ) -> Result<Moved, Error> {
        let Section { content, chunks, sealed_bytes } = section;
        let take = content.end - content.start;
        if take == 0 {
            return Ok(Moved::default());
        }
        let (chunk, sealed_chunk) = (self.key.mode().chunk_bytes() as u64, self.key.mode().sealed_chunk_bytes() as u64);
        let (from, to) = (chunks.start * sealed_chunk, (chunks.end * sealed_chunk).min(*sealed_bytes));
        let part = Part { first: chunks.start, ends: to == *sealed_bytes };
        let input = Input::File(&self.input.file, self.start + from, to - from);
        let mut trimmed = Trimmed { inner: out.stream(), skip: content.start - chunks.start * chunk, take };
        let moved = pipeline.run(Way::Open, self.key, part, input, Output::Stream(&mut trimmed), ends)?;
        Ok(Moved { bytes_out: take, ..moved })
    }
}
