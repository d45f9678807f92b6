//! Roots of unity, and into which butterflies a length is taken apart.

use std::f64::consts::FRAC_PI_4;

/// The prime factors that have butterflies.
pub(super) const PRIMES: [u64; 4] = [2, 3, 5, 7];

/// The radices of the passes for length `n`, in the order in which they are applied; `None` when `n` is zero or has a
/// prime factor other than 2, 3, 5 and 7. Length 1 has the one pass of radix 1.
///
/// Powers of two are taken by sixteens, which come first: rows of 16 m elements then need no transposition but one of
/// 16 x 16 (see [`super`]). What is left of them is a 2, 4 or 8, or 8 x 4, 8 x 8.
pub fn radices(n: u64) -> Option<Vec<usize>> {
    let mut rest = n;
    let mut count = |prime: u64| {
        let mut times = 0;
        while rest > 0 && rest.is_multiple_of(prime) {
            rest /= prime;
            times += 1;
        }
        times
    };
    let [twos, threes, fives, sevens] = PRIMES.map(&mut count);
    if rest != 1 {
        return None;
    }
    let (sixteens, small): (usize, &[usize]) = match (twos / 4, twos % 4) {
        (whole, 0) => (whole, &[]),
        (0, 1) => (0, &[2]),
        (whole, 1) => (whole - 1, &[8, 4]),
        (0, 2) => (0, &[4]),
        (whole, 2) => (whole - 1, &[8, 8]),
        (whole, _) => (whole, &[8]),
    };
    let mut radices = vec![16; sixteens];
    radices.extend_from_slice(small);
    for (prime, times) in [(7, sevens), (5, fives), (3, threes)] {
        radices.extend(std::iter::repeat_n(prime, times));
    }
    if radices.is_empty() {
        radices.push(1);
    }
    Some(radices)
}

/// cos and sin of 2 pi k / n to double precision: the angle is brought into the first octant in integers, where the
/// Taylor series is summed. Only additions, products and quotients are used, so every machine gives the same bits.
pub fn cos_sin(k: u64, n: u64) -> (f64, f64) {
    // 128 bits: eight times an index of an array may not fit in 64.
    let (k, n) = (8 * u128::from(k % n), u128::from(n));
    let octant = k / n;
    let within = if octant.is_multiple_of(2) { k - octant * n } else { (octant + 1) * n - k };
    let x = FRAC_PI_4 * (within as f64 / n as f64);
    let (c, s) = first_octant(x);
    match octant {
        0 => (c, s),
        1 => (s, c),
        2 => (-s, c),
        3 => (-c, s),
        4 => (-c, -s),
        5 => (-s, -c),
        6 => (s, -c),
        _ => (c, -s),
    }
}

/// cos and sin for 0 <= x <= pi/4. The first term left out is below 2^-60.
fn first_octant(x: f64) -> (f64, f64) {
    let square = x * x;
    let (mut c, mut s) = (1.0, 1.0);
    for i in (1..=9u32).rev() {
        c = 1.0 - square * c / f64::from((2 * i - 1) * (2 * i));
        s = 1.0 - square * s / f64::from((2 * i) * (2 * i + 1));
    }
    (c, x * s)
}

/// exp(-2 pi i k / n) in single precision: real and imaginary part, each rounded once from double.
pub(super) fn root(k: u64, n: u64) -> (f32, f32) {
    let (c, s) = cos_sin(k, n);
    (c as f32, -s as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radices_multiply_to_the_length() {
        for n in 1..5000u64 {
            let smooth = PRIMES.iter().fold(n, |mut rest, p| {
                while rest.is_multiple_of(*p) {
                    rest /= p;
                }
                rest
            }) == 1;
            match radices(n) {
                None => assert!(!smooth, "{n}"),
                Some(radices) => {
                    assert!(smooth, "{n}");
                    assert_eq!(radices.iter().product::<usize>() as u64, n);
                    assert!(n == 1 || !radices.contains(&1));
                }
            }
        }
        assert_eq!(radices(0), None);
        assert_eq!(radices(256), Some(vec![16, 16]));
        assert_eq!(radices(1 << 63).map(|r| r.len()), Some(16));
    }

    #[test]
    fn roots_are_those_of_the_mathematical_library() {
        for n in [1u64, 2, 3, 5, 7, 8, 12, 100, 1024, 3 << 40] {
            for k in (0..n.min(1000)).chain([n / 2, n - 1]) {
                let (c, s) = cos_sin(k, n);
                let angle = 2.0 * std::f64::consts::PI * (k as f64 / n as f64);
                assert!((c - angle.cos()).abs() < 1e-15 && (s - angle.sin()).abs() < 1e-15, "{k} of {n}");
            }
        }
        assert_eq!(cos_sin(1, 4), (0.0, 1.0));
        assert_eq!(cos_sin(u64::MAX - 1, u64::MAX).0, 1.0);
    }
}
