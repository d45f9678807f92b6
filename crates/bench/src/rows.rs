//! What can be measured: a file for each subject, which names its rows.

mod call;
pub(crate) mod collectives;
mod conv2d;
mod dispatch;
mod encode;
mod encrypt;
mod fft3d;
mod gravity;
mod hmmer;
mod kinds;
mod phylo;
mod queens;
mod saxpy;
mod sgemm;
mod sgemv;
mod sim;
mod strands;

use crate::entry::Entry;
use crate::studies;

/// Everything, in the order in which it is measured.
pub(crate) fn all() -> impl Iterator<Item = &'static Entry> + Clone {
    const FILES: [&[Entry]; 18] = [
        sgemm::ENTRIES,
        kinds::ENTRIES,
        saxpy::ENTRIES,
        sgemv::ENTRIES,
        conv2d::ENTRIES,
        fft3d::ENTRIES,
        hmmer::ENTRIES,
        gravity::ENTRIES,
        call::ENTRIES,
        collectives::ENTRIES,
        sim::ENTRIES,
        strands::ENTRIES,
        dispatch::ENTRIES,
        phylo::ENTRIES,
        encrypt::ENTRIES,
        encode::ENTRIES,
        queens::ENTRIES,
        studies::ENTRIES,
    ];
    FILES.into_iter().flatten()
}
