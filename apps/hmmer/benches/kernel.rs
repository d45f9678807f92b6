//! How fast the kernel is with each instruction set: cells (residues times nodes) a second, Viterbi and Forward
//! together, one thread.
//!
//! `cargo bench -p multigrain-hmmer --bench kernel`

use multigrain::generate::f32_at;
use multigrain::testing::median_seconds;
use multigrain_hmmer::kernel::{pack, score, scratch_bytes};
use multigrain_hmmer::profile::{LocalNode, Transitions, alphabet::CODES};
use multigrain_simd::Isa;

/// Sequences of a batch, and their residues: about the mean of real proteins.
const SEQUENCES: usize = 512;
const LENGTH: usize = 450;
const TURNS: usize = 5;

fn profile(nodes: usize) -> Vec<LocalNode> {
    let total = (nodes * (nodes + 1) / 2) as f64;
    let node = |k: usize| {
        let mut odds = [0.0; CODES];
        odds[..20].iter_mut().enumerate().for_each(|(x, o)| *o = 1.0 + f64::from(f32_at(1, (20 * k + x) as u64)));
        let leave = Transitions { mm: 0.98, mi: 0.01, md: 0.01, im: 0.5, ii: 0.5, dm: 0.5, dd: 0.5 };
        LocalNode { odds, entry: 2.0 / total, leave }
    };
    (0..nodes).map(node).collect()
}

fn main() {
    let residues: Vec<u8> = (0..SEQUENCES * LENGTH).map(|i| ((f32_at(2, i as u64) + 1.0) * 9.999) as u8).collect();
    let offsets: Vec<u64> = (0..=SEQUENCES).map(|i| (i * LENGTH) as u64).collect();
    let mut scores = vec![[0.0; 2]; SEQUENCES];
    for nodes in [20, 86, 149, 400, 1500] {
        let tables = pack(&profile(nodes));
        for isa in [Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| isa.is_supported()) {
            let mut scratch = vec![0u64; scratch_bytes(isa, nodes, SEQUENCES).div_ceil(8)];
            // SAFETY: any bits are bytes.
            let (_, scratch, _) = unsafe { scratch.align_to_mut::<u8>() };
            let seconds = median_seconds(TURNS, || score(isa, &tables, &residues, &offsets, scratch, &mut scores));
            let cells = (nodes * residues.len()) as f64;
            println!("{nodes:5} nodes, {isa:7}: {:6.2} Gcells/s", cells / seconds / 1e9);
        }
    }
}
