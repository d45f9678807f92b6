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
        let bytes = size_of_val(elements);
        self.inside(rank, offset, bytes)?;
        for at in (0..bytes).step_by(TRANSFER_BYTES_MAX) {
            let len = (bytes - at).min(TRANSFER_BYTES_MAX) as c_int;
            // SAFETY: elements that may have any bits, borrowed alone until the flush; within the rank's part.
            let code = unsafe {
                let into = elements.as_mut_ptr().cast::<u8>().add(at).cast();
                ffi::mg_get(self.raw, into, len, rank as c_int, offset as c_longlong + at as c_longlong)
            };
            self.comm.sound("a get cannot be begun", code);
        }
        self.flush(rank);
        Ok(())
    }

    /// Writes into a rank's part; it is there when this returns.
    ///
    /// # Errors
    /// As [`Window::get`].
    pub fn put<T: Element>(&self, rank: u32, offset: u64, elements: &[T]) -> Result<(), MpiError> {
        let bytes = size_of_val(elements);
        self.inside(rank, offset, bytes)?;
        for at in (0..bytes).step_by(TRANSFER_BYTES_MAX) {
            let len = (bytes - at).min(TRANSFER_BYTES_MAX) as c_int;
            // SAFETY: elements without padding, borrowed until the flush; within the rank's part.
            let code = unsafe {
                let data = elements.as_ptr().cast::<u8>().add(at).cast();
                ffi::mg_put(self.raw, data, len, rank as c_int, offset as c_longlong + at as c_longlong)
            };
            self.comm.sound("a put cannot be begun", code);
        }
        self.flush(rank);
        Ok(())
    }

    fn flush(&self, rank: u32) {
        // SAFETY: a live window, locked for all.
        let code = unsafe { ffi::mg_flush(self.raw, rank as c_int) };
        self.comm.sound("a transfer did not end", code);
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
