//! Drivers that move bytes, and the files they move them from and to.
