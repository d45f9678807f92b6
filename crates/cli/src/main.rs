//! The command `multigrain`; what it can do is listed in the library of this crate.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(multigrain_cli::main())
}
