//! What ranks that execute a run together tell each other: how far it is, what has to be the same on all, and its end.

use crate::error::Error;
use multigrain_driver::ranks::{Ended, Ranks};
use multigrain_engine::Progress;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3Default;

/// An end that another rank told of, or this one.
pub(crate) fn on_rank(ranks: &Ranks, ended: Ended) -> Error {
    Error::OnRank { name: ranks.name(ended.rank), ended }
}

/// Tells all ranks of an error of this one; gives the error that all end with.
pub(crate) fn failed(ranks: &Ranks, error: Error) -> Error {
    match (ranks.ended(), error) {
        (_, error @ Error::OnRank { .. }) => error,
        (Some(ended), Error::Kept { result, .. }) if ended.rank != ranks.rank() => {
            Error::Kept { source: Box::new(on_rank(ranks, ended)), result }
        }
        (Some(ended), _) if ended.rank != ranks.rank() => on_rank(ranks, ended),
        (_, error) => {
            ranks.end(error.exit_status() as u8, &error.to_string());
            error
        }
    }
}

/// Runs a plan whose ranks tell the first how far they are, which shows how far all are together.
pub(crate) fn shown<T>(
    ranks: &Arc<Ranks>,
    show: Option<&(dyn Fn(Progress) + Sync)>,
    run: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> T,
) -> T {
    std::thread::scope(|scope| {
        let _shown = ranks.show(show.filter(|_| ranks.rank() == 0), scope);
        run(&|progress| ranks.did(progress))
    })
}

/// All meet here.
pub(crate) fn meet(ranks: &Ranks) -> Result<(), Error> {
    heard(ranks, ranks.gather(&[])).map(drop)
}

/// What ranks were told, unless the run has ended on one.
pub(crate) fn heard<T>(ranks: &Ranks, told: Result<T, Ended>) -> Result<T, Error> {
    told.map_err(|ended| on_rank(ranks, ended))
}

/// Refuses what ranks that execute a run together do not have in common. Each thing has a name for people. All ranks call this in
/// the same order, and all have the same answer.
///
/// # Errors
/// [`Error::Request`] names the first thing that differs, and where; [`Error::OnRank`] where the run has ended.
pub fn same(ranks: &Ranks, things: &[(&str, String)]) -> Result<(), Error> {
    let hash = |text: &String| {
        let mut hasher = Xxh3Default::new();
        text.hash(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    let own: Vec<u8> = things.iter().flat_map(|(_, text)| hash(text)).collect();
    let all = ranks.gather(&own).map_err(|ended| on_rank(ranks, ended))?;
    for (number, (what, _)) in things.iter().enumerate() {
        let of = |rank: usize| all[rank].get(8 * number..8 * number + 8);
        let others: Vec<usize> = (1..all.len()).filter(|&rank| of(rank) != of(0)).collect();
        if let Some(&other) = others.first() {
            let more = match others.len() {
                1 => String::new(),
                2 => ", nor has another".to_owned(),
                count => format!(", nor have {} others", count - 1),
            };
            return Err(Error::Request(format!(
                "{} has not the same {what} as {}{more}: all ranks have to be started in the same way, and to see the same files",
                ranks.name(other),
                ranks.name(0)
            )));
        }
    }
    Ok(())
}

/// What a run was on one of its ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct OfRank {
    /// Its node.
    pub node: String,
    /// Seconds from the first step to the last.
    pub seconds: f64,
    /// Seconds of all its workers in leaves.
    pub leaf_seconds: f64,
    /// Peak resident size of its process, in bytes, without what it has touched of memory that other ranks own.
    pub peak_bytes: u64,
    /// Bytes of arrays that it got from other ranks' memories, or put there.
    pub moved_bytes: u64,
}

/// One of the numbers that a rank has told.
pub(crate) fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
