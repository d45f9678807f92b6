//! Event records of a run and the time breakdown computed from them.
