//! The fixed order in which partial results are combined.

/// Combines values in the order of a binary tree over their positions: neighbours, pairs of neighbours, and so on; what is
/// left over at the end of a level goes up as it is. The tree depends on nothing but how many there are. It is that of
/// reductions in programs (`multigrain_program::reduce`).
///
/// As an adder carries: place `i` holds the combination of 2^i values, or nothing.
#[derive(Debug)]
pub(crate) struct Fold<T> {
    /// Room for 2^32 values, more than a loop has chunks.
    places: [Option<T>; 32],
    used: usize,
}

impl<T> Fold<T> {
    pub(crate) fn new() -> Fold<T> {
        Fold { places: [const { None }; 32], used: 0 }
    }

    /// The next value, after all before.
    pub(crate) fn push(&mut self, mut value: T, combine: &impl Fn(T, T) -> T) {
        for place in &mut self.places[..self.used] {
            match place.take() {
                Some(left) => value = combine(left, value),
                None => {
                    *place = Some(value);
                    return;
                }
            }
        }
        self.places[self.used] = Some(value);
        self.used += 1;
    }

    /// The combination of all; nothing of nothing.
    pub(crate) fn finish(self, combine: &impl Fn(T, T) -> T) -> Option<T> {
        let mut parts = self.places.into_iter().flatten();
        let last = parts.next()?;
        Some(parts.fold(last, |right, left| combine(left, right)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Level by level, as the definition says.
    fn plain(mut level: Vec<String>) -> Option<String> {
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| if pair.len() == 2 { join(pair[0].clone(), pair[1].clone()) } else { pair[0].clone() })
                .collect();
        }
        level.pop()
    }

    fn join(left: String, right: String) -> String {
        format!("({left} {right})")
    }

    #[test]
    fn it_draws_the_tree() {
        for count in 0..70 {
            let values: Vec<String> = (0..count).map(|i| i.to_string()).collect();
            let mut fold = Fold::new();
            values.iter().for_each(|value| fold.push(value.clone(), &join));
            assert_eq!(fold.finish(&join), plain(values), "{count}");
        }
    }
}
