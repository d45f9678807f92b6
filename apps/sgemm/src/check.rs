//! The check: Freivalds' test of every row of C, and the definition's bits where it hesitates.
//!
//! **The probes.** The columns are taken in groups of [`GROUP`]. For a group and [`ROUNDS`] random vectors x over its
//! columns ([`probe`]) C x must be A (B x), up to roundings: m n + k n + m k products a round instead of m n k. An element
//! that is wrong by `f` times what is allowed in its row and group is lost with a probability of at most (2 / f)^[`ROUNDS`],
//! and never where it is the only one and `f` > 2.
//!
//! **What is allowed.** An element is a sum whose partial sums s are rounded one after the other, chains over spans of
//! [`SPAN`] and then the spans. Running along k, A (B x) passes through the same partial sums of all columns at once,
//! weighted by x: the sum of their squares is, on average over x, the weighted sum of all s^2. So the deviation
//! u sqrt(sum of s^2) of the roundings in C x is estimated from the very pass that computes what is expected, by row; what is
//! allowed is [`DEVIATIONS`] times that. It grows with k as the partial sums do, not with the sum of absolute values: one
//! lost product is found for any k for which it is more than what 32 deviations of rounding make of a row of a group.
//!
//! **Numbers that are not finite.** An element whose row of A or column of B holds one is not finite either, and nothing else is
//! known of it. So such columns are left out of the probes, such rows have none, and of what is left out it is looked whether
//! it is finite: one number of B would else make the probes of all rows say nothing.
//!
//! **Where a probe is beyond**, which in a right result means roundings that are not independent (products of equal
//! numbers) or an estimate that came out small, the elements of that row and group are computed again: they must have the
//! bits of the definition, and lie within the bound that holds whatever the roundings are.

use crate::kernel::{SPAN, sgemm_checked};
use multigrain::app::{
    Beyond, Checked, Comparison, DEVIATIONS, Probed, UNDERFLOW, UNIT_ROUNDOFF, probe, rounding_bound,
};
use multigrain::prelude::*;
use multigrain_simd::Isa;

/// Columns that are probed together: fewer are compared more sharply, and more often.
const GROUP: u64 = 1024;
/// Random vectors.
const ROUNDS: usize = 4;
/// Bytes of probes that are held where there is room for them: B x for some groups, and as much for rows.
const PROBE_BYTES_MAX: u64 = 2 << 20;
/// Multiplications of what is computed again, at most.
const AGAIN: u64 = 1 << 31;
/// Rows that are computed again together.
const AGAIN_ROWS: usize = 16;

/// m, n and k.
type Sizes = (u64, u64, u64);

/// Checks C = A B, which are arrays 2, 0 and 1.
pub(crate) fn check(outcome: &Outcome, sizes: Sizes, seed: u64) -> Result<Checked, Error> {
    let (_, n, k) = sizes;
    let mut found = Probed::default();
    let groups = n.div_ceil(GROUP);
    let probe_bytes = probe_bytes(outcome);
    let k_tile = (probe_bytes / (8 * ROUNDS as u64) / SPAN as u64 * SPAN as u64).max(SPAN as u64).min(k);
    let together = (probe_bytes / (8 * ROUNDS as u64 * k_tile)).clamp(1, 16);
    for (group, count) in blocks(groups, together) {
        probe_groups(outcome, sizes, seed, (group, count), k_tile, &mut found)?;
    }
    let covered = format!(
        "Freivalds' test of every row with {ROUNDS} random vectors for every {GROUP} columns: an element that is wrong by \
         100 times what its probe may err by is lost with a probability below 2e-7"
    );
    found.judge(AGAIN_ROWS, AGAIN / (k * n.min(GROUP)), &covered, |these, comparison| {
        compute_again(outcome, sizes, these, comparison)
    })
}

/// Bytes of probes that are held: a quarter of what there is room for each.
fn probe_bytes(outcome: &Outcome) -> u64 {
    (outcome.check_bytes() / 4).min(PROBE_BYTES_MAX)
}

/// Probes all rows of some groups of columns.
fn probe_groups(
    outcome: &Outcome,
    (m, n, k): Sizes,
    seed: u64,
    (group, count): (u64, u64),
    k_tile: u64,
    found: &mut Probed,
) -> Result<(), Error> {
    let lanes = count as usize * ROUNDS;
    let first = group * GROUP;
    let columns = (n - first).min(count * GROUP);
    // Weight of column j in round r at j * ROUNDS + r.
    let mut weights: Vec<f64> =
        (first * ROUNDS as u64..(first + columns) * ROUNDS as u64).map(|i| probe(seed, i)).collect();
    leave_out(outcome, k, (first, columns), &mut weights)?;
    let m_tile = (probe_bytes(outcome) / (16 * lanes as u64)).max(1);
    let most = outcome.band_elements();
    let mut of_b = Vec::new();
    for (row, rows) in blocks(m, m_tile) {
        let mut sums = vec![0.0; rows as usize * lanes];
        let mut squares = vec![0.0; rows as usize * lanes];
        let mut is_finite = vec![true; rows as usize];
        for (l, depth) in blocks(k, k_tile) {
            // The only tile of k serves all rows.
            if row == 0 || k_tile < k {
                of_b = probes_of_b(outcome, (l, depth), (first, columns), &weights, lanes)?;
            }
            for (i, band) in blocks(rows, (most / depth).max(1)) {
                let a = outcome.read_f32(0, &Region::new(&[row + i, l], &[band, depth]))?;
                let at = i as usize * lanes;
                let rows = sums[at..].chunks_exact_mut(lanes).zip(squares[at..].chunks_exact_mut(lanes));
                let are_finite = is_finite[i as usize..].iter_mut();
                for ((a, (sums, squares)), is_finite) in a.chunks_exact(depth as usize).zip(rows).zip(are_finite) {
                    *is_finite &= a.iter().all(|a| a.is_finite());
                    along(a, &of_b, sums, squares);
                }
            }
        }
        for (i, band) in blocks(rows, (most / columns).max(1)) {
            let c = outcome.read_f32(2, &Region::new(&[row + i, first], &[band, columns]))?;
            for (c, i) in c.chunks_exact(columns as usize).zip(i as usize..) {
                let expected = is_finite[i].then(|| (&sums[i * lanes..][..lanes], &squares[i * lanes..][..lanes]));
                compare(found, c, &weights, expected, (row + i as u64, group, k));
            }
        }
    }
    Ok(())
}

/// Takes columns of B that hold what is not finite out of the probes: they weigh nothing.
fn leave_out(outcome: &Outcome, k: u64, (first, columns): (u64, u64), weights: &mut [f64]) -> Result<(), Error> {
    for (at, band) in blocks(k, (outcome.band_elements() / columns).max(1)) {
        let b = outcome.read_f32(1, &Region::new(&[at, first], &[band, columns]))?;
        for b in b.chunks_exact(columns as usize) {
            for (_, weights) in b.iter().zip(weights.chunks_exact_mut(ROUNDS)).filter(|(b, _)| !b.is_finite()) {
                weights.fill(0.0);
            }
        }
    }
    Ok(())
}

/// B x: for each row of B and each group, one number a round.
fn probes_of_b(
    outcome: &Outcome,
    (l, depth): (u64, u64),
    (first, columns): (u64, u64),
    weights: &[f64],
    lanes: usize,
) -> Result<Vec<f64>, Error> {
    let mut of_b = vec![0.0; depth as usize * lanes];
    for (at, band) in blocks(depth, (outcome.band_elements() / columns).max(1)) {
        let b = outcome.read_f32(1, &Region::new(&[l + at, first], &[band, columns]))?;
        for (b, sums) in b.chunks_exact(columns as usize).zip(of_b[at as usize * lanes..].chunks_exact_mut(lanes)) {
            let groups = b.chunks(GROUP as usize).zip(weights.chunks(GROUP as usize * ROUNDS));
            for ((b, weights), sums) in groups.zip(sums.as_chunks_mut::<ROUNDS>().0) {
                *sums = weighted(b, weights);
            }
        }
    }
    Ok(of_b)
}

/// The sums of some numbers, weighted by each round's weights; what weighs nothing may be any number.
fn weighted(values: &[f32], weights: &[f64]) -> [f64; ROUNDS] {
    let mut sums = [0.0; ROUNDS];
    for (&value, weights) in values.iter().zip(weights.as_chunks::<ROUNDS>().0) {
        let value = if weights[0] == 0.0 { 0.0 } else { f64::from(value) };
        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * weight);
    }
    sums
}

/// Adds a row of A, which begins at a multiple of [`SPAN`], times the probes of B to `sums`, and the squares of all partial
/// sums on the way to `squares`.
fn along(a: &[f32], of_b: &[f64], sums: &mut [f64], squares: &mut [f64]) {
    let lanes = sums.len();
    let mut chain = vec![0.0; lanes];
    for (a, of_b) in a.chunks(SPAN).zip(of_b.chunks(SPAN * lanes)) {
        chain.fill(0.0);
        for (&a, of_b) in a.iter().zip(of_b.chunks_exact(lanes)) {
            let a = f64::from(a);
            for ((sum, squares), of_b) in chain.iter_mut().zip(&mut *squares).zip(of_b) {
                *sum += a * of_b;
                *squares += *sum * *sum;
            }
        }
        for ((sum, squares), chain) in sums.iter_mut().zip(&mut *squares).zip(&chain) {
            *sum += chain;
            *squares += *sum * *sum;
        }
    }
}

/// Compares the probes of a row of C; none are expected where its row of A is not finite.
fn compare(found: &mut Probed, c: &[f32], weights: &[f64], expected: Option<(&[f64], &[f64])>, (row, group, k): Sizes) {
    let groups = c.chunks(GROUP as usize).zip(weights.chunks(GROUP as usize * ROUNDS));
    for (at, (c, weights)) in groups.enumerate() {
        let is_out = |weights: &[f64]| expected.is_none() || weights[0] == 0.0;
        let out = || c.iter().zip(weights.chunks_exact(ROUNDS)).filter(|(_, weights)| is_out(weights));
        let (left_out, all) = (out().count() as u64, c.len() as u64);
        let place = (row, group + at as u64);
        if out().any(|(c, _)| c.is_finite()) {
            found.compare(place, (all, 0), [(0.0, f64::NAN)].into_iter(), 0.0);
            continue;
        }
        let Some((sums, squares)) = expected.filter(|_| left_out < all) else {
            found.compare(place, (0, all), [].into_iter(), 0.0);
            continue;
        };
        let of_group = at * ROUNDS..(at + 1) * ROUNDS;
        let mean = squares[of_group.clone()].iter().sum::<f64>() / ROUNDS as f64;
        // Below the normal numbers every rounding errs by a fixed amount.
        let underflow = (k * all) as f64 * UNDERFLOW;
        let allowed = DEVIATIONS * UNIT_ROUNDOFF * mean.sqrt() + underflow;
        let probes = weighted(c, weights).into_iter().zip(sums[of_group].iter().copied());
        found.compare(place, (all - left_out, left_out), probes, allowed);
    }
}

/// Computes rows of one group of columns again; the first element that is wrong, in words.
fn compute_again(
    outcome: &Outcome,
    (_, n, k): Sizes,
    these: &[Beyond],
    comparison: &mut Comparison,
) -> Result<Option<String>, Error> {
    let first = these[0].group * GROUP;
    let columns = (n - first).min(GROUP);
    let (rows, width) = (these.len(), columns as usize);
    let mut defined = vec![0.0f32; rows * width];
    let mut sums = vec![(0.0f64, 0.0f64); rows * width];
    for (l, depth) in blocks(k, SPAN as u64) {
        let b = outcome.read_f32(1, &Region::new(&[l, first], &[depth, columns]))?;
        let mut a = Vec::new();
        for beyond in these {
            a.extend(outcome.read_f32(0, &Region::new(&[beyond.row, l], &[1, depth]))?);
        }
        let shape = (rows, width, depth as usize);
        sgemm_checked(Isa::Scalar, l == 0, shape, (&a, shape.2), (&b, width), (&mut defined, width), &mut [])
            .map_err(|e| Error::After(e.to_string()))?;
        for (a, sums) in a.chunks_exact(shape.2).zip(sums.chunks_exact_mut(width)) {
            for (b, &x) in b.chunks_exact(width).zip(a) {
                for (sum, &y) in sums.iter_mut().zip(b) {
                    let product = f64::from(x) * f64::from(y);
                    sum.0 += product;
                    sum.1 += product.abs();
                }
            }
        }
    }
    // A product passes through the chain of its span, then one sum a span.
    let span = SPAN as u64;
    let bound = rounding_bound(span.min(k) + k.div_ceil(span));
    let mut wrong = None;
    for (beyond, (defined, sums)) in these.iter().zip(defined.chunks_exact(width).zip(sums.chunks_exact(width))) {
        let c = outcome.read_f32(2, &Region::new(&[beyond.row, first], &[1, columns]))?;
        for (j, ((&c, &defined), &exact)) in (first..).zip(c.iter().zip(defined).zip(sums)) {
            let same = c.to_bits() == defined.to_bits();
            if !comparison.add_again(c, same, exact, bound, beyond.ratio) && wrong.is_none() {
                wrong = Some(format!("element [{}, {j}] is {c}, {} was expected", beyond.row, exact.0));
            }
        }
    }
    Ok(wrong)
}
