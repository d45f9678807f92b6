//! Domains of a region as clusters of the domains of sampled alignments.
//!
//! Two segments are linked when they overlap by 80 % of the shorter, in the sequence and in the profile, and begin or end
//! within four diagonals of each other. Linked segments are clusters; a cluster that occurs in a quarter of the samples
//! is a domain. Its ends are the outermost that 2 % of its samples have.

use super::sample::Segment;

const OVERLAP_MIN: f32 = 0.8;
const DIAGONALS_MAX: i32 = 4;
const PROBABILITY_MIN: f32 = 0.25;
const END_PROBABILITY_MIN: f32 = 0.02;

/// A domain that clustering found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cluster {
    /// First residue, counted from 1.
    pub(super) from: u32,
    /// Last residue.
    pub(super) to: u32,
    /// The fraction of samples that have it.
    pub(super) probability: f32,
}

/// The domains of a region in the order of their first residues, from the segments of `samples` samples.
pub(super) fn clusters(segments: &[Segment], samples: usize) -> Vec<Cluster> {
    let mut found: Vec<Cluster> =
        linked(segments).iter().filter_map(|members| consensus(segments, members, samples)).collect();
    found.sort_by_key(|cluster| cluster.from);
    without_dominated(found)
}

/// Members of each cluster, in ascending order. The order of clusters decides ties later, so it is HMMER's: depth first,
/// and what is linked leaves a hole that the last one not yet looked at fills.
fn linked(segments: &[Segment]) -> Vec<Vec<usize>> {
    let mut free: Vec<usize> = (0..segments.len()).rev().collect();
    let mut clusters = Vec::new();
    let mut pending = Vec::new();
    while let Some(first) = free.pop() {
        let mut members = Vec::new();
        pending.push(first);
        while let Some(one) = pending.pop() {
            members.push(one);
            for at in (0..free.len()).rev() {
                if link(&segments[one], &segments[free[at]]) {
                    pending.push(free.swap_remove(at));
                }
            }
        }
        members.sort_unstable();
        clusters.push(members);
    }
    clusters
}

fn link(a: &Segment, b: &Segment) -> bool {
    let [af, at, bf, bt] = [a.from, a.to, b.from, b.to].map(|x| x as i32);
    let [akf, akt, bkf, bkt] = [a.node_from, a.node_to, b.node_from, b.node_to].map(|x| x as i32);
    let overlap = at.min(bt) - af.max(bf) + 1;
    // Most pairs of a sequence with many domains end here.
    if overlap <= 0 {
        return false;
    }
    let shorter = (at - af + 1).min(bt - bf + 1);
    // HMMER counts the overlap in the profile one node short.
    let node_overlap = akt.min(bkt) - akf.max(bkf);
    let node_shorter = (akt - akf + 1).min(bkt - bkf + 1);
    let near = |x: i32, y: i32| (x - y).abs() <= DIAGONALS_MAX;
    overlap as f32 / shorter as f32 >= OVERLAP_MIN
        && node_overlap as f32 / node_shorter as f32 >= OVERLAP_MIN
        && (near(af - akf, bf - bkf) || near(at - akt, bt - bkt))
}

/// The ends of a cluster, if it is probable enough and they are in order.
fn consensus(segments: &[Segment], members: &[usize], samples: usize) -> Option<Cluster> {
    // A sample may have several segments in one cluster; members are in the order of samples.
    let mut drawn: Vec<u32> = members.iter().map(|&member| segments[member].sample).collect();
    drawn.dedup();
    let probability = drawn.len() as f32 / samples as f32;
    if probability < PROBABILITY_MIN {
        return None;
    }
    let enough = (drawn.len() as f32 * END_PROBABILITY_MIN).ceil() as usize;
    let of = |end: fn(&Segment) -> u32| members.iter().map(|&member| end(&segments[member])).collect::<Vec<_>>();
    let from = outermost(of(|s| s.from), enough, false);
    let to = outermost(of(|s| s.to), enough, true);
    let node_from = outermost(of(|s| s.node_from), enough, false);
    let node_to = outermost(of(|s| s.node_to), enough, true);
    (from <= to && node_from <= node_to).then_some(Cluster { from, to, probability })
}

/// The smallest value that occurs `enough` times, or the largest; the most frequent, and of these the smallest, if none
/// does.
fn outermost(mut values: Vec<u32>, enough: usize, largest: bool) -> u32 {
    values.sort_unstable();
    let runs: Vec<(u32, usize)> = values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    let mut often = runs.iter().filter(|run| run.1 >= enough);
    let found = if largest { often.next_back() } else { often.next() };
    let most = || runs.iter().rev().max_by_key(|run| run.1);
    found.or_else(most).map_or(0, |run| run.0)
}

/// Leaves out domains that overlap another by 80 % of the shorter and are less probable.
fn without_dominated(found: Vec<Cluster>) -> Vec<Cluster> {
    let mut dominated = vec![false; found.len()];
    for (i, a) in found.iter().enumerate() {
        for (j, b) in found.iter().enumerate().skip(i + 1) {
            let overlap = a.to.min(b.to) as i32 - a.from.max(b.from) as i32 + 1;
            if overlap == 0 {
                // HMMER takes adjacent domains for the end of all overlaps with this one.
                break;
            }
            let shorter = (a.to - a.from + 1).min(b.to - b.from + 1);
            if overlap as f32 / shorter as f32 >= OVERLAP_MIN {
                let loser = if a.probability > b.probability { j } else { i };
                dominated[loser] = true;
            }
        }
    }
    found.into_iter().zip(dominated).filter(|(_, out)| !out).map(|(cluster, _)| cluster).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(sample: u32, from: u32, to: u32) -> Segment {
        Segment { sample, from, to, node_from: 1, node_to: to - from + 1 }
    }

    #[test]
    fn two_domains_with_ragged_ends() {
        let mut segments = Vec::new();
        for sample in 0..200 {
            segments.push(segment(sample, 10 + sample % 3, 60));
            segments.push(segment(sample, 80, 130 + sample % 2));
        }
        let found = clusters(&segments, 200);
        assert_eq!(found.iter().map(|c| (c.from, c.to)).collect::<Vec<_>>(), [(10, 60), (80, 131)]);
        assert!(found.iter().all(|c| c.probability == 1.0));
    }

    #[test]
    fn rare_ends_and_rare_clusters_do_not_count() {
        let mut segments: Vec<Segment> = (0..200).map(|s| segment(s, if s < 3 { 8 } else { 10 }, 60)).collect();
        segments.extend((0..49).map(|s| segment(s, 100, 140)));
        segments.sort_by_key(|s| s.sample);
        let found = clusters(&segments, 200);
        assert_eq!(found.iter().map(|c| (c.from, c.to)).collect::<Vec<_>>(), [(10, 60)]);
    }

    #[test]
    fn the_more_probable_of_two_overlapping_domains_stays() {
        let domain = |from, to, probability| Cluster { from, to, probability };
        let found = without_dominated(vec![domain(1, 100, 0.5), domain(5, 95, 0.9), domain(90, 150, 0.3)]);
        assert_eq!(found, [domain(5, 95, 0.9), domain(90, 150, 0.3)]);
    }

    #[test]
    fn outermost_ends() {
        assert_eq!(outermost(vec![3, 1, 3, 2, 3, 2], 2, false), 2);
        assert_eq!(outermost(vec![3, 1, 3, 2, 3, 2], 2, true), 3);
        assert_eq!(outermost(vec![5, 9, 7], 2, true), 5);
    }
}
