//! Vectors of `f32` behind one trait, so that each kernel is written once and its order of
//! arithmetic cannot differ between instruction sets.
//!
//! Every operation is `#[inline(always)]` and carries no target feature itself: it must be inlined
//! into a function that enables the features (see the entry points of each kernel), where it
//! becomes a single instruction.

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

/// The bits of every NaN that a kernel stores: the positive quiet NaN.
///
/// Which of two NaN operands' payloads survives an operation depends on the order in which a
/// compiler passes them, so kernels replace each NaN result by this one; results then have the same
/// bits with every instruction set and every tiling.
pub const NAN_BITS: u32 = 0x7fc0_0000;

/// Entries of a table that [`Lanes::look_up`] looks at.
pub const TABLE: usize = 32;

/// A vector of `f32` of one instruction set.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing
/// type. Pointers must be valid for the lanes accessed: all [`LANES`](Self::LANES), or those set in
/// the mask. They need no alignment unless stated.
#[allow(clippy::missing_safety_doc)] // of each function: it is the trait's
pub trait Lanes: Copy {
    /// Elements in a vector.
    const LANES: usize;
    /// A choice of lanes.
    type Mask: Copy;
    /// What picks an entry of a table of [`TABLE`] numbers in every lane.
    type Index: Copy;
    /// Which lanes of two vectors of complex numbers are real parts and which imaginary ones.
    type Order: Copy;

    /// All lanes `value`.
    unsafe fn splat(value: f32) -> Self;
    /// The elements from `from` on.
    unsafe fn load(from: *const f32) -> Self;
    /// Writes all lanes.
    unsafe fn store(self, to: *mut f32);
    /// Writes all lanes past the caches; `to` is aligned to the size of the vector, and
    /// [`fence`](Self::fence) follows before another thread reads.
    unsafe fn stream(self, to: *mut f32);
    /// `a * b + self`, rounded once.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    /// `a * b - self`, rounded once.
    unsafe fn fms(self, a: Self, b: Self) -> Self;
    /// `self - a * b`, rounded once.
    unsafe fn fnma(self, a: Self, b: Self) -> Self;
    /// `self + b`.
    unsafe fn add(self, b: Self) -> Self;
    /// `self - b`.
    unsafe fn sub(self, b: Self) -> Self;
    /// `self * b`.
    unsafe fn mul(self, b: Self) -> Self;
    /// `self / b`.
    unsafe fn div(self, b: Self) -> Self;
    /// The square root of `self`.
    unsafe fn sqrt(self) -> Self;
    /// `self` with every NaN replaced by [`NAN_BITS`].
    unsafe fn canonical(self) -> Self;
    /// The sum of all lanes by halving: lane `i` plus lane `i + h` for `h = LANES/2, ..., 1`.
    unsafe fn halving_sum(self) -> f32;
    /// The lanes `first..end`, where `first <= end <= LANES`.
    unsafe fn mask(first: usize, end: usize) -> Self::Mask;
    /// The chosen elements, and 0 in the other lanes, whose memory is not touched.
    unsafe fn load_masked(mask: Self::Mask, from: *const f32) -> Self;
    /// Writes the chosen lanes; the memory of the others is not touched.
    unsafe fn store_masked(self, mask: Self::Mask, to: *mut f32);
    /// `a * b + self` in the chosen lanes, `self` in the others.
    unsafe fn fma_masked(self, mask: Self::Mask, a: Self, b: Self) -> Self;
    /// The lanes in which `self` and `b` are equal.
    unsafe fn equal(self, b: Self) -> Self::Mask;
    /// `b` in the chosen lanes, `self` in the others.
    unsafe fn select(self, mask: Self::Mask, b: Self) -> Self;
    /// The greater of the two; both are numbers and not negative.
    unsafe fn max(self, b: Self) -> Self;
    /// Whether a lane is greater than `limit`.
    unsafe fn any_above(self, limit: f32) -> bool;
    /// The indices from `from` on, one a lane, each below [`TABLE`].
    unsafe fn index(from: *const u32) -> Self::Index;
    /// In every lane the entry that its index names, of a table of [`TABLE`] numbers.
    unsafe fn look_up(table: *const f32, index: Self::Index) -> Self;
    /// The order for [`load_complex`](Self::load_complex); `swapped` exchanges real and imaginary parts.
    unsafe fn order_of_loads(swapped: bool) -> Self::Order;
    /// The order for [`interleave`](Self::interleave) and [`store_complex`](Self::store_complex).
    unsafe fn order_of_stores(swapped: bool) -> Self::Order;
    /// Real and imaginary parts of the complex numbers from `from` on, as many as lanes.
    unsafe fn load_complex(from: *const f32, order: Self::Order) -> (Self, Self);
    /// Two vectors with the complex numbers of these parts, in their order in memory.
    unsafe fn interleave(re: Self, im: Self, order: Self::Order) -> (Self, Self);
    each! {
        /// Writes the complex numbers of these parts from `to` on.
        store_complex(re: Self, im: Self, to: *mut f32, order: Self::Order) {
            let (low, high) = Self::interleave(re, im, order);
            low.store(to);
            high.store(to.add(Self::LANES));
        }
    }
    /// As integers: `bits` less half of each lane's bits, rounded down.
    unsafe fn halved_from(self, bits: u32) -> Self;
    /// Adds every lane to its number from `to` on, in double precision; `to` is valid for as many elements.
    unsafe fn add_to(self, to: *mut f64);
    /// Exchanges lanes and vectors of a square: `square[i]` lane `j` becomes `square[j]` lane `i`. Only the first
    /// [`LANES`](Self::LANES) vectors count.
    unsafe fn transpose(square: &mut [Self; 16]);
    /// Asks for the cache line at `at`, which may be any address, to be brought into the first-level cache.
    fn prefetch_near(at: *const f32);
    /// Asks for the cache line at `at`, which may be any address, to be brought into the second-level
    /// cache: far enough ahead of a stream it then neither waits for memory nor evicts, from a small
    /// first-level cache, the lines of other streams that lie a power of two apart.
    fn prefetch(at: *const f32);
    /// Orders what [`stream`](Self::stream) wrote before all later stores.
    fn fence();
}

// SAFETY of what follows: the caller passes pointers that are valid for one element, where that lane is chosen.
impl Lanes for f32 {
    const LANES: usize = 1;
    type Mask = bool;
    type Index = u32;
    type Order = usize;

    each! {
        splat(value: f32) -> Self { value }
        load(from: *const f32) -> Self { from.read() }
        store(self, to: *mut f32) { to.write(self) }
        stream(self, to: *mut f32) { to.write(self) }
        fma(self, a: Self, b: Self) -> Self { a.mul_add(b, self) }
        fms(self, a: Self, b: Self) -> Self { a.mul_add(b, -self) }
        fnma(self, a: Self, b: Self) -> Self { (-a).mul_add(b, self) }
        add(self, b: Self) -> Self { self + b }
        sub(self, b: Self) -> Self { self - b }
        mul(self, b: Self) -> Self { self * b }
        div(self, b: Self) -> Self { self / b }
        sqrt(self) -> Self { f32::sqrt(self) }
        canonical(self) -> Self { if self.is_nan() { f32::from_bits(NAN_BITS) } else { self } }
        halving_sum(self) -> f32 { self }
        mask(first: usize, end: usize) -> bool { first < end }
        load_masked(mask: bool, from: *const f32) -> Self {
            if mask { from.read() } else { 0.0 }
        }
        store_masked(self, mask: bool, to: *mut f32) {
            if mask {
                to.write(self)
            }
        }
        fma_masked(self, mask: bool, a: Self, b: Self) -> Self { if mask { a.mul_add(b, self) } else { self } }
        equal(self, b: Self) -> bool { self == b }
        select(self, mask: bool, b: Self) -> Self { if mask { b } else { self } }
        max(self, b: Self) -> Self { if self > b { self } else { b } }
        any_above(self, limit: f32) -> bool { self > limit }
        index(from: *const u32) -> u32 { from.read() }
        look_up(table: *const f32, index: u32) -> Self { table.add(index as usize).read() }
        order_of_loads(swapped: bool) -> usize { usize::from(swapped) }
        order_of_stores(swapped: bool) -> usize { usize::from(swapped) }
        load_complex(from: *const f32, order: usize) -> (Self, Self) {
            (from.add(order).read(), from.add(1 - order).read())
        }
        interleave(re: Self, im: Self, order: usize) -> (Self, Self) { if order == 0 { (re, im) } else { (im, re) } }
        halved_from(self, bits: u32) -> Self { f32::from_bits(bits.wrapping_sub(self.to_bits() >> 1)) }
        add_to(self, to: *mut f64) { *to += f64::from(self) }
        transpose(_square: &mut [Self; 16]) {}
    }
    #[inline(always)]
    fn prefetch_near(_at: *const f32) {}
    #[inline(always)]
    fn prefetch(_at: *const f32) {}
    #[inline(always)]
    fn fence() {}
}
