//! The Fourier transform of a volume: in memory beside libraries, from files beside the disk and NumPy memory maps.

use crate::entry::Entry;
use crate::harness::files::Scratch;
use crate::harness::in_memory::repeated;
use crate::harness::rounds::{Contender, Turn, alternate};
use crate::harness::row::{Bar, Row, Unit};
use crate::harness::{Bench, right};
use multigrain::app::Application;
use multigrain::prelude::{Complex32, ElementType, Error, Job, Program, Role, Source};
use multigrain::readable_bytes;
use multigrain_console::Failure;
use multigrain_fft3d::task::{InPlace, Setup, direction};
use multigrain_simd::Isa;
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] = &[
    Entry::rows("fft3d", "Fourier transform of 256^3 complex numbers in memory, in place; FFTW, MKL", in_memory),
    Entry::rows(
        "fft3d-files",
        "Fourier transform of 4 GiB from a file to another, within 512 MiB; the disk's rate, NumPy memory maps",
        from_files,
    ),
];

const MIB: u64 = 1 << 20;
/// The file that our runs make.
const RESULT: &str = "result.npy";

/// The usual measure of a transform of so many elements: 5 N log2 N.
fn flops(elements: u64) -> f64 {
    5.0 * elements as f64 * (elements as f64).log2()
}

/// A generated volume, in place. A run transforms it and transforms it back, so that every run finds what the first one
/// found, up to roundings; its time is half of that.
pub(crate) fn in_memory(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let n = bench.size(256, 32);
    let args = multigrain_fft3d::app::Args { n: Some(n), ..Default::default() };
    let runtime = bench.runtime(bench.threads(), None)?;
    let app = args.prepare(&runtime)?;
    let checked = right(&app, &runtime.run(&app.job, bench.settings())?)?;
    let job = there_and_back(n)?;
    let mut prepared = runtime.prepare(&job)?;
    let turn: Turn<'_> = Box::new(|| Ok(repeated(bench, &mut prepared, 2)? / 2.0));
    let options = ["x", "y", "z"].map(|axis| (axis, n.to_string()));
    let mut peers = ["fftw", "mkl-fft"].map(|peer| Contender::start(bench, peer, peer, &options));
    let ours = alternate(bench, "fft3d", bench.args.rounds, &mut [turn], &mut peers)?.concat();
    let row = |name: &str, peer: Contender, bar: f64| {
        Row::new(
            name.to_owned(),
            Unit::Gflops(flops(n * n * n)),
            ours.clone(),
            [peer],
            Bar::RatioAtLeast(bar),
            vec![
                format!("{n}^3 complex64 in memory, in place, there and back; 5 N log2 N operations each"),
                checked.clone(),
            ],
        )
    };
    let [fftw, mkl] = peers;
    Ok(vec![row("fft3d", fftw, 1.5), row("fft3d-mkl", mkl, 1.0)])
}

/// A volume that is transformed in place and back.
fn there_and_back(n: u64) -> Result<Job, Failure> {
    let mut program = Program::new();
    let setup = Setup::new(Isa::detect(), [n; 3]).ok_or_else(|| Failure::Run(format!("{n}^3 cannot be indexed")))?;
    let task = program.task(InPlace::new(&setup));
    let data = program.array::<Complex32, 3>("data", [n; 3], Role::InOut).map_err(Error::from)?;
    for inverse in [false, true] {
        program.call(task, (data.all(),), direction(inverse)).map_err(Error::from)?;
    }
    Ok(Job::new("fft3d", program).with_source(data.index(), Source::Generated { seed: 1 }))
}

/// From one file into another: two passes over the disk.
pub(crate) fn from_files(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let shape = [bench.size(1024, 128), bench.size(1024, 64), bench.size(512, 64)];
    let bytes = 8 * shape.iter().product::<u64>();
    let memory = bench.args.memory.unwrap_or(bench.size(512 * MIB, 6 * MIB));
    // The volume, our result, the peer's, and the file that the disk's rate is measured with.
    let scratch = Scratch::new(&bench.args.directory, 5 * bytes)?;
    let input = scratch.npy_of(ElementType::C64, "volume.npy", &shape, 1, &bench.abort)?;
    let output = Some(scratch.path(RESULT));
    let runtime = bench.runtime(bench.threads(), Some(memory))?;
    let args = multigrain_fft3d::app::Args { input: Some(input.clone()), output, ..Default::default() };
    let app = args.prepare(&runtime)?;
    let checked = right(&app, &runtime.run(&app.job, bench.settings())?)?;
    let mut moved = 0;
    let turn: Turn<'_> = Box::new(|| {
        // To free the space of the turn before is no part of the work, on either side.
        let _ = std::fs::remove_file(scratch.path(RESULT));
        let begin = Instant::now();
        let outcome = runtime.run(&app.job, bench.settings())?;
        let seconds = begin.elapsed().as_secs_f64();
        moved = outcome.edges.first().map_or(0, |edge| edge.traffic.bytes_down + edge.traffic.bytes_up);
        Ok(seconds)
    });
    let mib = |bytes: u64| bytes.div_ceil(MIB).to_string();
    let disk = [
        ("directory", scratch.folder().display().to_string()),
        ("read-mib", mib(2 * bytes)),
        ("write-mib", mib(2 * bytes)),
        ("sync", "yes".to_owned()),
        ("write", "new".to_owned()),
    ];
    let maps = [
        ("input", input.display().to_string()),
        ("output", scratch.path("numpy.npy").display().to_string()),
        ("block-mib", mib(memory / 4)),
    ];
    let mut peers = [
        Contender::start(bench, "disk", "disk", &disk),
        Contender::start(bench, "numpy-memmap-fft", "numpy-memmap-fft", &maps),
    ];
    let ours = alternate(bench, "fft3d-files", bench.args.rounds, &mut [turn], &mut peers)?.concat();
    let [x, y, z] = shape;
    let note = format!(
        "{x} x {y} x {z} complex64 ({}) from a .npy file to another, within {}; whole runs, the result flushed; {:.2} of \
         the volume moved",
        readable_bytes(bytes),
        readable_bytes(memory),
        moved as f64 / bytes as f64
    );
    let row = |name: &str, peer: Contender, bar: f64| {
        Row::new(
            name.to_owned(),
            Unit::GigabytesPerSecond(4.0 * bytes as f64),
            ours.clone(),
            [peer],
            Bar::RatioAtLeast(bar),
            vec![note.clone(), checked.clone()],
        )
    };
    let [disk, maps] = peers;
    Ok(vec![row("fft3d-files", disk, 0.85), row("fft3d-files-numpy", maps, 3.0)])
}
