//! What a run did, in numbers.

/// How often a run did what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Tasks executed as a call on the strand's own thread, without a decision: nobody could have helped.
    pub calls: u64,
    /// Tasks executed by the strand's own thread because off-loading them does not pay, or to measure it.
    pub on_host: u64,
    /// Tasks off-loaded to one worker.
    pub on_one: u64,
    /// Tasks whose loop several workers shared.
    pub on_teams: u64,
    /// Workers of these, added up.
    pub team_workers: u64,
    /// Off-loads for which the strand was switched out.
    pub waits: u64,
    /// Times that a strand was switched in.
    pub switches: u64,
}

impl Statistics {
    pub(super) fn count(&mut self, workers: u32) {
        if workers == 1 {
            self.on_one += 1;
        } else {
            self.on_teams += 1;
            self.team_workers += u64::from(workers);
        }
    }

    pub(super) fn add(&mut self, other: &Statistics) {
        self.calls += other.calls;
        self.on_host += other.on_host;
        self.on_one += other.on_one;
        self.on_teams += other.on_teams;
        self.team_workers += other.team_workers;
        self.waits += other.waits;
        self.switches += other.switches;
    }
}
