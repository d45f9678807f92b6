//! A turn of the frontier with AVX2 and AVX-512, and the registers that it is written in terms of.

mod avx2;
mod avx512;

use super::frontier::{Cell, Rows, Stack};
use std::arch::x86_64::__m256i;

/// Boards side by side in a register.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing type, and must be inlined
/// into a function that enables it. Pointers must be valid for [`LANES`](Self::LANES) cells; they need no alignment.
trait Register: Copy {
    /// What a lane holds.
    type Cell: Cell;
    /// How far lanes are shifted: beyond their width, nothing is left.
    type Shift: Copy;
    /// At most 32.
    const LANES: usize;

    unsafe fn shift(by: u32) -> Self::Shift;
    unsafe fn splat(word: u32) -> Self;
    unsafe fn load(from: *const Self::Cell) -> Self;
    /// The first `lanes`, fewer than all; zeros in the others.
    unsafe fn first(self, lanes: usize) -> Self;
    unsafe fn or(self, b: Self) -> Self;
    unsafe fn xor(self, b: Self) -> Self;
    /// Without the lowest bit of each lane.
    unsafe fn without_lowest(self) -> Self;
    unsafe fn left(self, by: Self::Shift) -> Self;
    unsafe fn right(self, by: Self::Shift) -> Self;
    /// Bits of `self` that are in none of the three.
    unsafe fn outside(self, a: Self, b: Self, c: Self) -> Self;
    /// Bit `i` is set where lane `i` is not zero.
    unsafe fn nonzero(self) -> u32;
    /// Writes the lanes of a mask, one after the other, and anything to the rest of [`LANES`](Self::LANES) cells.
    unsafe fn pack(self, mask: u32, to: *mut Self::Cell);
}

/// One turn: see [`super::frontier::Frontier::count`].
///
/// # Safety
/// The processor supports the instruction set of `R`.
#[inline(always)]
unsafe fn turn<R: Register>(from: &mut Stack<R::Cell>, to: &mut Stack<R::Cell>, take: usize, rows: Rows) -> u64 {
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

/// A turn on eight lanes of 32 bits.
///
/// # Safety
/// The processor supports [`Isa::Avx2`](multigrain_simd::Isa::Avx2).
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
pub(super) unsafe fn avx2(from: &mut Stack<u32>, to: &mut Stack<u32>, take: usize, rows: Rows) -> u64 {
    // SAFETY: the features are enabled here.
    unsafe { turn::<__m256i>(from, to, take, rows) }
}

/// A turn on sixteen lanes of 32 bits.
///
/// # Safety
/// The processor supports [`Isa::Avx512`](multigrain_simd::Isa::Avx512).
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,popcnt,bmi1,bmi2")]
pub(super) unsafe fn avx512(from: &mut Stack<u32>, to: &mut Stack<u32>, take: usize, rows: Rows) -> u64 {
    // SAFETY: the features are enabled here.
    unsafe { turn::<avx512::Wide>(from, to, take, rows) }
}

/// A turn on thirty-two lanes of 16 bits.
///
/// # Safety
/// The processor supports [`Isa::Avx512`](multigrain_simd::Isa::Avx512), AVX-512 BW and VBMI2.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vbmi2,avx2,fma,popcnt,bmi1,bmi2")]
pub(super) unsafe fn narrow(from: &mut Stack<u16>, to: &mut Stack<u16>, take: usize, rows: Rows) -> u64 {
    // SAFETY: the features are enabled here.
    unsafe { turn::<avx512::Narrow>(from, to, take, rows) }
}
