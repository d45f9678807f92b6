//! Dividing tasks that can be split into independent ones, evenly by predicted work.
//!
//! A search tree is the usual case: a task is a node with everything below it, its parts are the nodes one level down,
//! and nobody knows what lies below without going there. So a task says what it *predicts* ([`Divisible::work`]), and
//! [`divide`] splits the largest prediction again and again until no part is more than a given share of the whole. Parts
//! come from different depths, therefore, and are about equally long where the tree is not. They come longest first:
//! handed out in this order to whoever is free, work ends within one part's length of the best that any order could do
//! (Graham, Bounds on multiprocessing timing anomalies, 1969).
//!
//! Nothing here depends on workers or clocks: the same tasks give the same parts in the same order, so a part can be named
//! by its number in a checkpoint.
//!
//! ```
//! use multigrain_schedule::division::{Divisible, Grain, divide};
//!
//! /// A range of numbers, the n-th of which takes n units.
//! struct Numbers(std::ops::Range<u32>);
//! impl Divisible for Numbers {
//!     fn work(&self) -> f64 {
//!         self.0.clone().map(f64::from).sum()
//!     }
//!     fn divide(self) -> Result<Vec<Self>, Self> {
//!         let (start, end) = (self.0.start, self.0.end);
//!         if end - start < 2 {
//!             return Err(self);
//!         }
//!         let middle = start + (end - start) / 2;
//!         Ok(vec![Numbers(start..middle), Numbers(middle..end)])
//!     }
//! }
//!
//! let division = divide([Numbers(0..1000)], &Grain { share: 0.05, ..Grain::default() });
//! let parts = division.parts;
//! assert_eq!(parts.iter().map(|part| part.0.len()).sum::<usize>(), 1000);
//! assert!(parts.iter().all(|part| part.work() <= 0.05 * division.work));
//! assert!(parts.is_sorted_by(|a, b| a.work() >= b.work()));
//! ```

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A task that can be split into independent tasks, whose results together are its own.
pub trait Divisible: Sized {
    /// The work that is predicted, in any unit, but the same for all tasks. What is not a positive number counts as none.
    fn work(&self) -> f64;

    /// The parts, always the same and in the same order; none at all where the search shows that nothing is to be done.
    ///
    /// # Errors
    /// The task itself, where it cannot be split.
    fn divide(self) -> Result<Vec<Self>, Self>;
}

/// How finely tasks are divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grain {
    /// No part is predicted to be more than this share of the whole (unless it cannot be split, or a limit below says so).
    pub share: f64,
    /// What is predicted to be no more than this is not split: handing it out would take longer than doing it.
    pub least_work: f64,
    /// Once there are so many parts, none is split any more.
    pub parts_max: usize,
}

impl Default for Grain {
    /// Shares of 1/1024, work of any size, at most 2^20 parts.
    fn default() -> Grain {
        Grain { share: 1.0 / 1024.0, least_work: 0.0, parts_max: 1 << 20 }
    }
}

/// Tasks, divided.
#[derive(Debug, Clone, PartialEq)]
pub struct Division<T> {
    /// The parts, those with the most predicted work first, equal ones in the order in which they were made.
    pub parts: Vec<T>,
    /// The work predicted for all of them.
    pub work: f64,
}

/// A part, ordered by work and then by age.
struct Aged<T> {
    work: f64,
    number: u64,
    task: T,
}

impl<T: Divisible> Aged<T> {
    fn new(task: T, number: u64) -> Self {
        let work = task.work();
        Aged { work: if work > 0.0 && work.is_finite() { work } else { 0.0 }, number, task }
    }
}

impl<T> Ord for Aged<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.work.total_cmp(&other.work).then(other.number.cmp(&self.number))
    }
}

impl<T> PartialOrd for Aged<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Aged<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Aged<T> {}

/// Splits the tasks of most predicted work until all are as fine as `grain` asks for.
pub fn divide<T: Divisible>(tasks: impl IntoIterator<Item = T>, grain: &Grain) -> Division<T> {
    let mut number = 0;
    let mut aged = |task| {
        number += 1;
        Aged::new(task, number)
    };
    let mut heap: BinaryHeap<Aged<T>> = tasks.into_iter().map(&mut aged).collect();
    let mut done = Vec::new();
    // Predictions of parts do not add up to that of the task that was split; the sum follows them.
    let mut work: f64 = heap.iter().map(|part| part.work).sum();
    while let Some(part) = heap.pop() {
        let wanted = part.work > grain.share * work && part.work > grain.least_work;
        if !wanted || heap.len() + done.len() + 1 >= grain.parts_max {
            // The others are no larger.
            heap.push(part);
            break;
        }
        let (before, age) = (part.work, part.number);
        match part.task.divide() {
            Ok(parts) => {
                work -= before;
                for task in parts {
                    let part = aged(task);
                    work += part.work;
                    heap.push(part);
                }
            }
            Err(task) => done.push(Aged { work: before, number: age, task }),
        }
    }
    done.extend(heap);
    done.sort_by(|a, b| b.cmp(a));
    let work = done.iter().map(|part| part.work).sum();
    Division { parts: done.into_iter().map(|part| part.task).collect(), work }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tree of given work at each leaf; `claims` is what a node predicts in per cent of the truth.
    #[derive(Debug, Clone, PartialEq)]
    enum Tree {
        Leaf(u32),
        Node(Vec<Tree>, u32),
    }

    impl Tree {
        fn leaves(&self) -> Vec<u32> {
            match self {
                Tree::Leaf(work) => vec![*work],
                Tree::Node(trees, _) => trees.iter().flat_map(Tree::leaves).collect(),
            }
        }
    }

    impl Divisible for Tree {
        fn work(&self) -> f64 {
            let truth: u32 = self.leaves().iter().sum();
            f64::from(truth) * if let Tree::Node(_, claims) = self { f64::from(*claims) / 100.0 } else { 1.0 }
        }
        fn divide(self) -> Result<Vec<Self>, Self> {
            match self {
                Tree::Leaf(_) => Err(self),
                Tree::Node(trees, _) => Ok(trees),
            }
        }
    }

    fn trees() -> impl Strategy<Value = Tree> {
        (0..100_u32).prop_map(Tree::Leaf).prop_recursive(6, 200, 5, |tree| {
            (prop::collection::vec(tree, 0..5), 20..300_u32).prop_map(|(trees, claims)| Tree::Node(trees, claims))
        })
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_parts_are_as_fine_as_asked(
            trees in prop::collection::vec(trees(), 0..4), share in 0.01..1.5_f64, least in 0..50_u32, most in 1..60_usize,
        ) {
            let grain = Grain { share, least_work: f64::from(least), parts_max: most };
            let division = divide(trees.clone(), &grain);
            let mut had: Vec<u32> = trees.iter().flat_map(Tree::leaves).collect();
            let mut has: Vec<u32> = division.parts.iter().flat_map(Tree::leaves).collect();
            had.sort_unstable();
            has.sort_unstable();
            prop_assert_eq!(had, has);
            prop_assert!(division.parts.is_sorted_by(|a, b| a.work() >= b.work()));
            let limit = (share * division.work).max(f64::from(least)) * (1.0 + 1e-9);
            if division.parts.len() < most {
                for part in &division.parts {
                    prop_assert!(matches!(part, Tree::Leaf(_)) || part.work() <= limit, "{part:?} of {limit}");
                }
            }
            // One split adds the children of one node, four at most here.
            prop_assert!(division.parts.len() <= most.max(trees.len()) + 3);
            prop_assert_eq!(divide(trees, &grain), division);
        }
    }

    #[test]
    fn predictions_that_are_no_numbers_end() {
        struct Odd(u32, f64);
        impl Divisible for Odd {
            fn work(&self) -> f64 {
                self.1
            }
            fn divide(self) -> Result<Vec<Self>, Self> {
                if self.0 == 0 { Err(self) } else { Ok(vec![Odd(self.0 - 1, self.1), Odd(self.0 - 1, 1.0)]) }
            }
        }
        for odd in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert_eq!(divide([Odd(5, odd)], &Grain::default()).parts.len(), 1);
        }
    }
}
