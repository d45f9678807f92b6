//! The task: a block of the output from the block of the input that is larger by the halo.
//!
//! The scalars of a call are (top, left): the rows and columns of halo that are really there before the first output.
//! With the extent of the input block they tell where the halo is cut off, which is where the array ends; see
//! [`crate::kernel`]. A call of the whole array has (0, 0).

use crate::kernel::{self, Source, Taps, Target};
use multigrain::prelude::{
    CallShape, LeafContext, Read, Region, Scalars, SubCall, Task, Tunable, Tunables, View, ViewMut, Work, Write, blocks,
};
use multigrain_simd::Isa;

/// out = correlation of `in` with weights of odd extents, taps beyond the array skipped.
pub struct Conv2d {
    isa: Isa,
}

impl Conv2d {
    /// The task for an instruction set that this processor supports; any other is replaced by plain code.
    pub fn new(isa: Isa) -> Conv2d {
        Conv2d { isa: if isa.is_supported() { isa } else { Isa::Scalar } }
    }

    /// The scalars for a call on whole arrays.
    pub fn whole() -> Scalars {
        halo(0, 0)
    }
}

fn halo(top: u64, left: u64) -> Scalars {
    Scalars::new().with_u64(top).with_u64(left)
}

/// Input that `len` outputs from `start` on need along one axis, in an input block of `extent` with `before` elements
/// of halo before output 0: its start and length, and the halo before the first of these outputs.
fn needed(start: u64, len: u64, before: u64, extent: u64, half: u64) -> (u64, u64, u64) {
    let center = before + start;
    let first = center.saturating_sub(half);
    let end = (center + len + half).min(extent);
    (first, end - first, center - first)
}

impl Task for Conv2d {
    type Params = (Read<f32, 2>, Read<f32, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["in", "weights", "out"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        let out = call.shapes[2].dims();
        vec![Tunable { name: "m", extent: out[0], multiple: 1 }, Tunable { name: "n", extent: out[1], multiple: 1 }]
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (input, weights, out) = (call.shapes[0].dims(), call.shapes[1].dims(), call.shapes[2].dims());
        let (top, left) = (call.scalars.u64(0), call.scalars.u64(1));
        let taps = Region::new(&[0, 0], weights);
        let mut calls = Vec::new();
        for (i, rows) in blocks(out[0], tunables.get("m", out[0])) {
            let (row, height, top) = needed(i, rows, top, input[0], weights[0] / 2);
            for (j, columns) in blocks(out[1], tunables.get("n", out[1])) {
                let (column, width, left) = needed(j, columns, left, input[1], weights[1] / 2);
                let args = [
                    (0, Region::new(&[row, column], &[height, width])),
                    (1, taps),
                    (2, Region::new(&[i, j], &[rows, columns])),
                ];
                calls.push(SubCall::itself(args, &halo(top, left)));
            }
        }
        calls
    }

    fn leaf(
        &self,
        (input, weights, mut out): (View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f32, 2>),
        context: &mut LeafContext<'_>,
    ) {
        let (top, left) = (context.scalars.u64(0) as usize, context.scalars.u64(1) as usize);
        let [kh, kw] = weights.shape();
        let [rows, cols] = out.shape();
        // What the kernel relies on; a program that breaks it would read beyond its blocks.
        let fits = |before: usize, output: usize, input: usize, half: usize| {
            before <= half && (before + output..=before + output + half).contains(&input)
        };
        assert!(
            kh % 2 == 1
                && kw % 2 == 1
                && fits(top, rows, input.len(0), kh / 2)
                && fits(left, cols, input.len(1), kw / 2),
            "conv2d of {:?} from {:?} with weights {:?} and a halo of ({top}, {left})",
            out.shape(),
            input.shape(),
            weights.shape()
        );
        let dense;
        let taps = match weights.as_slice() {
            Some(taps) => taps,
            None => {
                dense = (0..kh).flat_map(|i| weights.row(&[i])).copied().collect::<Vec<f32>>();
                &dense
            }
        };
        let source = Source { data: input.as_ptr(), rows: input.len(0), cols: input.len(1), pitch: input.pitch() };
        let taps = Taps { data: taps.as_ptr(), rows: kh, cols: kw };
        let target = Target { pitch: out.pitch(), data: out.as_mut_ptr(), rows, cols };
        // SAFETY: the views are blocks of these shapes and pitches, out is accessed by this call alone, the extents were
        // checked above, and `new` made sure of the instruction set.
        unsafe { kernel::conv2d_raw(self.isa, source, top, left, taps, target) };
    }

    fn work(&self, call: &CallShape) -> Work {
        let elements = |i: usize| call.shapes[i].elements() as f64;
        Work { flops: 2.0 * elements(1) * elements(2), bytes: 4.0 * (elements(0) + elements(1) + elements(2)) }
    }
}
