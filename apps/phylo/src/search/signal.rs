//! How much an alignment says about its tree, for the effort of a search.

use crate::alignment::Patterns;

/// What a search has to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Many taxa, few patterns: many good trees, and the first one decides which are found.
    Weak,
    /// Neither.
    Usual,
    /// So many patterns for each taxon that there may be one good tree alone.
    Abundant,
}

/// Fewer taxa than this are searched well by larger moves alone.
const WEAK_TAXA: usize = 100;
/// To join neighbours takes the third power of the taxa: beyond this it would take longer than all else.
const WEAK_TAXA_MAX: usize = 3000;
/// Patterns for each taxon: weak below the first, abundant above the second.
const PATTERNS: (usize, usize) = (2, 100);

impl Signal {
    /// Of the patterns of all partitions.
    pub fn of(data: &[&Patterns]) -> Signal {
        let taxa = data.first().map_or(0, |p| p.taxa());
        let patterns: usize = data.iter().map(|p| p.len()).sum();
        if (WEAK_TAXA..=WEAK_TAXA_MAX).contains(&taxa) && patterns < PATTERNS.0 * taxa {
            Signal::Weak
        } else if taxa > 4 && patterns > PATTERNS.1 * taxa {
            Signal::Abundant
        } else {
            Signal::Usual
        }
    }
}
