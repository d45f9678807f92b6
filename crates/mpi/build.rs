//! Compiles the C file that knows `mpi.h`, by MPI's own compiler, and links what that would link. Without the feature `mpi`
//! nothing is done.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "mpi")]
    shim::build();
}

#[cfg(feature = "mpi")]
mod shim {
    use std::process::Command;

    pub(super) fn build() {
        println!("cargo:rerun-if-changed=src/shim.c");
        println!("cargo:rerun-if-env-changed=MPICC");
        let mpicc = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
        let linked = match Command::new(&mpicc).arg("-show").output() {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
            Ok(output) => stop(&mpicc, String::from_utf8_lossy(&output.stderr).trim()),
            Err(error) => stop(&mpicc, &error.to_string()),
        };
        cc::Build::new().compiler(&mpicc).file("src/shim.c").warnings(true).compile("multigrain_mpi_shim");
        // Both implementations print the command that they would execute.
        for word in linked.split_whitespace() {
            if let Some(folder) = word.strip_prefix("-L") {
                println!("cargo:rustc-link-search=native={folder}");
            } else if let Some(library) = word.strip_prefix("-l") {
                println!("cargo:rustc-link-lib={library}");
            }
        }
        // Whoever was linked with one MPI has to be started by it: mpicc.mpich goes with mpirun.mpich.
        println!("cargo:rustc-env=MULTIGRAIN_MPIRUN={}", mpicc.replacen("mpicc", "mpirun", 1));
    }

    fn stop(mpicc: &str, why: &str) -> ! {
        eprintln!(
            "the feature 'mpi' was asked for, but {mpicc} cannot be used ({why}): install an MPI (Debian: libopenmpi-dev or \
             libmpich-dev), or name its C compiler by the variable MPICC"
        );
        std::process::exit(1);
    }
}
