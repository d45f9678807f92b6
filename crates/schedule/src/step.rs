//! The steps that a schedule consists of.

use std::fmt;

/// A bit in the signal register of a participant.
///
/// Registers are in OR mode: each sender has a bit of its own at its receiver. Half of a register's bits serve the
/// rounds of even number and half those of odd number, counted over the life of the group (rounds of eager operations,
/// which use no bits, do not count), so that the signals of consecutive operations cannot be mistaken for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bit {
    /// Whether it lies in the *other* half than that of the round. Always false in schedules that this crate makes.
    pub other_half: bool,
    /// Which bit of the half, from 0, dense in the senders of the receiver. [`crate::Registers`] says in which
    /// register it lies.
    pub index: u32,
}

impl Bit {
    pub(crate) const fn new(index: u32) -> Bit {
        Bit { other_half: false, index }
    }

    /// Whether it lies in the half of rounds of odd number, in the round of this number.
    pub const fn is_odd(self, round: u64) -> bool {
        (round % 2 == 1) != self.other_half
    }
}

/// A part of a participant's buffer, as long as a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Area {
    /// Which area. For areas that do not alternate, 0 is the payload and the others hold what was got.
    pub index: u32,
    /// How many there are of it. Areas that differ in this never share memory.
    pub copies: Copies,
}

/// How many areas there are of one name, and which of them serves a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Copies {
    /// The same for all rounds.
    One,
    /// One for rounds of even and one for rounds of odd number, eager ones not counted.
    Two,
    /// As many as [`crate::Request::ring`] says, one after the other for the eager rounds, the others not counted.
    Ring,
}

impl Area {
    /// Where a participant's contribution lies, and a broadcast message.
    pub const PAYLOAD: Area = Area { index: 0, copies: Copies::One };
}

/// One step of one participant. Transfers (put and get) are started and go on by themselves; flush, combine and
/// release wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Sets a bit at another participant. What the sender did before is visible to whoever awaits it, but for its
    /// transfers that have not been waited for.
    Signal {
        /// Receiver.
        to: u32,
        /// Bit at the receiver.
        bit: Bit,
    },
    /// Waits until a bit of the participant's own register is set, and clears it.
    Await {
        /// Who sets it.
        from: u32,
        /// The bit.
        bit: Bit,
    },
    /// Starts a transfer from an area of one's own to another participant's area.
    Put {
        /// Whose area is written.
        to: u32,
        /// One's own area.
        source: Area,
        /// Area of `to`.
        target: Area,
    },
    /// Starts a transfer from another participant's area to an area of one's own.
    Get {
        /// Whose area is read.
        from: u32,
        /// Area of `from`.
        source: Area,
        /// One's own area.
        target: Area,
    },
    /// Waits until every transfer that this participant started is complete.
    Flush,
    /// Waits until the gets into the operands are complete, and stores left (+) right, element by element.
    Combine {
        /// Where the result goes; may be one of the operands.
        into: Area,
        /// Left operand.
        left: Area,
        /// Right operand.
        right: Area,
    },
    /// Waits until every transfer with another participant that this one started is complete, and sets a bit there:
    /// whoever is released may leave.
    Release {
        /// Receiver.
        to: u32,
        /// Bit at the receiver.
        bit: Bit,
    },
    /// Eager rounds, first of all: waits until everybody who expected something from this participant in the last round
    /// that used the same place of the ring has told that it was taken. Then the areas of the ring may be written.
    Reserve,
    /// Eager rounds: whoever expects something from this participant in this round finds it in the ring. What the
    /// participant did before is visible to them, but for its transfers that have not been waited for.
    Offer,
    /// Eager rounds: waits until another participant has offered in this round.
    Expect {
        /// Who offers.
        from: u32,
    },
    /// Eager rounds, last of all: nothing is needed any more of what others offered in this round. It is told in some
    /// rounds ([`crate::Ring::tells`]), for those before at once.
    Taken,
}

impl fmt::Display for Bit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bit {}{}", self.index, if self.other_half { " of the other half" } else { "" })
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copies = match self.copies {
            Copies::One => "",
            Copies::Two => "'",
            Copies::Ring => " of the ring",
        };
        write!(f, "area {}{copies}", self.index)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Signal { to, bit } => write!(f, "signal {to} {bit}"),
            Step::Await { from, bit } => write!(f, "await {from} {bit}"),
            Step::Put { to, source, target } => write!(f, "put {source} to {to} {target}"),
            Step::Get { from, source, target } => write!(f, "get {target} from {from} {source}"),
            Step::Flush => f.write_str("flush"),
            Step::Combine { into, left, right } => write!(f, "combine {into} = {left} (+) {right}"),
            Step::Release { to, bit } => write!(f, "release {to} {bit}"),
            Step::Reserve => f.write_str("reserve"),
            Step::Offer => f.write_str("offer"),
            Step::Expect { from } => write!(f, "expect {from}"),
            Step::Taken => f.write_str("taken"),
        }
    }
}
