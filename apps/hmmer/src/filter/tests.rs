//! The kernel against the plain recurrences, score by score and sequence by sequence.

use super::reference::Plain;
use super::*;
use crate::profile::alphabet::{ANY, STAR};
use crate::profile::tests::{generator, made};
use proptest::prelude::*;

fn supported() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_supported())
}

/// Sequences that follow a profile more or less, go back and leave nodes out, and hold odd symbols.
fn sequence(profile: &Profile, seed: u32, length: usize) -> Vec<u8> {
    let mut next = generator(seed);
    let (follow, mut k) = (next() % 100, 0usize);
    let best = |k: usize| {
        let of = |x: &usize| profile.matches[k][*x];
        (0..20).max_by(|a, b| of(a).total_cmp(&of(b))).unwrap_or(0) as u8
    };
    let residues = (0..length).map(|_| {
        k = match next() % 40 {
            0 => next() as usize,
            1 => k + (next() % 6) as usize,
            2 => k,
            _ => k + 1,
        } % profile.nodes();
        match next() % 200 {
            0 => [ANY, STAR, ANY - 2, 28][next() as usize % 4],
            _ if next() % 100 < follow => best(k),
            _ => (next() % 20) as u8,
        }
    });
    residues.collect()
}

/// Calls `each` with the scores that every instruction set finds.
fn with_vectors(profile: &Profile, mut each: impl FnMut(Isa, f32, f32), residues: &[u8]) {
    for isa in supported() {
        let tables = pack(isa, profile, &Filters::default());
        let mut scratch = vec![0xa5; scratch_bytes(isa, profile.nodes())];
        let work = Work { header: Header::of_bytes(&tables), isa, tables: &tables, residues };
        macro_rules! scores {
            ($bytes:ty, $words:ty) => {{
                let mut scores =
                    Vectors::<$bytes, $words> { work: &work, scratch: &mut scratch, vectors: std::marker::PhantomData };
                each(isa, scores.msv(residues), scores.viterbi(residues))
            }};
        }
        match isa {
            Isa::Scalar | Isa::Neon => scores!(Bytes, Words),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => scores!(std::arch::x86_64::__m256i, std::arch::x86_64::__m256i),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => scores!(std::arch::x86_64::__m512i, std::arch::x86_64::__m512i),
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("not supported"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn scores_are_those_of_the_plain_recurrences(seed: u32, nodes in 1usize..200, length in 1usize..400) {
        let profile = made(seed, nodes);
        let residues = sequence(&profile, seed ^ 9, length);
        let mut plain = Plain::new(&profile);
        let expected = (plain.msv(&residues), plain.viterbi(&residues));
        let mut found = Vec::new();
        with_vectors(&profile, |isa, msv, viterbi| found.push((isa, msv, viterbi)), &residues);
        for (isa, msv, viterbi) in found {
            prop_assert_eq!((msv, viterbi), expected, "{}", isa);
        }
    }

    #[test]
    fn as_many_filters_are_passed(seed: u32, nodes in 1usize..90, bias: bool, lengths in prop::collection::vec(0usize..200, 1..20)) {
        let profile = made(seed, nodes);
        let filters = Filters { bias, ..Filters::default() };
        let mut lengths = lengths;
        lengths[0] = lengths[0].max(1);
        let sequences: Vec<Vec<u8>> = lengths.iter().zip(1..).map(|(&l, i)| sequence(&profile, seed ^ i, l)).collect();
        let expected: Vec<u8> = sequences.iter().map(|residues| Reference::new(&profile, &filters).passed(residues)).collect();
        let mut offsets = vec![77];
        sequences.iter().for_each(|s| offsets.push(offsets[offsets.len() - 1] + s.len() as u64));
        for isa in supported() {
            let mut stages = vec![9; sequences.len()];
            let mut scratch = vec![0xa5; scratch_bytes(isa, nodes)];
            passed(isa, &pack(isa, &profile, &filters), &sequences.concat(), &offsets, &mut scratch, &mut stages);
            prop_assert_eq!(&stages, &expected, "{}", isa);
        }
    }
}

#[test]
fn headers_come_back() {
    let header = Header {
        nodes: 17,
        bias: 9,
        entry: 20,
        delete_gain: -40_000,
        judge: Judge::new(&made(3, 17), &Filters { bias: false, ..Filters::default() }),
    };
    assert_eq!(Header::of_bytes(&header.to_bytes()), header);
}

#[test]
fn long_profiles_and_strong_ones() {
    // Rows of more vectors than registers hold, numbers that overflow, and J used.
    let profile = made(5, 1100);
    let whole: Vec<u8> = (0..1100)
        .map(|k| {
            let of = |x: &usize| profile.matches[k][*x];
            (0..20).max_by(|a, b| of(a).total_cmp(&of(b))).unwrap_or(0) as u8
        })
        .collect();
    for residues in [whole[..25].repeat(8), whole[100..108].repeat(30), whole.clone(), sequence(&profile, 3, 500)] {
        let mut plain = Plain::new(&profile);
        let expected = (plain.msv(&residues), plain.viterbi(&residues));
        with_vectors(&profile, |isa, msv, viterbi| assert_eq!((msv, viterbi), expected, "{isa}"), &residues);
    }
    assert!(Plain::new(&profile).msv(&whole).is_infinite());
    let more_by_another = (4..20).any(|n| {
        let [one, two] = [1, 2].map(|times| Plain::new(&profile).msv(&whole[..n].repeat(times)));
        one < two && two.is_finite()
    });
    assert!(more_by_another, "no second segment counts");
}
