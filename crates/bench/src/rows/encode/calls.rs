//! What was off-loaded before: the search of a macroblock, the half samples of a row, call by call, on the same kernels. How much
//! of a call is dispatch, and how long a job has to be to pay.

use super::clip::Clip;
use super::{QUANTISER, figure, in_turns};
use crate::harness::Bench;
use crate::harness::row::{Bar, Row, Unit, median};
use multigrain_console::Failure;
use serde_json::Value;
use std::cell::RefCell;

/// Macroblocks that are searched in a job.
const JOBS: [u32; 7] = [2, 4, 8, 16, 32, 64, 128];

/// What the thesis has of one thread: the speed of a thorough search over that of a quick one (subme 5, 2), on the host and call by
/// call off-loaded.
const THESIS: [f64; 2] = [0.568, 0.754];

/// Where a ratio over lengths of jobs reaches 1, between two that were measured; the logarithm of the length is interpolated.
fn crossing(ratios: &[(f64, f64)]) -> Option<f64> {
    let pairs = ratios.iter().zip(ratios.get(1..)?);
    let (a, b) = pairs.rev().find(|(a, b)| a.1 < 1.0 && b.1 >= 1.0)?;
    let share = (1.0 - a.1) / (b.1 - a.1);
    Some((a.0.ln() + (b.0.ln() - a.0.ln()) * share).exp())
}

/// Rows beside calls, and beside jobs of so many searches.
pub(super) fn rows(bench: &Bench<'_>, clip: &Clip<'_>) -> Result<Vec<Row>, Failure> {
    let called = RefCell::new(Value::Null);
    let run = |threads: u32, cut: &str, preset: &str| {
        let run = clip.ours("ours.h264", threads, cut, QUANTISER, &["--preset", preset])?;
        if cut == "1" && preset == "medium" {
            called.replace(run.answer);
        }
        Ok(run.seconds)
    };
    let columns =
        clip.ours("ours.h264", clip.threads, "rows", QUANTISER, &[])?.answer["width"].as_f64().unwrap_or(0.0) / 16.0;
    // Of longer jobs only one is in flight beside what is coded.
    let jobs: Vec<u32> = JOBS.into_iter().filter(|length| f64::from(2 * length) <= columns).collect();
    let cuts: Vec<String> = jobs.iter().map(u32::to_string).collect();
    let mut kinds = vec![
        (clip.threads, "rows", "medium"),
        (clip.threads, "1", "medium"),
        (1, "rows", "medium"),
        (1, "rows", "fast"),
        (clip.threads, "1", "fast"),
    ];
    kinds.extend(cuts.iter().map(|cut| (clip.threads, cut.as_str(), "medium")));
    let turns = kinds.iter().map(|&(threads, cut, preset)| Box::new(move || run(threads, cut, preset)) as _).collect();
    let samples = in_turns(bench, turns, &mut [])?;
    let medians: Vec<f64> = samples.iter().map(|samples| median(samples).unwrap_or(f64::NAN)).collect();
    let (alone, by_jobs) = (medians[2], &medians[5..]);
    let called = called.into_inner();
    let number = |key: &str| called[key].as_f64().unwrap_or(f64::NAN);
    let (count, took, waited) = (number("calls"), number("call_nanoseconds"), number("wait_nanoseconds"));
    let search_us = took / count / 1e3;
    let ratios: Vec<(f64, f64)> =
        jobs.iter().zip(by_jobs).map(|(length, seconds)| (f64::from(*length) * search_us, alone / seconds)).collect();
    let shown: Vec<String> =
        jobs.iter().zip(&ratios).map(|(length, (us, ratio))| format!("{length} ({us:.0} us) {ratio:.2}")).collect();
    let crosses = match (crossing(&ratios), ratios.last()) {
        (Some(us), _) => format!("they pay from {us:.0} us on, {:.0} macroblocks", us / search_us),
        (None, Some(last)) if last.1 >= 1.0 => "all of them pay".to_owned(),
        (None, _) => "none of them pays".to_owned(),
    };
    let notes = vec![
        format!(
            "{}: the same stream; a worker that codes, and one that is called: {count} calls, which take {search_us:.2} us and \
             are waited for {:.2} us, {:.0} % of it dispatch; {:.2} of the speed of one worker without calls (the thesis: more \
             than half of a call was dispatch, and the off-loaded search slower than the host alone in every setting)",
            clip.name,
            waited / count / 1e3,
            100.0 * (1.0 - took / waited),
            alone / medians[1],
        ),
        format!(
            "medium over fast, in speed: {:.2} by one worker, {:.2} call by call (the thesis, subme 5 over 2: {} and {})",
            medians[3] / alone,
            medians[4] / medians[1],
            THESIS[0],
            THESIS[1]
        ),
        format!(
            "jobs of so many searches, while those before are coded, over one worker in speed: {}; {crosses} (the thesis names \
             no length: a search was too short, a row of half samples long enough)",
            shown.join(", ")
        ),
    ];
    let mut samples = samples.into_iter();
    let (ours, calls) = (samples.next().unwrap_or_default(), samples.next().unwrap_or_default());
    Ok(vec![Row::new(
        "encode-calls",
        Unit::Seconds,
        ours,
        vec![figure("call by call", Ok(calls))],
        Bar::RatioAtLeast(1.0),
        notes,
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_lies_between_two_that_were_measured() {
        let found = crossing(&[(2.0, 0.5), (4.0, 0.8), (16.0, 1.2), (32.0, 1.5)]).unwrap();
        assert!((found - 8.0).abs() < 1e-9, "{found}");
        assert_eq!(crossing(&[(2.0, 0.5), (4.0, 0.8)]), None);
        assert_eq!(crossing(&[(2.0, 1.5), (4.0, 1.8)]), None);
        assert_eq!(crossing(&[]), None);
    }
}
