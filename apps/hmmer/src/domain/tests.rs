use super::Step;
use super::bound::Bound;
use super::define::Finder;
use super::matrix::{Lengths, Matrix};
use super::model::Model;
use super::sample::Sample;
use crate::kernel::reference;
use crate::profile::Profile;
use crate::profile::alphabet::{ANY, BACKGROUND, RESIDUES, STAR};
use crate::profile::tests::{generator, made};
use crate::random::{Random, SEED};
use crate::table::{Threshold, Thresholds};
use multigrain_simd::Quad;
use proptest::prelude::*;

/// A sequence of `parts`: so many residues at random, then so many nodes of the profile from a node on, and so on.
fn sequence(profile: &Profile, seed: u32, parts: &[(usize, usize, usize)]) -> Vec<u8> {
    let mut next = generator(seed);
    let mut draw = |frequencies: &[f64]| {
        let mut rest = f64::from(next() % 65_536) / 65_536.0;
        let found = frequencies.iter().position(|p| {
            rest -= p;
            rest < 0.0
        });
        found.unwrap_or(0) as u8
    };
    let background = BACKGROUND.map(f64::from);
    let mut residues = Vec::new();
    for &(random, from, nodes) in parts {
        residues.extend((0..random).map(|_| draw(&background)));
        residues.extend(profile.matches.iter().skip(from).take(nodes).map(|p| draw(p)));
    }
    residues
}

/// Profiles, and sequences of zero to three pieces of them, with some symbols that are no residues.
fn cases() -> impl Strategy<Value = (Profile, Vec<u8>)> {
    let parts = prop::collection::vec((0usize..60, 0usize..60, 0usize..60), 1..4);
    (any::<u32>(), 1usize..70, parts, 0usize..3).prop_map(|(seed, nodes, parts, odd)| {
        let profile = made(seed, nodes);
        let mut residues = sequence(&profile, seed ^ 77, &parts);
        residues.push(3);
        let length = residues.len();
        for (i, code) in [ANY, STAR, ANY - 1].into_iter().enumerate().take(odd) {
            residues[(seed as usize >> i) % length] = code;
        }
        (profile, residues)
    })
}

/// Without any limit on what is reported.
fn everything(profile: &Profile) -> Bound {
    at_most(profile, f64::INFINITY)
}

/// Reported if the probability of the score is at most this.
fn at_most(profile: &Profile, probability: f64) -> Bound {
    Bound::new(profile.forward, &Thresholds { report: Threshold::Evalue(probability), ..Thresholds::new(1.0) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn forward_is_that_of_the_plain_recurrences((profile, residues) in cases()) {
        let model = Model::new(&profile);
        let mut matrix = Matrix::default();
        let found = matrix.forward(&model, Lengths::multihit(residues.len()), &residues, false);
        let expected = reference(&profile.local(), &residues).forward;
        // Without any alignment, for instance if no state emits the only residue, both are minus infinity.
        prop_assert!((f64::from(found) - expected).abs() < 1e-3 || f64::from(found) == expected, "{} {}", found, expected);
    }

    #[test]
    fn backward_ends_where_forward_does((profile, residues) in cases(), multihit: bool) {
        let model = Model::new(&profile);
        let lengths = if multihit { Lengths::multihit } else { Lengths::unihit }(residues.len());
        let (mut forward, mut backward) = (Matrix::default(), Matrix::default());
        let there = forward.forward(&model, lengths, &residues, true);
        prop_assume!(there.is_finite());
        let back = backward.backward(&model, lengths, &residues, &forward, true);
        prop_assert!((there - back).abs() < 1e-3, "{} {}", there, back);
    }

    #[test]
    fn posteriors_of_a_residue_sum_to_one((profile, residues) in cases(), multihit: bool) {
        let model = Model::new(&profile);
        let lengths = if multihit { Lengths::multihit } else { Lengths::unihit }(residues.len());
        let (mut forward, mut backward) = (Matrix::default(), Matrix::default());
        prop_assume!(forward.forward(&model, lengths, &residues, true).is_finite());
        backward.backward(&model, lengths, &residues, &forward, true);
        let occupancy = backward.occupancy(lengths, &forward).unwrap();
        prop_assert!(backward.decode(lengths, &forward));
        let (begins, ends) = (occupancy.begins[residues.len()], occupancy.ends[residues.len()]);
        prop_assert!((begins - ends).abs() < 2e-3 * begins, "{} begin, {} end", begins, ends);
        prop_assert!(begins > 0.99 && (multihit || begins < 1.01));
        for i in 1..=residues.len() {
            let inside = backward.row(i).iter().fold(Quad::ZERO, |sum, cell| sum + cell.m + cell.i).sum();
            let x = backward.special[i];
            prop_assert!((inside + x.n + x.j + x.c - 1.0).abs() < 2e-3, "residue {}: {}", i, inside);
            prop_assert!((inside - occupancy.inside[i]).abs() < 2e-3);
        }
    }

    /// The mean of 2000 samples against the posterior expectation, and every sample against its own rules.
    #[test]
    fn samples_follow_the_posterior((profile, residues) in cases()) {
        let model = Model::new(&profile);
        let lengths = Lengths::multihit(residues.len());
        let (mut forward, mut backward) = (Matrix::default(), Matrix::default());
        prop_assume!(forward.forward(&model, lengths, &residues, true).is_finite());
        backward.backward(&model, lengths, &residues, &forward, true);
        let occupancy = backward.occupancy(lengths, &forward).unwrap();
        const SAMPLES: usize = 2000;
        let mut random = Random::new(SEED);
        let mut sample = Sample::default();
        let mut inside = vec![0u32; residues.len() + 1];
        for _ in 0..SAMPLES {
            prop_assert!(sample.draw(&mut random, &model, lengths, &forward));
            let mut last = 0;
            for (segment, nodes) in sample.domains() {
                prop_assert!(last < segment.from && segment.from <= segment.to);
                prop_assert!(1 <= segment.node_from && segment.node_from <= segment.node_to);
                prop_assert!(segment.node_to as usize <= profile.nodes());
                prop_assert_eq!(nodes.len() as u32, segment.to - segment.from + 1);
                prop_assert!(nodes.is_sorted_by(|a, b| a >= b));
                inside[segment.from as usize..=segment.to as usize].iter_mut().for_each(|count| *count += 1);
                last = segment.to;
            }
        }
        for (i, (&p, &count)) in occupancy.inside.iter().zip(&inside).enumerate().skip(1) {
            let (p, found) = (f64::from(p), f64::from(count) / SAMPLES as f64);
            // Five standard deviations of a binomial distribution.
            let error = 5.0 * (p.max(0.0) * (1.0 - p).max(0.0) / SAMPLES as f64).sqrt() + 5e-3;
            prop_assert!((p - found).abs() < error, "residue {}: {} sampled, {} expected", i, found, p);
        }
    }

    /// What [`Bound`] rules out is not reported when everything is computed; what it lets pass is the same.
    #[test]
    fn bound_never_costs_a_hit((profile, residues) in cases(), at in -3.0f64..3.0, correct_bias: bool) {
        let mut finder = Finder::new(&profile);
        let Some(hit) = finder.hit(&residues, correct_bias, &everything(&profile)).unwrap() else { return Ok(()) };
        // A threshold near the score, from both sides: `targets` such that the E-value limit is met there.
        let probability = profile.forward.survival(f64::from(hit.score) + at);
        let bound = at_most(&profile, probability);
        let reported = hit.log_p.exp() <= probability * (1.0 - 1e-6);
        let forward = reference(&profile.local(), &residues).forward;
        prop_assert!(!reported || bound.may_be_reported(forward, residues.len()), "{} {:?}", forward, hit);
        match finder.hit(&residues, correct_bias, &bound).unwrap() {
            Some(again) => prop_assert_eq!(again, hit),
            None => prop_assert!(!reported, "{:?}", hit),
        }
    }

    #[test]
    fn hits_are_consistent((profile, residues) in cases(), correct_bias: bool) {
        let mut finder = Finder::new(&profile);
        let Some(hit) = finder.hit(&residues, correct_bias, &everything(&profile)).unwrap() else { return Ok(()) };
        prop_assert!(!hit.domains.is_empty() && hit.domains.len() <= hit.envelopes as usize);
        prop_assert!(hit.clustered <= hit.regions && hit.overlaps <= hit.envelopes);
        prop_assert!(hit.log_p <= 0.0 && hit.score.is_finite());
        prop_assert!(hit.bias >= -1e-3 && (correct_bias || hit.bias == 0.0), "{:?}", hit);
        for domain in &hit.domains {
            prop_assert!(1 <= domain.from && domain.from <= domain.to && domain.to <= residues.len());
            prop_assert!(domain.bias >= 0.0 && domain.score <= hit.best().score);
            if let Some((first, last)) = domain.aligned.as_ref().map(|aligned| aligned.residues) {
                prop_assert!(domain.from <= first && first <= last && last <= domain.to);
                let (nodes, columns) = domain.aligned.as_ref().map(|a| (a.nodes, &a.columns)).unwrap();
                let count = |not: Step| columns.iter().filter(|column| column.step != not).count();
                prop_assert_eq!(count(Step::Delete), 1 + last - first);
                prop_assert_eq!(count(Step::Insert), 1 + nodes.1 - nodes.0);
                let codes: Vec<u8> = columns.iter().filter(|c| c.step != Step::Delete).map(|c| c.code).collect();
                prop_assert_eq!(&codes[..], &residues[first - 1..last]);
                prop_assert!(columns.iter().all(|c| (0.0..1.001).contains(&c.probability)), "{:?}", columns);
            }
        }
        // A finder's memory of earlier sequences changes nothing.
        let again = Finder::new(&profile).hit(&residues, correct_bias, &everything(&profile));
        prop_assert_eq!(finder.hit(&residues, correct_bias, &everything(&profile)), again.clone());
        // With less than it asks for it takes nothing, with that much it finds the same.
        let mut small = Finder::new(&profile).with_limit(0);
        let mut asked = 0;
        while let Err(short) = small.hit(&residues, correct_bias, &everything(&profile)) {
            asked += 1;
            prop_assert!(asked <= 2 && short.needed_bytes <= Finder::working_bytes(&profile, residues.len() as u64, residues.len() as u64));
            let too_little = Finder::new(&profile).with_limit(short.needed_bytes - 1).hit(&residues, correct_bias, &everything(&profile));
            prop_assert_eq!(too_little, Err(short));
            small = Finder::new(&profile).with_limit(short.needed_bytes);
        }
        prop_assert!(asked > 0);
        prop_assert_eq!(small.hit(&residues, correct_bias, &everything(&profile)), again);
    }
}

#[test]
fn planted_domains_are_found_where_they_are() {
    let profile = made(11, 60);
    let residues = sequence(&profile, 5, &[(70, 0, 60), (50, 0, 60), (40, 0, 0)]);
    let mut finder = Finder::new(&profile);
    let hit = finder.hit(&residues, true, &everything(&profile)).unwrap().unwrap();
    assert_eq!(hit.domains.len(), 2);
    for (domain, planted) in hit.domains.iter().zip([71..=130, 181..=240]) {
        assert!(domain.from.abs_diff(*planted.start()) <= 3 && domain.to.abs_diff(*planted.end()) <= 3, "{domain:?}");
        assert!(domain.score > 40.0, "{domain:?}");
    }
    assert!((hit.expected - 2.0).abs() < 0.3, "{}", hit.expected);
    assert!(hit.score > hit.domains[0].score.max(hit.domains[1].score) + 20.0);
}

#[test]
fn alignments_of_one_domain_end_where_it_does() {
    let profile = made(12, 50);
    let residues = sequence(&profile, 6, &[(30, 0, 50), (25, 0, 0)]);
    let model = Model::new(&profile);
    let lengths = Lengths::unihit(residues.len());
    let (mut forward, mut backward) = (Matrix::default(), Matrix::default());
    forward.forward(&model, lengths, &residues, true);
    backward.backward(&model, lengths, &residues, &forward, true);
    assert!(backward.decode(lengths, &forward));
    let aligned = super::accuracy::Accuracy::default().align(&model, lengths, &residues, &backward).unwrap();
    let (first, last) = aligned.residues;
    assert!(aligned.nodes.0 <= 3 && aligned.nodes.1 >= 48, "{aligned:?}");
    assert!(aligned.accuracy > 90.0 && aligned.accuracy <= residues.len() as f32, "{aligned:?}");
    assert!(first.abs_diff(31) <= 2 && last.abs_diff(80) <= 2, "{first}..{last}");
}

#[test]
fn what_has_no_domain_is_no_hit() {
    let profile = made(13, 20);
    let mut finder = Finder::new(&profile);
    let all = everything(&profile);
    assert_eq!(finder.hit(&[], true, &all), Ok(None));
    assert_eq!(finder.hit(&[STAR; 30], true, &all), Ok(None));
    assert_eq!(RESIDUES, 20);
    assert!(!all.may_be_reported(100.0, 0) && all.may_be_reported(-100.0, 1));
}
