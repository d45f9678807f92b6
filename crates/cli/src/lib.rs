//! The command `multigrain`: which applications it has, and which programs of the workspace it finds beside itself.
//!
//! In comes nothing, out goes a [`Front`] that knows them by name: for the command itself, and for the bench, which measures
//! the same applications. This is the one place where an application, a program or a driver is registered. What can be done with an
//! application (run, plan, sim, trace, machine) is the front room's, and how it computes is its own; this room has no other
//! code.

mod cluster;

use multigrain_front::Front;

/// Does what the arguments of this process ask for, on all ranks where `mpirun` has started several; gives the exit status.
pub fn main() -> u8 {
    cluster::on_ranks(|| front().status())
}

/// The front with all applications and programs.
pub fn front() -> Front {
    // Nobody else has its name.
    let _ = multigrain_device::register();
    Front::new("multigrain", env!("CARGO_PKG_VERSION"), "One runtime for machines made of many memories")
        .application::<multigrain_saxpy::app::Args>()
        .application::<multigrain_sgemv::app::Args>()
        .application::<multigrain_sgemm::app::Args>()
        .application::<multigrain_conv2d::app::Args>()
        .application::<multigrain_fft3d::app::Args>()
        .application::<multigrain_gravity::app::Args>()
        .application::<multigrain_hmmer::app::Args>()
        .program(
            "bench",
            "multigrain-bench",
            "Our runs beside their peers, in turns: medians, ratios, and whether each bar holds",
        )
        .program(
            "phylo",
            "multigrain-phylo",
            "Maximum-likelihood trees from an alignment of DNA or proteins, with bootstrap supports",
        )
        .program(
            "encrypt",
            "multigrain-encrypt",
            "Encrypts a file or a pipe on all processors, as age does or with AES-GCM",
        )
        .program("decrypt", "multigrain-encrypt", "Decrypts what encrypt, age or rage encrypted")
        .program("encode", "multigrain-encode", "Encodes a video as H.264 on all processors")
        .program("proxy", "multigrain-proxy", "Serves cameras to any number of viewers, by RTSP and HTTP")
        .program("queens", "multigrain-queens", "Counts the ways to put n queens on an n x n board")
}
