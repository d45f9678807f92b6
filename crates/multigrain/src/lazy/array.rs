//! Arrays that are described and not yet computed.

use super::base::{Base, Made};
use super::build::{self, Built};
use super::expression::Expression;
use super::output::Output;
use super::pass::{Folded, Histogram, Pass, Stored};
use crate::app::{input, output};
use crate::error::Error;
use crate::job::Source;
use crate::options::{Options, Settings};
use crate::outcome::Outcome;
use crate::runtime::Runtime;
use multigrain_machine::parse_bytes;
use multigrain_program::{
    AnyArray, Element, Max, Min, Operator, Program, RANK_MAX, Read, Region, Scalars, Shape, Sum, Task, Write,
};
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An array that is described and not yet computed: elements `T`, `R` dimensions. See [the module](crate::lazy).
pub struct Lazy<T, const R: usize> {
    expression: Expression<T>,
    shape: Shape,
}

impl<T: Clone, const R: usize> Clone for Lazy<T, R> {
    fn clone(&self) -> Self {
        Lazy { expression: self.expression.clone(), shape: self.shape }
    }
}

/// A result and the file it goes to.
pub struct Save {
    base: Arc<Base>,
    path: PathBuf,
}

/// Results that are computed by one program: a [`Save`], a tuple of them, or a list.
pub trait Saves {
    /// All of them.
    fn saves(self) -> Vec<Save>;
}

impl Saves for Save {
    fn saves(self) -> Vec<Save> {
        vec![self]
    }
}

impl Saves for Vec<Save> {
    fn saves(self) -> Vec<Save> {
        self
    }
}

macro_rules! saves {
    ($($name:ident)+) => {
        impl Saves for ($(saves!(@ $name),)+) {
            fn saves(self) -> Vec<Save> {
                let ($($name,)+) = self;
                vec![$($name),+]
            }
        }
    };
    (@ $name:ident) => { Save };
}
saves!(a b);
saves!(a b c);
saves!(a b c d);
saves!(a b c d e);
saves!(a b c d e f);

fn base<T: Element>(shape: Shape, made: Made) -> Arc<Base> {
    Arc::new(Base { element: T::TYPE, shape, made })
}

/// One result of a pass over all elements.
fn made<T: Element>(output: impl Output + 'static, from: &[Arc<Base>], over: Shape, shape: Shape) -> Arc<Base> {
    base::<T>(shape, Made::Pass { output: Arc::new(output), from: from.to_vec(), over })
}

/// Combined along one dimension: what is left, and its shape.
fn fold<T: Element, O: Operator<T>>(expression: &Expression<T>, over: Shape, axis: usize) -> (Expression<T>, Shape) {
    let (rank, mut dims) = (over.rank(), over.dims().to_vec());
    assert!(axis < rank, "axis {axis} of an array of {rank} dimensions, which are counted from 0");
    dims.remove(axis);
    let shape = Shape::new(if dims.is_empty() { &[1] } else { &dims });
    let folded = Folded::<T, O> { expression: expression.clone(), rank, axis, operator: PhantomData };
    (Expression::array(made::<T>(folded, &expression.bases, over, shape)), shape)
}

impl<T: Element, const R: usize> Lazy<T, R> {
    fn new(base: Arc<Base>) -> Lazy<T, R> {
        const { assert!(R >= 1 && R <= RANK_MAX, "one to RANK_MAX dimensions") };
        Lazy { shape: base.shape, expression: Expression::array(base) }
    }

    /// Lengths along each dimension.
    pub fn shape(&self) -> [u64; R] {
        std::array::from_fn(|d| self.shape.dims()[d])
    }

    fn with<U: Element>(&self, expression: Expression<U>) -> Lazy<U, R> {
        Lazy { expression, shape: self.shape }
    }

    /// The array as one that is stored while the program runs.
    fn stored(&self) -> Arc<Base> {
        if self.expression.plain {
            return self.expression.bases[0].clone();
        }
        self.copied()
    }

    fn copied(&self) -> Arc<Base> {
        let stored = Stored { expression: self.expression.clone(), rank: R };
        made::<T>(stored, &self.expression.bases, self.shape, self.shape)
    }

    /// What something is made of: itself, or what was stored of it.
    fn operand(&self) -> Expression<T> {
        match self.expression.is_long() {
            true => Expression::array(self.copied()),
            false => self.expression.clone(),
        }
    }

    /// A function of each element.
    #[must_use]
    pub fn map<U: Element>(&self, f: impl Fn(T) -> U + Send + Sync + 'static) -> Lazy<U, R> {
        self.with(self.operand().map(f))
    }

    /// A function of each element and the one at the same place of another array.
    ///
    /// # Errors
    /// [`Error::Request`] when the shapes differ, or too many arrays would be read at once.
    pub fn zip<U: Element, V: Element>(
        &self,
        other: &Lazy<U, R>,
        f: impl Fn(T, U) -> V + Send + Sync + 'static,
    ) -> Result<Lazy<V, R>, Error> {
        if self.shape != other.shape {
            let (one, other) = (self.shape, other.shape);
            return Err(Error::Request(format!("arrays of {one} and {other} elements cannot be zipped")));
        }
        let zipped = self.operand().zip(&other.operand(), f);
        if zipped.bases.len() > Pass::INPUTS_MAX {
            let (found, most) = (zipped.bases.len(), Pass::INPUTS_MAX);
            return Err(Error::Request(format!(
                "{found} arrays are read at once, of at most {most}; save one between"
            )));
        }
        Ok(self.with(zipped))
    }

    /// Divided by a count that follows from shapes.
    fn over(&self, count: f64) -> Lazy<f64, R>
    where
        T: Into<f64>,
    {
        self.with(self.operand().map_told(move |sum| sum.into() / count, Some(count.to_bits())))
    }

    fn all<U: Element, O: Operator<U>>(mut expression: Expression<U>, mut shape: Shape) -> Lazy<U, 1> {
        for axis in (0..R).rev() {
            (expression, shape) = fold::<U, O>(&expression, shape, axis);
        }
        Lazy { expression, shape }
    }

    /// The sum of all elements, in one element.
    #[must_use]
    pub fn sum<U: Element>(&self) -> Lazy<U, 1>
    where
        T: Into<U>,
        Sum: Operator<U>,
    {
        Self::all::<U, Sum>(self.operand().map(T::into), self.shape)
    }

    /// The mean of all elements, in one element.
    #[must_use]
    pub fn mean(&self) -> Lazy<f64, 1>
    where
        T: Into<f64>,
    {
        let count = self.shape.elements() as f64;
        self.sum::<f64>().over(count)
    }

    /// The smallest element, in one element; a NaN wins.
    #[must_use]
    pub fn min(&self) -> Lazy<T, 1>
    where
        Min: Operator<T>,
    {
        Self::all::<T, Min>(self.expression.clone(), self.shape)
    }

    /// The largest element, in one element; a NaN wins.
    #[must_use]
    pub fn max(&self) -> Lazy<T, 1>
    where
        Max: Operator<T>,
    {
        Self::all::<T, Max>(self.expression.clone(), self.shape)
    }

    /// How many elements lie in each of `bins` bins of one width that divide a range, as NumPy's `histogram` counts them:
    /// each bin without its end, the last with it; what lies outside the range is not counted.
    ///
    /// # Panics
    /// When there is no bin, or the range is empty: a mistake in the program, not in its input.
    #[must_use]
    pub fn histogram(&self, bins: usize, range: Range<f64>) -> Lazy<u64, 1>
    where
        T: Into<f64>,
    {
        assert!(bins > 0 && range.start < range.end && (range.end - range.start).is_finite(), "bins in a finite range");
        let histogram = Histogram { expression: self.expression.clone(), rank: R, bins, range };
        Lazy::new(made::<u64>(histogram, &self.expression.bases, self.shape, Shape::new(&[bins as u64])))
    }

    /// What some steps of a task make of the array, each reading what the one before has written: a stencil, for example.
    #[must_use]
    pub fn iterate<K>(&self, steps: u64, task: K) -> Lazy<T, R>
    where
        K: Task<Params = (Read<T, R>, Write<T, R>)>,
    {
        if steps == 0 {
            return self.clone();
        }
        let told = size_of::<K>() == 0 || task.version() != 0;
        let task = Program::erase(task);
        let step = move |program: &mut Program, pairs: &[(AnyArray, AnyArray)]| {
            let task = program.any_task::<K>(task.clone());
            pairs.iter().try_for_each(|(from, to)| program.any_call(task, &[from.all(), to.all()], Scalars::new()))
        };
        Lazy::new(base::<T>(self.shape, Made::Iterated { from: self.stored(), steps, step: Arc::new(step), told }))
    }

    /// The array in a file: `.npy`, or bare elements under any other name. Nothing is computed before
    /// [`Runtime::compute`].
    #[must_use]
    pub fn save(&self, path: impl AsRef<Path>) -> Save {
        let base = self.stored();
        let base = if let Made::Given(_) = base.made { self.copied() } else { base };
        Save { base, path: path.as_ref().to_owned() }
    }
}

macro_rules! along_axes {
    ($($rank:literal to $less:literal),*) => {$(
        impl<T: Element> Lazy<T, $rank> {
            /// Elements combined along one dimension, which is gone then (of a vector one element remains), by an operator
            /// that does not mind the order but for rounding.
            ///
            /// # Panics
            /// When there is no such dimension: a mistake in the program, not in its input. So do the others.
            #[must_use]
            pub fn reduce_axis<O: Operator<T>>(&self, axis: usize) -> Lazy<T, $less> {
                let (expression, shape) = fold::<T, O>(&self.expression, self.shape, axis);
                Lazy { expression, shape }
            }

            /// Sums along one dimension.
            #[must_use]
            pub fn sum_axis<U: Element>(&self, axis: usize) -> Lazy<U, $less>
            where
                T: Into<U>,
                Sum: Operator<U>,
            {
                self.map(T::into).reduce_axis::<Sum>(axis)
            }

            /// Means along one dimension.
            #[must_use]
            pub fn mean_axis(&self, axis: usize) -> Lazy<f64, $less>
            where
                T: Into<f64>,
            {
                let sums = self.sum_axis::<f64>(axis);
                let count = self.shape.dims()[axis] as f64;
                sums.over(count)
            }

            /// The smallest elements along one dimension; a NaN wins.
            #[must_use]
            pub fn min_axis(&self, axis: usize) -> Lazy<T, $less>
            where
                Min: Operator<T>,
            {
                self.reduce_axis::<Min>(axis)
            }

            /// The largest elements along one dimension; a NaN wins.
            #[must_use]
            pub fn max_axis(&self, axis: usize) -> Lazy<T, $less>
            where
                Max: Operator<T>,
            {
                self.reduce_axis::<Max>(axis)
            }
        }
    )*};
}
along_axes!(1 to 1, 2 to 1, 3 to 2, 4 to 3, 5 to 4, 6 to 5);

impl Runtime {
    /// A runtime on this computer that uses so much memory: `"4MiB"`.
    ///
    /// # Errors
    /// When this is no quantity of bytes, or the system refuses what a runtime needs.
    pub fn with_memory(memory: &str) -> Result<Runtime, Error> {
        Runtime::new(Options { memory_bytes: Some(parse_bytes(memory)?), ..Options::default() })
    }

    /// An array in a .npy file. Its header is read; its elements are when something is computed from them.
    ///
    /// # Errors
    /// The file cannot be read, or holds other elements than `T`, another number of dimensions than `R`, or nothing.
    pub fn npy<T: Element, const R: usize>(&self, path: impl AsRef<Path>) -> Result<Lazy<T, R>, Error> {
        let (shape, source) = input(self, path.as_ref(), T::TYPE, R, None)?;
        Ok(Lazy::new(base::<T>(shape, Made::Given(source))))
    }

    /// Random numbers, uniform in [-1, 1) for floating-point types: see [`crate::generate`].
    pub fn generated<T: Element, const R: usize>(&self, shape: [u64; R], seed: u64) -> Lazy<T, R> {
        Lazy::new(base::<T>(Shape::new(&shape), Made::Given(Source::Generated { seed })))
    }

    /// An array of elements that are at hand, row-major.
    ///
    /// # Errors
    /// [`Error::Request`] when there are not as many as the shape has.
    pub fn array<T: Element, const R: usize>(&self, shape: [u64; R], values: &[T]) -> Result<Lazy<T, R>, Error> {
        let shape = Shape::new(&shape);
        if shape.elements() != values.len() as u64 {
            let len = values.len();
            return Err(Error::Request(format!("an array of {shape} has {} elements, not {len}", shape.elements())));
        }
        Ok(Lazy::new(base::<T>(shape, Made::Given(Source::Bytes(T::as_bytes(values).to_vec())))))
    }

    /// Computes results and saves them; what several of them need is read once where it can be. They appear under their
    /// names, whole, when this returns.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub fn compute(&self, results: impl Saves) -> Result<Outcome, Error> {
        self.compute_with(results, Settings::default())
    }

    /// The same, with settings: a run that was interrupted is continued or thrown away, for example.
    ///
    /// # Errors
    /// As [`Runtime::run`]; and [`Error::Request`] when a run is to be continued in which a function holds values of its own,
    /// or the task of an iteration does and has no [`Task::version`]: nobody could tell whether these are the same. A function
    /// without such values is taken to be the same as long as the program is: what it looks up elsewhere (a static that is set when the program starts, a file) has to be what it was.
    pub fn compute_with(&self, results: impl Saves, settings: Settings<'_>) -> Result<Outcome, Error> {
        let sink = |save: Save| Ok((save.base, Some(output(&save.path)?)));
        let results = results.saves().into_iter().map(sink).collect::<Result<Vec<_>, Error>>()?;
        let Built { job, told, .. } = build::job(&results, |steps| self.check_steps(steps))?;
        if settings.resume && !told {
            let what = "a function of these results holds values of its own, or the task of an iteration does and has no \
                        version, so that nobody can tell whether they are those of the interrupted run";
            return Err(Error::Request(format!(
                "cannot continue: {what}; let it use constants only or say its version, or throw the work away (discard)"
            )));
        }
        self.run(&job, settings)
    }

    /// Refuses steps whose calls, each with what it reads and what it writes, do not fit the memory.
    fn check_steps(&self, steps: u64) -> Result<(), Error> {
        self.check_calls("compute", steps, 2)
    }

    /// Computes an array, row-major, for small ones: all of it is in memory then.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub fn values<T: Element, const R: usize>(&self, array: &Lazy<T, R>) -> Result<Vec<T>, Error> {
        let base = array.stored();
        let base = if let Made::Given(_) = base.made { array.copied() } else { base };
        let Built { job, arrays, .. } = build::job(&[(base, None)], |steps| self.check_steps(steps))?;
        let outcome = self.run(&job, Settings::default())?;
        Ok(T::from_bytes(&outcome.read(arrays[0].index(), &Region::whole(array.shape))?))
    }
}
