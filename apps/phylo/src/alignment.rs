//! Alignments: letters as they were read, alphabets, and site patterns.

mod alphabet;
mod patterns;

pub use alphabet::DataType;
pub use patterns::Patterns;

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

    /// The alignment of some of its taxa.
    pub fn select(&self, taxa: &[usize]) -> Alignment {
        Alignment {
            names: taxa.iter().map(|&t| self.names[t].clone()).collect(),
            rows: taxa.iter().map(|&t| self.rows[t].clone()).collect(),
        }
    }
}
