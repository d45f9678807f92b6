//! Pairwise exchange among any number of equals: rounds of doubling distance among the largest power of two of them,
//! each of the others doubled up with one of those before and after.

/// Who meets whom among `n` equals, called by their positions 0 to n - 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    n: u32,
    /// The largest power of two that is not larger than `n`.
    core: u32,
}

/// What one of them does, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// Outside of the core: hands in at a position, and hears from it at the end.
    Enter(u32),
    /// In the core: takes in what a position outside hands in.
    Admit(u32),
    /// In the core: both hand in, both take in.
    Swap(u32),
    /// In the core: tells a position outside the end.
    Dismiss(u32),
}

impl Exchange {
    pub(crate) fn among(n: usize) -> Exchange {
        let n = n as u32;
        Exchange { n, core: 1 << n.ilog2() }
    }

    pub(crate) fn meetings(self, position: u32) -> Vec<Meeting> {
        if position >= self.core {
            return vec![Meeting::Enter(position - self.core)];
        }
        let double = Some(position + self.core).filter(|&outside| outside < self.n);
        let swaps = (0..self.core.ilog2()).map(|s| Meeting::Swap(position ^ (1 << s)));
        double.map(Meeting::Admit).into_iter().chain(swaps).chain(double.map(Meeting::Dismiss)).collect()
    }

    /// Which bit `sender` has at `receiver`, counted from 0.
    pub(crate) fn bit(self, receiver: u32, sender: u32) -> u32 {
        if receiver >= self.core {
            0
        } else if sender >= self.core {
            self.core.ilog2()
        } else {
            (receiver ^ sender).trailing_zeros()
        }
    }

    /// How many bits `receiver` needs.
    pub(crate) fn bits(self, receiver: u32) -> u32 {
        match receiver {
            outside if outside >= self.core => 1,
            doubled if doubled + self.core < self.n => self.core.ilog2() + 1,
            _ => self.core.ilog2(),
        }
    }
}
