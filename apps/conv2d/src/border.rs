//! What lies beyond the border of an array.

/// What taps beyond the border meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Border {
    /// Zeros, which darken the edges of a picture: 0 0 0 | a b c d | 0 0 0
    #[default]
    Zero,
    /// The nearest element: a a a | a b c d | d d d
    #[value(alias = "edge")]
    Nearest,
    /// The array as in a mirror: c b a | a b c d | d c b (SciPy's symm)
    #[value(alias = "symm")]
    Reflect,
    /// The array again: b c d | a b c d | a b c
    Wrap,
}

impl Border {
    /// The element of `n` that stands for number `i`, which may be beyond; `None` for a zero.
    pub fn source(self, i: i64, n: u64) -> Option<u64> {
        let n = n as i64;
        let found = match self {
            _ if (0..n).contains(&i) => i,
            Border::Zero => return None,
            Border::Nearest => i.clamp(0, n - 1),
            Border::Reflect => {
                let i = i.rem_euclid(2 * n);
                i.min(2 * n - 1 - i)
            }
            Border::Wrap => i.rem_euclid(n),
        };
        Some(found as u64)
    }

    /// The least and the largest element that stand for the numbers from `start` on. Not for zeros.
    pub(crate) fn span(self, start: i64, len: u64, n: u64) -> (u64, u64) {
        let end = start + len as i64;
        if start >= 0 && end <= n as i64 {
            return (start as u64, end as u64 - 1);
        }
        // Beyond the border, where few elements are; after a whole period nothing is new.
        let seen = (start..end).take(2 * n as usize).filter_map(|i| self.source(i, n));
        let inside = (start.max(0)..end.min(n as i64)).map(|i| i as u64);
        let inside = inside.clone().min().into_iter().chain(inside.max());
        seen.chain(inside).fold((u64::MAX, 0), |(low, high), i| (low.min(i), high.max(i)))
    }
}

#[cfg(test)]
mod tests {
    use super::Border::{self, Nearest, Reflect, Wrap, Zero};

    #[test]
    fn every_border_is_what_its_line_says() {
        let line = |border: Border| (-3..7).map(|i| border.source(i, 4)).collect::<Vec<_>>();
        let [a, b, c, d] = [0, 1, 2, 3].map(Some);
        assert_eq!(line(Zero), [None, None, None, a, b, c, d, None, None, None]);
        assert_eq!(line(Nearest), [a, a, a, a, b, c, d, d, d, d]);
        assert_eq!(line(Reflect), [c, b, a, a, b, c, d, d, c, b]);
        assert_eq!(line(Wrap), [b, c, d, a, b, c, d, a, b, c]);
        // Beyond a border that is farther away than the array is long.
        let far = |border: Border| (-5..0).map(|i| border.source(i, 2)).collect::<Vec<_>>();
        assert_eq!(far(Reflect), [a, a, b, b, a]);
        assert_eq!(far(Wrap), [b, a, b, a, b]);
        assert_eq!(far(Nearest), [a; 5]);
    }

    #[test]
    fn spans_hold_every_source() {
        for border in [Nearest, Reflect, Wrap] {
            for n in 1..9 {
                for start in -20..20 {
                    for len in 1..30 {
                        let (low, high) = border.span(start, len, n);
                        let sources = (start..start + len as i64).map(|i| border.source(i, n).unwrap());
                        assert_eq!(sources.clone().min(), Some(low), "{border:?} {n} {start} {len}");
                        assert_eq!(sources.max(), Some(high), "{border:?} {n} {start} {len}");
                    }
                }
            }
        }
    }
}
