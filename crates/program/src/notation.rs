//! Index notation: which axes a task has, and how they cut each of its parameters.
//!
//! A product of matrices is `axes m, n, k (sums end every 256)  A[m, k]  B[k, n]  C[m, n]`; a convolution is `axes m, n
//! in[m +- h, n +- w]  weights[:, :]  out[m, n]`; a transform along the last dimension is `axes x, y  data[x, y, :]`. The
//! blocks of a split, their footprints and what moves follow from it, before any list of calls exists.
//!
//! An axis that cuts no dimension of a parameter that is written is *folded* there: the calls along it work on one block,
//! in order, and the leaf variant is told which of them is the first ([`LeafContext::first`](crate::LeafContext::first)).
//! A parameter of kind [`Reduce`](crate::Reduce) is reduced along such an axis instead.

use crate::{Access, CallShape, Param, Tunable, Work};
use smallvec::SmallVec;

mod split;

/// How far the block of a dimension reaches beyond the block of its axis, on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// So many elements before and after.
    Fixed(u64, u64),
    /// Half of a dimension of another parameter, rounded down.
    HalfOf { param: &'static str, dim: usize },
}

/// How one dimension of a parameter is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// Name of the axis; `None` for a dimension that is never cut.
    axis: Option<&'static str>,
    reach: Option<Reach>,
}

/// A dimension of which a block has all: `:`.
pub fn whole() -> Index {
    Index { axis: None, reach: None }
}

/// A dimension that an axis cuts.
pub fn along(axis: &'static str) -> Index {
    Index { axis: Some(axis), reach: None }
}

/// A dimension that an axis cuts, with so many elements before and after each block, cut off where the array ends.
pub fn around(axis: &'static str, before: u64, after: u64) -> Index {
    Index { axis: Some(axis), reach: Some(Reach::Fixed(before, after)) }
}

/// The same, where both sides are half of dimension `dim` of another parameter (as the taps of a filter).
pub fn around_half(axis: &'static str, param: &'static str, dim: usize) -> Index {
    Index { axis: Some(axis), reach: Some(Reach::HalfOf { param, dim }) }
}

impl From<&'static str> for Index {
    /// The name of an axis, or `:`.
    fn from(name: &'static str) -> Index {
        if name == ":" { whole() } else { along(name) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Axis {
    name: &'static str,
    every: u64,
}

/// The axes of a task and how they cut its parameters.
#[derive(Clone, Debug)]
pub struct Notation {
    axes: SmallVec<[Axis; 4]>,
    params: Vec<(&'static str, Vec<Index>)>,
    flops: f64,
}

/// One dimension of a parameter, with the numbers of axes instead of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Never cut.
    Whole,
    /// Cut by an axis.
    Axis(usize),
    /// Cut by an axis, with a halo; windows are counted in the order of parameters and dimensions.
    Window {
        /// Number of the axis.
        axis: usize,
        /// Number of the window.
        window: usize,
        /// Elements before a block and after it.
        reach: (u64, u64),
    },
}

impl Notation {
    /// The axes of the iteration space, outermost first: the order in which the calls of a split stand.
    ///
    /// # Panics
    /// When two have one name: a mistake in the task, not in its input.
    pub fn axes(names: impl IntoIterator<Item = &'static str>) -> Notation {
        let axes: SmallVec<[Axis; 4]> = names.into_iter().map(|name| Axis { name, every: 1 }).collect();
        let is_twice = |(at, axis): &(usize, &Axis)| axes[..*at].iter().any(|other| other.name == axis.name);
        if let Some((_, axis)) = axes.iter().enumerate().find(is_twice) {
            panic!("the notation declares the axis {} twice", axis.name);
        }
        Notation { axes, params: Vec::new(), flops: 0.0 }
    }

    /// Blocks of this axis end at multiples of `every` only (and at its end): where partial sums end is part of the
    /// result. Along a reduced axis this is the span of one contribution.
    ///
    /// # Panics
    /// When there is no such axis: a mistake in the task, not in its input. So do the other methods.
    #[must_use]
    pub fn every(mut self, axis: &'static str, every: u64) -> Notation {
        let number = self.number(axis);
        self.axes[number].every = every.max(1);
        self
    }

    /// The next parameter, in declared order: its name, and what cuts each of its dimensions.
    #[must_use]
    pub fn param(mut self, name: &'static str, dims: impl IntoIterator<Item = impl Into<Index>>) -> Notation {
        let dims: Vec<Index> = dims.into_iter().map(Into::into).collect();
        dims.iter().filter_map(|index| index.axis).for_each(|axis| _ = self.number(axis));
        self.params.push((name, dims));
        self
    }

    /// Floating-point operations of one point of the iteration space, for tasks whose [`Task::work`](crate::Task::work)
    /// follows from it.
    #[must_use]
    pub fn flops(mut self, flops: f64) -> Notation {
        self.flops = flops;
        self
    }

    fn number(&self, name: &str) -> usize {
        match self.axes.iter().position(|axis| axis.name == name) {
            Some(number) => number,
            None => panic!("the notation names an axis {name} that it has not declared"),
        }
    }

    /// Names of the parameters.
    pub fn param_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.params.iter().map(|(name, _)| *name)
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.axes.len()
    }

    /// How the dimensions of every parameter are cut in a call of these shapes.
    pub fn dimensions(&self, call: &CallShape) -> Vec<SmallVec<[Dimension; 4]>> {
        let mut window = 0;
        let mut dimension = |index: &Index| match (index.axis, index.reach) {
            (None, _) => Dimension::Whole,
            (Some(axis), None) => Dimension::Axis(self.number(axis)),
            (Some(axis), Some(reach)) => {
                let reach = match reach {
                    Reach::Fixed(before, after) => (before, after),
                    Reach::HalfOf { param, dim } => {
                        let number = self.params.iter().position(|(name, _)| *name == param);
                        let half = number.and_then(|p| call.shapes.get(p)).map_or(0, |s| s.dims()[dim] / 2);
                        (half, half)
                    }
                };
                window += 1;
                Dimension::Window { axis: self.number(axis), window: window - 1, reach }
            }
        };
        self.params.iter().map(|(_, dims)| dims.iter().map(&mut dimension).collect()).collect()
    }

    /// Axes along which parameter `param` is not cut.
    fn missing(&self, param: usize) -> impl Iterator<Item = usize> + '_ {
        let dims = &self.params[param].1;
        (0..self.axes.len()).filter(move |&axis| !dims.iter().any(|d| d.axis == Some(self.axes[axis].name)))
    }

    /// Whether blocks of the parameter are written by several calls of a split, in order.
    pub(crate) fn is_folded(&self, params: &[Param], param: usize) -> bool {
        matches!(params[param].access, Access::Write | Access::Update) && self.missing(param).next().is_some()
    }

    /// Whether some call of a split writes what the calls behind it update.
    pub(crate) fn writes_first(&self, params: &[Param]) -> bool {
        (0..params.len()).any(|param| params[param].access == Access::Write && self.is_folded(params, param))
    }

    /// Axes along which calls work on one block of a written parameter in order: at most one in a task.
    pub fn folded(&self, params: &[Param]) -> SmallVec<[usize; 2]> {
        let param = (0..params.len()).find(|&param| self.is_folded(params, param));
        param.map(|param| self.missing(param).collect()).unwrap_or_default()
    }

    /// The axis along which all reduced parameters are reduced. One whose operator is
    /// [exact](crate::Operator::EXACT) may be reduced along others as well.
    pub fn reduced(&self, params: &[Param]) -> Option<&'static str> {
        let reduced = || (0..params.len()).filter(|&p| params[p].access == Access::Reduce);
        let mut axes = self.missing(reduced().next()?);
        let common = axes.find(|&axis| reduced().all(|p| self.missing(p).any(|other| other == axis)))?;
        Some(self.axes[common].name)
    }

    /// What is wrong with the notation of a task with these parameters, of which some may be reduced in any order: for the author of
    /// the task.
    pub(crate) fn fault(&self, params: &[Param], is_exact: &dyn Fn(usize) -> bool) -> Option<String> {
        if params.len() != self.params.len() {
            return Some(format!("the notation has {} parameters, the task {}", self.params.len(), params.len()));
        }
        for (param, (name, dims)) in params.iter().zip(&self.params) {
            if dims.len() != param.rank {
                return Some(format!("the notation of {name} has {} dimensions, its type {}", dims.len(), param.rank));
            }
            if param.access.writes() && dims.iter().any(|d| d.reach.is_some()) {
                return Some(format!("{name} is written, so its blocks cannot overlap by a halo"));
            }
            // Of a dimension that is cut, a block's half is another length than that of all: its parts would have other halos.
            let halved = dims.iter().find_map(|index| {
                let Some(Reach::HalfOf { param, dim }) = index.reach else { return None };
                let known = self.params.iter().find(|(name, _)| *name == param).and_then(|(_, dims)| dims.get(dim));
                let fault = match known {
                    None => "does not exist",
                    Some(Index { axis: Some(_), .. }) => "an axis cuts",
                    Some(_) => return None,
                };
                Some(format!("{name} reaches half of dimension {dim} of {param}, which {fault}"))
            });
            if halved.is_some() {
                return halved;
            }
            let repeated = |i: usize| dims[i].axis.is_some() && dims[..i].iter().any(|d| d.axis == dims[i].axis);
            if (0..dims.len()).any(repeated) {
                return Some(format!("an axis cuts two dimensions of {name}"));
            }
        }
        for axis in &self.axes {
            let plain = |d: &Index| d.axis == Some(axis.name) && d.reach.is_none();
            if !self.params.iter().any(|(_, dims)| dims.iter().any(plain)) {
                return Some(format!("axis {} cuts no dimension without a halo, so its length is unknown", axis.name));
            }
        }
        let folded = self.folded(params);
        let axes_of = |p: usize| self.missing(p).collect::<SmallVec<[usize; 2]>>();
        if (0..params.len()).any(|p| self.is_folded(params, p) && axes_of(p) != folded) {
            return Some("written parameters that are folded are folded along the same axes".to_owned());
        }
        if folded.len() > 1 {
            let name = self.params[(0..params.len()).find(|&p| self.is_folded(params, p))?].0;
            let axes = folded.iter().map(|&axis| self.axes[axis].name).collect::<Vec<_>>().join(", ");
            return Some(format!(
                "{name} is folded along several axes ({axes}), and the order of blocks along them changes its bits; cut one of \
                 them, and leave the other dimensions whole (:)"
            ));
        }
        if params.iter().all(|param| param.access != Access::Reduce) {
            return None;
        }
        if self.reduced(params).is_none() {
            return Some("reduced parameters leave out one axis, and all of them the same".to_owned());
        }
        let several = |p: &usize| !is_exact(*p) && axes_of(*p).len() > 1;
        if let Some(p) = (0..params.len()).find(several) {
            let name = params[p].name;
            return Some(format!(
                "{name} leaves out several axes, and the order in which it is reduced changes its bits"
            ));
        }
        (!folded.is_empty()).then(|| "a task that reduces folds nothing".to_owned())
    }

    /// Lengths of the axes in a call of these shapes.
    ///
    /// # Errors
    /// Two dimensions that one axis cuts differ in length, or a block with a halo does not go with its axis.
    pub fn extents(&self, call: &CallShape) -> Result<SmallVec<[u64; 4]>, String> {
        let mut extents: SmallVec<[u64; 4]> = SmallVec::from_elem(0, self.axes.len());
        let mut first: SmallVec<[&str; 4]> = SmallVec::from_elem("", self.axes.len());
        let dims = self.dimensions(call);
        let each = || dims.iter().zip(&call.shapes).zip(self.param_names());
        for ((dims, shape), name) in each() {
            for (dimension, &len) in dims.iter().zip(shape.dims()) {
                if let Dimension::Axis(axis) = *dimension {
                    if extents[axis] == 0 {
                        (extents[axis], first[axis]) = (len, name);
                    } else if extents[axis] != len {
                        let (one, axis, other) = (first[axis], self.axes[axis].name, extents[axis]);
                        return Err(format!("axis {axis} is {other} long in {one} and {len} long in {name}"));
                    }
                }
            }
        }
        for ((dims, shape), name) in each() {
            for (dimension, &len) in dims.iter().zip(shape.dims()) {
                if let Dimension::Window { axis, window, reach } = *dimension {
                    let before = call.scalars.before(window);
                    let inner = before.saturating_add(extents[axis]);
                    if before > reach.0 || len < inner || len - inner > reach.1 {
                        let axis_name = self.axes[axis].name;
                        return Err(format!(
                            "{name} is {len} long along axis {axis_name} of {}, with {before} before it; it may have up to \
                             {} before and {} behind",
                            extents[axis], reach.0, reach.1
                        ));
                    }
                }
            }
        }
        Ok(extents)
    }

    /// The tunables: one for each axis.
    pub(crate) fn tunables(&self, extents: &[u64]) -> Vec<Tunable> {
        let tunable = |(axis, &extent): (&Axis, &u64)| Tunable { name: axis.name, extent, multiple: axis.every };
        self.axes.iter().zip(extents).map(tunable).collect()
    }

    /// Floating-point operations of a call, and bytes of its arguments, those of an update read and written.
    pub(crate) fn work(&self, call: &CallShape, params: &[Param]) -> Work {
        let points: f64 = self.extents(call).map_or(0.0, |extents| extents.iter().map(|&e| e as f64).product());
        let bytes = |(shape, param): (&crate::Shape, &Param)| {
            let times = if param.access == Access::Update { 2.0 } else { 1.0 };
            times * shape.elements() as f64 * param.element.size_bytes() as f64
        };
        Work { flops: points * self.flops, bytes: call.shapes.iter().zip(params).map(bytes).sum() }
    }

    /// Bytes of the largest blocks of one call when the axes are cut into blocks of these lengths, one number for each
    /// parameter.
    pub fn block_bytes(&self, call: &CallShape, params: &[Param], lengths: &[u64]) -> SmallVec<[u64; 6]> {
        let dims = self.dimensions(call);
        let bytes = |((dims, shape), param): ((&SmallVec<[Dimension; 4]>, &crate::Shape), &Param)| {
            let length = |(dimension, &len): (&Dimension, &u64)| match *dimension {
                Dimension::Whole => len,
                Dimension::Axis(axis) => lengths[axis].min(len),
                Dimension::Window { axis, reach, .. } => {
                    lengths[axis].saturating_add(reach.0).saturating_add(reach.1).min(len)
                }
            };
            let elements = dims.iter().zip(shape.dims()).map(length).fold(1, u64::saturating_mul);
            elements.saturating_mul(param.element.size_bytes())
        };
        dims.iter().zip(&call.shapes).zip(params).map(bytes).collect()
    }

    /// The number and the name of each axis.
    pub fn axis_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.axes.iter().map(|axis| axis.name)
    }
}
