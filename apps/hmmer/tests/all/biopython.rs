//! Tables as an independent program reads them: Biopython's SearchIO, format hmmer3-tab, where a Python with it is
//! installed (`MULTIGRAIN_PYTHON` names another than `python3`).

use multigrain_hmmer::table::{Footer, Row, Scored, parse, write_footer, write_header, write_rows};
use std::process::Command;

/// Prints for each row what its hit and best domain say.
const SCRIPT: &str = "
import sys
from Bio import SearchIO
for query in SearchIO.parse(sys.argv[1], 'hmmer3-tab'):
    for hit in query:
        assert len(hit) == 1
        best = hit[0]
        print(hit.id, hit.accession, query.id, query.accession,
              hit.evalue, hit.bitscore, hit.bias, best.evalue, best.bitscore, best.bias,
              hit.domain_exp_num, hit.region_num, hit.cluster_num, hit.overlap_num, hit.env_num,
              hit.domain_obs_num, hit.domain_reported_num, hit.domain_included_num, hit.description)
";

fn row(query: &str, target: &str, evalue: f64, description: &str) -> Row {
    Row {
        target: target.to_owned(),
        target_accession: "-".to_owned(),
        query: query.to_owned(),
        query_accession: "PF00041.13".to_owned(),
        full: Scored { evalue, score: 215.6, bias: 2.9 },
        best: Scored { evalue: 9.7e-67, score: 215.4, bias: -0.1 },
        expected: 1.5,
        regions: 2,
        clustered: 1,
        overlaps: 3,
        envelopes: 4,
        domains: 5,
        reported: 6,
        included: 7,
        description: description.to_owned(),
    }
}

#[test]
fn biopython_reads_what_was_written() {
    let python = std::env::var("MULTIGRAIN_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import Bio.SearchIO"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        println!("skipped: {python} has no Biopython");
        return;
    }
    let queries = [
        vec![
            row("fn3", "sp|P13368|7LESS_DROME", 8.7e-67, "Protein sevenless OS=Drosophila"),
            row("fn3", "b", 10.0, "-"),
        ],
        vec![],
        vec![row("globins4", "a-name-that-is-longer-than-the-column-of-names", 0.0, "with  two spaces")],
    ];
    let mut text = Vec::new();
    write_header(&mut text, &queries[0], "fn3", Some("PF00041.13")).unwrap();
    for rows in &queries {
        write_rows(&mut text, rows).unwrap();
    }
    write_footer(&mut text, Footer { query_file: "q.hmm", target_file: "t.fa", options: "none" }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hits.tbl");
    std::fs::write(&file, &text).unwrap();
    let output = Command::new(&python).arg("-c").arg(SCRIPT).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let found = parse(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let mut expected = queries.concat();
    // Biopython takes runs of space for one.
    expected[2].description = "with two spaces".to_owned();
    assert_eq!(found, expected);
}
