//! What is counted in eager rounds. Threads, both simulators and the checker count by it.

/// The places of a participant's ring, of which each eager round uses the next. A participant counts the rounds in which it has
/// offered, and those of which it has taken what others offered; a place is free again when all who read what was offered there
/// last have taken as much as was counted then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring(pub u32);

impl Ring {
    /// That of plans and teams: enough places that whoever reads them finds several rounds at once, few enough that they stay in
    /// first level caches.
    pub const USUAL: Ring = Ring(8);

    /// The place that a round uses; rounds are numbered from 0.
    #[inline]
    pub const fn place(self, round: u64) -> u32 {
        if self.0 == 0 { 0 } else { (round % self.0 as u64) as u32 }
    }

    /// What is counted once a round is over: it and those before.
    #[inline]
    pub const fn count(round: u64) -> u64 {
        round + 1
    }

    /// Whether it is told in this round that it and those before were taken: every half ring, so that who offers seldom looks and
    /// never waits for whoever keeps up.
    #[inline]
    pub const fn tells(self, round: u64) -> bool {
        Ring::count(round).is_multiple_of(if self.0 < 2 { 1 } else { self.0 as u64 / 2 })
    }
}
