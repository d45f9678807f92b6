//! What was measured, in a file: a line of JSON for each run, so that a comparison that takes long is made in parts.

use multigrain::rooms::team::strands::Policy;
use multigrain_console::Failure;
use multigrain_console::write_whole;
use serde_json::{Value, json};
use std::path::PathBuf;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) searches: usize,
    /// Runs of one turn were made one after the other.
    pub(super) turn: u32,
    pub(super) policy: Policy,
    pub(super) seconds: f64,
}

/// All runs of one comparison, and their file if there is one. What belongs to other comparisons stays in it as it is.
#[derive(Debug)]
pub(super) struct Samples {
    file: Option<PathBuf>,
    /// What a comparison is known by: the alignment and the number of workers.
    alignment: String,
    workers: usize,
    others: Vec<String>,
    pub(super) all: Vec<Sample>,
}

impl Samples {
    /// Those of this comparison that are in the file already.
    pub(super) fn load(file: Option<PathBuf>, alignment: &str, workers: usize) -> Result<Samples, Failure> {
        let mut samples =
            Samples { file, alignment: alignment.to_owned(), workers, others: Vec::new(), all: Vec::new() };
        let Some(path) = &samples.file else { return Ok(samples) };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(samples),
            Err(e) => return Err(Failure::Request(format!("--samples {}: {e}", path.display()))),
        };
        for (number, line) in text.lines().enumerate() {
            let read = serde_json::from_str(line).ok().and_then(|value: Value| Some((value.clone(), sample(&value)?)));
            let Some((value, sample)) = read else {
                let (shown, line) = (path.display(), number + 1);
                let what = format!("--samples {shown}, line {line} is no sample of this bench; name another file");
                return Err(Failure::Request(what));
            };
            if value["alignment"] == alignment && value["workers"] == workers {
                samples.all.push(sample);
            } else {
                samples.others.push(line.to_owned());
            }
        }
        Ok(samples)
    }

    /// The first turn that has not been taken for so many searches.
    pub(super) fn next_turn(&self, searches: usize) -> u32 {
        self.all.iter().filter(|s| s.searches == searches).map(|s| s.turn + 1).max().unwrap_or(0)
    }

    /// Writes the file anew, if there is one.
    pub(super) fn save(&self) -> Result<(), Failure> {
        let Some(path) = &self.file else { return Ok(()) };
        let own = self.all.iter().map(|s| {
            let (policy, alignment) = (s.policy.to_string(), &self.alignment);
            json!({ "alignment": alignment, "workers": self.workers, "searches": s.searches, "turn": s.turn,
                "policy": policy, "seconds": s.seconds })
            .to_string()
        });
        let text: String = self.others.iter().cloned().chain(own).map(|line| line + "\n").collect();
        write_whole(path, &text)
    }

    /// Seconds of a policy for so many searches, by turn.
    pub(super) fn of(&self, searches: usize, policy: Policy) -> Vec<(u32, f64)> {
        let found = self.all.iter().filter(|s| s.searches == searches && s.policy == policy);
        found.map(|s| (s.turn, s.seconds)).collect()
    }

    /// The time of one policy over that of another in each turn that both have, ascending.
    pub(super) fn ratios(&self, searches: usize, policy: Policy, to: Policy) -> Vec<f64> {
        let base = self.of(searches, to);
        let in_turn = |turn: u32| base.iter().find(|(t, _)| *t == turn).map(|(_, seconds)| *seconds);
        let own = self.of(searches, policy);
        let mut ratios: Vec<f64> = own.iter().filter_map(|&(turn, s)| Some(s / in_turn(turn)?)).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }
}

fn sample(value: &Value) -> Option<Sample> {
    Some(Sample {
        searches: usize::try_from(value["searches"].as_u64()?).ok()?,
        turn: u32::try_from(value["turn"].as_u64()?).ok()?,
        policy: value["policy"].as_str()?.parse().ok()?,
        seconds: value["seconds"].as_f64().filter(|s| s.is_finite() && *s > 0.0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_others_stay() {
        let place = tempfile::tempdir().unwrap();
        let file = Some(place.path().join("samples"));
        let load = |what: &str| Samples::load(file.clone(), what, 2).unwrap();
        let sample = |turn, policy, seconds| Sample { searches: 3, turn, policy, seconds };
        let mut first = load("a");
        first.all.extend([sample(0, Policy::Edtlp, 2.0), sample(0, Policy::Mgps, 1.0)]);
        first.save().unwrap();
        let mut other = load("b");
        assert!(other.all.is_empty());
        other.all.push(sample(0, Policy::Llp { workers_per_loop: 2 }, 7.0));
        other.save().unwrap();
        let mut second = load("a");
        assert_eq!((second.next_turn(3), second.next_turn(4)), (1, 0));
        second.all.extend([sample(1, Policy::Edtlp, 4.0), sample(1, Policy::Mgps, 3.0), sample(2, Policy::Mgps, 9.0)]);
        second.save().unwrap();
        let all = load("a");
        assert_eq!(all.ratios(3, Policy::Mgps, Policy::Edtlp), [0.5, 0.75]);
        assert_eq!(load("b").all, other.all);
        assert_eq!(load("a").all, second.all);
    }

    #[test]
    fn what_is_no_sample_is_refused_by_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("samples");
        for line in ["{}", "no", r#"{"searches":1,"turn":0,"policy":"edtlp","seconds":-1}"#] {
            std::fs::write(&path, format!("{line}\n")).unwrap();
            let Err(Failure::Request(why)) = Samples::load(Some(path.clone()), "a", 2) else { panic!("{line}") };
            assert!(why.contains("line 1"), "{why}");
        }
    }
}
