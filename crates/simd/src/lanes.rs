//! Vectors of `f32` behind one trait, so that each kernel is written once and its order of
//! arithmetic cannot differ between instruction sets.
//!
//! Every operation is `#[inline(always)]` and carries no target feature itself: it must be inlined
//! into a function that enables the features (see the entry points of each kernel), where it
//! becomes a single instruction.

/// The bits of every NaN that a kernel stores: the positive quiet NaN.
///
/// Which of two NaN operands' payloads survives an operation depends on the order in which a
/// compiler passes them, so kernels replace each NaN result by this one; results then have the same
/// bits with every instruction set and every tiling.
pub const NAN_BITS: u32 = 0x7fc0_0000;

/// A vector of `f32` of one instruction set.
///
/// # Safety
/// Every function requires that the processor supports the instruction set of the implementing
/// type. Pointers must be valid for the lanes accessed: all [`LANES`](Self::LANES), or those set in
/// the mask. They need no alignment unless stated.
pub trait Lanes: Copy {
    /// Elements in a vector.
    const LANES: usize;
    /// A choice of lanes.
    type Mask: Copy;

    /// All lanes `value`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn splat(value: f32) -> Self;
    /// The elements from `from` on.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn load(from: *const f32) -> Self;
    /// Writes all lanes.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn store(self, to: *mut f32);
    /// Writes all lanes past the caches; `to` is aligned to the size of the vector, and
    /// [`fence`](Self::fence) follows before another thread reads.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn stream(self, to: *mut f32);
    /// `a * b + self`, rounded once.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn fma(self, a: Self, b: Self) -> Self;
    /// `self + b`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn add(self, b: Self) -> Self;
    /// `self` with every NaN replaced by [`NAN_BITS`].
    ///
    /// # Safety
    /// See the trait.
    unsafe fn canonical(self) -> Self;
    /// The sum of all lanes by halving: lane `i` plus lane `i + h` for `h = LANES/2, ..., 1`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn halving_sum(self) -> f32;
    /// The lanes `first..end`, where `first <= end <= LANES`.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn mask(first: usize, end: usize) -> Self::Mask;
    /// The chosen elements, and 0 in the other lanes, whose memory is not touched.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn load_masked(mask: Self::Mask, from: *const f32) -> Self;
    /// Writes the chosen lanes; the memory of the others is not touched.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn store_masked(self, mask: Self::Mask, to: *mut f32);
    /// `a * b + self` in the chosen lanes, `self` in the others.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn fma_masked(self, mask: Self::Mask, a: Self, b: Self) -> Self;
    /// Asks for the cache line at `at`, which may be any address, to be brought into the second-level
    /// cache: far enough ahead of a stream it then neither waits for memory nor evicts, from a small
    /// first-level cache, the lines of other streams that lie a power of two apart.
    fn prefetch(at: *const f32);
    /// Orders what [`stream`](Self::stream) wrote before all later stores.
    fn fence();
}

#[inline(always)]
fn canonical(value: f32) -> f32 {
    if value.is_nan() { f32::from_bits(NAN_BITS) } else { value }
}

impl Lanes for f32 {
    const LANES: usize = 1;
    type Mask = bool;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        value
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller passes a pointer valid for one element.
        unsafe { from.read() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller passes a pointer valid for one element.
        unsafe { to.write(self) }
    }
    #[inline(always)]
    unsafe fn stream(self, to: *mut f32) {
        // SAFETY: the caller passes a pointer valid for one element.
        unsafe { to.write(self) }
    }
    #[inline(always)]
    unsafe fn fma(self, a: Self, b: Self) -> Self {
        a.mul_add(b, self)
    }
    #[inline(always)]
    unsafe fn add(self, b: Self) -> Self {
        self + b
    }
    #[inline(always)]
    unsafe fn canonical(self) -> Self {
        canonical(self)
    }
    #[inline(always)]
    unsafe fn halving_sum(self) -> f32 {
        self
    }
    #[inline(always)]
    unsafe fn mask(first: usize, end: usize) -> bool {
        first < end
    }
    #[inline(always)]
    unsafe fn load_masked(mask: bool, from: *const f32) -> Self {
        if mask {
            // SAFETY: the lane is chosen, so the caller vouches for the element.
            unsafe { from.read() }
        } else {
            0.0
        }
    }
    #[inline(always)]
    unsafe fn store_masked(self, mask: bool, to: *mut f32) {
        if mask {
            // SAFETY: the lane is chosen, so the caller vouches for the element.
            unsafe { to.write(self) }
        }
    }
    #[inline(always)]
    unsafe fn fma_masked(self, mask: bool, a: Self, b: Self) -> Self {
        if mask { a.mul_add(b, self) } else { self }
    }
    #[inline(always)]
    fn prefetch(_at: *const f32) {}
    #[inline(always)]
    fn fence() {}
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Lanes, NAN_BITS};
    use std::arch::x86_64::*;

    #[inline(always)]
    fn prefetch(at: *const f32) {
        // SAFETY: a prefetch never faults; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    /// The sum of four lanes by halving.
    #[inline(always)]
    unsafe fn halving_sum4(v: __m128) -> f32 {
        // SAFETY: the caller's instruction set includes SSE.
        unsafe {
            let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
        }
    }

    /// Eight words of all ones followed by eight of zeros and eight of ones again: a window of
    /// eight at the right offset is a mask that ends, or begins, at any lane.
    static EDGES: [u32; 24] = {
        let mut words = [u32::MAX; 24];
        let mut i = 8;
        while i < 16 {
            words[i] = 0;
            i += 1;
        }
        words
    };

    // SAFETY of every block below: the caller of a function of `Lanes` guarantees the instruction
    // set and the pointers, as the trait demands; nothing else is needed.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Lanes for __m256 {
        const LANES: usize = 8;
        type Mask = __m256i;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            unsafe { _mm256_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            unsafe { _mm256_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm256_storeu_ps(to, self) }
        }
        #[inline(always)]
        unsafe fn stream(self, to: *mut f32) {
            unsafe { _mm256_stream_ps(to, self) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            unsafe { _mm256_fmadd_ps(a, b, self) }
        }
        #[inline(always)]
        unsafe fn add(self, b: Self) -> Self {
            unsafe { _mm256_add_ps(self, b) }
        }
        #[inline(always)]
        unsafe fn canonical(self) -> Self {
            unsafe {
                let nan = _mm256_set1_ps(f32::from_bits(NAN_BITS));
                _mm256_blendv_ps(self, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(self, self))
            }
        }
        #[inline(always)]
        unsafe fn halving_sum(self) -> f32 {
            unsafe { halving_sum4(_mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self))) }
        }
        #[inline(always)]
        unsafe fn mask(first: usize, end: usize) -> __m256i {
            debug_assert!(first <= end && end <= 8);
            unsafe {
                let until = _mm256_loadu_si256(EDGES.as_ptr().add(8 - end).cast());
                let from = _mm256_loadu_si256(EDGES.as_ptr().add(16 - first).cast());
                _mm256_and_si256(until, from)
            }
        }
        #[inline(always)]
        unsafe fn load_masked(mask: __m256i, from: *const f32) -> Self {
            unsafe { _mm256_maskload_ps(from, mask) }
        }
        #[inline(always)]
        unsafe fn store_masked(self, mask: __m256i, to: *mut f32) {
            unsafe { _mm256_maskstore_ps(to, mask, self) }
        }
        #[inline(always)]
        unsafe fn fma_masked(self, mask: __m256i, a: Self, b: Self) -> Self {
            unsafe { _mm256_blendv_ps(self, _mm256_fmadd_ps(a, b, self), _mm256_castsi256_ps(mask)) }
        }
        #[inline(always)]
        fn prefetch(at: *const f32) {
            prefetch(at);
        }
        #[inline(always)]
        fn fence() {
            // SAFETY: SSE is part of x86-64.
            unsafe { _mm_sfence() }
        }
    }

    // SAFETY of every block below: as for `__m256`.
    #[allow(clippy::undocumented_unsafe_blocks)]
    impl Lanes for __m512 {
        const LANES: usize = 16;
        type Mask = __mmask16;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            unsafe { _mm512_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            unsafe { _mm512_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm512_storeu_ps(to, self) }
        }
        #[inline(always)]
        unsafe fn stream(self, to: *mut f32) {
            unsafe { _mm512_stream_ps(to, self) }
        }
        #[inline(always)]
        unsafe fn fma(self, a: Self, b: Self) -> Self {
            unsafe { _mm512_fmadd_ps(a, b, self) }
        }
        #[inline(always)]
        unsafe fn add(self, b: Self) -> Self {
            unsafe { _mm512_add_ps(self, b) }
        }
        #[inline(always)]
        unsafe fn canonical(self) -> Self {
            unsafe {
                let nan = _mm512_set1_ps(f32::from_bits(NAN_BITS));
                _mm512_mask_mov_ps(self, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self, self), nan)
            }
        }
        #[inline(always)]
        unsafe fn halving_sum(self) -> f32 {
            unsafe { _mm256_add_ps(_mm512_castps512_ps256(self), _mm512_extractf32x8_ps::<1>(self)).halving_sum() }
        }
        #[inline(always)]
        unsafe fn mask(first: usize, end: usize) -> __mmask16 {
            debug_assert!(first <= end && end <= 16);
            ((1_u32 << end) - (1_u32 << first)) as __mmask16
        }
        #[inline(always)]
        unsafe fn load_masked(mask: __mmask16, from: *const f32) -> Self {
            unsafe { _mm512_maskz_loadu_ps(mask, from) }
        }
        #[inline(always)]
        unsafe fn store_masked(self, mask: __mmask16, to: *mut f32) {
            unsafe { _mm512_mask_storeu_ps(to, mask, self) }
        }
        #[inline(always)]
        unsafe fn fma_masked(self, mask: __mmask16, a: Self, b: Self) -> Self {
            unsafe { _mm512_mask3_fmadd_ps(a, b, self, mask) }
        }
        #[inline(always)]
        fn prefetch(at: *const f32) {
            prefetch(at);
        }
        #[inline(always)]
        fn fence() {
            // SAFETY: SSE is part of x86-64.
            unsafe { _mm_sfence() }
        }
    }
}
