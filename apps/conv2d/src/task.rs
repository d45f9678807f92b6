//! The task: a block of the output from the block of the input that is larger by the halo, cut off where the array ends;
//! see [`crate::kernel`].

use crate::kernel::{self, Filling, Source, Taps, Target};
use multigrain::prelude::notation::around_half;
use multigrain::prelude::{CallShape, LeafContext, Notation, Read, Task, View, ViewMut, Work, Write};
use multigrain_simd::Isa;

/// out = correlation of `in` with weights of odd extents, taps beyond the array skipped. The scalars are [`Filling`]'s.
pub struct Conv2d {
    isa: Isa,
}

impl Conv2d {
    /// The task for an instruction set that this processor supports; any other is replaced by plain code.
    pub fn new(isa: Isa) -> Conv2d {
        Conv2d { isa: if isa.is_supported() { isa } else { Isa::Scalar } }
    }
}

impl Task for Conv2d {
    type Params = (Read<f32, 2>, Read<f32, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn notation(&self) -> Option<Notation> {
        let input = [around_half("m", "weights", 0), around_half("n", "weights", 1)];
        Some(Notation::axes(["m", "n"]).param("in", input).param("weights", [":", ":"]).param("out", ["m", "n"]))
    }

    fn leaf(
        &self,
        (input, weights, mut out): (View<'_, f32, 2>, View<'_, f32, 2>, ViewMut<'_, f32, 2>),
        context: &mut LeafContext<'_>,
    ) {
        let (top, left) = (context.before(0), context.before(1));
        let [kh, kw] = weights.shape();
        let [rows, cols] = out.shape();
        let filling = Filling::of(context.scalars);
        // What the kernel relies on; a program that breaks it would read beyond its blocks.
        let fits = |before: usize, output: usize, input: usize, half: usize| {
            before <= half && (before + output..=before + output + half).contains(&input)
        };
        assert!(
            kh % 2 == 1
                && kw % 2 == 1
                && filling.fits(kh, kw)
                && fits(top, rows, input.len(0), kh / 2)
                && fits(left, cols, input.len(1), kw / 2),
            "conv2d of {:?} from {:?} with weights {:?}, {filling:?} and a halo of ({top}, {left})",
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
        let taps = Taps { data: taps.as_ptr(), rows: kh, cols: kw, filling };
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
