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

use crate::harness::Bench;
use crate::harness::row::Row;
use crate::studies;
use multigrain_console::Failure;
use serde_json::Value;
use std::path::Path;

/// What can be asked for by a name.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// One line of help.
    pub(crate) about: &'static str,
    /// Whether it is measured also when nothing is named.
    pub(crate) unasked: bool,
    pub(crate) what: What,
}

/// How it is measured, and what that gives.
pub(crate) enum What {
    /// Rows beside peers.
    Rows(fn(&Bench<'_>) -> Result<Vec<Row>, Failure>),
    /// The same, and where it is asked for alone a page of its own below them: text and JSON.
    RowsAndPage(fn(&Bench<'_>) -> Result<Vec<Row>, Failure>, fn(&Bench<'_>) -> Result<Page, Failure>),
    /// A page of its own.
    Study(fn(&Bench<'_>) -> Result<Page, Failure>),
    /// The same in virtual time, without peers; figures go into the directory, if there is one.
    Simulated(fn(Option<&Path>) -> Result<Page, Failure>),
}

/// Text for people, and the same for programs.
pub(crate) type Page = (String, Value);

impl Entry {
    pub(crate) const fn rows(
        name: &'static str,
        about: &'static str,
        measure: fn(&Bench<'_>) -> Result<Vec<Row>, Failure>,
    ) -> Entry {
        Entry { name, about, unasked: true, what: What::Rows(measure) }
    }

    pub(crate) const fn study(
        name: &'static str,
        about: &'static str,
        study: fn(&Bench<'_>) -> Result<Page, Failure>,
    ) -> Entry {
        Entry { name, about, unasked: false, what: What::Study(study) }
    }

    pub(crate) const fn simulated(
        name: &'static str,
        about: &'static str,
        study: fn(Option<&Path>) -> Result<Page, Failure>,
    ) -> Entry {
        Entry { name, about, unasked: false, what: What::Simulated(study) }
    }

    pub(crate) const fn when_named(self) -> Entry {
        Entry { unasked: false, ..self }
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

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
