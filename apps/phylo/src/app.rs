//! The program: what can be asked for, what is read and refused, the jobs, the files.

mod args;
mod chosen;
mod count;
mod details;
mod files;
mod log;
mod memory;
mod prepare;
mod report;
mod results;
mod room;
mod run;
mod ultrafast;

pub use args::{Args, BranchesChoice, FormatChoice};
pub use count::Count;
pub use files::Outputs;
pub use log::{Progress, Watcher};
pub use memory::{Needs, Stage};
pub use prepare::{Prepared, Start, Task, prepare};
pub use report::Report;
pub use run::{Executed, execute, run};
