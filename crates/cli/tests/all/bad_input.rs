//! Requests that are wrong: one message that names the thing and the way out, status 2, nothing left behind.

use crate::support;

use support::{Place, Rng, npy};

/// Runs a wrong request and looks at everything that it may and may not do.
#[track_caller]
fn refused(place: &Place, arguments: &str, words: &[&str]) {
    let before = place.names();
    let ran = place.run(arguments);
    assert_eq!(ran.status, Some(2), "{arguments}: {}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout, "", "{arguments}");
    assert!(ran.stderr.starts_with("multigrain: "), "{}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "{word:?} is missing in: {}", ran.stderr);
    }
    assert_eq!(place.names(), before, "{arguments}");
}

/// A directory with a.npy, 20 x 30, and b.npy, 30 x 10.
fn place() -> Place {
    let place = Place::new();
    place.write_f32("a.npy", &[20, 30], &Rng(1).floats(600));
    place.write_f32("b.npy", &[30, 10], &Rng(2).floats(300));
    place
}

const WHERE: [&str; 3] = ["", "--machine disk", "--machine local"];

#[test]
fn files_that_cannot_be_used() {
    let place = place();
    let whole = place.read("a.npy");
    place.write("short.npy", &whole[..whole.len() - 4]);
    place.write("long.npy", [whole.clone(), vec![0; 4]].concat());
    place.write("cut.npy", &whole[..40]);
    place.write("lies.npy", npy("<f4", false, &[2000, 30], &whole[128..]));
    place.write("huge.npy", npy("<f4", false, &[1 << 40, 1 << 40], &[]));
    place.write("noise.npy", [7u8; 5000]);
    place.write("empty.npy", []);
    place.write("double.npy", npy("<f8", false, &[20, 30], &[0; 4800]));
    place.write("big-endian.npy", npy(">f4", false, &[20, 30], &[0; 2400]));
    place.write("columns.npy", npy("<f4", true, &[20, 30], &[0; 2400]));
    place.write("vector.npy", npy("<f4", false, &[600], &[0; 2400]));
    place.write("none.npy", npy("<f4", false, &[20, 0], &[]));
    place.write("bare.f32", [0; 2400]);
    for here in WHERE {
        let run = |a: &str, words: &[&str]| {
            refused(&place, &format!("run sgemm {a} b.npy -o c.npy {here}"), &[&[a], words].concat());
        };
        run("missing.npy", &["No such file", "check the path"]);
        run("short.npy", &["truncated", "2528", "2524"]);
        run("long.npy", &["4 bytes after its data"]);
        run("cut.npy", &["cut off"]);
        run("lies.npy", &["truncated"]);
        run("huge.npy", &["the header lies"]);
        run("noise.npy", &["no .npy file"]);
        run("empty.npy", &[]);
        run("double.npy", &["float64", "float32", "astype"]);
        run("big-endian.npy", &["big-endian"]);
        run("columns.npy", &["Fortran", "open_memmap"]);
        run("vector.npy", &["1 dimension", "2"]);
        run("none.npy", &["length zero"]);
        run("bare.f32", &["give its sizes"]);
        run("missing.f32", &["No such file", "check the path"]);
        run(".", &["a directory", "give the path"]);
        run("/dev/stdin", &["a device or a pipe", "give the path"]);
    }
    let place = Place::new();
    std::fs::create_dir(place.path("folder.npy")).unwrap();
    for request in [
        "run conv2d folder.npy",
        "run conv2d --kernel folder.npy",
        "run gravity folder.npy",
        "run gravity ./",
        "run hmmer ./ ./",
        "run saxpy --n 3 --mapping ./",
        "trace ./",
        "sim saxpy --n 3 --compare ./",
    ] {
        refused(&place, request, &["a directory"]);
    }
    let place = self::place();
    place.write("short.npy", &whole[..whole.len() - 4]);
    place.write("bare.f32", [0; 2400]);
    refused(&place, "run sgemm bare.f32 b.npy --m 20 --n 10 --k 31", &["bare.f32", "2480"]);
    refused(&place, "plan sgemm short.npy b.npy", &["short.npy", "truncated"]);
}

#[test]
fn what_does_not_fit_is_told_in_words_of_the_request() {
    let place = Place::new();
    refused(&place, "plan gravity --n 1000 --memory 100KiB", &["gravity's task load does not fit"]);
    refused(&place, "plan fft3d --memory 256KiB --machine disk", &["fft3d's task rows does not fit"]);
    // --memory is not that of the small memory, and no advice is given twice.
    for memory in ["400KiB", "3MiB"] {
        let request = format!("plan hmmer --n 10 --m 3000 --machine ps3 --memory {memory}");
        refused(
            &place,
            &request,
            &["hmmer's task filter does not fit", "give spe at least", "--memory is how much dram"],
        );
        let said = place.run(&request).stderr;
        assert!(!said.contains("even then") && said.matches("give spe").count() == 1, "{said}");
    }
    // Its blocks fit, but the list of its calls does not fit the memory that the machine's file gives.
    refused(
        &place,
        "plan gravity --n 1000003 --machine ps3",
        &["gravity's task forces is split into", "calls for memory spe", "give dram at least"],
    );
    // The lists of all its plans together do not, which is noticed while they are made.
    refused(
        &place,
        "plan sgemm --n 999983 --memory 1MiB --threads 57 --machine disk+local",
        &["the plan of sgemm has about", "calls in all, and there is room for", "give dram at least"],
    );
    // Rows of which no blocks are aligned: in one word, whether it is to be run, simulated or proved.
    let odd = "sgemm --n 1001 --machine ps3";
    for request in [format!("run {odd}"), format!("sim {odd}"), format!("plan {odd} --verify")] {
        refused(&place, &request, &["transfers have to be aligned", "choose lengths that are multiples"]);
    }
    let planned = place.run(&format!("plan {odd}"));
    assert!(planned.stdout.contains("would be refused: sgemm cannot run on machine ps3"), "{}", planned.stdout);
    let request = "plan hmmer --n 10 --m 3000 --machine disk+ps3 --memory 100KiB";
    refused(&place, request, &["give dram at least", "and even then hmmer's task filter", "give spe at least"]);
}

/// The memory that a machine's file gives is shared out as one that is given by the option.
#[test]
fn a_small_memory_of_a_machine_file_is_a_budget() {
    let place = Place::new();
    let small = "name = 'small'\nbase = 'disk'\n[[memory]]\nname = 'dram'\ncapacity = '4 MiB'\n";
    place.write("small.toml", small);
    let ran = place.run("run sgemm --n 600 --machine small.toml --check");
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
}

#[test]
fn a_number_of_another_kind_is_told_which_is_needed() {
    let place = Place::new();
    refused(&place, "run saxpy --n 1e6", &["'1e6'", "--n", "a whole number is needed", "such as 1000000"]);
    refused(&place, "run saxpy --n 3 --threads 1.5", &["--threads", "a whole number is needed"]);
    refused(&place, "run saxpy --n 1_000", &["such as 1000 "]);
    refused(&place, "run saxpy --n=", &["a whole number is needed"]);
    refused(&place, "run saxpy --n 99999999999999999999", &["too large"]);
    refused(&place, "run saxpy --n 3 --alpha 1e40", &["--alpha is inf", "finite"]);
    refused(&place, "run saxpy --n 3 --alpha x", &["'x'", "a number is needed, such as 0.5"]);
    refused(&place, "plan saxpy --n 3 --ranks 1e2", &["a whole number is needed", "such as 100 "]);
}

#[test]
fn shapes_that_do_not_go_together() {
    let place = place();
    for here in WHERE {
        refused(&place, &format!("run sgemm a.npy a.npy -o c.npy {here}"), &["20 x 30", "columns of A", "rows of B"]);
        refused(&place, &format!("run sgemm --n 0 {here}"), &["length zero"]);
        refused(&place, &format!("run sgemm --n 64 --k 0 -o c.npy {here}"), &["length zero"]);
        refused(&place, &format!("run saxpy a.npy a.npy {here}"), &["a.npy", "dimension"]);
    }
    refused(&place, "run sgemm --n 99999999999", &["split it"]);
}

#[test]
fn advice_is_enough() {
    let place = place();
    // What blocks do not count (scratch memory of many workers, tables) is part of it.
    for request in [
        "sgemm --n 300 --threads 512",
        "fft3d --shape 2,30011,3 --machine disk",
        "sgemm --n 900 --machine disk",
        "conv2d --n 1000000 --machine disk",
        "gravity --n 1000000 --machine disk",
        "hmmer --n 50000 --m 9 --machine disk",
        "fft3d --shape 1,1,65537 --machine disk",
        "gravity --n 513 --steps 20000 --machine disk",
        "conv2d --n 500 --machine cpu+device",
        "saxpy --n 300000 --machine local",
    ] {
        let ran = place.run(&format!("plan {request} --memory 256KiB"));
        assert_eq!(ran.status, Some(2), "{request}: {}", ran.stderr);
        let mut advice = ran.stderr;
        let is_sure = |advice: &str| !advice.contains("perhaps more");
        // What is said has been tried; if there was no time for that, it is enough for what had been seen by then (blocks, then calls,
        // then what the plan itself takes), and that there may be more is said.
        let followed = (0..3).any(|_| {
            let enough = advice.rsplit_once("at least ").map_or("", |(_, rest)| rest);
            let enough: String =
                enough.trim().chars().take_while(|c| !",;\n".contains(*c)).filter(|c| *c != ' ').collect();
            let ran = place.run(&format!("plan {request} --memory {enough}"));
            assert!(ran.status == Some(0) || !is_sure(&advice), "{request}: {advice}, but then: {}", ran.stderr);
            advice = ran.stderr;
            ran.status == Some(0)
        });
        assert!(followed, "{request}: {advice}");
    }
}

#[test]
fn options_without_use_and_results_without_a_file() {
    let place = place();
    refused(&place, "run sgemm a.npy b.npy --seed 3", &["--seed", "cannot be used with"]);
    refused(&place, "run hmmer --n 5 --m 5 --domE 1", &["--output"]);
    refused(&place, "run sgemm --n 64 -o -", &["standard output", "name a file"]);
    refused(&place, "run hmmer --n 5 --m 5 -o -", &["standard output", "name a file"]);
    std::os::unix::fs::symlink("one", place.path("other")).unwrap();
    std::os::unix::fs::symlink("other", place.path("one")).unwrap();
    refused(&place, "run sgemm --n 64 -o one", &["one", "circle", "name a file"]);
    assert!(place.path("one").is_symlink() && place.path("other").is_symlink());
}

#[test]
fn work_that_does_not_fit() {
    let place = place();
    let disk = "run sgemm --n 64 --machine disk --memory 256KiB -o c.npy";
    refused(&place, disk, &["sgemm does not fit", "memory dram", "256 KiB", "needs", "give dram at least"]);
    // However little there is, what is named is enough.
    for disk in ["run sgemm --n 64 --machine disk -o c.npy --memory ", "run gravity --n 64 --machine disk --memory "] {
        for memory in ["1B", "1KiB", "4KiB", "255KiB", "256KiB"] {
            let said = place.run(&format!("{disk}{memory}"));
            assert_eq!(said.status, Some(2), "{disk}{memory}: {}", said.stderr);
            let (_, enough) =
                said.stderr.split_once("give dram at least ").unwrap_or_else(|| panic!("{}", said.stderr));
            let enough = enough.split(';').next().unwrap_or_default().replace(' ', "");
            assert_eq!(place.run(&format!("{disk}{enough}")).status, Some(0), "{memory}: {}", said.stderr);
        }
    }
    // No more than there is, which is for those who run: a plan may be for another computer.
    refused(&place, "run sgemm --n 64 --memory 900TiB", &["900 TiB", "this computer", "GiB"]);
    assert_eq!(place.run("plan sgemm --n 64 --memory 900TiB").status, Some(0));
    refused(
        &place,
        "run sgemm --n 512 --machine local --memory 1MiB",
        &["does not fit", "3 MiB", "dram", "1 MiB", "a disk above"],
    );
    // More than any disk of this computer holds, refused before anything is planned or made.
    refused(&place, "run sgemm --n 4000000 -o c.npy", &["does not fit", "disk"]);
    refused(&place, "run sgemm --n 4000000 --machine disk", &["does not fit", "disk"]);
    // All arrays together have more bytes than there are numbers of 64 bits.
    refused(&place, "run sgemm --m 1239830844 --n 1239877689 --k 1239842254", &["does not fit", "disk"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let place = place();
    std::fs::create_dir(place.path("folder.npy")).unwrap();
    for here in WHERE {
        let run = |output: &str, words: &[&str]| {
            refused(&place, &format!("run sgemm a.npy b.npy -o {output} {here}"), words);
        };
        run("nowhere/c.npy", &["nowhere/c.npy", "there is no directory nowhere"]);
        run("a.npy/c.npy", &["a.npy/c.npy", "not a directory"]);
        run("/proc/c.npy", &["/proc"]);
        run("folder.npy", &["folder.npy", "directory"]);
        run("a.npy", &["a.npy", "input"]);
        run("./b.npy", &["b.npy", "input"]);
    }
    refused(&place, "run sgemm a.npy b.npy --trace nowhere/t.trace -o c.npy", &["nowhere/t.trace", "create it"]);
    refused(&place, "run sgemm a.npy b.npy --trace folder.npy -o c.npy", &["folder.npy", "directory"]);
    for taken in ["a.npy", "./b.npy", "c.npy"] {
        let run = format!("run sgemm a.npy b.npy --trace {taken} -o c.npy");
        refused(&place, &run, &["the trace would replace", taken]);
    }
    refused(&place, "machine --assumed -o nowhere/m.toml", &["nowhere/m.toml", "create it"]);
    // What the run has nothing to do with is no trace either.
    for request in ["run saxpy --n 20", "sim saxpy --n 20", "sim loops --machine ps3"] {
        refused(&place, &format!("{request} --trace a.npy"), &["the trace would replace a.npy", "another name"]);
    }
    place.write("empty", []);
    for _ in 0..2 {
        assert_eq!(place.run("run saxpy --n 20 --trace empty").status, Some(0));
    }
    place.write("run.pcf", place.read("empty"));
    refused(&place, "trace run.pcf --to paraver -o run.prv", &["would replace the input run.pcf"]);
    place.write("m.toml", "name = \"mine\"\nbase = \"disk\"\n");
    refused(&place, "machine --machine m.toml -o ./m.toml", &["would replace the input"]);
}

#[test]
fn what_options_name_is_not_replaced() {
    let place = Place::new();
    assert_eq!(place.run("run conv2d --n 3 -o k.npy").status, Some(0));
    place.write("mapping", "[conv2d.core]\nm = 10\n");
    place.write("machine", "name = \"mine\"\nbase = \"disk\"\n");
    for (option, file) in [("--kernel", "k.npy"), ("--mapping", "mapping"), ("--machine", "./machine")] {
        let before = place.read(file);
        refused(&place, &format!("run conv2d --n 20 {option} {file} -o {file}"), &["would replace the input", file]);
        refused(&place, &format!("run conv2d --n 20 {option} {file} --trace {file}"), &["the trace would replace"]);
        assert!(place.read(file) == before);
        assert_eq!(place.run(&format!("run conv2d --n 20 {option} {file} -o other")).status, Some(0));
    }
}

#[test]
fn machines_that_are_wrong() {
    let place = place();
    let memory = |name: &str, parent: &str| {
        let edge = "[memory.edge]\ndriver = \"shared\"\nread = \"10 GB/s\"\nlatency = \"100 ns\"\n\
                    [memory.processor]\nkind = \"cpu\"\nrate = \"10 GFLOP/s\"\n";
        let (parent, edge) = match parent {
            "" => (String::new(), ""),
            parent => (format!("parent = \"{parent}\"\n"), edge),
        };
        format!("[[memory]]\nname = \"{name}\"\n{parent}capacity = \"1 GiB\"\n{edge}")
    };
    let file = |name: &str, memories: &[String]| place.write(name, format!("name = \"m\"\n{}", memories.concat()));
    file("fine.toml", &[memory("dram", ""), memory("core", "dram")]);
    file("unit.toml", &[memory("dram", "").replace("GiB", "GiBi"), memory("core", "dram")]);
    file("bare.toml", &[memory("dram", ""), memory("core", "dram").replace("10 GB/s", "10")]);
    file("cycle.toml", &[memory("dram", ""), memory("x", "y"), memory("y", "x")]);
    file("no-root.toml", &[memory("x", "y"), memory("y", "x")]);
    file("roots.toml", &[memory("dram", ""), memory("dram 2", ""), memory("core", "dram")]);
    file("orphan.toml", &[memory("dram", ""), memory("core", "drum")]);
    file("one.toml", &[memory("dram", "") + "[memory.processor]\nkind = \"cpu\"\nrate = \"10 GFLOP/s\"\n"]);
    file("key.toml", &[memory("dram", "").replace("capacity", "capacitee"), memory("core", "dram")]);
    place.write("text.toml", "no toml at all");
    place.write("bytes.toml", [0xff, 0xfe, 0x00]);
    assert_eq!(place.run("run sgemm a.npy b.npy --machine fine.toml").status, Some(0));
    for (name, words) in [
        ("unit.toml", vec!["unit.toml:4", "GiBi", "GiB"]),
        ("bare.toml", vec!["bare.toml:11", "no unit", "GB/s"]),
        ("cycle.toml", vec!["cycle", "x", "y"]),
        ("no-root.toml", vec!["parent"]),
        ("roots.toml", vec!["two roots", "dram 2"]),
        ("orphan.toml", vec!["drum", "memories:"]),
        ("key.toml", vec!["capacitee"]),
        ("text.toml", vec!["text.toml:1", "not TOML"]),
        ("bytes.toml", vec![]),
        ("missing.toml", vec!["No such file"]),
    ] {
        let words: Vec<&str> = [name].into_iter().chain(words).collect();
        refused(&place, &format!("run sgemm a.npy b.npy -o c.npy --machine {name}"), &words);
        refused(&place, &format!("plan sgemm a.npy b.npy --machine {name}"), &words);
        refused(&place, &format!("machine --machine {name} --assumed -o out.toml"), &words);
    }
    refused(&place, "run sgemm a.npy b.npy --machine one.toml", &["one memory", "child"]);
    refused(&place, "run sgemm --n 64 --machine nothing", &["nothing", "disk+local"]);
    refused(&place, "run sgemm --n 64 --machine cluster", &["cluster", "mpi", "cannot be executed"]);
    // What it would be can be looked at.
    let planned = place.run("plan sgemm --n 64 --machine cluster");
    assert_eq!(planned.status, Some(0), "{}", planned.stderr);
    assert!(planned.stdout.contains("would be refused") && planned.stdout.contains("kind mpi"), "{}", planned.stdout);
}

#[test]
fn mappings_that_are_wrong() {
    let place = place();
    for (text, words) in [
        ("[sgemm.dram]\nk = 100\n", vec!["sgemm.k = 100", "dram", "multiple of"]),
        ("[sgemm.dram]\nrows = 64\n", vec!["sgemm.rows", "m, n, k"]),
        ("[sgemm.dram]\nm = 0\n", vec!["sgemm.m = 0"]),
        ("[sgemm.dram]\nm = -8\n", vec!["map.toml"]),
        ("[sgemm.dram]\nm = \"8 KiB\"\n", vec!["map.toml", "line 2"]),
        ("no toml", vec!["map.toml", "line 1", "such as m = 4096 below [sgemm.dram]"]),
        ("k = 256\n", vec!["map.toml", "such as m = 4096 below [sgemm.dram]"]),
        ("[sgem.dram]\nm = 512\n", vec!["sgem.dram", "sgemm.dram"]),
        ("[sgemm.dran]\nm = 512\n", vec!["sgemm.dran", "sgemm.dram"]),
        ("[sgemm.dram]\nm = 1024\nn = 1024\nk = 1024\n", vec!["does not fit", "largest tile that fits"]),
    ] {
        place.write("map.toml", text);
        let request = "run sgemm --n 1024 --machine disk --memory 2MiB -o c.npy --mapping map.toml";
        refused(&place, request, &words);
    }
    refused(&place, "run sgemm --n 64 --mapping missing.toml", &["missing.toml", "check the path"]);
}

#[test]
fn options_that_are_wrong() {
    let place = place();
    // A number without a unit counts bytes, as refusals print them.
    refused(&place, "run sgemm --memory 5", &["5 B"]);
    refused(&place, "run sgemm --memory 5QiB", &["QiB", "GiB"]);
    refused(&place, "run sgemm --memory -5MiB", &["'-5MiB' for '--memory <SIZE>'", "256 MiB"]);
    refused(&place, "run sgemm --memory 0B --machine disk", &[]);
    refused(&place, "run sgemm --threads 0", &["at least one thread"]);
    refused(&place, "run sgemm --threads 1000000 --n 64", &["--threads 1000000", "at most"]);
    refused(&place, "run sgemm --threads two", &["--threads"]);
    refused(&place, "run sgemm --io tape", &["auto", "uring", "pool"]);
    refused(&place, "run sgemm a.npy", &["B"]);
    refused(&place, "run conv2d --kernel box:4", &["4", "odd"]);
    refused(&place, "run conv2d --kernel nothing", &["nothing", "gaussian"]);
}

#[test]
fn profiles_and_sequences_that_cannot_be_used() {
    let place = Place::new();
    let profile = multigrain_hmmer::generate::profile(1, 6);
    place.write("p.hmm", &profile);
    place.write("db.fa", multigrain_hmmer::generate::sequences(1, 5, 6));
    assert_eq!(place.run("run hmmer p.hmm db.fa -o table").status, Some(0));
    place.remove("table");
    place.write("dna.hmm", profile.replace("ALPH  amino", "ALPH  DNA"));
    place.write("short.hmm", &profile[..profile.len() / 2]);
    place.write("field.hmm", profile.replace("LENG  6\n", ""));
    place.write("bare.fa", "MKVLA\n");
    place.write("symbol.fa", ">a\nMKV\n>b\nMK7V\n");
    place.write("empty.fa", ">a\n>b\n>c\n");
    // The first 20 bytes of a stream: a gzip header (RFC 1952) and a stored block that promises more.
    let mut cut = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 200, 0, 55, 255];
    cut.extend(b">a\nMK");
    place.write("cut.fa.gz", cut);
    for here in WHERE {
        let run = |inputs: &str, words: &[&str]| refused(&place, &format!("run hmmer {inputs} -o table {here}"), words);
        run("dna.hmm db.fa", &["dna.hmm:", "DNA"]);
        run("short.hmm db.fa", &["short.hmm:"]);
        run("field.hmm db.fa", &["field.hmm:", "LENG"]);
        run("missing.hmm db.fa", &["missing.hmm", "No such file"]);
        run("p.hmm bare.fa", &["bare.fa:1:", "MKVLA"]);
        run("p.hmm symbol.fa", &["symbol.fa:4:3:", "'7'", "sequence b"]);
        run("p.hmm empty.fa", &["empty.fa", "no sequence that has residues"]);
        run("p.hmm cut.fa.gz", &["cut.fa.gz", "cut off"]);
        run("p.hmm missing.fa", &["missing.fa", "No such file"]);
        run("p.hmm .", &[]);
    }
    refused(&place, "run hmmer p.hmm db.fa -o nowhere/table", &["nowhere", "create it"]);
    refused(&place, "run hmmer p.hmm db.fa -o db.fa", &["db.fa", "would replace the input"]);
    refused(&place, "run hmmer p.hmm db.fa -o p.hmm", &["p.hmm", "would replace the input"]);
    refused(&place, "run hmmer p.hmm -o table", &["DATABASE"]);
    refused(&place, "run hmmer --max --n 50 --m 4000 --machine disk+local -o table", &["does not fit", "hmmer"]);
}
