//! The recurrences in double precision and log space, as they stand in a textbook: what the kernels are held against.
//!
//! Durbin, Eddy, Krogh, Mitchison, "Biological sequence analysis" (1998), sections 3.2, 3.6 and 5.4, for the model of
//! HMMER3 in local multihit mode (Eddy, "A probabilistic model of local sequence alignment that simplifies statistical
//! significance estimation", 2008): a match or delete state may end an alignment at no cost, and the end leads to
//! another alignment or to the tail of the sequence with probability one half each.

use super::Scores;
use crate::profile::LocalNode;

fn larger(a: f64, b: f64) -> f64 {
    a.max(b)
}

fn log_sum(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// Viterbi and Forward scores of one sequence of residue codes, in nats.
///
/// # Panics
/// When a code has no entry in the tables.
pub fn reference(nodes: &[LocalNode], residues: &[u8]) -> Scores {
    let many = Ends { length: residues.len(), count: 3.0, again: 0.5 };
    Scores { viterbi: score(nodes, residues, many, larger), forward: score(nodes, residues, many, log_sum) }
}

/// Forward score of some residues of a sequence of `length` as exactly one domain, in nats.
///
/// # Panics
/// When a code has no entry in the tables.
pub fn reference_domain(nodes: &[LocalNode], residues: &[u8], length: usize) -> f64 {
    score(nodes, residues, Ends { length, count: 2.0, again: 0.0 }, log_sum)
}

/// How long a sequence is expected to be, by how many states outside of alignments, and how probably an alignment follows
/// another.
#[derive(Clone, Copy)]
struct Ends {
    length: usize,
    count: f64,
    again: f64,
}

fn score(nodes: &[LocalNode], residues: &[u8], ends: Ends, join: fn(f64, f64) -> f64) -> f64 {
    const NEVER: f64 = f64::NEG_INFINITY;
    let m = nodes.len();
    let ln = |p: f64| p.ln();
    let length = ends.length as f64;
    let (stay, leave) = ((length / (length + ends.count)).ln(), (ends.count / (length + ends.count)).ln());
    let (again, last) = (ends.again.ln(), (1.0 - ends.again).ln());
    let (mut match_, mut insert, mut delete) = (vec![NEVER; m], vec![NEVER; m], vec![NEVER; m]);
    let (mut n, mut j, mut c) = (0.0, NEVER, NEVER);
    let mut begin = leave;
    for &x in residues {
        let (old_match, old_insert, old_delete) = (match_.clone(), insert.clone(), delete.clone());
        let mut end = NEVER;
        for (k, node) in nodes.iter().enumerate() {
            let mut into_match = begin + ln(node.entry);
            delete[k] = NEVER;
            if k > 0 {
                let before = &nodes[k - 1].leave;
                into_match = join(into_match, old_match[k - 1] + ln(before.mm));
                into_match = join(into_match, old_insert[k - 1] + ln(before.im));
                into_match = join(into_match, old_delete[k - 1] + ln(before.dm));
                delete[k] = join(match_[k - 1] + ln(before.md), delete[k - 1] + ln(before.dd));
            }
            match_[k] = into_match + ln(node.odds[usize::from(x)]);
            insert[k] = join(old_match[k] + ln(node.leave.mi), old_insert[k] + ln(node.leave.ii));
            end = join(end, join(match_[k], delete[k]));
        }
        n += stay;
        j = join(j + stay, end + again);
        c = join(c + stay, end + last);
        begin = join(n, j) + leave;
    }
    c + leave
}
