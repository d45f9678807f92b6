//! Model strings, published matrices, and log-likelihoods of fixed trees by a plain reference.

use crate::support;

use multigrain_phylo::alignment::{Alignment, DataType, Format, Patterns, read_alignment};
use multigrain_phylo::model::{Model, ModelSpec};
use proptest::prelude::*;

fn patterns(rows: &[&str], data_type: DataType) -> Patterns {
    let names = (0..rows.len()).map(|i| format!("t{i}")).collect();
    let a = Alignment { names, rows: rows.iter().map(|r| r.as_bytes().to_vec()).collect() };
    let sites = 0..a.sites();
    Patterns::new(&a, sites, data_type)
}

fn dna() -> Patterns {
    patterns(&["AACGTACGTA", "AACGTTCGTA", "AACGTACCTA", "AGCGTACGTA"], DataType::Dna)
}

#[test]
fn given_values_are_held_and_others_fitted() {
    let spec = ModelSpec::parse("GTR{2/4/6/8/10/2}+FU{0.1/0.2/0.3/0.4}+G4m{0.5}").unwrap();
    let model = spec.model(&dna());
    assert_eq!(model.exchangeabilities, [1.0, 2.0, 3.0, 4.0, 5.0, 1.0]);
    assert_eq!(model.frequencies, [0.1, 0.2, 0.3, 0.4]);
    assert_eq!((model.alpha, model.categories, model.pinv), (Some(0.5), 4, None));
    assert_eq!(model.free_parameters(), 0);
    assert!(spec.missing().is_empty());

    let spec = ModelSpec::parse("HKY{2}+FE+G4{1}+B{2.5}").unwrap();
    let model = spec.model(&dna());
    assert_eq!((model.speed, model.free_parameters()), (Some(2.5), 0));
    assert!((model.rates().iter().sum::<f64>() / 4.0 - 2.5).abs() < 1e-12);
    assert_eq!(ModelSpec::parse(&spec.to_string()).unwrap(), spec);
    assert_eq!(ModelSpec::parse("JC+B").unwrap().missing(), ["speed (+B{...})"]);

    let spec = ModelSpec::parse("GTR+I+G8").unwrap();
    let model = spec.model(&dna());
    assert_eq!((model.categories, model.free_parameters()), (8, 5 + 3 + 2));
    assert_eq!(spec.missing().len(), 4);
    // What was counted in the data is free as well: 5 exchangeabilities, 3 frequencies, alpha.
    assert_eq!(ModelSpec::parse("GTR+F+G").unwrap().model(&dna()).free_parameters(), 9);
    assert_eq!(ModelSpec::parse("GTR+FE+IC").unwrap().model(&dna()).free_parameters(), 6);
    assert_eq!(ModelSpec::parse("GTR+FU{0.1/0.2/0.3/0.4}+G").unwrap().model(&dna()).free_parameters(), 6);
    assert_eq!(ModelSpec::parse("JC").unwrap().model(&dna()).free_parameters(), 0);
    assert_eq!(ModelSpec::parse("K80+FE").unwrap().model(&dna()).free_parameters(), 1);
    assert_eq!(ModelSpec::parse("hky{3.5}+F").unwrap().model(&dna()).exchangeabilities, [1.0, 3.5, 1.0, 1.0, 3.5, 1.0]);
    assert_eq!(
        ModelSpec::parse("HKY{1.0/3.5}").unwrap().model(&dna()).exchangeabilities,
        ModelSpec::parse("HKY{3.5}").unwrap().model(&dna()).exchangeabilities
    );
}

#[test]
fn messages_say_what_is_wrong() {
    for (text, expected) in [
        ("", "missing"),
        ("XYZ+G", "GTR"),
        ("GTR+Q", "+Q"),
        ("GTR+G4+G", "second"),
        ("GTR+B{0}", "speed"),
        ("GTR+G0", "categories"),
        ("GTR+G4a", "mean"),
        ("GTR{1/2/3}", "classes"),
        ("GTR{1/2/3/4/5/x}", "\"x\""),
        ("GTR{1/2/3/4/5/0}", "positive"),
        ("GTR{1/2/3", "closed"),
        ("GTR+FU{0.5/0.5}", "4 states"),
        ("GTR+FU{0.5/0.5/0.5/0.5}", "sum to 2"),
        ("GTR+FU{0.5/0.5/0/0}", "positive"),
        ("GTR+FU", "braces"),
        ("GTR+I{1}", "[0, 1)"),
        ("GTR+G4{-1}", "alpha"),
        ("GTR+G4{NaN}", "alpha"),
        ("GTR+R1", "+R2"),
        ("GTR+R2+G4", "+G and +R"),
        ("GTR+R2{0.5/1.5}", "probabilities"),
        ("GTR+R2{0.5/1.5}{0.5/0.6}", "sum to"),
        ("GTR+R2{0.5/1.5/2}{0.5/0.5}", "2 positive rates"),
        ("GTR+G4{1}{2}", "two pairs"),
        ("LG{1/2}", "no exchangeabilities"),
        ("GTR++G", "missing"),
        ("GTR+", "missing"),
        ("GTR+FO{1}", "no values"),
    ] {
        let message = ModelSpec::parse(text).expect_err(text).to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_as_the_same(
        name in prop::sample::select(vec!["JC", "K80", "HKY", "GTR", "TN93", "SYM", "LG", "WAG", "JTT"]),
        frequencies in prop::sample::select(vec!["", "+F", "+FO", "+FE"]),
        invariant in prop::sample::select(vec!["", "+I", "+IC", "+IU{0.25}"]),
        gamma in prop::sample::select(vec!["", "+G", "+G6", "+G4m{0.37}", "+R3", "+R2{0.5/1.5}{0.5/0.5}"]),
    ) {
        let spec = ModelSpec::parse(&format!("{name}{frequencies}{invariant}{gamma}")).unwrap();
        prop_assert_eq!(&ModelSpec::parse(&spec.to_string()).unwrap().to_string(), &spec.to_string());
        let patterns = match spec.data_type {
            DataType::Dna => dna(),
            DataType::Protein => patterns(&["ARND", "ARNE", "AKND", "ARN-"], DataType::Protein),
            DataType::Binary => patterns(&["0101", "0011", "0110", "01?-"], DataType::Binary),
        };
        let model = spec.model(&patterns);
        let again = ModelSpec::parse(&model.to_string()).unwrap().model(&patterns);
        prop_assert_eq!(&again.frequencies, &model.frequencies);
        prop_assert_eq!(&again.exchangeabilities, &model.exchangeabilities);
        prop_assert_eq!((again.alpha, again.pinv, again.categories), (model.alpha, model.pinv, model.categories));
        let near = |a: &[f64; 2], b: &[f64; 2]| (a[0] - b[0]).abs() + (a[1] - b[1]).abs() < 1e-12;
        prop_assert!(again.free_rates.iter().zip(&model.free_rates).all(|(a, b)| near(a, b)));
        prop_assert!((model.frequencies.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn no_text_panics(text in "[GTRLJCKH8014FUOEIm{}/,+. x-]{0,30}") {
        let _ = ModelSpec::parse(&text);
    }
}

/// Entries of the published matrices, looked up by hand in the papers' order: LG's and WAG's V and I, JTT's N and D.
#[test]
fn published_matrices_lie_in_the_right_order() {
    let protein = patterns(&["ARND", "ARNE", "AKND", "ARN-"], DataType::Protein);
    let entry = |name: &str, a: u8, b: u8| {
        let model = ModelSpec::parse(name).unwrap().model(&protein);
        let state = |l| DataType::Protein.letters().iter().position(|&x| x == l).unwrap();
        let (i, j) = (state(a).min(state(b)), state(a).max(state(b)));
        model.exchangeabilities[(0..i).map(|r| 19 - r).sum::<usize>() + j - i - 1]
    };
    assert_eq!(entry("LG", b'V', b'I'), 10.649107);
    assert_eq!(entry("LG", b'R', b'A'), 0.425093);
    assert_eq!(entry("WAG", b'I', b'V'), 7.8213);
    assert_eq!(entry("JTT", b'N', b'D'), 528.0);
    assert_eq!(entry("JTT", b'Y', b'V'), 16.0);
}

/// Fixed trees and parameters: the model strings and log-likelihoods that lie beside the real alignments.
#[test]
fn log_likelihoods_of_fixed_trees() {
    let Some(folder) = support::data() else { return };
    for name in ["primates12", "syno42", "ds1_27", "bergsten38", "hsc31aa", "sc150"] {
        let (a, _) = read_alignment(&folder.join(format!("{name}.phy")), Format::Auto, u64::MAX).unwrap();
        let json = std::fs::read_to_string(folder.join(format!("fixed/{name}.json"))).unwrap();
        let tree = support::newick(&std::fs::read_to_string(folder.join(format!("fixed/{name}.nwk"))).unwrap());
        let spec = ModelSpec::parse(support::string(&json, "iqtree_model")).unwrap();
        let patterns = Patterns::new(&a, 0..a.sites(), spec.data_type);
        let found = support::log_likelihood(&tree, &a.names, &patterns, &spec.model(&patterns));
        let expected = support::number(&json, "lnL_reference");
        assert!((found - expected).abs() < 1e-6, "{name}: {found}, not {expected}");
    }
}

/// Sites that were taken because they vary, and none else.
#[test]
fn ascertained_models_and_binary_data() {
    for text in ["BIN+FC+G4m+ASC", "JC2+ASC", "GTR+FC+ASC+B", "LG+R3+ASC"] {
        assert_eq!(ModelSpec::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(ModelSpec::parse("GTR2+F+ASC_LEWIS").unwrap().to_string(), "BIN+FC+ASC");
    for (text, expected) in
        [("JC+I+ASC", "+ASC and +I"), ("JC+ASC+ASC", "a second +ASC"), ("BIN{2}", "no exchangeabilities")]
    {
        let error = ModelSpec::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let rows = ["0101?-", "011011", "000111"].map(|row| row.as_bytes().to_vec());
    let alignment = Alignment { names: (0..3).map(|i| format!("t{i}")).collect(), rows: rows.to_vec() };
    assert_eq!(alignment.guess(), DataType::Binary);
    let patterns = Patterns::new(&alignment, 0..6, DataType::Binary);
    let model = ModelSpec::parse("BIN+F+G4+ASC").unwrap().model(&patterns);
    assert!((model.frequencies[1] - 9.0 / 16.0).abs() < 1e-9 && model.is_ascertained);
    assert_eq!(model.free_parameters(), 2);
    assert_eq!(
        ModelSpec::parse(&model.to_string()).unwrap().model(&patterns),
        Model { free: Default::default(), ..model }
    );
}
