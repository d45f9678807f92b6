//! Sequences from texts, good and bad.

use super::*;
use crate::profile::alphabet;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::Write;

fn ample() -> Limit<'static> {
    Limit { memory_bytes: 16 << 20, sequences: usize::MAX, directory: Path::new("/nowhere") }
}

fn parse(text: &[u8]) -> Result<Database, SequenceError> {
    Database::parse(text, false, Path::new("db.fa"), ample(), 0)
}

fn codes(text: &str) -> Vec<u8> {
    text.bytes().map(|b| alphabet::code(b).unwrap()).collect()
}

fn message(text: &[u8]) -> String {
    parse(text).expect_err("accepted").to_string()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Everything that a database holds.
fn content(database: &Database) -> Vec<(String, String, Vec<u8>)> {
    (0..database.len())
        .map(|i| {
            let (name, description) = database.header(i).unwrap();
            (name, description, database.sequence(i).unwrap())
        })
        .collect()
}

#[test]
fn records_become_a_ragged_array() {
    let text = b"\n>one  two words \nMKV\nLL a\tE\n\n>sp|P1|X\r\ngs*\r\nbx\r\n> three\nUOJZ";
    let mut database = parse(text).unwrap();
    let expected = [("one", "two words ", "MKVLLAE"), ("sp|P1|X", "", "GS*BX"), ("three", "", "UOJZ")];
    let expected = expected.map(|(n, d, r)| (n.to_owned(), d.to_owned(), codes(r)));
    assert_eq!(content(&database), expected);
    assert_eq!((database.len(), database.residues(), database.length(1)), (3, 16, 5));
    assert_eq!(database.offsets()[..], [0, 7, 12, 16]);
    assert!(matches!(database.take_source(), Source::Bytes(bytes) if bytes == codes("MKVLLAEGS*BXUOJZ")));
}

#[test]
fn sequences_without_residues_are_counted_and_odd_symbols_taken() {
    let database = parse(b">a\n>b\nM.K\n>c\n\n>d\n_~*\n>e\n").unwrap();
    let expected = [("b", codes("M.K")), ("d", codes(".~*"))];
    assert_eq!(content(&database), expected.map(|(name, codes)| (name.to_owned(), String::new(), codes)));
    assert_eq!((database.len(), database.empty()), (2, 3));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let cases: [(&[u8], &[&str]); 11] = [
        (b"MKV\n>a\nMKV\n", &["db.fa:1:", "found 'MKV'"]),
        (b"\n\n{\"json\": 1}", &["db.fa:3:", "'{\"json\": 1}'"]),
        (b">a\n>b x\n\n>c\n", &["db.fa", "no sequence that has residues"]),
        (b">a\nMK\n>b x\n\nM-", &["db.fa:5:2", "sequence b", "gaps"]),
        (b">a\nMK\n>   \nMK\n", &["db.fa:3:", "no name"]),
        (b">a x\nMKV\nMK1V\n", &["db.fa:3:3:", "'1' in sequence a ", "A to Z"]),
        (b">a\nMK V-L\n", &["db.fa:2:5:", "'-'", "gaps"]),
        (b">a\nMK!\n", &["db.fa:2:3:", "'!'", "'~'"]),
        (b">a\nMK\xe4V\n", &["db.fa:2:3:"]),
        (b"", &["db.fa holds no sequence"]),
        (b"\n \n\n", &["db.fa holds no sequence"]),
    ];
    for (text, parts) in cases {
        let message = message(text);
        for part in parts {
            assert!(message.contains(part), "{:?}: {message}", String::from_utf8_lossy(text));
        }
        assert!(message.chars().all(|c| !c.is_control()), "{message:?}");
    }
    for begin in [">a\nMK\n>b ", ">a\n"] {
        let long = [begin.as_bytes(), &[b'A'; 1 << 20], b"\n"].concat();
        let line = begin.matches('\n').count() + 1;
        assert!(message(&long).contains(&format!("db.fa:{line}: the line has more than")), "{}", message(&long));
    }
}

#[test]
fn files_are_read_gzipped_or_not_and_damage_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let text: Vec<u8> =
        (0..2000).flat_map(|i| format!(">s{i} about {i}\nMKVLA{}\n", "GSTW".repeat(i % 50)).into_bytes()).collect();
    let expected = content(&parse(&text).unwrap());
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Database::read(&path, ample(), 2)
    };
    assert_eq!(content(&read(&text).unwrap()), expected);
    let packed = gzip(&text);
    assert_eq!(content(&read(&packed).unwrap()), expected);
    // Several members, as block compression and `cat` leave them.
    let (first, second) = text.split_at(text.len() / 2);
    assert_eq!(content(&read(&[gzip(first), gzip(second)].concat()).unwrap()), expected);
    for keep in [3, 11, packed.len() / 2, packed.len() - 9, packed.len() - 1] {
        let error = read(&packed[..keep]).unwrap_err();
        assert!(matches!(error, SequenceError::Truncated { .. }), "{keep} of {}: {error}", packed.len());
    }
    let mut damaged = packed.clone();
    let at = packed.len() - 6;
    damaged[at] ^= 1;
    let error = read(&damaged).unwrap_err();
    assert!(matches!(error, SequenceError::Damaged { .. }), "{error}");
    let error = Database::read(directory.path(), ample(), 2).unwrap_err();
    assert!(matches!(error, SequenceError::Open { .. } | SequenceError::Read { .. }), "{error}");
    let error = Database::read(&directory.path().join("absent"), ample(), 2).unwrap_err();
    assert!(error.to_string().contains("absent"), "{error}");
}

#[test]
fn a_database_beyond_the_limit_lies_in_scratch_files_that_nobody_sees() {
    let directory = tempfile::tempdir().unwrap();
    let text: Vec<u8> = (0..3000)
        .flat_map(|i| format!(">s{i} {}\n{}\n", "d".repeat(i % 700), "MKVLAGST".repeat(1 + i % 90)).into_bytes())
        .collect();
    let small = Limit { memory_bytes: 1000, sequences: usize::MAX, directory: directory.path() };
    let mut spilled = Database::parse(&text[..], false, Path::new("db.fa"), small, 0).unwrap();
    let mut kept = parse(&text).unwrap();
    assert_eq!(content(&spilled), content(&kept));
    let (Source::Raw(path), Source::Bytes(bytes)) = (spilled.take_source(), kept.take_source()) else {
        panic!("not as expected")
    };
    assert_eq!(std::fs::read(path).unwrap(), bytes);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "a scratch file has a name");
    let nowhere = Limit { memory_bytes: 1000, sequences: usize::MAX, directory: Path::new("/nowhere") };
    let error = Database::parse(&text[..], false, Path::new("db.fa"), nowhere, 0).unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        records in prop::collection::vec(("[!-~]{1,20}", "[ -~]{0,30}", "[A-Za-z*]{1,200}"), 1..20),
        width in 1usize..80,
        end in prop::sample::select(vec!["\n", "\r\n", "\n\n"]),
    ) {
        let mut text = String::new();
        for (name, description, residues) in &records {
            text += &format!(">{name} {description}{end}");
            for line in residues.as_bytes().chunks(width) {
                text += &format!("{}{end}", String::from_utf8_lossy(line));
            }
        }
        let expected: Vec<_> =
            records.iter().map(|(n, d, r)| (n.clone(), d.trim_start().to_owned(), codes(r))).collect();
        prop_assert_eq!(content(&parse(text.as_bytes()).unwrap()), expected);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), fasta in any::<bool>()) {
        let bytes = if fasta { [b">x\n".as_slice(), &bytes].concat() } else { bytes };
        if let Ok(database) = parse(&bytes) {
            prop_assert_eq!(*database.offsets().last().unwrap(), database.residues());
            prop_assert!((0..database.len()).all(|i| database.sequence(i).unwrap().iter().all(|&c| c < alphabet::CODES as u8)));
        }
    }

    #[test]
    fn damaged_gzip_never_panics(flip in 0usize..400, value in any::<u8>()) {
        let text = ">a b\nMKVLAGST\n".repeat(40);
        let mut packed = gzip(text.as_bytes());
        let at = flip % packed.len();
        packed[at] ^= value;
        let reader = std::io::BufReader::new(flate2::bufread::MultiGzDecoder::new(&packed[..]));
        let _ = Database::parse(reader, true, Path::new("db.gz"), ample(), 0);
    }
}

#[test]
fn rows_of_alignments_are_sequences_without_their_gaps() {
    let text = b"# STOCKHOLM 1.0\n#=GF ID first\n#=GS b/1-4 DE the  second\n#=GS b/1-4 DE row\n\na  MK-.v\n#=GR a PP 99..9\nb/1-4 --K~V\n\n\
        a    L_\nb/1-4 Ay\n#=GC RF xx\nc -----\nc --\n//\n# STOCKHOLM 1.0\na W*\n//\n";
    let database = parse(text).unwrap();
    let order = [("b/1-4", "the  second row", "KVAY"), ("a", "", "MKVL"), ("a", "", "W*")];
    assert_eq!(content(&database), order.map(|(n, d, r)| (n.to_owned(), d.to_owned(), codes(r))));
    assert_eq!(database.empty(), 1);
}

#[test]
fn alignments_that_make_no_sense_are_told() {
    let begin = "# STOCKHOLM 1.0\n";
    let of = |rest: &str| message((begin.to_owned() + rest).as_bytes());
    assert!(of("a MK\nb MKV\n//\n").contains("db.fa:4: row a has 2 columns, others have 3"));
    assert!(of("a MK\n").contains("cut short"));
    assert!(of("a M1\n//\n").contains("db.fa:2:4: '1' in sequence a"));
    assert!(of("a MK\n//\n>b\nMK\n").contains("found '>b'"));
    assert!(of("//\n").contains("no sequence that has residues"));
}

/// Two threads with pieces of so many bytes, and the reader on one thread.
fn in_pieces(text: &[u8], piece_bytes: u64, workers: usize) -> (Option<Database>, Result<Database, SequenceError>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db.fa");
    std::fs::write(&path, text).unwrap();
    let limit = Limit { memory_bytes: 300, sequences: usize::MAX, directory: directory.path() };
    let file = std::fs::File::open(&path).unwrap();
    (
        pieces::pieces(&file, &path, limit, workers, piece_bytes),
        Database::parse(text, false, Path::new("db.fa"), limit, 0),
    )
}

fn same(a: &Database, b: &Database) -> bool {
    content(a) == content(b)
        && (a.offsets(), &a.header_offsets, a.empty()) == (b.offsets(), &b.header_offsets, b.empty())
}

#[test]
fn pieces_that_are_odd_are_left_to_the_reader_on_one_thread() {
    let record = ">a b\nMKV\n";
    let long = |lines: usize| record.repeat(10) + ">l\n" + &"MKVLA\n".repeat(lines);
    let texts = [record.repeat(20) + ">b\nM1K\n", "\n".to_owned() + &record.repeat(20), record.repeat(20) + ">\nMK\n"];
    for text in texts.iter().chain([&(long(9000) + record), &">a\n>b\n".repeat(30)]) {
        assert!(in_pieces(text.as_bytes(), 32, 2).0.is_none(), "{text}");
    }
    assert!(in_pieces(long(40).as_bytes(), 32, 2).0.is_some());
}

#[test]
fn whole_files_are_read_in_pieces() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db.fa");
    let text: String = (0..20_000).map(|i| format!(">s{i} about > {i}\nMKVLA{}\n", "GSTW".repeat(i % 30))).collect();
    std::fs::write(&path, &text).unwrap();
    let by_one = parse(text.as_bytes()).unwrap();
    let limit = |memory_bytes| Limit { memory_bytes, sequences: usize::MAX, directory: directory.path() };
    for (memory_bytes, workers, is_there) in
        [(16 << 20, 3, true), (300_000, 2, true), (100_000, 2, false), (16 << 20, 1, false)]
    {
        let database = pieces::read(&path, limit(memory_bytes), workers);
        assert_eq!(database.is_some(), is_there, "{memory_bytes} {workers}");
        assert!(database.is_none_or(|database| same(&database, &by_one)));
    }
    std::fs::write(&path, gzip(text.as_bytes())).unwrap();
    assert!(pieces::read(&path, limit(16 << 20), 2).is_none());
    assert!(same(&Database::read(&path, limit(16 << 20), 2).unwrap(), &by_one));
}

#[test]
fn more_sequences_than_there_is_room_for_are_counted_and_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db.fa");
    let text = |n: usize| -> String { (0..n).map(|i| format!(">s{i} about > {i}\nMKV\n")).collect() };
    let read = |workers| {
        let limit = Limit { memory_bytes: 16 << 20, sequences: 30_000, directory: directory.path() };
        Database::read(&path, limit, workers).map(|database| database.len())
    };
    for workers in [1, 2] {
        std::fs::write(&path, text(30_000)).unwrap();
        assert_eq!(read(workers).unwrap(), 30_000);
        std::fs::write(&path, text(100_000)).unwrap();
        assert!(matches!(read(workers), Err(SequenceError::NoRoom { sequences: 100_000 })));
        // Of these no more is known than was read.
        std::fs::write(&path, gzip(text(100_000).as_bytes())).unwrap();
        assert!(matches!(read(workers), Err(SequenceError::NoRoom { sequences: 30_001 })));
    }
}

proptest! {
    #[test]
    fn pieces_are_what_one_thread_reads(
        records in prop::collection::vec(("[!-~]{1,8}", "[ ->]{0,12}", "[A-Za-z*\n ]{0,60}"), 1..60),
        end in prop::sample::select(vec!["\n", "\r\n", "\n\n"]),
        cut in 0usize..12,
        piece_bytes in 1u64..200,
        workers in 1usize..5,
    ) {
        let mut text = String::new();
        for (name, description, residues) in &records {
            text += &format!(">{name} {description}{end}{residues}{end}");
        }
        text.truncate(text.len().saturating_sub(cut).max(1));
        let (pieces, by_one) = in_pieces(text.as_bytes(), piece_bytes, workers);
        match (pieces, by_one) {
            (Some(pieces), Ok(by_one)) => prop_assert!(same(&pieces, &by_one)),
            (pieces, by_one) => prop_assert!(pieces.is_none() && by_one.is_err(), "{:?} {:?}", pieces, by_one),
        }
    }
}

#[test]
fn a_plan_keeps_what_a_run_would() {
    let directory = tempfile::tempdir().unwrap();
    for (seed, count, nodes) in [(1, 1, 5), (7, 450, 33), (3, 1201, 200)] {
        let made = || crate::generate::Sequences::new(seed, count, nodes);
        let kept = |database: &mut Database| {
            let (is_file, source) = match database.take_source() {
                Source::Bytes(bytes) => (false, bytes.len() as u64),
                source => (matches!(source, Source::Raw(_)), 0),
            };
            (is_file, source + database.kept_bytes())
        };
        let at = |memory_bytes| {
            let limit = Limit { memory_bytes, sequences: usize::MAX, directory: directory.path() };
            let mut read = Database::from_reader(made().text(), Path::new("made"), limit, count as usize).unwrap();
            let mut unmade = Database::of_lengths(made().lengths(), limit, count as usize);
            assert_eq!(read.offsets(), unmade.offsets());
            assert_eq!(kept(&mut read), kept(&mut unmade), "{count} sequences within {memory_bytes}");
            assert!(unmade.header(0).is_err());
            read.residues()
        };
        let residues = at(u64::MAX);
        let header_bytes = made().lengths().map(|(header, _)| header + 1).sum::<u64>();
        for limit in [residues, residues - 1, header_bytes, header_bytes - 1, 0] {
            at(limit);
        }
    }
}
