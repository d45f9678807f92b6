//! How jobs are handed out, as it is asked for.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::batching::Batching;

/// How jobs get to the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Dispatch {
    /// A bounded queue that the host fills and from which each worker takes its next batch.
    #[default]
    Queue,
    /// Room for one batch at each worker, filled again by the host when the batch is done.
    Mailbox,
}

/// No way to hand out jobs has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' names no way to hand out jobs; write queue or mailbox")]
pub struct UnknownDispatch {
    /// What was written.
    pub text: String,
}

impl FromStr for Dispatch {
    type Err = UnknownDispatch;

    fn from_str(text: &str) -> Result<Dispatch, UnknownDispatch> {
        match text {
            "queue" => Ok(Dispatch::Queue),
            "mailbox" => Ok(Dispatch::Mailbox),
            _ => Err(UnknownDispatch { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dispatch::Queue => "queue",
            Dispatch::Mailbox => "mailbox",
        })
    }
}

/// What a [`super::Dispatcher`] decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How jobs get to the workers.
    pub dispatch: Dispatch,
    /// Jobs handed over at once.
    pub batch: Batching,
    /// Jobs in flight at most; zero is taken as one.
    pub in_flight: u32,
    /// Workers beside the host.
    pub workers: u32,
    /// Whether the host executes jobs when it has nothing to hand out. Without workers it always does.
    pub host_works: bool,
}

impl Rules {
    /// Who executes jobs: the workers, and the host if it does.
    pub fn executors(&self) -> u32 {
        self.workers + u32::from(self.host_executes())
    }

    /// Whether the host executes jobs.
    pub fn host_executes(&self) -> bool {
        self.host_works || self.workers == 0
    }

    /// The most jobs of a batch of adaptive size: no executor's share of what may be in flight is one batch only.
    pub fn batch_max(&self) -> u32 {
        (self.in_flight / (2 * self.executors())).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_no_other() {
        for name in ["queue", "mailbox"] {
            assert_eq!(name.parse::<Dispatch>().unwrap().to_string(), name);
        }
        let message = "fifo".parse::<Dispatch>().unwrap_err().to_string();
        assert_eq!(message, "'fifo' names no way to hand out jobs; write queue or mailbox");
    }
}
