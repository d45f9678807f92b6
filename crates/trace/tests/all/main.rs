//! Tests of the crate in one program: linked once, and on all processors until the last.

mod analysis;
mod file;
mod html;
mod paraver;
mod perfetto;
mod support;
