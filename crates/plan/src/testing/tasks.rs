//! Tasks whose results are the same bits under every legal split.

use multigrain_program::{
    CallShape, Callee, DynTask, Element, LeafContext, Program, Read, Region, Scalars, Shape, SubCall, Task, Tunable,
    Tunables, Update, View, ViewMut, Work, Write,
};
use std::marker::PhantomData;
use std::sync::Arc;

/// Elements that the test tasks compute with; every operation has one result, bit for bit.
pub trait Number: Element {
    /// `a * b + c`, rounded once; modulo 256 for bytes.
    fn fused(a: Self, b: Self, c: Self) -> Self;
    /// A small number.
    fn small(value: u64) -> Self;
}

impl Number for f32 {
    fn fused(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    fn small(value: u64) -> f32 {
        (value % 256) as f32
    }
}

impl Number for f64 {
    fn fused(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    fn small(value: u64) -> f64 {
        (value % 256) as f64
    }
}

impl Number for u8 {
    fn fused(a: u8, b: u8, c: u8) -> u8 {
        a.wrapping_mul(b).wrapping_add(c)
    }
    fn small(value: u64) -> u8 {
        value as u8
    }
}

const AXES: [&str; 4] = ["d0", "d1", "d2", "d3"];

fn axes(shape: &Shape) -> Vec<Tunable> {
    shape.dims().iter().zip(AXES).map(|(&extent, name)| Tunable { name, extent, multiple: 1 }).collect()
}

/// The blocks of the given lengths that cover a shape, row-major.
fn tiles(shape: &Shape, lengths: &[u64]) -> Vec<Region> {
    let mut tiles = vec![(Vec::new(), Vec::new())];
    for (&extent, &length) in shape.dims().iter().zip(lengths) {
        let mut longer = Vec::new();
        for (start, len) in &tiles {
            for at in (0..extent).step_by(length.max(1) as usize) {
                let (mut start, mut len): (Vec<u64>, Vec<u64>) = (start.clone(), len.clone());
                start.push(at);
                len.push(length.min(extent - at));
                longer.push((start, len));
            }
        }
        tiles = longer;
    }
    tiles.into_iter().map(|(start, len)| Region::new(&start, &len)).collect()
}

fn axis_tiles(shape: &Shape, tunables: &Tunables) -> Vec<Region> {
    let lengths: Vec<u64> = shape.dims().iter().zip(AXES).map(|(&e, name)| tunables.get(name, e)).collect();
    tiles(shape, &lengths)
}

fn itself(args: &[(usize, Region)], scalars: &Scalars) -> SubCall {
    SubCall { callee: Callee::Itself, args: args.to_vec(), scalars: scalars.clone() }
}

fn work(elements: u64, blocks: u64, bytes: u64) -> Work {
    Work { flops: 2.0 * elements as f64, bytes: (elements * blocks * bytes) as f64 }
}

/// All indices of the dimensions but the last, row-major.
fn rows<const R: usize>(shape: [usize; R]) -> Vec<Vec<usize>> {
    let outer: Vec<u64> = shape[..R - 1].iter().map(|&n| n as u64).collect();
    let ones = vec![1; outer.len()];
    tiles(&Shape::new(&outer), &ones).iter().map(|r| r.start().iter().map(|&i| i as usize).collect()).collect()
}

/// `out = a * scalar 0 + b`, element by element. Parameters: a, b (read), out (written); scalar 0: a small integer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Combine<T, const R: usize>(PhantomData<T>);

impl<T: Number, const R: usize> Task for Combine<T, R> {
    type Params = (Read<T, R>, Read<T, R>, Write<T, R>);

    fn name(&self) -> &'static str {
        "combine"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["a", "b", "out"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        axes(&call.shapes[2])
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let tiles = axis_tiles(&call.shapes[2], tunables);
        tiles.into_iter().map(|tile| itself(&[(0, tile), (1, tile), (2, tile)], &call.scalars)).collect()
    }
    fn leaf(
        &self,
        (a, b, mut out): (View<'_, T, R>, View<'_, T, R>, ViewMut<'_, T, R>),
        context: &mut LeafContext<'_>,
    ) {
        let factor = T::small(context.scalars.u64(0));
        for row in rows(out.shape()) {
            for ((out, &a), &b) in out.row_mut(&row).iter_mut().zip(a.row(&row)).zip(b.row(&row)) {
                *out = T::fused(a, factor, b);
            }
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        work(call.shapes[2].elements(), 3, T::TYPE.size_bytes())
    }
}

/// `x = x * 3 + a`, element by element. Parameters: x (updated), a (read).
#[derive(Clone, Copy, Debug, Default)]
pub struct Scale<T, const R: usize>(PhantomData<T>);

impl<T: Number, const R: usize> Task for Scale<T, R> {
    type Params = (Update<T, R>, Read<T, R>);

    fn name(&self) -> &'static str {
        "scale"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["x", "a"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        axes(&call.shapes[0])
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let tiles = axis_tiles(&call.shapes[0], tunables);
        tiles.into_iter().map(|tile| itself(&[(0, tile), (1, tile)], &call.scalars)).collect()
    }
    fn leaf(&self, (mut x, a): (ViewMut<'_, T, R>, View<'_, T, R>), _: &mut LeafContext<'_>) {
        for row in rows(x.shape()) {
            for (x, &a) in x.row_mut(&row).iter_mut().zip(a.row(&row)) {
                *x = T::fused(*x, T::small(3), a);
            }
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        work(call.shapes[0].elements(), 2, T::TYPE.size_bytes())
    }
}

/// Each element of `out` from the 3 x 3 elements around it, as far as they exist. Parameters: in (read), out (written);
/// scalars 0 and 1: by how many rows and columns `in` extends beyond `out` at the top and at the left, 0 or 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stencil<T>(PhantomData<T>);

impl<T> Stencil<T> {
    /// The part of an axis of length `limit` that `len` elements from `start` need, and how far it extends before them.
    pub fn grown(start: u64, len: u64, limit: u64) -> (u64, u64, u64) {
        let from = start.saturating_sub(1);
        (from, (start + len + 1).min(limit) - from, start - from)
    }
}

impl<T: Number> Task for Stencil<T> {
    type Params = (Read<T, 2>, Write<T, 2>);

    fn name(&self) -> &'static str {
        "stencil"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["in", "out"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        axes(&call.shapes[1])
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let around = |tile: Region| {
            let (mut start, mut len, mut before) = ([0; 2], [0; 2], [0; 2]);
            for d in 0..2 {
                let first = tile.start()[d] + call.scalars.u64(d);
                (start[d], len[d], before[d]) = Self::grown(first, tile.len()[d], call.shapes[0].dims()[d]);
            }
            let scalars = Scalars::new().with_u64(before[0]).with_u64(before[1]);
            itself(&[(0, Region::new(&start, &len)), (1, tile)], &scalars)
        };
        axis_tiles(&call.shapes[1], tunables).into_iter().map(around).collect()
    }
    fn leaf(&self, (input, mut out): (View<'_, T, 2>, ViewMut<'_, T, 2>), context: &mut LeafContext<'_>) {
        let (top, left) = (context.scalars.u64(0) as usize, context.scalars.u64(1) as usize);
        let ([rows, columns], [out_rows, out_columns]) = (input.shape(), out.shape());
        for i in 0..out_rows {
            for j in 0..out_columns {
                let mut sum = T::small(0);
                for r in (i + top).saturating_sub(1)..(i + top + 2).min(rows) {
                    for c in (j + left).saturating_sub(1)..(j + left + 2).min(columns) {
                        let weight = 1 + 3 * (r + 1 - i - top) + (c + 1 - j - left);
                        sum = T::fused(input.row(&[r])[c], T::small(weight as u64), sum);
                    }
                }
                out.row_mut(&[i])[j] = sum;
            }
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        let outputs = call.shapes[1].elements();
        Work { flops: 18.0 * outputs as f64, bytes: (2 * outputs * T::TYPE.size_bytes()) as f64 }
    }
}

/// Partial sums of a product end at multiples of this.
pub(super) const SPAN: u64 = 4;

fn product_axes(call: &CallShape) -> Vec<Tunable> {
    let ([m, k], n) = ([call.shapes[0].dims()[0], call.shapes[0].dims()[1]], call.shapes[1].dims()[1]);
    let axis = |name, extent, multiple| Tunable { name, extent, multiple };
    vec![axis("m", m, 1), axis("n", n, 1), axis("k", k, SPAN)]
}

fn product_tiles(call: &CallShape, tunables: &Tunables) -> Vec<[Region; 3]> {
    let ([m, k], n) = ([call.shapes[0].dims()[0], call.shapes[0].dims()[1]], call.shapes[1].dims()[1]);
    let lengths = [tunables.get("m", m), tunables.get("n", n), tunables.get("k", k)];
    let tile = |t: Region| {
        let ([i, j, p], [di, dj, dp]) = ([0, 1, 2].map(|d| t.start()[d]), [0, 1, 2].map(|d| t.len()[d]));
        [Region::new(&[i, p], &[di, dp]), Region::new(&[p, j], &[dp, dj]), Region::new(&[i, j], &[di, dj])]
    };
    tiles(&Shape::new(&[m, n, k]), &lengths).into_iter().map(tile).collect()
}

/// Adds the spans of a product to `c`, the first one to nothing when `fresh`.
fn product<T: Number>(
    a: &View<'_, T, 2>,
    b: &View<'_, T, 2>,
    c: &mut ViewMut<'_, T, 2>,
    fresh: bool,
    scratch: &mut [u8],
) {
    assert!(scratch.len() >= scratch_of::<T>(b.len(1) as u64) as usize, "scratch of {} bytes", scratch.len());
    assert!(scratch.as_ptr().addr().is_multiple_of(64), "scratch is not aligned to 64 bytes");
    scratch.fill(0xa5);
    let ([m, k], n) = (a.shape(), b.len(1));
    for i in 0..m {
        for j in 0..n {
            for (number, from) in (0..k).step_by(SPAN as usize).enumerate() {
                let mut sum = T::small(0);
                for p in from..(from + SPAN as usize).min(k) {
                    sum = T::fused(a.row(&[i])[p], b.row(&[p])[j], sum);
                }
                let before = if fresh && number == 0 { T::small(0) } else { c.row(&[i])[j] };
                c.row_mut(&[i])[j] = T::fused(sum, T::small(1), before);
            }
        }
    }
}

fn scratch_of<T: Number>(columns: u64) -> u64 {
    columns * T::TYPE.size_bytes()
}

fn product_work<T: Number>(call: &CallShape) -> Work {
    let n = call.shapes[1].dims()[1];
    let elements: u64 = call.shapes.iter().map(Shape::elements).sum();
    Work { flops: (2 * call.shapes[0].elements() * n) as f64, bytes: (elements * T::TYPE.size_bytes()) as f64 }
}

/// `c = a * b`, matrices. Parameters: a, b (read), c (written). Asks for scratch memory and scribbles over it.
#[derive(Clone)]
pub struct Product<T> {
    update: Arc<dyn DynTask>,
    element: PhantomData<T>,
}

impl<T: Number> Default for Product<T> {
    fn default() -> Product<T> {
        Product { update: Program::erase(ProductUpdate::<T>::default()), element: PhantomData }
    }
}

impl<T: Number> Task for Product<T> {
    type Params = (Read<T, 2>, Read<T, 2>, Write<T, 2>);

    fn name(&self) -> &'static str {
        "product"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["a", "b", "c"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        product_axes(call)
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let sub = |[a, b, c]: [Region; 3]| {
            let first = itself(&[(0, a), (1, b), (2, c)], &call.scalars);
            let callee = if a.start()[1] == 0 { Callee::Itself } else { Callee::Task(self.update.clone()) };
            SubCall { callee, ..first }
        };
        product_tiles(call, tunables).into_iter().map(sub).collect()
    }
    fn leaf(&self, (a, b, mut c): (View<'_, T, 2>, View<'_, T, 2>, ViewMut<'_, T, 2>), context: &mut LeafContext<'_>) {
        product(&a, &b, &mut c, true, context.scratch);
    }
    fn scratch_bytes(&self, call: &CallShape, _capacity_bytes: u64) -> u64 {
        scratch_of::<T>(call.shapes[1].dims()[1])
    }
    fn work(&self, call: &CallShape) -> Work {
        product_work::<T>(call)
    }
}

/// `c = c + a * b`, matrices. Parameters: a, b (read), c (updated).
#[derive(Clone, Copy, Debug, Default)]
pub struct ProductUpdate<T>(PhantomData<T>);

impl<T: Number> Task for ProductUpdate<T> {
    type Params = (Read<T, 2>, Read<T, 2>, Update<T, 2>);

    fn name(&self) -> &'static str {
        "product update"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["a", "b", "c"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        product_axes(call)
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let sub = |[a, b, c]: [Region; 3]| itself(&[(0, a), (1, b), (2, c)], &call.scalars);
        product_tiles(call, tunables).into_iter().map(sub).collect()
    }
    fn leaf(&self, (a, b, mut c): (View<'_, T, 2>, View<'_, T, 2>, ViewMut<'_, T, 2>), context: &mut LeafContext<'_>) {
        product(&a, &b, &mut c, false, context.scratch);
    }
    fn scratch_bytes(&self, call: &CallShape, _capacity_bytes: u64) -> u64 {
        scratch_of::<T>(call.shapes[1].dims()[1])
    }
    fn work(&self, call: &CallShape) -> Work {
        product_work::<T>(call)
    }
}

/// `out[j, i] = in[i, j]`. Parameters: in (read), out (written).
#[derive(Clone, Copy, Debug, Default)]
pub struct Transpose<T>(PhantomData<T>);

impl<T: Number> Task for Transpose<T> {
    type Params = (Read<T, 2>, Write<T, 2>);

    fn name(&self) -> &'static str {
        "transpose"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["in", "out"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        axes(&call.shapes[0])
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let swap = |v: &[u64]| [v[1], v[0]];
        let sub = |tile: Region| {
            let out = Region::new(&swap(tile.start()), &swap(tile.len()));
            itself(&[(0, tile), (1, out)], &call.scalars)
        };
        axis_tiles(&call.shapes[0], tunables).into_iter().map(sub).collect()
    }
    fn leaf(&self, (input, mut out): (View<'_, T, 2>, ViewMut<'_, T, 2>), _: &mut LeafContext<'_>) {
        for i in 0..input.len(0) {
            for j in 0..input.len(1) {
                out.row_mut(&[j])[i] = input.row(&[i])[j];
            }
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        work(call.shapes[0].elements(), 2, T::TYPE.size_bytes())
    }
}
