//! Kernels that end in sums over the patterns of a chunk: log-likelihoods and derivatives.

use super::chunk::{CHUNK_PATTERNS, Table};
use super::combine::scaling;
use super::layout::{Line, TILE};
use super::operand::{Same, Side};
use super::{Chunk, SCALE_LN};
use multigrain_simd::{DOUBLES, Doubles};

const BLOCKS: usize = CHUNK_PATTERNS / DOUBLES;

/// The weighted sum of the logarithms of the patterns' likelihoods; of the likelihoods themselves in a plain chunk.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
unsafe fn log_sum<V: Doubles>(chunk: &Chunk, likelihoods: &[Line; BLOCKS], offset: f64, factors: &[f64]) -> f64 {
    let patterns = chunk.blocks * DOUBLES;
    assert!(chunk.weights.len() == patterns && [0, patterns].contains(&factors.len()));
    assert!([0, patterns].contains(&chunk.invariant.len()));
    // SAFETY: the lengths were compared.
    unsafe {
        let mut sum = V::splat(0.0);
        for block in 0..chunk.blocks {
            let at = block * DOUBLES;
            let mut l = V::load(likelihoods.as_ptr().add(block).cast());
            if !factors.is_empty() {
                l = l.mul(V::load(factors.as_ptr().add(at)));
            }
            if !chunk.invariant.is_empty() {
                l = l.add(V::load(chunk.invariant.as_ptr().add(at)));
            }
            if chunk.is_plain {
                sum = sum.fma(V::load(chunk.weights.as_ptr().add(at)), l);
                continue;
            }
            // A likelihood of 0 (impossible data under the model) counts as the smallest normal number.
            let l = l.max(V::splat(f64::MIN_POSITIVE));
            sum = sum.fma(V::load(chunk.weights.as_ptr().add(at)), l.ln());
        }
        sum.halving_sum() + offset
    }
}

/// The log-likelihood from the vectors at both ends of a branch; `weights` are frequencies times the probabilities of
/// categories. Where `each` is set, the chunk keeps that of each pattern.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn evaluate<V: Doubles, const N: usize>(
    chunk: &mut Chunk,
    near: &impl Side<V, N>,
    far: &impl Side<V, N>,
    from: [Option<u32>; 2],
    weights: &[f64],
    each: bool,
) -> f64 {
    // The weights stand where a third vector would.
    // SAFETY: the caller's promise.
    unsafe {
        let likelihoods = likelihoods::<V, N>(chunk, near, &Same::new::<N>(weights, chunk.categories), far);
        let (offset, factors) = scaling(chunk, from);
        if each {
            keep(chunk, &likelihoods, &factors, from);
        }
        log_sum::<V>(chunk, &likelihoods, offset, &factors)
    }
}

/// Keeps the log-likelihood of each pattern.
fn keep(chunk: &mut Chunk, likelihoods: &[Line; BLOCKS], factors: &[f64], from: [Option<u32>; 2]) {
    let patterns = chunk.blocks * DOUBLES;
    let logs = (0..patterns).map(|pattern| {
        let mut likelihood = likelihoods[pattern / DOUBLES].0[pattern % DOUBLES];
        let invariant = chunk.invariant.get(pattern).copied().unwrap_or(0.0);
        likelihood = likelihood * factors.get(pattern).copied().unwrap_or(1.0) + invariant;
        // What a factor has undone is not undone again.
        let scaled = from.into_iter().flatten().filter(|&slot| invariant == 0.0 && chunk.scaled[slot as usize]);
        let counts = scaled.map(|slot| chunk.counts[slot as usize * patterns + pattern]);
        libm::log(likelihood.max(f64::MIN_POSITIVE)) + f64::from(counts.sum::<u32>()) * SCALE_LN
    });
    let logs = logs.collect();
    chunk.logs = logs;
}

/// The log-likelihood from three vectors around a node; `subtree` carries frequencies and probabilities of categories.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn insert<V: Doubles, const N: usize>(
    chunk: &Chunk,
    near: &impl Side<V, N>,
    far: &impl Side<V, N>,
    subtree: &impl Side<V, N>,
    from: [Option<u32>; 3],
) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        let likelihoods = likelihoods::<V, N>(chunk, near, far, subtree);
        let (offset, factors) = scaling(chunk, from);
        log_sum::<V>(chunk, &likelihoods, offset, &factors)
    }
}

/// The likelihoods of the patterns, but for scaling and invariant sites: sums of products of three vectors.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
unsafe fn likelihoods<V: Doubles, const N: usize>(
    chunk: &Chunk,
    near: &impl Side<V, N>,
    far: &impl Side<V, N>,
    subtree: &impl Side<V, N>,
) -> [Line; BLOCKS] {
    let mut likelihoods = [Line([0.0; DOUBLES]); BLOCKS];
    // SAFETY: blocks and categories are the chunk's; there are BLOCKS lines.
    unsafe {
        for category in 0..chunk.categories {
            for block in 0..chunk.blocks {
                let seen = likelihoods.as_mut_ptr().add(block).cast::<f64>();
                let mut sum = V::load(seen);
                for tile in 0..N / TILE {
                    let a = near.tile(block, category, tile);
                    let b = far.tile(block, category, tile);
                    let c = subtree.tile(block, category, tile);
                    for i in 0..TILE {
                        sum = sum.fma(a[i].mul(b[i]), c[i]);
                    }
                }
                sum.store(seen);
            }
        }
    }
    likelihoods
}

/// From a table: log-likelihood (where `log` is set), first and second derivative; of a plain chunk those of the likelihood. `coefficients` are three lists, each
/// `[category][eigenvalue]` and filled up to a multiple of eight.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn slope<V: Doubles, const N: usize>(
    chunk: &Chunk,
    table: &Table,
    coefficients: &[f64],
    log: bool,
) -> [f64; 3] {
    let terms = chunk.categories * N;
    let stride = coefficients.len() / 3;
    let patterns = chunk.blocks * DOUBLES;
    assert!(stride >= terms && table.lines.len() == chunk.blocks * terms && chunk.weights.len() == patterns);
    assert!([0, patterns].contains(&chunk.invariant.len()) && [0, patterns].contains(&table.factors.len()));
    let mut likelihoods = [Line([0.0; DOUBLES]); BLOCKS];
    // SAFETY: the lengths were compared.
    unsafe {
        let c = coefficients.as_ptr();
        let (mut plain, mut first, mut second) = (V::splat(0.0), V::splat(0.0), V::splat(0.0));
        for block in 0..chunk.blocks {
            let products = table.lines.as_ptr().add(block * terms).cast::<f64>();
            let zero = V::splat(0.0);
            let (mut l, mut d1, mut d2) = (zero, zero, zero);
            for category in 0..chunk.categories {
                // The first eigenvalue is 0: it takes no part in the derivatives.
                l = l.add(V::load(products.add(category * N * DOUBLES)));
                for k in category * N + 1..(category + 1) * N {
                    let x = V::load(products.add(k * DOUBLES));
                    l = l.fma(x, V::splat(*c.add(k)));
                    d1 = d1.fma(x, V::splat(*c.add(stride + k)));
                    d2 = d2.fma(x, V::splat(*c.add(2 * stride + k)));
                }
            }
            if log {
                l.store(likelihoods.as_mut_ptr().add(block).cast());
            }
            let at = block * DOUBLES;
            if !table.factors.is_empty() {
                let factor = V::load(table.factors.as_ptr().add(at));
                (l, d1, d2) = (l.mul(factor), d1.mul(factor), d2.mul(factor));
            }
            if chunk.is_plain {
                let weight = V::load(chunk.weights.as_ptr().add(at));
                (plain, first, second) = (plain.fma(weight, l), first.fma(weight, d1), second.fma(weight, d2));
                continue;
            }
            if !chunk.invariant.is_empty() {
                l = l.add(V::load(chunk.invariant.as_ptr().add(at)));
            }
            let inverse = V::splat(1.0).div(l.max(V::splat(f64::MIN_POSITIVE)));
            let weight = V::load(chunk.weights.as_ptr().add(at));
            let slope = d1.mul(inverse);
            let curvature = d2.mul(inverse).sub(slope.mul(slope));
            first = first.fma(weight, slope);
            second = second.fma(weight, curvature);
        }
        if chunk.is_plain {
            return [plain.halving_sum(), first.halving_sum(), second.halving_sum()];
        }
        let value = if log { log_sum::<V>(chunk, &likelihoods, table.offset, &table.factors) } else { 0.0 };
        [value, first.halving_sum(), second.halving_sum()]
    }
}
