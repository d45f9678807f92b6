//! Video as H.264 (constrained baseline or main), its work cut at the grain at which a second worker pays.
//!
//! In come pictures (YUV4MPEG2, or samples without header); out goes a stream of bytes or an MP4 file, the same whatever the
//! number of workers and the policy. Every stream decodes to exactly the pictures that the encoder predicted from.
//!
//! # The cut
//!
//! The thesis that this follows off-loaded an encoder's half-sample filter and motion search call by call, and became slower:
//! a call was shorter than its dispatch, and a search had to wait for the macroblock before, whose vector predicts its own.
//! Here a job is a row of macroblocks, some hundred times as long, in three parts ([`wave`]):
//!
//! 1. *search* ([`search`]): a field of vectors for the row, with what is left after each, for the whole and its parts. It
//!    estimates what vectors cost, so that it waits for no other row of its picture.
//! 2. *code* ([`coder`]): each macroblock after the one before it and two behind the row above. What was found is weighed again
//!    with the true predictors, beside prediction from the picture itself; what is left is transformed and written. Bits of a
//!    row are joined later, since variable-length codes carry nothing but the run of skipped macroblocks from row to row;
//!    arithmetic codes are written last of all, row behind row, beside the rows of other pictures.
//! 3. *smooth* ([`smooth`]) and *half samples* ([`picture`]): what the next picture is predicted from, a row behind.
//!
//! Several pictures are under way at once: each is begun in the order of decoding, and its rows when enough of those before it
//! is complete. Pictures that are predicted from two sides come behind the later of these; none is predicted from them, so
//! nothing waits for them ([`encoder`]). Who would wait for a picture before does rows of the first picture that does not wait. A picture on its way is an off-loaded task of a strand, its rows are the task's loop
//! ([`run`]): the policy decides whether each picture has one worker (frames), or several share its rows (loops).
//!
//! # The four resources
//!
//! - *processor*: nearly all of it; some 3 us a macroblock, most of them search and transforms, by kernels for each
//!   instruction set ([`kernel`]).
//! - *memory*: a picture is four planes of luma (whole samples and three of halves) and two of chroma, 4.5 bytes a sample, of
//!   which those under way and those that they are predicted from are kept, beside what is to be encoded. A row reads those
//!   rows of other pictures that its vectors lead to, which its neighbours have brought into the caches.
//! - *disk*: the input is read once, at 1.5 bytes a sample, by whoever begins a picture; the output is small.
//! - *interconnect*: the memory bus, and a signal a macroblock from row to row.

pub mod bits;
pub mod cabac;
pub mod cavlc;
pub mod coder;
pub mod encoder;
pub mod error;
pub mod headers;
pub mod input;
pub mod intra;
pub mod kernel;
pub mod levels;
pub mod motion;
pub mod output;
pub mod picture;
pub mod plane;
pub mod quantiser;
pub mod rate;
#[cfg(not(loom))]
pub mod run;
pub mod samples;
pub mod search;
#[cfg(not(loom))]
pub mod shown;
pub mod smooth;
pub mod source;
pub mod tables;
pub mod wave;
