//! Memory that other ranks read and write.

use crate::{Comm, MpiError, ffi};
use multigrain_team::collective::Element;
use std::ffi::{c_int, c_longlong, c_void};

/// A window: bytes of each rank that all reach, this rank's own too. It is MPI that allocates them, so that they can be
/// shared within a node and registered with an adapter.
///
/// Its bytes are reached by [`Window::get`] and [`Window::put`] only. What is got while somebody puts it is some mixture of
/// both.
pub struct Window<'comm, 'mpi> {
    comm: &'comm Comm<'mpi>,
    raw: *mut c_void,
    /// Bytes of each rank's part.
    bytes: Vec<u64>,
}

/// MPI counts bytes of a transfer in an `int`.
const TRANSFER_BYTES_MAX: usize = 1 << 30;

impl<'comm, 'mpi> Window<'comm, 'mpi> {
    /// So many bytes of this rank, all zero, to be reached by everybody. Collective; others may give other numbers.
    ///
    /// # Errors
    /// What MPI refuses.
    pub fn new(comm: &'comm Comm<'mpi>, bytes: u64) -> Result<Window<'comm, 'mpi>, MpiError> {
        let mut all = vec![0; comm.size() as usize];
        all[comm.rank() as usize] = bytes;
        comm.allgather(&mut all)?;
        let (mut base, mut raw) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a live communicator; everybody calls it.
        let code = unsafe { ffi::mg_window_new(comm.raw(), bytes as c_longlong, &raw mut base, &raw mut raw) };
        if code != ffi::SUCCESS {
            let text = ffi::text(0, code);
            return Err(MpiError::Refused { what: "a window cannot be had", text });
        }
        if bytes > 0 {
            // SAFETY: the window's own memory, which nobody reaches before the barrier.
            unsafe { std::ptr::write_bytes(base.cast::<u8>(), 0, bytes as usize) };
        }
        comm.barrier()?;
        Ok(Window { comm, raw, bytes: all })
    }

    fn inside(&self, rank: u32, offset: u64, bytes: usize) -> Result<(), MpiError> {
        self.comm.known(rank)?;
        let (has, bytes) = (self.bytes[rank as usize], bytes as u64);
        if offset.checked_add(bytes).is_some_and(|end| end <= has) {
            return Ok(());
        }
        Err(MpiError::OutsideWindow { rank, offset, bytes, has })
    }

    /// Reads from a rank's part; it is there when this returns.
    ///
    /// # Errors
    /// No such rank, or bytes outside of its part.
    pub fn get<T: Element>(&self, rank: u32, offset: u64, elements: &mut [T]) -> Result<(), MpiError> {
        self.transfer(rank, offset, size_of_val(elements), "a get cannot be begun", |at, len, place| {
            // SAFETY: elements that may have any bits, borrowed alone until the flush; within the rank's part.
            unsafe {
                let into = elements.as_mut_ptr().cast::<u8>().add(at).cast();
                ffi::mg_get(self.raw, into, len, rank as c_int, place)
            }
        })
    }

    /// Writes into a rank's part; it is there when this returns.
    ///
    /// # Errors
    /// As [`Window::get`].
    pub fn put<T: Element>(&self, rank: u32, offset: u64, elements: &[T]) -> Result<(), MpiError> {
        self.transfer(rank, offset, size_of_val(elements), "a put cannot be begun", |at, len, place| {
            // SAFETY: elements without padding, borrowed until the flush; within the rank's part.
            unsafe {
                let data = elements.as_ptr().cast::<u8>().add(at).cast();
                ffi::mg_put(self.raw, data, len, rank as c_int, place)
            }
        })
    }

    /// Begins a transfer of so many bytes in pieces that MPI can count (from which byte, how many, at which place of the rank's
    /// part), and waits for all.
    fn transfer(
        &self,
        rank: u32,
        offset: u64,
        bytes: usize,
        refused: &str,
        mut begin: impl FnMut(usize, c_int, c_longlong) -> c_int,
    ) -> Result<(), MpiError> {
        self.inside(rank, offset, bytes)?;
        for at in (0..bytes).step_by(TRANSFER_BYTES_MAX) {
            let len = (bytes - at).min(TRANSFER_BYTES_MAX) as c_int;
            self.comm.sound(refused, begin(at, len, offset as c_longlong + at as c_longlong));
        }
        // SAFETY: a live window, locked for all.
        let code = unsafe { ffi::mg_flush(self.raw, rank as c_int) };
        self.comm.sound("a transfer did not end", code);
        Ok(())
    }
}

impl Drop for Window<'_, '_> {
    fn drop(&mut self) {
        // Freeing is collective: while panicking the others are not going to.
        if !std::thread::panicking() {
            // SAFETY: nobody uses it any more, and nothing is under way.
            unsafe { ffi::mg_window_free(self.raw) };
        }
    }
}
