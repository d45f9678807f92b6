//! What the front doors print and how they end.

use crate::support;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::{Place, Rng, finished, keys};

const RUN_KEYS: [&str; 13] = [
    "app",
    "breakdown",
    "edges",
    "gflops",
    "io",
    "machine",
    "memory_budget_bytes",
    "peak_rss_bytes",
    "resumed",
    "seconds",
    "shape",
    "threads",
    "checked",
];
const EDGE_KEYS: [&str; 5] = ["bytes_down", "bytes_up", "lower_bound_bytes", "name", "transfers"];

#[test]
fn run_prints_exactly_the_promised_keys() {
    let place = Place::new();
    let json =
        place.run("run sgemm --n 96 --k 50 --machine disk+local --memory 2MiB --threads 2 --json --check").json();
    let mut expected = RUN_KEYS.to_vec();
    expected.sort_unstable();
    assert_eq!(keys(&json), expected);
    assert_eq!(json["app"], "sgemm");
    assert_eq!(json["shape"], serde_json::json!({"m": 96, "n": 96, "k": 50}));
    assert_eq!(json["machine"], "disk+local");
    assert_eq!(json["threads"], 2);
    assert_eq!(json["memory_budget_bytes"], 2 << 20);
    assert_eq!(json["resumed"], false);
    let edges = json["edges"].as_array().expect("an array");
    let names: Vec<&str> = edges.iter().filter_map(|e| e["name"].as_str()).collect();
    assert_eq!(names, ["disk - dram", "dram - local"], "from the root down");
    for edge in edges {
        assert_eq!(keys(edge), EDGE_KEYS);
        let (down, up) = (edge["bytes_down"].as_u64().unwrap(), edge["bytes_up"].as_u64().unwrap());
        let bound = edge["lower_bound_bytes"].as_u64().unwrap();
        // A and B once down, C once up, is compulsory on every edge.
        assert!(down >= 2 * 96 * 50 * 4 && up >= 96 * 96 * 4 && bound <= down + up && bound > 0, "{edge}");
        assert!(edge["transfers"].as_u64().unwrap() > 0);
    }
    let breakdown = &json["breakdown"];
    assert_eq!(keys(breakdown), ["leaf_seconds", "overhead_seconds", "wait_seconds"]);
    assert_eq!(keys(&breakdown["wait_seconds"]), ["disk - dram", "dram - local"]);
    assert!(breakdown["leaf_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(keys(&json["checked"]), ["covered", "elements", "max_relative_error", "tolerance"]);
    assert_eq!(json["checked"]["elements"], 96 * 96);
    assert!(json["checked"]["max_relative_error"].as_f64() <= json["checked"]["tolerance"].as_f64());
    let (seconds, gflops) = (json["seconds"].as_f64().unwrap(), json["gflops"].as_f64().unwrap());
    assert!((gflops * seconds * 1e9 / (2.0 * 96.0 * 96.0 * 50.0) - 1.0).abs() < 1e-6);
    assert!(json["peak_rss_bytes"].as_u64().unwrap() > 1 << 20);

    let without_check = place.run("run sgemm --n 96 --json").json();
    assert_eq!(keys(&without_check), keys(&json).into_iter().filter(|k| *k != "checked").collect::<Vec<_>>());
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn plan_has_the_edges_of_run_and_starts_nothing() {
    let place = Place::new();
    for machine in ["disk", "local", "disk+local"] {
        let request = format!("sgemm --n 200 --machine {machine} --memory 1MiB -o c.npy --json");
        let planned = place.run(&format!("plan {request} --verify")).json();
        assert!(place.names().is_empty(), "{:?}", place.names());
        let run = place.run(&format!("run {request}")).json();
        assert_eq!(planned["edges"], run["edges"]);
        for key in ["app", "shape", "machine", "threads", "memory_budget_bytes"] {
            assert_eq!(planned[key], run[key], "{key}");
        }
        assert!(planned["predicted_seconds"].as_f64().unwrap() > 0.0);
        assert_eq!(planned["flops"].as_f64(), Some(2.0 * 200.0f64.powi(3)));
        let levels = run["edges"].as_array().unwrap().len();
        assert_eq!(planned["memories"].as_array().unwrap().len(), levels);
        for memory in planned["memories"].as_array().unwrap() {
            let bytes = |key: &str| memory[key].as_u64().unwrap();
            let used = bytes("blocks_bytes") + bytes("scratch_bytes") + bytes("fixed_bytes");
            assert!(used <= bytes("capacity_bytes"), "{memory}");
        }
        assert_eq!(planned["verified"].as_array().unwrap().len(), levels);
        place.remove("c.npy");
    }
}

#[test]
fn a_plan_is_shown_also_where_the_disk_has_no_room_for_a_run() {
    let place = Place::new();
    // 4 TB: no disk that tests run on has them free.
    let request = "sgemv --n 1000000 --memory 1GiB --machine disk";
    let planned = place.run(&format!("plan {request} --json")).json();
    assert!(planned["refused"].as_str().unwrap().contains("its new files take 3.64 TiB"), "{planned}");
    assert!(planned["edges"][0]["bytes_down"].as_u64().unwrap() >= 4_000_000_000_000);
    let text = place.run(&format!("plan {request}")).stdout;
    assert!(text.contains("a run    would be refused: sgemv does not fit"), "{text}");
    let refused = place.run(&format!("run {request}"));
    assert_eq!(refused.status, Some(2));
    assert!(refused.stderr.contains("its new files take 3.64 TiB"));
    assert!(place.names().is_empty());
}

/// With the bytes that a simulation hands on at every step grows what leaving its steps whole saves: on one rank of two.
#[test]
fn ranks_share_a_program_of_any_number_of_steps() {
    let seconds = |steps: u64| {
        let how = format!("gravity --n 16384 --steps {steps} --ranks 2 --threads 1 --memory 256MiB --json");
        Place::new().run(&format!("plan {how}")).json()["predicted_seconds"].as_f64().unwrap()
    };
    let each = seconds(50) / 50.0;
    for steps in [100, 400] {
        let (found, expected) = (seconds(steps), each * steps as f64);
        assert!(found < 1.2 * expected, "{steps} steps take {found} s, {expected} as each of fifty");
    }
}

/// What surrounds a picture is a list of parts, its inside is not: the plan does not grow with it.
#[test]
fn inside_of_a_border_takes_no_more_memory_than_without() {
    for border in ["zero", "nearest", "reflect", "wrap"] {
        let ran = Place::new().run(&format!("plan conv2d --n 100000 --border {border} --memory 4MiB --machine disk"));
        assert_eq!(ran.status, Some(0), "{border}: {}", ran.stderr);
    }
}

/// With less room for blocks a plan has more calls, and takes more itself.
#[test]
fn a_plan_that_takes_much_of_the_memory_itself_is_found() {
    let planned = Place::new().run("plan sgemm --n 60000 --memory 128MiB --machine disk --json").json();
    assert_eq!(planned["memory_budget_bytes"], 128 << 20);
    assert!(planned["edges"][0]["transfers"].as_u64().unwrap() > 1000);
}

#[test]
fn every_application_runs_and_checks_its_result() {
    let place = Place::new();
    for (app, sizes) in [
        ("saxpy", "--n 100003"),
        ("sgemv", "--m 301 --n 203"),
        ("sgemm", "--m 61 --n 73 --k 300"),
        ("conv2d", "--m 67 --n 129 --kernel gaussian:5"),
    ] {
        for machine in ["", "--machine disk --memory 1MiB", "--machine local"] {
            let json = place.run(&format!("run {app} {sizes} {machine} --json --check")).json();
            assert_eq!(json["app"], app);
            assert!(json["checked"]["elements"].as_u64().unwrap() > 0, "{app}");
            assert!(json["gflops"].as_f64().unwrap() > 0.0);
        }
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn text_says_what_ran_where_and_where_the_time_went() {
    let place = Place::new();
    let ran = place.run("run sgemm --n 128 --machine disk --memory 1MiB --check --resume -o c.npy");
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    for words in [
        "m = 128, n = 128, k = 128",
        "disk > dram > core",
        "GFLOP/s",
        "the budget is 1 MiB",
        "right: largest error",
        "nothing was there to be continued",
        "leaf work",
        "overhead",
        "disk - dram",
        "moved / bound",
    ] {
        assert!(ran.stdout.contains(words), "{words:?} is missing in\n{}", ran.stdout);
    }
    let plan = place.run("plan sgemm --n 128 --machine disk --memory 1MiB --verify").stdout;
    for words in ["dependence", "placement", "order", "residency", "slots", "predicted", "fits: dram", "verified"] {
        assert!(plan.contains(words), "{words:?} is missing in\n{plan}");
    }
}

#[test]
fn a_machine_can_be_shown_written_and_named() {
    let place = Place::new();
    let ran = place.run("machine --assumed -o here.toml");
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.contains("dram") && ran.stdout.contains("GB/s"), "{}", ran.stdout);
    assert_eq!(place.names(), ["here.toml"]);
    let json = place.run("machine --machine here.toml --assumed --json").json();
    let names: Vec<&str> = json["memories"].as_array().unwrap().iter().filter_map(|m| m["name"].as_str()).collect();
    assert_eq!(names[..2], ["disk", "dram"]);
    assert_eq!(json["memories"][1]["parent"], "disk");
    assert!(json["memories"][1]["edge"]["read_bytes_per_second"].as_f64().unwrap() > 0.0);
    let run = place.run("run sgemm --n 64 --machine here.toml --json").json();
    assert_eq!(run["edges"].as_array().unwrap().len(), names.len() - 1);
    // A machine that is only described keeps the constants of its description.
    let ps3 = place.run("machine --machine ps3 --json").json();
    assert_eq!(ps3["memories"][1]["edge"]["latency_ns"], 90.6);
    // An older file stays whole when the new one cannot be written under its name.
    let refused = place.run("machine --assumed -o nowhere/here.toml");
    assert_eq!(refused.status, Some(2));
    assert_eq!(place.names(), ["here.toml"]);
}

#[test]
fn stores_that_reach_each_other_share_what_all_of_them_read() {
    let place = Place::new();
    let machine = |sibling: &str| {
        format!(
            "name = \"stores\"\n[[memory]]\nname = \"dram\"\ncapacity = \"1 GiB\"\n\
             [[memory]]\nname = \"store\"\nparent = \"dram\"\ncount = 4\ncapacity = \"256 KiB\"\n\
             [memory.edge]\ndriver = \"local\"\nread = \"1 GB/s\"\nlatency = \"10 ns\"\n{sibling}\
             [memory.processor]\nkind = \"cpu\"\nrate = \"16 GFLOP/s\"\n"
        )
    };
    place.write("alone.toml", machine("").as_bytes());
    place.write("stores.toml", machine("sibling = \"500 GB/s\"\n").as_bytes());
    let shown = place.run("machine --machine stores.toml").stdout;
    assert!(shown.contains("siblings 500 GB/s from one to another"), "{shown}");
    for request in ["sgemm --n 512", "gravity --n 2048 --steps 2"] {
        let plan = place.run(&format!("plan {request} --machine stores.toml --verify")).stdout;
        for words in ["broadcasts ", " from one of 4 children to all, ", " between siblings", "verified"] {
            assert!(plan.contains(words), "{words:?} is missing in\n{plan}");
        }
        assert!(!place.run(&format!("plan {request} --machine alone.toml")).stdout.contains("sibling"));
        let moved = |how: &str, name: &str| {
            let edge = place.run(&format!("{how} {request} --machine {name} --json")).json()["edges"][0].clone();
            (edge["bytes_down"].as_u64().unwrap(), edge["bytes_across"].as_u64())
        };
        for how in ["plan", "sim", "run"] {
            let (alone, shared) = (moved(how, "alone.toml"), moved(how, "stores.toml"));
            assert!(shared.0 < alone.0, "{how} {request}: {shared:?} {alone:?}");
            assert!(
                alone.1.is_none() && shared.1.is_some_and(|bytes| bytes > 0),
                "{how} {request}: {shared:?} {alone:?}"
            );
        }
        // Blocks differ where children reach each other, so what is simulated may be a little longer for fewer bytes.
        let seconds = |how: &str, name: &str| {
            place.run(&format!("{how} {request} --machine {name} --json")).json()["seconds"].as_f64().unwrap()
        };
        assert!(seconds("sim", "stores.toml") < 1.01 * seconds("sim", "alone.toml"), "{request}");
    }
    // The results are the same bytes.
    for name in ["alone", "stores"] {
        let ran = place.run(&format!("run sgemm --n 300 --machine {name}.toml --check -o {name}.npy"));
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    }
    assert!(place.read("alone.npy") == place.read("stores.npy"));
}

#[test]
fn a_trace_says_what_the_run_said() {
    let place = Place::new();
    for (run, transfers) in [
        ("run sgemm --n 300 --machine disk --memory 1MiB --threads 2", true),
        ("run sgemv --m 300 --n 400 --machine disk+local --threads 2", true),
        ("run conv2d --m 100 --n 90 --kernel gaussian:5 --threads 2", false),
    ] {
        let told = place.run(&format!("{run} --json --trace run.trace")).json();
        let found = place.run("trace run.trace --json").json();
        assert_eq!(found["threads"], 2);
        assert_eq!(found["dropped"], 0);
        let near = |a: &serde_json::Value, b: &serde_json::Value| {
            let (a, b) = (a.as_f64().expect("a number"), b.as_f64().expect("a number"));
            assert!((a - b).abs() <= 1e-6 + 1e-3 * a.abs().max(b.abs()), "{a} {b}");
        };
        near(&told["seconds"], &found["seconds"]);
        near(&told["breakdown"]["leaf_seconds"], &found["breakdown"]["leaf_seconds"]);
        let waits = told["breakdown"]["wait_seconds"].as_object().unwrap();
        assert_eq!(waits.len(), found["breakdown"]["wait_seconds"].as_object().unwrap().len());
        for (edge, waited) in waits {
            near(waited, &found["breakdown"]["wait_seconds"][edge]);
        }
        near(&told["breakdown"]["overhead_seconds"], &found["breakdown"]["overhead_seconds"]);
        // The parts of each worker are the whole of its time, and the workers together are the breakdown.
        let seconds = found["seconds"].as_f64().unwrap();
        let sum = |key: &str| -> f64 {
            found["workers"].as_array().unwrap().iter().map(|w| w[key].as_f64().unwrap()).sum::<f64>()
        };
        near(&sum("leaf_seconds").into(), &found["breakdown"]["leaf_seconds"]);
        near(&sum("overhead_seconds").into(), &found["breakdown"]["overhead_seconds"]);
        near(&found["critical_path"]["seconds"], &seconds.into());
        // The bytes are those of the plan.
        for (i, edge) in told["edges"].as_array().unwrap().iter().enumerate() {
            assert_eq!(edge["bytes_down"], found["edges"][i]["bytes_down"], "{run}");
            assert_eq!(edge["bytes_up"], found["edges"][i]["bytes_up"], "{run}");
            assert_eq!(edge["transfers"], found["edges"][i]["transfers"], "{run}");
        }
        let stalls = found["stalls"].as_array().unwrap();
        assert!(stalls.len() <= 10 && stalls.iter().all(|s| !s["avoided_by"].as_str().unwrap().is_empty()));
        let blocks = stalls.iter().filter(|s| s["transfer"]["block"].is_string()).count();
        assert_eq!(blocks > 0, transfers, "{found}");
        let text = place.run("trace run.trace");
        assert_eq!((text.status, text.stderr.as_str()), (Some(0), ""));
        for words in ["where the time went", "by worker", "critical path", "longest stalls", "leaf work"] {
            assert!(text.stdout.contains(words), "{words:?} is missing in\n{}", text.stdout);
        }
    }
    assert_eq!(place.names(), ["run.trace"]);
}

#[test]
fn work_on_the_results_is_told_apart_from_the_run() {
    let place = Place::new();
    let json = place.run("run hmmer --n 50 --m 20 --threads 2 --json -o table").json();
    assert_eq!(keys(&json["after"]), ["peak_rss_bytes", "seconds"]);
    assert!(json["after"]["seconds"].as_f64().unwrap() > 0.0);
    assert!(json["after"]["peak_rss_bytes"].as_u64() >= json["peak_rss_bytes"].as_u64());
    let text = place.run("run hmmer --n 150 --m 60 -o table").stdout;
    assert!(
        text.contains("\nafter    ")
            && text.contains("\nfound    1 in 150 sequences, 1 of them significant; the best is made100"),
        "{text}"
    );
    assert!(!place.run("run hmmer --n 50 --m 20").stdout.contains("\nafter "), "nothing was asked for");
}

#[test]
fn a_trace_goes_to_other_programs() {
    let place = Place::new();
    place.run("run sgemm --n 200 --machine disk --memory 1MiB --threads 2 --trace run.trace");
    assert_eq!(place.run("trace run.trace --to perfetto").stdout, "run.perfetto.json\n");
    assert_eq!(place.run("trace run.trace --to html -o page.html").stdout, "page.html\n");
    let before = place.read("run.trace");
    let refused = place.run("trace run.trace --to html -o ./run.trace");
    assert!(refused.status == Some(2) && refused.stderr.contains("would replace"), "{}", refused.stderr);
    assert!(place.read("run.trace") == before);
    let json = place.run("trace run.trace --to paraver --json").json();
    assert_eq!(json["files"], serde_json::json!(["run.prv", "run.pcf", "run.row"]));
    let names = ["page.html", "run.pcf", "run.perfetto.json", "run.prv", "run.row", "run.trace"];
    assert_eq!(place.names(), names);
    place.write("cut.trace", &place.read("run.trace")[..500]);
    place.write("other.trace", "not a trace");
    for (arguments, words) in [
        ("trace cut.trace", "cut off"),
        ("trace other.trace", "not a trace file"),
        ("trace none.trace", "none.trace"),
        ("trace run.trace -o x.html", "--to"),
        ("trace run.trace --to html -o no/such.html", "no directory"),
        ("run sgemm --n 8 --trace no/such.trace", "no directory"),
    ] {
        let ran = place.run(arguments);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{arguments}");
        assert!(ran.stderr.contains(words), "{arguments}: {}", ran.stderr);
    }
    assert_eq!(place.names().len(), names.len() + 2, "nothing half written");
}

#[test]
fn help_and_version_are_no_errors_and_usage_is() {
    let place = Place::new();
    for arguments in ["--help", "--version", "run --help", "run sgemm --help", "plan --help", "machine --help"] {
        let ran = place.run(arguments);
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{arguments}");
        assert!(!ran.stdout.is_empty());
    }
    for arguments in ["", "run", "run nothing", "run sgemm --no-such", "run sgemm a.npy", "plan sgemm --io tape"] {
        let ran = place.run(arguments);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{arguments}");
        assert!(!ran.stderr.is_empty());
    }
}

#[test]
fn a_reader_that_has_gone_is_no_fault_and_a_full_one_is() {
    let place = Place::new();
    let mut child = place.command("run sgemm --n 64").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = support::ended(child);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let output = place.command("run sgemm --n 64").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to standard output"));
}

#[test]
fn nothing_but_the_report_goes_to_a_pipe() {
    let place = Place::new();
    let ran = place.run("run sgemm --n 300 --machine disk --memory 1MiB");
    assert_eq!(ran.stderr, "", "no progress bar");
    assert!(!ran.stdout.contains('\u{1b}'), "no escapes");
}

#[test]
fn not_a_number_and_infinity_pass_as_arithmetic_gives_them() {
    let (m, k, n) = (5, 7, 6);
    let mut rng = Rng(11);
    let (mut a, b) = (rng.floats(m * k), rng.floats(k * n));
    a[k + 3] = f32::NAN;
    a[2 * k + 1] = f32::INFINITY;
    for machine in ["", "--machine disk", "--machine local"] {
        let place = Place::new();
        place.write_f32("a.npy", &[m, k], &a);
        place.write_f32("b.npy", &[k, n], &b);
        let ran = place.run(&format!("run sgemm a.npy b.npy -o c.npy --check {machine}"));
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let c = place.read_f32("c.npy");
        for (i, row) in c.chunks_exact(n).enumerate() {
            for (j, found) in row.iter().enumerate() {
                match i {
                    1 => assert!(found.is_nan()),
                    2 => assert_eq!(*found, f32::INFINITY * b[n + j].signum()),
                    _ => {
                        let exact: f64 = (0..k).map(|x| f64::from(a[i * k + x]) * f64::from(b[x * n + j])).sum();
                        assert!((f64::from(*found) - exact).abs() < 1e-5);
                    }
                }
            }
        }
    }
}

#[test]
fn files_of_bare_elements_and_all_ways_to_reach_them() {
    let place = Place::new();
    let mut rng = Rng(5);
    let (m, k, n) = (33, 300, 21);
    let (a, b) = (rng.floats(m * k), rng.floats(k * n));
    let bytes = |v: &[f32]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    place.write("a.f32", bytes(&a));
    place.write("b.f32", bytes(&b));
    place.write_f32("a.npy", &[m, k], &a);
    place.write_f32("b.npy", &[k, n], &b);
    let reference = place.run("run sgemm a.npy b.npy -o c.npy --json --io pool").json();
    assert!(reference["io"].as_str().unwrap().contains("threads with positional reads"), "{reference}");
    let raw = place.run("run sgemm a.f32 b.f32 --m 33 --n 21 --k 300 -o c.f32 --json").json();
    assert!(raw["io"].is_string());
    assert_eq!(place.read("c.f32"), bytes(&place.read_f32("c.npy")));
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_leaves_nothing() {
    let place = Place::new();
    let mut command = Command::new("sh");
    // In blocks of 512 bytes: far below the 256 KiB of the result.
    command.args(["-c", "ulimit -f 64; exec \"$0\" run sgemm --n 256 -o c.npy", env!("CARGO_BIN_EXE_multigrain")]);
    command.current_dir(place.path("")).stdin(Stdio::null());
    let ran = finished(command);
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("ulimit -f"), "{}", ran.stderr);
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn json_of_an_error_is_no_json() {
    let ran = Place::new().run("run sgemm no.npy no.npy --json");
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""));
    assert!(serde_json::from_str::<Value>(&ran.stderr).is_err() && ran.stderr.starts_with("multigrain: "));
}

/// Odd but legal input of hmmer: the standard input, sequences without residues, symbols of alignments.
#[test]
fn profiles_and_sequences_come_in_many_ways() {
    let place = Place::new();
    let profile = multigrain_hmmer::generate::profile(1, 60);
    let sequences = multigrain_hmmer::generate::sequences(1, 150, 60);
    place.write("p.hmm", &profile);
    place.write("db.fa", format!("{sequences}>last\n.~_\n"));
    place.write("empty.fa", format!(">none\n{sequences}>last\n"));
    let rows = |name: &str| {
        let text = String::from_utf8(place.read(name)).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(
        place
            .run("run hmmer p.hmm db.fa -o expected -Z 152 --domtblout domains")
            .stdout
            .contains("\nfound    1 in 151")
    );
    assert_eq!((rows("expected").len(), rows("domains").len()), (1, 1));
    assert!(place.run("run hmmer p.hmm empty.fa -o table").stdout.contains("\nfound    1 in 152"), "empty ones count");
    assert_eq!(rows("table"), rows("expected"));
    // Files of that name, long enough for several readers, mean nothing.
    place.write("-", format!(">other\n{}\n", "M".repeat(300)).repeat(2000));
    for request in ["run hmmer - db.fa -o table -Z 152", "run hmmer p.hmm - -o table -Z 152"] {
        place.remove("table");
        let mut command = place.command(request);
        let input = if request.contains("- db.fa") { "p.hmm" } else { "db.fa" };
        command.stdin(std::fs::File::open(place.path(input)).unwrap());
        let ran = finished(command);
        assert_eq!(ran.status, Some(0), "{request}: {}", ran.stderr);
        assert_eq!(rows("table"), rows("expected"), "{request}");
    }
    let both = place.run("run hmmer - - -o table");
    assert!(both.status == Some(2) && both.stderr.contains("standard input"), "{}", both.stderr);
}
