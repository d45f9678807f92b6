//! Kernels against a plain search, whole counts against each other, the classes of symmetry against images of solutions.

use multigrain::Abort;
use multigrain_queens::kernel::{Counter, Kernel};
use multigrain_queens::symmetric::Symmetry;
use multigrain_queens::{Board, Error, Node, Request, Row, rings, run};
use multigrain_simd::Isa;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Every solution of n x n: the column of each row's queen, by trying every field against every queen.
fn solutions(n: usize) -> BTreeSet<Vec<usize>> {
    fn place(n: usize, queens: &mut Vec<usize>, all: &mut BTreeSet<Vec<usize>>) {
        let row = queens.len();
        if row == n {
            all.insert(queens.clone());
            return;
        }
        for column in 0..n {
            if queens.iter().enumerate().all(|(r, c)| *c != column && row - r != column.abs_diff(*c)) {
                queens.push(column);
                place(n, queens, all);
                queens.pop();
            }
        }
    }
    let mut all = BTreeSet::new();
    place(n, &mut Vec::new(), &mut all);
    all
}

fn turned(queens: &[usize]) -> Vec<usize> {
    let n = queens.len();
    (0..n).map(|row| queens.iter().position(|c| *c == n - 1 - row).unwrap()).collect()
}

fn mirrored(queens: &[usize]) -> Vec<usize> {
    queens.iter().map(|c| queens.len() - 1 - c).collect()
}

/// The solutions of a board, by trying every open field against every queen.
fn plain(board: &Board) -> u64 {
    fn below(board: &Board, lines: &[i64], queens: &mut Vec<i64>) -> u64 {
        let row = queens.len();
        let Some(line) = lines.get(row) else { return 1 };
        let open = board.rows()[row].open;
        let columns: Vec<i64> = (0..32).filter(|c| open >> c & 1 == 1).collect();
        let mut found = 0;
        for column in columns {
            let free = |(at, c): (&i64, &i64)| *c != column && line - at != (column - c).abs();
            if lines.iter().zip(queens.iter()).all(free) {
                queens.push(column);
                found += below(board, lines, queens);
                queens.pop();
            }
        }
        found
    }
    let lines: Vec<i64> =
        board.rows().iter().scan(0, |line, row| Some(std::mem::replace(line, *line + i64::from(row.step)))).collect();
    below(board, &lines, &mut Vec::new())
}

/// Kernels that this processor executes on a board of these columns.
fn kernels(columns: u32) -> impl Iterator<Item = Kernel> {
    Kernel::ALL.into_iter().filter(move |kernel| kernel.counts(columns))
}

/// Boards with `most` rows at most whose columns and open fields are thrown, within `width` columns.
fn boards(width: u32, most: usize) -> impl Strategy<Value = Board> {
    let columns = prop::sample::subsequence((0..width).collect::<Vec<u32>>(), 0..=most.min(width as usize));
    let rows = prop::collection::vec((any::<u32>(), any::<u32>(), 1..5_u32), most);
    (columns, rows).prop_map(|(columns, rows)| {
        let rows = rows[..columns.len()].iter().map(|&(a, b, step)| Row { open: a | b, step }).collect();
        Board::new(columns.iter().map(|c| 1 << c).sum(), rows)
    })
}

/// All kernels on the subtrees below the first rows of a board.
fn check(board: &Board, depth: u32) {
    let expected = plain(board);
    for kernel in kernels(board.columns()) {
        let mut counter = Counter::new(kernel);
        let abort = Abort::new();
        let mut nodes = vec![Node::ROOT];
        let mut found = 0;
        while let Some(node) = nodes.pop() {
            if node.depth < depth.min(board.rows().len() as u32) {
                let places = board.places(&node);
                nodes
                    .extend((0..32).map(|c| 1 << c).filter(|bit| places & bit != 0).map(|bit| board.place(&node, bit)));
            } else {
                found += counter.count(board, &node, &abort).unwrap();
            }
        }
        assert_eq!(found, expected, "{kernel:?} below {depth} rows of {board:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn kernels_count_what_a_plain_search_finds(board in boards(16, 9), depth in 0..4_u32) {
        check(&board, depth);
    }

    #[test]
    fn kernels_count_boards_as_wide_as_a_word(board in boards(32, 7), depth in 0..4_u32) {
        check(&board, depth);
    }
}

fn request(n: u32, isa: Isa, threads: usize) -> Request {
    Request { n, threads: Some(threads), isa: Some(isa), ..Request::default() }
}

/// Fundamental solutions are those that come first among their images.
#[test]
fn counts_are_those_of_all_solutions() {
    for n in 1..10_usize {
        let all = solutions(n);
        let half = all.iter().filter(|queens| turned(&turned(queens)) == **queens).count();
        let quarter = all.iter().filter(|queens| turned(queens) == **queens).count();
        let first = |queens: &&Vec<usize>| {
            let mut image = (*queens).clone();
            (0..4).all(|_| {
                image = turned(&image);
                *queens <= &image && *queens <= &mirrored(&image)
            })
        };
        let fundamental = all.iter().filter(first).count();
        let abort = Abort::new();
        let counted = |symmetry: Symmetry| -> Option<u64> {
            symmetry.parts(n as u32).iter().map(|part| part.count(&abort)).sum()
        };
        assert_eq!(counted(Symmetry::Point), Some(half as u64), "n = {n}");
        assert_eq!(counted(Symmetry::Rotation), Some(quarter as u64), "n = {n}");
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let found = run(&request(n as u32, isa, 2), &abort, |_| {}).unwrap().counts;
            let found = [found.solutions, found.fundamental, found.point_symmetric, found.rotation_symmetric];
            assert_eq!(found, [all.len(), fundamental, half, quarter].map(|count| count as u128), "n = {n}, {isa}");
        }
    }
}

/// Up to 14, by every kernel, ring by ring.
#[test]
fn kernels_agree() {
    let abort = Abort::new();
    for n in 1..=14 {
        let rings = rings(n).unwrap();
        let columns = rings.iter().fold(0, |all, ring| all | ring.board.columns());
        let mut counters: Vec<(Kernel, Counter)> = kernels(columns).map(|k| (k, Counter::new(k))).collect();
        let mut sum = 0;
        for ring in &rings {
            let counts: Vec<_> = counters
                .iter_mut()
                .map(|(kernel, counter)| (*kernel, counter.count(&ring.board, &Node::ROOT, &abort)))
                .collect();
            assert!(counts.iter().all(|(_, count)| *count == counts[0].1), "n = {n}: {counts:?} of {ring:?}");
            sum += u64::from(ring.images) * counts[0].1.unwrap();
        }
        // The plain search of mirror images, for those that a test can wait for.
        if n <= 10 {
            assert_eq!(sum as usize, solutions(n as usize).len(), "n = {n}");
        }
        assert_eq!(u128::from(sum), run(&request(n, Isa::detect(), 3), &abort, |_| {}).unwrap().counts.solutions);
    }
}

/// The published counts (OEIS A000170 and A002562), beyond what can be searched plainly. They check the classes of symmetry,
/// whose arithmetic cannot see an error of a multiple of eight.
#[test]
fn counts_are_the_published_ones() {
    let published: [(u32, u128, u128); 7] = [
        (10, 724, 92),
        (11, 2_680, 341),
        (12, 14_200, 1_787),
        (13, 73_712, 9_233),
        (14, 365_596, 45_752),
        (15, 2_279_184, 285_053),
        (16, 14_772_512, 1_846_955),
    ];
    for (n, solutions, fundamental) in published {
        let counts = run(&request(n, Isa::detect(), 2), &Abort::new(), |_| {}).unwrap().counts;
        assert_eq!((counts.solutions, counts.fundamental), (solutions, fundamental), "n = {n}");
    }
}

#[test]
fn progress_ends_where_it_should() {
    let mut seen = Vec::new();
    run(&request(13, Isa::detect(), 2), &Abort::new(), |progress| seen.push(progress)).unwrap();
    assert_eq!(seen[0].done, 0.0);
    assert!(seen.is_sorted_by(|a, b| a.done <= b.done && a.total == b.total));
    let last = seen[seen.len() - 1];
    assert!((last.done / last.total - 1.0).abs() < 1e-9, "{last:?}");
}

#[test]
fn an_interrupted_count_says_so() {
    let abort = Abort::new();
    abort.raise();
    let error = run(&request(12, Isa::detect(), 2), &abort, |_| {}).unwrap_err();
    assert!(matches!(error, Error::Interrupted { kept: None }), "{error}");
    for kernel in kernels(0x3ff) {
        let board = &rings(14).unwrap().into_iter().max_by(|a, b| a.nodes.total_cmp(&b.nodes)).unwrap().board;
        let stopped = Counter::new(kernel).count(board, &Node::ROOT, &abort);
        assert!(stopped.is_none() || kernel == Kernel::Scalar, "{kernel:?} does not look up");
    }
}
