//! The program: what can be asked for, what is read and refused, the jobs, the files.

mod args;
mod bootstraps;
mod chosen;
mod details;
mod files;
mod prepare;
mod report;
mod results;
mod run;

pub use args::{Args, BranchesChoice, FormatChoice};
pub use bootstraps::Bootstraps;
pub use files::Outputs;
pub use prepare::{Prepared, Start, Task, prepare};
pub use report::Report;
pub use run::{Executed, Progress, Watcher, execute, run};
