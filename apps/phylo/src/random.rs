//! Reproducible random numbers: xoshiro256++ (Blackman and Vigna 2021) seeded through SplitMix64.
//!
//! Every search and every replicate has its own stream, named by the run's seed, what it is for, and its number. So its
//! result does not depend on which others run, in what order, or where.

/// What a stream of random numbers is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The starting tree of a search.
    Start = 1,
    /// The search itself.
    Search = 2,
    /// The sites of a bootstrap replicate.
    Resample = 3,
    /// The starting tree and the search of a bootstrap replicate.
    Replicate = 4,
    /// Sites whose log-likelihoods are added up anew.
    Likelihoods = 5,
    /// Halves of the replicates, which are compared.
    Halves = 6,
    /// The replicates and the chains of the ultrafast bootstrap.
    Ultrafast = 7,
}

/// A stream of random numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Random {
    /// The stream of this seed, purpose and number.
    pub fn new(seed: u64, purpose: Purpose, number: u64) -> Random {
        let mut state = seed;
        for word in [purpose as u64, number] {
            state = split_mix(&mut state) ^ word.wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        Random { state: std::array::from_fn(|_| split_mix(&mut state)) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, each with the same probability (Lemire 2019). `bound` is positive.
    pub fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Brings the items into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for the state 1, 2, 3, 4, as the authors' program prints them.
    #[test]
    fn known_numbers() {
        let mut random = Random { state: [1, 2, 3, 4] };
        assert_eq!([random.bits(), random.bits(), random.bits()], [41943041, 58720359, 3588806011781223]);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first = |seed, purpose, number| Random::new(seed, purpose, number).bits();
        let all = [
            first(1, Purpose::Start, 0),
            first(2, Purpose::Start, 0),
            first(1, Purpose::Search, 0),
            first(1, Purpose::Start, 1),
        ];
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])));
        assert_eq!(first(1, Purpose::Start, 1), all[3]);
    }

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        let mut random = Random::new(7, Purpose::Resample, 0);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|_| counts[random.below(10) as usize] += 1);
        // Five standard deviations of a count are 474.
        assert!(counts.iter().all(|c| c.abs_diff(10_000) < 500), "{counts:?}");
        let mut order: Vec<u32> = (0..50).collect();
        random.shuffle(&mut order);
        assert_ne!(order, (0..50).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}
