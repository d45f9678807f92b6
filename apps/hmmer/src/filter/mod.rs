//! Filters: which sequences of a database are worth a full look at one profile.
//!
//! ```text
//! MSV, bytes -> P <= F1 -> bias filter -> P <= F1 -> Viterbi, words -> P <= F2 -> Forward -> P <= F3 -> domains
//! ```
//!
//! Most sequences end at the first, which costs a hundredth of their Forward score. S. R. Eddy, "Accelerated profile HMM
//! searches", PLoS Computational Biology 7:e1002195 (2011), describes the filters and their thresholds. Numbers are
//! rounded as HMMER 3.3 rounds them, so that the same sequences pass. All but Forward, which the search for domains has
//! anyway, are the kernel here: sums and maxima of whole numbers, so that every instruction set gives the same.

mod composition;
mod msv;
mod quantised;
mod reference;
mod viterbi;

#[cfg(test)]
mod tests;

pub(crate) use composition::Composition;
pub use reference::Reference;

use crate::profile::alphabet::CODES;
use crate::profile::{Exponential, Gumbel, LogOdds, Profile, null1_single};
use msv::Prices;
use multigrain_simd::{Bytes, Isa, Saturating, Words, dispatch};
use quantised::{
    BYTE_BASE, BYTE_SCALE, NEVER, NEVER_BYTE, OUTSIDE_NATS, Quantised, TRANSITIONS, WORD_BASE, WORD_SCALE, price, word,
};
use std::f64::consts::LN_2;

/// How many filters of the kernel there are: MSV, bias, Viterbi.
pub const STAGES: u8 = 3;

/// The thresholds of the filters: what a sequence's P-value must be at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filters {
    /// Of MSV, before and after the bias filter.
    pub msv: f64,
    /// Of Viterbi.
    pub viterbi: f64,
    /// Of Forward.
    pub forward: f64,
    /// Whether there is a bias filter.
    pub bias: bool,
}

impl Default for Filters {
    fn default() -> Filters {
        Filters { msv: 0.02, viterbi: 1e-3, forward: 1e-5, bias: true }
    }
}

/// The last filter, for sequences that have passed those of the kernel.
#[derive(Clone, Debug)]
pub struct ForwardFilter {
    composition: Option<Composition>,
    statistics: Exponential,
    threshold: f64,
}

impl ForwardFilter {
    /// The filter of a profile.
    pub fn new(profile: &Profile, filters: &Filters) -> ForwardFilter {
        ForwardFilter {
            composition: filters.bias.then(|| Composition::new(profile)),
            statistics: profile.forward.single(),
            threshold: filters.forward,
        }
    }

    /// Whether a sequence of this Forward score, in nats, passes.
    pub(crate) fn passes(&self, forward: f32, residues: &[u8]) -> bool {
        let null = self.composition.as_ref().map_or_else(|| null1_single(residues.len()), |c| c.score(residues));
        self.statistics.survival(bits(forward, null)) <= self.threshold
    }
}

fn bits(nats: f32, null: f32) -> f64 {
    f64::from((f64::from(nats - null) / LN_2) as f32)
}

/// Scores of a sequence in the order of the filters, as far as they are needed.
trait Scores {
    /// MSV in nats, infinite where its numbers overflow.
    fn msv(&mut self, residues: &[u8]) -> f32;
    /// Viterbi in nats, infinite where its numbers overflow.
    fn viterbi(&mut self, residues: &[u8]) -> f32;
}

/// What decides whether scores pass.
#[derive(Clone, Debug, PartialEq)]
struct Judge {
    filters: Filters,
    msv: Gumbel,
    viterbi: Gumbel,
    composition: Composition,
}

impl Judge {
    fn new(profile: &Profile, filters: &Filters) -> Judge {
        let (msv, viterbi) = (profile.msv.single(), profile.viterbi.single());
        Judge { filters: *filters, msv, viterbi, composition: Composition::new(profile) }
    }

    /// How many filters a sequence of at least one residue passes. One that MSV alone finds as improbable as the second
    /// threshold passes Viterbi too.
    #[inline(always)]
    fn passed(&self, scores: &mut impl Scores, residues: &[u8]) -> u8 {
        let msv = scores.msv(residues);
        let mut null = null1_single(residues.len());
        let mut p = self.msv.survival(bits(msv, null));
        if p > self.filters.msv {
            return 0;
        }
        if self.filters.bias {
            null = self.composition.score(residues);
            p = self.msv.survival(bits(msv, null));
            if p > self.filters.msv {
                return 1;
            }
        }
        if p > self.filters.viterbi
            && self.viterbi.survival(bits(scores.viterbi(residues), null)) > self.filters.viterbi
        {
            return 2;
        }
        STAGES
    }
}

/// Scores of MSV and Viterbi in nats from what their recurrences end with.
fn msv_nats(rejoined: Option<i32>, leave: i32) -> f32 {
    rejoined.map_or(f32::INFINITY, |j| ((j - leave) - BYTE_BASE) as f32 / BYTE_SCALE - OUTSIDE_NATS)
}

fn viterbi_nats(best: Option<f32>, leave: i16) -> f32 {
    best.map_or(f32::NEG_INFINITY, |best| (best + f32::from(leave)) / WORD_SCALE - OUTSIDE_NATS)
}

/// ln 1/2: E to J, E to C.
fn half() -> f32 {
    0.5f32.ln()
}

/// ln of 3 / (L + 3): N to B, J to B, C to T.
fn leave(length: usize) -> f32 {
    (3.0 / (length as f32 + 3.0)).ln()
}

fn prices(entry: i32, bias: i32, length: usize) -> Prices {
    Prices { leave: price(leave(length)), entry, end: price(half()), bias }
}

/// Numbers before the tables: nodes, bias, entry, gain of deletes, thresholds and whether there is a bias filter,
/// distributions, composition.
const HEAD: usize = 12;
const NUMBERS: usize = HEAD + Composition::NUMBERS;
/// Bytes that they take: tables begin at a multiple of the largest vector, as arrays do, so that none lies across two
/// lines of the cache.
const HEADER_BYTES: usize = (8 * NUMBERS).next_multiple_of(64);

/// What the kernel knows of a profile beside its tables.
#[derive(Clone, Debug, PartialEq)]
struct Header {
    nodes: usize,
    bias: i32,
    entry: i32,
    delete_gain: i32,
    judge: Judge,
}

impl Header {
    fn to_bytes(&self) -> Vec<u8> {
        let Judge { filters: f, msv, viterbi, composition } = &self.judge;
        let head: [f64; HEAD] = [
            self.nodes as f64,
            self.bias.into(),
            self.entry.into(),
            self.delete_gain.into(),
            f.msv,
            f.viterbi,
            f.forward,
            f64::from(u8::from(f.bias)),
            msv.mu,
            msv.lambda,
            viterbi.mu,
            viterbi.lambda,
        ];
        head.into_iter().chain(composition.to_numbers()).flat_map(f64::to_le_bytes).collect()
    }

    fn of_bytes(bytes: &[u8]) -> Header {
        let numbers: Vec<f64> = bytes[..8 * NUMBERS].as_chunks().0.iter().map(|&n| f64::from_le_bytes(n)).collect();
        let (n, composition) = numbers.split_at(HEAD);
        let composition: &[f64; Composition::NUMBERS] = composition.try_into().expect("as many as were taken");
        Header {
            nodes: n[0] as usize,
            bias: n[1] as i32,
            entry: n[2] as i32,
            delete_gain: n[3] as i32,
            judge: Judge {
                filters: Filters { msv: n[4], viterbi: n[5], forward: n[6], bias: n[7] != 0.0 },
                msv: Gumbel { mu: n[8], lambda: n[9] },
                viterbi: Gumbel { mu: n[10], lambda: n[11] },
                composition: Composition::of_numbers(composition),
            },
        }
    }
}

/// Bytes of a vector.
const fn vector_bytes(isa: Isa) -> usize {
    match isa {
        Isa::Scalar | Isa::Neon => 16,
        Isa::Avx2 => 32,
        Isa::Avx512 => 64,
    }
}

/// Vectors of a row of bytes, and of words.
fn quads(isa: Isa, nodes: usize) -> (usize, usize) {
    (nodes.div_ceil(vector_bytes(isa)), nodes.div_ceil(vector_bytes(isa) / 2))
}

/// Where the tables are: emissions in bytes, emissions in words, transitions, and the end.
fn layout(isa: Isa, nodes: usize) -> [usize; 4] {
    let (bytes, words) = quads(isa, nodes);
    let each = vector_bytes(isa);
    let begin = HEADER_BYTES;
    let emissions = begin + CODES * bytes * each;
    let transitions = emissions + CODES * words * each;
    [begin, emissions, transitions, transitions + TRANSITIONS * words * each]
}

/// Bytes of the tables of a profile of so many nodes.
pub fn table_bytes(isa: Isa, nodes: usize) -> usize {
    layout(isa, nodes)[3]
}

/// The most nodes that a profile with so many bytes of tables has: rows are filled up to whole vectors.
pub fn nodes_most(table_bytes: usize) -> usize {
    table_bytes.saturating_sub(HEADER_BYTES) / (CODES + 2 * CODES + 2 * TRANSITIONS)
}

/// The tables of a profile for an instruction set: what [`passed`] reads.
pub fn pack(isa: Isa, profile: &Profile, filters: &Filters) -> Vec<u8> {
    let q = Quantised::new(&LogOdds::new(profile));
    let nodes = profile.nodes();
    let header =
        Header { nodes, bias: q.bias, entry: q.entry, delete_gain: q.delete_gain, judge: Judge::new(profile, filters) };
    let mut tables = header.to_bytes();
    tables.resize(HEADER_BYTES, 0);
    let (byte_quads, word_quads) = quads(isa, nodes);
    // Lane by lane: vector `quad` holds nodes `quad`, `quad + quads`, `quad + 2 quads` and so on.
    let lanes =
        |quads: usize, width: usize, quad: usize| (0..vector_bytes(isa) / width).map(move |lane| quad + lane * quads);
    for x in 0..CODES {
        for k in (0..byte_quads).flat_map(|quad| lanes(byte_quads, 1, quad)) {
            tables.push(q.bytes.get(k).map_or(NEVER_BYTE, |e| e[x]) as u8);
        }
    }
    for x in 0..CODES {
        for k in (0..word_quads).flat_map(|quad| lanes(word_quads, 2, quad)) {
            tables.extend(q.words.get(k).map_or(NEVER, |e| e[x]).to_ne_bytes());
        }
    }
    for quad in 0..word_quads {
        for (t, k) in (0..TRANSITIONS).flat_map(|t| lanes(word_quads, 2, quad).map(move |k| (t, k))) {
            tables.extend(q.transitions.get(k).map_or(NEVER, |e| e[t]).to_ne_bytes());
        }
    }
    debug_assert_eq!(tables.len(), table_bytes(isa, nodes));
    tables
}

/// Bytes of scratch memory that [`passed`] needs for a profile of `nodes` nodes.
pub fn scratch_bytes(isa: Isa, nodes: usize) -> usize {
    let (bytes, words) = quads(isa, nodes);
    // One vector more, for rows begin at a multiple of its size.
    vector_bytes(isa) * (bytes.max(viterbi::STATES * words) + 1)
}

/// How many filters each sequence passes. Residue codes lie one after the other in `residues`; sequence `i` goes from
/// `offsets[i] - offsets[0]` to `offsets[i + 1] - offsets[0]`. `tables` are those that [`pack`] made for this instruction
/// set.
///
/// # Panics
/// When the processor does not support the instruction set, the tables are not for it, a residue is no code, or a slice
/// is too short.
pub fn passed(isa: Isa, tables: &[u8], residues: &[u8], offsets: &[u64], scratch: &mut [u8], stages: &mut [u8]) {
    assert!(isa.is_supported(), "{isa} is not supported here");
    assert!(tables.len() >= HEADER_BYTES, "{} bytes are no tables", tables.len());
    let header = Header::of_bytes(tables);
    assert!(header.nodes > 0 && tables.len() == table_bytes(isa, header.nodes), "{} bytes of tables", tables.len());
    assert!(scratch.len() >= scratch_bytes(isa, header.nodes), "{} bytes of scratch memory", scratch.len());
    assert!(offsets.len() == stages.len() + 1 && offsets.is_sorted(), "{} offsets", offsets.len());
    let work = Work { header, isa, tables, residues };
    work.dispatch(scratch, Wanted::Stages(offsets, stages));
}

/// Which scores are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Msv,
    Viterbi,
}

/// Scores in nats of sequences of `length` residues each, one after the other, against a profile of so many nodes whose
/// tables [`pack`] made; what is beyond the range of their numbers has the largest.
pub(crate) fn scores(isa: Isa, tables: &[u8], nodes: usize, residues: &[u8], length: usize, kind: Kind) -> Vec<f32> {
    let mut scores = vec![0.0; residues.len() / length];
    let mut scratch = vec![0; scratch_bytes(isa, nodes)];
    let work = Work { header: Header::of_bytes(tables), isa, tables, residues };
    assert!(
        isa.is_supported() && work.header.nodes == nodes && tables.len() == table_bytes(isa, nodes),
        "other tables"
    );
    work.dispatch(&mut scratch, Wanted::Scores(length, kind, &mut scores));
    let most = match kind {
        Kind::Msv => (255 - BYTE_BASE) as f32 / BYTE_SCALE,
        Kind::Viterbi => (i32::from(i16::MAX) - WORD_BASE) as f32 / WORD_SCALE,
    };
    scores.iter().map(|&nats| if nats == f32::INFINITY { most } else { nats }).collect()
}

/// What is asked of a call of the kernel.
enum Wanted<'a> {
    /// How many filters each sequence passes; where they begin, and where the last one ends.
    Stages(&'a [u64], &'a mut [u8]),
    /// These scores of sequences of so many residues.
    Scores(usize, Kind, &'a mut [f32]),
}

/// What a call of the kernel is about.
struct Work<'a> {
    header: Header,
    isa: Isa,
    tables: &'a [u8],
    residues: &'a [u8],
}

impl Work<'_> {
    /// The caller has looked at the instruction set and the lengths of tables and scratch memory.
    fn dispatch(self, scratch: &mut [u8], wanted: Wanted<'_>) {
        let isa = self.isa;
        let work = self;
        // SAFETY: the instruction set and the lengths were checked.
        unsafe {
            dispatch!(isa, (work: Work<'_>, scratch: &mut [u8], wanted: Wanted<'_>) => {
                Scalar: Work::run::<Bytes, Words>,
                Neon: Work::run::<std::arch::aarch64::int8x16_t, std::arch::aarch64::int16x8_t>,
                Avx2: Work::run::<std::arch::x86_64::__m256i, std::arch::x86_64::__m256i>,
                Avx512: Work::run::<std::arch::x86_64::__m512i, std::arch::x86_64::__m512i>,
            });
        }
    }

    /// # Safety
    /// The processor supports the instruction set of `B` and `W`, which is that of the tables; tables and scratch memory
    /// are as large as they must be.
    #[inline(always)]
    unsafe fn run<B: Saturating<i8>, W: Saturating<i16>>(self, scratch: &mut [u8], wanted: Wanted<'_>) {
        let is_code = |residues: &[u8]| residues.iter().fold(0, |most, &x| most.max(x)) < CODES as u8;
        let mut scorer = Vectors::<B, W> { work: &self, scratch, vectors: std::marker::PhantomData };
        match wanted {
            Wanted::Stages(offsets, stages) => {
                for (stage, ends) in stages.iter_mut().zip(offsets.windows(2)) {
                    let [from, to] = [ends[0], ends[1]].map(|at| (at - offsets[0]) as usize);
                    let residues = &self.residues[from..to];
                    assert!(is_code(residues), "a residue code is too large");
                    *stage = if residues.is_empty() { 0 } else { self.header.judge.passed(&mut scorer, residues) };
                }
            }
            Wanted::Scores(length, kind, scores) => {
                assert!(is_code(self.residues), "a residue code is too large");
                for (score, residues) in scores.iter_mut().zip(self.residues.chunks_exact(length)) {
                    *score = match kind {
                        Kind::Msv => scorer.msv(residues),
                        Kind::Viterbi => scorer.viterbi(residues),
                    };
                }
            }
        }
    }
}

/// Scores by vectors.
struct Vectors<'a, 'w, B, W> {
    work: &'a Work<'w>,
    scratch: &'a mut [u8],
    vectors: std::marker::PhantomData<(B, W)>,
}

/// A row of `count` vectors in scratch memory.
fn row<V>(scratch: &mut [u8], count: usize) -> &mut [V] {
    // SAFETY: vectors are whole numbers, so any bits are a value.
    let (_, row, _) = unsafe { scratch.align_to_mut::<V>() };
    &mut row[..count]
}

impl<B: Saturating<i8>, W: Saturating<i16>> Scores for Vectors<'_, '_, B, W> {
    #[inline(always)]
    fn msv(&mut self, residues: &[u8]) -> f32 {
        let Work { header, isa, tables, .. } = self.work;
        let prices = prices(header.entry, header.bias, residues.len());
        let emissions = tables[layout(*isa, header.nodes)[0]..].as_ptr().cast();
        let row = row::<B>(self.scratch, quads(*isa, header.nodes).0);
        // SAFETY: the tables are for these vectors, and residues are codes: `Work::run` has looked.
        let alone = prices.rejoin(unsafe { msv::segment(emissions, residues, row) });
        let rejoined = match alone {
            // SAFETY: as above.
            Some(j) if j > BYTE_BASE => unsafe { msv::chain(emissions, residues, row, prices) },
            alone => alone,
        };
        msv_nats(rejoined, prices.leave)
    }

    #[inline(always)]
    fn viterbi(&mut self, residues: &[u8]) -> f32 {
        let Work { header, isa, tables, .. } = self.work;
        let [_, emissions, transitions, _] = layout(*isa, header.nodes);
        let tables = viterbi::Tables {
            emissions: tables[emissions..].as_ptr().cast(),
            transitions: tables[transitions..].as_ptr().cast(),
            delete_gain: header.delete_gain,
        };
        let row = row::<[W; viterbi::STATES]>(self.scratch, quads(*isa, header.nodes).1);
        let leave = word(leave(residues.len()));
        // SAFETY: as above.
        let best = unsafe { viterbi::best(tables, (word(half()), leave), residues, row) };
        viterbi_nats(best, leave)
    }
}
