//! Tests of the crate in one program: linked once, and on all processors until the last.

mod blade;
mod collectives;
mod contexts;
mod fair;
mod hosts;
mod jobs;
mod links;
mod offload;
mod plans;
mod predicted;
mod raxml;
mod routes;
mod strands;
