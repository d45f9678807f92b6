//! The tasks: a volume is transformed as its planes and then its columns; planes as rows and then columns.
//!
//! ```text
//! fft3d          = planes along (y, z), then columns along x        blocks: none; its stages have their own
//! fft3d-planes   = rows along z, then columns along y               blocks: whole planes, by x
//! fft3d-rows                                                        blocks: whole rows, by x and y
//! fft3d-columns-y                                                   blocks: whole columns, by x and z
//! fft3d-columns-x                                                   blocks: whole columns, by y and z
//! ```
//!
//! Each stage moves the volume once over an edge that copies: one pass over a disk where the memory holds the volume, two
//! where it holds a plane, three where it does not. The planner finds which.
//!
//! The first stage of a transform that leaves its input as it was reads one array and writes another; what follows works
//! in place. The scalar of a call is 1 for the inverse transform, 0 for the forward one.

use crate::kernel::{self, Axis, Block, Dft};
use multigrain::prelude::*;
use multigrain_simd::Isa;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which part of a transform a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Volume,
    Planes,
    Rows,
    ColumnsY,
    ColumnsX,
}

impl Part {
    /// The axes along which it transforms, in order.
    fn axes(self) -> &'static [Axis] {
        match self {
            Part::Volume => &[Axis::Z, Axis::Y, Axis::X],
            Part::Planes => &[Axis::Z, Axis::Y],
            Part::Rows => &[Axis::Z],
            Part::ColumnsY => &[Axis::Y],
            Part::ColumnsX => &[Axis::X],
        }
    }

    fn stages(self) -> &'static [Part] {
        match self {
            Part::Volume => &[Part::Planes, Part::ColumnsX],
            Part::Planes => &[Part::Rows, Part::ColumnsY],
            _ => &[],
        }
    }
}

/// Bytes of a page of memory and of a block of a file.
const PAGE_BYTES: u64 = 4096;
/// More rows than this are not kept together for the sake of a page: blocks would get too large for a local store.
const ROWS_OF_PAGE_MAX: u64 = 8;

/// What all tasks of a transform share: the instruction set, and passes and twiddles of each axis.
pub struct Setup {
    isa: Isa,
    /// Of each axis; equal lengths share one.
    dfts: [Arc<Dft>; 3],
}

impl Setup {
    /// For volumes of these lengths; `None` when one is zero or too long to be indexed. An instruction set that the
    /// processor lacks is replaced by plain code.
    pub fn new(isa: Isa, shape: [u64; 3]) -> Option<Arc<Setup>> {
        let isa = if isa.is_supported() { isa } else { Isa::Scalar };
        let [x, y, z] = shape;
        let first = Arc::new(Dft::new(x)?);
        let second = if y == x { first.clone() } else { Arc::new(Dft::new(y)?) };
        let third = match z {
            _ if z == x => first.clone(),
            _ if z == y => second.clone(),
            _ => Arc::new(Dft::new(z)?),
        };
        Some(Arc::new(Setup { isa, dfts: [first, second, third] }))
    }

    fn dft(&self, axis: Axis) -> &Dft {
        &self.dfts[axis as usize]
    }

    /// Bytes of the tables for volumes of these lengths, known before they are made; `None` as [`new`](Self::new).
    pub fn table_bytes(shape: [u64; 3]) -> Option<u64> {
        let lengths: BTreeSet<u64> = shape.into_iter().collect();
        lengths.into_iter().map(Dft::table_bytes).sum()
    }

    /// Bytes of the buffers in which one line of such a volume is transformed at least.
    pub fn line_scratch_bytes(shape: [u64; 3]) -> u64 {
        shape.into_iter().map(Dft::line_scratch_bytes).max().unwrap_or(0)
    }

    /// The passes of all axes: how many roundings lie between an element and a result is in proportion.
    pub fn passes(&self) -> usize {
        self.dfts.iter().map(|dft| dft.passes()).sum()
    }

    /// How the calls of a part are cut: whole along the axes that it transforms.
    fn notation<const N: usize>(&self, part: Part, params: [&'static str; N]) -> Notation {
        let (notation, dims) = match part {
            Part::Volume => (Notation::axes([]), [":", ":", ":"]),
            Part::Planes => (Notation::axes(["x"]), ["x", ":", ":"]),
            Part::Rows => (Notation::axes(["x", "y"]), ["x", "y", ":"]),
            Part::ColumnsY => (Notation::axes(["x", "z"]), ["x", ":", "z"]),
            Part::ColumnsX => (Notation::axes(["y", "z"]).every("y", self.rows_of_page()), [":", "y", "z"]),
        };
        params.into_iter().fold(notation, |notation, name| notation.param(name, dims))
    }

    /// Blocks of whole rows begin where pages do, where few rows make a page: a file is then written by whole pages.
    fn rows_of_page(&self) -> u64 {
        let row_bytes = 8 * self.dft(Axis::Z).len() as u64;
        let rows = if PAGE_BYTES.is_multiple_of(row_bytes) { PAGE_BYTES / row_bytes } else { 1 };
        if rows <= ROWS_OF_PAGE_MAX { rows } else { 1 }
    }

    fn need_bytes(&self, isa: Isa, part: Part, shape: [usize; 3]) -> usize {
        let need = |axis: &Axis| kernel::scratch_bytes(isa, self.dft(*axis), *axis, shape);
        part.axes().iter().map(need).max().unwrap_or(0)
    }

    /// A quarter is for the kernel's buffers, the rest for blocks. Where it is large there is room for panels, which columns
    /// through a large block go by.
    fn scratch_bytes(&self, part: Part, shape: &Shape, capacity_bytes: u64) -> u64 {
        let shape = lengths(shape);
        let limit = usize::try_from(capacity_bytes).unwrap_or(usize::MAX) / 4;
        let with_panels = |axis: &Axis| {
            let plane = [1, shape[1], shape[2]];
            let by_plane = matches!(part, Part::Volume | Part::Planes) && *axis != Axis::X;
            let shape = if by_plane { plane } else { shape };
            let dft = self.dft(*axis);
            kernel::scratch_bytes(self.isa, dft, *axis, shape) + kernel::panel_bytes(self.isa, dft, *axis, shape)
        };
        let best = part.axes().iter().map(with_panels).max().unwrap_or(0).max(self.need_bytes(self.isa, part, shape));
        if best <= limit {
            return best as u64;
        }
        let isa = kernel::within(self.isa, limit, |isa| self.need_bytes(isa, part, shape));
        self.need_bytes(isa, part, shape) as u64
    }

    fn work(&self, part: Part, shape: &Shape) -> Work {
        let [x, y, z] = lengths(shape).map(|n| n as f64);
        let elements = x * y * z;
        let transform = |axis: &Axis| elements / self.dft(*axis).len() as f64 * self.dft(*axis).flops();
        // The volume is read and written once by its planes and once by its columns.
        let passes = if part == Part::Volume { 2.0 } else { 1.0 };
        Work { flops: part.axes().iter().map(transform).sum(), bytes: 16.0 * passes * elements }
    }

    /// # Safety
    /// The block is the caller's alone, and what is read is the same or does not overlap it.
    unsafe fn leaf(&self, part: Part, mut block: Block, context: &mut LeafContext<'_>) {
        let inverse = context.scalars.u64(0) == 1;
        let scratch = &mut *context.scratch;
        let isa = kernel::within(self.isa, scratch.len(), |isa| self.need_bytes(isa, part, block.shape));
        let elements: f64 = self.dfts.iter().map(|dft| dft.len() as f64).product();
        let factor = if inverse { (1.0 / elements) as f32 } else { 1.0 };
        let mut transform = |axis: Axis, block: &Block| {
            let factor = (axis == Axis::X).then_some(factor);
            // SAFETY: the caller's promise; `new` made sure of the instruction set.
            unsafe { kernel::transform(isa, self.dft(axis), axis, block, inverse, factor, scratch) }
        };
        if matches!(part, Part::Volume | Part::Planes) {
            // Plane by plane: the second transform finds what the first has left in the cache.
            for x in 0..block.shape[0] {
                let plane = block.plane(x);
                transform(Axis::Z, &plane);
                transform(Axis::Y, &plane.written());
            }
            block = block.written();
        }
        match part {
            Part::Planes => {}
            Part::Rows => transform(Axis::Z, &block),
            Part::ColumnsY => transform(Axis::Y, &block),
            Part::Volume | Part::ColumnsX => transform(Axis::X, &block),
        }
    }
}

fn lengths(shape: &Shape) -> [usize; 3] {
    let dims = shape.dims();
    [dims[0] as usize, dims[1] as usize, dims[2] as usize]
}

/// No result is known before the last of the N elements has been read, and then what memory holds, M elements, is not
/// enough to tell all N results: N - M elements have to be read once more, whatever they are. Each result is written.
fn bound(part: Part, call: &CallShape, capacity_bytes: u64) -> Option<IoBound> {
    let bytes = 8 * call.shapes[0].elements();
    (part == Part::Volume)
        .then(|| IoBound { bytes_down: bytes + bytes.saturating_sub(capacity_bytes), bytes_up: bytes })
}

/// A transform, or a part of one, in place.
pub struct InPlace {
    setup: Arc<Setup>,
    part: Part,
    stages: Vec<Arc<dyn DynTask>>,
}

impl InPlace {
    /// The transform of a whole volume.
    pub fn new(setup: &Arc<Setup>) -> InPlace {
        InPlace::part(setup, Part::Volume)
    }

    fn part(setup: &Arc<Setup>, part: Part) -> InPlace {
        let stages = part.stages().iter().map(|&part| Program::erase(InPlace::part(setup, part))).collect();
        InPlace { setup: setup.clone(), part, stages }
    }
}

/// A transform, or the part of one that comes first, from one array into another.
pub struct Into {
    setup: Arc<Setup>,
    part: Part,
    stages: Vec<Arc<dyn DynTask>>,
}

impl Into {
    /// The transform of a whole volume.
    pub fn new(setup: &Arc<Setup>) -> Into {
        Into::part(setup, Part::Volume)
    }

    fn part(setup: &Arc<Setup>, part: Part) -> Into {
        let stages = part.stages().iter().enumerate().map(|(i, &part)| match i {
            0 => Program::erase(Into::part(setup, part)),
            _ => Program::erase(InPlace::part(setup, part)),
        });
        Into { setup: setup.clone(), part, stages: stages.collect() }
    }
}

/// The scalars of a call.
pub fn direction(inverse: bool) -> Scalars {
    Scalars::new().with_u64(u64::from(inverse))
}

impl Task for InPlace {
    type Params = (Update<Complex32, 3>,);

    fn name(&self) -> &'static str {
        match self.part {
            Part::Volume => "fft3d",
            Part::Planes => "fft3d-planes",
            Part::Rows => "fft3d-rows",
            Part::ColumnsY => "fft3d-columns-y",
            Part::ColumnsX => "fft3d-columns-x",
        }
    }

    fn notation(&self) -> Option<Notation> {
        Some(self.setup.notation(self.part, ["data"]))
    }

    fn stages(&self, call: &CallShape) -> Vec<SubCall> {
        let whole = Region::whole(call.shapes[0]);
        self.stages.iter().map(|task| SubCall::of(task, [(0, whole)], &call.scalars)).collect()
    }

    fn leaf(&self, (mut data,): (ViewMut<'_, Complex32, 3>,), context: &mut LeafContext<'_>) {
        let [sx, sy, _] = data.strides();
        let to = data.as_mut_ptr().cast::<f32>();
        let strides = [sx, sy];
        let block = Block { from: to, to, shape: data.shape(), from_strides: strides, to_strides: strides };
        // SAFETY: the view is a block of this shape and these strides, and this call's alone.
        unsafe { self.setup.leaf(self.part, block, context) }
    }

    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        self.setup.scratch_bytes(self.part, &call.shapes[0], capacity_bytes)
    }

    fn work(&self, call: &CallShape) -> Work {
        self.setup.work(self.part, &call.shapes[0])
    }

    fn io_lower_bound(&self, call: &CallShape, capacity_bytes: u64) -> Option<IoBound> {
        bound(self.part, call, capacity_bytes)
    }
}

impl Task for Into {
    type Params = (Read<Complex32, 3>, Write<Complex32, 3>);

    fn name(&self) -> &'static str {
        match self.part {
            Part::Planes => "fft3d-planes-into",
            Part::Rows => "fft3d-rows-into",
            _ => "fft3d-into",
        }
    }

    fn notation(&self) -> Option<Notation> {
        Some(self.setup.notation(self.part, ["in", "out"]))
    }

    fn stages(&self, call: &CallShape) -> Vec<SubCall> {
        let whole = Region::whole(call.shapes[0]);
        let stage = |(i, task): (usize, &Arc<dyn DynTask>)| match i {
            0 => SubCall::of(task, [(0, whole), (1, whole)], &call.scalars),
            _ => SubCall::of(task, [(1, whole)], &call.scalars),
        };
        self.stages.iter().enumerate().map(stage).collect()
    }

    fn leaf(&self, (from, mut to): (View<'_, Complex32, 3>, ViewMut<'_, Complex32, 3>), context: &mut LeafContext<'_>) {
        let ([fx, fy, _], [tx, ty, _]) = (from.strides(), to.strides());
        let block = Block {
            from: from.as_ptr().cast(),
            to: to.as_mut_ptr().cast(),
            shape: to.shape(),
            from_strides: [fx, fy],
            to_strides: [tx, ty],
        };
        assert_eq!(from.shape(), to.shape(), "shapes of the two blocks of {}", self.name());
        // SAFETY: the views are blocks of this shape and these strides; one is read, the other this call's alone, and a
        // program cannot pass blocks that overlap.
        unsafe { self.setup.leaf(self.part, block, context) }
    }

    fn scratch_bytes(&self, call: &CallShape, capacity_bytes: u64) -> u64 {
        self.setup.scratch_bytes(self.part, &call.shapes[0], capacity_bytes)
    }

    fn work(&self, call: &CallShape) -> Work {
        self.setup.work(self.part, &call.shapes[0])
    }

    fn io_lower_bound(&self, call: &CallShape, capacity_bytes: u64) -> Option<IoBound> {
        bound(self.part, call, capacity_bytes)
    }
}
