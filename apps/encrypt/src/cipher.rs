//! The content's key, and chunks sealed and opened with it.

use crate::mode::{Mode, TAG_BYTES};
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA512, KeyType, Prk, Salt};
use zeroize::Zeroizing;

/// Bytes of age's file key, from which all other keys are derived.
pub const FILE_KEY_BYTES: usize = 16;

/// Bytes of the salt of an AES mode's message.
pub const SALT_BYTES: usize = 24;

/// Bytes of the commitment to the key of an AES mode's message.
pub const COMMITMENT_BYTES: usize = 32;

/// What info begins with (c2sp.org/chunked-encryption, "Key derivation").
const INFO: &[u8] = b"c2sp.org/chunked-encryption@v1+";

/// The key of one message's content. The library zeroes its own part of it when it is dropped.
#[derive(Debug)]
pub struct ContentKey {
    mode: Mode,
    key: LessSafeKey,
    base: Zeroizing<[u8; NONCE_LEN]>,
}

/// Where and how encrypted content is not what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first chunk that cannot be opened, counted from 0; of an extended message, the one with which it ends.
    pub chunk: u64,
    /// What was found.
    pub kind: Kind,
}

/// What can be wrong with encrypted content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A chunk is not authentic in its place.
    Changed,
    /// The last chunk is not authentic: it was changed, or the input ends too early.
    Ending,
    /// The input ends before the message does.
    Truncated,
    /// The message ends before the input does.
    Extended,
}

/// The length of what HKDF gives.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand (RFC 5869): fills the key.
pub(crate) fn expand(prk: &Prk, info: &[&[u8]], key: &mut [u8]) {
    let okm = prk.expand(info, Length(key.len())).expect("shorter than 255 hashes");
    okm.fill(key).expect("as long as asked for");
}

fn algorithm(mode: Mode) -> &'static Algorithm {
    match mode {
        Mode::Age => &CHACHA20_POLY1305,
        Mode::Aes128 => &AES_128_GCM,
        Mode::Aes256 => &AES_256_GCM,
    }
}

impl ContentKey {
    fn new(mode: Mode, key: &[u8], base: [u8; NONCE_LEN]) -> ContentKey {
        let key = UnboundKey::new(algorithm(mode), key).expect("a key of the mode's length");
        ContentKey { mode, key: LessSafeKey::new(key), base: Zeroizing::new(base) }
    }

    /// The key of an age payload (c2sp.org/age, "Payload"): HKDF-SHA-256 of the file key, with the payload's nonce as
    /// salt.
    pub fn age(file_key: &[u8; FILE_KEY_BYTES], nonce: &[u8; 16]) -> ContentKey {
        let prk = Salt::new(HKDF_SHA256, nonce).extract(file_key);
        let mut key = Zeroizing::new([0; 32]);
        expand(&prk, &[b"payload"], &mut *key);
        ContentKey::new(Mode::Age, &*key, [0; NONCE_LEN])
    }

    /// The key of a message of C2SP chunked encryption under an input key as long as the cipher's, and the commitment
    /// to it, which stands behind the salt.
    ///
    /// # Panics
    /// If the mode is age's or the input key has another length.
    pub fn chunked(
        mode: Mode,
        input_key: &[u8],
        salt: &[u8; SALT_BYTES],
        context: &[u8],
    ) -> (ContentKey, [u8; COMMITMENT_BYTES]) {
        assert!(mode != Mode::Age && input_key.len() == mode.key_bytes(), "an input key of the cipher's length");
        let prk = Prk::new_less_safe(HKDF_SHA512, input_key);
        let info = [INFO, mode.aead().as_bytes(), &[0], salt, context];
        let mut derived = Zeroizing::new(vec![0; mode.key_bytes() + NONCE_LEN + COMMITMENT_BYTES]);
        expand(&prk, &info, &mut derived);
        let (key, rest) = derived.split_at(mode.key_bytes());
        let (base, commitment) = rest.split_at(NONCE_LEN);
        let base = base.try_into().expect("split there");
        (ContentKey::new(mode, key, base), commitment.try_into().expect("split there"))
    }

    /// The mode that the key is of.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The nonce of a chunk. No two chunks of a message have the same, and no two messages the same key.
    fn nonce(&self, chunk: u64, last: bool) -> Nonce {
        let mut nonce = *self.base;
        match self.mode {
            // A counter of 11 bytes and a byte that marks the last chunk.
            Mode::Age => {
                nonce[3..11].copy_from_slice(&chunk.to_be_bytes());
                nonce[11] = u8::from(last);
            }
            Mode::Aes128 | Mode::Aes256 => {
                nonce[4..].iter_mut().zip(chunk.to_be_bytes()).for_each(|(byte, counter)| *byte ^= counter);
            }
        }
        Nonce::assume_unique_for_key(nonce)
    }

    /// Seals a block: content that begins with the chunk `first`, whole chunks unless the message ends with it.
    /// Gives the number of bytes of `sealed` that it became.
    ///
    /// # Panics
    /// If `sealed` is too short.
    pub fn seal(&self, first: u64, ends: bool, content: &[u8], sealed: &mut [u8]) -> usize {
        debug_assert!(ends || content.len().is_multiple_of(self.mode.chunk_bytes()));
        let mut pieces = content.chunks(self.mode.chunk_bytes()).peekable();
        let (mut chunk, mut at) = (first, 0);
        let mut one = |chunk: u64, last: bool, piece: &[u8]| {
            let (text, rest) = sealed[at..].split_at_mut(piece.len());
            let nonce = self.nonce(chunk, last);
            let done =
                self.key.seal_out_of_place_scatter(nonce, Aad::empty(), piece, text, &[], &mut rest[..TAG_BYTES]);
            done.expect("chunks are far below the cipher's limits");
            at += piece.len() + TAG_BYTES;
        };
        while let Some(piece) = pieces.next() {
            one(chunk, ends && pieces.peek().is_none(), piece);
            chunk += 1;
        }
        let whole = content.len().is_multiple_of(self.mode.chunk_bytes());
        if ends && ((self.mode.ends_short() && whole) || (first == 0 && content.is_empty())) {
            one(chunk, true, &[]);
        }
        at
    }

    /// Opens a block: encrypted chunks from the chunk `first`, whole ones unless the message ends with it. Gives the
    /// number of bytes of `content` that are authentic, from its beginning; what lies behind them must not be used.
    ///
    /// # Panics
    /// If `content` is too short.
    pub fn open(&self, first: u64, ends: bool, sealed: &[u8], content: &mut [u8]) -> (usize, Option<Damage>) {
        let mode = self.mode;
        let mut pieces = sealed.chunks(mode.sealed_chunk_bytes()).peekable();
        let (mut chunk, mut at, mut full) = (first, 0, true);
        while let Some(piece) = pieces.next() {
            let last = ends && pieces.peek().is_none();
            let damaged = |kind| (at, Some(Damage { chunk, kind }));
            let Some((text, tag)) = piece.split_last_chunk::<TAG_BYTES>() else { return damaged(Kind::Truncated) };
            // Age knows an empty last chunk only where it is the only one.
            if text.is_empty() && chunk > 0 && !mode.ends_short() {
                return damaged(Kind::Changed);
            }
            let into = &mut content[at..at + text.len()];
            if self.open_one(chunk, last, text, tag, into).is_err() {
                let marked_otherwise = !mode.ends_short() && self.open_one(chunk, !last, text, tag, into).is_ok();
                return match (marked_otherwise, last) {
                    (false, false) => damaged(Kind::Changed),
                    (false, true) => damaged(Kind::Ending),
                    // A whole chunk that others follow.
                    (true, true) if text.len() == mode.chunk_bytes() => {
                        (at + text.len(), Some(Damage { chunk: chunk + 1, kind: Kind::Truncated }))
                    }
                    (true, true) => damaged(Kind::Ending),
                    // The chunk is the message's last, and all of the message is there.
                    (true, false) => (at + text.len(), Some(Damage { chunk, kind: Kind::Extended })),
                };
            }
            at += text.len();
            chunk += 1;
            full = text.len() == mode.chunk_bytes();
        }
        // A message has a last chunk; one that is told by being short has a short one.
        let unfinished = ends && (sealed.is_empty() || (mode.ends_short() && full));
        (at, unfinished.then_some(Damage { chunk, kind: Kind::Truncated }))
    }

    fn open_one(&self, chunk: u64, last: bool, text: &[u8], tag: &[u8], into: &mut [u8]) -> Result<(), ()> {
        self.key.open_separate_gather(self.nonce(chunk, last), Aad::empty(), text, tag, into).map_err(|_| ())
    }
}
