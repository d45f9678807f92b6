//! Arrays that are described and computed: the values of plain loops, in any memory, from one pass where one is enough.

use multigrain::prelude::*;

const KIB: u64 = 1024;

fn runtime(memory_bytes: u64) -> Runtime {
    Runtime::new(Options { memory_bytes: Some(memory_bytes), ..Options::default() }).unwrap()
}

fn file<T: Element>(directory: &std::path::Path, name: &str, shape: &[u64], values: &[T]) -> std::path::PathBuf {
    let path = directory.join(name);
    let mut content = multigrain::rooms::store::npy::write(T::TYPE, shape).unwrap();
    content.extend_from_slice(T::as_bytes(values));
    std::fs::write(&path, content).unwrap();
    path
}

fn values(shape: [u64; 3]) -> Vec<f32> {
    let count = shape.iter().product();
    (0..count).map(|i| generate::f32_at(7, i)).collect()
}

/// Sums of spans in order, spans by the tree: as the library states them.
fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn reductions_have_the_values_of_loops_and_the_same_bits_in_any_memory() {
    let directory = tempfile::tempdir().unwrap();
    let shape = [37u64, 61, 301];
    let data = values(shape);
    let path = file(directory.path(), "a.npy", &shape, &data);
    let at = |i: usize, j: usize, k: usize| f64::from(data[(i * 61 + j) * 301 + k]);
    let mut all: Vec<[Vec<u64>; 4]> = Vec::new();
    for memory in [700 * KIB, 1500 * KIB, 64 << 20] {
        let runtime = runtime(memory);
        let a = runtime.npy::<f32, 3>(&path).unwrap();
        let sums = [0, 1, 2].map(|axis| runtime.values(&a.sum_axis::<f64>(axis)).unwrap());
        let total = runtime.values(&a.sum::<f64>()).unwrap();
        for (p, &sum) in sums[0].iter().enumerate() {
            let exact: f64 = (0..37).map(|i| at(i, p / 301, p % 301)).sum();
            assert!((sum - exact).abs() < 1e-10, "{p}: {sum}, {exact}");
        }
        for (p, &sum) in sums[1].iter().enumerate() {
            let exact: f64 = (0..61).map(|j| at(p / 301, j, p % 301)).sum();
            assert!((sum - exact).abs() < 1e-10, "{p}: {sum}, {exact}");
        }
        for (p, &sum) in sums[2].iter().enumerate() {
            let exact: f64 = (0..301).map(|k| at(p / 61, p % 61, k)).sum();
            assert!((sum - exact).abs() < 1e-10, "{p}: {sum}, {exact}");
        }
        assert!((total[0] - data.iter().map(|&x| f64::from(x)).sum::<f64>()).abs() < 1e-8);
        let [first, second, third] = sums;
        all.push([bits(&first), bits(&second), bits(&third), bits(&total)]);
        let largest = runtime.values(&a.max_axis(1)).unwrap();
        let expected = |p: usize| (0..61).map(|j| at(p / 301, j, p % 301)).fold(f64::MIN, f64::max);
        assert!(largest.iter().enumerate().all(|(p, &x)| f64::from(x) == expected(p)));
        let least = data.iter().copied().fold(f32::MAX, f32::min);
        assert_eq!(runtime.values(&a.min()).unwrap(), [least]);
        assert_eq!(runtime.values(&a.mean()).unwrap(), [total[0] / data.len() as f64]);
        assert_eq!(runtime.values(&a.mean_axis(0)).unwrap().len(), 61 * 301);
    }
    assert!(all.iter().all(|bits| bits == &all[0]), "the bits of sums depend on memory");
}

#[test]
fn what_is_computed_element_by_element_is_never_stored() {
    let directory = tempfile::tempdir().unwrap();
    let n = 1_000_003u64;
    let x: Vec<f32> = (0..n).map(|i| generate::f32_at(1, i)).collect();
    let y: Vec<i16> = (0..n).map(|i| (i % 4001) as i16 - 2000).collect();
    let (xs, ys) = (file(directory.path(), "x.npy", &[n], &x), file(directory.path(), "y.npy", &[n], &y));
    let runtime = runtime(1 << 20);
    let (a, b) = (runtime.npy::<f32, 1>(&xs).unwrap(), runtime.npy::<i16, 1>(&ys).unwrap());
    let z = a.map(|x| f64::from(x) * 3.0).zip(&b.map(i64::from), |x, y| x + y as f64).unwrap();
    let out = directory.path().join("z.npy");
    let doubled = directory.path().join("doubled.npy");
    let outcome = runtime.compute((z.save(&out), z.map(|z| 2.0 * z).save(&doubled))).unwrap();
    let traffic = outcome.edges[0].traffic;
    assert_eq!((traffic.bytes_down, traffic.bytes_up), (6 * n, 16 * n));
    let read = |path| std::fs::read(path).unwrap()[4096..].to_vec();
    let expected: Vec<f64> = x.iter().zip(&y).map(|(&x, &y)| f64::from(x) * 3.0 + f64::from(y)).collect();
    assert!(read(&out) == f64::as_bytes(&expected));
    let twice: Vec<f64> = expected.iter().map(|z| 2.0 * z).collect();
    assert!(read(&doubled) == f64::as_bytes(&twice));
}

#[test]
fn results_that_share_an_array_come_from_one_pass_over_it() {
    let directory = tempfile::tempdir().unwrap();
    // A row is larger than the memory.
    let (m, n) = (5u64, 600_000u64);
    let data: Vec<f32> = (0..m * n).map(|i| generate::f32_at(3, i)).collect();
    let path = file(directory.path(), "m.npy", &[m, n], &data);
    let runtime = runtime(1 << 20);
    let a = runtime.npy::<f32, 2>(&path).unwrap();
    let name = |name: &str| directory.path().join(name);
    let (sums, bins) = (a.sum_axis::<f64>(1), a.histogram(10, -1.0..1.0));
    let scaled = sums.map(|sum| sum / 1000.0);
    let outcome = runtime
        .compute((
            sums.save(name("s.npy")),
            bins.save(name("b.npy")),
            a.max_axis(1).save(name("x.npy")),
            scaled.save(name("t.npy")),
        ))
        .unwrap();
    let read = outcome.edges[0].traffic.bytes_down;
    assert!(read < 4 * m * n + 4 * m * n / 20, "{read} bytes read for a matrix of {}", 4 * m * n);
    let found = |file: &str| std::fs::read(name(file)).unwrap()[4096..].to_vec();
    for (row, (sum, scaled)) in
        data.chunks(n as usize).zip(f64::from_bytes(&found("s.npy")).into_iter().zip(f64::from_bytes(&found("t.npy"))))
    {
        let exact: f64 = row.iter().map(|&x| f64::from(x)).sum();
        assert!((sum - exact).abs() < 1e-8 && scaled == sum / 1000.0);
    }
    let mut counts = [0u64; 10];
    // Edges are of the type of what is counted.
    let edges = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|i| (f64::from(i) * 0.2 - 1.0) as f32);
    data.iter().for_each(|x| counts[edges.partition_point(|edge| edge <= x) - 1] += 1);
    assert_eq!(u64::from_bytes(&found("b.npy")), counts);
}

/// NumPy 2's counts of these numbers of single precision, whose edges are of that too: 0.7 begins a bin, and in double precision
/// it would lie before it.
#[test]
fn numbers_at_edges_are_counted_where_numpy_counts_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "edges.npy", &[6], &[0.7f32, 0.7, 0.1, 0.3, 0.9, 1.0]);
    let runtime = runtime(1 << 20);
    let counts = runtime.values(&runtime.npy::<f32, 1>(&path).unwrap().histogram(10, 0.0..1.0)).unwrap();
    assert_eq!(counts, [0, 1, 0, 1, 0, 0, 0, 2, 0, 2]);
    // So narrow that as many bins as there are would not fit a unit.
    let narrow = runtime.array::<f64, 1>([4], &[0.0, 2e-311, 5e-311, 9.9e-311]).unwrap().histogram(10, 0.0..1e-310);
    assert_eq!(runtime.values(&narrow).unwrap(), [1, 0, 1, 0, 0, 1, 0, 0, 0, 1]);
}

/// next = the mean of what is near, where the array has it.
#[task(axes(i, j), flops = 6.0)]
fn smooth(#[at(i - 1 + 2, j +- 1)] u: Read<f64, 2>, #[at(i, j)] next: Write<f64, 2>) {
    for i in 0..next.len(0) {
        for j in 0..next.len(1) {
            let near = [(-1, 0), (0, 0), (1, 1), (2, -1)].into_iter().filter_map(|(di, dj)| u.get([i, j], [di, dj]));
            next[[i, j]] = near.clone().sum::<f64>() / near.count() as f64;
        }
    }
}

#[test]
fn steps_of_a_declared_task_are_the_loop() {
    let (m, n) = (83usize, 4001usize);
    let mut u: Vec<f64> = (0..m * n).map(|i| generate::f64_at(9, i as u64)).collect();
    let runtime = runtime(900 * KIB);
    let lazy = runtime.array([m as u64, n as u64], &u).unwrap();
    for steps in [0u64, 1, 2, 5] {
        let found = runtime.values(&lazy.iterate(steps, smooth)).unwrap();
        let mut expected = u.clone();
        for _ in 0..steps {
            let before = expected.clone();
            for (p, next) in expected.iter_mut().enumerate() {
                let (i, j) = ((p / n) as isize, (p % n) as isize);
                let near = [(-1, 0), (0, 0), (1, 1), (2, -1)].into_iter().filter_map(|(di, dj)| {
                    let (i, j) = (usize::try_from(i + di).ok()?, usize::try_from(j + dj).ok()?);
                    (i < m && j < n).then(|| before[i * n + j])
                });
                *next = near.clone().sum::<f64>() / near.count() as f64;
            }
        }
        assert!(found == expected, "{steps} steps");
    }
    u.clear();
}

#[test]
fn what_fits_stays_and_what_does_not_goes_through_once_for_many_steps() {
    let shape = [83u64, 4001];
    let u: Vec<f64> = (0..shape[0] * shape[1]).map(|i| generate::f64_at(9, i)).collect();
    let directory = tempfile::tempdir().unwrap();
    let run = |memory_bytes: u64, out: &str| {
        let (runtime, out) = (runtime(memory_bytes), directory.path().join(out));
        let lazy = runtime.array(shape, &u).unwrap();
        let outcome = runtime.compute(lazy.iterate(20, smooth).save(&out)).unwrap();
        let (traffic, calls) = (outcome.edges[0].traffic, outcome.plan.sources.len());
        (traffic.bytes_down + traffic.bytes_up, calls, std::fs::read(&out).unwrap())
    };
    let (kept, _, whole) = run(32 << 20, "whole.npy");
    let (moved, passes, in_blocks) = run(900 * KIB, "blocks.npy");
    assert!(whole == in_blocks);
    // The first array once down, the last one once up.
    let compulsory = 2 * 8 * shape[0] * shape[1];
    assert!(kept <= compulsory + compulsory / 10, "{kept} bytes moved, {compulsory} have to be");
    // Step by step it would be twenty times.
    assert!(moved <= 4 * compulsory, "{moved} bytes moved in {passes} passes, {compulsory} have to be");
}

#[test]
fn a_step_that_is_saved_is_there_whatever_is_taken_together() {
    let shape = [61u64, 1500];
    let u: Vec<f64> = (0..shape[0] * shape[1]).map(|i| generate::f64_at(5, i)).collect();
    let directory = tempfile::tempdir().unwrap();
    let run = |memory_bytes: u64, at: &[u64]| {
        let runtime = runtime(memory_bytes);
        let mut lazy = runtime.array(shape, &u).unwrap();
        let (mut done, mut saves) = (0, Vec::new());
        for &steps in at {
            lazy = lazy.iterate(steps - done, smooth);
            done = steps;
            saves.push(lazy.save(directory.path().join(format!("{steps}.npy"))));
        }
        let outcome = runtime.compute(saves).unwrap();
        let reports = outcome.plan.passes.iter().filter(|report| report.pass == "steps").count();
        (
            reports,
            at.iter().map(|steps| std::fs::read(directory.path().join(format!("{steps}.npy"))).unwrap()).collect(),
        )
    };
    let (together, found): (usize, Vec<Vec<u8>>) = run(700 * KIB, &[5, 6, 13, 30]);
    let expected: Vec<Vec<u8>> = [5, 6, 13, 30].iter().map(|&steps| run(64 << 20, &[steps]).1.remove(0)).collect();
    assert!(found == expected);
    assert_eq!(together, 3, "chains of 5, 7 and 17 steps, and one step alone");
}

#[test]
fn steps_that_were_killed_are_continued_and_values_of_functions_are_not_guessed() {
    use multigrain::rooms::store::faults::{Count, DieAt, Faults};
    use std::sync::Arc;
    use std::time::Duration;
    let shape = [83u64, 4001];
    let u: Vec<f64> = (0..shape[0] * shape[1]).map(|i| generate::f64_at(9, i)).collect();
    let directory = tempfile::tempdir().unwrap();
    let (from, out) = (file(directory.path(), "u.npy", &shape, &u), directory.path().join("out.npy"));
    let run = |faults: Option<Arc<dyn Faults>>, resume: bool, factor: Option<f64>| {
        let options = Options { memory_bytes: Some(900 * KIB), faults, ..Options::default() };
        let runtime = Runtime::new(options).unwrap();
        let mut lazy = runtime.npy::<f64, 2>(&from).unwrap().iterate(20, smooth);
        if let Some(factor) = factor {
            lazy = lazy.map(move |x| factor * x);
        }
        let settings = Settings { resume, journal_interval: Some(Duration::ZERO), ..Settings::default() };
        runtime.compute_with(lazy.save(&out), settings)
    };
    let count = Arc::new(Count::new());
    let whole = run(Some(count.clone()), false, None).unwrap();
    assert!(whole.plan.passes.iter().any(|report| report.pass == "steps"), "{}", whole.plan);
    let (calls, expected) = (whole.plan.calls.len(), std::fs::read(&out).unwrap());
    std::fs::remove_file(&out).unwrap();
    assert!(run(Some(Arc::new(DieAt { n: count.operations() * 2 / 3 })), false, None).is_err());
    // Neither in silence over what is kept, nor on with a function that may be another one.
    assert!(run(None, false, None).is_err_and(|error| error.to_string().contains("--resume")));
    assert!(run(None, true, Some(2.0)).is_err_and(|error| error.to_string().contains("values of its own")));
    let rest = run(None, true, None).unwrap();
    assert!(rest.resumed && rest.plan.calls.len() < calls, "{} of {calls} calls", rest.plan.calls.len());
    assert!(std::fs::read(&out).unwrap() == expected);
}

mod by_one {
    use multigrain::prelude::*;
    #[task(axes(i, j))]
    pub fn more(#[at(i, j)] u: Read<f64, 2>, #[at(i, j)] next: Write<f64, 2>) {
        for i in 0..next.len(0) {
            next.row_mut(&[i]).iter_mut().zip(u.row(&[i])).for_each(|(next, u)| *next = u + 1.0);
        }
    }
}

mod by_two {
    use multigrain::prelude::*;
    #[task(axes(i, j))]
    pub fn more(#[at(i, j)] u: Read<f64, 2>, #[at(i, j)] next: Write<f64, 2>) {
        for i in 0..next.len(0) {
            next.row_mut(&[i]).iter_mut().zip(u.row(&[i])).for_each(|(next, u)| *next = u + 2.0);
        }
    }
}

/// What differs in which array a function is applied to, or in the task that has a name, is another program.
#[test]
fn a_run_is_not_continued_with_other_operands_or_another_task_of_the_name() {
    use multigrain::rooms::store::faults::{Count, DieAt, Faults};
    use std::sync::Arc;
    use std::time::Duration;
    let shape = [400u64, 1000];
    let directory = tempfile::tempdir().unwrap();
    let [x, y] = [1.0, 2.0].map(|value| file(directory.path(), &format!("{value}.npy"), &shape, &vec![value; 400_000]));
    let out = directory.path().join("out.npy");
    let run = |faults: Option<Arc<dyn Faults>>, resume: bool, way: usize| {
        let runtime = Runtime::new(Options { memory_bytes: Some(900 * KIB), faults, ..Options::default() }).unwrap();
        let [x, y] = [&x, &y].map(|path| runtime.npy::<f64, 2>(path).unwrap());
        let both = x.zip(&y, |x, y| x + y).unwrap();
        // One function: another closure would be another type.
        let with_third = |both: f64, third: f64| 1000.0 * both + third;
        let lazy = match way {
            0 => both.zip(&x, with_third).unwrap(),
            1 => both.zip(&y, with_third).unwrap(),
            2 => x.iterate(3, by_one::more),
            _ => x.iterate(3, by_two::more),
        };
        let settings = Settings { resume, journal_interval: Some(Duration::ZERO), ..Settings::default() };
        runtime.compute_with(lazy.save(&out), settings)
    };
    for (way, other) in [(0, 1), (2, 3)] {
        let count = Arc::new(Count::new());
        run(Some(count.clone()), false, way).unwrap();
        let expected = std::fs::read(&out).unwrap();
        std::fs::remove_file(&out).unwrap();
        assert!(run(Some(Arc::new(DieAt { n: count.operations() * 2 / 3 })), false, way).is_err());
        let refused = run(None, true, other).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("versions"), "{refused}");
        assert!(run(None, true, way).unwrap().resumed, "{way}");
        assert!(std::fs::read(&out).unwrap() == expected, "{way}");
        std::fs::remove_file(&out).unwrap();
    }
}

/// A task that holds a value, which its version may tell.
struct Scale {
    by: f64,
    version: u64,
}

impl Task for Scale {
    type Params = (Read<f64, 2>, Write<f64, 2>);
    fn name(&self) -> &'static str {
        "scale"
    }
    fn version(&self) -> u64 {
        self.version
    }
    fn notation(&self) -> Option<Notation> {
        Some(Notation::axes(["i", "j"]).param("u", ["i", "j"]).param("next", ["i", "j"]).flops(1.0))
    }
    fn leaf(&self, (u, mut next): (View<'_, f64, 2>, ViewMut<'_, f64, 2>), _: &mut LeafContext<'_>) {
        for i in 0..next.len(0) {
            next.row_mut(&[i]).iter_mut().zip(u.row(&[i])).for_each(|(next, u)| *next = self.by * u);
        }
    }
}

/// As of a function, nobody knows of a task what it holds, unless it has a version.
#[test]
fn steps_of_a_task_that_holds_values_are_continued_only_if_its_version_tells() {
    use multigrain::rooms::store::faults::{Count, DieAt, Faults};
    use std::sync::Arc;
    use std::time::Duration;
    let directory = tempfile::tempdir().unwrap();
    let from = file(directory.path(), "x.npy", &[400, 1000], &vec![1.0f64; 400_000]);
    let out = directory.path().join("out.npy");
    let run = |faults: Option<Arc<dyn Faults>>, resume: bool, by: f64, version: u64| {
        let runtime = Runtime::new(Options { memory_bytes: Some(900 * KIB), faults, ..Options::default() }).unwrap();
        let lazy = runtime.npy::<f64, 2>(&from).unwrap().iterate(3, Scale { by, version });
        let settings = Settings { resume, journal_interval: Some(Duration::ZERO), ..Settings::default() };
        runtime.compute_with(lazy.save(&out), settings)
    };
    for version in [0, 1] {
        let count = Arc::new(Count::new());
        run(Some(count.clone()), false, 2.0, version).unwrap();
        std::fs::remove_file(&out).unwrap();
        assert!(run(Some(Arc::new(DieAt { n: count.operations() * 2 / 3 })), false, 2.0, version).is_err());
        let other = run(None, true, 3.0, version * 2).map(|_| ()).unwrap_err().to_string();
        assert!(other.contains(if version == 0 { "no version" } else { "versions" }), "{other}");
        if version == 0 {
            let settings = Settings { discard: true, ..Settings::default() };
            let runtime = runtime(900 * KIB);
            let again = runtime.npy::<f64, 2>(&from).unwrap().iterate(3, Scale { by: 3.0, version });
            runtime.compute_with(again.save(&out), settings).unwrap();
            std::fs::remove_file(&out).unwrap();
        } else {
            assert!(run(None, true, 2.0, version).unwrap().resumed);
        }
    }
}

/// Operators of one name, as those of two blocks are, are two programs.
#[test]
fn a_run_is_not_continued_with_another_operator_of_the_name() {
    use multigrain::rooms::store::faults::{Count, DieAt, Faults};
    use std::sync::Arc;
    use std::time::Duration;
    let directory = tempfile::tempdir().unwrap();
    let from = file(directory.path(), "x.npy", &[4000, 100], &vec![1.0f64; 400_000]);
    let out = directory.path().join("out.npy");
    let run = |faults: Option<Arc<dyn Faults>>, resume: bool, is_largest: bool| {
        let runtime = Runtime::new(Options { memory_bytes: Some(900 * KIB), faults, ..Options::default() }).unwrap();
        let x = runtime.npy::<f64, 2>(&from).unwrap();
        macro_rules! reduced {
            ($combine:expr) => {{
                struct Op;
                impl Operator<f64> for Op {
                    const NAME: &'static str = "op";
                    fn identity() -> f64 {
                        0.0
                    }
                    fn combine(left: f64, right: f64) -> f64 {
                        let combine: fn(f64, f64) -> f64 = $combine;
                        combine(left, right)
                    }
                }
                x.reduce_axis::<Op>(1)
            }};
        }
        let rows = if is_largest { reduced!(f64::max) } else { reduced!(|left, right| left + right) };
        let settings = Settings { resume, journal_interval: Some(Duration::ZERO), ..Settings::default() };
        runtime.compute_with(rows.save(&out), settings)
    };
    let count = Arc::new(Count::new());
    run(Some(count.clone()), false, false).unwrap();
    let expected = std::fs::read(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    assert!(run(Some(Arc::new(DieAt { n: count.operations() * 2 / 3 })), false, false).is_err());
    let refused = run(None, true, true).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("versions"), "{refused}");
    assert!(run(None, true, false).unwrap().resumed);
    assert!(std::fs::read(&out).unwrap() == expected);
}

#[test]
fn requests_that_make_no_sense_are_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime(1 << 20);
    let path = file(directory.path(), "a.npy", &[4, 5], &[1u16; 20]);
    let wrong = |result: Result<Lazy<f32, 2>, Error>| result.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(wrong(runtime.npy(&path)).contains("holds uint16, float32 is needed"));
    let a = runtime.npy::<u16, 2>(&path).unwrap();
    assert!(runtime.npy::<u16, 1>(&path).err().unwrap().to_string().contains("has 2 dimensions, 1 are needed"));
    let b = runtime.array([5, 4], &[0u16; 20]).unwrap();
    assert!(a.zip(&b, |a, b| a + b).err().unwrap().to_string().contains("4 x 5"));
    let out = directory.path().join("out.npy");
    let sums = a.sum_axis::<u64>(0);
    let twice = runtime.compute((sums.save(&out), sums.save(directory.path().join("b.npy"))));
    assert!(twice.err().unwrap().to_string().contains("saved twice"));
    assert!(runtime.compute(a.save(&path)).err().unwrap().to_string().contains("replace the input"));
    // Nor what is made on the way to a result, of this run or of another.
    for beside in ["d.npy.part", "d.npy.journal"] {
        let made = directory.path().join(beside);
        assert!(runtime.compute(a.save(&made)).err().unwrap().to_string().contains(beside) && !made.exists());
    }
    for beside in ["c.npy.part", "c.npy.twin.part", "c.npy.journal"] {
        let [made, result] = [beside, "c.npy"].map(|name| directory.path().join(name));
        let two = (a.save(&made), a.map(|a| a + 1).save(&result));
        assert!(runtime.compute(two).err().unwrap().to_string().contains(beside));
        assert!(!made.exists() && !result.exists());
    }
    // Steps are counted before they are listed.
    for steps in [10_000_000, u64::MAX] {
        let runtime = Runtime::with_memory("4MiB").unwrap();
        let stepped = runtime.generated::<f64, 2>([10, 10], 1).iterate(steps, by_one::more);
        let refused = runtime.values(&stepped).unwrap_err().to_string();
        assert!(refused.contains("its calls take") && refused.contains("give dram at least"), "{refused}");
    }
    assert_eq!(runtime.values(&sums).unwrap(), [4; 5]);
    assert!(Runtime::with_memory("4 apples").is_err());
}

/// Half precision, as its bits: a type of somebody else's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
struct Half(u16);

// SAFETY: all sixteen bits of a u16 belong to its value, and each pattern is one.
unsafe impl Element for Half {
    const NAME: &'static str = "float16";
    const DESCR: &'static str = "<f2";
}

#[test]
fn element_types_of_others_go_through_files() {
    let directory = tempfile::tempdir().unwrap();
    let halves: Vec<Half> = (0..100_000u32).map(|i| Half(i as u16)).collect();
    let path = file(directory.path(), "h.npy", &[100, 1000], &halves);
    let runtime = runtime(512 * KIB);
    let signs = runtime.npy::<Half, 2>(&path).unwrap().map(|half| Half(half.0 ^ 0x8000));
    let out = directory.path().join("out.npy");
    runtime.compute(signs.save(&out)).unwrap();
    let expected: Vec<Half> = halves.iter().map(|half| Half(half.0 ^ 0x8000)).collect();
    let content = std::fs::read(&out).unwrap();
    assert!(content.windows(5).take(60).any(|w| w == b"'<f2'"));
    assert!(content[4096..] == *Half::as_bytes(&expected));
    let error = runtime.npy::<f32, 2>(&path).err().unwrap().to_string();
    assert!(error.contains("'<f2'"), "{error}");
}

#[test]
fn arrays_of_six_dimensions_have_the_values_of_loops() {
    let directory = tempfile::tempdir().unwrap();
    let shape = [5u64, 4, 7, 3, 11, 13];
    let count = shape.iter().product::<u64>();
    let data: Vec<f32> = (0..count).map(|i| generate::f32_at(3, i)).collect();
    let path = file(directory.path(), "a.npy", &shape, &data);
    for (memory, machine) in [(400 * KIB, "disk"), (64 << 20, "local")] {
        let machine = multigrain::MachineChoice::Given(Box::new(Machine::named(machine).unwrap()));
        let options = Options { memory_bytes: Some(memory), machine, ..Options::default() };
        let runtime = Runtime::new(options).unwrap();
        let a = runtime.npy::<f32, 6>(&path).unwrap();
        let doubled = runtime.values(&a.map(|x| 2.0 * x)).unwrap();
        assert!(doubled.iter().zip(&data).all(|(y, x)| *y == 2.0 * x));
        for axis in 0..6 {
            let sums = runtime.values(&a.sum_axis::<f64>(axis)).unwrap();
            let inner: usize = shape[axis + 1..].iter().product::<u64>() as usize;
            let len = shape[axis] as usize;
            assert_eq!(sums.len() * len, data.len());
            for (p, sum) in sums.iter().enumerate() {
                let first = p / inner * inner * len + p % inner;
                let exact: f64 = (0..len).map(|k| f64::from(data[first + k * inner])).sum();
                assert!((sum - exact).abs() < 1e-12, "axis {axis}, {p}: {sum}, {exact}");
            }
        }
    }
}

#[task(axes(i), flops = 6.0)]
#[allow(clippy::too_many_arguments)]
fn seven(
    #[at(i)] a: Read<f32, 1>,
    #[at(i)] b: Read<f32, 1>,
    #[at(i)] c: Read<f32, 1>,
    #[at(i)] d: Read<f32, 1>,
    #[at(i)] e: Read<f32, 1>,
    #[at(i)] f: Read<f32, 1>,
    #[at(i)] out: Write<f32, 1>,
) {
    for (k, sum) in out.row_mut(&[]).iter_mut().enumerate() {
        *sum = a[[k]] + b[[k]] + c[[k]] + d[[k]] + e[[k]] + f[[k]];
    }
}

#[test]
fn a_task_has_as_many_parameters_as_it_names() {
    let n = 300_000;
    let mut program = Program::new();
    let task = program.task(seven);
    let inputs = ["a", "b", "c", "d", "e", "f"].map(|name| program.array::<f32, 1>(name, [n], Role::Input).unwrap());
    let out = program.array::<f32, 1>("out", [n], Role::Output).unwrap();
    let [a, b, c, d, e, f] = inputs.map(|input| input.all());
    program.call(task, (a, b, c, d, e, f, out.all()), Scalars::new()).unwrap();
    let job = inputs
        .iter()
        .zip(1..)
        .fold(Job::new("seven", program), |job, (input, seed)| job.with_source(*input, Source::Generated { seed }));
    let machine = multigrain::MachineChoice::Given(Box::new(Machine::named("disk").unwrap()));
    let options = Options { memory_bytes: Some(1 << 20), machine, ..Options::default() };
    let outcome = Runtime::new(options).unwrap().run(&job, Settings::default()).unwrap();
    assert!(outcome.plan.calls.len() > 1);
    for (k, sum) in outcome.values(out).unwrap().into_iter().enumerate() {
        let at = |seed| generate::f32_at(seed, k as u64);
        assert_eq!(sum, at(1) + at(2) + at(3) + at(4) + at(5) + at(6), "{k}");
    }
}

/// However long a chain is that a program makes, and however often an array stands in it.
#[test]
fn long_chains_are_stored_on_the_way() {
    let runtime = runtime(4 << 20);
    let values: Vec<f64> = (0..1000).map(f64::from).collect();
    let mut a = runtime.array([1000], &values).unwrap();
    let whole = a.clone();
    for _ in 0..20_000 {
        a = a.map(|x| x + 1.0);
    }
    assert_eq!(runtime.values(&a).unwrap(), values.iter().map(|x| x + 20_000.0).collect::<Vec<_>>());
    let (mut a, mut expected) = (whole, values);
    for _ in 0..40 {
        a = a.zip(&a, |x, y| (x + y) * 0.5 + 1.0).unwrap();
        expected.iter_mut().for_each(|x| *x += 1.0);
    }
    assert_eq!(runtime.values(&a).unwrap(), expected);
    // Chains that are never computed.
    let mut a = a.map(|x| x);
    for _ in 0..1_000_000 {
        a = a.map(|x| x + 1.0);
    }
    drop(a);
}
