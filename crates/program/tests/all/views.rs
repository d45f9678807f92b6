//! Blocks whose types are asked for when they are taken, and windows: what a leaf variant cannot do with them.

use multigrain_program::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Reads `x`, writes `y`, as it is told.
struct Leaf(fn(AnyViews<'_>));

impl Task for Leaf {
    type Params = AnyParams;
    fn name(&self) -> &'static str {
        "leaf"
    }
    fn parameters(&self) -> AnyParams {
        let mut params = AnyParams::default();
        params.push(Access::Read, ElementType::F32, 2);
        params.push(Access::Write, ElementType::F64, 1);
        params
    }
    fn leaf(&self, views: AnyViews<'_>, _: &mut LeafContext<'_>) {
        (self.0)(views);
    }
}

/// What the leaf made of `y`, or what it panicked with.
fn run(leaf: fn(AnyViews<'_>)) -> Result<Vec<u8>, String> {
    let mut program = Program::new();
    let task = program.task(Leaf(leaf));
    let x = program.any_array("x", ElementType::F32, Shape::new(&[2, 3]), Role::Input).unwrap();
    let y = program.any_array("y", ElementType::F64, Shape::new(&[3]), Role::Output).unwrap();
    program.any_call(task, &[x.all(), y.all()], Scalars::new()).unwrap();
    let mut memory = [(0..6).flat_map(|i: u8| f32::from(i).to_le_bytes()).collect(), vec![0; 24]];
    let ran = catch_unwind(AssertUnwindSafe(|| program.run_sequential(&mut memory).unwrap()));
    let [_, y] = memory;
    ran.map(|()| y).map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[test]
fn blocks_are_taken_as_they_are_declared() {
    let sum = run(|mut views| {
        let (x, mut y) = (views.read(0), views.written(1));
        for (i, y) in y.row_mut::<f64>(&[]).iter_mut().enumerate() {
            *y = f64::from(x.row::<f32>(&[0])[i] + x.row::<f32>(&[1])[i]);
        }
    });
    assert_eq!(sum.unwrap(), [3.0, 5.0, 7.0].map(f64::to_le_bytes).concat());
    let refused = |leaf: fn(AnyViews<'_>), words: &str| {
        let panic = run(leaf).unwrap_err();
        assert!(panic.contains(words), "{words:?} is not in {panic:?}");
    };
    // Other threads may read it meanwhile.
    refused(|mut views| views.written(0).row_mut::<f32>(&[0])[0] = 9.0, "what a leaf does with parameter 0");
    refused(|mut views| _ = views.read(1).row::<f64>(&[])[0], "what a leaf does with parameter 1");
    refused(|mut views| _ = (views.written(1), views.written(1)), "parameter 1 was taken before");
    // As many bytes, and more than there are.
    refused(|mut views| _ = views.read(0).row::<u32>(&[0])[0], "elements of a block");
    refused(|mut views| _ = views.read(0).row::<f64>(&[0])[2], "elements of a block");
    refused(|mut views| views.written(1).row_mut::<u64>(&[])[0] = 1, "elements of a block");
    refused(|mut views| _ = views.read(0).row::<f32>(&[2])[0], "row 2 of 2");
    refused(|mut views| _ = views.read(0).row::<f32>(&[])[0], "one index for each dimension but the last");
}

/// Beyond its halo, and from beyond the block, a window would take the end of a block for that of the array.
#[test]
fn windows_reach_as_far_as_they_say() {
    let mut values = [0.0f32, 1.0, 2.0, 3.0, 4.0];
    let raw = RawView::dense(values.as_mut_ptr().cast(), ElementType::F32, Shape::new(&[5]));
    // SAFETY: five numbers that live here.
    let view = unsafe { View::<f32, 1>::from_raw(&raw) };
    let window = Window::new(view, [4], [1], [(1, 2)]);
    assert_eq!([-1, 0, 2].map(|offset| window.get([0], [offset])), [Some(0.0), Some(1.0), Some(3.0)]);
    assert_eq!((window.get([2], [2]), window.near([3], [1]), window.near([3], [2])), (None, 4.0, 4.0));
    let within = Window::new(view, [2], [1], [(1, 2)]);
    assert_eq!((within.len(0), within.get([1], [2])), (2, Some(4.0)));
    for (window, index, offset, why) in [
        (window, 1, -2, "offset -2 along dimension 0"),
        (window, 1, 3, "offset 3 along dimension 0"),
        (within, 2, 0, "index 2 along dimension 0 of a block of 2"),
        (within, usize::MAX, 1, "along dimension 0 of a block of 2"),
    ] {
        let get = catch_unwind(|| window.get([index], [offset])).unwrap_err();
        let near = catch_unwind(|| window.near([index], [offset])).unwrap_err();
        for panic in [get, near] {
            let words = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            assert!(words.contains(why), "{words}");
        }
    }
    for (len, before) in [(5, 1), (usize::MAX, 1)] {
        catch_unwind(|| Window::new(view, [len], [before], [(1, 2)])).unwrap_err();
    }
}
