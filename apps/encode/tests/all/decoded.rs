//! What a decoder makes of the stream is what the encoder says it makes, sample by sample.

use multigrain::Abort;
use multigrain_encode::encoder::{Encoder, Flight, Next, Options, with_start_codes};
use multigrain_encode::headers::{Profile, Properties, Ratio, Structure};
use multigrain_encode::kernel::Kernels;
use multigrain_encode::picture::Size;
use multigrain_encode::rate::{Keys, Rate};
use multigrain_encode::search::Effort;
use multigrain_encode::source::Source;
use multigrain_simd::Isa;
use rusty_h264_decoder::Decoder;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What can be skipped is not searched.
const QUICK: Effort = Effort { steps: 1, fine: 2, enough: 64, intra: 5, has_parts: false, skips_first: true };
const THOROUGH: Effort = Effort { steps: 8, fine: 3, enough: 8, intra: 8, has_parts: true, skips_first: false };

/// Numbers that look random, the same every time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Kinds of pictures.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// Shapes that move by fractions of samples over a slope, with some noise.
    Moving,
    /// Two scenes in turns, each longer than a flash.
    Scenes,
    /// Nothing that could be predicted.
    Noise,
    /// Black and white.
    Extreme,
}

/// Picture `number`: planes one after the other.
fn picture(content: Content, size: Size, number: usize) -> Vec<u8> {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1) << 20);
    let mut out = Vec::new();
    for (plane, part) in [(0, 1), (1, 2), (2, 2)] {
        for y in 0..size.height / part {
            for x in 0..size.width / part {
                let (x, y, t) = ((x * part) as f64, (y * part) as f64, number as f64);
                out.push(match content {
                    Content::Noise => noise.next() as u8,
                    Content::Extreme => {
                        if noise.next().is_multiple_of(3) {
                            255
                        } else {
                            0
                        }
                    }
                    Content::Scenes if number / 10 % 2 == 1 => {
                        let wave = 60.0 * ((x - 0.5 * t) / 4.0).cos() * ((y + x) / 6.0).sin();
                        (170.0 - f64::from(plane) * 30.0 + wave + (noise.next() % 5) as f64).clamp(0.0, 255.0) as u8
                    }
                    Content::Moving | Content::Scenes => {
                        let moved = x - 1.7 * t;
                        let wave = 50.0 * (moved / 7.0).sin() * ((y + 0.6 * t) / 9.0).cos();
                        let disc = (x - 20.0 - 3.0 * t).hypot(y - 25.0 + 0.75 * t) < 14.0;
                        let base = 90.0 + x / 3.0 + f64::from(plane) * 20.0 + wave + if disc { 60.0 } else { 0.0 };
                        (base + (noise.next() % 5) as f64).clamp(0.0, 255.0) as u8
                    }
                });
            }
        }
    }
    out
}

fn sources(content: Content, size: Size, count: usize) -> Vec<Source> {
    let source = |number| {
        let mut source = Source::default();
        source.fill(size, &picture(content, size, number));
        source
    };
    (0..count).map(source).collect()
}

fn properties(size: Size) -> Properties {
    Properties::plain(size, Ratio { over: 25, under: 1 })
}

/// All pictures that can be begun, in the order of decoding, where these have come and no others will.
fn begun<'k>(encoder: &mut Encoder<'k>) -> Option<Box<Flight<'k>>> {
    match encoder.advance() {
        Next::Picture(flight) => Some(flight),
        Next::End => None,
        other => panic!("{other:?}, but all have come, and the quantiser follows nothing"),
    }
}

/// Encodes, decodes, compares, for some of what pictures may be predicted from.
fn check(content: Content, size: Size, count: usize, qp: u8, key_interval: u32) {
    for (profile, references, bidirectional) in
        [(Profile::Baseline, 1, 0), (Profile::Main, 1, 0), (Profile::Baseline, 2, 0), (Profile::Main, 2, 2)]
    {
        // One picture is predicted from none.
        if count > 1 || references == 1 {
            let structure = Structure { references, long: 0, bidirectional };
            check_one(content, size, count, qp, key_interval, (profile, structure, THOROUGH));
            check_one(content, size, count, qp, key_interval, (profile, structure, QUICK));
        }
    }
}

fn check_one(
    content: Content,
    size: Size,
    count: usize,
    qp: u8,
    key_interval: u32,
    (profile, structure, effort): (Profile, Structure, Effort),
) {
    let options = Options {
        rate: Rate::Constant(qp),
        keys: Keys { interval: key_interval, at_cuts: false },
        effort,
        profile,
        structure,
    };
    let context = |number: u64| format!("{content:?} {size:?} qp {qp} {profile:?} {structure:?} picture {number}");
    let (kernels, abort) = (Kernels::new(Isa::detect()), Abort::new());
    let mut encoder = Encoder::new(properties(size), options, &kernels);
    let (mut decoder, mut numbers) = (Decoder::new(), Vec::new());
    sources(content, size, count).into_iter().for_each(|source| encoder.push(source));
    encoder.end();
    // Both have the order of decoding.
    while let Some(flight) = begun(&mut encoder) {
        (0..flight.wave.jobs()).for_each(|job| assert_eq!(flight.wave.step(&abort), job + 1 == flight.wave.jobs()));
        let picture = flight.encoded();
        let (number, bytes) = (picture.number, with_start_codes(&picture.units));
        let shown = decoder.decode(&bytes).unwrap_or_else(|e| panic!("{}: {e:?}", context(number)));
        let shown = shown.unwrap_or_else(|| panic!("{}: nothing is shown", context(number)));
        assert_eq!((shown.width, shown.height), (size.width, size.height), "{}", context(number));
        let (expected, found) = (flight.shown(), [shown.y, shown.u, shown.v].concat());
        if let Some(at) = (0..expected.len()).find(|&at| expected[at] != found[at]) {
            let (x, y) = (at % size.width, at / size.width);
            let place = format!("sample {at} (of luma: column {x}, row {y})");
            panic!("{}: {place} is {}, not {}", context(number), found[at], expected[at]);
        }
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..count as u64), "{}", context(count as u64));
}

#[test]
fn one_picture_for_every_quantiser() {
    for qp in 0..52 {
        check(Content::Moving, Size { width: 48, height: 32 }, 1, qp, 1);
    }
}

#[test]
fn moving_pictures_for_every_quantiser() {
    for qp in 0..52 {
        check(Content::Moving, Size { width: 64, height: 48 }, 5, qp, 250);
    }
}

/// From quantiser 16 on, where edges are smoothed, up to some 24, macroblocks of black and white are stored. The decoder used here
/// smooths their edges, too, which have a quantiser of zero by 8.7.2.2; ffmpeg's does not, and is asked about all
/// quantisers (see the tests of the program).
#[test]
fn noise_and_extremes() {
    for qp in [0, 1, 5, 6, 11, 12, 17, 23, 36, 51] {
        check(Content::Noise, Size { width: 48, height: 48 }, 3, qp, 2);
        if !(16..30).contains(&qp) {
            check(Content::Extreme, Size { width: 48, height: 48 }, 3, qp, 2);
        }
    }
}

/// Columns of 0 and 255, in luma and chroma, apart from each other and moving: the largest steps there are. With small quantisers
/// each sample is as near to the source as they promise.
#[test]
fn small_quantisers_keep_large_steps() {
    let size = Size { width: 64, height: 48 };
    let columns = |wide: usize, number: usize| -> Vec<u8> {
        let plane = |part: usize, shift: usize| {
            let sample =
                move |at: usize| if ((at % (size.width / part) + shift) / wide).is_multiple_of(2) { 0 } else { 255 };
            (0..size.width * size.height / part / part).map(sample)
        };
        plane(1, number).chain(plane(2, number)).chain(plane(2, number + 4)).collect()
    };
    let kernels = Kernels::new(Isa::detect());
    for (qp, wide) in (0..=8).flat_map(|qp| [1, 2, 4, 8, 16].map(|wide| (qp, wide))) {
        for (profile, bidirectional) in [(Profile::Baseline, 0), (Profile::Main, 0), (Profile::Main, 2)] {
            let options = Options {
                // Key pictures have 3 less.
                rate: Rate::Constant(qp),
                keys: Keys { interval: 3, at_cuts: false },
                effort: THOROUGH,
                profile,
                structure: Structure { bidirectional, ..Structure::PLAIN },
            };
            let mut encoder = Encoder::new(properties(size), options, &kernels);
            for number in 0..5 {
                let mut source = Source::default();
                source.fill(size, &columns(wide, number));
                encoder.push(source);
            }
            encoder.end();
            let (mut decoder, abort) = (Decoder::new(), Abort::new());
            while let Some(flight) = begun(&mut encoder) {
                for _ in 0..flight.wave.jobs() {
                    flight.wave.step(&abort);
                }
                let picture = flight.encoded();
                let number = picture.number as usize;
                let shown = decoder.decode(&with_start_codes(&picture.units)).unwrap().unwrap();
                let (expected, found) = (columns(wide, number), [shown.y, shown.u, shown.v].concat());
                let error = expected.iter().zip(&found).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
                // Those of 16 coefficients sum up to four times one's at most; pictures that none is predicted from have 2 more.
                let step = 0.625 * (f64::from(qp + 2) / 6.0).exp2();
                let context = format!("qp {qp}, {wide} wide, {profile:?}, {bidirectional}, picture {number}");
                assert!(f64::from(error) <= 4.0 * step + 1.0, "{context}: {error}");
            }
        }
    }
}

/// Macroblocks have at most 3200 bits (A.3.1), and bins at most as many as bytes allow (7.4.2.10), which words without meaning at the
/// end of a unit see to: slices of one macroblock tell both.
#[test]
fn macroblocks_are_not_longer_than_they_may_be() {
    let size = Size { width: 16, height: 16 };
    let mut noise = Noise(0x9e37_79b9);
    let mut words = 0;
    for qp in 0..34 {
        for kind in 0..5 {
            let keys = Keys { interval: 5, at_cuts: false };
            let structure = Structure { bidirectional: 1, ..Structure::PLAIN };
            let (rate, effort, profile) = (Rate::Constant(qp), THOROUGH, Profile::Main);
            let options = Options { rate, keys, effort, profile, structure };
            let (kernels, abort, mut decoder) = (Kernels::new(Isa::detect()), Abort::new(), Decoder::new());
            let mut encoder = Encoder::new(properties(size), options, &kernels);
            for _ in 0..5 {
                let mut sample = || match kind {
                    0 => noise.next() as u8,
                    1 => 128 + (noise.next() % 64) as u8,
                    2 => {
                        if noise.next().is_multiple_of(5) {
                            noise.next() as u8
                        } else {
                            90
                        }
                    }
                    3 => {
                        if noise.next().is_multiple_of(2) {
                            255
                        } else {
                            0
                        }
                    }
                    _ => 100 + (noise.next() % 120) as u8 / 2 * (noise.next() % 3) as u8,
                };
                let bytes: Vec<u8> = (0..size.bytes()).map(|_| sample()).collect();
                let mut source = Source::default();
                source.fill(size, &bytes);
                encoder.push(source);
            }
            encoder.end();
            while let Some(flight) = begun(&mut encoder) {
                flight.wave.step(&abort);
                let picture = flight.encoded();
                let shown = decoder.decode(&with_start_codes(&picture.units)).unwrap().unwrap();
                let slice = picture.units.last().unwrap();
                // One whose samples are stored differs between these: see `noise_and_extremes`.
                let is_same = flight.shown() == [shown.y, shown.u, shown.v].concat();
                let is_stored = slice.len() > size.bytes();
                assert!(is_same || is_stored && (16..30).contains(&qp), "qp {qp}, noise {kind}");
                let ends = slice.rchunks(3).take_while(|end| *end == [0, 0, 3]).count();
                words += ends;
                // Without bytes that keep start codes out, and ten for the headers.
                let slice = &slice[..slice.len() - 3 * ends];
                let kept_out = slice.windows(3).filter(|bytes| **bytes == [0, 0, 3]).count();
                let bits = 8 * (slice.len() - kept_out - 10);
                assert!(bits <= 3200, "qp {qp}, noise {kind}: a macroblock has {bits} bits");
            }
        }
    }
    assert!(words > 0, "some have more bins than bytes allow");
}

#[test]
fn sizes_that_are_no_multiple_of_a_macroblock() {
    for (width, height) in [(2, 2), (16, 16), (18, 2), (2, 34), (30, 46), (176, 144), (350, 18)] {
        for qp in [10, 28, 40] {
            check(Content::Moving, Size { width, height }, 6, qp, 4);
        }
    }
}

#[test]
fn a_large_picture_and_one_that_follows() {
    check_one(
        Content::Moving,
        Size { width: 3840, height: 2160 },
        2,
        30,
        250,
        (Profile::Main, Structure::PLAIN, THOROUGH),
    );
}

/// Numbers of pictures, which have eight bits, begin again, and so do those that say when they are shown: of ten bits, two for each.
#[test]
fn many_pictures_without_one_at_which_decoding_can_begin() {
    check(Content::Moving, Size { width: 16, height: 16 }, 600, 34, 1000);
}

#[test]
fn pictures_that_are_predicted_from_none_but_themselves() {
    for qp in [3, 21, 39] {
        check(Content::Moving, Size { width: 50, height: 38 }, 4, qp, 1);
    }
}

/// Many pictures before one, and pictures that stay while scenes come and go, with all that players keep.
#[test]
fn many_references_and_old_ones() {
    let size = Size { width: 66, height: 50 };
    for (references, long, bidirectional) in
        [(16, 0, 0), (3, 0, 3), (1, 1, 0), (2, 1, 0), (1, 3, 0), (1, 1, 2), (2, 2, 4), (4, 12, 1)]
    {
        let structure = Structure { references, long, bidirectional };
        for profile in [Profile::Baseline, Profile::Main] {
            if bidirectional == 0 || profile == Profile::Main {
                for qp in [14, 30] {
                    check_one(Content::Scenes, size, 50, qp, 37, (profile, structure, THOROUGH));
                }
            }
        }
    }
}

/// A scene that comes back is predicted from its last picture.
#[test]
fn what_comes_back_takes_fewer_bits() {
    let size = Size { width: 96, height: 80 };
    let bytes = |structure: Structure| -> usize {
        let keys = Keys { interval: 250, at_cuts: false };
        let (rate, profile) = (Rate::Constant(26), Profile::Main);
        let options = Options { rate, keys, effort: THOROUGH, profile, structure };
        let (kernels, abort) = (Kernels::new(Isa::detect()), Abort::new());
        let mut encoder = Encoder::new(properties(size), options, &kernels);
        sources(Content::Scenes, size, 54).into_iter().for_each(|source| encoder.push(source));
        encoder.end();
        let mut bytes = 0;
        while let Some(flight) = begun(&mut encoder) {
            for _ in 0..flight.wave.jobs() {
                flight.wave.step(&abort);
            }
            bytes += with_start_codes(&flight.encoded().units).len();
        }
        bytes
    };
    for bidirectional in [0, 2] {
        let short = bytes(Structure { references: 2, long: 0, bidirectional });
        let long = bytes(Structure { references: 1, long: 1, bidirectional });
        assert!(10 * long < 9 * short, "{long} bytes with the last picture of a scene before, {short} without");
    }
}

/// Whoever would wait for the picture before can do its rows instead: a picture says whether it waits.
#[test]
fn pictures_say_whether_they_wait() {
    let size = Size { width: 32, height: 128 };
    let keys = Keys { interval: 250, at_cuts: false };
    let (rate, profile, structure) = (Rate::Constant(26), Profile::Baseline, Structure::PLAIN);
    let (kernels, abort) = (Kernels::new(Isa::detect()), Abort::new());
    let mut encoder =
        Encoder::new(properties(size), Options { rate, keys, effort: QUICK, profile, structure }, &kernels);
    sources(Content::Moving, size, 2).into_iter().for_each(|source| encoder.push(source));
    encoder.end();
    let (first, second) = (begun(&mut encoder).unwrap(), begun(&mut encoder).unwrap());
    // Of 8 rows, the first row of the next picture needs 6, the second 7.
    for row in 0..8 {
        assert_eq!((first.wave.waits(), second.wave.waits()), (Some(false), Some(row < 6)), "{row}");
        assert_eq!(first.wave.step(&abort), row == 7);
    }
    assert_eq!(first.wave.waits(), None);
    for row in 0..8 {
        assert_eq!(second.wave.waits(), Some(false), "{row}");
        assert_eq!(second.wave.step(&abort), row == 7);
    }
    assert_eq!(second.wave.waits(), None);
}

/// The stream, executed by so many threads, which share the rows of a few pictures under way at once.
fn stream(
    isa: Isa,
    threads: usize,
    at_once: usize,
    (profile, structure, effort): (Profile, Structure, Effort),
) -> Vec<u8> {
    let size = Size { width: 100, height: 180 };
    let keys = Keys { interval: 7, at_cuts: true };
    let options = Options { rate: Rate::Constant(26), keys, effort, profile, structure };
    let (kernels, abort) = (Kernels::new(isa), Abort::new());
    let mut encoder = Encoder::new(properties(size), options, &kernels);
    sources(Content::Moving, size, 12).into_iter().for_each(|source| encoder.push(source));
    encoder.end();
    let flights: Vec<_> = std::iter::from_fn(|| begun(&mut encoder)).collect();
    for some in flights.chunks(at_once) {
        let (next, rows) = (AtomicUsize::new(0), some[0].wave.jobs());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(flight) = some.get(next.fetch_add(1, Ordering::Relaxed) / rows) {
                        flight.wave.step(&abort);
                    }
                });
            }
        });
    }
    flights.iter().flat_map(|flight| with_start_codes(&flight.encoded().units)).collect()
}

/// Neither threads nor pictures at once nor the instruction set change a bit.
#[test]
fn the_stream_depends_on_nothing_but_the_pictures() {
    let both = Structure { references: 2, long: 1, bidirectional: 2 };
    for of in [
        (Profile::Baseline, Structure::PLAIN, THOROUGH),
        (Profile::Baseline, Structure { references: 3, ..Structure::PLAIN }, QUICK),
        (Profile::Main, Structure::PLAIN, THOROUGH),
        (Profile::Main, both, THOROUGH),
        (Profile::Main, both, QUICK),
    ] {
        let expected = stream(Isa::Scalar, 1, 1, of);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            for (threads, at_once) in [(1, 12), (2, 3), (3, 12), (7, 12)] {
                let found = stream(isa, threads, at_once, of);
                assert!(found == expected, "{isa}, {threads} threads, {at_once} at once, {of:?}");
            }
        }
    }
}
