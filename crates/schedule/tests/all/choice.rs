//! Tables of choices: whatever was measured, no cheaper operation is slower than a dearer one.

use multigrain_schedule::choice::{Sample, Table, Way};
use multigrain_schedule::{Algorithm, Kind};
use proptest::prelude::*;

const SIZES: [u32; 3] = [2, 3, 8];
const BYTES: [u64; 4] = [4, 128, 4096, 65_536];

/// Measurements with arbitrary times, some missing.
fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let point = (0..4usize, any::<prop::sample::Index>(), 0..SIZES.len(), 0..BYTES.len(), 1.0..1e6f64);
    prop::collection::vec(point, 0..200).prop_map(|points| {
        let sample = |(kind, algorithm, size, bytes, latency_ns): (usize, prop::sample::Index, usize, usize, f64)| {
            let kind = Kind::ALL[kind];
            let all = Algorithm::all(kind, &[2, 3]);
            let bytes = if kind == Kind::Barrier { 0 } else { BYTES[bytes] };
            Sample { kind, algorithm: all[algorithm.index(all.len())], size: SIZES[size], bytes, latency_ns }
        };
        points.into_iter().map(sample).collect()
    })
}

proptest! {
    #[test]
    fn no_cheaper_operation_is_slower(samples in samples(), eager in any::<bool>()) {
        let samples: Vec<Sample> = samples.into_iter().filter(|sample| eager || !sample.algorithm.eager).collect();
        let table = Table::measured(&samples);
        let at = |kind, size, bytes| {
            let row = table.rows().iter().find(|r| (r.kind, r.size_max, r.bytes_max) == (kind, size, bytes))?;
            row.latency_ns
        };
        let holds = |cheap: Option<f64>, dear: Option<f64>| cheap.zip(dear).is_none_or(|(cheap, dear)| cheap <= dear);
        for size in SIZES {
            for (i, &bytes) in BYTES.iter().enumerate() {
                let [broadcast, reduce, allreduce] =
                    [Kind::Broadcast, Kind::Reduce, Kind::Allreduce].map(|kind| at(kind, size, bytes));
                prop_assert!(holds(broadcast, allreduce) && holds(reduce, allreduce));
                let both = broadcast.zip(reduce).map(|(a, b)| a + b);
                // Of eager operations in a row says how often they can be done, not how soon one is over.
                prop_assert!(eager || holds(allreduce, both));
                for kind in [Kind::Broadcast, Kind::Reduce, Kind::Allreduce] {
                    // Optimised and exchange variants have barriers of their shape too, so this holds for all.
                    let synchronises = !eager || kind == Kind::Allreduce;
                    prop_assert!(!synchronises || holds(at(Kind::Barrier, size, 0), at(kind, size, bytes)));
                    for &more in &BYTES[i..] {
                        prop_assert!(holds(at(kind, size, bytes), at(kind, size, more)));
                    }
                }
            }
        }
        // What is chosen can be executed, and never takes longer than what was measured.
        for (kind, algorithm) in table.rows().iter().flat_map(|row| row.way.parts(row.kind)) {
            prop_assert_eq!(algorithm.performs(kind), Ok(()));
        }
        for sample in &samples {
            let chosen = at(sample.kind, sample.size, sample.bytes);
            prop_assert!(chosen.is_some_and(|chosen| chosen <= sample.latency_ns));
        }
    }
}

#[test]
fn between_measured_points_the_next_larger_one_serves() {
    let sample = |kind, name: &str, size, bytes, latency_ns| Sample {
        kind,
        algorithm: name.parse().unwrap(),
        size,
        bytes,
        latency_ns,
    };
    let table = Table::measured(&[
        sample(Kind::Reduce, "ATORed", 2, 128, 100.0),
        sample(Kind::Reduce, "TTRed(2)", 2, 128, 120.0),
        sample(Kind::Reduce, "TTRed(2)", 2, 4096, 900.0),
        sample(Kind::Reduce, "BTRed", 8, 128, 700.0),
    ]);
    let name = |size, bytes| table.pick(Kind::Reduce, size, bytes).way.name(Kind::Reduce);
    assert_eq!(
        [name(2, 0), name(1, 128), name(2, 129), name(2, 1 << 40)],
        ["ATORed", "ATORed", "TTRed(2)", "TTRed(2)"]
    );
    assert_eq!([name(3, 4), name(8, 4), name(9, 1 << 20)], ["BTRed"; 3]);
    let row = table.pick(Kind::Reduce, 2, 128);
    assert_eq!((row.latency_ns, &*row.reason), (Some(100.0), "fastest of 2; TTRed(2) took 120 ns"));
    // What was not measured keeps what is assumed.
    assert!(matches!(table.pick(Kind::Barrier, 5, 0).way, Way::Direct(_)));
    assert!(table.to_string().contains("nothing measured"), "{table}");
}

#[test]
fn an_inversion_is_repaired_and_says_how() {
    let sample = |kind, name: &str, bytes, latency_ns| Sample {
        kind,
        algorithm: name.parse().unwrap(),
        size: 4,
        bytes,
        latency_ns,
    };
    let table = Table::measured(&[
        sample(Kind::Barrier, "ATOBar", 0, 500.0),
        sample(Kind::Reduce, "ATORed", 128, 400.0),
        sample(Kind::Allreduce, "PEAllred", 128, 300.0),
    ]);
    let row = table.pick(Kind::Reduce, 4, 128);
    assert_eq!(row.way.name(Kind::Reduce), "as PEAllred");
    assert_eq!(row.reason, "as an allreduce by PEAllred, which takes 300 ns; ATORed took 400");
    assert_eq!(table.pick(Kind::Barrier, 4, 0).way.name(Kind::Barrier), "PEBar");
}
