//! `shim.c`, as it is.

use std::ffi::{c_char, c_int, c_longlong, c_void};

pub(crate) const SUCCESS: c_int = 0;

unsafe extern "C" {
    pub(crate) fn mg_start(wanted: c_int, level: *mut c_int) -> c_int;
    pub(crate) fn mg_started() -> c_int;
    pub(crate) fn mg_finish() -> c_int;
    pub(crate) fn mg_abort(status: c_int) -> !;
    pub(crate) fn mg_deaf();
    pub(crate) fn mg_text_bytes() -> c_int;
    pub(crate) fn mg_text(which: c_int, code: c_int, text: *mut c_char, bytes: *mut c_int) -> c_int;
    pub(crate) fn mg_comm_again(comm: *mut c_void, kept: *mut *mut c_void) -> c_int;
    pub(crate) fn mg_comm_split(
        comm: *mut c_void,
        colour: c_int,
        key: c_int,
        node: c_int,
        kept: *mut *mut c_void,
    ) -> c_int;
    pub(crate) fn mg_comm_free(comm: *mut c_void);
    pub(crate) fn mg_comm_place(comm: *mut c_void, rank: *mut c_int, size: *mut c_int) -> c_int;
    pub(crate) fn mg_flights_new() -> *mut c_void;
    pub(crate) fn mg_flights_free(of: *mut c_void);
    pub(crate) fn mg_flights_room(of: *mut c_void, more: c_int) -> c_int;
    pub(crate) fn mg_send_begin(
        of: *mut c_void,
        comm: *mut c_void,
        data: *const c_void,
        bytes: c_int,
        to: c_int,
        tag: c_int,
    ) -> c_int;
    pub(crate) fn mg_receive_begin(
        of: *mut c_void,
        comm: *mut c_void,
        data: *mut c_void,
        bytes: c_int,
        from: c_int,
        tag: c_int,
    ) -> c_int;
    pub(crate) fn mg_wait(of: *mut c_void, from: *mut c_int, came: *mut c_int, expected: *mut c_int) -> c_int;
    pub(crate) fn mg_probe(comm: *mut c_void, from: *mut c_int, bytes: *mut c_int) -> c_int;
    pub(crate) fn mg_receive(comm: *mut c_void, data: *mut c_void, bytes: c_int, from: c_int) -> c_int;
    pub(crate) fn mg_letter_new() -> *mut c_void;
    pub(crate) fn mg_letter_send(
        of: *mut c_void,
        comm: *mut c_void,
        data: *const c_void,
        bytes: c_int,
        to: c_int,
    ) -> c_int;
    pub(crate) fn mg_letter_sent(of: *mut c_void, sent: *mut c_int) -> c_int;
    pub(crate) fn mg_letter_free(of: *mut c_void);
    pub(crate) fn mg_barrier(comm: *mut c_void) -> c_int;
    pub(crate) fn mg_broadcast(comm: *mut c_void, data: *mut c_void, bytes: c_int, root: c_int) -> c_int;
    pub(crate) fn mg_allgather(comm: *mut c_void, data: *mut c_void, bytes: c_int) -> c_int;
    pub(crate) fn mg_alltoall(comm: *mut c_void, from: *const c_void, into: *mut c_void, bytes: c_int) -> c_int;
    pub(crate) fn mg_sum(comm: *mut c_void, from: *const c_void, into: *mut c_void, count: c_int, kind: c_int)
    -> c_int;
    pub(crate) fn mg_window_new(
        comm: *mut c_void,
        bytes: c_longlong,
        base: *mut *mut c_void,
        kept: *mut *mut c_void,
    ) -> c_int;
    pub(crate) fn mg_window_free(of: *mut c_void);
    pub(crate) fn mg_get(of: *mut c_void, into: *mut c_void, bytes: c_int, from: c_int, offset: c_longlong) -> c_int;
    pub(crate) fn mg_put(of: *mut c_void, data: *const c_void, bytes: c_int, to: c_int, offset: c_longlong) -> c_int;
    pub(crate) fn mg_flush(of: *mut c_void, rank: c_int) -> c_int;
}

/// One of the shim's texts.
pub(crate) fn text(which: c_int, code: c_int) -> String {
    // SAFETY: no arguments.
    let mut bytes = unsafe { mg_text_bytes() };
    let mut text = vec![0u8; bytes.max(0) as usize + 1];
    // SAFETY: there is room for the longest text, and its end.
    let found = unsafe { mg_text(which, code, text.as_mut_ptr().cast(), &raw mut bytes) };
    if found != SUCCESS {
        return format!("error {code} of MPI");
    }
    text.truncate(bytes.max(0) as usize);
    String::from_utf8_lossy(&text).trim_end_matches(['\0', '\n']).to_owned()
}
