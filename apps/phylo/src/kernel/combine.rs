//! Kernels that make vectors: at a node from the two behind it, through a branch, and products in eigenvector space.

use super::chunk::{CHUNK_PATTERNS, Table};
use super::layout::{Line, TILE};
use super::operand::Side;
use super::{Chunk, SCALE_FACTOR, SCALE_LN, SCALE_THRESHOLD};
use multigrain_simd::{DOUBLES, Doubles};

const BLOCKS: usize = CHUNK_PATTERNS / DOUBLES;

/// Which slots a vector's patterns were scaled in.
type Slots = [Option<u32>; 2];

/// `to` = left * right, scaled where all entries of a pattern are small. `from` are the slots of the operands that are
/// no tips.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn combine<V: Doubles, const N: usize>(
    chunk: &mut Chunk,
    left: &impl Side<V, N>,
    right: &impl Side<V, N>,
    from: Slots,
    to: u32,
) {
    assert!(!from.contains(&Some(to)), "a step reads the slot that it writes");
    let lines = chunk.lines();
    let (blocks, categories) = (chunk.blocks, chunk.categories);
    let out = chunk.vectors[to as usize * lines..][..lines].as_mut_ptr().cast::<f64>();
    let mut largest = [Line([0.0; DOUBLES]); BLOCKS];
    // SAFETY: a vector has N lines for each block and category, and there are at most BLOCKS blocks; `out` is the vector of
    // `to`, which neither operand reads.
    unsafe {
        for category in 0..categories {
            for block in 0..blocks {
                let out = out.add((block * categories + category) * N * DOUBLES);
                let seen = largest.as_mut_ptr().add(block).cast::<f64>();
                let mut highest = V::load(seen);
                for tile in 0..N / TILE {
                    let a = left.tile(block, category, tile);
                    let b = right.tile(block, category, tile);
                    for i in 0..TILE {
                        let product = a[i].mul(b[i]);
                        product.store(out.add((tile * TILE + i) * DOUBLES));
                        highest = highest.max(product);
                    }
                }
                highest.store(seen);
            }
        }
    }
    add_counts(chunk, from, to);
    for block in 0..blocks {
        // SAFETY: `largest` has BLOCKS lines.
        let small = unsafe { V::load(largest.as_ptr().add(block).cast()).less(V::splat(SCALE_THRESHOLD)) };
        if small != 0 {
            scale(chunk, to, block, small);
        }
    }
}

/// The counts of `to` begin as the sums of those of its operands.
#[inline]
fn add_counts(chunk: &mut Chunk, from: Slots, to: u32) {
    if !from.iter().flatten().any(|&slot| chunk.scaled[slot as usize]) {
        chunk.scaled[to as usize] = false;
        return;
    }
    let patterns = chunk.blocks * DOUBLES;
    let mut any = false;
    for slot in from.into_iter().flatten() {
        if !chunk.scaled[slot as usize] {
            continue;
        }
        let at = slot as usize * patterns;
        let target = to as usize * patterns;
        if !any {
            chunk.counts.copy_within(at..at + patterns, target);
        } else {
            for i in 0..patterns {
                chunk.counts[target + i] += chunk.counts[at + i];
            }
        }
        any = true;
    }
    chunk.scaled[to as usize] = any;
}

/// Multiplies the chosen patterns of a block by 2^256.
#[cold]
fn scale(chunk: &mut Chunk, slot: u32, block: usize, lanes: u8) {
    let patterns = chunk.blocks * DOUBLES;
    let slot = slot as usize;
    if !chunk.scaled[slot] {
        chunk.counts[slot * patterns..][..patterns].fill(0);
        chunk.scaled[slot] = true;
    }
    let per_block = chunk.categories * chunk.states;
    let first = slot * chunk.lines() + block * per_block;
    for lane in (0..DOUBLES).filter(|lane| lanes >> lane & 1 == 1) {
        chunk.vectors[first..][..per_block].iter_mut().for_each(|line| line.0[lane] *= SCALE_FACTOR);
        chunk.counts[slot * patterns + block * DOUBLES + lane] += 1;
    }
}

/// `to` = `from` times frequencies and the probabilities of categories, `[category][state]`.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn propagate<V: Doubles, const N: usize>(
    chunk: &mut Chunk,
    from: &impl Side<V, N>,
    slot: Option<u32>,
    weights: &[f64],
    to: u32,
) {
    let lines = chunk.lines();
    let (blocks, categories) = (chunk.blocks, chunk.categories);
    assert!(slot != Some(to) && weights.len() == categories * N);
    let out = chunk.vectors[to as usize * lines..][..lines].as_mut_ptr().cast::<f64>();
    // SAFETY: as in `combine`; there are N weights for each category.
    unsafe {
        for category in 0..categories {
            for block in 0..blocks {
                let out = out.add((block * categories + category) * N * DOUBLES);
                for tile in 0..N / TILE {
                    let a = from.tile(block, category, tile);
                    for (i, a) in a.iter().enumerate() {
                        let state = tile * TILE + i;
                        a.mul(V::splat(*weights.get_unchecked(category * N + state))).store(out.add(state * DOUBLES));
                    }
                }
            }
        }
    }
    add_counts(chunk, [slot, None], to);
}

/// A table: products in the space of eigenvectors, times the probabilities of categories.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn table<V: Doubles, const N: usize>(
    chunk: &mut Chunk,
    a: &impl Side<V, N>,
    b: &impl Side<V, N>,
    from: Slots,
    weights: &[f64],
    table: u32,
) {
    let (blocks, categories) = (chunk.blocks, chunk.categories);
    let mut lines = std::mem::take(&mut chunk.tables[table as usize].lines);
    lines.resize(blocks * categories * N, Line([0.0; DOUBLES]));
    assert_eq!(weights.len(), categories);
    let out = lines.as_mut_ptr().cast::<f64>();
    // SAFETY: the table has N lines for each block and category.
    unsafe {
        for (category, &weight) in weights.iter().enumerate() {
            let weight = V::splat(weight);
            for block in 0..blocks {
                let out = out.add((block * categories + category) * N * DOUBLES);
                for tile in 0..N / TILE {
                    let a = a.tile(block, category, tile);
                    let b = b.tile(block, category, tile);
                    for i in 0..TILE {
                        a[i].mul(b[i]).mul(weight).store(out.add((tile * TILE + i) * DOUBLES));
                    }
                }
            }
        }
    }
    let (offset, factors) = scaling(chunk, from);
    chunk.tables[table as usize] = Table { lines, offset, factors };
}

/// What the scaling of vectors adds to the log-likelihood; and for each pattern the factor that undoes it, where there is
/// an invariant class of sites, or likelihoods are added up, and something was scaled. Patterns that may be invariant are undone by the factor alone:
/// beside the invariant class the rest is negligible.
pub(super) fn scaling<const K: usize>(chunk: &Chunk, from: [Option<u32>; K]) -> (f64, Vec<f64>) {
    let patterns = chunk.blocks * DOUBLES;
    if !from.iter().flatten().any(|&slot| chunk.scaled[slot as usize]) {
        return (0.0, vec![]);
    }
    let mut factors = vec![1.0; if chunk.invariant.is_empty() && !chunk.is_plain { 0 } else { patterns }];
    let mut sum = 0.0;
    for slot in from.into_iter().flatten().filter(|&slot| chunk.scaled[slot as usize]) {
        let counts = &chunk.counts[slot as usize * patterns..][..patterns];
        for (pattern, (&count, &weight)) in counts.iter().zip(&chunk.weights).enumerate() {
            if chunk.is_plain || chunk.invariant.get(pattern).is_some_and(|&likelihood| likelihood > 0.0) {
                (0..count).for_each(|_| factors[pattern] *= SCALE_THRESHOLD);
            } else {
                sum += weight * f64::from(count);
            }
        }
    }
    (sum * SCALE_LN, factors)
}
