//! Tasks that reduce, with an operator that tells one tree from another.

use super::tasks::{Number, SPAN};
use multigrain_program::{
    CallShape, Element, LeafContext, Max, Operator, Read, Reduce, ReduceMut, Region, SubCall, Sum, Task, Tunable,
    Tunables, View, Work, blocks,
};
use std::marker::PhantomData;

/// `left * 3 + right`: neither associative nor commutative, so that every tree of it has its own result.
#[derive(Clone, Copy, Debug)]
pub struct Mix;

impl<T: Number> Operator<T> for Mix {
    const NAME: &'static str = "mix";
    fn identity() -> T {
        T::small(0)
    }
    fn combine(left: T, right: T) -> T {
        T::fused(left, T::small(3), right)
    }
}

/// The products of the elements of two vectors, mixed. Parameters: a, b (read), out (one element, reduced).
#[derive(Clone, Copy, Debug, Default)]
pub struct Dot<T>(PhantomData<T>);

impl<T: Number> Task for Dot<T> {
    type Params = (Read<T, 1>, Read<T, 1>, Reduce<T, 1, Mix>);

    fn name(&self) -> &'static str {
        "dot"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["a", "b", "out"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        vec![Tunable { name: "n", extent: call.shapes[0].elements(), multiple: SPAN }]
    }
    fn reduced_axis(&self) -> Option<&'static str> {
        Some("n")
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let n = call.shapes[0].elements();
        let sub = |(start, len)| {
            let part = Region::new(&[start], &[len]);
            SubCall::itself([(0, part), (1, part), (2, Region::whole(call.shapes[2]))], &call.scalars)
        };
        blocks(n, tunables.get("n", n)).map(sub).collect()
    }
    fn leaf(
        &self,
        (a, b, mut out): (View<'_, T, 1>, View<'_, T, 1>, ReduceMut<'_, T, 1, Mix>),
        _: &mut LeafContext<'_>,
    ) {
        assert!(a.len(0) as u64 <= SPAN, "a contribution is one span");
        for (&a, &b) in a.row(&[]).iter().zip(b.row(&[])) {
            out.combine([0], T::fused(a, b, T::small(0)));
        }
    }
    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[0].elements() as f64;
        Work { flops: 3.0 * n, bytes: 2.0 * n * T::TYPE.size_bytes() as f64 }
    }
}

/// `c = a * b` as a sum of products of blocks, the mixed rows of a, and of each row of a the largest element. Parameters:
/// a, b (read), c, mixed, largest (reduced). Asks for scratch memory and scribbles over it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RankK<T>(PhantomData<T>);

impl<T: Number> Task for RankK<T>
where
    Sum: Operator<T>,
    Max: Operator<T>,
{
    type Params = (Read<T, 2>, Read<T, 2>, Reduce<T, 2>, Reduce<T, 1, Mix>, Reduce<T, 1, Max>);

    fn name(&self) -> &'static str {
        "rank k"
    }
    fn param_names(&self) -> &'static [&'static str] {
        &["a", "b", "c", "mixed", "largest"]
    }
    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        let a = call.shapes[0].dims();
        vec![Tunable { name: "m", extent: a[0], multiple: 1 }, Tunable { name: "k", extent: a[1], multiple: SPAN }]
    }
    fn reduced_axis(&self) -> Option<&'static str> {
        Some("k")
    }
    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (m, k, n) = (call.shapes[0].dims()[0], call.shapes[0].dims()[1], call.shapes[1].dims()[1]);
        let mut calls = Vec::new();
        // Blocks of rows inside, so that contributions to one block do not stand together.
        for (p, depth) in blocks(k, tunables.get("k", k)) {
            for (i, rows) in blocks(m, tunables.get("m", m)) {
                let of_rows = Region::new(&[i], &[rows]);
                let args = [
                    (0, Region::new(&[i, p], &[rows, depth])),
                    (1, Region::new(&[p, 0], &[depth, n])),
                    (2, Region::new(&[i, 0], &[rows, n])),
                    (3, of_rows),
                    (4, of_rows),
                ];
                calls.push(SubCall::itself(args, &call.scalars));
            }
        }
        calls
    }
    fn leaf(
        &self,
        (a, b, mut c, mut mixed, mut largest): (
            View<'_, T, 2>,
            View<'_, T, 2>,
            ReduceMut<'_, T, 2, Sum>,
            ReduceMut<'_, T, 1, Mix>,
            ReduceMut<'_, T, 1, Max>,
        ),
        context: &mut LeafContext<'_>,
    ) {
        let ([m, k], n) = (a.shape(), b.len(1));
        assert!(k as u64 <= SPAN, "a contribution is one span");
        assert!(context.scratch.len() >= scratch_of::<T>(k as u64) as usize, "scratch of {}", context.scratch.len());
        assert!(context.scratch.as_ptr().addr().is_multiple_of(64), "scratch is not aligned to 64 bytes");
        context.scratch.fill(0x5a);
        for i in 0..m {
            for (p, &x) in a.row(&[i]).iter().enumerate() {
                for j in 0..n {
                    c.combine([i, j], T::fused(x, b.row(&[p])[j], T::small(0)));
                }
                mixed.combine([i], x);
                largest.combine([i], x);
            }
        }
    }
    fn scratch_bytes(&self, call: &CallShape, _capacity_bytes: u64) -> u64 {
        scratch_of::<T>(call.shapes[0].dims()[1])
    }
    fn work(&self, call: &CallShape) -> Work {
        let n = call.shapes[1].dims()[1];
        let elements: u64 = call.shapes.iter().map(|shape| shape.elements()).sum();
        Work { flops: (2 * call.shapes[0].elements() * n) as f64, bytes: (elements * T::TYPE.size_bytes()) as f64 }
    }
}

fn scratch_of<T: Element>(depth: u64) -> u64 {
    depth * T::TYPE.size_bytes()
}
