//! Pictures as they come, and what they look like from afar.

use crate::picture::{Block, Size};
use crate::samples::Samples;

/// A picture to be encoded: whole macroblocks, of which those at the right and the bottom repeat the last samples.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Row by row.
    pub blocks: Vec<Block>,
    /// From afar.
    pub glance: Glance,
}

impl Source {
    /// Takes a picture as it is stored: planes one after the other.
    pub fn fill(&mut self, size: Size, bytes: &[u8]) {
        self.blocks.resize(size.macroblocks(), Block::EMPTY);
        let columns = size.columns();
        let (width, height) = (size.width / 2, size.height / 2);
        let (luma, chroma) = bytes.split_at(4 * width * height);
        let (cb, cr) = chroma.split_at(width * height);
        for (y, blocks) in self.blocks.chunks_exact_mut(columns).enumerate() {
            fn row(plane: &[u8], width: usize, number: usize) -> &[u8] {
                &plane[number.min(plane.len() / width - 1) * width..][..width]
            }
            spread::<16>(|i| row(luma, size.width, 16 * y + i), blocks, |block| &mut block.luma, 0);
            // A row of Cb, one of Cr, and so on.
            spread::<8>(|i| row(cb, width, 8 * y + i), blocks, |block| &mut block.chroma, 0);
            spread::<8>(|i| row(cr, width, 8 * y + i), blocks, |block| &mut block.chroma, 1);
        }
        self.glance = Glance::new(&self.blocks);
    }
}

/// Spreads so many rows over the blocks that they cross, block by block, to each second place of `N` samples if these are two
/// beside each other; the last sample of a row is repeated to the end of the last block.
fn spread<'a, const N: usize>(
    rows: impl Fn(usize) -> &'a [u8],
    blocks: &mut [Block],
    samples: impl Fn(&mut Block) -> &mut Samples,
    which: usize,
) {
    let rows: [&[u8]; N] = std::array::from_fn(rows);
    let apart = 16 / N;
    for (x, block) in blocks.iter_mut().enumerate() {
        let places = samples(block).0.as_chunks_mut::<N>().0.iter_mut().skip(which).step_by(apart);
        for (to, row) in places.zip(rows) {
            let rest = &row[N * x..];
            match rest.first_chunk() {
                Some(whole) => *to = *whole,
                None => {
                    to[..rest.len()].copy_from_slice(rest);
                    to[rest.len()..].fill(row[row.len() - 1]);
                }
            }
        }
    }
}

/// Parts of equal width of the values of samples, of which a histogram counts how many are there.
const BINS: usize = 32;

/// What a picture looks like from afar: every sample is the mean of 4 x 4 of luma.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// Macroblock by macroblock, 16 samples each.
    samples: Vec<[u8; 16]>,
}

/// A picture beside the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// What it takes by itself, a macroblock: differences within blocks, in as many units as [`between`](Self::between) has of
    /// pictures that are predicted. Known of key pictures only.
    pub(crate) detail: f64,
    /// To the picture before, but not more than those within.
    pub(crate) between: f64,
    /// Whether it shows something else.
    pub(crate) is_cut: bool,
}

impl Glance {
    /// Of macroblocks of luma.
    pub fn new(blocks: &[Block]) -> Glance {
        let glance = |block: &Block| {
            let mut means = [0; 16];
            for (rows, means) in block.luma.0.as_chunks::<64>().0.iter().zip(means.as_chunks_mut::<4>().0) {
                // Eight samples at once: sums of pairs of neighbours, of four rows.
                const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
                let mut pairs = [0_u64; 2];
                for (i, eight) in rows.as_chunks::<8>().0.iter().enumerate() {
                    let eight = u64::from_le_bytes(*eight);
                    pairs[i % 2] += (eight & EVEN) + (eight >> 8 & EVEN);
                }
                let mean = |pairs: u64| ((pairs & 0xffff) + (pairs >> 16 & 0xffff)) / 16;
                let [a, b] = pairs;
                *means = [a, a >> 32, b, b >> 32].map(|pairs| mean(pairs) as u8);
            }
            means
        };
        Glance { samples: blocks.iter().map(glance).collect() }
    }

    /// How many samples have values of each part.
    fn histogram(&self) -> [u32; BINS] {
        let mut counts = [0; BINS];
        self.samples.as_flattened().iter().for_each(|sample| counts[usize::from(*sample) * BINS / 256] += 1);
        counts
    }

    /// How far it is from another.
    pub fn distance(&self, other: &Glance) -> u64 {
        let of =
            |(a, b): (&[u8; 16], &[u8; 16])| -> u32 { a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b))).sum() };
        self.samples.iter().zip(&other.samples).map(|both| u64::from(of(both))).sum()
    }

    /// Beside the one before.
    pub fn change(&self, before: &Glance) -> Change {
        let (mut within, mut between, mut least) = (0_u64, 0_u64, 0_u64);
        for (i, now) in self.samples.iter().enumerate() {
            let mean = now.iter().map(|sample| u32::from(*sample)).sum::<u32>() / 16;
            let inner: u32 = now.iter().map(|sample| u32::from(*sample).abs_diff(mean)).sum();
            let outer = before
                .samples
                .get(i)
                .map_or(u32::MAX / 2, |before| now.iter().zip(before).map(|(a, b)| u32::from(a.abs_diff(*b))).sum());
            within += u64::from(inner);
            between += u64::from(outer);
            least += u64::from(outer.min(inner + 16));
        }
        let moved = || {
            let both = self.histogram().into_iter().zip(before.histogram());
            both.map(|(a, b)| u64::from(a.abs_diff(b))).sum::<u64>()
        };
        let count = self.samples.len().max(1) as f64;
        Change {
            detail: 0.0,
            between: least as f64 / count,
            // Something else has other shapes in other places, and other brightness: a quarter of all samples.
            is_cut: between > within + 32 * self.samples.len() as u64 && moved() > 8 * self.samples.len() as u64,
        }
    }
}
