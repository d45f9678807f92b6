//! Inputs from a seed: a profile, and sequences with the composition and the lengths of real ones, some of which hold a
//! relative of the profile. For trying out, for measuring and for tests.
//!
//! Both are made as texts, so that a run reads what a peer reads.

use crate::profile::alphabet::{BACKGROUND, RESIDUES, SYMBOLS};
use multigrain::generate::f32_at;

/// Mean and standard deviation of the logarithm of a sequence's length: those of Swiss-Prot, whose lengths are near to
/// log-normal with a median of 290 and a mean of 360 residues.
const LENGTH_LN: (f64, f64) = (5.67, 0.66);
/// Lengths that are made.
const LENGTHS: std::ops::RangeInclusive<usize> = 20..=36_000;
/// One in so many sequences holds a relative of the profile.
const RELATED: u64 = 200;

/// Independent numbers, uniform in [0, 1), from a seed.
struct Numbers {
    seed: u64,
    next: u64,
}

impl Numbers {
    fn new(seed: u64) -> Numbers {
        Numbers { seed, next: 0 }
    }

    fn uniform(&mut self) -> f64 {
        self.next += 1;
        // Exactly 1 would come from a rounding of f32.
        ((f64::from(f32_at(self.seed, self.next)) + 1.0) / 2.0).min(1.0 - f64::EPSILON)
    }

    /// Normally distributed with mean 0 and variance 1, by the sum of twelve.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// A residue's symbol by its frequency.
    fn residue(&mut self) -> u8 {
        let mut rest = self.uniform();
        for (&symbol, &frequency) in SYMBOLS.iter().zip(&BACKGROUND) {
            rest -= f64::from(frequency);
            if rest < 0.0 {
                return symbol;
            }
        }
        SYMBOLS[RESIDUES - 1]
    }
}

/// The most probable residue of a node, and its weight beside the background.
fn node(seed: u64, k: usize) -> (u8, f64) {
    // Numbers of their own for each node, so that profile and relatives agree.
    let mut numbers = Numbers::new(seed.wrapping_mul(1_000_003).wrapping_add(k as u64));
    (numbers.residue(), 0.25 + 0.6 * numbers.uniform().powi(2))
}

/// A profile of `nodes` nodes in HMMER's format.
pub fn profile(seed: u64, nodes: usize) -> String {
    let line = |values: &[f64]| -> String {
        let text = |p: &f64| if *p > 0.0 { format!("  {:.5}", -p.ln()) } else { "        *".to_owned() };
        values.iter().map(text).collect()
    };
    let background: Vec<f64> = BACKGROUND.iter().map(|&p| f64::from(p)).collect();
    let inserts = line(&background);
    let inner = [0.98, 0.008, 0.012, 0.55, 0.45, 0.6, 0.4];
    let mut text = format!(
        "HMMER3/f [generated]\nNAME  generated-{seed}-{nodes}\nLENG  {nodes}\nALPH  amino\nRF    no\nMM    no\nCONS  yes\n\
         CS    no\nMAP   no\nSTATS LOCAL MSV       -9.5000  0.70500\nSTATS LOCAL VITERBI  -10.0000  0.70500\n\
         STATS LOCAL FORWARD   -4.5000  0.70500\nHMM     "
    );
    text.extend(SYMBOLS[..RESIDUES].iter().map(|&s| format!("     {}   ", char::from(s))));
    text += "\n            m->m     m->i     m->d     i->m     i->i     d->m     d->d\n";
    let begin = [0.98, 0.008, 0.012, 0.55, 0.45, 1.0, 0.0];
    text += &format!("        {inserts}\n        {}\n", line(&begin));
    for k in 1..=nodes {
        let (best, weight) = node(seed, k);
        let matches: Vec<f64> = SYMBOLS
            .iter()
            .zip(&background)
            .map(|(&symbol, p)| (1.0 - weight) * p + if symbol == best { weight } else { 0.0 })
            .collect();
        let leave = if k < nodes { inner } else { [0.99, 0.01, 0.0, 0.55, 0.45, 1.0, 0.0] };
        // hmmsearch wants a consensus.
        let consensus = char::from(best.to_ascii_lowercase());
        text += &format!(
            "{k:7} {}      - {consensus} - - -\n        {inserts}\n        {}\n",
            line(&matches),
            line(&leave)
        );
    }
    text + "//\n"
}

/// `count` sequences in FASTA; one in 200 holds a relative of the profile of this seed and `nodes` nodes.
pub fn sequences(seed: u64, count: u64, nodes: usize) -> String {
    let mut numbers = Numbers::new(seed.wrapping_add(1));
    let mut text = String::new();
    for i in 1..=count {
        let (mean, deviation) = LENGTH_LN;
        let length = (mean + deviation * numbers.normal()).exp() as usize;
        let mut residues: Vec<u8> =
            (0..length.clamp(*LENGTHS.start(), *LENGTHS.end())).map(|_| numbers.residue()).collect();
        let related = i % RELATED == RELATED / 2;
        if related {
            let at = (numbers.uniform() * residues.len() as f64) as usize;
            let relative = (1..=nodes).map(|k| {
                let (best, weight) = node(seed, k);
                if numbers.uniform() < weight { best } else { numbers.residue() }
            });
            residues.splice(at..at, relative.collect::<Vec<_>>());
        }
        text += &format!(">made{i} {}\n", if related { "with a relative of the profile" } else { "at random" });
        for line in residues.chunks(60) {
            text.extend(line.iter().copied().map(char::from));
            text.push('\n');
        }
    }
    text
}
