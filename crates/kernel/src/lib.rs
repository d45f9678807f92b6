//! What the operating system did with a program's threads: who was put before them, who woke them, where they ran, which
//! pages and which disk requests they waited for, as records of a trace.
//!
//! In goes a list of threads, one a worker. Out come records ([`Kind::Away`](multigrain_trace::Kind) and those behind it), which
//! somebody takes as they are made, and at the end the names of others ([`Observed`](multigrain_trace::Observed)). Reading is
//! done by a thread of its own that is no worker, every 20 ms, in memory of a fixed size: rings that the kernel fills. What
//! finds no room there is counted.
//!
//! Sources, the one that tells most first: perf events of every processor that the threads may use, with tracepoints of
//! wakings and of disk requests, or without them; perf events of the threads alone, which need no privilege and do not tell who
//! came between; sums in `/proc`, which tell neither who nor when. What is refused is told with a way out, and the next is taken.
//!
//! A time in which a worker was set aside is divided among those who had its processor, one after another.
//!
//! What events mean (`events`, `tracepoint`, `lanes`, `sums`, `ring`) is pure and tested on bytes made by hand; `perf` alone
//! speaks with the kernel.

#[cfg(any(target_os = "linux", test))]
mod clock;
#[cfg(any(target_os = "linux", test))]
mod events;
#[cfg(any(target_os = "linux", test))]
mod lanes;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod perf;
#[cfg(target_os = "linux")]
mod reader;
#[cfg(any(target_os = "linux", test))]
mod ring;
mod sink;
#[cfg(target_os = "linux")]
mod sources;
#[cfg(any(target_os = "linux", test))]
mod sums;
#[cfg(any(target_os = "linux", test))]
mod tracepoint;
mod watch;

pub use sink::Sink;
pub use watch::{KernelError, Watch, check, memory_bytes};
