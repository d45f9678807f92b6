//! Speed and bits at equal PSNR: the peer at one quantiser, ours at the two neighbours between whose qualities the peer's lies.
//! What is between these is interpolated; nothing is said of qualities that were not reached on both sides. PSNR is that of all
//! samples together, of luma and chroma.

use super::clip::Clip;
use super::{QUANTISER, Theirs, figure, in_turns};
use crate::harness::rounds::Turn;
use crate::harness::row::{Bar, Row, Unit};
use crate::harness::{Bench, reason};
use multigrain_console::Failure;

/// An encoder of another kind.
struct Peer {
    /// In the list of peers.
    name: &'static str,
    label: &'static str,
    /// Whether it has more than one thread.
    has_threads: bool,
    /// What several threads do to its stream.
    by_threads: &'static str,
}

const PEERS: [Peer; 2] = [
    Peer { name: "openh264", label: "openh264", has_threads: true, by_threads: ", each a slice of every picture" },
    Peer { name: "rusty-h264", label: "rusty_h264", has_threads: false, by_threads: "" },
];

/// Presets of ours.
const PRESETS: [&str; 2] = ["fast", "medium"];

/// At least so many times as fast, with fewer bits.
const BAR: f64 = 1.2;

/// What a quantiser gives.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    qp: u32,
    bits: f64,
    psnr: f64,
}

/// Between two quantisers, where the quality of somebody else lies.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Between {
    /// The better one, and the next.
    points: [Point; 2],
    /// How far it is from the first to the second, by PSNR.
    share: f64,
}

impl Between {
    /// Bits there: their logarithm is nearly a line.
    fn bits(&self) -> f64 {
        let [better, worse] = self.points.map(|point| point.bits.ln());
        (better + (worse - better) * self.share).exp()
    }

    fn seconds(&self, [better, worse]: [f64; 2]) -> f64 {
        better + (worse - better) * self.share
    }
}

/// The neighbouring quantisers between whose qualities one lies; `at` measures.
///
/// # Errors
/// No quantiser is better, or none is worse, or `at` fails.
fn around(psnr: f64, begin: u32, mut at: impl FnMut(u32) -> Result<(f64, f64), String>) -> Result<Between, String> {
    let mut point = |qp: u32| at(qp).map(|(bits, psnr)| Point { qp, bits, psnr });
    let mut now = point(begin)?;
    let is_better = now.psnr >= psnr;
    loop {
        let next = match (is_better, now.qp) {
            (true, 51) | (false, 0) => {
                let side = if is_better { "worse" } else { "better" };
                return Err(format!("its {psnr:.2} dB are {side} than all of ours, up to {:.2} dB", now.psnr));
            }
            (true, qp) => point(qp + 1)?,
            (false, qp) => point(qp - 1)?,
        };
        if (next.psnr >= psnr) != is_better {
            let points = if is_better { [now, next] } else { [next, now] };
            let share = (points[0].psnr - psnr) / (points[0].psnr - points[1].psnr);
            return Ok(Between { points, share });
        }
        now = next;
    }
}

/// For each peer that is there, and each preset: speed and bits, by one thread of both, and by as many as there are.
pub(super) fn rows(bench: &Bench<'_>, clip: &Clip<'_>) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for peer in &PEERS {
        let title = format!("encode-{}", peer.name);
        match bench.catalogue.command(peer.name) {
            Ok(words) => {
                let mut threads = vec![1, clip.threads];
                threads.dedup();
                for threads in threads {
                    let title = if threads == 1 { format!("{title}-1") } else { title.clone() };
                    match beside(bench, clip, &words, (&title, peer, threads)) {
                        Ok(measured) => rows.extend(measured),
                        Err(Failure::Facade(error)) => return Err(error.into()),
                        Err(failure) => {
                            let why = format!("{}: {}", peer.label, reason(failure));
                            rows.push(Row { bar: Bar::RatioAtLeast(BAR), ..Row::failed(&title, why) });
                        }
                    }
                }
            }
            Err(why) => {
                let (ours, gone) = (Vec::new(), figure(peer.label, Err(why)));
                rows.push(Row::new(&title, Unit::Seconds, ours, vec![gone], Bar::RatioAtLeast(BAR), Vec::new()));
            }
        }
    }
    Ok(rows)
}

fn counted(threads: u32) -> String {
    if threads == 1 { "one thread".to_owned() } else { format!("{threads} threads") }
}

fn beside(
    bench: &Bench<'_>,
    clip: &Clip<'_>,
    words: &[String],
    (title, peer, threads): (&str, &Peer, u32),
) -> Result<Vec<Row>, Failure> {
    let label = peer.label;
    let its = if peer.has_threads { threads } else { 1 };
    let by_threads = if its > 1 { peer.by_threads } else { "" };
    // What is timed has been decoded: all pictures are there, and as good as is said.
    let samples = clip.samples(&clip.path).map_err(Failure::Run)?;
    clip.peer(words, "peer.h264", its, QUANTISER).map_err(Failure::Run)?;
    let (bits, psnr) = clip.point("peer.h264", &samples).map_err(Failure::Run)?;
    let mut found = Vec::new();
    for preset in PRESETS {
        let measured = around(psnr, QUANTISER, |qp| {
            clip.ours("point.h264", threads, "rows", qp, &["--preset", preset]).map_err(reason)?;
            clip.point("point.h264", &samples)
        });
        found.push((preset, measured.map_err(|why| Failure::Run(format!("--preset {preset}: {why}")))?));
    }
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (preset, between) in &found {
        for point in between.points {
            let options = ["--preset", preset];
            turns.push(Box::new(move || Ok(clip.ours("ours.h264", threads, "rows", point.qp, &options)?.seconds)));
        }
    }
    let mut theirs = [Theirs::new(|| clip.peer(words, "peer.h264", its, QUANTISER))];
    let seconds = in_turns(bench, turns, &mut theirs)?;
    let theirs = theirs.map(|theirs| theirs.figure(label));
    let mut rows = Vec::new();
    for ((preset, between), seconds) in found.iter().zip(seconds.as_chunks::<2>().0) {
        let ours = seconds[0].iter().zip(&seconds[1]).map(|(a, b)| between.seconds([*a, *b])).collect();
        let more = between.bits() / bits;
        let [better, worse] = between.points;
        let notes = vec![format!(
            "{}, {psnr:.2} dB of all samples, luma and chroma, which {label} has at QP {QUANTISER} by {}{by_threads}, and \
             --preset {preset} by {} between QP {} ({:.2} dB) and {} ({:.2} dB); baseline; whole runs",
            clip.name,
            counted(its),
            counted(threads),
            better.qp,
            better.psnr,
            worse.qp,
            worse.psnr
        )];
        let (title, bits_title) = (format!("{title}-{preset}"), format!("{title}-{preset}-bits"));
        let mut speed = Row::new(&title, Unit::Seconds, ours, theirs.to_vec(), Bar::RatioAtLeast(BAR), notes.clone());
        if more > 1.0 {
            speed.failed = Some(format!("it takes {more:.3} times the bits, so its speed counts for nothing"));
        }
        rows.push(speed);
        let one = figure(label, Ok(vec![1.0]));
        rows.push(Row::new(&bits_title, Unit::Multiple, vec![more], vec![one], Bar::AtMost(1.0), notes));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 50 dB and less by 0.5 for each quantiser; 6 of these half the bits.
    fn straight(qp: u32) -> Result<(f64, f64), String> {
        Ok((1e6 * (-f64::from(qp) / 6.0).exp2(), 50.0 - 0.5 * f64::from(qp)))
    }

    #[test]
    fn a_quality_lies_between_neighbours() {
        for begin in [0, 20, 27, 51] {
            let found = around(39.9, begin, straight).unwrap();
            assert_eq!(found.points.map(|point| point.qp), [20, 21], "{begin}");
            assert!((found.share - 0.2).abs() < 1e-9, "{found:?}");
            assert!((found.bits() / (1e6 * (-20.2_f64 / 6.0).exp2()) - 1.0).abs() < 1e-9, "{found:?}");
            assert!((found.seconds([1.0, 2.0]) - 1.2).abs() < 1e-9);
        }
    }

    #[test]
    fn nothing_is_extrapolated() {
        assert!(around(51.0, 27, straight).unwrap_err().contains("better than all of ours"));
        assert!(around(20.0, 27, straight).unwrap_err().contains("worse than all of ours"));
        assert_eq!(around(39.9, 27, |_| Err("gone".to_owned())), Err("gone".to_owned()));
    }
}
