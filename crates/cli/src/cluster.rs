//! The ranks of a cluster, where `mpirun` has started some.

use multigrain_console::{called, say};

/// What the launcher says: how many ranks there are, and which this is.
fn launched() -> [u64; 2] {
    let number = |names: [&str; 2]| names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    [
        number(["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]).unwrap_or(1),
        number(["OMPI_COMM_WORLD_RANK", "PMI_RANK"]).unwrap_or(0),
    ]
}

/// Refuses to be one of several ranks that know nothing of each other; the first says so.
fn refused(why: &str) -> u8 {
    let [ranks, rank] = launched();
    called("multigrain");
    if rank == 0 {
        say(&format!("it was started as {ranks} ranks, {why}"));
    }
    2
}

/// Executes a command as one of the ranks that were started together, of which there may be this one only.
#[cfg(feature = "mpi")]
pub(crate) fn on_ranks(command: impl FnOnce() -> u8) -> u8 {
    use multigrain::ranks;
    use multigrain_mpi::Post;

    if !multigrain_mpi::is_launched() {
        return command();
    }
    called("multigrain");
    let post = match Post::start() {
        Ok(post) => post,
        Err(error) => {
            say(&error.to_string());
            return 1;
        }
    };
    if post.ranks().count() == 1 && launched()[0] > 1 {
        return post.finish(refused("but not by the MPI that it was built with: start it by that one's mpirun"));
    }
    if post.ranks().count() > 1 {
        ranks::join(post.ranks().clone());
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let program = multigrain::rooms::store::program_hash().map_or_else(String::new, |hash| hash.to_string());
    let status = match ranks::same(post.ranks(), &[("program file", program), ("arguments", words.join("\n"))]) {
        Ok(()) => command(),
        Err(error) => multigrain_console::Failure::from(error).told(),
    };
    post.finish(status)
}

/// Executes a command; refuses to be one of several ranks.
#[cfg(not(feature = "mpi"))]
pub(crate) fn on_ranks(command: impl FnOnce() -> u8) -> u8 {
    match launched() {
        [1, _] => command(),
        _ => refused("and built without MPI: build it with --features mpi, or start it without mpirun"),
    }
}
