//! The programs `encrypt` and `decrypt`: files and pipes of any size, sealed and opened by all processors.
//!
//! In come content and recipients, or an encrypted file and identities; out goes the encrypted file or the content, whole
//! under its name or in order into a pipe. Content is encrypted as age v1 does it (so `age` and `rage` read what is
//! written here, and the other way round) or, faster, with AES-GCM as C2SP chunked encryption; [`header`] says how the key
//! gets there and how a file tells which it is. Nothing that is not authentic leaves: each chunk is checked before it is
//! written, and the last one before the output gets its name.
//!
//! | module | what it is for |
//! |---|---|
//! | [`keys`] | recipients, identities, passphrases |
//! | [`header`] | what comes before the content; the crate `age` does it |
//! | [`armor`] | encrypted files as text |
//! | [`mode`] | lengths: content, chunks, encrypted chunks |
//! | [`cipher`] | the content's key, and blocks of chunks sealed and opened with it; primitives are those of aws-lc |
//! | [`pipeline`] | blocks from an input to an output, as jobs of the worker team |
//! | [`app`] | the two programs |
//! | [`mod@bench`] | what `multigrain bench encrypt` measures within one process |
//!
//! No primitive of cryptography is written here, and no file is trusted before it is authenticated.

pub mod app;
pub mod armor;
pub mod bench;
pub mod cipher;
pub mod error;
pub mod header;
pub mod keys;
pub mod mode;
pub mod pipeline;

pub use error::Error;
pub use mode::Mode;
