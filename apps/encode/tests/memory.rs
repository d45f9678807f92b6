//! Unsafe code on all its ways, small enough for Miri: planes that several threads use, plain kernels, pictures predicted from one and
//! from two others, sizes that are no multiple of a macroblock, memory that is used again.

use multigrain::Abort;
use multigrain_encode::encoder::{Encoder, Next, Options};
use multigrain_encode::headers::{Colour, Profile, Properties, Ratio, Structure};
use multigrain_encode::kernel::Kernels;
use multigrain_encode::picture::{Size, Source};
use multigrain_encode::rate::{Keys, Rate};
use multigrain_encode::search::Effort;
use multigrain_simd::Isa;
use std::sync::atomic::{AtomicUsize, Ordering};

const SIZE: Size = Size { width: 18, height: 18 };

/// Planes of a picture that moves.
fn source(number: usize) -> Source {
    let sample = |at: usize, width: usize| ((at % width + number) * 23 % 160 + at / width * 5) as u8;
    let luma = (0..SIZE.width * SIZE.height).map(|at| sample(at, SIZE.width));
    let chroma = (0..SIZE.width * SIZE.height / 2).map(|at| sample(at, SIZE.width / 2) / 2 + 60);
    let mut source = Source::default();
    source.fill(SIZE, &luma.chain(chroma).collect::<Vec<u8>>());
    source
}

/// The stream of so many pictures, by so many threads that share the rows of so many at once.
fn stream(count: usize, threads: usize, at_once: usize, profile: Profile, structure: Structure) -> Vec<u8> {
    let (kernels, abort) = (Kernels::new(Isa::Scalar), Abort::new());
    let properties = Properties {
        size: SIZE,
        rate: Ratio { over: 25, under: 1 },
        aspect: None,
        is_full_range: None,
        colour: Colour::UNKNOWN,
        chroma_place: None,
    };
    let options = Options {
        rate: Rate::Constant(28),
        keys: Keys { interval: 250, at_cuts: false },
        effort: Effort { steps: 2, fine: 1, enough: 16, has_parts: true },
        profile,
        structure,
    };
    let mut encoder = Encoder::new(properties, options, &kernels);
    (0..count).for_each(|number| encoder.push(source(number)));
    encoder.end();
    let mut out = Vec::new();
    loop {
        let begun = || if let Next::Picture(flight) = encoder.advance() { Some(flight) } else { None };
        let flights: Vec<_> = std::iter::from_fn(begun).take(at_once).collect();
        let Some(first) = flights.first() else { return out };
        let (next, rows) = (AtomicUsize::new(0), first.wave.jobs());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(flight) = flights.get(next.fetch_add(1, Ordering::Relaxed) / rows) {
                        flight.wave.step(&abort);
                    }
                });
            }
        });
        for flight in &flights {
            assert_eq!(flight.shown().len(), SIZE.bytes());
            out.extend(flight.encoded().units.concat());
        }
    }
}

#[test]
fn pictures_are_encoded_in_memory_that_is_shared() {
    let both = Structure { references: 1, bidirectional: 1 };
    for (profile, structure, count) in [(Profile::Baseline, Structure::PLAIN, 2), (Profile::Main, both, 3)] {
        let found = stream(count, 2, 2, profile, structure);
        // Once is slow enough where every step is checked.
        assert!(cfg!(miri) || found == stream(count, 1, 1, profile, structure));
    }
}
