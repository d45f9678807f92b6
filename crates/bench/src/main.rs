//! `multigrain-bench`, which `multigrain bench` starts: our runs beside their peers, taking turns in one run.
//!
//! In come names of rows and the list of peers that are installed; out go a table or one JSON object, and figures. A row is one
//! measurement of ours, the same work done by each of its peers, the ratio of the medians and the bar that it is held against.
//! What a peer is, how it is installed and how it talks stands in `bench/README.md`. Whatever is measured has been checked
//! first; nothing here computes for anybody else, and no other room uses this one.

mod args;
mod entry;
mod figures;
mod harness;
mod rows;
mod studies;

use args::BenchArgs;
use entry::{Entry, Page, What};
use harness::peers::Catalogue;
use harness::row::Row;
use harness::{Bench, reason, show};
use multigrain::Error;
use multigrain_console::{Failure, Interrupt, print, say};
use rows::collectives;
use std::process::ExitCode;

fn main() -> ExitCode {
    multigrain_console::program(bench)
}

/// Measures and prints.
fn bench(asked: &BenchArgs) -> Result<(), Failure> {
    let (asked, args) = (&asked.rows[..], &asked.how);
    let told = |page: Page| entry::told(page, args.json);
    if let [Entry { what: What::Simulated(study), .. }] = *asked {
        return told(study(args.figures.as_deref())?);
    }
    let interrupt = Interrupt::install()?;
    interrupt.begin();
    let alone = if let [only] = asked { Some(only.name) } else { None };
    let bench = Bench { args, alone, catalogue: Catalogue::load()?, abort: interrupt.abort.clone() };
    if let [Entry { what: What::Study(study), .. }] = *asked {
        return told(study(&bench)?);
    }
    let everything: Vec<&Entry> = rows::all().filter(|entry| entry.unasked).collect();
    let entries = if asked.is_empty() { &everything[..] } else { asked };
    let (mut rows, mut failed) = (Vec::new(), 0);
    for entry in entries {
        let measured = match entry.what {
            What::Rows(measure) | What::RowsAndPage(measure, _) => measure(&bench),
            What::Study(_) | What::Simulated(_) => {
                Err(Failure::Request(format!("{} has figures of its own: ask for it alone", entry.name)))
            }
        };
        match measured {
            Ok(measured) => rows.extend(measured),
            Err(Failure::Facade(Error::Interrupted { .. })) => {
                return Err(Failure::Run("interrupted; nothing is left behind".into()));
            }
            // The other rows are worth having all the same.
            Err(failure) => {
                let why = reason(failure);
                say(&format!("{}: {why}", entry.name));
                rows.push(Row::failed(entry.name, why));
                failed += 1;
            }
        }
    }
    let (text, value) = match *asked {
        [Entry { what: What::RowsAndPage(_, page), .. }] => page(&bench)?,
        _ => Page::default(),
    };
    print(&match args.json {
        true => {
            let mut all = show::json(&rows, args.quick, args.threads, args.rounds);
            if !value.is_null() {
                all["page"] = value;
            }
            format!("{all}\n")
        }
        false if bench.is_alone("collectives") && !args.verbose => collectives::summary(&rows),
        false => {
            rows.retain(|row| args.verbose || !collectives::is_of_survey(row));
            format!("{}{}{text}", show::text(&rows, args.quick), if text.is_empty() { "" } else { "\n" })
        }
    })?;
    match failed {
        0 => Ok(()),
        1 => Err(Failure::Run("one row could not be measured".into())),
        n => Err(Failure::Run(format!("{n} rows could not be measured"))),
    }
}
