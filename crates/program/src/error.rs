//! What calls are refused for: those that a program makes, and those that a task makes of a call.

use crate::{ElementType, Region, Shape};

/// What a call cannot be given.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArgumentError {
    /// More or fewer arguments than parameters.
    #[error("it is given {given} arguments and has {declared} parameters")]
    Count {
        /// Arguments given.
        given: usize,
        /// Parameters declared.
        declared: usize,
    },
    /// An argument that is not there.
    #[error("{param} is given argument number {number} of {count}; they are numbered from 0")]
    NoSuch {
        /// Parameter.
        param: &'static str,
        /// Number that was given.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// Elements of another type, or another number of dimensions.
    #[error(
        "{param} is {declared} in {rank} dimensions, and is given array {array}, which is {element} of shape {shape}"
    )]
    Type {
        /// Parameter.
        param: &'static str,
        /// Its type of elements.
        declared: ElementType,
        /// Its number of dimensions.
        rank: usize,
        /// Array it is given.
        array: String,
        /// The array's type of elements.
        element: ElementType,
        /// The array's shape.
        shape: Shape,
    },
    /// A block outside its array, or without elements.
    #[error("{param} is given {region} of array {array}, which has shape {shape}")]
    OutOfBounds {
        /// Parameter.
        param: &'static str,
        /// Region asked for.
        region: Region,
        /// Array it is taken from.
        array: String,
        /// Shape of the array.
        shape: Shape,
    },
    /// Arguments that do not belong together, by the notation of the task.
    #[error("{why}")]
    Shapes {
        /// Which arguments, and what is wrong with them.
        why: String,
    },
    /// What is only read is written.
    #[error("{param} is written, but {array} is an input; declare it as inout, or as a parameter that is updated")]
    WritesInput {
        /// Parameter.
        param: &'static str,
        /// The array.
        array: String,
    },
    /// What is being reduced is read.
    #[error("{param} reads {array}, which is being reduced; contribute to it, or reduce into another block")]
    ReadsReduced {
        /// Parameter.
        param: &'static str,
        /// The array.
        array: String,
    },
    /// What holds nothing yet is read.
    #[error(
        "{param} reads {region} of {array}, which the task only writes, and the calls before do not write all of that; \
         write it first, or declare {array} as a parameter that is updated"
    )]
    ReadsUnwritten {
        /// Parameter.
        param: &'static str,
        /// What it is given.
        region: Region,
        /// The array.
        array: String,
    },
    /// Two arguments share elements and one is written.
    #[error("{first} and {second} overlap in array {array} and one of them is written; pass disjoint blocks")]
    Aliased {
        /// First parameter.
        first: &'static str,
        /// Second parameter.
        second: &'static str,
        /// The array.
        array: String,
    },
}

/// A task's inner variant made something of a call that is no part of it: a mistake in the task, not in its input.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("task {task}, called on {on}: {problem}; this is a mistake in the task")]
pub struct SplitError {
    /// The task.
    pub task: &'static str,
    /// What it was called on.
    pub on: String,
    /// What is wrong.
    pub problem: SplitProblem,
}

/// What is wrong with the calls that a call was taken apart into.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SplitProblem {
    /// A sub-call that cannot be.
    #[error("call {call} of its {of}, of {callee}, cannot be: {source}")]
    Call {
        /// Its number.
        call: usize,
        /// What made it: `split` or `stages`.
        of: &'static str,
        /// Task called.
        callee: &'static str,
        /// What it cannot be given.
        source: ArgumentError,
    },
    /// Nothing would be done.
    #[error("its split makes no call")]
    Empty,
    /// Not all is written of what the task writes.
    #[error("the calls of its {of} write less than all of {param}, which has shape {shape}")]
    Unwritten {
        /// Parameter.
        param: &'static str,
        /// What made them: `split` or `stages`.
        of: &'static str,
        /// The parameter's shape.
        shape: Shape,
    },
    /// Contributions to blocks that are not the same, and not apart.
    #[error(
        "its split contributes to blocks of {param} that overlap and differ; blocks that are reduced are equal or disjoint"
    )]
    Crossing {
        /// Parameter.
        param: &'static str,
    },
    /// A tunable that no block can have.
    #[error("its tunable {axis} has extent 0, and it has elements to work on: an extent is the length of an axis")]
    NoExtent {
        /// Name of the tunable.
        axis: &'static str,
    },
    /// A split that leaves as much to be done as there was, and more.
    #[error("its split makes {calls} calls, of which call {call} is the whole call again")]
    Again {
        /// Number of the sub-call.
        call: usize,
        /// How many there are.
        calls: usize,
    },
    /// Other calls than those that were counted before.
    #[error(
        "its split makes {calls} calls, where it was counted to make {most} at most: it makes others each time it is asked"
    )]
    Uncounted {
        /// How many there are.
        calls: u64,
        /// How many there may be.
        most: u64,
    },
    /// Stages of stages without end.
    #[error("it and its stages are taken apart into more than {most} calls")]
    Stages {
        /// The most calls.
        most: usize,
    },
    /// Splitting along the reduced axis goes on longer than it should, or does not end.
    #[error(
        "asked for blocks of {asked} along its reduced axis {axis}, its split makes call {call}, which is {length} long"
    )]
    Endless {
        /// Name of the tunable.
        axis: &'static str,
        /// What it was set to.
        asked: u64,
        /// Number of the sub-call.
        call: usize,
        /// Its length.
        length: u64,
    },
    /// A contribution to one of several reduced parameters that is none to another.
    #[error(
        "split along its reduced axis alone, call {call} contributes nothing to {param}; each call contributes to all that is reduced"
    )]
    Missing {
        /// Number of the sub-call.
        call: usize,
        /// Parameter that is reduced.
        param: &'static str,
    },
    /// Splitting along the reduced axis alone cuts what is reduced.
    #[error("split along its reduced axis alone, call {call} is given {region} of {param}, and not the whole")]
    Cut {
        /// Number of the sub-call.
        call: usize,
        /// Parameter that is reduced.
        param: &'static str,
        /// What it is given of it.
        region: Region,
    },
    /// Partial results that cannot be counted.
    #[error("{count} contributions to {param} have more bytes than 2^63")]
    TooLarge {
        /// Parameter that is reduced.
        param: &'static str,
        /// How many contributions one block of it has.
        count: u64,
    },
}
