//! Discrete Fourier transforms of a few elements, each lane its own: `y[k] = sum over q of x[q] exp(-2 pi i q k / R)`.
//!
//! The order of operations in here is part of the definition of the result (see [`super`]).

use multigrain_simd::Lanes;
use std::f64::consts::FRAC_1_SQRT_2;

/// As many complex numbers as lanes: real parts and imaginary parts.
#[derive(Clone, Copy)]
pub(super) struct Complex<V> {
    pub(super) re: V,
    pub(super) im: V,
}

// SAFETY of every block below: the caller guarantees the instruction set; no memory is accessed.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<V: Lanes> Complex<V> {
    #[inline(always)]
    pub(super) unsafe fn add(self, b: Self) -> Self {
        unsafe { Complex { re: self.re.add(b.re), im: self.im.add(b.im) } }
    }

    #[inline(always)]
    pub(super) unsafe fn sub(self, b: Self) -> Self {
        unsafe { Complex { re: self.re.sub(b.re), im: self.im.sub(b.im) } }
    }

    /// `self - i b`.
    #[inline(always)]
    unsafe fn sub_i(self, b: Self) -> Self {
        unsafe { Complex { re: self.re.add(b.im), im: self.im.sub(b.re) } }
    }

    /// `self + i b`.
    #[inline(always)]
    unsafe fn add_i(self, b: Self) -> Self {
        unsafe { Complex { re: self.re.sub(b.im), im: self.im.add(b.re) } }
    }

    /// `self + c b` with a real number c.
    #[inline(always)]
    unsafe fn fma(self, c: V, b: Self) -> Self {
        unsafe { Complex { re: self.re.fma(c, b.re), im: self.im.fma(c, b.im) } }
    }

    /// `c self` with a real number c.
    #[inline(always)]
    unsafe fn scale(self, c: V) -> Self {
        unsafe { Complex { re: self.re.mul(c), im: self.im.mul(c) } }
    }

    /// `w self`.
    #[inline(always)]
    pub(super) unsafe fn times(self, w: Self) -> Self {
        unsafe { Complex { re: self.im.mul(w.im).fms(self.re, w.re), im: self.im.mul(w.re).fma(self.re, w.im) } }
    }

    /// `exp(-2 pi i / 8) self`.
    #[inline(always)]
    unsafe fn eighth(self) -> Self {
        unsafe {
            let half = V::splat(FRAC_1_SQRT_2 as f32);
            Complex { re: self.re.add(self.im).mul(half), im: self.im.sub(self.re).mul(half) }
        }
    }

    /// `exp(-2 pi i 3 / 8) self`.
    #[inline(always)]
    unsafe fn three_eighths(self) -> Self {
        unsafe {
            let half = V::splat(FRAC_1_SQRT_2 as f32);
            let minus = V::splat(-FRAC_1_SQRT_2 as f32);
            Complex { re: self.im.sub(self.re).mul(half), im: self.re.add(self.im).mul(minus) }
        }
    }

    #[inline(always)]
    unsafe fn constant(re: f64, im: f64) -> Self {
        unsafe { Complex { re: V::splat(re as f32), im: V::splat(im as f32) } }
    }
}

#[inline(always)]
unsafe fn two<V: Lanes>(x: [Complex<V>; 2]) -> [Complex<V>; 2] {
    // SAFETY: the caller's promise.
    unsafe { [x[0].add(x[1]), x[0].sub(x[1])] }
}

#[inline(always)]
unsafe fn four<V: Lanes>(x: [Complex<V>; 4]) -> [Complex<V>; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        let [even, even_difference] = two([x[0], x[2]]);
        let [odd, odd_difference] = two([x[1], x[3]]);
        [even.add(odd), even_difference.sub_i(odd_difference), even.sub(odd), even_difference.add_i(odd_difference)]
    }
}

#[inline(always)]
unsafe fn eight<V: Lanes>(x: [Complex<V>; 8]) -> [Complex<V>; 8] {
    // SAFETY: the caller's promise.
    unsafe {
        let [s0, d0] = two([x[0], x[4]]);
        let [s1, d1] = two([x[1], x[5]]);
        let [s2, d2] = two([x[2], x[6]]);
        let [s3, d3] = two([x[3], x[7]]);
        let even = four([s0, s1, s2, s3]);
        // d2 times -i is folded into the additions.
        let (d1, d3) = (d1.eighth(), d3.three_eighths());
        let (low, low_difference) = (d0.sub_i(d2), d0.add_i(d2));
        let [high, high_difference] = two([d1, d3]);
        [
            even[0],
            low.add(high),
            even[1],
            low_difference.sub_i(high_difference),
            even[2],
            low.sub(high),
            even[3],
            low_difference.add_i(high_difference),
        ]
    }
}

/// Four transforms of four, twiddles, four transforms of four.
#[inline(always)]
unsafe fn sixteen<V: Lanes>(x: [Complex<V>; 16]) -> [Complex<V>; 16] {
    // SAFETY: the caller's promise.
    unsafe {
        // cos and sin of 2 pi / 16.
        let (c, s) = (0.923_879_532_511_286_7, 0.382_683_432_365_089_8);
        let (w1, w3, w9) = (Complex::constant(c, -s), Complex::constant(s, -c), Complex::constant(-c, s));
        let a = four([x[0], x[4], x[8], x[12]]);
        let b = four([x[1], x[5], x[9], x[13]]);
        let d = four([x[2], x[6], x[10], x[14]]);
        let e = four([x[3], x[7], x[11], x[15]]);
        let y0 = four([a[0], b[0], d[0], e[0]]);
        let y1 = four([a[1], b[1].times(w1), d[1].eighth(), e[1].times(w3)]);
        let y3 = four([a[3], b[3].times(w3), d[3].three_eighths(), e[3].times(w9)]);
        // d[2] times -i is folded into the additions.
        let (low, low_difference) = (a[2].sub_i(d[2]), a[2].add_i(d[2]));
        let [high, high_difference] = two([b[2].eighth(), e[2].three_eighths()]);
        let y2 = [
            low.add(high),
            low_difference.sub_i(high_difference),
            low.sub(high),
            low_difference.add_i(high_difference),
        ];
        let mut y = x;
        for k in 0..4 {
            y[4 * k] = y0[k];
            y[4 * k + 1] = y1[k];
            y[4 * k + 2] = y2[k];
            y[4 * k + 3] = y3[k];
        }
        y
    }
}

/// An odd prime: sums and differences of opposite elements, then one chain of multiply-adds for every cosine part and
/// every sine part.
#[inline(always)]
unsafe fn odd<V: Lanes, const R: usize>(x: [Complex<V>; R], cos: &[f64], sin: &[f64]) -> [Complex<V>; R] {
    // SAFETY: the caller's promise.
    unsafe {
        let half = R / 2;
        let (mut sums, mut differences) = (x, x);
        let mut y = x;
        for q in 1..=half {
            sums[q] = x[q].add(x[R - q]);
            differences[q] = x[q].sub(x[R - q]);
            y[0] = y[0].add(sums[q]);
        }
        for k in 1..=half {
            let mut even = x[0];
            // sin(2 pi q k / R) for q k mod R up to R / 2, and its negative beyond.
            let mut rest = differences[1].scale(V::splat(sin[k - 1] as f32));
            for q in 1..=half {
                let at = q * k % R;
                let (turn, sign) = if at <= half { (at, 1.0) } else { (R - at, -1.0) };
                even = even.fma(V::splat(cos[turn - 1] as f32), sums[q]);
                if q > 1 {
                    rest = rest.fma(V::splat((sign * sin[turn - 1]) as f32), differences[q]);
                }
            }
            y[k] = even.sub_i(rest);
            y[R - k] = even.add_i(rest);
        }
        y
    }
}

/// The transform of `R` elements, for R in 1, 2, 3, 4, 5, 7, 8 and 16.
///
/// # Safety
/// The processor supports the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn butterfly<V: Lanes, const R: usize>(x: [Complex<V>; R]) -> [Complex<V>; R] {
    /// `x` as an array of a length that is known to be R.
    #[inline(always)]
    fn same<V: Copy, const R: usize, const N: usize>(x: [Complex<V>; R]) -> [Complex<V>; N] {
        let mut all = [x[0]; N];
        let mut i = 0;
        while i < N {
            all[i] = x[i];
            i += 1;
        }
        all
    }
    // SAFETY: the caller's promise.
    unsafe {
        match R {
            2 => same(two(same(x))),
            // cos and sin of 2 pi / 3.
            3 => same(odd::<V, 3>(same(x), &[-0.5], &[0.866_025_403_784_438_6])),
            4 => same(four(same(x))),
            // cos and sin of 2 pi k / 5.
            5 => same(odd::<V, 5>(
                same(x),
                &[0.309_016_994_374_947_45, -0.809_016_994_374_947_5],
                &[0.951_056_516_295_153_5, 0.587_785_252_292_473_1],
            )),
            // cos and sin of 2 pi k / 7.
            7 => same(odd::<V, 7>(
                same(x),
                &[0.623_489_801_858_733_5, -0.222_520_933_956_314_4, -0.900_968_867_902_419_1],
                &[0.781_831_482_468_029_8, 0.974_927_912_181_823_6, 0.433_883_739_117_558_1],
            )),
            8 => same(eight(same(x))),
            16 => same(sixteen(same(x))),
            _ => x,
        }
    }
}
