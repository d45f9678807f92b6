//! Inputs from a seed: a profile, and sequences with the composition and the lengths of real ones, some of which hold a
//! relative of the profile. For trying out, for measuring and for tests.
//!
//! Both are made as texts, so that a run reads what a peer reads.

use crate::profile::alphabet::{BACKGROUND, RESIDUES, SYMBOLS};
use multigrain::generate::f32_at;
use std::io::{BufRead, Read};
use std::sync::OnceLock;

/// Mean and standard deviation of the logarithm of a sequence's length: those of Swiss-Prot, whose lengths are near to
/// log-normal with a median of 290 and a mean of 360 residues.
const LENGTH_LN: (f64, f64) = (5.67, 0.66);
/// Lengths that are made.
const LENGTHS: std::ops::RangeInclusive<usize> = 20..=36_000;
/// One in so many sequences holds a relative of the profile.
const RELATED: u64 = 200;

/// Independent numbers, uniform in [0, 1), from a seed.
#[derive(Clone)]
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
        self.next += 1;
        draws().symbol_of(self.seed, self.next)
    }

    /// Appends so many residues' symbols: one after the other, without anything in between that the next would wait for.
    fn residues(&mut self, count: usize, symbols: &mut Vec<u8>) {
        let (seed, draws, first) = (self.seed, draws(), self.next + 1);
        self.next += count as u64;
        symbols.extend((first..first + count as u64).map(|number| draws.symbol_of(seed, number)));
    }
}

/// The residue whose share of [0, 1) a number is in.
fn residue_at(uniform: f64) -> usize {
    let mut rest = uniform;
    for (residue, &frequency) in BACKGROUND.iter().enumerate() {
        rest -= f64::from(frequency);
        if rest < 0.0 {
            return residue;
        }
    }
    RESIDUES - 1
}

/// [`residue_at`] for numbers in steps of 2^-24, looked up.
struct Draws {
    /// The first step of each residue's share that is no longer its own.
    ends: [u32; RESIDUES],
    /// The residue of the first of each 4096 steps.
    first: Vec<u8>,
}

impl Draws {
    /// The symbol that a number of the sequence of random numbers stands for.
    #[inline]
    fn symbol_of(&self, seed: u64, number: u64) -> u8 {
        // Whole numbers below 2^24 were made floats.
        self.symbol(((f32_at(seed, number) + 1.0) * 8_388_608.0) as u32)
    }

    #[inline]
    fn symbol(&self, step: u32) -> u8 {
        let mut residue = usize::from(self.first[(step >> 12) as usize]);
        while step >= self.ends[residue] {
            residue += 1;
        }
        SYMBOLS[residue]
    }
}

fn draws() -> &'static Draws {
    static DRAWS: OnceLock<Draws> = OnceLock::new();
    const STEPS: u32 = 1 << 24;
    let at = |step: u32| residue_at(f64::from(step) / f64::from(STEPS));
    DRAWS.get_or_init(|| Draws {
        ends: std::array::from_fn(|residue| {
            let (mut within, mut end) = (0, STEPS);
            while within < end {
                let middle = within.midpoint(end);
                if at(middle) <= residue { within = middle + 1 } else { end = middle }
            }
            end
        }),
        first: (0..STEPS >> 12).map(|part| at(part << 12) as u8).collect(),
    })
}

/// The most probable residue of a node, and its weight beside the background.
fn node(seed: u64, k: usize) -> (u8, f64) {
    // Numbers of their own for each node, so that profile and relatives agree.
    let mut numbers = Numbers::new(seed.wrapping_mul(1_000_003).wrapping_add(k as u64));
    (numbers.residue(), 0.25 + 0.6 * numbers.uniform().powi(2))
}

/// A profile of `nodes` nodes in HMMER's format.
pub fn profile(seed: u64, nodes: usize) -> String {
    profile_pieces(seed, nodes).collect()
}

/// The text of [`profile`], made as it is read.
pub(crate) fn profile_text(seed: u64, nodes: usize) -> impl BufRead {
    let mut pieces = profile_pieces(seed, nodes);
    let next = move |piece: &mut Vec<u8>| piece.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    Pieces { next, piece: Vec::new(), at: 0 }
}

/// Text that is made piece by piece.
struct Pieces<F> {
    /// Appends the next one, if there is one.
    next: F,
    piece: Vec<u8>,
    at: usize,
}

impl<F: FnMut(&mut Vec<u8>)> BufRead for Pieces<F> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.at == self.piece.len() {
            self.piece.clear();
            (self.next)(&mut self.piece);
            self.at = 0;
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }
}

impl<F: FnMut(&mut Vec<u8>)> Read for Pieces<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

/// The head, each node, and the end.
fn profile_pieces(seed: u64, nodes: usize) -> impl Iterator<Item = String> {
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
    let one = move |k: usize| {
        let (best, weight) = node(seed, k);
        let matches: Vec<f64> = SYMBOLS
            .iter()
            .zip(&background)
            .map(|(&symbol, p)| (1.0 - weight) * p + if symbol == best { weight } else { 0.0 })
            .collect();
        let leave = if k < nodes { inner } else { [0.99, 0.01, 0.0, 0.55, 0.45, 1.0, 0.0] };
        // hmmsearch wants a consensus.
        let consensus = char::from(best.to_ascii_lowercase());
        format!("{k:7} {}      - {consensus} - - -\n        {inserts}\n        {}\n", line(&matches), line(&leave))
    };
    std::iter::once(text).chain((1..=nodes).map(one)).chain(std::iter::once("//\n".to_owned()))
}

/// `count` sequences in FASTA; one in 200 holds a relative of the profile of this seed and `nodes` nodes.
pub fn sequences(seed: u64, count: u64, nodes: usize) -> String {
    let mut text = String::new();
    // It is made of ASCII, and of nothing that could fail.
    let _ = Sequences::new(seed, count, nodes).text().read_to_string(&mut text);
    text
}

/// The sequences of [`sequences`], one text after the other.
#[derive(Clone)]
pub(crate) struct Sequences {
    numbers: Numbers,
    nodes: Vec<(u8, f64)>,
    made: u64,
    count: u64,
    residues: Vec<u8>,
}

impl Sequences {
    pub(crate) fn new(seed: u64, count: u64, nodes: usize) -> Sequences {
        Sequences {
            numbers: Numbers::new(seed.wrapping_add(1)),
            nodes: (1..=nodes).map(|k| node(seed, k)).collect(),
            made: 0,
            count,
            residues: Vec::new(),
        }
    }

    /// How long each sequence's header is and how long its residues, without these: a number of the sequence of random numbers
    /// is had without those before it.
    pub(crate) fn lengths(mut self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.count).map(move |_| {
            let length = self.begin();
            self.numbers.next += length as u64;
            let related = self.is_related();
            if related {
                self.numbers.uniform();
                self.relative();
            }
            (self.header().len() as u64, (length + if related { self.nodes.len() } else { 0 }) as u64)
        })
    }

    /// Goes on to the next sequence; its length, but for a relative.
    fn begin(&mut self) -> usize {
        self.made += 1;
        let (mean, deviation) = LENGTH_LN;
        let length = (mean + deviation * self.numbers.normal()).exp() as usize;
        length.clamp(*LENGTHS.start(), *LENGTHS.end())
    }

    fn header(&self) -> String {
        let what = if self.is_related() { "with a relative of the profile" } else { "at random" };
        format!("made{} {what}", self.made)
    }

    fn is_related(&self) -> bool {
        self.made % RELATED == RELATED / 2
    }

    fn relative(&mut self) -> Vec<u8> {
        let Sequences { numbers, nodes, .. } = self;
        let one = |&(best, weight): &(u8, f64)| if numbers.uniform() < weight { best } else { numbers.residue() };
        nodes.iter().map(one).collect()
    }

    /// Their text.
    pub(crate) fn text(mut self) -> impl BufRead {
        let next = move |text: &mut Vec<u8>| {
            if self.made < self.count {
                self.make(text);
            }
        };
        Pieces { next, piece: Vec::new(), at: 0 }
    }

    /// The next sequence.
    fn make(&mut self, text: &mut Vec<u8>) {
        let length = self.begin();
        let Sequences { numbers, residues, .. } = self;
        residues.clear();
        numbers.residues(length, residues);
        if self.is_related() {
            let at = (self.numbers.uniform() * self.residues.len() as f64) as usize;
            let relative = self.relative();
            self.residues.splice(at..at, relative);
        }
        text.extend_from_slice(format!(">{}\n", self.header()).as_bytes());
        for line in self.residues.chunks(60) {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_known_without_residues() {
        let text = sequences(7, 450, 33);
        let lengths = |record: &str| {
            let mut lines = record.lines().map(|line| line.len() as u64);
            (lines.next().unwrap(), lines.sum())
        };
        let made: Vec<(u64, u64)> = text.split('>').skip(1).map(lengths).collect();
        assert_eq!(made, Sequences::new(7, 450, 33).lengths().collect::<Vec<_>>());
    }

    #[test]
    fn residues_are_looked_up_as_they_are_found() {
        for step in
            (0..1 << 24).step_by(97).chain(draws().ends.iter().flat_map(|&end| [end - 1, end.min((1 << 24) - 1)]))
        {
            let found = SYMBOLS[residue_at(f64::from(step) / f64::from(1 << 24))];
            assert_eq!(draws().symbol(step), found, "step {step}");
        }
    }
}
