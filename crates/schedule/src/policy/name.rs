//! The policies' names, and why there is none of a name.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::workers::WORKERS_MAX;

/// A policy, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Each strand has its worker.
    Static,
    /// Each task on one worker, whichever is idle.
    Edtlp,
    /// One strand at a time, its loops on so many workers.
    Llp {
        /// Workers of a loop.
        workers_per_loop: u32,
    },
    /// As many strands as there are groups of so many workers, each with its loops on one group.
    Hybrid {
        /// Workers of a loop.
        workers_per_loop: u32,
    },
    /// Loop parallelism when the last off-loads left at least half of the workers idle.
    Mgps,
    /// Workers to loops by share and by measured gain.
    Marginal,
}

/// Why there is no machine of this policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error(
        "'{text}' names no policy; write static, edtlp, llp:K, hybrid:K, mgps or marginal, where K is the number of \
         workers of a loop, as in hybrid:2"
    )]
    Unknown {
        /// What was written.
        text: String,
    },
    /// A policy of fixed loop teams without the number of workers, or with what is no number of workers.
    #[error("{name} needs the number of workers of a loop, 1 or more, as in {name}:2; '{text}' was written")]
    Degree {
        /// "llp" or "hybrid".
        name: &'static str,
        /// What was written.
        text: String,
    },
    /// Loop teams larger than all workers.
    #[error(
        "{policy} wants {wanted} workers for each loop, but there are {workers}; write {wanted} workers or more, or a smaller K"
    )]
    TeamTooLarge {
        /// The policy.
        policy: Policy,
        /// Workers of a loop.
        wanted: u32,
        /// Workers that there are.
        workers: u32,
    },
    /// No workers, or more than a machine knows.
    #[error("a policy decides for 1 to {WORKERS_MAX} workers; {workers} were asked for")]
    Workers {
        /// Workers asked for.
        workers: u32,
    },
}

impl Policy {
    /// How many strands may be in progress at once on so many workers: those that have begun and not ended. Whoever
    /// drives a machine begins no more than these; the others wait whole, and take their turn when one ends. So
    /// many processes would the paper's policies have started.
    pub fn strands_max(self, workers: u32) -> u32 {
        match self {
            Policy::Llp { .. } => 1,
            Policy::Hybrid { workers_per_loop } => (workers / workers_per_loop.max(1)).max(1),
            Policy::Static | Policy::Edtlp | Policy::Mgps | Policy::Marginal => workers,
        }
    }

    /// The one worker that executes all tasks of a strand, if the policy says so.
    pub fn home(self, strand: u32, workers: u32) -> Option<u32> {
        (self == Policy::Static).then(|| strand % workers.max(1))
    }

    /// The policies that do not adapt, on so many workers: among them an oracle chooses.
    pub fn fixed(workers: u32) -> Vec<Policy> {
        let teams = (2..=workers).filter(|k| k.is_power_of_two() || *k == workers);
        let mut all = vec![Policy::Static, Policy::Edtlp];
        all.extend(teams.clone().filter(|k| k * 2 <= workers).map(|k| Policy::Hybrid { workers_per_loop: k }));
        all.extend(teams.map(|k| Policy::Llp { workers_per_loop: k }));
        all
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Policy, PolicyError> {
        let (name, degree) = match text.split_once(':') {
            Some((name, degree)) => (name, Some(degree)),
            None => (text, None),
        };
        let workers_per_loop = |name| {
            let wrong = || PolicyError::Degree { name, text: text.to_owned() };
            let workers = degree.and_then(|degree| degree.parse::<u32>().ok()).ok_or_else(wrong)?;
            if workers == 0 { Err(wrong()) } else { Ok(workers) }
        };
        match (name, degree) {
            ("static", None) => Ok(Policy::Static),
            ("edtlp", None) => Ok(Policy::Edtlp),
            ("llp", _) => Ok(Policy::Llp { workers_per_loop: workers_per_loop("llp")? }),
            ("hybrid", _) => Ok(Policy::Hybrid { workers_per_loop: workers_per_loop("hybrid")? }),
            ("mgps", None) => Ok(Policy::Mgps),
            ("marginal", None) => Ok(Policy::Marginal),
            _ => Err(PolicyError::Unknown { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Static => f.write_str("static"),
            Policy::Edtlp => f.write_str("edtlp"),
            Policy::Llp { workers_per_loop } => write!(f, "llp:{workers_per_loop}"),
            Policy::Hybrid { workers_per_loop } => write!(f, "hybrid:{workers_per_loop}"),
            Policy::Mgps => f.write_str("mgps"),
            Policy::Marginal => f.write_str("marginal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for name in ["static", "edtlp", "llp:1", "llp:8", "hybrid:2", "mgps", "marginal"] {
            assert_eq!(name.parse::<Policy>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "EDTLP", "mgps:2", "edtlp:", "linux", "static:1"] {
            assert!(matches!(name.parse::<Policy>(), Err(PolicyError::Unknown { .. })), "{name}");
        }
        for name in ["llp", "llp:", "llp:0", "hybrid:-1", "hybrid:2:2", "hybrid:99999999999"] {
            assert!(matches!(name.parse::<Policy>(), Err(PolicyError::Degree { .. })), "{name}");
        }
        let message = "hybrid:none".parse::<Policy>().unwrap_err().to_string();
        assert_eq!(
            message,
            "hybrid needs the number of workers of a loop, 1 or more, as in hybrid:2; 'hybrid:none' was written"
        );
    }

    #[test]
    fn the_oracle_chooses_among_these() {
        let names = |workers| Policy::fixed(workers).iter().map(Policy::to_string).collect::<Vec<_>>();
        assert_eq!(names(1), ["static", "edtlp"]);
        assert_eq!(names(2), ["static", "edtlp", "llp:2"]);
        assert_eq!(names(8), ["static", "edtlp", "hybrid:2", "hybrid:4", "llp:2", "llp:4", "llp:8"]);
    }
}
