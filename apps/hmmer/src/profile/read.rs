//! Reading profiles, and the parser of HMMER3's ASCII format, versions 3/a to 3/f ("HMMER User's Guide", section on the profile file format).

use super::alphabet::RESIDUES;
use super::fields::{At, Line, Lines, close, likeliest, number, probability, shown, sum_to_one};
use super::header::{Header, OldStatistics, missing};
use super::room::{Room, take};
use super::{Annotation, Cutoff, Exponential, Gumbel, Profile, ProfileError, Transitions, binary, hmmer2};
use crate::sequence::text;
use std::io::{BufRead, Cursor, Read};
use std::path::Path;

/// Bytes that tell a binary file.
const BEGIN_BYTES: u64 = 4;

/// Transitions of a node in a file.
const TRANSITIONS: usize = 7;

/// Reads all profiles of a file in HMMER's formats, text or binary, versions 3/a to 3/f, or the text of HMMER2, gzipped or not;
/// `-` is the standard input.
///
/// # Errors
/// When the file cannot be read, holds no profile, or one that is not whole, is not for amino acids, or has no
/// statistics (`STATS LOCAL`), without which there are no E-values. Format errors name the line.
pub fn read_profiles(path: &Path) -> Result<Vec<Profile>, ProfileError> {
    read_within(path, &mut |_| true)
}

/// The same as long as there is room for each profile, as `has_room` is asked when it is read.
pub(crate) fn read_within(path: &Path, has_room: Room<'_>) -> Result<Vec<Profile>, ProfileError> {
    let (text, _) = text::open(path).map_err(|source| ProfileError::Io { path: path.to_owned(), source })?;
    parse(text, path, has_room)
}

pub(super) fn parse(mut input: impl BufRead, path: &Path, has_room: Room<'_>) -> Result<Vec<Profile>, ProfileError> {
    // A pipe may give less at once.
    let mut begin = Vec::new();
    let read = (&mut input).take(BEGIN_BYTES).read_to_end(&mut begin);
    read.map_err(|source| ProfileError::Io { path: path.to_owned(), source })?;
    let input = Cursor::new(&begin).chain(input);
    if binary::is_binary(&begin) { binary::parse(input, path, has_room) } else { parse_text(input, path, has_room) }
}

fn parse_text(input: impl BufRead, path: &Path, has_room: Room<'_>) -> Result<Vec<Profile>, ProfileError> {
    let mut lines = Lines::new(input, path);
    let mut profiles = Vec::new();
    loop {
        let version = match lines.next()? {
            Some(line) => version(&line)?,
            None if profiles.is_empty() => {
                return Err(lines.at().error("no profile in this file; give a profile that hmmbuild made"));
            }
            None => return Ok(profiles),
        };
        let header = header(&mut lines, version)?;
        let profile = match version {
            hmmer2::VERSION => hmmer2::body(&mut lines, header)?,
            version => body(&mut lines, version, header)?,
        };
        take(profile, &mut profiles, has_room, path)?;
    }
}

/// The letter of `HMMER3/x`.
fn version(line: &Line<'_>) -> Result<u8, ProfileError> {
    let (tag, _) = line.tag();
    match tag.as_bytes() {
        [b'H', b'M', b'M', b'E', b'R', b'3', b'/', version @ b'a'..=b'f'] => Ok(*version),
        b"HMMER2.0" => Ok(hmmer2::VERSION),
        [b'H', b'M', b'M', b'E', b'R', ..] => Err(line.at.error(format!(
            "versions HMMER2.0 and HMMER3/a to HMMER3/f are read, found '{}'; convert the profile with hmmconvert",
            shown(tag)
        ))),
        _ => Err(line.at.error(format!("a profile begins with HMMER3/, found '{}'", shown(tag)))),
    }
}

/// Reads up to the line `HMM` and the line that names the transitions.
fn header<R: BufRead>(lines: &mut Lines<'_, R>, version: u8) -> Result<Header, ProfileError> {
    let mut header = Header::default();
    let end = || "the line HMM that ends a profile's header".to_owned();
    loop {
        let line = lines.expect(end)?;
        let (tag, rest) = line.tag();
        let at = line.at;
        match tag {
            "NAME" => header.name = Some(first(at, "NAME", rest)?.to_owned()),
            "ACC" => header.accession = Some(first(at, "ACC", rest)?.to_owned()),
            "DESC" => header.description = Some(rest.to_owned()).filter(|text| !text.is_empty()),
            "LENG" => header.nodes = Some(nodes(at, first(at, "LENG", rest)?)?),
            "ALPH" => {
                let alphabet = first(at, "ALPH", rest)?;
                if !alphabet.eq_ignore_ascii_case("amino") {
                    let found = shown(alphabet);
                    return Err(at.error(format!("profiles of the alphabet amino are searched with, found {found}")));
                }
                header.alphabet = true;
            }
            "NULE" if version == hmmer2::VERSION => header.background = Some(hmmer2::scores(&line)?),
            "STATS" if version == b'a' => old_statistics(at, rest, &mut header.old)?,
            "STATS" => statistics(at, rest, &mut header)?,
            "GA" => header.gathering = Some(cutoff(at, "GA", rest)?),
            "TC" => header.trusted = Some(cutoff(at, "TC", rest)?),
            "NC" => header.noise = Some(cutoff(at, "NC", rest)?),
            "CONS" => header.annotated.consensus = yes(rest),
            "RF" => header.annotated.reference = yes(rest),
            "MM" => header.annotated.mask = yes(rest),
            "CS" => header.annotated.structure = yes(rest),
            "HMM" => break,
            "//" => return Err(at.error("the profile ends here, before its line HMM and its nodes")),
            // MAXL, MAP, DATE, COM, NSEQ, EFFN, CKSUM and whatever is added: not needed for scores.
            _ => {}
        }
    }
    if let OldStatistics { lambda: Some(lambda), mu: Some(mu), tau: Some(tau) } = header.old {
        header.msv = Some(Gumbel { mu, lambda });
        header.viterbi = Some(Gumbel { mu, lambda });
        header.forward = Some(Exponential { tau, lambda });
    }
    let line = lines.expect(|| "the line that names the transitions".to_owned())?;
    if line.tag().0 != "m->m" {
        let found = shown(line.tag().0);
        return Err(line.at.error(format!("the line after HMM names the transitions, m->m first, found '{found}'")));
    }
    Ok(header)
}

fn yes(rest: &str) -> bool {
    rest.eq_ignore_ascii_case("yes")
}

fn first<'l>(at: At<'_>, tag: &str, rest: &'l str) -> Result<&'l str, ProfileError> {
    rest.split_ascii_whitespace().next().ok_or_else(|| at.error(format!("{tag} says nothing")))
}

fn nodes(at: At<'_>, field: &str) -> Result<usize, ProfileError> {
    let parsed = field.parse::<u32>().ok().filter(|&nodes| nodes > 0);
    let nodes = parsed.ok_or_else(|| {
        at.error(format!("LENG is the number of nodes, a whole number from 1, found '{}'", shown(field)))
    })?;
    Ok(nodes as usize)
}

fn cutoff(at: At<'_>, tag: &str, rest: &str) -> Result<Cutoff, ProfileError> {
    let mut fields = rest.split_ascii_whitespace();
    match (fields.next(), fields.next()) {
        // Pfam ends the second number with a semicolon.
        (Some(sequence), Some(domain)) => Ok(Cutoff {
            sequence: number(at, tag, sequence.trim_end_matches(';'))?,
            domain: number(at, tag, domain.trim_end_matches(';'))?,
        }),
        _ => Err(at.error(format!("{tag} has two scores, for a sequence and for a domain"))),
    }
}

fn statistics(at: At<'_>, rest: &str, header: &mut Header) -> Result<(), ProfileError> {
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let &[mode, kind, location, lambda] = &fields[..] else {
        return Err(at.error(format!(
            "STATS has four fields, LOCAL, MSV or VITERBI or FORWARD, location, lambda; found {}",
            fields.len()
        )));
    };
    local(at, mode)?;
    let location = number(at, "the location on a STATS line", location)?;
    let lambda = positive(at, lambda)?;
    match kind.to_ascii_uppercase().as_str() {
        "MSV" => header.msv = Some(Gumbel { mu: location, lambda }),
        "VITERBI" => header.viterbi = Some(Gumbel { mu: location, lambda }),
        "FORWARD" => header.forward = Some(Exponential { tau: location, lambda }),
        _ => {
            let found = shown(kind);
            return Err(at.error(format!("the third field of STATS is MSV, VITERBI or FORWARD, found '{found}'")));
        }
    }
    Ok(())
}

fn old_statistics(at: At<'_>, rest: &str, old: &mut OldStatistics) -> Result<(), ProfileError> {
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let &[mode, kind, value] = &fields[..] else {
        return Err(at.error(format!(
            "STATS of version 3/a has three fields, LOCAL, VLAMBDA or VMU or FTAU, value; found {}",
            fields.len()
        )));
    };
    local(at, mode)?;
    match kind.to_ascii_uppercase().as_str() {
        "VLAMBDA" => old.lambda = Some(positive(at, value)?),
        "VMU" => old.mu = Some(number(at, "VMU", value)?),
        "FTAU" => old.tau = Some(number(at, "FTAU", value)?),
        _ => {
            let found = shown(kind);
            return Err(at.error(format!("the third field of STATS is VLAMBDA, VMU or FTAU, found '{found}'")));
        }
    }
    Ok(())
}

fn local(at: At<'_>, mode: &str) -> Result<(), ProfileError> {
    if mode.eq_ignore_ascii_case("LOCAL") {
        return Ok(());
    }
    Err(at.error(format!("the second field of STATS is LOCAL, found '{}'", shown(mode))))
}

fn positive(at: At<'_>, field: &str) -> Result<f64, ProfileError> {
    let lambda = number(at, "lambda", field)?;
    if lambda > 0.0 { Ok(lambda) } else { Err(at.error(format!("lambda must be positive, found {lambda}"))) }
}

/// Reads the nodes and the closing `//`.
fn body<R: BufRead>(lines: &mut Lines<'_, R>, version: u8, header: Header) -> Result<Profile, ProfileError> {
    let at = lines.at();
    let (name, nodes) = header.name_and_nodes(at)?;
    let (Some(msv), Some(viterbi), Some(forward)) = (header.msv, header.viterbi, header.forward) else {
        let what = "one each for MSV, VITERBI and FORWARD, from which E-values come; build the profile with hmmbuild";
        return Err(missing(at, "STATS LOCAL", what));
    };

    let of = |k: usize| format!("node {k} of {nodes} of profile {}", shown(&name));
    let mut line = lines.expect(|| of(0))?;
    let mut composition = None;
    if line.tag().0 == "COMPO" {
        let fields = line.fields(RESIDUES + 1, || "COMPO and a frequency for each residue".to_owned())?;
        composition = Some(emissions(line.at, &fields[1..])?);
        line = lines.expect(|| of(0))?;
    }
    let inserts = |line: Line<'_>, k: usize| -> Result<(), ProfileError> {
        let fields = line.fields(RESIDUES, || format!("the insert emissions of {}", of(k)))?;
        emissions(line.at, &fields).map(|_| ())
    };
    inserts(line, 0)?;
    let mut transitions = vec![leave(lines.expect(|| of(0))?, || of(0))?];
    let mut matches = Vec::new();
    let (mut consensus, mut reference, mut mask, mut structure) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // MAP, RF and CS; CONS since 3/e; MM since 3/f.
    let annotations = 3 + usize::from(version >= b'e') + usize::from(version >= b'f');
    for k in 1..=nodes {
        let line = lines.expect(|| of(k))?;
        let fields = line.fields(1 + RESIDUES + annotations, || format!("the match line of {}", of(k)))?;
        if fields[0].parse() != Ok(k) {
            let found = shown(fields[0]);
            return Err(line.at.error(format!("the match line of {} begins with {k}, found '{found}'", of(k))));
        }
        matches.push(emissions(line.at, &fields[1..=RESIDUES])?);
        // MAP is a column of an alignment, of no use here.
        let mut symbols = fields[RESIDUES + 2..].iter().map(|field| field.as_bytes()[0]);
        let mut next = |is_there: bool| if is_there { symbols.next().unwrap_or(b'-') } else { b'-' };
        let named = next(version >= b'e');
        consensus.push(if header.annotated.consensus { named } else { likeliest(&matches[k - 1]) });
        reference.push(next(true));
        mask.push(next(version >= b'f'));
        structure.push(next(true));
        inserts(lines.expect(|| of(k))?, k)?;
        transitions.push(leave(lines.expect(|| of(k))?, || of(k))?);
    }
    close(lines, &name, nodes)?;
    Ok(Profile {
        name,
        accession: header.accession,
        description: header.description,
        matches,
        composition,
        transitions,
        annotation: Annotation {
            consensus,
            reference: header.annotated.reference.then_some(reference),
            mask: (header.annotated.mask && version >= b'f').then_some(mask),
            structure: header.annotated.structure.then_some(structure),
        },
        msv,
        viterbi,
        forward,
        gathering: header.gathering,
        trusted: header.trusted,
        noise: header.noise,
    })
}

/// Reads the emissions of a state. At least one must be possible.
fn emissions(at: At<'_>, fields: &[&str]) -> Result<[f64; RESIDUES], ProfileError> {
    let mut probabilities = [0.0; RESIDUES];
    for (p, field) in probabilities.iter_mut().zip(fields) {
        *p = probability(at, field)?;
    }
    sum_to_one(at, "emissions", probabilities.iter().sum())?;
    Ok(probabilities)
}

/// Reads the transitions of a node.
fn leave(line: Line<'_>, of: impl Fn() -> String) -> Result<Transitions, ProfileError> {
    let fields = line.fields(TRANSITIONS, || format!("the transitions of {}", of()))?;
    let mut p = [0.0; TRANSITIONS];
    for (p, field) in p.iter_mut().zip(fields) {
        *p = probability(line.at, field)?;
    }
    let [mm, mi, md, im, ii, dm, dd] = p;
    sum_to_one(line.at, "transitions of the match state", mm + mi + md)?;
    sum_to_one(line.at, "transitions of the insert state", im + ii)?;
    sum_to_one(line.at, "transitions of the delete state", dm + dd)?;
    Ok(Transitions { mm, mi, md, im, ii, dm, dd })
}
