//! What a context tells of its turns.

/// What became of a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Did {
    /// How often it was given a processor.
    pub bound: u64,
    /// Whether a timer told it that its turn was over.
    pub timer: bool,
    /// For each turn by time that ended in a hand-over, how long after its end the context came to a look.
    pub late_ns: Vec<u64>,
    /// For each time that another gave it a processor, how long it took until the context went on.
    pub hand_over_ns: Vec<u64>,
}
