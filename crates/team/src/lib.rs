//! Bound worker threads, their sleep protocol, fork and join.
