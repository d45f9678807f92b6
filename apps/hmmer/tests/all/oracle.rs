//! Raw scores of real profiles and sequences against an independent implementation in double precision.

use crate::support;

use multigrain_hmmer::kernel::{pack, reference, score, scratch_bytes};
use multigrain_hmmer::profile::{null1, read_profiles};
use multigrain_hmmer::sequence::{Database, Limit};
use multigrain_simd::Isa;
use std::path::Path;
use support::data;

/// Profile, sequences and their scores in nats.
const CASES: [(&str, &str, &str); 4] = [
    ("hmm/globins4.hmm", "hmm/globins45.fa", "hmm/globins4.globins45.float64.tsv"),
    ("hmm/fn3.hmm", "hmm/globins45.fa", "hmm/fn3.globins45.float64.tsv"),
    ("hmm/globins4.hmm", "protdb/metaprot60.faa", "hmm/globins4.metaprot60.float64.tsv"),
    ("hmm/fn3.hmm", "protdb/metaprot60.faa", "hmm/fn3.metaprot60.float64.tsv"),
];

/// What the scores may differ by.
const TOLERANCE_NATS: f64 = 1e-3;

#[test]
fn scores_equal_those_in_double_precision() {
    for (profile, sequences, expected) in CASES {
        let (Some(profile), Some(sequences), Some(expected)) = (data(profile), data(sequences), data(expected)) else {
            continue;
        };
        let profile = &read_profiles(&profile).unwrap()[0];
        let limit = Limit { memory_bytes: u64::MAX, sequences: usize::MAX, directory: Path::new(".") };
        let database = Database::read(&sequences, limit, 2).unwrap();
        let residues: Vec<u8> = (0..database.len()).flat_map(|i| database.sequence(i).unwrap()).collect();
        let nodes = profile.local();
        let mut all = Vec::new();
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let mut scratch = vec![0u32; scratch_bytes(isa, nodes.len(), database.len()) / 4];
            // SAFETY: any bits are bytes.
            let (_, scratch, _) = unsafe { scratch.align_to_mut::<u8>() };
            let mut scores = vec![[0.0; 2]; database.len()];
            score(isa, &pack(&nodes), &residues, database.offsets(), scratch, &mut scores);
            all.push(scores);
        }
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "instruction sets differ");
        let text = std::fs::read_to_string(expected).unwrap();
        let mut rows = 0;
        for (i, line) in text.lines().filter(|line| !line.starts_with('#')).enumerate() {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields[1], database.header(i).unwrap().0);
            assert_eq!(fields[2], database.length(i).to_string());
            let number = |i: usize| fields[i].parse::<f64>().unwrap();
            let plain = reference(&nodes, &database.sequence(i).unwrap());
            let found = [all[0][i], [plain.viterbi, plain.forward]];
            for [viterbi, forward] in found {
                let errors = [viterbi - number(4), forward - number(5)];
                assert!(errors.iter().all(|e| e.abs() <= TOLERANCE_NATS), "{line}: {viterbi} {forward}");
            }
            assert!((null1(database.length(i) as usize) - number(3)).abs() < 1e-6, "{line}");
            rows += 1;
        }
        assert_eq!(rows, database.len());
    }
}
