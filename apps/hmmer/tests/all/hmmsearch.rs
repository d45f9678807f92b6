//! Tables against those of HMMER 3.3.2's `hmmsearch`, with `--max` and with its filters, on real profiles and sequences: globins and a protein of many
//! domains here, more where they lie beside the repository.

use crate::support;

use multigrain_hmmer::domain::{Bound, Finder};
use multigrain_hmmer::filter::{Filters, ForwardFilter, Reference, STAGES};
use multigrain_hmmer::profile::{alphabet, read_profiles};
use multigrain_hmmer::table::{self, Named, Row, Rows, Thresholds};
use std::fs;
use std::path::Path;
use support::data;

/// Sequences of a FASTA file: name, description, residue codes.
fn sequences(path: &Path) -> Vec<(String, String, Vec<u8>)> {
    let text = fs::read_to_string(path).unwrap();
    let entry = |entry: &str| {
        let (header, residues) = entry.split_once('\n').unwrap();
        let (name, description) = header.trim_end().split_once(' ').unwrap_or((header.trim_end(), ""));
        (name.to_owned(), description.trim().to_owned(), codes(residues))
    };
    text.split('>').skip(1).map(entry).collect()
}

fn codes(residues: &str) -> Vec<u8> {
    let residues = residues.bytes().filter(|byte| !byte.is_ascii_whitespace());
    residues.map(|byte| alphabet::code(byte).unwrap()).collect()
}

/// The hits and rows that a search finds.
fn search(
    profile: &Path,
    sequences: Vec<(String, String, Vec<u8>)>,
    correct_bias: bool,
    filters: Option<Filters>,
) -> Rows {
    let profile = read_profiles(profile).unwrap().remove(0);
    let thresholds = Thresholds::new(sequences.len() as f64);
    let bound = Bound::new(profile.forward, &thresholds);
    let mut finder = Finder::new(&profile)
        .with_filter(filters.map(|filters| ForwardFilter::new(&profile, &filters)))
        .with_alignments(true);
    let mut plain = filters.map(|filters| Reference::new(&profile, &filters));
    let hits = sequences.into_iter().enumerate().filter_map(|(index, (name, description, residues))| {
        if plain.as_mut().is_some_and(|plain| plain.passed(&residues) < STAGES) {
            return None;
        }
        let hit = finder.hit(&residues, correct_bias, &bound).unwrap()?;
        Some(Named { name, description, index: index as u64, length: residues.len() as u64, hit })
    });
    let hits: Vec<Named> = hits.collect();
    table::rows(&profile, hits, &thresholds)
}

/// A row as it is printed.
fn printed(row: &Row) -> Vec<String> {
    let mut line = Vec::new();
    table::write_rows(&mut line, std::slice::from_ref(row)).unwrap();
    String::from_utf8(line).unwrap().split_whitespace().map(str::to_owned).collect()
}

/// The fields of the rows of a table.
fn expected(table: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(table).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

fn compare(query: &str, database: &str, table: &str, correct_bias: bool) {
    compare_with(query, database, table, correct_bias, None);
}

fn compare_with(query: &str, database: &str, table: &str, correct_bias: bool, filters: Option<Filters>) {
    let (Some(query), Some(database), Some(table)) = (data(query), data(database), data(table)) else { return };
    let rows = search(&query, sequences(&database), correct_bias, filters).hits;
    let found: Vec<Vec<String>> = rows.iter().map(printed).collect();
    let expected_rows = expected(&table);
    let different: Vec<_> = expected_rows.iter().zip(&found).filter(|(a, b)| a != b).collect();
    for (expected, found) in &different {
        println!("hmmsearch  {}\nhere       {}", expected.join(" "), found.join(" "));
    }
    assert_eq!(expected_rows.len(), found.len(), "{}: rows", table.display());
    assert!(different.is_empty(), "{}: {} of {} rows differ", table.display(), different.len(), found.len());
    // The table up to its last lines, which name the program.
    let text = fs::read_to_string(&table).unwrap();
    let (expected_text, _) = text.split_once("#\n# Program").unwrap();
    let mut written = Vec::new();
    let profile = read_profiles(&query).unwrap().remove(0);
    table::write_header(&mut written, &rows, &profile.name, profile.accession.as_deref()).unwrap();
    table::write_rows(&mut written, &rows).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), expected_text, "{}", table.display());
}

#[test]
fn globins() {
    compare("hmm/globins4.hmm", "hmm/globins45.fa", "hmm/globins4.globins45.max.tbl", true);
    compare("hmm/globins4.hmm", "hmm/globins45.fa", "hmm/globins4.globins45.max_nonull2.tbl", false);
    compare("hmm/fn3.hmm", "hmm/globins45.fa", "hmm/fn3.globins45.max.tbl", true);
    compare("hmm/fn3.hmm", "hmm/globins45.fa", "hmm/fn3.globins45.max_nonull2.tbl", false);
}

#[test]
fn with_filters() {
    let compare = |query: &str, database: &str, table: &str| {
        compare_with(query, database, table, true, Some(Filters::default()));
    };
    compare("hmm/globins4.hmm", "hmm/globins45.fa", "hmm/globins4.globins45.default.tbl");
    compare("hmm/fn3.hmm", "hmm/globins45.fa", "hmm/fn3.globins45.default.tbl");
    let database = "protdb/938293.PRJEB85.HG003687.faa";
    compare("hmm/fn3.hmm", database, "hmm/fn3.938293.PRJEB85.HG003687.default.tbl");
    compare("hmm/globins4.hmm", database, "hmm/globins4.938293.PRJEB85.HG003687.default.tbl");
}

#[test]
fn predicted_proteins_with_stops() {
    let database = "protdb/938293.PRJEB85.HG003687.faa";
    compare("hmm/fn3.hmm", database, "hmm/fn3.938293.PRJEB85.HG003687.max.tbl", true);
    compare("hmm/fn3.hmm", database, "hmm/fn3.938293.PRJEB85.HG003687.max_nonull2.tbl", false);
    compare("hmm/globins4.hmm", database, "hmm/globins4.938293.PRJEB85.HG003687.max.tbl", true);
    compare("hmm/globins4.hmm", database, "hmm/globins4.938293.PRJEB85.HG003687.max_nonull2.tbl", false);
}

#[test]
fn a_protein_with_many_domains() {
    let Some(entry) = data("hmm/7LESS_DROME") else { return };
    let folder = entry.parent().unwrap();
    // An entry of UniProtKB in its own format: the sequence follows the line SQ.
    let text = fs::read_to_string(&entry).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("SQ ")).skip(1).take_while(|line| *line != "//");
    let sequence = ("7LESS_DROME".to_owned(), String::new(), codes(&lines.collect::<String>()));
    let rows = search(&folder.join("fn3.hmm"), vec![sequence], true, None);
    // Its domains, but for the description.
    let mut written = Vec::new();
    table::write_domains(&mut written, &rows, 86).unwrap();
    let (written, theirs) = (String::from_utf8(written).unwrap(), expected(&folder.join("fn3.7LESS.domtbl")));
    assert_eq!(written.lines().count(), theirs.len());
    for (line, theirs) in written.lines().zip(theirs) {
        assert_eq!(line.split_whitespace().collect::<Vec<_>>()[2..22], theirs[2..22]);
    }
    let rows = rows.hits;
    // Accession and description, which a FASTA file does not have, aside.
    assert_eq!(printed(&rows[0])[2..18], expected(&folder.join("fn3.7LESS.tbl"))[0][2..18]);
    assert_eq!(rows.len(), 1);
}

/// All reported domains, their alignments among them, to the letter.
#[test]
fn domains_are_where_hmmsearch_has_them() {
    for (query, database, table) in [
        ("hmm/globins4.hmm", "hmm/globins45.fa", "hmm/globins4.globins45.max.domtbl"),
        ("hmm/fn3.hmm", "hmm/globins45.fa", "hmm/fn3.globins45.max.domtbl"),
        ("hmm/fn3.hmm", "protdb/938293.PRJEB85.HG003687.faa", "hmm/fn3.938293.PRJEB85.HG003687.max.domtbl"),
        ("hmm/globins4.hmm", "protdb/938293.PRJEB85.HG003687.faa", "hmm/globins4.938293.PRJEB85.HG003687.max.domtbl"),
    ] {
        let (Some(query), Some(database), Some(table)) = (data(query), data(database), data(table)) else { continue };
        let rows = search(&query, sequences(&database), true, None);
        let profile = read_profiles(&query).unwrap().remove(0);
        let mut written = Vec::new();
        table::write_domain_header(&mut written, &rows.hits, &profile.name, profile.accession.as_deref()).unwrap();
        table::write_domains(&mut written, &rows, profile.nodes()).unwrap();
        let text = fs::read_to_string(&table).unwrap();
        let (expected, _) = text.split_once("#\n# Program").unwrap();
        for (found, expected) in String::from_utf8_lossy(&written).lines().zip(expected.lines()) {
            assert_eq!(found, expected, "{}", table.display());
        }
        assert_eq!(written.len(), expected.len(), "{}", table.display());
    }
}

/// A text without the lines that name programs and options, and what the report does not tell.
fn told(text: &str) -> Vec<&str> {
    let other = [
        "# ",
        "Passed ",
        "Initial search",
        "Domain search",
        "Query model(s)",
        "Target sequences",
        "[ok]",
        "//",
        "#=GF AU",
    ];
    let told = |line: &&str| !other.iter().any(|begin| line.starts_with(begin));
    text.lines().filter(told).collect()
}

fn assert_same_lines(found: &str, expected: &str) {
    let (found, expected) = (told(found), told(expected));
    found.iter().zip(&expected).for_each(|(found, expected)| assert_eq!(found, expected));
    assert_eq!(found.len(), expected.len());
}

/// The report with its alignments, and the alignment of all significant domains, to the letter.
#[test]
fn alignments_are_those_of_hmmsearch() {
    for (query, database, name) in [
        ("hmm/globins4.hmm", "hmm/globins45.fa", "globins4.globins45"),
        ("hmm/fn3.hmm", "hmm/7LESS_DROME.fa", "fn3.7LESS"),
    ] {
        let files = [query.to_owned(), database.to_owned(), format!("hmm/{name}.out"), format!("hmm/{name}.sto")];
        let [Some(query), Some(database), Some(report), Some(aligned)] = files.map(|file| data(&file)) else {
            continue;
        };
        let rows = search(&query, sequences(&database), true, Some(Filters::default()));
        let profile = read_profiles(&query).unwrap().remove(0);
        let mut written = Vec::new();
        table::write_report(&mut written, &profile, &rows, (1, 1)).unwrap();
        let (written, expected) = (String::from_utf8(written).unwrap(), fs::read_to_string(&report).unwrap());
        // The first lines of hmmsearch's say what it was asked.
        let (_, expected) = expected.split_once("Query: ").unwrap();
        assert_same_lines(&written, &format!("Query: {expected}"));
        let mut written = Vec::new();
        let count = table::write_stockholm(&mut written, &profile, &rows).unwrap();
        let (written, expected) = (String::from_utf8(written).unwrap(), fs::read_to_string(&aligned).unwrap());
        assert_same_lines(&written, &expected);
        assert_eq!(expected.lines().filter(|line| line.starts_with("#=GS ")).count(), count);
    }
}
