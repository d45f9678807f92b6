//! The meaning of a program, executed: every call's leaf variant on its whole regions, one after the other.

use crate::erased::SCRATCH_BYTES_MAX;
use crate::{Arg, LeafContext, Program, RawView, Role};

/// Why a program could not be run sequentially.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SequentialError {
    /// The bytes given for an array are not as many as it has.
    #[error("array {array} has {expected} bytes, but {given} were given")]
    WrongLength {
        /// The array.
        array: String,
        /// Bytes it has.
        expected: u64,
        /// Bytes given.
        given: u64,
    },
    /// A call wants more scratch memory than there can be.
    #[error(
        "task {task} asks for {bytes} bytes of scratch memory; no computer has as much: this is a mistake in the task"
    )]
    Scratch {
        /// The task.
        task: String,
        /// Bytes asked for.
        bytes: u64,
    },
}

impl Program {
    /// Runs the program as it reads, without any splitting, on arrays given as bytes (row-major, in the order of
    /// their declaration; arrays that are not given by their role are set to zero first). This is the reference that
    /// every engine must equal bit for bit.
    ///
    /// # Errors
    /// When the bytes given for an array are not as many as it has.
    pub fn run_sequential(&self, arrays: &mut [Vec<u8>]) -> Result<(), SequentialError> {
        // Elements of up to 8 bytes; leaf kernels may use aligned vectors on scratch only.
        let mut memory: Vec<Vec<u64>> = Vec::with_capacity(arrays.len());
        for (decl, bytes) in self.arrays().iter().zip(arrays.iter()) {
            let (expected, given) = (decl.bytes(), bytes.len() as u64);
            if expected != given {
                return Err(SequentialError::WrongLength { array: decl.name.clone(), expected, given });
            }
            let mut words = vec![0u64; bytes.len().div_ceil(8)];
            if matches!(decl.role, Role::Input | Role::InOut) {
                // SAFETY: `words` has at least as many bytes as `bytes`, and any byte is valid in a u64.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), words.as_mut_ptr().cast(), bytes.len()) };
            }
            memory.push(words);
        }
        let mut scratch: Vec<u128> = Vec::new();
        for call in self.calls() {
            let task = &self.tasks()[call.task as usize];
            let bytes = task.scratch_bytes(&call.shape(), u64::MAX);
            let too_much = || SequentialError::Scratch { task: task.name().to_owned(), bytes };
            if bytes >= SCRATCH_BYTES_MAX {
                return Err(too_much());
            }
            let need = usize::try_from(bytes).map_err(|_| too_much())?;
            let units = need / 16 + 8;
            if scratch.len() < units {
                scratch.try_reserve_exact(units - scratch.len()).map_err(|_| too_much())?;
                scratch.resize(units, 0);
            }
            let view = |arg: &Arg| {
                let decl = &self.arrays()[arg.array as usize];
                let base = memory[arg.array as usize].as_mut_ptr().cast();
                RawView::dense(base, decl.element, decl.shape).part(&arg.region)
            };
            let views: Vec<RawView> = call.args.iter().filter_map(view).collect();
            let base: *mut u8 = scratch.as_mut_ptr().cast();
            let skip = base.align_offset(64);
            // SAFETY: `scratch` has 64 bytes more than needed, so the aligned part still holds `need`.
            let scratch = unsafe { std::slice::from_raw_parts_mut(base.add(skip), need) };
            // SAFETY: the program checked ranks, element types, bounds and that written regions alias nothing; the
            // memory is owned here and nothing runs beside this call.
            unsafe { task.leaf(&views, &mut LeafContext::new(&call.scalars, scratch)) };
        }
        for (words, bytes) in memory.iter().zip(arrays.iter_mut()) {
            // SAFETY: as above, in the other direction.
            unsafe { std::ptr::copy_nonoverlapping(words.as_ptr().cast(), bytes.as_mut_ptr(), bytes.len()) };
        }
        Ok(())
    }
}
