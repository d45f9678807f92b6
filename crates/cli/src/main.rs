//! The `multigrain` command.

fn main() {}
