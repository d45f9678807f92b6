//! What kernels need of a model: transition matrices, tables of tips, coefficients of slopes, laid out as they read them.

use super::kernel_states;
use super::layout::{Line, TILE, matrix_index};
use crate::alignment::DataType;
use crate::model::Model;
use multigrain_simd::{DOUBLES, Doubles, Isa, dispatch};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of constants: none is given twice.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// A model as the kernels need it.
#[derive(Debug, Clone)]
pub struct Constants {
    number: u64,
    isa: Isa,
    pub(super) states: usize,
    pub(super) categories: usize,
    masks: &'static [u32],
    /// `[code]`: the code without the last of its states (if there is one), and that state.
    parts: Vec<(Option<usize>, usize)>,
    pinv: f64,
    frequencies: Vec<f64>,
    /// `[category][eigenvalue]`: eigenvalue times rate; zeros up to a multiple of eight.
    exponents: Vec<f64>,
    /// `[entry / 8][eigenvalue]` lines of `[entry % 8]`: a matrix is their sum over eigenvalues with exponentials as
    /// coefficients, entries as in [`matrix_index`].
    outer: Vec<Line>,
    /// The matrix into the space of eigenvectors, as a transition matrix of one category.
    pub(super) eigen_matrix: Vec<f64>,
    /// `[code][eigenvalue]`: tips in the space of eigenvectors.
    pub(super) eigen_table: Vec<f64>,
    /// `[code][state]`: 1 where the code allows the state.
    pub(super) plain_table: Vec<f64>,
    /// `[category][state]`: frequency times probability of the category.
    pub(super) weights: Vec<f64>,
    /// `[category]`: probability.
    pub(super) category_weights: Vec<f64>,
}

impl Constants {
    /// Decomposes the model's rate matrix.
    pub fn new(model: &Model, data_type: DataType, isa: Isa) -> Constants {
        let (n, categories) = (kernel_states(model.states), model.categories);
        let eigen = model.eigen().padded(n);
        let mut frequencies = model.frequencies.clone();
        frequencies.resize(n, 0.0);
        let mut exponents: Vec<f64> =
            model.rates().iter().flat_map(|rate| eigen.values.iter().map(move |value| value * rate)).collect();
        exponents.resize(exponents.len().next_multiple_of(DOUBLES), 0.0);
        let mut outer = vec![Line([0.0; DOUBLES]); n * n / DOUBLES * n];
        let mut eigen_matrix = vec![0.0; n * n];
        for (i, j) in (0..n * n).map(|ij| (ij / n, ij % n)) {
            let entry = matrix_index(n, i, j);
            eigen_matrix[entry] = eigen.left[i * n + j];
            for k in 0..n {
                outer[entry / DOUBLES * n + k].0[entry % DOUBLES] = eigen.right[i * n + k] * eigen.left[k * n + j];
            }
        }
        let masks = data_type.masks();
        let category_weights = model.category_weights();
        let table = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            let sum = |mask: u32, k: usize| (0..n).filter(|s| mask >> s & 1 == 1).map(|s| entry(k, s)).sum();
            masks.iter().flat_map(|&mask| (0..n).map(move |k| sum(mask, k))).collect()
        };
        Constants {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            isa,
            states: n,
            categories,
            parts: masks
                .iter()
                .map(|&mask| {
                    let last = mask.checked_ilog2().unwrap_or(0);
                    let rest = mask & !(1 << last);
                    (masks.iter().position(|&m| m == rest && m.count_ones() > 0), last as usize)
                })
                .collect(),
            masks,
            pinv: model.pinv.unwrap_or(0.0),
            exponents,
            outer,
            eigen_table: table(&|k, s| eigen.left[k * n + s]),
            plain_table: table(&|k, s| f64::from(k == s)),
            eigen_matrix,
            weights: category_weights.iter().flat_map(|w| frequencies.iter().map(move |f| f * w)).collect(),
            frequencies,
            category_weights,
        }
    }

    /// Tells these from other constants: equal numbers, equal matrices.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Share of invariant sites.
    pub fn pinv(&self) -> f64 {
        self.pinv
    }

    /// Number of states that kernels compute with.
    pub fn states(&self) -> usize {
        self.states
    }

    /// Number of rate categories.
    pub fn categories(&self) -> usize {
        self.categories
    }

    /// The likelihood of a pattern in the invariant class of sites, by the states that it may be invariant in.
    pub fn invariant_likelihood(&self, mask: u32) -> f64 {
        self.pinv * (0..self.states).filter(|s| mask >> s & 1 == 1).map(|s| self.frequencies[s]).sum::<f64>()
    }

    /// Numbers in the matrices of a branch.
    pub(super) fn matrix_len(&self) -> usize {
        self.categories * self.states * self.states
    }

    /// Numbers in the table of a tip.
    pub(super) fn table_len(&self) -> usize {
        self.categories * self.masks.len() * self.states
    }

    /// Numbers in a table row set of one category.
    pub(super) fn table_stride(&self) -> usize {
        self.masks.len() * self.states
    }

    /// Numbers in one of the three coefficient lists of a slope.
    pub(super) fn slope_len(&self) -> usize {
        self.exponents.len()
    }

    /// Transition matrices `[category]` of a branch.
    pub(super) fn transitions(&self, length: f64, matrices: &mut [f64]) {
        self.vectors(length, &mut vec![0.0; self.exponents.len()], Some(matrices));
    }

    /// Exponentials of eigenvalues times rates times a length; and the matrices that they give.
    fn vectors(&self, length: f64, exponentials: &mut [f64], matrix: Option<&mut [f64]>) {
        let this = self;
        // SAFETY: an `Isa` is chosen only where it is supported.
        unsafe {
            dispatch!(self.isa, (this: &Constants, length: f64, exponentials: &mut [f64], matrix: Option<&mut [f64]>) => {
                Scalar: Constants::transition::<[f64; DOUBLES]>,
                Neon: Constants::transition::<[f64; DOUBLES]>,
                Avx2: Constants::transition::<multigrain_simd::Pair>,
                Avx512: Constants::transition::<std::arch::x86_64::__m512d>,
            });
        }
    }

    /// # Safety
    /// The processor supports the instruction set of `V`.
    #[inline(always)]
    unsafe fn transition<V: Doubles>(&self, length: f64, exponentials: &mut [f64], matrix: Option<&mut [f64]>) {
        let n = self.states;
        let lines = n * n / DOUBLES;
        assert!(exponentials.len() == self.exponents.len());
        assert!(matrix.as_ref().is_none_or(|m| m.len() == self.categories * lines * DOUBLES));
        // SAFETY: the lengths were compared; `exponents` has whole vectors, `outer` n lines for each of `lines`.
        unsafe {
            let t = V::splat(length);
            for i in (0..exponentials.len()).step_by(DOUBLES) {
                V::load(self.exponents.as_ptr().add(i)).mul(t).exp().store(exponentials.as_mut_ptr().add(i));
            }
            let Some(matrix) = matrix else { return };
            for line in 0..lines {
                let mut c = 0;
                while c + 4 <= self.categories {
                    self.line::<V, 4>(line, c, exponentials, matrix);
                    c += 4;
                }
                (c..self.categories).for_each(|c| self.line::<V, 1>(line, c, exponentials, matrix));
            }
        }
    }

    /// Eight entries of the matrices of `K` categories from `c` on: what is read of `outer` serves all of them.
    ///
    /// # Safety
    /// The processor supports the instruction set of `V`; the line and the categories exist, and the lengths of the slices
    /// are as [`Constants::transition`] compares them.
    #[inline(always)]
    unsafe fn line<V: Doubles, const K: usize>(&self, line: usize, c: usize, exponentials: &[f64], matrix: &mut [f64]) {
        let n = self.states;
        let lines = n * n / DOUBLES;
        // SAFETY: the caller's promise.
        unsafe {
            let e = exponentials.as_ptr().add(c * n);
            let outer = self.outer.as_ptr().add(line * n).cast::<f64>();
            let first = V::load(outer);
            let mut sums = [first; K];
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = first.mul(V::splat(*e.add(i * n)));
            }
            for k in 1..n {
                let x = V::load(outer.add(k * DOUBLES));
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.fma(x, V::splat(*e.add(i * n + k)));
                }
            }
            for (i, sum) in sums.iter().enumerate() {
                // Cancellation may leave a tiny negative number where a probability is almost 0.
                sum.max(V::splat(0.0)).store(matrix.as_mut_ptr().add(((c + i) * lines + line) * DOUBLES));
            }
        }
    }

    /// `[category][code][state]` from the matrices of a branch: for each state the probability of the tip's letter.
    pub(super) fn tip_table(&self, matrices: &[f64], table: &mut [f64]) {
        let (n, tiles) = (self.states, self.states / TILE);
        for (matrix, table) in matrices.chunks_exact(n * n).zip(table.chunks_exact_mut(self.table_stride())) {
            let (matrix, table) = (matrix.as_chunks::<TILE>().0, table.as_chunks_mut::<TILE>().0);
            for (code, &(before, last)) in self.parts.iter().enumerate() {
                let mut rest = self.masks[code];
                let (done, row) = table.split_at_mut(code * tiles);
                let row = &mut row[..tiles];
                // Sums run over the states in their order; where a code has all but the last one, its sum is there.
                match before.filter(|&before| before < code) {
                    Some(before) => {
                        row.copy_from_slice(&done[before * tiles..][..tiles]);
                        rest = 1 << last;
                    }
                    None => row.fill([0.0; TILE]),
                }
                while rest != 0 {
                    let state = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    for (part, column) in row.iter_mut().zip(matrix[state..].iter().step_by(n)) {
                        part.iter_mut().zip(column).for_each(|(r, p)| *r += p);
                    }
                }
            }
        }
    }

    /// Coefficients `[length][0, 1 or 2][category][eigenvalue]` of the likelihood and its derivatives.
    pub(super) fn slopes(&self, lengths: impl Iterator<Item = f64>, slopes: &mut Vec<f64>) {
        slopes.clear();
        for length in lengths {
            let at = slopes.len();
            let n = self.slope_len();
            slopes.resize(at + 3 * n, 0.0);
            let (e, rest) = slopes[at..].split_at_mut(n);
            let (first, second) = rest.split_at_mut(n);
            self.vectors(length, e, None);
            for (k, exponent) in self.exponents.iter().enumerate() {
                first[k] = exponent * e[k];
                second[k] = exponent * first[k];
            }
        }
    }
}
