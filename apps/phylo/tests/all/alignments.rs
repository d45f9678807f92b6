//! Alignment files: every form of a random alignment reads as that alignment; broken files are refused, with places.

use multigrain_phylo::alignment::{Alignment, DataType, Format, parse_alignment, read_alignment};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::Path;

fn parse(text: &str) -> Result<Alignment, String> {
    parse_alignment(Path::new("a.phy"), text.as_bytes(), Format::Auto).map(|(a, _)| a).map_err(|e| e.to_string())
}

fn refused(text: &str) -> String {
    parse(text).expect_err(text)
}

/// The alignment in one of its forms: lines of `width` letters, in groups of ten where `groups`.
fn written(a: &Alignment, form: usize, width: usize, groups: bool, end: &str) -> String {
    let shown = |part: &[u8]| {
        let words: Vec<&str> = match groups {
            true => part.chunks(10).map(|c| std::str::from_utf8(c).unwrap()).collect(),
            false => vec![std::str::from_utf8(part).unwrap()],
        };
        words.join(" ")
    };
    let mut text = String::new();
    if form == 0 {
        for (name, row) in a.names.iter().zip(&a.rows) {
            write!(text, ">{name} remark{end}").unwrap();
            row.chunks(width).for_each(|part| write!(text, "{}{end}", shown(part)).unwrap());
        }
        return text;
    }
    write!(text, " {} {}{end}", a.taxa(), a.sites()).unwrap();
    let strict = form > 2;
    let named = |name: &str| if strict { format!("{name:<10}") } else { format!("{name}  ") };
    if form % 2 == 1 {
        for (name, row) in a.names.iter().zip(&a.rows) {
            text += &named(name);
            row.chunks(width).for_each(|part| write!(text, "{}{end}", shown(part)).unwrap());
        }
    } else {
        for block in 0..a.sites().div_ceil(width) {
            for (name, row) in a.names.iter().zip(&a.rows) {
                let part = row.chunks(width).nth(block).unwrap();
                let name = if block == 0 { named(name) } else { String::new() };
                write!(text, "{name}{}{end}", shown(part)).unwrap();
            }
            text += end;
        }
    }
    text
}

prop_compose! {
    fn alignments()(taxa in 1usize..8, sites in 1usize..60)(
        names in prop::collection::hash_set("[A-Za-z_][A-Za-z0-9_.|]{0,9}", taxa),
        rows in prop::collection::vec(prop::collection::vec(prop::sample::select(b"ACGTNRY-?".as_slice()), sites), taxa),
    ) -> Alignment {
        Alignment { names: names.into_iter().collect(), rows }
    }
}

proptest! {
    #[test]
    fn every_form_reads_as_what_was_written(
        a in alignments(),
        form in 0usize..5,
        width in 1usize..70,
        groups in any::<bool>(),
        windows in any::<bool>(),
    ) {
        let text = written(&a, form, width, groups, if windows { "\r\n" } else { "\n" });
        let read = parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert!(read == a, "{text}");
    }

    #[test]
    fn broken_files_never_panic(
        a in alignments(),
        form in 0usize..5,
        width in 1usize..70,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0usize..3), 1..6),
    ) {
        let mut bytes = written(&a, form, width, false, "\n").into_bytes();
        for (at, byte, kind) in edits {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        for format in [Format::Auto, Format::Fasta, Format::Phylip] {
            if let Ok((read, source)) = parse_alignment(Path::new("x"), &bytes, format) {
                prop_assert!(read.rows.iter().all(|r| r.len() == read.sites()));
                let sites: Vec<usize> = (0..read.sites()).collect();
                let _ = source.check_letters(&read, &sites, DataType::Dna);
            }
        }
    }
}

#[test]
fn strict_names_may_contain_blanks() {
    let a = parse(" 2 6\nHomo sapieACG TTT\nMus musculACGTTA\n").unwrap();
    assert_eq!(a.names, ["Homo sapie", "Mus muscul"]);
    assert_eq!(a.rows[0], b"ACGTTT");
}

#[test]
fn messages_say_what_and_where() {
    let short = refused("4 6\na ACGTAC\nb ACGTA\nc ACGTAC\nd ACGTAC\n");
    assert!(short.contains("a.phy:3:1") && short.contains('5') && short.contains('6'), "{short}");
    let twice = refused("4 4\na ACGT\nb ACGT\na ACGT\nd ACGT\n");
    assert!(twice.contains("a.phy:4:1") && twice.contains("line 2"), "{twice}");
    let more = refused("3 4\na ACGT\nb ACGT\nc ACGT\nd ACGT\n");
    assert!(more.contains("a.phy:5:1") && more.contains('3'), "{more}");
    let fewer = refused("5 4\na ACGT\nb ACGT\nc ACGT\nd ACGT\n");
    assert!(fewer.contains('5') && fewer.contains('4'), "{fewer}");
    let fasta = refused(">a\nACGT\n>b\nACG\n");
    assert!(fasta.contains("a.phy:3:1"), "{fasta}");
    assert!(refused("hello\n").contains("begins with"));
    assert!(refused("").contains("empty"));
}

/// Lines of five letters with names such that the sequential form comes out right too: blank lines decide.
#[test]
fn blocks_between_blank_lines_are_interleaved() {
    let text = "4 25\n_         NG?T-\nLI_3      YAGRR\nb|vn8h    ?TGGN\nIg        ?YG-T\n\nN-N?A\nANYA-\nYTR--\nAANGN\n\n\
                NN-GR\n?NNAN\nATTCG\nR?YRN\n\nYCG?C\nNRTNY\nCAA?Y\nR?-GY\n\n-?NGY\nAY-T?\nANTRR\nAYAAT\n";
    let read = parse(text).unwrap();
    assert_eq!(read.names, ["_", "LI_3", "b|vn8h", "Ig"]);
    assert_eq!(read.rows[3], b"?YG-TAANGNR?YRNR?-GYAYAAT");
}

#[test]
fn letters_outside_the_alphabet_have_a_place() {
    let text = b"4 6\na  ACG TAC\nb  ACG TAC\nc  ACG T!C\nd  ACG TAC\n";
    let (a, source) = parse_alignment(Path::new("a.phy"), text, Format::Auto).unwrap();
    let sites: Vec<usize> = (0..6).collect();
    let message = source.check_letters(&a, &sites, DataType::Dna).unwrap_err().to_string();
    assert!(message.contains("a.phy:4:9") && message.contains("'!'"), "{message}");
}

/// Taxa, sites and patterns as other programs count them.
#[test]
fn real_alignments() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/phylo");
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return;
    }
    let counts = [
        ("primates12", 12, 898, 413),
        ("syno42", 42, 1167, 237),
        ("ds1_27", 27, 1949, 934),
        ("bergsten38", 38, 2111, 605),
        ("hsc31aa", 31, 680, 292),
        ("sc150", 150, 1269, 1130),
        ("zilla500", 500, 1398, 1193),
    ];
    for (name, taxa, sites, patterns) in counts {
        let (a, source) = read_alignment(&folder.join(format!("{name}.phy")), Format::Auto, u64::MAX).unwrap();
        let data_type = a.guess();
        assert_eq!(data_type, if name == "hsc31aa" { DataType::Protein } else { DataType::Dna });
        let all: Vec<usize> = (0..a.sites()).collect();
        source.check_letters(&a, &all, data_type).unwrap();
        let p = multigrain_phylo::alignment::Patterns::new(&a, all, data_type);
        // A column of gaps is one pattern to other programs.
        let gaps = usize::from(p.pattern_of_site.contains(&None));
        assert_eq!((a.taxa(), a.sites(), p.len() + gaps), (taxa, sites, patterns), "{name}");
    }
}

/// NEXUS in both its forms, with comments, names in quotes, letters of the first sequence left out.
#[test]
fn nexus_reads_as_the_same_alignment() {
    let sequential = "#nexus\n[a [nested] remark; with a semicolon]\nBegin data;\n dimensions ntax=3 nchar = 8;\n \
                      format datatype=DNA missing=? gap=- matchchar=.;\n matrix\n 'it''s a' ACGT\n  ACG-\n b [x] ....?CGT\n c \
                      AC*TACGT\n;\nend;\nbegin trees; tree t = (a,b); end;\n";
    let interleaved = "#NEXUS\r\nBEGIN CHARACTERS;\r\nDIMENSIONS NCHAR=8;\r\nFORMAT DATATYPE=DNA INTERLEAVE GAP=*;\r\n\
                       MATRIX\r\n'it''s a' ACGT\r\nb ACGT\r\nc AC*T\r\n\r\n'it''s a' ACG-\r\nb ?CGT\r\nc ACGT\r\n;\r\nEND;";
    let rows = ["ACGTACG-", "ACGT?CGT"].map(|row| row.as_bytes().to_vec());
    for (text, last) in [(sequential, "AC*TACGT"), (interleaved, "AC-TACGT")] {
        let found = parse(text).unwrap();
        assert_eq!(found.names, ["it's a", "b", "c"]);
        assert_eq!(found.rows[..2], rows);
        assert_eq!(found.rows[2], last.as_bytes());
    }
    let of = |body: &str| {
        format!("#NEXUS\nbegin data;\ndimensions ntax=2 nchar=4;\nformat datatype=dna;\nmatrix\n{body};\nend;")
    };
    for (text, expected) in [
        (of("a ACGT\nb ACG\n"), "a.phy:7:1: sequence b has 3 letters, not 4"),
        (of("a ACGT\n"), "the matrix has 1 sequences, but NTAX promises 2"),
        (of("a ACGT\na ACGT\n"), "a.phy:7:1: a second sequence a"),
        (of("a ACGT\nb AC\x07T\n"), "a.phy:7:5: a character that is no letter"),
        (
            "#NEXUS\nbegin data;\nformat datatype=standard;\nmatrix a 0101;\nend;".to_owned(),
            "a.phy:3:1: characters of type standard",
        ),
        ("#NEXUS\nbegin trees; tree t = (a,b); end;".to_owned(), "no matrix"),
        ("#NEXUS".to_owned(), "no matrix"),
        ("CLUSTAL W (1.83)\n\na ACGT\n".to_owned(), "Clustal's format"),
        ("# STOCKHOLM 1.0\na ACGT\n//\n".to_owned(), "Stockholm format"),
    ] {
        assert!(refused(&text).contains(expected), "{text}: {}", refused(&text));
    }
}

proptest! {
    #[test]
    fn no_nexus_panics(text in "(#NEXUS|begin data;|matrix|format|=|gap|nchar=4|ntax=2|[a-c' ;\n\\[\\]ACGT-]){0,40}") {
        let _ = parse(&format!("#NEXUS {text}"));
    }
}
