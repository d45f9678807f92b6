//! What is computed element by element from rows of arrays.

use super::base::Base;
use multigrain_program::{AnyView, Element};
use std::any::TypeId;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Elements that are computed at once: few enough to stay in the first cache with what they are computed from.
const CHUNK: usize = 512;

/// What makes more on the way is stored before anything else is made of it: a stack has 2 MiB.
const MADE_BYTES_MAX: usize = 256 << 10;

/// One row of each array of an expression.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// The blocks of all arrays of a pass.
    pub(super) views: &'a [AnyView<'a>],
    /// Of these, those of the expression.
    pub(super) of: &'a [usize],
    /// Which row.
    pub(super) index: &'a [usize],
}

/// Computes a range of a row.
type Evaluate<T> = Arc<dyn Fn(Rows<'_>, Range<usize>, &mut [T]) + Send + Sync>;

/// What tells a function from others of this program; `None` where it holds values of its own, which nobody can look at.
fn function<F: 'static>(_: &F) -> Option<u64> {
    (size_of::<F>() == 0).then(|| hashed(TypeId::of::<F>()))
}

/// A hash, the same in every run of a program.
pub(super) fn hashed(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// An array that need not be stored: each element depends on the same element of some arrays of its shape.
#[derive(Clone)]
pub(super) struct Expression<T> {
    pub(super) bases: Vec<Arc<Base>>,
    evaluate: Evaluate<T>,
    /// Whether it is its array as it is.
    pub(super) plain: bool,
    /// Bytes of all values that are made on the way to [`CHUNK`] elements: they lie on the stack of who computes them, and
    /// tell how much is computed, again wherever it stands twice.
    made_bytes: usize,
    /// What tells its functions from others; `None` where one holds values of its own.
    pub(super) functions: Option<u64>,
}

impl<T: Element> Expression<T> {
    /// An array as it is.
    pub(super) fn array(base: Arc<Base>) -> Expression<T> {
        let evaluate = |rows: Rows<'_>, range: Range<usize>, out: &mut [T]| {
            out.copy_from_slice(&rows.views[rows.of[0]].row::<T>(rows.index)[range]);
        };
        Expression { bases: vec![base], evaluate: Arc::new(evaluate), plain: true, made_bytes: 0, functions: Some(0) }
    }

    /// Whether it is to be stored before more is made of it.
    pub(super) fn is_long(&self) -> bool {
        self.made_bytes > MADE_BYTES_MAX
    }

    pub(super) fn map<U: Element>(&self, f: impl Fn(T) -> U + Send + Sync + 'static) -> Expression<U> {
        let told = function(&f);
        self.map_told(f, told)
    }

    /// A function of each element, and what tells it from others.
    pub(super) fn map_told<U: Element>(
        &self,
        f: impl Fn(T) -> U + Send + Sync + 'static,
        told: Option<u64>,
    ) -> Expression<U> {
        let inner = self.evaluate.clone();
        let evaluate = move |rows: Rows<'_>, range: Range<usize>, out: &mut [U]| {
            let mut values = [T::default(); CHUNK];
            for (number, out) in out.chunks_mut(CHUNK).enumerate() {
                let start = range.start + number * CHUNK;
                let values = &mut values[..out.len()];
                inner(rows, start..start + values.len(), values);
                out.iter_mut().zip(values).for_each(|(out, &mut value)| *out = f(value));
            }
        };
        let functions = self.functions.zip(told).map(hashed);
        let made_bytes = self.made_bytes + CHUNK * size_of::<T>();
        Expression { bases: self.bases.clone(), evaluate: Arc::new(evaluate), plain: false, made_bytes, functions }
    }

    pub(super) fn zip<U: Element, V: Element>(
        &self,
        other: &Expression<U>,
        f: impl Fn(T, U) -> V + Send + Sync + 'static,
    ) -> Expression<V> {
        let mut bases = self.bases.clone();
        let number = |base: &Arc<Base>| {
            bases.iter().position(|known| Arc::ptr_eq(known, base)).unwrap_or_else(|| {
                bases.push(base.clone());
                bases.len() - 1
            })
        };
        // Where the arrays of the other stand among all.
        let others: Vec<usize> = other.bases.iter().map(number).collect();
        let told = self.functions.zip(other.functions).zip(function(&f));
        let functions = told.map(|functions| hashed((functions, &others)));
        let (left, right) = (self.evaluate.clone(), other.evaluate.clone());
        let evaluate = move |rows: Rows<'_>, range: Range<usize>, out: &mut [V]| {
            let of: smallvec::SmallVec<[usize; 8]> = others.iter().map(|&number| rows.of[number]).collect();
            let (mut first, mut second) = ([T::default(); CHUNK], [U::default(); CHUNK]);
            for (number, out) in out.chunks_mut(CHUNK).enumerate() {
                let start = range.start + number * CHUNK;
                let part = start..start + out.len();
                left(rows, part.clone(), &mut first[..out.len()]);
                right(Rows { of: &of, ..rows }, part, &mut second[..out.len()]);
                out.iter_mut().zip(first.iter().zip(&second)).for_each(|(out, (&a, &b))| *out = f(a, b));
            }
        };
        let made_bytes = self.made_bytes + other.made_bytes + CHUNK * (size_of::<T>() + size_of::<U>());
        Expression { bases, evaluate: Arc::new(evaluate), plain: false, made_bytes, functions }
    }

    /// Computes a whole row.
    pub(super) fn row(&self, rows: Rows<'_>, out: &mut [T]) {
        (self.evaluate)(rows, 0..out.len(), out);
    }

    /// Computes a row of `len` elements, some at once: where they begin, and what they are.
    pub(super) fn chunks(&self, rows: Rows<'_>, len: usize, mut take: impl FnMut(usize, &[T])) {
        if self.plain {
            return take(0, &rows.views[rows.of[0]].row::<T>(rows.index)[..len]);
        }
        let mut values = [T::default(); CHUNK];
        for start in (0..len).step_by(CHUNK) {
            let count = CHUNK.min(len - start);
            (self.evaluate)(rows, start..start + count, &mut values[..count]);
            take(start, &values[..count]);
        }
    }
}
