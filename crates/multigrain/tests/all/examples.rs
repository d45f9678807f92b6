//! The examples, run as programs on files, beside plain loops.

use multigrain::rooms::program::{Element, ElementType};
use multigrain::rooms::store::npy;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, built by `cargo test` beside this test; by hand where only this test was asked for.
fn example(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    if !path.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "-q", "-p", "multigrain", "--example", name]).status();
        assert!(built.is_ok_and(|status| status.success()), "cargo build --example {name}");
    }
    path
}

fn write<T: Element>(path: &Path, shape: &[u64], values: &[T]) {
    let mut content = npy::write(T::TYPE, shape).unwrap();
    content.extend_from_slice(T::as_bytes(values));
    std::fs::write(path, content).unwrap();
}

fn read<T: Element>(path: &Path) -> (Vec<u64>, Vec<T>) {
    let content = std::fs::read(path).unwrap();
    let header = npy::parse(&content).unwrap();
    assert_eq!(header.element, ElementType::of::<T>());
    (header.shape, T::from_bytes(&content[header.data_offset_bytes as usize..]))
}

fn numbers(count: u64) -> Vec<f32> {
    (0..count).map(|i| (i.wrapping_mul(2_654_435_761) % 2001) as f32 / 1000.0 - 1.0).collect()
}

fn run(name: &str, directory: &Path, args: &[&str]) -> String {
    let output = Command::new(example(name)).args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn double_doubles() {
    let directory = tempfile::tempdir().unwrap();
    let x = numbers(3_000_001);
    write(&directory.path().join("x.npy"), &[3_000_001], &x);
    run("double", directory.path(), &["x.npy", "y.npy"]);
    let (shape, y) = read::<f32>(&directory.path().join("y.npy"));
    assert_eq!(shape, [3_000_001]);
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 2.0 * x));
    run("double", directory.path(), &[]);
    assert_eq!(read::<f32>(&directory.path().join("double.npy")).0, [1 << 20]);
}

#[test]
fn heat_is_the_loop() {
    let directory = tempfile::tempdir().unwrap();
    let (m, n, steps) = (701, 977, 7);
    let mut u = numbers((m * n) as u64);
    write(&directory.path().join("u.npy"), &[m as u64, n as u64], &u);
    run("heat", directory.path(), &["u.npy", "out.npy", &steps.to_string()]);
    for _ in 0..steps {
        let at = |i: usize, j: usize| u[i * n + j];
        let mean = |i: usize, j: usize| {
            let (up, down) = (at(i.saturating_sub(1), j), at((i + 1).min(m - 1), j));
            0.25 * (up + down + at(i, j.saturating_sub(1)) + at(i, (j + 1).min(n - 1)))
        };
        u = (0..m * n).map(|p| mean(p / n, p % n)).collect();
    }
    let (shape, found) = read::<f32>(&directory.path().join("out.npy"));
    assert_eq!(shape, [m as u64, n as u64]);
    assert!(found == u, "heat of {m} x {n}, {steps} steps");
    run("heat", directory.path(), &[]);
    assert_eq!(read::<f32>(&directory.path().join("heat.npy")).0, [1000, 1200]);
}

#[test]
fn histogram_reads_once_and_counts_all() {
    let directory = tempfile::tempdir().unwrap();
    let (m, n) = (97, 40_000);
    let values = numbers((m * n) as u64);
    write(&directory.path().join("m.npy"), &[m as u64, n as u64], &values);
    let said = run("histogram", directory.path(), &["m.npy", "s.npy", "b.npy"]);
    // Partial results come back; beside the matrix they are nothing.
    let bytes: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(bytes[1] == 4 * (m * n) as u64 && bytes[0] < bytes[1] + bytes[1] / 50, "{said}");
    let (shape, sums) = read::<f64>(&directory.path().join("s.npy"));
    assert_eq!(shape, [m as u64]);
    for (row, sum) in values.chunks(n).zip(sums) {
        let exact: f64 = row.iter().map(|&x| f64::from(x)).sum();
        assert!((sum - exact).abs() < 1e-9, "{sum} and {exact}");
    }
    let mut counts = [0u64; 64];
    let edge = |i: usize| -1.0 + i as f64 * (2.0 / 64.0);
    for &value in &values {
        let bin = (0..64).rev().find(|&i| f64::from(value) >= edge(i)).unwrap();
        counts[bin] += 1;
    }
    assert_eq!(read::<u64>(&directory.path().join("b.npy")).1, counts);
    run("histogram", directory.path(), &[]);
    assert_eq!(read::<u64>(&directory.path().join("bins.npy")).1.iter().sum::<u64>(), 3_000_000);
}

#[test]
fn ragged_sums_lists_of_any_lengths() {
    let directory = tempfile::tempdir().unwrap();
    let lengths = (0..30_000u64).map(|i| 1 + i * i % 193 + if i == 777 { 500_000 } else { 0 });
    let begins: Vec<u64> = std::iter::once(0)
        .chain(lengths.scan(0, |end, length| {
            *end += length;
            Some(*end)
        }))
        .collect();
    let count = begins[begins.len() - 1];
    let values = numbers(count);
    write(&directory.path().join("v.npy"), &[count], &values);
    write(&directory.path().join("b.npy"), &[begins.len() as u64], &begins);
    run("ragged", directory.path(), &["v.npy", "b.npy", "s.npy"]);
    let (shape, sums) = read::<f64>(&directory.path().join("s.npy"));
    assert_eq!(shape, [30_000]);
    for (list, sum) in begins.windows(2).zip(sums) {
        let exact: f64 = values[list[0] as usize..list[1] as usize].iter().map(|&x| f64::from(x)).sum();
        assert_eq!(sum, exact);
    }
    let guide = include_str!("../../docs/guide.md");
    let (_, shown) = guide.split_once("```rust,ignore\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    assert!(include_str!("../../examples/ragged.rs").contains(shown), "the guide shows examples/ragged.rs as it is");
}

#[test]
fn an_error_is_told_by_main() {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("x.npy"), &[3], &[1.0f64, 2.0, 3.0]);
    let output = Command::new(example("double")).arg("x.npy").current_dir(directory.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.starts_with("Error: x.npy holds float64, float32 is needed"), "{said}");
}

#[test]
fn the_readme_shows_the_smallest_program() {
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains(include_str!("../../examples/double.rs")), "README.md shows examples/double.rs as it is");
}
