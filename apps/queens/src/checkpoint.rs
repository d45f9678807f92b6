//! Checkpoints: what has been counted, part by part.
//!
//! ```text
//! multigrain queens checkpoint 1
//! board 19
//! parts 14920 5d1f30a9          how many, and a check sum of all of them: what they are
//! count 17 4711                 one line for each part that has been counted
//! end 1 a98b7c2e                number of such lines, check sum of everything before this line
//! ```
//!
//! A file appears whole or not at all, so a process that is killed leaves the last one that it finished.

use crate::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

/// `count`, two numbers of up to twenty digits, blanks, line end.
const LINE_BYTES_MAX: u64 = 48;

const FIRST_LINE: &str = "multigrain queens checkpoint 1";

/// What counts belong to: a board and the way it was divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Belongs {
    pub(crate) n: u32,
    pub(crate) parts: usize,
    /// Check sum of what the parts are.
    pub(crate) split: u32,
}

/// The text of a checkpoint. `counts` has one place for each part.
pub(crate) fn text(belongs: &Belongs, counts: &[Option<u64>]) -> String {
    let Belongs { n, parts, split } = belongs;
    let mut text = format!("{FIRST_LINE}\nboard {n}\nparts {parts} {split:08x}\n");
    let mut lines = 0;
    for (part, count) in counts.iter().enumerate() {
        if let Some(count) = count {
            let _ = writeln!(text, "count {part} {count}");
            lines += 1;
        }
    }
    let sum = crc32fast::hash(text.as_bytes());
    let _ = writeln!(text, "end {lines} {sum:08x}");
    text
}

/// Writes a checkpoint in the place of the one that is there.
///
/// # Errors
/// [`Error::Write`]; the one that was there still is.
pub(crate) fn write(path: &Path, belongs: &Belongs, counts: &[Option<u64>]) -> Result<(), Error> {
    let text = text(belongs, counts);
    multigrain::whole::write(path, |out| out.write_all(text.as_bytes()))
        .map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// What has been counted: one place for each part. `None` if there is no such file.
///
/// # Errors
/// [`Error::Checkpoint`] where the file cannot be read, is damaged, or belongs to something else.
pub(crate) fn read(path: &Path, belongs: &Belongs) -> Result<Option<Vec<Option<u64>>>, Error> {
    let refused = |why: String| Error::Checkpoint { path: path.to_owned(), why };
    let most = 200 + LINE_BYTES_MAX * belongs.parts as u64;
    let read = File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = match read {
        Ok(bytes) if bytes.len() as u64 > most => {
            return Err(refused("this is no checkpoint; name another file".into()));
        }
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(format!("{error}; check the path"))),
    };
    let text = String::from_utf8(bytes).map_err(|_| refused("this is no checkpoint; name another file".into()))?;
    parse(&text, belongs).map(Some).map_err(refused)
}

/// What is in the text of a checkpoint, or in words what is wrong with it.
fn parse(text: &str, belongs: &Belongs) -> Result<Vec<Option<u64>>, String> {
    match text.lines().next() {
        Some(FIRST_LINE) => {}
        Some(line) if line.starts_with("multigrain queens checkpoint ") => {
            return Err(
                "another version wrote this checkpoint; go on with that version, or begin anew with another file"
                    .into(),
            );
        }
        _ => return Err("this is no checkpoint; name another file".into()),
    }
    let damaged = |what: &str| format!("the checkpoint is damaged ({what}); begin anew with another file");
    // Everything is under the check sum but the last line, which must be exactly what it would be.
    let body = text.strip_suffix('\n').and_then(|text| text.rfind('\n')).map_or("", |at| &text[..=at]);
    let lines = body.lines().count().saturating_sub(3);
    if text[body.len()..] != format!("end {lines} {:08x}\n", crc32fast::hash(body.as_bytes())) {
        return Err(damaged("it does not end with the check sum of what it holds"));
    }
    let mut lines = body.lines().skip(1);
    let mut header = |word: &str| lines.next().and_then(|line| line.strip_prefix(word)).map(str::to_owned);
    let n: Option<u32> = header("board ").and_then(|n| n.parse().ok());
    let n = n.ok_or_else(|| damaged("its board is missing"))?;
    if n != belongs.n {
        let wanted = belongs.n;
        return Err(format!(
            "this is the checkpoint of a board of {n} x {n}, not of {wanted} x {wanted}; name another file"
        ));
    }
    let parts = header("parts ").ok_or_else(|| damaged("its parts are missing"))?;
    if parts != format!("{} {:08x}", belongs.parts, belongs.split) {
        return Err(
            "its board was divided in another way, by another version; go on with that version, or begin anew with \
                    another file"
                .into(),
        );
    }
    let mut counts = vec![None; belongs.parts];
    for line in lines {
        let words = line.strip_prefix("count ").and_then(|rest| rest.split_once(' '));
        let numbers = words.and_then(|(part, count)| Some((part.parse::<usize>().ok()?, count.parse::<u64>().ok()?)));
        match numbers {
            Some((part, count)) if counts.get(part) == Some(&None) => counts[part] = Some(count),
            _ => return Err(damaged("a line of it makes no sense")),
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BELONGS: Belongs = Belongs { n: 12, parts: 40, split: 0x5d1f_30a9 };

    fn refused(text: &str, words: &str) {
        let why = parse(text, &BELONGS).unwrap_err();
        assert!(why.contains(words), "{words:?} is missing in: {why}");
    }

    #[test]
    fn others_are_refused() {
        let counts = vec![Some(1); 40];
        refused(&text(&Belongs { n: 13, ..BELONGS }, &counts), "13 x 13, not of 12 x 12");
        refused(&text(&Belongs { parts: 39, ..BELONGS }, &counts[..39]), "another way");
        refused(&text(&Belongs { split: 0, ..BELONGS }, &counts), "another way");
        refused("multigrain queens checkpoint 2\n", "another version");
        for odd in ["", "hello", "\n", "\u{1}"] {
            refused(odd, "no checkpoint");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(counts in prop::collection::vec(any::<Option<u64>>(), 40)) {
            prop_assert_eq!(parse(&text(&BELONGS, &counts), &BELONGS).unwrap(), counts);
        }

        #[test]
        fn damage_is_found(
            counts in prop::collection::vec(any::<Option<u64>>(), 40), at: prop::sample::Index, byte in 0..128_u8,
            cut: prop::sample::Index,
        ) {
            let whole = text(&BELONGS, &counts);
            prop_assert!(parse(&whole[..cut.index(whole.len())], &BELONGS).is_err());
            let mut bytes = whole.clone().into_bytes();
            let at = at.index(bytes.len());
            if bytes[at] != byte {
                bytes[at] = byte;
                prop_assert!(parse(std::str::from_utf8(&bytes).unwrap(), &BELONGS).is_err());
            }
            prop_assert!(parse(&(whole.clone() + "\n"), &BELONGS).is_err());
            prop_assert!(parse(&whole.repeat(2), &BELONGS).is_err());
        }
    }
}
