use super::alphabet::{BACKGROUND, CODES, RESIDUES, code};
use super::*;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::PathBuf;

/// A profile of this many nodes, at each of which few residues are probable.
pub(crate) fn made(seed: u32, nodes: usize) -> Profile {
    parse(&text(nodes, 'f', generator(seed))).unwrap().remove(0)
}

/// A profile's text with probabilities from a generator of whole numbers.
fn text(nodes: usize, version: char, mut next: impl FnMut() -> u32) -> String {
    let mut text = format!("HMMER3/{version} [made for a test]\nNAME  made\nACC   MA00001.1\nDESC  made for a test\n");
    writeln!(text, "LENG  {nodes}\nALPH  amino\nRF    no\nCONS  yes\nMAP   yes\nGA    25.00 20.00;").unwrap();
    if version == 'a' {
        text += "STATS LOCAL VLAMBDA 0.7\nSTATS LOCAL VMU -8.5\nSTATS LOCAL FTAU -3.5\n";
    } else {
        text += "STATS LOCAL MSV -8.0 0.7\nSTATS LOCAL VITERBI -8.5 0.71\nSTATS LOCAL FORWARD -3.5 0.72\n";
    }
    text += "HMM  A C D E F G H I K L M N P Q R S T V W Y\n     m->m m->i m->d i->m i->i d->m d->d\n";
    let mut group = |count: usize| {
        // Residues differ much; of transitions the first, to the next match state, is the most probable.
        let part =
            |i: usize, x: f64| if count == RESIDUES { x.powi(6) } else { x / (1.0 + 30.0 * (i > 0) as u8 as f64) };
        let parts: Vec<f64> = (0..count).map(|i| part(i, f64::from(next() % 1000 + 1) / 1000.0)).collect();
        let total: f64 = parts.iter().sum();
        parts.iter().map(|part| format!(" {:.5}", -(part / total).ln())).collect::<String>()
    };
    let columns = 3 + usize::from(version >= 'e') + usize::from(version >= 'f');
    writeln!(text, "  COMPO {}\n{}\n{} {} 0.00000 *", group(20), group(20), group(3), group(2)).unwrap();
    for k in 1..=nodes {
        writeln!(text, "{k} {}{}\n{}", group(20), " -".repeat(columns), group(20)).unwrap();
        let last = k == nodes;
        let matches = if last { format!("{} *", group(2)) } else { group(3) };
        let deletes = if last { " 0.00000 *".to_owned() } else { group(2) };
        writeln!(text, "{matches} {} {deletes}", group(2)).unwrap();
    }
    text + "//\n"
}

/// What happens to a file: where, with which byte, and what.
type Edit = (u32, u8, u8);

fn any_edit() -> impl Strategy<Value = Edit> {
    (any::<u32>(), any::<u8>(), 0u8..5)
}

/// The bytes after these edits: cut off, a byte more, another, one less, a piece of it elsewhere once more.
fn edited(mut bytes: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for &(at, value, kind) in edits {
        let at = at as usize % bytes.len().max(1);
        match kind {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, value),
            2 if at < bytes.len() => bytes[at] = value,
            3 if at < bytes.len() => drop(bytes.remove(at)),
            _ => {
                let part = bytes[at..(at + 200).min(bytes.len())].to_vec();
                let to = usize::from(value) * bytes.len() / 256;
                bytes.splice(to..to, part);
            }
        }
    }
    bytes
}

/// A linear congruential generator (Knuth's constants), enough for texts.
pub(crate) fn generator(mut state: u32) -> impl FnMut() -> u32 {
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    }
}

fn parse(text: &str) -> Result<Vec<Profile>, ProfileError> {
    Profile::parse(text.as_bytes(), Path::new("made.hmm"))
}

#[test]
fn all_versions_and_several_profiles() {
    for version in 'a'..='f' {
        let two = text(3, version, generator(1)) + "\n# a comment\n" + &text(5, version, generator(2));
        let profiles = parse(&two).unwrap();
        assert_eq!(profiles.iter().map(Profile::nodes).collect::<Vec<_>>(), [3, 5]);
        let first = &profiles[0];
        assert_eq!((first.name.as_str(), first.accession.as_deref()), ("made", Some("MA00001.1")));
        assert_eq!(first.description.as_deref(), Some("made for a test"));
        assert_eq!(first.gathering, Some(Cutoff { sequence: 25.0, domain: 20.0 }));
        assert_eq!((first.trusted, first.noise), (None, None));
        assert_eq!(first.forward, Exponential { tau: -3.5, lambda: if version == 'a' { 0.7 } else { 0.72 } });
        assert_eq!(first.transitions.len(), 4);
    }
}

#[test]
fn errors_name_the_line_and_what_is_wrong() {
    let good = text(2, 'f', generator(7));
    let line_of = |needle: &str| good.lines().position(|line| line.starts_with(needle)).unwrap() + 1;
    let node = line_of("1 ");
    let cases: Vec<(String, usize, &str)> = vec![
        (String::new(), 1, "no profile in this file"),
        (good.replace("HMMER3/f", "HMMER1.8"), 1, "convert the profile with hmmconvert"),
        (good.replace("HMMER3/f", ">sequence"), 1, "begins with HMMER3/, found '>sequence'"),
        (good.replace("amino", "DNA"), line_of("ALPH"), "of the alphabet amino are searched with, found DNA"),
        (good.replace("NAME  made", "NAME"), line_of("NAME"), "NAME says nothing"),
        (good.replace("NAME  made\n", ""), line_of("HMM "), "no NAME line"),
        (good.replace("LENG  2\n", ""), line_of("HMM "), "no LENG line"),
        (good.replace("ALPH  amino\n", ""), line_of("HMM "), "no ALPH line"),
        (good.replace("LENG  2", "LENG  two"), line_of("LENG"), "a whole number from 1, found 'two'"),
        (good.replace("LENG  2", "LENG  0"), line_of("LENG"), "found '0'"),
        (good.replace("LENG  2", "LENG  1"), node + 3, "after the 1 nodes that LENG says comes //, found '2'"),
        (
            good.replace("LENG  2", "LENG  3"),
            good.lines().count(),
            "node 3 of 3 of profile made has 26 fields, found 1",
        ),
        (good.replace("STATS LOCAL FORWARD -3.5 0.72\n", ""), line_of("HMM "), "no STATS LOCAL line"),
        (good.replace("-3.5 0.72", "-3.5"), line_of("STATS LOCAL FORWARD"), "STATS has four fields"),
        (good.replace("-3.5 0.72", "-3.5 0"), line_of("STATS LOCAL FORWARD"), "lambda must be positive"),
        (good.replace("-3.5 0.72", "nan 0.72"), line_of("STATS LOCAL FORWARD"), "must be a number, found 'nan'"),
        (good.replace("25.00 20.00;", "25.00"), line_of("GA"), "GA has two scores"),
        (good.replace("\n1 ", "\n7 "), node, "begins with 1, found '7'"),
        (good.replace("\n1 ", "\n1 0.5"), node, "node 1 of 2 of profile made has 26 fields, found 27"),
        (good.replace("     m->m", "     m->i"), line_of("HMM ") + 1, "names the transitions"),
        (good.trim_end_matches("//\n").to_owned(), good.lines().count() - 1, "before the closing // of profile made"),
    ];
    for (text, line, reason) in cases {
        let message = parse(&text).unwrap_err().to_string();
        let at = message.starts_with(&format!("made.hmm:{line}: "));
        assert!(at && message.contains(reason), "line {line}, {reason}: {message}");
    }
}

#[test]
fn values_of_a_node_are_checked() {
    let good = text(1, 'f', generator(3));
    let at = good.find("\n1 ").unwrap() + 3;
    let end = at + good[at..].find(" -").unwrap();
    let with = |emissions: &str| parse(&(good[..at].to_owned() + emissions + &good[end..]));
    assert!(with(&" 2.99573".repeat(20)).is_ok());
    assert!(with(&(" *".repeat(19) + " 0.0")).is_ok());
    for (emissions, reason) in [
        (" 2.9".repeat(19) + " x", "found 'x'"),
        (" 2.9".repeat(19) + " -1", "not negative, found '-1'"),
        (" 2.9".repeat(19) + " inf", "found 'inf'"),
        (" *".repeat(20), "must sum to 1, they sum to 0.0000"),
        (" 0.1".repeat(20), "must sum to 1"),
    ] {
        let message = with(&emissions).unwrap_err().to_string();
        assert!(message.contains(reason), "{reason}: {message}");
    }
}

#[test]
fn gzipped_files_are_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = text(7, 'f', generator(4));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    std::fs::write(file.path(), gzip.finish().unwrap()).unwrap();
    assert_eq!(read_profiles(file.path()).unwrap(), parse(&text).unwrap());
}

#[test]
fn a_missing_file_is_named() {
    let message = read_profiles(Path::new("no/such.hmm")).unwrap_err().to_string();
    assert!(message.starts_with("cannot read the profiles in no/such.hmm: "), "{message}");
}

#[test]
fn null1_is_a_geometric_distribution() {
    let l = 153.0f64;
    assert!((null1(153) - (l * (l / (l + 1.0)).ln() + (1.0 / (l + 1.0)).ln())).abs() < 1e-12);
    assert_eq!(null1(0), 0.0);
}

#[test]
fn statistics_agree_with_their_definitions() {
    let gumbel = Gumbel { mu: -8.0, lambda: 0.7 };
    assert!((gumbel.survival(-8.0) - (1.0 - (-1.0f64).exp())).abs() < 1e-15);
    assert!((gumbel.survival(60.0) / (-0.7f64 * 68.0).exp() - 1.0).abs() < 1e-12);
    let tail = Exponential { tau: -3.5, lambda: 0.72 };
    assert_eq!(tail.survival(-4.0), 1.0);
    assert!((tail.score(tail.survival(20.0)) - 20.0).abs() < 1e-12);
    assert_eq!(tail.score(1.0), f64::NEG_INFINITY);
}

/// The folder of real profiles and sequences, where it lies beside the repository.
fn shared() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/hmm");
    if !folder.is_dir() {
        println!("skipped: no {}", folder.display());
    }
    folder.is_dir().then_some(folder)
}

#[test]
fn real_profiles() {
    let Some(folder) = shared() else { return };
    for (file, nodes) in [("fn3.hmm", 86), ("globins4.hmm", 149), ("M1.hmm", 1), ("20aa.hmm", 20)] {
        let profiles = read_profiles(&folder.join(file)).unwrap();
        assert_eq!(profiles.iter().map(Profile::nodes).collect::<Vec<_>>(), [nodes], "{file}");
    }
    let message = read_profiles(&folder.join("3box.hmm")).unwrap_err().to_string();
    assert!(message.ends_with("3box.hmm:5: profiles of the alphabet amino are searched with, found DNA"), "{message}");
}

proptest! {
    #[test]
    fn local_model_is_a_distribution(seed: u32, nodes in 1usize..40) {
        let profile = parse(&text(nodes, 'f', generator(seed))).unwrap().remove(0);
        let local = profile.local();
        let entries: f64 = local.iter().enumerate().map(|(k, node)| node.entry * (nodes - k) as f64).sum();
        prop_assert!((entries - 1.0).abs() < 1e-12);
        for (node, p) in local.iter().zip(&profile.matches) {
            for x in 0..RESIDUES {
                prop_assert!((node.odds[x] * f64::from(BACKGROUND[x]) - p[x]).abs() < 1e-12);
            }
            let any = node.odds[usize::from(alphabet::ANY)];
            let low = node.odds[..RESIDUES].iter().copied().fold(f64::INFINITY, f64::min);
            let high = node.odds[..RESIDUES].iter().copied().fold(0.0, f64::max);
            prop_assert!(low <= any && any <= high);
            prop_assert!((node.odds[usize::from(code(b'U').unwrap())] - node.odds[1]).abs() < 1e-12 * node.odds[1]);
            prop_assert_eq!(node.odds[usize::from(alphabet::STAR)], 0.0);
            prop_assert_eq!(node.odds.len(), CODES);
        }
        prop_assert_eq!(local[nodes - 1].leave, Transitions::default());
    }

    /// Whatever happens to a file, the parser returns: a profile, or an error that names a line of the file.
    #[test]
    fn mutated_files_never_panic(seed: u32, edits in prop::collection::vec(any_edit(), 1..8)) {
        let whole = text(3, ['a', 'c', 'e', 'f'][seed as usize % 4], generator(seed)).into_bytes();
        let bytes = edited(whole, &edits);
        match Profile::parse(&bytes, Path::new("made.hmm")) {
            Ok(profiles) => prop_assert!(profiles.iter().all(|p| p.nodes() > 0 && p.transitions.len() == p.nodes() + 1)),
            Err(ProfileError::Format { line, reason, .. }) => {
                prop_assert!(line >= 1 && line <= bytes.split(|&b| b == b'\n').count());
                prop_assert!(!reason.is_empty());
            }
            // Its first bytes are those of no text.
            Err(ProfileError::Binary { .. }) => prop_assert!(bytes[..bytes.len().min(4)] != *b"HMME"),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}

/// A file of this room's test data.
fn stored(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hmm").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn stored_profile(name: &str) -> Profile {
    Profile::parse(&stored(name), Path::new(name)).unwrap_or_else(|e| panic!("{e}")).remove(0)
}

/// How far -ln p of any probability is from the other profile's.
fn distance(a: &Profile, b: &Profile) -> f64 {
    let of = |t: &Transitions| [t.mm, t.mi, t.md, t.im, t.ii, t.dm, t.dd];
    let all = |profile: &Profile| -> Vec<f64> {
        let composition = profile.composition.iter().flatten();
        let matches = profile.matches.iter().flatten();
        matches.chain(composition).copied().chain(profile.transitions.iter().flat_map(of)).collect()
    };
    let (a, b) = (all(a), all(b));
    assert_eq!(a.len(), b.len());
    largest(a.iter().zip(&b).map(|(a, b)| if a == b { 0.0 } else { (a.ln() - b.ln()).abs() }))
}

/// How far any number of the statistics is from the other profile's.
fn statistics_distance(a: &Profile, b: &Profile) -> f64 {
    let of = |p: &Profile| [p.msv.mu, p.msv.lambda, p.viterbi.mu, p.viterbi.lambda, p.forward.tau, p.forward.lambda];
    largest(of(a).into_iter().zip(of(b)).map(|(a, b)| (a - b).abs()))
}

/// NaN if one is NaN.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most, x| if x.is_nan() || x > most { x } else { most })
}

/// The rest of them.
fn described(p: &Profile) -> impl PartialEq + std::fmt::Debug + '_ {
    ((&p.name, &p.accession, &p.description), &p.annotation, (p.gathering, p.trusted, p.noise))
}

#[test]
fn binary_profiles_are_those_of_the_text() {
    let text = stored_profile("toy.hmm");
    assert!(
        text.annotation.reference.is_some() && text.annotation.mask.is_some() && text.annotation.structure.is_some()
    );
    let both = Profile::parse(&[stored("toy.h3m"), stored("toy.a.h3m")].concat(), Path::new("two.h3m")).unwrap();
    assert_eq!(both.len(), 2);
    for binary in &both {
        assert_eq!(described(binary), described(&text));
        // Files round -ln p to five decimals, statistics to four and five.
        assert!(distance(binary, &text) < 6e-6, "{}", distance(binary, &text));
    }
    assert!(statistics_distance(&both[0], &text) < 6e-5);
    // Version 3/a has one location for MSV and Viterbi.
    assert_eq!(both[1].viterbi, both[1].msv);
    assert_eq!((both[1].msv, both[1].forward), (both[0].msv, both[0].forward));
}

#[test]
fn profiles_of_hmmer2_are_what_hmmer3_makes_of_them() {
    let (ours, theirs) = (stored_profile("toy.h2"), stored_profile("toy.from2.hmm"));
    assert_eq!(described(&ours), described(&theirs));
    assert!(distance(&ours, &theirs) < 6e-6, "{}", distance(&ours, &theirs));
    assert!(statistics_distance(&ours, &theirs) < 6e-5, "{ours:?} {theirs:?}");
    assert_eq!(ours.composition, None);
}

#[test]
fn what_is_wrong_with_binary_profiles_is_said() {
    let good = stored("toy.h3m");
    let says = |bytes: &[u8], reason: &str| {
        let message = Profile::parse(bytes, Path::new("made.h3m")).unwrap_err().to_string();
        assert!(message.starts_with("made.h3m, profile 1: ") && message.contains(reason), "{reason}: {message}");
    };
    let with = |at: usize, number: u32| {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    for end in [4, 15, 16, 500, good.len() - 1] {
        says(&good[..end], "may have been cut short");
    }
    says(&with(0, 0xb3e6_e6f3), "ends in .h3m");
    says(&with(0, 0xe8ed_edba_u32.swap_bytes()), "other order of bytes");
    says(&with(8, 0), "0 nodes");
    says(&with(8, u32::MAX), "4294967295 nodes");
    says(&with(8, 16), "sum to 1");
    says(&with(12, 2), "alphabet amino");
    says(&with(4, 0x3_d70e), "no statistics");
    says(&with(16, f32::NAN.to_bits()), "no probability");
    says(&with(16, 0.5f32.to_bits()), "emissions of node 1 must sum to 1");
    let name = good.windows(4).position(|bytes| bytes == b"toy\0").unwrap();
    says(&with(name, u32::from_le_bytes(*b"to\ny")), "a line is no text");
    says(&with(name, u32::from_le_bytes(*b"to y")), "one word");
    says(&with(name - 4, 1 << 24), "are no text");
    let second = Profile::parse(&[&good[..], &good[..99]].concat(), Path::new("made.h3m")).unwrap_err();
    assert!(second.to_string().starts_with("made.h3m, profile 2: "), "{second}");
}

#[test]
fn what_is_wrong_with_profiles_of_hmmer2_is_said() {
    let good = String::from_utf8(stored("toy.h2")).unwrap();
    let first = |needle: &str| good.lines().position(|line| line.trim_start().starts_with(needle)).unwrap() + 1;
    let cases = [
        (good.replace("NULE ", "OTHER"), first("HMM ") + 1, "no NULE line"),
        (good.replace("656  -1722", "6569  -1722"), first("HMM ") + 1, "NULE says must sum to 1"),
        (good.replace("656  -1722", "x  -1722"), first("NULE"), "thousandths of bits"),
        (good.replace("656  -1722", "-1722"), first("NULE"), "NULE and a score for each residue has 21 fields"),
        (good.replace("     1   -2956", "     2   -2956"), first("1   -2956"), "begins with 1, found '2'"),
        (good.replace("     1   -2956", "     1   99999"), first("1   -2956"), "emissions must sum to 1"),
        (good.replace("     1   -2956", "     1   999999"), first("1   -2956"), "found '999999'"),
        (good.replace("-12  -7442", "-1200  -7442"), first("1   -2956") + 2, "match state must sum to 1"),
        (good.replace("-894  -1115", "0  -1115"), first("1   -2956") + 2, "insert state must sum to 1"),
        (
            good.replace("           -4      *  -8484", "           -4"),
            first("1   -2956") - 1,
            "B's transitions has 3 fields",
        ),
        (good.replace("\n//", ""), good.lines().count() - 1, "before the closing //"),
    ];
    for (text, line, reason) in cases {
        let message = parse(&text).unwrap_err().to_string();
        let at = message.starts_with(&format!("made.hmm:{line}: "));
        assert!(at && message.contains(reason), "line {line}, {reason}: {message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn damaged_files_are_read_or_refused(
        name in prop::sample::select(vec!["toy.h3m", "toy.a.h3m", "toy.h2"]),
        edits in prop::collection::vec(any_edit(), 1..4),
    ) {
        let bytes = edited(stored(name), &edits);
        match Profile::parse(&bytes, Path::new("made")) {
            Ok(profiles) => for p in profiles {
                prop_assert!(p.nodes() > 0 && p.transitions.len() == p.nodes() + 1);
                prop_assert!(p.annotation.consensus.len() == p.nodes() && !p.name.contains(char::is_control));
                prop_assert!(statistics_distance(&p, &p) == 0.0, "{:?}", p.msv);
            },
            Err(error) => prop_assert!(error.to_string().chars().all(|c| !c.is_control()), "{}", error),
        }
    }
}
