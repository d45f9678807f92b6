//! The proxy: streams of cameras, pulled once, for any number of viewers.
//!
//! In come addresses of sources, which send RTP over UDP or within their RTSP connection; out go the same packets to viewers over
//! RTSP, within the connection or over UDP, and the same pictures as MPEG transport streams over HTTP. Stages: receive, reorder, translate
//! (all once a packet), send (once a viewer). What a packet is decided by is pure ([`reorder`], [`continuity`], [`feed`],
//! [`dialogue`], [`session`]); one loop a worker moves bytes ([`worker`]). Nothing is encoded or decoded here, nothing is kept on
//! a disk, and what cannot be delivered in time is left out by whole groups of pictures.

pub mod address;
pub mod auth;
pub mod bundle;
pub mod choice;
pub mod clock;
pub mod config;
pub mod connection;
pub mod continuity;
pub mod counts;
pub mod dial;
pub mod dialogue;
pub mod feed;
pub mod form;
pub mod gaps;
pub mod gathering;
pub mod http;
pub mod inbox;
pub mod instants;
pub mod lines;
pub mod mp4;
pub mod net;
pub mod origin;
pub mod passage;
pub mod picture;
pub mod pull;
pub mod receive;
pub mod references;
pub mod reorder;
pub mod report;
pub mod rtp;
pub mod sdp;
pub mod seam;
pub mod serve;
pub mod session;
pub mod shared;
pub mod stream;
pub mod text;
pub mod tfrc;
pub mod tls;
pub mod transparent;
pub mod transport;
pub mod ts;
pub mod tunnel;
pub mod units;
pub mod viewer;
pub mod websocket;
pub mod wire;
pub mod worker;

/// Cases of a property test: as many as `MULTIGRAIN_CASES` says, or so many.
#[cfg(test)]
fn cases(usual: u32) -> u32 {
    std::env::var("MULTIGRAIN_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
