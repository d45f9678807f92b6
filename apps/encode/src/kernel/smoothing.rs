//! How edges are smoothed (8.7.2), at sixteen places beside each other.

use super::Edge;
use multigrain_simd::Sixteen;

/// Where the values differ by less than a limit.
///
/// # Safety
/// The processor supports the instruction set of `V`; so for all functions here.
#[inline(always)]
unsafe fn is_near<V: Sixteen>(a: V, b: V, limit: V) -> V {
    // SAFETY: the caller's promise, as in all functions here.
    unsafe { limit.above(a.sub(b).abs()) }
}

/// Where an edge is smoothed: the samples beside it differ by as little as those of a smooth picture would (8.7.2.2).
#[inline(always)]
unsafe fn applies<V: Sixteen>(p: [V; 2], q: [V; 2], edge: &Edge, limits: V) -> V {
    // SAFETY: as above.
    unsafe {
        let (alpha, beta) = (V::splat(edge.alpha.into()), V::splat(edge.beta.into()));
        let inner = is_near(p[1], p[0], beta).and(is_near(q[1], q[0], beta));
        inner.and(is_near(p[0], q[0], alpha)).and(limits.above(V::splat(-1)))
    }
}

#[inline(always)]
unsafe fn within<V: Sixteen>(value: V, most: V) -> V {
    // SAFETY: as above.
    unsafe { value.min(most).max(V::splat(0).sub(most)) }
}

#[inline(always)]
unsafe fn step<V: Sixteen>(p: [V; 2], q: [V; 2], most: V) -> V {
    // SAFETY: as above.
    unsafe {
        let far = p[1].sub(q[1]).add(V::splat(4));
        let twice = q[0].sub(p[0]).add(q[0].sub(p[0]));
        within(twice.add(twice).add(far).right(3), most)
    }
}

/// What is added to p1 at an edge that is not strong.
#[inline(always)]
unsafe fn inner_step<V: Sixteen>(p: [V; 3], q0: V, limits: V) -> V {
    // SAFETY: as above.
    unsafe { within(p[2].add(p[0].mean(q0)).sub(p[1].add(p[1])).right(1), limits) }
}

/// The samples of one side of a strong edge.
#[inline(always)]
unsafe fn strong_side<V: Sixteen>(p: [V; 4], q: [V; 2], is_flat: V, applies: V) -> [V; 3] {
    // SAFETY: as above.
    unsafe {
        let middle = p[1].add(p[0]).add(q[0]);
        let (two, four) = (V::splat(2), V::splat(4));
        let flat = [
            middle.add(middle).add(p[2].add(q[1]).add(four)).right(3),
            p[2].add(middle).add(two).right(2),
            p[3].add(p[2]).add(p[3].add(p[2])).add(p[2]).add(middle.add(four)).right(3),
        ];
        let other = p[1].add(p[1]).add(p[0]).add(q[1].add(two)).right(2);
        let is_flat_here = is_flat.and(applies);
        [
            p[0].or_where(applies, other.or_where(is_flat, flat[0])),
            p[1].or_where(is_flat_here, flat[1]),
            p[2].or_where(is_flat_here, flat[2]),
        ]
    }
}

/// Four samples on both sides, outwards (p0 to p3 and q0 to q3 of 8.7.2), of which the first three are smoothed; false if none is.
/// Limits are less than zero where nothing is to be done. Samples may come out beyond their range.
#[inline(always)]
pub(super) unsafe fn smooth_lines<V: Sixteen>(p: &mut [V; 4], q: &mut [V; 4], edge: &Edge, limits: V) -> bool {
    // SAFETY: as above.
    unsafe {
        let applies = applies([p[0], p[1]], [q[0], q[1]], edge, limits);
        if !applies.any() {
            return false;
        }
        let beta = V::splat(edge.beta.into());
        let (flat_p, flat_q) = (is_near(p[2], p[0], beta), is_near(q[2], q[0], beta));
        if edge.is_strong {
            let small = is_near(p[0], q[0], V::splat(i16::from(edge.alpha >> 2) + 2));
            let (a, b) = (
                strong_side(*p, [q[0], q[1]], flat_p.and(small), applies),
                strong_side(*q, [p[0], p[1]], flat_q.and(small), applies),
            );
            p[..3].copy_from_slice(&a);
            q[..3].copy_from_slice(&b);
            return true;
        }
        // Where it is flat, masks are -1.
        let most = limits.sub(flat_p).sub(flat_q);
        let delta = step([p[0], p[1]], [q[0], q[1]], most).and(applies);
        let inner_p = inner_step([p[0], p[1], p[2]], q[0], limits);
        let inner_q = inner_step([q[0], q[1], q[2]], p[0], limits);
        p[0] = p[0].add(delta);
        q[0] = q[0].sub(delta);
        p[1] = p[1].add(inner_p.and(flat_p.and(applies)));
        q[1] = q[1].add(inner_q.and(flat_q.and(applies)));
        true
    }
}

/// The same for chroma, Cb's eight places and then Cr's, where one sample on each side moves.
#[inline(always)]
pub(super) unsafe fn smooth_pairs<V: Sixteen>(p: [V; 2], q: [V; 2], edge: &Edge, limits: V) -> (V, V) {
    // SAFETY: as above.
    unsafe {
        let applies = applies(p, q, edge, limits);
        if edge.is_strong {
            let sum = |p: [V; 2], q: [V; 2]| p[1].add(p[1]).add(p[0].add(q[1])).add(V::splat(2)).right(2);
            return (p[0].or_where(applies, sum(p, q)), q[0].or_where(applies, sum(q, p)));
        }
        let delta = step(p, q, limits.add(V::splat(1))).and(applies);
        (p[0].add(delta), q[0].sub(delta))
    }
}
