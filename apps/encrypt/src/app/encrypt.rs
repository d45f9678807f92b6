//! `multigrain encrypt`.

use super::args::{EncryptArgs, ModeName};
use super::ends::{Destination, destination};
use super::{failure, report};
use crate::error::Error;
use crate::mode::Mode;
use crate::pipeline::{Ends, Input, Moved, Output, Pipeline, WHOLE, Way};
use crate::{header, keys};
use age::armor::{ArmoredWriter, Format};
use multigrain::Progress;
use multigrain_console::{Bar, Failure, Interrupt, Watched, open, say};
use std::io::{BufWriter, IsTerminal, Write};
use std::time::Instant;

/// Encrypts, or makes an identity.
///
/// # Errors
/// The request is wrong, or the work failed; then nothing of a file is there.
pub fn encrypt(args: &EncryptArgs) -> Result<(), Failure> {
    if let Some(bytes) = args.bench {
        return crate::bench::bench(args.mode.into(), args.common.threads, bytes as usize);
    }
    if args.keygen {
        return keygen(args).map_err(failure);
    }
    if args.armor && args.mode != ModeName::Age {
        return Err(Failure::Request(
            "--armor names a file of age, which age must be able to read; leave it out, or use --mode age".into(),
        ));
    }
    let begin = Instant::now();
    let interrupt = Interrupt::install()?;
    args.common.check_keys(&args.recipients_file).map_err(failure)?;
    let input = open(args.common.input())?;
    let to = destination(args.common.output(&args.recipients_file).map_err(failure)?).map_err(failure)?;
    if to.is_terminal() && !args.armor {
        return Err(Failure::Request("encrypted bytes on a terminal are of no use; write to a file with -o".into()));
    }
    let mode = Mode::from(args.mode);
    let pipeline = Pipeline::new(mode, args.common.threads, args.common.memory).map_err(failure)?;
    let recipients = match args.passphrase {
        true => vec![keys::new_passphrase().map_err(failure)?],
        false => keys::recipients(&args.recipient, &args.recipients_file).map_err(failure)?,
    };
    let (head, key) = header::write(mode, &recipients).map_err(failure)?;

    to.told(&interrupt);
    let bar = Bar::new("encrypt", !args.common.json && input.bytes.is_some() && !to.is_terminal());
    let progress = |done: u64| {
        bar.set(Progress { done: done as f64, total: input.bytes.unwrap_or(done) as f64 });
    };
    let work = |to: Destination<'_>| -> Result<Moved, Error> {
        let mut out = to.begin()?;
        let (name_in, name_out) = (input.name.clone(), out.name.clone());
        let ends = Ends { input: &name_in, output: &name_out, abort: &interrupt.abort, progress: &progress };
        let unwritable = |source| Error::Write { name: name_out.clone(), source };
        let mut stream = Watched { file: &input.file, abort: &interrupt.abort };
        let from = match input.bytes {
            Some(bytes) => Input::File(&input.file, 0, bytes),
            None => Input::Stream(&mut stream),
        };
        let moved = match args.armor {
            true => {
                let buffered = BufWriter::new(out.stream());
                let mut armored = ArmoredWriter::wrap_output(buffered, Format::AsciiArmor).map_err(unwritable)?;
                armored.write_all(&head).map_err(unwritable)?;
                let moved = pipeline.run(Way::Seal, &key, WHOLE, from, Output::Stream(&mut armored), &ends)?;
                armored.finish().and_then(|mut out| out.flush()).map_err(unwritable)?;
                moved
            }
            false => {
                out.stream().write_all(&head).map_err(unwritable)?;
                pipeline.run(Way::Seal, &key, WHOLE, from, out.output(head.len() as u64), &ends)?
            }
        };
        out.finish()?;
        Ok(Moved { bytes_out: moved.bytes_out + head.len() as u64, ..moved })
    };
    let moved = work(to);
    bar.clear();
    let moved = moved.map_err(failure)?;
    interrupt.run_is_over();
    if let Some(bytes) = input.bytes
        && input.file.metadata().is_ok_and(|now| now.len() > bytes)
    {
        say(&format!("{} became longer meanwhile: the {bytes} bytes that it had at first are encrypted", input.name));
    }
    match args.common.json {
        true => report("encrypt", mode, moved, pipeline.team().workers(), begin),
        false => Ok(()),
    }
}

fn keygen(args: &EncryptArgs) -> Result<(), Error> {
    let path = args.common.output(&[])?;
    let recipient = keys::generate(path)?;
    // Whoever reads the identity in a terminal sees the recipient beside it.
    if path.is_some() || !std::io::stdout().is_terminal() {
        say(&format!("public key: {recipient}"));
    }
    Ok(())
}
