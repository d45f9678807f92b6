//! DMA engines: transfers under way at once up to the depth of a queue, begun one after the other.

use crate::network::{LinkId, WHOLE};
use crate::server::Serial;
use crate::time::Time;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// A DMA engine of a [`crate::Simulation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DmaId(pub(crate) u32);

/// What a DMA engine is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dma {
    /// Transfers that may be under way at once, at least 1; further ones wait in the order of their issue.
    pub depth: usize,
    /// What beginning a transfer keeps the engine busy: the least time between two beginnings.
    pub issue: Time,
}

/// What a transfer carries, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer<'a> {
    /// The links it crosses, each once.
    pub path: &'a [LinkId],
    /// For each link what it carries of the bytes, in parts of [`WHOLE`]; none where each carries all. A transfer moves at one
    /// rate, whatever ways its bytes take.
    pub shares: &'a [u32],
    /// Its bytes; none means a message that needs latency only.
    pub bytes: u64,
    /// Time before its first byte moves, besides the latencies of the links.
    pub latency: Time,
    /// What it could use at most, where it is not a link that limits it.
    pub bytes_per_second_max: Option<u64>,
}

impl<'a> Transfer<'a> {
    /// So many bytes along a path, with no limits but those of the links.
    pub fn new(path: &'a [LinkId], bytes: u64) -> Transfer<'a> {
        Transfer { path, shares: &[], bytes, latency: Time::ZERO, bytes_per_second_max: None }
    }
}

/// A transfer that waits or is before its first byte.
pub(crate) struct Pending<E> {
    /// Two in place: what waits is moved about in queues, and is no larger for longer paths.
    pub(crate) path: SmallVec<[(LinkId, u32); 2]>,
    pub(crate) bytes: u64,
    pub(crate) latency: Time,
    pub(crate) bytes_per_second_max: Option<u64>,
    pub(crate) engine: Option<DmaId>,
    pub(crate) done: E,
}

impl<E> Pending<E> {
    pub(crate) fn new(transfer: Transfer<'_>, engine: Option<DmaId>, done: E) -> Pending<E> {
        let shares = transfer.shares.iter().copied().chain(std::iter::repeat(WHOLE));
        Pending {
            path: transfer.path.iter().copied().zip(shares).filter(|(_, share)| *share > 0).collect(),
            bytes: transfer.bytes,
            latency: transfer.latency,
            bytes_per_second_max: transfer.bytes_per_second_max,
            engine,
            done,
        }
    }
}

pub(crate) struct DmaState<E> {
    pub(crate) dma: Dma,
    pub(crate) under_way: usize,
    pub(crate) issuer: Serial,
    pub(crate) waiting: VecDeque<Pending<E>>,
}

impl<E> DmaState<E> {
    pub(crate) fn new(dma: Dma) -> DmaState<E> {
        assert!(dma.depth > 0, "a DMA engine that can begin nothing: whoever builds a machine refuses it before");
        DmaState { dma, under_way: 0, issuer: Serial::default(), waiting: VecDeque::new() }
    }
}
