//! Alignments: letters as they were read, alphabets, and site patterns.

mod alphabet;
mod fasta;
mod lines;
pub(crate) mod nexus;
mod patterns;
mod phylip;
mod read;
mod source;

pub use alphabet::DataType;
pub use patterns::Patterns;
pub use read::{Format, parse_alignment, read_alignment};
pub use source::Source;

/// Sequences of equal length with their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alignment {
    /// Names of the taxa, distinct, in the order of the file.
    pub names: Vec<String>,
    /// For each taxon its letters, all of one length, in upper case.
    pub rows: Vec<Vec<u8>>,
}

impl Alignment {
    /// Number of taxa.
    pub fn taxa(&self) -> usize {
        self.names.len()
    }

    /// Number of sites (columns).
    pub fn sites(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// The taxa of which a row is the first with these letters, in order, and for every taxon the position of its
    /// representative among them. Leaving identical sequences out of a search loses nothing: a tree with a copy beside
    /// its original at no distance has the likelihood of the tree without the copy, and no tree can have more.
    pub fn representatives(&self) -> (Vec<usize>, Vec<usize>) {
        let mut seen = std::collections::HashMap::new();
        let mut kept = Vec::new();
        let positions = self.rows.iter().enumerate().map(|(taxon, row)| {
            *seen.entry(row.as_slice()).or_insert_with(|| {
                kept.push(taxon);
                kept.len() - 1
            })
        });
        let positions = positions.collect();
        (kept, positions)
    }

    /// What the letters most likely stand for: binary data where most are 0 or 1; nucleotides where at least four in five of those that are no gaps are A,
    /// C, G, T, U or N, which no family of proteins comes near.
    pub fn guess(&self) -> DataType {
        let mut counts = [0u64; 256];
        self.rows.iter().flatten().for_each(|&letter| counts[letter as usize] += 1);
        let letters: u64 = (b'A'..=b'Z').map(|l| counts[l as usize]).sum();
        let bases: u64 = b"ACGTUN".iter().map(|&l| counts[l as usize]).sum();
        if counts[b'0' as usize] + counts[b'1' as usize] > letters {
            return DataType::Binary;
        }
        if bases * 5 >= letters * 4 { DataType::Dna } else { DataType::Protein }
    }

    /// The alignment of some of its taxa.
    pub fn select(&self, taxa: &[usize]) -> Alignment {
        Alignment {
            names: taxa.iter().map(|&t| self.names[t].clone()).collect(),
            rows: taxa.iter().map(|&t| self.rows[t].clone()).collect(),
        }
    }
}
