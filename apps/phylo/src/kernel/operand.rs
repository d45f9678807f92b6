//! Operands of kernels, four states of eight patterns at a time.

use super::Chunk;
use super::layout::{Line, TILE};
use multigrain_simd::{DOUBLES, Doubles};

/// A vector, seen through a matrix or not.
pub(super) trait Side<V: Doubles, const N: usize> {
    /// The states `4 tile..` of category `category` for the eight patterns of a block.
    ///
    /// # Safety
    /// The processor supports the instruction set of `V`; block, category and tile exist in the chunk.
    unsafe fn tile(&self, block: usize, category: usize, tile: usize) -> [V; TILE];
}

/// A tip: a table is looked up with the codes of its letters.
pub(super) struct Tip {
    /// For each pattern where its code's row begins.
    rows: *const u16,
    table: *const f64,
    category_stride: usize,
}

impl Tip {
    /// The letters of `taxon` seen through `table`, `[category][code][state]` with this distance between categories (0:
    /// the same for all).
    pub(super) fn new(chunk: &Chunk, taxon: u32, table: &[f64], category_stride: usize) -> Tip {
        let patterns = chunk.blocks * DOUBLES;
        let rows = &chunk.tips[taxon as usize * patterns..][..patterns];
        assert!(category_stride * (chunk.categories - 1) + chunk.rows_end <= table.len());
        Tip { rows: rows.as_ptr(), table: table.as_ptr(), category_stride }
    }
}

impl<V: Doubles, const N: usize> Side<V, N> for Tip {
    #[inline(always)]
    unsafe fn tile(&self, block: usize, category: usize, tile: usize) -> [V; TILE] {
        // SAFETY: `new` compared the end of the rows of all codes with the table, and codes are the alphabet's; every
        // block has eight patterns.
        unsafe {
            let table = self.table.add(category * self.category_stride + tile * TILE);
            let mut rows = [table; DOUBLES];
            for (lane, row) in rows.iter_mut().enumerate() {
                *row = table.add(usize::from(*self.rows.add(block * DOUBLES + lane)));
            }
            V::rows(rows)
        }
    }
}

/// An inner vector times a matrix.
pub(super) struct Inner {
    vector: *const Line,
    matrix: *const f64,
    category_stride: usize,
    categories: usize,
}

impl Inner {
    /// The vector in `slot` times matrices with this distance between those of two categories (0: the same for all).
    pub(super) fn new(chunk: &Chunk, slot: u32, matrix: &[f64], category_stride: usize) -> Inner {
        assert!(category_stride * (chunk.categories - 1) + chunk.states * chunk.states <= matrix.len());
        let vector = chunk.slot(slot);
        Inner { vector, matrix: matrix.as_ptr(), category_stride, categories: chunk.categories }
    }
}

impl<V: Doubles, const N: usize> Side<V, N> for Inner {
    #[inline(always)]
    unsafe fn tile(&self, block: usize, category: usize, tile: usize) -> [V; TILE] {
        // SAFETY: the vector has N lines for each block and category, the matrix N rows of a tile for each tile.
        unsafe {
            let vector = self.vector.add((block * self.categories + category) * N).cast::<f64>();
            let matrix = self.matrix.add(category * self.category_stride + tile * N * TILE);
            let x = V::load(vector);
            let mut sums = [x; TILE];
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = x.mul(V::splat(*matrix.add(i)));
            }
            for j in 1..N {
                let x = V::load(vector.add(j * DOUBLES));
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.fma(x, V::splat(*matrix.add(j * TILE + i)));
                }
            }
            sums
        }
    }
}

/// An inner vector as it is.
pub(super) struct Plain {
    vector: *const Line,
    categories: usize,
}

impl Plain {
    pub(super) fn new(chunk: &Chunk, slot: u32) -> Plain {
        Plain { vector: chunk.slot(slot), categories: chunk.categories }
    }
}

impl<V: Doubles, const N: usize> Side<V, N> for Plain {
    #[inline(always)]
    unsafe fn tile(&self, block: usize, category: usize, tile: usize) -> [V; TILE] {
        // SAFETY: the vector has N lines for each block and category.
        unsafe {
            let vector = self.vector.add((block * self.categories + category) * N + tile * TILE).cast::<f64>();
            let mut lines = [V::load(vector); TILE];
            for (i, line) in lines.iter_mut().enumerate().skip(1) {
                *line = V::load(vector.add(i * DOUBLES));
            }
            lines
        }
    }
}

/// The same numbers for every pattern, such as frequencies.
pub(super) struct Same(*const f64);

impl Same {
    /// One number for each category and each of `N` states.
    pub(super) fn new<const N: usize>(numbers: &[f64], categories: usize) -> Same {
        assert_eq!(numbers.len(), categories * N);
        Same(numbers.as_ptr())
    }
}

impl<V: Doubles, const N: usize> Side<V, N> for Same {
    #[inline(always)]
    unsafe fn tile(&self, _block: usize, category: usize, tile: usize) -> [V; TILE] {
        // SAFETY: there are N numbers for each category; category and tile exist.
        unsafe {
            let numbers = self.0.add(category * N + tile * TILE);
            let mut all = [V::splat(*numbers); TILE];
            for (i, x) in all.iter_mut().enumerate().skip(1) {
                *x = V::splat(*numbers.add(i));
            }
            all
        }
    }
}

impl Chunk {
    /// The first line of a slot's vector.
    fn slot(&self, slot: u32) -> *const Line {
        let lines = self.lines();
        self.vectors[slot as usize * lines..][..lines].as_ptr()
    }
}
