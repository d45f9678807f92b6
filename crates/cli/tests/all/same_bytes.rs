//! Results do not depend on threads, memory or machine: identical bytes of every application for odd sizes.

use crate::support;

use support::{Place, Rng};

/// Runs a request in every way and compares its output.
fn same_everywhere(place: &Place, request: &str, budgets: &[&str], directory_is_empty_but: &[&str]) {
    let reference = place.run(&format!("run {request} -o reference.npy --threads 1 --check"));
    assert_eq!(reference.status, Some(0), "{}", reference.stderr);
    let expected = place.read("reference.npy");
    for machine in ["", "--machine disk", "--machine local", "--machine disk+local"] {
        for (i, budget) in budgets.iter().enumerate() {
            // Every number of threads on every machine, in turn with the budgets.
            for threads in [1 + i, 1 + (i + 2) % 4] {
                let how = format!("{machine} {budget} --threads {threads}");
                let ran = place.run(&format!("run {request} -o out.npy {how}"));
                // Arrays that start in memory need all of it at once.
                if machine == "--machine local" && ran.stderr.contains("does not fit") {
                    assert!(!budget.is_empty(), "{}", ran.stderr);
                    continue;
                }
                assert_eq!(ran.status, Some(0), "{request} {how}: {}", ran.stderr);
                assert!(place.read("out.npy") == expected, "{request} {how}: other bytes");
                place.remove("out.npy");
            }
        }
    }
    place.remove("reference.npy");
    assert_eq!(place.names(), directory_is_empty_but);
}

#[test]
fn sgemm() {
    let place = Place::new();
    let (m, n, k) = (201, 117, 531);
    place.write_f32("a.npy", &[m, k], &Rng(1).floats(m * k));
    place.write_f32("b.npy", &[k, n], &Rng(2).floats(k * n));
    same_everywhere(&place, "sgemm a.npy b.npy", &["--memory 400KiB", "--memory 1MiB", ""], &["a.npy", "b.npy"]);
}

#[test]
fn sgemm_with_a_mapping() {
    let place = Place::new();
    let request = "sgemm --m 150 --n 140 --k 700";
    place.run(&format!("run {request} -o reference.npy"));
    for (i, mapping) in ["m = 7\nn = 11\nk = 256\n", "m = 150\nn = 1\nk = 512\n", "k = 256\n"].iter().enumerate() {
        place.write("map.toml", format!("[sgemm.dram]\n{mapping}"));
        let ran = place.run(&format!("run {request} -o {i}.npy --machine disk+local --memory 2MiB --mapping map.toml"));
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        assert!(place.read(&format!("{i}.npy")) == place.read("reference.npy"), "{mapping}");
    }
}

#[test]
fn sgemv() {
    let place = Place::new();
    let (m, n) = (203, 1501);
    place.write_f32("a.npy", &[m, n], &Rng(3).floats(m * n));
    place.write_f32("x.npy", &[n], &Rng(4).floats(n));
    same_everywhere(&place, "sgemv a.npy x.npy", &["--memory 300KiB", "--memory 2MiB", ""], &["a.npy", "x.npy"]);
}

#[test]
fn saxpy() {
    let place = Place::new();
    let n = 60_013;
    place.write_f32("x.npy", &[n], &Rng(5).floats(n));
    place.write_f32("y.npy", &[n], &Rng(6).floats(n));
    let request = "saxpy x.npy y.npy --alpha -1.7";
    same_everywhere(&place, request, &["--memory 400KiB", "--memory 1MiB", ""], &["x.npy", "y.npy"]);
}

#[test]
fn saxpy_in_place() {
    same_everywhere(&Place::new(), "saxpy --n 50021 --seed 9", &["--memory 400KiB", "--memory 1MiB", ""], &[]);
}

#[test]
fn conv2d() {
    let place = Place::new();
    let (m, n) = (161, 243);
    place.write_f32("in.npy", &[m, n], &Rng(7).floats(m * n));
    let budgets = ["--memory 300KiB", "--memory 1MiB", ""];
    same_everywhere(&place, "conv2d in.npy --kernel gaussian:7", &budgets, &["in.npy"]);
}

#[test]
fn hmmer() {
    // Generated sequences; a budget of which they take more than an eighth puts them into a scratch file.
    for max in ["", " --max"] {
        same_everywhere(
            &Place::new(),
            &format!("hmmer --n 150 --m 12{max}"),
            &["--memory 500KiB", "--memory 3MiB", ""],
            &[],
        );
    }
}
