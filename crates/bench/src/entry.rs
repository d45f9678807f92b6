//! What can be measured, by its name.

use crate::harness::Bench;
use crate::harness::row::Row;
use multigrain_console::{Failure, print};
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

/// Prints a page.
pub(crate) fn told((text, value): Page, json: bool) -> Result<(), Failure> {
    print(&if json { format!("{value}\n") } else { text })
}

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
