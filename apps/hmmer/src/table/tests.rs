use super::number::general;
use super::*;
use crate::domain::{Aligned, Domain, Hit};
use crate::profile::tests::made;
use proptest::prelude::*;

fn hit(score: f32, log_p: f64) -> Hit {
    let domain = |from, score, log_p, aligned: Option<(usize, usize)>| Domain {
        aligned: aligned.map(|residues| Aligned { residues, nodes: (1, 41), accuracy: 30.0, columns: Vec::new() }),
        from,
        to: from + 50,
        score,
        bias: 0.25,
        log_p,
    };
    Hit {
        score,
        bias: 1.5,
        log_p,
        expected: 2.5,
        regions: 2,
        clustered: 1,
        overlaps: 1,
        envelopes: 3,
        domains: vec![
            domain(1, score - 3.0, log_p + 3.0, None),
            domain(60, score - 1.0, log_p + 1.0, Some((60, 100))),
            domain(70, score - 2.0, log_p + 2.0, Some((60, 100))),
        ],
    }
}

fn named(name: &str, index: u64, hit: Hit) -> Named {
    Named { name: name.to_owned(), description: "a sequence".to_owned(), index, length: 200, hit }
}

#[test]
fn rows_are_those_within_the_thresholds_in_order() {
    let profile = made(1, 5);
    let hits = vec![
        named("weak", 0, hit(1.0, -0.5)),
        named("beta", 1, hit(50.0, -40.0)),
        named("same", 4, hit(20.0, -10.0)),
        named("alpha", 2, hit(20.0, -10.0)),
        named("same", 3, hit(20.0, -10.0)),
    ];
    let rows = rows(&profile, hits, &Thresholds::new(1000.0));
    assert_eq!(rows.significant, 1);
    let rows = rows.hits;
    assert_eq!(rows.iter().map(|row| row.target.as_str()).collect::<Vec<_>>(), ["beta", "alpha", "same", "same"]);
    let first = &rows[0];
    assert_eq!((first.query.as_str(), first.query_accession.as_str()), ("made", "MA00001.1"));
    assert!((first.full.evalue / (1000.0 * (-40.0f64).exp()) - 1.0).abs() < 1e-12);
    // The best is the second; the third has the same alignment and is not counted.
    assert!((first.best.score - 49.0).abs() < 1e-6);
    assert_eq!([first.domains, first.reported, first.included], [3, 2, 2]);
    // E = 0.045: reported, but not included.
    assert_eq!([rows[1].reported, rows[1].included], [2, 0]);
}

#[test]
fn layout_is_that_of_tblout() {
    let profile = made(1, 5);
    let rows = rows(&profile, vec![named("sp|P02185|MYG_PHYCD", 0, hit(215.6, -151.5))], &Thresholds::new(45.0)).hits;
    let mut text = Vec::new();
    write_header(&mut text, &rows, "made", Some("MA00001.1")).unwrap();
    write_rows(&mut text, &rows).unwrap();
    write_footer(&mut text, Footer { query_file: "a.hmm", target_file: "b.fa", options: "run" }).unwrap();
    let expected = "\
#                                                               --- full sequence ---- --- best 1 domain ---- --- domain number estimation ----
# target name        accession  query name           accession    E-value  score  bias   E-value  score  bias   exp reg clu  ov env dom rep inc description of target
#------------------- ---------- -------------------- ---------- --------- ------ ----- --------- ------ -----   --- --- --- --- --- --- --- --- ---------------------
sp|P02185|MYG_PHYCD  -          made                 MA00001.1    7.2e-65  215.6   1.5     2e-64  214.6   0.2   2.5   2   1   1   3   3   2   2 a sequence
#
# Program:         multigrain hmmer
# Version:         0.1.0
# Pipeline mode:   SEARCH
# Query file:      a.hmm
# Target file:     b.fa
# Option settings: run
# [ok]
";
    let expected = expected.replace("0.1.0", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn no_hits_are_a_table_without_rows() {
    let mut text = Vec::new();
    write_header(&mut text, &[], "a-query-whose-name-is-longer-than-the-column", None).unwrap();
    write_rows(&mut text, &[]).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().all(|line| line.starts_with('#')));
    assert_eq!(parse(&text), Ok(Vec::new()));
}

#[test]
fn what_is_no_table_is_refused() {
    assert_eq!(
        parse("# a\na b c").unwrap_err().to_string(),
        "line 2 of the table: 18 fields and a description are expected, found 3"
    );
    let line = "t - q - 1e-5 x 0.1 1e-5 20 0.1 1.0 1 0 0 1 1 1 1 -";
    assert_eq!(parse(line).unwrap_err().to_string(), "line 1 of the table: field 6 must be a number, found 'x'");
    let line = "t - q - 1e-5 1 0.1 1e-5 20 0.1 1.0 1 0 0 1 1 1 -1 -";
    assert_eq!(parse(line).unwrap_err().to_string(), "line 1 of the table: field 18 must be a count, found '-1'");
}

fn scored() -> impl Strategy<Value = Scored> {
    (-700.0f64..3.0, -200i32..9999, 0i32..999).prop_map(|(log, score, bias)| Scored {
        evalue: general(log.exp()).parse().unwrap(),
        score: f64::from(score) / 10.0,
        bias: f64::from(bias) / 10.0,
    })
}

fn row() -> impl Strategy<Value = Row> {
    let names = ("[!-~&&[^#]][!-~]{0,30}", "[!-~]{1,12}", "[ -~]{0,40}");
    (names, scored(), scored(), 0i32..500, prop::array::uniform7(0u32..1000)).prop_map(
        |((target, target_accession, description), full, best, expected, counts)| Row {
            target,
            target_accession,
            query: "query".to_owned(),
            query_accession: "-".to_owned(),
            full,
            best,
            expected: f64::from(expected) / 10.0,
            regions: counts[0],
            clustered: counts[1],
            overlaps: counts[2],
            envelopes: counts[3],
            domains: counts[4],
            reported: counts[5],
            included: counts[6],
            description: if description.trim().is_empty() { "-".to_owned() } else { description },
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(rows in prop::collection::vec(row(), 0..5)) {
        let mut text = Vec::new();
        write_header(&mut text, &rows, "query", None).unwrap();
        write_rows(&mut text, &rows).unwrap();
        write_footer(&mut text, Footer { query_file: "a", target_file: "b", options: "" }).unwrap();
        prop_assert_eq!(parse(std::str::from_utf8(&text).unwrap()).unwrap(), rows);
    }

    #[test]
    fn any_text_is_rows_or_an_error(text in "[ -~\\n]{0,200}") {
        let _ = parse(&text);
    }
}
