//! Profiles of HMMER2 (the text format of its 2.x versions, "HMMER User's Guide", 2.3.2).
//!
//! Probabilities are scores there, in thousandths of bits: of residues relative to the background that NULE gives, of
//! transitions by themselves; `*` is 0. What HMMER3's model does not have is left out: entries and exits of single nodes,
//! emissions of insert states. What it needs and the file does not have, the statistics of scores, is measured on random
//! sequences ([`calibrate`]), as HMMER 3 does when it reads such a profile.

use super::alphabet::RESIDUES;
use super::fields::{At, Line, Lines, close, likeliest, near_one, shown, sum_to_one};
use super::header::Header;
use super::{Annotation, Exponential, Gumbel, Profile, ProfileError, Transitions};
use crate::calibrate::calibrate;
use std::f64::consts::LN_2;
use std::io::BufRead;

/// What stands for this format among the letters of HMMER3's versions.
pub(super) const VERSION: u8 = b'2';

/// Transitions of a node: HMMER3's, B to M, M to E.
const TRANSITIONS: usize = 9;

/// Reads the background's scores on a line NULE.
pub(super) fn scores(line: &Line<'_>) -> Result<[i32; RESIDUES], ProfileError> {
    let fields = line.fields(1 + RESIDUES, || "NULE and a score for each residue".to_owned())?;
    let mut scores = [0; RESIDUES];
    for (score, field) in scores.iter_mut().zip(&fields[1..]) {
        *score = number(line.at, field)?;
    }
    Ok(scores)
}

fn number(at: At<'_>, field: &str) -> Result<i32, ProfileError> {
    /// No probability of single precision is so far from any other.
    const MOST: u32 = 200_000;
    field.parse::<i32>().ok().filter(|score| score.unsigned_abs() < MOST).ok_or_else(|| {
        at.error(format!("a score is a whole number of thousandths of bits, or * for never, found '{}'", shown(field)))
    })
}

/// The probability of a score relative to another one, in single precision.
fn odds(score: i32, relative_to: f32) -> f32 {
    (f64::from(relative_to) * (f64::from(score) * (LN_2 / 1000.0)).exp()) as f32
}

fn probability(at: At<'_>, field: &str, relative_to: f32) -> Result<f32, ProfileError> {
    if field == "*" { Ok(0.0) } else { Ok(odds(number(at, field)?, relative_to)) }
}

/// Probabilities that sum to one; `or` where none is above 0.
fn normal<const N: usize>(probabilities: [f32; N], or: [f64; N]) -> [f64; N] {
    let sum = probabilities.iter().map(|&p| f64::from(p)).sum::<f64>() as f32;
    if sum > 0.0 { probabilities.map(|p| f64::from(p / sum)) } else { or }
}

/// Transitions of a node from their scores; what leaves to E counts in the sum only.
fn leave(at: At<'_>, fields: &[&str]) -> Result<Transitions, ProfileError> {
    let mut p = [0.0; TRANSITIONS];
    for (p, field) in p.iter_mut().zip(fields) {
        *p = probability(at, field, 1.0)?;
    }
    let [mm, mi, md, im, ii, dm, dd, _, me] = p;
    sum_to_one(at, "transitions of the match state", [mm, mi, md, me].into_iter().map(f64::from).sum())?;
    for (what, of) in [("insert", [im, ii]), ("delete", [dm, dd])] {
        if of != [0.0; 2] {
            sum_to_one(at, &format!("transitions of the {what} state"), of.into_iter().map(f64::from).sum())?;
        }
    }
    let [mm, mi, md] = normal([mm, mi, md], [1.0, 0.0, 0.0]);
    let [[im, ii], [dm, dd]] = [normal([im, ii], [0.5; 2]), normal([dm, dd], [0.5; 2])];
    Ok(Transitions { mm, mi, md, im, ii, dm, dd })
}

/// Reads the nodes and the closing `//`, and measures the statistics.
pub(super) fn body<R: BufRead>(lines: &mut Lines<'_, R>, header: Header) -> Result<Profile, ProfileError> {
    let (name, nodes) = header.name_and_nodes(lines.at())?;
    let scores =
        header.background.ok_or_else(|| lines.at().error("the header above has no NULE line, the background"))?;
    let background = scores.map(|score| odds(score, 1.0 / RESIDUES as f32));
    near_one(background.iter().map(|&p| f64::from(p)).sum())
        .map_err(|wrong| lines.at().error(format!("the frequencies that NULE says {wrong}")))?;

    let of = |k: usize| format!("node {k} of {nodes} of profile {}", shown(&name));
    let line = lines.expect(|| of(0))?;
    let fields = line.fields(3, || "the line of B's transitions".to_owned())?;
    let [to_match, to_delete] = [probability(line.at, fields[0], 1.0)?, probability(line.at, fields[2], 1.0)?];
    sum_to_one(line.at, "transitions of B", f64::from(to_match) + f64::from(to_delete))?;
    let [mm, md] = normal([to_match, to_delete], [1.0, 0.0]);
    let begin = Transitions { mm, md, im: 1.0, dm: 1.0, ..Transitions::default() };
    let (mut matches, mut transitions) = (Vec::new(), vec![begin]);
    let (mut consensus, mut reference, mut structure) = (Vec::new(), Vec::new(), Vec::new());
    let symbol = |fields: &[&str]| fields[0].as_bytes()[0];
    for k in 1..=nodes {
        let line = lines.expect(|| of(k))?;
        // A column of an alignment may follow.
        let columns = line.text.split_ascii_whitespace().count().clamp(1 + RESIDUES, 2 + RESIDUES);
        let fields = line.fields(columns, || format!("the match line of {}", of(k)))?;
        if fields[0].parse() != Ok(k) {
            let found = shown(fields[0]);
            return Err(line.at.error(format!("the match line of {} begins with {k}, found '{found}'", of(k))));
        }
        let mut emissions = [0.0; RESIDUES];
        for (x, p) in emissions.iter_mut().enumerate() {
            *p = probability(line.at, fields[1 + x], background[x])?;
        }
        sum_to_one(line.at, "emissions", emissions.iter().map(|&p| f64::from(p)).sum())?;
        matches.push(normal(emissions, [0.0; RESIDUES]));
        consensus.push(likeliest(&matches[k - 1]));
        let line = lines.expect(|| of(k))?;
        reference.push(symbol(&line.fields(1 + RESIDUES, || format!("the insert emissions of {}", of(k)))?));
        let line = lines.expect(|| of(k))?;
        let fields = line.fields(1 + TRANSITIONS, || format!("the transitions of {}", of(k)))?;
        structure.push(symbol(&fields));
        let leave = leave(line.at, &fields[1..])?;
        transitions.push(match k == nodes {
            true => Transitions { mm: 1.0, im: 1.0, dm: 1.0, ..Transitions::default() },
            false => leave,
        });
    }
    close(lines, &name, nodes)?;
    let unknown = Gumbel { mu: 0.0, lambda: 1.0 };
    let mut profile = Profile {
        name,
        accession: header.accession,
        description: header.description,
        matches,
        composition: None,
        transitions,
        annotation: Annotation {
            consensus,
            reference: header.annotated.reference.then_some(reference),
            mask: None,
            structure: header.annotated.structure.then_some(structure),
        },
        msv: unknown,
        viterbi: unknown,
        forward: Exponential { tau: 0.0, lambda: 1.0 },
        gathering: header.gathering,
        trusted: header.trusted,
        noise: header.noise,
    };
    calibrate(&mut profile);
    Ok(profile)
}
