//! Partition files: ranges and codon steps; sites covered twice or left out are refused, with places.

use crate::support;

use multigrain_phylo::alignment::DataType;
use multigrain_phylo::alignment::{Format, read_alignment};
use multigrain_phylo::model::ModelSpec;
use multigrain_phylo::partition::{Scheme, Unnamed, parse_schemes, read_schemes};
use proptest::prelude::*;
use std::path::Path;

/// Nothing is said of what names no model.
const UNNAMED: Unnamed<'static> = Unnamed { model: None, data_type: DataType::Dna };

fn parse(text: &str, sites: usize) -> Result<Vec<Scheme>, String> {
    parse_schemes(Path::new("p.part"), text, sites, UNNAMED).map_err(|e| e.to_string())
}

#[test]
fn ranges_steps_and_models() {
    let schemes = parse("DNA, a = 1-9\\3, 2-9\\3\n\n# remark\nHKY{1,2}+F, b=3-9\\3,10\nLG+G4, c = 11-.\n", 12).unwrap();
    assert_eq!(schemes[0].sites, [0, 1, 3, 4, 6, 7]);
    assert_eq!(schemes[1].sites, [2, 5, 8, 9]);
    assert_eq!(schemes[2].sites, [10, 11]);
    assert_eq!(schemes[1].model.to_string(), "HKY{1/2/1/1/2/1}+FC");
    assert_eq!(schemes[2].model.to_string(), "LG+G4m");
}

#[test]
fn messages_say_what_and_where() {
    for (text, expected) in [
        ("DNA, a = 1-6\nDNA, b = 6-12", "p.part:2:9: site 6 is in b, but also in the partition of line 1"),
        ("DNA, a = 1-6, 6-12", "p.part:1:14: site 6 is in a twice"),
        ("DNA, a = 1-6", "site 7 and 5 more of 12"),
        ("DNA, a = 1-13", "p.part:1:9: there is no site 13"),
        ("DNA, a = 0-12", "there is no site 0"),
        ("DNA, a = 6-1", "ends before"),
        ("DNA, a = 1-12\\0", "step"),
        ("DNA, a = x", "\"x\""),
        ("DNA, a 1-12", "p.part:1:5"),
        ("DNA a = 1-12", "MODEL, NAME"),
        ("DNA, = 1-12", "no name"),
        ("DNA, a = 1-6\nDNA, a = 7-12", "p.part:2:6: a second partition a"),
        ("QQ+G, a = 1-12", "p.part:1:1"),
        ("", "no partition"),
    ] {
        let message = parse(text, 12).expect_err(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "[DNALG+,=0-9 a.\\\\/{}\n-]{0,60}") {
        let _ = parse(&text, 20);
    }

    #[test]
    fn sites_of_partitions_are_a_partition_of_the_sites(sites in 4usize..200, cuts in prop::collection::vec(1usize..199, 0..5)) {
        let mut ends: Vec<usize> = cuts.into_iter().filter(|&c| c < sites).chain([sites]).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut text = String::new();
        let mut first = 1;
        for (i, end) in ends.iter().enumerate() {
            let steps = if end - first >= 2 && i % 2 == 0 { 3 } else { 1 };
            for step in 0..steps {
                text += &format!("DNA, p{i}_{step} = {}-{end}\\{steps}\n", first + step);
            }
            first = end + 1;
        }
        let schemes = parse(&text, sites).map_err(TestCaseError::fail)?;
        let mut all: Vec<usize> = schemes.iter().flat_map(|s| s.sites.iter().copied()).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..sites).collect::<Vec<_>>());
        // What is written reads as the same, with its model named.
        let named: Vec<_> = schemes.iter().map(|s| Scheme { is_open: false, ..s.clone() }).collect();
        let lines = schemes.iter().map(|s| format!("{}, {} = {}\n", s.model, s.name, s.ranges()));
        let again = parse(&lines.collect::<String>(), sites).map_err(TestCaseError::fail)?;
        prop_assert_eq!(again, named);
        prop_assert!(schemes.iter().all(|s| s.is_open));
    }
}

#[test]
fn the_beetles_partitions() {
    let Some(folder) = support::data() else { return };
    let (a, source) = read_alignment(&folder.join("bergsten38.phy"), Format::Auto, u64::MAX).unwrap();
    let model = ModelSpec::parse("GTR+F+G4").unwrap();
    let schemes =
        read_schemes(&folder.join("bergsten38.part"), a.sites(), Unnamed { model: Some(&model), ..UNNAMED }).unwrap();
    let partitions: Vec<_> = schemes.iter().map(|s| s.partition(&a, &source).unwrap()).collect();
    assert_eq!(partitions.len(), 8);
    assert_eq!(partitions.iter().map(|p| p.patterns.pattern_of_site.len()).sum::<usize>(), a.sites());
    assert!(partitions.iter().all(|p| p.model.free_parameters() == 9));
}

/// What IQ-TREE's manual shows, and names of RAxML's.
#[test]
fn nexus_and_names_of_raxml() {
    let text = "#nexus\nbegin sets;\n  [two genes]\n  charset part1 = 1-9\\3 2-9\\3;\n  charset part2 = 3-9\\3, 10-.;\n  \
                charset unused = 1-12;\n  charpartition mine = HKY{2}+F+G:part1, GTR+I+G : part2;\nend;\n";
    let schemes = parse(text, 12).unwrap();
    assert_eq!(schemes.iter().map(|s| &*s.name).collect::<Vec<_>>(), ["part1", "part2"]);
    assert_eq!(schemes[0].sites, [0, 1, 3, 4, 6, 7]);
    assert_eq!(schemes[1].sites, [2, 5, 8, 9, 10, 11]);
    assert_eq!(schemes[0].model.to_string(), "HKY{1/2/1/1/2/1}+FC+G4m");
    assert!(schemes.iter().all(|scheme| !scheme.is_open));
    // Without a charpartition the command line, or what the letters are, says which model.
    let open = parse("#NEXUS\nbegin sets; charset a = 1-5; charset b = 6-12; end;", 12).unwrap();
    assert!(open.len() == 2 && open.iter().all(|s| s.is_open && s.model.to_string() == "GTR+FC+G4m"));
    for (text, expected) in [
        ("#NEXUS\nbegin sets;\n charset a = 1-5;\n charset b = 5-12;\nend;", "p.part:4:14: site 5 is in b, but also"),
        ("#NEXUS\nbegin sets;\n charset a = 1-12;\n charpartition p = JC:a, JC:b;\nend;", "no charset b"),
        ("#NEXUS\nbegin sets;\n charset a = x.phy: 1-12;\nend;", "sites of other files"),
        ("#NEXUS\nbegin sets;\nend;", "no partition"),
    ] {
        let message = parse(text, 12).expect_err(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
    let raxml = parse("WAGF, a = 1-6\nlgx, b = 7-12\n", 12).unwrap();
    assert_eq!(raxml[0].model.to_string(), "WAG+FC+G4m");
    assert_eq!(raxml[1].model.to_string(), "LG+FO+G4m");
}
