//! A turn of the frontier, compiled for each instruction set that has vectors.

use super::frontier::{Cell, Rows, Stack};
use multigrain_simd::{Bits, compiled};

/// One turn: see [`super::frontier::Frontier::count`].
///
/// # Safety
/// The processor supports the instruction set of `R`.
#[inline(always)]
unsafe fn turn<R: Bits<Word: Cell>>(
    from: &mut Stack<R::Word>,
    to: &mut Stack<R::Word>,
    take: usize,
    rows: Rows,
) -> u64 {
    let (begin, end) = (from.len - take, to.len);
    let ([placed, left, right, places], room) = from.arrays();
    assert!(from.len + R::LANES <= room, "registers of nodes are read and written whole");
    let (children, room) = to.arrays();
    assert!(end + take * rows.children + R::LANES <= room, "every child has a place");
    let sources = [placed, left, right, places].map(|array| array.wrapping_add(begin));
    // SAFETY: inlined into functions that enable the instruction set. `from` has LANES cells behind its last node, and
    // what is packed for the next round lies before what is read next; a node has no more children than its row has open
    // fields, so `to` has room for all of them and LANES cells behind.
    unsafe {
        let steps = rows.steps.map(|step| R::shift(step));
        let open = rows.open.map(|open| R::splat(open));
        let (mut waiting, mut made, mut found) = (take, end, 0_u64);
        while waiting > 0 {
            let (mut at, mut left_over) = (0, 0);
            while at < waiting {
                let [placed, left, right, mut places] = sources.map(|array| R::load(array.add(at)));
                if waiting - at < R::LANES {
                    places = places.first(waiting - at);
                }
                at += R::LANES;
                let others = places.without_lowest();
                let queen = places.xor(others);
                let (p, l, r) = (placed.or(queen), left.or(queen).left(steps[0]), right.or(queen).right(steps[0]));
                let next = open[0].outside(p, l, r);
                // Lanes without a node have no places; nor must they have children.
                let mut alive = next.nonzero() & places.nonzero();
                if rows.last {
                    found += u64::from(alive.count_ones());
                } else {
                    let (l2, r2) = (l.left(steps[1]), r.right(steps[1]));
                    let (l3, r3) = (l2.left(steps[2]), r2.right(steps[2]));
                    alive &= open[1].outside(p, l2, r2).nonzero() & open[2].outside(p, l3, r3).nonzero();
                    for (child, array) in [p, l, r, next].into_iter().zip(children) {
                        child.pack(alive, array.add(made));
                    }
                    made += alive.count_ones() as usize;
                }
                let again = others.nonzero();
                for (node, array) in [placed, left, right, others].into_iter().zip(sources) {
                    node.pack(again, array.add(left_over));
                }
                left_over += again.count_ones() as usize;
            }
            waiting = left_over;
        }
        from.len = begin;
        to.len = made;
        found
    }
}

#[cfg(target_arch = "aarch64")]
compiled! { Neon:
    /// A turn on four lanes of 32 bits.
    pub(super) fn neon(from: &mut Stack<u32>, to: &mut Stack<u32>, take: usize, rows: Rows) -> u64 {
        turn::<std::arch::aarch64::uint32x4_t>(from, to, take, rows)
    }

    /// A turn on eight lanes of 16 bits.
    pub(super) fn neon_narrow(from: &mut Stack<u16>, to: &mut Stack<u16>, take: usize, rows: Rows) -> u64 {
        turn::<std::arch::aarch64::uint16x8_t>(from, to, take, rows)
    }
}

#[cfg(target_arch = "x86_64")]
compiled! { Avx2:
    /// A turn on eight lanes of 32 bits.
    pub(super) fn avx2(from: &mut Stack<u32>, to: &mut Stack<u32>, take: usize, rows: Rows) -> u64 {
        turn::<std::arch::x86_64::__m256i>(from, to, take, rows)
    }
}

#[cfg(target_arch = "x86_64")]
compiled! { Avx512:
    /// A turn on sixteen lanes of 32 bits.
    pub(super) fn avx512(from: &mut Stack<u32>, to: &mut Stack<u32>, take: usize, rows: Rows) -> u64 {
        turn::<multigrain_simd::Wide>(from, to, take, rows)
    }

    /// A turn on thirty-two lanes of 16 bits; the processor supports VBMI2 besides.
    #[target_feature(enable = "avx512vbmi2")]
    pub(super) fn avx512_narrow(from: &mut Stack<u16>, to: &mut Stack<u16>, take: usize, rows: Rows) -> u64 {
        turn::<multigrain_simd::Narrow>(from, to, take, rows)
    }
}
