//! Borders other than zeros: the frame of the output is computed from small arrays that are padded as the border says, the
//! inside from the array itself.
//!
//! Calls of [`Conv2d`] have all of their halo, in the array or in a padded part of it; [`Pad`] makes the parts. So nothing
//! larger than the frame is copied, and how the inside is cut shows nowhere.

use crate::border::Border;
use crate::check::Filter;
use crate::task::Conv2d;
use multigrain::prelude::*;

fn output_axes(out: &[u64]) -> Vec<Tunable> {
    vec![Tunable { name: "m", extent: out[0], multiple: 1 }, Tunable { name: "n", extent: out[1], multiple: 1 }]
}

/// Blocks of the output: start and length of rows and of columns.
fn output_blocks(out: [u64; 2], tunables: &Tunables) -> impl Iterator<Item = [(u64, u64); 2]> {
    let [m, n] = out;
    let columns = tunables.get("n", n);
    blocks(m, tunables.get("m", m)).flat_map(move |rows| blocks(n, columns).map(move |columns| [rows, columns]))
}

fn extents(call: &CallShape, i: usize) -> [u64; 2] {
    let dims = call.shapes[i].dims();
    [dims[0], dims[1]]
}

/// out\[i, j\] = the element that stands for (row + i, column + j) of the array of which `in` is a block. The scalars are
/// the border, and of rows and of columns: how many the array has, the first of out, the first of `in`.
pub struct Pad;

/// One axis of a [`Pad`].
#[derive(Clone, Copy)]
struct Axis {
    /// Elements of the array.
    n: u64,
    /// What the first element of out stands for.
    out: i64,
    /// The first element of the block.
    from: u64,
}

impl Axis {
    /// What is done along an axis of `n` elements with `len` places from number `out` on, and the least and the largest
    /// element that they stand for. Where these follow each other, or are one, it is told as if they were all of an array: so
    /// the many parts of a call are calls of few kinds, each planned once.
    fn of(border: Border, out: i64, len: u64, n: u64) -> (Axis, (u64, u64)) {
        let (low, high) = border.span(out, len, n);
        let source = |place: u64| border.source(out + place as i64, n).unwrap_or(low);
        // The element changes by at most one from place to place, unless an array is wrapped around.
        let (first, last) = (source(0), source(len - 1));
        let axis = if low == high {
            Axis { n: 1, out: 0, from: 0 }
        } else if last.checked_sub(first) == Some(len - 1) {
            Axis { n: len, out: 0, from: 0 }
        } else if border == Border::Reflect && first.checked_sub(last) == Some(len - 1) {
            Axis { n: len, out: -(len as i64), from: 0 }
        } else {
            Axis { n, out, from: low }
        };
        (axis, (low, high))
    }
}

fn scalars(border: Border, axes: [Axis; 2]) -> Scalars {
    let numbers = axes.into_iter().flat_map(|axis| [axis.n, axis.out as u64, axis.from]);
    numbers.fold(Scalars::new().with_u64(border as u64), Scalars::with_u64)
}

fn arguments(scalars: &Scalars) -> (Border, [Axis; 2]) {
    let border = match scalars.u64(0) {
        1 => Border::Nearest,
        2 => Border::Reflect,
        _ => Border::Wrap,
    };
    let axis = |i: usize| Axis { n: scalars.u64(i), out: scalars.u64(i + 1) as i64, from: scalars.u64(i + 2) };
    (border, [axis(1), axis(4)])
}

impl Task for Pad {
    type Params = (Read<f32, 2>, Write<f32, 2>);

    fn name(&self) -> &'static str {
        "conv2d-pad"
    }

    fn param_names(&self) -> &'static [&'static str] {
        &["in", "out"]
    }

    fn tunables(&self, call: &CallShape) -> Vec<Tunable> {
        output_axes(&extents(call, 1))
    }

    fn split(&self, call: &CallShape, tunables: &Tunables) -> Vec<SubCall> {
        let (border, axes) = arguments(&call.scalars);
        output_blocks(extents(call, 1), tunables)
            .map(|block| {
                let mut parts = axes;
                let mut from = [(0, 0); 2];
                for d in 0..2 {
                    let ((start, len), Axis { n, out, from: begin }) = (block[d], axes[d]);
                    let (part, (low, high)) = Axis::of(border, out + start as i64, len, n);
                    (parts[d], from[d]) = (part, (low - begin, high + 1 - low));
                }
                let [(row, rows), (column, columns)] = from;
                let [(i, height), (j, width)] = block;
                let args =
                    [(0, Region::new(&[row, column], &[rows, columns])), (1, Region::new(&[i, j], &[height, width]))];
                SubCall::itself(args, &scalars(border, parts))
            })
            .collect()
    }

    fn leaf(&self, (input, mut out): (View<'_, f32, 2>, ViewMut<'_, f32, 2>), context: &mut LeafContext<'_>) {
        let (border, [row, column]) = arguments(context.scalars);
        let place =
            |axis: Axis, i: usize| border.source(axis.out + i as i64, axis.n).map_or(0, |s| (s - axis.from) as usize);
        for i in 0..out.len(0) {
            let from = input.row(&[place(row, i)]);
            out.row_mut(&[i]).iter_mut().enumerate().for_each(|(j, out)| *out = from[place(column, j)]);
        }
    }

    fn work(&self, call: &CallShape) -> Work {
        Work { flops: 0.0, bytes: 8.0 * call.shapes[1].elements() as f64 }
    }
}

/// Adds to a program the calls for one plane with a border other than zeros. `name` tells its padded parts from others.
///
/// # Errors
/// When there are more arrays or bytes than can be.
pub(crate) fn call(
    program: &mut Program,
    (conv2d, pad): (TaskHandle<Conv2d>, TaskHandle<Pad>),
    (input, weights, out): (Array<f32, 2>, Array<f32, 2>, Array<f32, 2>),
    ([m, n], filter): ([u64; 2], &Filter),
    name: &str,
) -> Result<(), ProgramError> {
    let Filter { rows: kh, cols: kw, border, filling, .. } = *filter;
    let (top, left) = (kh / 2, kw / 2);
    let with_halo = filling.scalars(Scalars::new()).with_before(&[top, left]);
    // Start and length of rows and of columns of the output.
    let parts: Vec<[(u64, u64); 2]> = if m > 2 * top && n > 2 * left {
        program.call(
            conv2d,
            (input.all(), weights.all(), out.block([top, left], [m - 2 * top, n - 2 * left])),
            with_halo.clone(),
        )?;
        let middle = (top, m - 2 * top);
        vec![[(0, top), (0, n)], [(m - top, top), (0, n)], [middle, (0, left)], [middle, (n - left, left)]]
    } else {
        vec![[(0, m), (0, n)]]
    };
    let parts = parts.into_iter().filter(|part| part.iter().all(|(_, len)| *len > 0));
    for (number, [(i, rows), (j, columns)]) in parts.enumerate() {
        let shape = [rows + kh - 1, columns + kw - 1];
        let padded = program.array::<f32, 2>(&format!("padded {number}{name}"), shape, Role::Temporary)?;
        for (at_row, height, row) in segments(i as i64 - top as i64, shape[0], m) {
            for (at_column, width, column) in segments(j as i64 - left as i64, shape[1], n) {
                let (rows, (low, high)) = Axis::of(border, row, height, m);
                let (columns, (first, last)) = Axis::of(border, column, width, n);
                let axes = [rows, columns];
                let from = input.block([low, first], [high + 1 - low, last + 1 - first]);
                program.call(pad, (from, padded.block([at_row, at_column], [height, width])), scalars(border, axes))?;
            }
        }
        program.call(conv2d, (padded.all(), weights.all(), out.block([i, j], [rows, columns])), with_halo.clone())?;
    }
    Ok(())
}

/// `len` places from `start` on, in parts before, in and after the `n` elements: place in out, length, first number.
fn segments(start: i64, len: u64, n: u64) -> impl Iterator<Item = (u64, u64, i64)> {
    let end = start + len as i64;
    let cuts = [start, 0.clamp(start, end), (n as i64).clamp(start, end), end];
    let parts: Vec<_> = cuts.windows(2).map(|cut| (cut[0], cut[1])).filter(|(a, b)| b > a).collect();
    parts.into_iter().map(move |(a, b)| ((a - start) as u64, (b - a) as u64, a))
}

#[cfg(test)]
mod tests {
    use super::{Axis, Border};

    /// What is told of parts, and of parts of parts, stands for the same elements.
    #[test]
    fn parts_stand_for_the_elements_of_the_whole() {
        for border in [Border::Nearest, Border::Reflect, Border::Wrap] {
            for (n, out, len) in (1..7).flat_map(|n| (-9..9).flat_map(move |out| (1..12).map(move |len| (n, out, len))))
            {
                let (whole, (low, high)) = Axis::of(border, out, len, n);
                let place = |axis: Axis, at: u64| border.source(axis.out + at as i64, axis.n).unwrap() - axis.from;
                for (start, of) in (0..len).flat_map(|start| (1..=len - start).map(move |of| (start, of))) {
                    let (part, (first, last)) = Axis::of(border, whole.out + start as i64, of, whole.n);
                    for at in 0..of {
                        let expected = border.source(out + (start + at) as i64, n).unwrap();
                        assert_eq!(low + place(whole, start + at), expected, "{border:?} {n} {out} {len}");
                        let found = low + first - whole.from + place(part, at);
                        assert_eq!(found, expected, "{border:?} {n} {out} {len}: {start} {of}");
                    }
                    assert!(low + last - whole.from <= high);
                }
            }
        }
    }

    #[test]
    fn parts_away_from_the_border_are_calls_of_one_kind() {
        let told = |border, out, len| Axis::of(border, out, len, 1000).0;
        let is = |axis: Axis, n, out, from| (axis.n, axis.out, axis.from) == (n, out, from);
        for border in [Border::Nearest, Border::Reflect, Border::Wrap] {
            assert!([0, 7, 993].iter().all(|&out| is(told(border, out, 7), 7, 0, 0)), "{border:?}");
        }
        assert!(is(told(Border::Wrap, -9, 7), 7, 0, 0) && is(told(Border::Nearest, 1000, 7), 1, 0, 0));
        assert!(is(told(Border::Reflect, -9, 7), 7, -7, 0) && is(told(Border::Reflect, -3, 7), 1000, -3, 0));
    }
}
