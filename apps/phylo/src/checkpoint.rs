//! Checkpoints: what finished jobs found, where others are, and the request that all of it belongs to.
//!
//! A job's result depends on the alignment, the settings and its own number only. So a run that goes on from a
//! checkpoint, making the jobs that are not in it and going on with those that were begun, ends with the same bits as one that was never interrupted.
//!
//! ```text
//! multigrain phylo checkpoint 1
//! alignment 5d1f30a98b7c2e64          hash of names, letters and partitions
//! setting seed 1                      one line for each setting on which results depend
//! setting model GTR+FC+G4m
//! writes bestTree                     one line for each file that the run may write, whatever has its name
//! found search 0 -5719.37             then its models and trees
//! model GTR{...}+FU{...}+G4m{...}
//! tree (...);
//! begun replicate 3                   where an unfinished job is, after its last round
//! state search fast 5 ...
//! end 2                               number of jobs: a cut file lacks this line
//! ```

use crate::error::Error;
use crate::job::{Found, Job};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const FIRST_LINE: &str = "multigrain phylo checkpoint 1";

/// What a checkpoint belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Hash of names, letters and partitions.
    pub alignment: u64,
    /// Names and values of the settings on which results depend; no line breaks.
    pub settings: Vec<(String, String)>,
    /// The files that it may write, of its outputs their words; no line breaks. Nothing had their names when it began, or its user had said that it may be replaced; so a run
    /// that goes on may write them, too.
    pub writes: Vec<String>,
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo), with lengths, so that pieces cannot run into each other.
#[derive(Debug, Clone, Copy)]
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Takes in a piece.
    pub fn add(&mut self, piece: &[u8]) {
        for byte in (piece.len() as u64).to_le_bytes().iter().chain(piece) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The hash of everything taken in.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// What a checkpoint holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Saved {
    /// The models that were chosen, by partition.
    pub chosen: Vec<String>,
    /// Results of finished jobs.
    pub found: Vec<Found>,
    /// States of jobs that were begun, as text.
    pub begun: BTreeMap<Job, String>,
}

/// The text of a checkpoint.
pub fn write(request: &Request, saved: &Saved) -> String {
    let mut text = format!("{FIRST_LINE}\nalignment {:016x}\n", request.alignment);
    for (name, value) in &request.settings {
        let _ = writeln!(text, "setting {name} {value}");
    }
    request.writes.iter().for_each(|file| text += &format!("writes {file}\n"));
    saved.chosen.iter().for_each(|model| text += &format!("chosen {model}\n"));
    for f in &saved.found {
        let _ = writeln!(text, "found {} {} {}", f.job.kind(), f.job.number(), f.log_likelihood);
        f.models.iter().for_each(|m| text += &format!("model {m}\n"));
        f.trees.iter().for_each(|t| text += &format!("tree {t}\n"));
    }
    for (job, state) in &saved.begun {
        let _ = writeln!(text, "begun {} {}", job.kind(), job.number());
        state.lines().for_each(|line| text += &format!("state {line}\n"));
    }
    let _ = writeln!(text, "end {}", saved.found.len() + saved.begun.len());
    text
}

/// What a checkpoint of this request holds, and the files that its run may write. `file` is only named in
/// messages.
///
/// # Errors
/// A checkpoint of another alignment or of other settings, saying which; a damaged one, with its line.
pub fn read(file: &Path, text: &str, request: &Request) -> Result<(Saved, Vec<String>), Error> {
    let shown = file.display();
    let damaged = |line: usize, what: &str| {
        Error::request(format!("{shown}:{line}: the checkpoint is damaged ({what}); start anew with --force"))
    };
    let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line)).peekable();
    match lines.next() {
        Some((_, FIRST_LINE)) => {}
        Some((_, line)) if line.starts_with("multigrain phylo checkpoint") => {
            return Err(Error::request(format!(
                "{shown} was written by another version; start anew with --force, or go on with that version"
            )));
        }
        _ => return Err(damaged(1, "this is no checkpoint")),
    }
    let alignment = lines.next().and_then(|(_, line)| line.strip_prefix("alignment "));
    let alignment = alignment.and_then(|hex| u64::from_str_radix(hex, 16).ok());
    if alignment.ok_or_else(|| damaged(2, "the alignment's hash is missing"))? != request.alignment {
        return Err(Error::request(format!(
            "{shown} is the checkpoint of another alignment (or other partitions); give the one it was made from, choose \
             another --prefix, or start anew with --force"
        )));
    }
    let mut settings = Vec::new();
    while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("setting ")) {
        let (name, value) = line["setting ".len()..].split_once(' ').unwrap_or((&line["setting ".len()..], ""));
        settings.push((name.to_owned(), value.to_owned()));
    }
    for (name, value) in &request.settings {
        let then = settings.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        if then != Some(value) {
            let then = then.unwrap_or("nothing");
            return Err(Error::request(format!(
                "{shown} was made with {name} = {then}, but now {name} = {value} is asked for; give the same, choose another \
                 --prefix, or start anew with --force"
            )));
        }
    }
    let mut writes = Vec::new();
    while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("writes ")) {
        writes.push(line["writes ".len()..].to_owned());
    }
    let mut saved = Saved::default();
    let mut state = None;
    while let Some((number, line)) = lines.next() {
        let (word, rest) = line.split_once(' ').ok_or_else(|| damaged(number, "a word stands alone"))?;
        let jobs = saved.found.len() + saved.begun.len();
        match (word, saved.found.last_mut(), &mut state) {
            ("chosen", None, None) => saved.chosen.push(rest.to_owned()),
            ("found", ..) => saved.found.push(parse_found(rest).ok_or_else(|| damaged(number, "no result"))?),
            ("model", Some(last), None) => last.models.push(rest.to_owned()),
            ("tree", Some(last), None) => last.trees.push(rest.to_owned()),
            ("begun", ..) => {
                let job = parse_job(&mut rest.split(' ')).ok_or_else(|| damaged(number, "no job"))?;
                saved.begun.insert(job, String::new());
                state = Some(job);
            }
            ("state", _, Some(job)) => {
                let text = saved.begun.entry(*job).or_default();
                text.push_str(rest);
                text.push('\n');
            }
            ("end", ..) if rest.parse() == Ok(jobs) => {
                if let Some((number, _)) = lines.next() {
                    return Err(damaged(number, "a line after its end"));
                }
                let complete = saved.found.iter().all(|f| !f.trees.is_empty() && !f.models.is_empty());
                return if complete {
                    Ok((saved, writes))
                } else {
                    Err(damaged(number, "a result lacks its model or tree"))
                };
            }
            _ => return Err(damaged(number, "an unknown line")),
        }
    }
    Err(damaged(text.lines().count(), "it does not end"))
}

fn parse_job<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Job> {
    let (kind, number) = (words.next()?, words.next()?.parse().ok()?);
    Job::named(kind, number)
}

fn parse_found(text: &str) -> Option<Found> {
    let mut words = text.split(' ');
    let job = parse_job(&mut words)?;
    let log_likelihood = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Found { job, log_likelihood, models: vec![], trees: vec![] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request() -> Request {
        let settings = [("seed", "1"), ("model", "GTR+F G4")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let writes = vec!["bestTree".to_owned(), "trace \"a b/x\"".to_owned()];
        Request { alignment: 0x5d1f, settings: settings.to_vec(), writes }
    }

    fn found(job: Job, log_likelihood: f64) -> Found {
        Found { job, log_likelihood, models: vec!["JC".into(), "LG".into()], trees: vec!["(a,'b c',d);".into()] }
    }

    fn two() -> Saved {
        let begun = [(Job::Search(3), "search fast 5\nbranch 0 4\n".to_owned()), (Job::Replicate(1), "x\n".to_owned())];
        Saved {
            chosen: vec!["HKY+F+R3".into(), "LG+G4m".into()],
            found: vec![found(Job::Search(0), -1.5), found(Job::Replicate(7), -2.0)],
            begun: begun.into_iter().collect(),
        }
    }

    fn refused(text: &str, request: &Request) -> String {
        read(Path::new("x.checkpoint"), text, request).unwrap_err().to_string()
    }

    #[test]
    fn others_checkpoints_are_refused() {
        let text = write(&request(), &Saved { found: vec![found(Job::Search(0), -1.5)], ..Saved::default() });
        let other = Request { alignment: 1, ..request() };
        assert!(refused(&text, &other).contains("another alignment"));
        let mut other = request();
        other.settings[0].1 = "2".to_owned();
        let message = refused(&text, &other);
        assert!(message.contains("seed = 1") && message.contains("seed = 2"), "{message}");
        assert!(refused("multigrain phylo checkpoint 9\n", &request()).contains("another version"));
        assert!(refused("hello", &request()).contains(":1:"));
    }

    #[test]
    fn a_cut_checkpoint_is_refused_wherever_it_is_cut() {
        let text = write(&request(), &two());
        for end in 0..text.len() - 1 {
            refused(&text[..end], &request());
        }
    }

    #[test]
    fn what_follows_its_end_is_refused() {
        let text = write(&request(), &two());
        for more in ["junk\n", "\n", &text] {
            let message = refused(&format!("{text}{more}"), &request());
            assert!(message.contains(&format!(":{}: ", text.lines().count() + 1)), "{message}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_to_the_last_bit(values in prop::collection::vec(any::<i64>(), 0..8)) {
            let found = values
                .iter()
                .enumerate()
                .map(|(i, &v)| found(if v % 2 == 0 { Job::Search(i) } else { Job::Replicate(i) }, v as f64 / 7e9))
                .collect();
            let all = Saved { found, ..two() };
            let text = write(&request(), &all);
            prop_assert_eq!(read(Path::new("x"), &text, &request()).unwrap(), (all, request().writes));
        }

        #[test]
        fn damage_never_panics(at in any::<prop::sample::Index>(), byte in 32u8..127) {
            let text = write(&request(), &two());
            let mut bytes = text.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = read(Path::new("x"), std::str::from_utf8(&bytes).unwrap(), &request());
        }
    }
}
