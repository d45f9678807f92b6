//! How content is cut into chunks and how long it becomes.

/// Bytes of the tag that ends every chunk.
pub const TAG_BYTES: usize = 16;

/// How content is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The payload of age v1 (c2sp.org/age): ChaCha20-Poly1305 in chunks of 64 KiB, the last of which is marked.
    Age,
    /// C2SP chunked encryption (c2sp.org/chunked-encryption) with AES-128-GCM and SHA-512: chunks of 16 KiB, the last of
    /// which is shorter, if need be empty.
    Aes128,
    /// The same with AES-256-GCM.
    Aes256,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Age, Mode::Aes128, Mode::Aes256];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Age => "age",
            Mode::Aes128 => "aes-128-gcm",
            Mode::Aes256 => "aes-256-gcm",
        }
    }

    /// The name of the cipher in the IANA registry "AEAD Algorithms".
    pub fn aead(self) -> &'static str {
        match self {
            Mode::Age => "AEAD_CHACHA20_POLY1305",
            Mode::Aes128 => "AEAD_AES_128_GCM",
            Mode::Aes256 => "AEAD_AES_256_GCM",
        }
    }

    /// Bytes of the cipher's key.
    pub(crate) fn key_bytes(self) -> usize {
        match self {
            Mode::Aes128 => 16,
            Mode::Age | Mode::Aes256 => 32,
        }
    }

    /// Bytes of content in every chunk but the last.
    pub const fn chunk_bytes(self) -> usize {
        match self {
            Mode::Age => 64 << 10,
            Mode::Aes128 | Mode::Aes256 => 16 << 10,
        }
    }

    /// Bytes of every encrypted chunk but the last.
    pub const fn sealed_chunk_bytes(self) -> usize {
        self.chunk_bytes() + TAG_BYTES
    }

    /// Whether the last chunk is told by being shorter than the others, rather than by its nonce.
    pub(crate) const fn ends_short(self) -> bool {
        !matches!(self, Mode::Age)
    }

    /// How many chunks a message may have.
    pub(crate) const fn chunks_max(self) -> u64 {
        match self {
            // The counter has 88 bits; these are as many as can be counted here.
            Mode::Age => u64::MAX,
            Mode::Aes128 | Mode::Aes256 => 1 << 38,
        }
    }

    /// How many chunks content of so many bytes becomes.
    pub fn chunks(self, content_bytes: u64) -> u64 {
        let chunk = self.chunk_bytes() as u64;
        if self.ends_short() { content_bytes / chunk + 1 } else { content_bytes.div_ceil(chunk).max(1) }
    }

    /// Bytes of content so encrypted, without what comes before the first chunk.
    pub fn sealed_bytes(self, content_bytes: u64) -> u64 {
        content_bytes + self.chunks(content_bytes) * TAG_BYTES as u64
    }

    /// Bytes of content in so many bytes of chunks; `None` if no content becomes so many bytes.
    pub fn content_bytes(self, sealed_bytes: u64) -> Option<u64> {
        let chunks = sealed_bytes.div_ceil(self.sealed_chunk_bytes() as u64).max(1);
        let content = sealed_bytes.checked_sub(chunks * TAG_BYTES as u64);
        content.filter(|&content| self.sealed_bytes(content) == sealed_bytes)
    }
}

/// With what a file of age begins.
pub const AGE_INTRO: &[u8] = b"age-encryption.org/v1\n";
/// With what a file of an AES mode begins; the name of its cipher and a line end follow.
pub const AES_INTRO: &[u8] = b"multigrain-encryption/v1 ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_go_both_ways() {
        for mode in Mode::ALL {
            let chunk = mode.chunk_bytes() as u64;
            let mut valid = std::collections::BTreeSet::new();
            for content in 0..3 * chunk + 20 {
                let sealed = mode.sealed_bytes(content);
                assert_eq!(mode.content_bytes(sealed), Some(content));
                assert!(valid.insert(sealed));
            }
            for sealed in 0..*valid.last().unwrap() {
                assert_eq!(mode.content_bytes(sealed).is_some(), valid.contains(&sealed), "{mode:?} {sealed}");
            }
        }
    }

    #[test]
    fn lengths_of_the_specifications() {
        // c2sp.org/chunked-encryption, "Message chunking".
        let kib = 1 << 10;
        for (content, chunks) in [(0, 1), (kib, 1), (16 * kib, 2), (20 * kib, 2)] {
            assert_eq!(Mode::Aes128.chunks(content), chunks);
        }
        // c2sp.org/age, "Payload": the last chunk is empty only if all is.
        for (content, chunks) in [(0, 1), (1, 1), (64 * kib, 1), (64 * kib + 1, 2), (128 * kib, 2)] {
            assert_eq!(Mode::Age.chunks(content), chunks);
        }
    }
}
