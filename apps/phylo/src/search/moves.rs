//! Rounds of pruning and regrafting.

use super::Search;
use super::scan::{FITS, Fitted};
use crate::constraint::Bounds;
use crate::likelihood::{Likelihood, Precision};
use crate::tree::HalfEdge;

/// What a round looks at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Effort {
    /// Distances of places, in branches.
    radius: usize,
    /// So many of the best places of a subtree are fitted,
    fits: usize,
    /// but none whose score is further below the tree's log-likelihood.
    margin: f64,
    /// Turns around the three branches of a fit.
    passes: usize,
    precision: Precision,
    /// So many moves that gained nothing are kept and tried with all branches optimised,
    kept: usize,
    /// but none that is further below the tree's log-likelihood.
    kept_margin: f64,
}

impl Effort {
    pub(super) fn fast(radius: usize) -> Effort {
        let precision = Precision { gain: 0.02, steps: 4 };
        Effort { radius, fits: 2, margin: 30.0, passes: 1, precision, kept: 0, kept_margin: 0.0 }
    }

    pub(super) fn thorough(radius: usize) -> Effort {
        let precision = Precision { gain: 1e-3, steps: 8 };
        Effort { radius, fits: 6, margin: 60.0, passes: 2, precision, kept: 20, kept_margin: 5.0 }
    }
}

/// A move that was fitted but not made.
#[derive(Debug, Clone)]
struct Kept {
    root: HalfEdge,
    fitted: Fitted,
}

/// A move must gain this log-likelihood: well above rounding, far below what anybody distinguishes.
const GAIN: f64 = 1e-3;

impl Search<'_> {
    /// One round: every subtree is tried everywhere within the radius. Gives the log-likelihood after branch lengths were
    /// optimised.
    pub(super) fn climb(&mut self, effort: &Effort) -> f64 {
        let likelihood = &mut self.likelihood;
        let mut now = likelihood.log_likelihood();
        let mut kept: Vec<Kept> = Vec::new();
        let mut moved = false;
        let constraint = likelihood.constraint();
        let bounds = |likelihood: &Likelihood<'_>| constraint.as_ref().map(|c| c.bounds(likelihood.tree()));
        let mut bounded = bounds(likelihood);
        for root in subtrees(likelihood) {
            match improve(likelihood, root, now, effort, bounded.as_ref()) {
                Tried::Better(value) => {
                    now = value;
                    moved = true;
                    bounded = bounds(likelihood);
                }
                Tried::Worse(fitted) => {
                    kept.extend(fitted.into_iter().map(|fitted| Kept { root, fitted }));
                    if kept.len() > 4 * effort.kept {
                        shorten(&mut kept, effort.kept);
                    }
                }
            }
        }
        let smooth = |likelihood: &mut Likelihood<'_>, gain: f64| likelihood.smooth(4, gain, Precision::COARSE);
        now = smooth(likelihood, 0.1);
        // After moves the list is stale; it is made again in the next round.
        if !moved {
            shorten(&mut kept, effort.kept);
            for Kept { root, fitted } in kept {
                let before = likelihood.tree().clone();
                likelihood.move_focus(root);
                let pruned = likelihood.prune(root);
                likelihood.accept(&pruned, &fitted);
                let mut there = likelihood.smooth(1, 0.0, Precision::COARSE);
                if there > now - 1.0 {
                    there = smooth(likelihood, 0.01);
                }
                if there > now + GAIN {
                    now = there;
                    break;
                }
                likelihood.set_tree(before);
            }
        }
        now
    }
}

/// All half-edges of inner nodes, neighbours near each other in the tree.
fn subtrees(likelihood: &Likelihood<'_>) -> Vec<HalfEdge> {
    let tree = likelihood.tree();
    let ends = likelihood.depth_first(tree.tip(0)).into_iter().flat_map(|half| [half, tree.back(half)]);
    ends.filter(|&half| !tree.is_tip(half)).collect()
}

/// Keeps the best moves.
fn shorten(kept: &mut Vec<Kept>, count: usize) {
    kept.sort_by(|a, b| b.fitted.log_likelihood.total_cmp(&a.fitted.log_likelihood));
    kept.truncate(count);
}

enum Tried {
    /// The subtree was moved; the log-likelihood is this.
    Better(f64),
    /// It stays; these moves came near.
    Worse(Vec<Fitted>),
}

/// Tries to move the subtree behind `root`'s branch.
fn improve(
    likelihood: &mut Likelihood<'_>,
    root: HalfEdge,
    now: f64,
    effort: &Effort,
    bounds: Option<&Bounds<'_>>,
) -> Tried {
    likelihood.move_focus(root);
    let pruned = likelihood.prune(root);
    let mut places = likelihood.scan(&pruned, effort.radius, bounds);
    places.sort_by(|a, b| b.score.total_cmp(&a.score));
    places.truncate(effort.fits.min(FITS));
    places.retain(|place| place.score > now - effort.margin);
    let mut fitted = likelihood.fit(&pruned, &places, effort.passes, effort.precision);
    fitted.sort_by(|a, b| b.log_likelihood.total_cmp(&a.log_likelihood));
    match fitted.first() {
        Some(best) if best.log_likelihood > now + GAIN => {
            likelihood.accept(&pruned, best);
            Tried::Better(best.log_likelihood)
        }
        _ => {
            likelihood.put_back(&pruned);
            fitted.retain(|f| effort.kept > 0 && f.log_likelihood > now - effort.kept_margin);
            Tried::Worse(fitted)
        }
    }
}
