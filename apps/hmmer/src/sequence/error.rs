//! Why sequences could not be read.

use std::path::PathBuf;

/// Why sequences could not be read. Lines count from 1, in the text after decompression.
#[derive(Debug, thiserror::Error)]
pub enum SequenceError {
    /// There is no room for the places of so many.
    #[error("there are {sequences} sequences or more, and there is too little memory to know where each is")]
    NoRoom {
        /// So many were found.
        sequences: u64,
    },
    /// The file cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file cannot be read on.
    #[error("{}, after line {line}: cannot read on: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The last line that was read.
        line: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is too long.
    #[error("{}:{line}: the line has more than {most} bytes; break sequences into lines, and shorten descriptions", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Bytes that a line may have.
        most: usize,
    },
    /// The gzip stream ends before its end.
    #[error("{}: the gzip stream ends early, after line {line}: the file is cut off; fetch or compress it again", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The last line that was read.
        line: u64,
    },
    /// The gzip stream is damaged.
    #[error("{}: the gzip stream is damaged after line {line} ({source}); fetch or compress it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The last line that was read.
        line: u64,
        /// What the decompressor said.
        source: std::io::Error,
    },
    /// What is wrong with an alignment.
    #[error("{}:{line}: {reason}", path.display())]
    Alignment {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// What was expected and what was found.
        reason: String,
    },
    /// Something stands before the first header.
    #[error(
        "{}:{line}: FASTA begins with a line '>NAME DESCRIPTION', Stockholm with '# STOCKHOLM 1.0', found '{found}'; is this a file of \
         sequences?",
        path.display()
    )]
    NoHeader {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// Its beginning.
        found: String,
    },
    /// A header without a name.
    #[error("{}:{line}: no name after '>'; every sequence needs one", path.display())]
    NoName {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
    /// A symbol that stands for no residue.
    #[error("{}:{line}:{column}: '{symbol}' in sequence {name} is no amino acid; {advice}", path.display())]
    Symbol {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The byte in the line, from 1.
        column: usize,
        /// The symbol, printable.
        symbol: String,
        /// Name of the sequence.
        name: String,
        /// What can be done.
        advice: &'static str,
    },
    /// No sequence at all.
    #[error("{} holds no sequence that has residues", path.display())]
    None {
        /// The file.
        path: PathBuf,
    },
    /// There are lengths alone.
    #[error("the sequences were not made, since their search was to be planned only")]
    Unmade,
    /// The scratch file of a large database cannot be written or read.
    #[error("cannot use a scratch file in {}: {source}; free space there, or allow more memory", directory.display())]
    Scratch {
        /// Its directory.
        directory: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}
