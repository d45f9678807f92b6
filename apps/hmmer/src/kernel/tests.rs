//! The kernels against the plain recurrences, against each other, and against known small cases.

use super::*;
use crate::profile::{LocalNode, Transitions, alphabet::CODES};
use multigrain::rooms::plan::testing::Rng;

/// Scores may differ from double precision by this many nats.
const TOLERANCE_NATS: f64 = 1e-4;

fn supported() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_supported())
}

/// A probability, often near 0 or 1.
fn probability(rng: &mut Rng) -> f64 {
    let p = rng.range(1, 1 << 20) as f64 / (1 << 20) as f64;
    if rng.percent(50) { p * p * p } else { p }
}

/// A profile with strong and weak nodes, some residues impossible, some nodes nearly impossible to insert at.
fn profile(rng: &mut Rng, nodes: usize) -> Vec<LocalNode> {
    let total = (nodes * (nodes + 1) / 2) as f64;
    let mut profile: Vec<LocalNode> = (0..nodes)
        .map(|_| {
            let mut odds = [0.0; CODES];
            for odds in &mut odds {
                *odds = if rng.percent(3) { 0.0 } else { 20.0 * probability(rng) };
            }
            let (mi, md, ii, dd) = (probability(rng) / 3.0, probability(rng) / 3.0, probability(rng), probability(rng));
            let (mm, im, dm) = (1.0 - mi - md, 1.0 - ii, 1.0 - dd);
            LocalNode { odds, entry: 2.0 / total, leave: Transitions { mm, mi, md, im, ii, dm, dd } }
        })
        .collect();
    if let Some(last) = profile.last_mut() {
        last.leave = Transitions::default();
    }
    profile
}

/// Sequences that partly follow the profile, so that scores are of all sizes.
fn sequence(rng: &mut Rng, profile: &[LocalNode], length: usize) -> Vec<u8> {
    let (follow, mut k) = (rng.range(0, 100), 0);
    (0..length)
        .map(|_| {
            k = if rng.percent(90) { (k + 1) % profile.len() } else { rng.range(0, profile.len() as u64 - 1) as usize };
            let best = || {
                (0..29u8).max_by(|&a, &b| f64::total_cmp(&profile[k].odds[a as usize], &profile[k].odds[b as usize]))
            };
            if rng.percent(follow) { best().unwrap_or(0) } else { rng.range(0, 28) as u8 }
        })
        .collect()
}

fn run(isa: Isa, nodes: &[LocalNode], sequences: &[Vec<u8>]) -> Vec<Scores> {
    let residues = sequences.concat();
    // Offsets need not begin at 0.
    let mut offsets = vec![1000u64];
    sequences.iter().for_each(|s| offsets.push(offsets[offsets.len() - 1] + s.len() as u64));
    // Aligned to 8 bytes, and full of what is not a number.
    let mut scratch = vec![u64::MAX; scratch_bytes(isa, nodes.len(), sequences.len()).div_ceil(8)];
    // SAFETY: any bits are bytes.
    let (_, scratch, _) = unsafe { scratch.align_to_mut::<u8>() };
    let mut scores = vec![[0.0; 2]; sequences.len()];
    score(isa, &pack(nodes), &residues, &offsets, scratch, &mut scores);
    scores.into_iter().map(Scores::from).collect()
}

fn bits(scores: &[Scores]) -> Vec<(u64, u64)> {
    scores.iter().map(|s| (s.viterbi.to_bits(), s.forward.to_bits())).collect()
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= TOLERANCE_NATS
}

#[test]
fn scores_are_those_of_the_plain_recurrences_with_every_instruction_set() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let nodes = rng.range(1, if seed < 40 { 12 } else { 60 }) as usize;
        let profile = profile(&mut rng, nodes);
        let count = rng.range(1, 40);
        let sequences: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let length = if rng.percent(10) { rng.range(0, 400) } else { rng.range(0, 70) } as usize;
                sequence(&mut rng, &profile, length)
            })
            .collect();
        let expected: Vec<Scores> = sequences.iter().map(|s| reference(&profile, s)).collect();
        let scalar = run(Isa::Scalar, &profile, &sequences);
        for (i, (found, expected)) in scalar.iter().zip(&expected).enumerate() {
            assert!(
                close(found.viterbi, expected.viterbi) && close(found.forward, expected.forward),
                "seed {seed}, sequence {i} of length {}, {nodes} nodes: {found:?}, expected {expected:?}",
                sequences[i].len()
            );
        }
        for isa in supported() {
            assert_eq!(bits(&run(isa, &profile, &sequences)), bits(&scalar), "seed {seed}, {isa}");
        }
    }
}

#[test]
fn a_sequence_s_scores_do_not_depend_on_its_neighbours() {
    let mut rng = Rng::new(7);
    let profile = profile(&mut rng, 25);
    let sequences: Vec<Vec<u8>> = (1..=50).map(|i| sequence(&mut rng, &profile, i * 37 % 91)).collect();
    let together = run(Isa::detect(), &profile, &sequences);
    for (sequence, together) in sequences.iter().zip(&together) {
        assert_eq!(bits(&run(Isa::detect(), &profile, std::slice::from_ref(sequence))), bits(&[*together]));
    }
}

#[test]
fn long_sequences_of_high_score_keep_their_digits() {
    let mut rng = Rng::new(3);
    let profile = profile(&mut rng, 30);
    let best = |node: &LocalNode| {
        (0..29u8).max_by(|&a, &b| f64::total_cmp(&node.odds[a as usize], &node.odds[b as usize])).unwrap()
    };
    let repeat: Vec<u8> = profile.iter().map(best).collect();
    let hits: Vec<u8> = repeat.iter().copied().cycle().take(6000).collect();
    let mut silent: Vec<u8> = vec![27; 6000];
    silent[3000..3030].copy_from_slice(&repeat);
    let sequences = vec![hits, silent];
    let found = run(Isa::detect(), &profile, &sequences);
    for (found, sequence) in found.iter().zip(&sequences) {
        let expected = reference(&profile, sequence);
        let error = (found.forward - expected.forward).abs().max((found.viterbi - expected.viterbi).abs());
        assert!(error < 1e-3, "{found:?}, expected {expected:?}");
    }
    assert!(found[0].viterbi > 5000.0, "not a high score: {found:?}");
}

#[test]
fn what_cannot_be_aligned_scores_minus_infinity() {
    let mut rng = Rng::new(5);
    let mut profile = profile(&mut rng, 4);
    profile.iter_mut().for_each(|node| node.odds[27] = 0.0);
    let found = run(Isa::detect(), &profile, &[vec![], vec![27; 3], vec![0; 5]]);
    let never = Scores { viterbi: f64::NEG_INFINITY, forward: f64::NEG_INFINITY };
    assert_eq!(found[..2], [never, never]);
    assert!(found[2].forward >= found[2].viterbi);
}
