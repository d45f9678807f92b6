//! The kernel: the same bits with every instruction set and however sources and targets are cut, and the values of a
//! plain sum in double precision.

use multigrain::prelude::{ElementType, RawView, Shape, View, ViewMut};
use multigrain_gravity::kernel::potential::wells;
use multigrain_gravity::kernel::{GravityError, SPAN, accelerate, reference};
use multigrain_simd::Isa;
use proptest::prelude::*;

/// Places, of which some may coincide, and masses, of which some may be zero.
fn cloud(n: usize) -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
    let place = prop_oneof![8 => -2.0f32..2.0, 1 => Just(0.5f32), 1 => -1e6f32..1e6];
    let mass = prop_oneof![8 => 0.0f32..1.0, 1 => Just(0.0f32)];
    (proptest::collection::vec(place, 3 * n), proptest::collection::vec(mass, n))
}

fn problem() -> impl Strategy<Value = (Vec<f32>, Vec<f32>, Vec<f32>, f32)> {
    let softening = prop_oneof![Just(0.0f32), 1e-6f32..1.0];
    (1usize..200, 1usize..90, softening).prop_flat_map(|(sources, targets, softening)| {
        (cloud(sources), cloud(targets))
            .prop_map(move |((places, masses), (targets, _))| (places, masses, targets, softening * softening))
    })
}

fn run(isa: Isa, softening2: f32, masses: &[f32], sources: &[f32], targets: &[f32]) -> Vec<f64> {
    let mut found = vec![0.0; targets.len()];
    accelerate(isa, softening2, masses, sources, targets, &mut found).unwrap();
    found
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() }).collect()
}

/// Columns `from..to` of three rows.
fn part(rows: &[f32], from: usize, to: usize) -> Vec<f32> {
    let n = rows.len() / 3;
    (0..3).flat_map(|d| rows[d * n + from..d * n + to].to_vec()).collect()
}

/// The wells of particles in each other, the sources cut at `middle` and the targets at `cut`.
fn wells_of(isa: Isa, softening2: f64, rows: &[[f64; 7]], middle: usize, cut: usize) -> Vec<u64> {
    let n = rows.len();
    let flat: Vec<f64> = rows.concat();
    let view = |from: usize, to: usize| {
        let raw = RawView::dense(
            flat[7 * from..].as_ptr().cast_mut().cast(),
            ElementType::F64,
            Shape::new(&[1, (to - from) as u64, 7]),
        );
        // SAFETY: these rows of a vector that nobody writes.
        unsafe { View::<f64, 3>::from_raw(&raw) }
    };
    let mut all = Vec::new();
    for (from, to) in [(0, cut), (cut, n)].into_iter().filter(|(from, to)| from < to) {
        let mut found = vec![0.0f64; 2 * (to - from)];
        let raw = RawView::dense(found.as_mut_ptr().cast(), ElementType::F64, Shape::new(&[2, (to - from) as u64]));
        // SAFETY: the whole vector, which nobody else uses.
        let mut into = unsafe { ViewMut::<f64, 2>::from_raw(&raw) };
        for (from_source, to_source) in [(0, middle), (middle, n)].into_iter().filter(|(from, to)| from < to) {
            wells(isa, softening2, &view(from_source, to_source), &view(from, to), &mut into);
        }
        all.push(found);
    }
    let rows =
        (0..2).flat_map(|row| all.iter().flat_map(move |part| part[row * part.len() / 2..][..part.len() / 2].iter()));
    rows.map(|x| x.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn wells_depend_on_neither_instructions_nor_cuts(
        (places, masses, _, softening2) in problem(), middle in 0usize..200, cut in 0usize..200,
    ) {
        let n = masses.len();
        let place = |d: usize, i: usize| f64::from(places[d * n + i]);
        let rows: Vec<[f64; 7]> =
            (0..n).map(|i| [f64::from(masses[i]), place(0, i), place(1, i), place(2, i), 0.0, 0.0, 0.0]).collect();
        let softening2 = f64::from(softening2);
        let plain = wells_of(Isa::Scalar, softening2, &rows, 0, 0);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            prop_assert_eq!(&wells_of(isa, softening2, &rows, middle.min(n), cut.min(n)), &plain, "{}", isa);
        }
        for (i, target) in rows.iter().enumerate() {
            let (mut depth, mut here) = (0.0, 0.0);
            for source in &rows {
                let r2: f64 = (1..4).map(|c| (source[c] - target[c]).powi(2)).sum();
                if r2 > 0.0 { depth += source[0] / (r2 + softening2).sqrt() } else { here += source[0] }
            }
            let found = [f64::from_bits(plain[i]), f64::from_bits(plain[n + i])];
            prop_assert!((found[0] - depth).abs() <= 1e-12 * depth && found[1] == here, "{:?}", found);
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits((sources, masses, targets, softening2) in problem()) {
        let plain = run(Isa::Scalar, softening2, &masses, &sources, &targets);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            prop_assert_eq!(bits(&run(isa, softening2, &masses, &sources, &targets)), bits(&plain), "{}", isa);
        }
    }

    #[test]
    fn sources_may_be_cut_between_spans_and_targets_anywhere(
        (sources, masses, targets, softening2) in problem(), at in 0usize..4, cut in 0usize..90,
    ) {
        let isa = Isa::detect();
        let whole = run(isa, softening2, &masses, &sources, &targets);
        let (m, cut) = (targets.len() / 3, cut.min(targets.len() / 3));
        let middle = (at * SPAN).min(masses.len());
        let mut parts = Vec::new();
        for targets in [part(&targets, 0, cut), part(&targets, cut, m)] {
            let mut sums = vec![0.0; targets.len()];
            for (from, to) in [(0, middle), (middle, masses.len())] {
                let (sources, masses) = (part(&sources, from, to), &masses[from..to]);
                accelerate(isa, softening2, masses, &sources, &targets, &mut sums).unwrap();
            }
            parts.push(sums);
        }
        let joined: Vec<f64> =
            (0..3).flat_map(|d| [&parts[0][d * cut..][..cut], &parts[1][d * (m - cut)..][..m - cut]].concat()).collect();
        prop_assert_eq!(bits(&joined), bits(&whole));
    }

    #[test]
    fn values_are_those_of_a_plain_sum((sources, masses, targets, softening2) in problem()) {
        let found = run(Isa::detect(), softening2, &masses, &sources, &targets);
        let m = targets.len() / 3;
        for i in 0..m {
            let (exact, all) = reference(f64::from(softening2), &masses, &sources, &targets, i);
            for d in 0..3 {
                // 12 roundings of a term, a span of additions, and the polynomial.
                let tolerance = ((SPAN + 12) as f64 * 2f64.powi(-24) + 2.8e-7) * all;
                prop_assert!((found[d * m + i] - exact[d]).abs() <= tolerance, "{} for {}", found[d * m + i], exact[d]);
            }
        }
    }
}

#[test]
fn one_pair_is_exact_to_some_roundings_at_all_distances() {
    // The first place takes the polynomial, the second the divider.
    for place in 0..2 {
        for step in 0..20_000 {
            let r = 1e-6f32 * 1.0012f32.powi(step);
            let masses: Vec<f32> = (0..2).map(|k| if k == place { 0.75 } else { 0.0 }).collect();
            let found = run(Isa::detect(), 0.0, &masses, &[r, r, 0.0, 0.0, 0.0, 0.0], &[0.0; 3]);
            let exact = 0.75 / (f64::from(r) * f64::from(r));
            assert!((found[0] / exact - 1.0).abs() < 7e-7, "r = {r}: {} for {exact}", found[0]);
            assert_eq!(found[1..], [0.0, 0.0]);
        }
    }
}

#[test]
fn forces_of_a_sphere_are_right_to_a_millionth() {
    for seed in 1..4 {
        let sphere = multigrain_gravity::plummer::plummer(8192, seed);
        let masses: Vec<f32> = sphere.rows.iter().map(|row| row[0] as f32).collect();
        let places: Vec<f32> = (1..4).flat_map(|c| sphere.rows.iter().map(move |row| row[c] as f32)).collect();
        // Those near the middle, where forces cancel, are the hardest; every eighth of all comes with them.
        let near = |i: usize| (0..3).map(|d| places[d * 8192 + i].powi(2)).sum::<f32>() < 0.1;
        let chosen: Vec<usize> = (0..8192).filter(|&i| i % 8 == 0 || near(i)).collect();
        let targets: Vec<f32> =
            (0..3).flat_map(|d| chosen.iter().map(move |i| d * 8192 + i)).map(|i| places[i]).collect();
        let m = chosen.len();
        let found = run(Isa::detect(), 1e-4, &masses, &places, &targets);
        for i in 0..m {
            let (exact, _) = reference(f64::from(1e-4f32), &masses, &places, &targets, i);
            let norm = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>().sqrt();
            let error = norm(std::array::from_fn(|d| found[d * m + i] - exact[d])) / norm(exact);
            assert!(error <= 1e-6, "seed {seed}, particle {}: {error:e}", chosen[i]);
        }
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let refused = accelerate(Isa::Scalar, 1.0, &[1.0], &[0.0; 3], &[0.0; 3], &mut [0.0; 6]).unwrap_err();
    assert_eq!(refused, GravityError::Length { what: "accelerations", found: 6, needed: 3 });
    let refused = accelerate(Isa::Scalar, 1.0, &[1.0; 2], &[0.0; 3], &[0.0; 3], &mut [0.0; 3]).unwrap_err();
    assert_eq!(refused, GravityError::Length { what: "sources", found: 3, needed: 6 });
}
