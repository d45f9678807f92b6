//! What forking, handing over and claiming cost.

fn main() {}
