//! What comes before the content: to whom it is encrypted, and the keys that follow from that.
//!
//! ```text
//! mode age            mode aes-128-gcm, aes-256-gcm
//!                     multigrain-encryption/v1 AEAD_AES_128_GCM
//! age-encryption.org/v1                                          recipients, as age writes them,
//! -> X25519 ...                                                  and a message authentication
//! --- MAC                                                        code under the file key
//! nonce  16 bytes     nonce       16 bytes
//! chunks              salt        24 bytes \
//!                     commitment  32 bytes  > a message of C2SP chunked encryption
//!                     chunks               /
//! ```
//!
//! So recipients, passphrases and identities are age's in all modes, and the crate `age` writes, reads and authenticates
//! the header; nothing of it is repeated here. The file key is age's: 16 random bytes, wrapped for each recipient. Age's
//! own payload has the key HKDF-SHA-256(file key, salt: nonce, info: "payload"). The AES modes have the input key
//! HKDF-SHA-512(file key, salt: nonce, info: the first line without its end) of 16 or 32 bytes, and an empty context; so
//! a file whose first line is changed or taken away has another key, which its commitment shows. A file tells by its
//! first line which mode it is. The file key has 128 bits in every mode; AES-256 is there for those who must have it.

use crate::cipher::{COMMITMENT_BYTES, ContentKey, FILE_KEY_BYTES, SALT_BYTES, expand};
use crate::error::Error;
use crate::mode::{AES_INTRO, AGE_INTRO, Mode};
use age::{DecryptError, Decryptor, EncryptError, Encryptor, Identity, Recipient};
use age_core::format::{FileKey, Stanza};
use age_core::secrecy::ExposeSecret;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hkdf::{HKDF_SHA512, Salt};
use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{self, BufRead, Read};
use zeroize::Zeroizing;

/// Longer headers are refused: they would hold a hundred thousand recipients.
const HEADER_BYTES_MAX: usize = 16 << 20;

/// Bytes of the nonce behind the header.
const NONCE_BYTES: usize = 16;

/// Columns of the body of a stanza; a shorter line ends it.
const BODY_COLUMNS: usize = 64;

/// In a place of its own, so that moving it leaves no copy that is not zeroed.
type SecretFileKey = Box<Zeroizing<[u8; FILE_KEY_BYTES]>>;

/// Lets a recipient do its work and keeps the file key: the crate `age` encrypts contents on one thread, so contents are
/// encrypted here.
struct Wrapping<'a> {
    recipient: &'a dyn Recipient,
    seen: &'a RefCell<SecretFileKey>,
}

impl Recipient for Wrapping<'_> {
    fn wrap_file_key(&self, file_key: &FileKey) -> Result<(Vec<Stanza>, HashSet<String>), EncryptError> {
        self.seen.borrow_mut().copy_from_slice(file_key.expose_secret());
        self.recipient.wrap_file_key(file_key)
    }
}

/// The same for an identity.
struct Unwrapping<'a> {
    identity: &'a dyn Identity,
    seen: &'a RefCell<SecretFileKey>,
}

impl Unwrapping<'_> {
    fn keep(&self, found: Option<Result<FileKey, DecryptError>>) -> Option<Result<FileKey, DecryptError>> {
        if let Some(Ok(file_key)) = &found {
            self.seen.borrow_mut().copy_from_slice(file_key.expose_secret());
        }
        found
    }
}

impl Identity for Unwrapping<'_> {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        self.keep(self.identity.unwrap_stanza(stanza))
    }

    fn unwrap_stanzas(&self, stanzas: &[Stanza]) -> Option<Result<FileKey, DecryptError>> {
        self.keep(self.identity.unwrap_stanzas(stanzas))
    }
}

/// The first line of a file of an AES mode, without its end.
fn intro(mode: Mode) -> Vec<u8> {
    [AES_INTRO, mode.aead().as_bytes()].concat()
}

/// The key of the content, and for the AES modes the commitment to it.
fn content_key(
    mode: Mode,
    file_key: &[u8; FILE_KEY_BYTES],
    nonce: &[u8; NONCE_BYTES],
    salt: &[u8; SALT_BYTES],
) -> (ContentKey, [u8; COMMITMENT_BYTES]) {
    if mode == Mode::Age {
        return (ContentKey::age(file_key, nonce), [0; COMMITMENT_BYTES]);
    }
    let mut input_key = Zeroizing::new(vec![0; mode.key_bytes()]);
    let prk = Salt::new(HKDF_SHA512, nonce).extract(file_key);
    expand(&prk, &[&intro(mode)], &mut input_key);
    ContentKey::chunked(mode, &input_key, salt, b"")
}

/// Makes a new header for these recipients: all bytes before the first chunk, and the key of the content.
///
/// # Errors
/// Recipients that cannot stand in one header (a passphrase is alone), or none.
pub fn write(mode: Mode, recipients: &[Box<dyn Recipient + Send>]) -> Result<(Vec<u8>, ContentKey), Error> {
    let seen = RefCell::new(SecretFileKey::default());
    let wrapping: Vec<Wrapping<'_>> =
        recipients.iter().map(|recipient| Wrapping { recipient: &**recipient, seen: &seen }).collect();
    let encryptor = Encryptor::with_recipients(wrapping.iter().map(|w| w as &dyn Recipient)).map_err(|error| {
        Error::Request(match error {
            EncryptError::MissingRecipients => "nobody could decrypt it: give a recipient with -r or -R, or -p".into(),
            error => format!("these recipients cannot be used together: {error}"),
        })
    })?;
    let mut bytes = match mode {
        Mode::Age => Vec::new(),
        _ => [&intro(mode)[..], b"\n"].concat(),
    };
    // Writes header and nonce; the encryptor of the content is dropped.
    let _ = encryptor.wrap_output(&mut bytes).expect("memory takes all that is written");
    let nonce = *bytes.last_chunk().expect("the nonce is the last that was written");
    let mut salt = [0; SALT_BYTES];
    aws_lc_rs::rand::fill(&mut salt).expect("the system gives random bytes");
    let (key, commitment) = content_key(mode, &seen.into_inner(), &nonce, &salt);
    if mode != Mode::Age {
        bytes.extend(salt);
        bytes.extend(commitment);
    }
    Ok((bytes, key))
}

/// All bytes of a file before its first chunk.
#[derive(Debug)]
pub struct Header {
    name: String,
    mode: Mode,
    /// Age's header and its nonce.
    age: Vec<u8>,
    salt: [u8; SALT_BYTES],
    commitment: [u8; COMMITMENT_BYTES],
    /// Bytes of all of it.
    bytes: u64,
}

/// Gives the crate `age` a header all at once: it would parse it again after every line.
struct AtOnce<'a>(&'a [u8]);

impl Read for AtOnce<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl BufRead for AtOnce<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.0)
    }

    fn consume(&mut self, bytes: usize) {
        self.0.consume(bytes);
    }

    fn read_until(&mut self, _: u8, into: &mut Vec<u8>) -> io::Result<usize> {
        let header = &self.0[..self.0.len().saturating_sub(NONCE_BYTES)];
        into.extend_from_slice(header);
        self.0 = &self.0[header.len()..];
        Ok(header.len())
    }
}

impl Header {
    /// Reads the header of `name`, and nothing behind it.
    ///
    /// # Errors
    /// The input cannot be read, or does not begin with a header.
    pub fn read(name: &str, input: &mut dyn BufRead) -> Result<Header, Error> {
        let no_file = || Error::NoEncryptedFile { name: name.to_owned() };
        let wrong = |why: &str| Error::Header { name: name.to_owned(), why: why.to_owned() };
        let unreadable = |source| Error::Read { name: name.to_owned(), source };
        let mut bytes = 0;
        let mut line = |input: &mut dyn BufRead, most: usize| -> Result<Vec<u8>, Error> {
            let mut line = Vec::new();
            let read = input.take(most as u64).read_until(b'\n', &mut line).map_err(unreadable)?;
            bytes += read as u64;
            Ok(line)
        };
        let intro_most = AES_INTRO.len() + Mode::Age.aead().len() + 1;
        let mut age = line(input, intro_most)?;
        let mode = match age.strip_prefix(AES_INTRO).and_then(|rest| rest.strip_suffix(b"\n")) {
            None => Mode::Age,
            Some(name) => {
                let of_the_name = |mode: &&Mode| mode.ends_short() && mode.aead().as_bytes() == name;
                let found = Mode::ALL.iter().find(of_the_name);
                age = line(input, intro_most)?;
                *found.ok_or_else(|| wrong("names a cipher that is not known here"))?
            }
        };
        if age != AGE_INTRO {
            return Err(match age.starts_with(b"age-encryption.org/") {
                true => wrong("is of another version of age than v1"),
                false => no_file(),
            });
        }
        let mut body_columns = None;
        loop {
            let next = line(input, (HEADER_BYTES_MAX - age.len()).min(HEADER_BYTES_MAX))?;
            let Some(text) = next.strip_suffix(b"\n") else {
                return Err(wrong(match age.len() + next.len() < HEADER_BYTES_MAX {
                    true => "ends too early",
                    false => "is longer than 16 MiB",
                }));
            };
            let (stanza, end) = (text.starts_with(b"-> "), text.starts_with(b"---"));
            // The crate `age` also takes what early versions wrote, against the specification.
            if (stanza || end) && body_columns.is_some_and(|columns| columns >= BODY_COLUMNS) {
                return Err(wrong("has a recipient without the line that ends it"));
            }
            body_columns = Some(if stanza { BODY_COLUMNS } else { text.len() });
            age.extend_from_slice(&next);
            if end {
                break;
            }
        }
        let mut rest = |into: &mut [u8]| -> Result<(), Error> {
            bytes += into.len() as u64;
            input.read_exact(into).map_err(|source| match source.kind() {
                io::ErrorKind::UnexpectedEof => wrong("ends too early"),
                _ => Error::Read { name: name.to_owned(), source },
            })
        };
        let (mut nonce, mut salt, mut commitment) = ([0; NONCE_BYTES], [0; SALT_BYTES], [0; COMMITMENT_BYTES]);
        rest(&mut nonce)?;
        age.extend(nonce);
        if mode != Mode::Age {
            rest(&mut salt)?;
            rest(&mut commitment)?;
        }
        Ok(Header { name: name.to_owned(), mode, age, salt, commitment, bytes })
    }

    /// Where the first chunk begins.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How the content is encrypted.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn decryptor(&self) -> Result<Decryptor<AtOnce<'_>>, Error> {
        Decryptor::new_buffered(AtOnce(&self.age)).map_err(|error| self.refused(error))
    }

    /// Whether a passphrase opens it.
    ///
    /// # Errors
    /// The header is not valid.
    pub fn has_passphrase(&self) -> Result<bool, Error> {
        Ok(self.decryptor()?.is_scrypt())
    }

    /// Finds the key of the content with one of the identities, and makes sure that the header is authentic.
    ///
    /// # Errors
    /// No identity fits, or the header is not valid or not authentic.
    pub fn unlock(&self, identities: &[Box<dyn Identity + Send + Sync>]) -> Result<ContentKey, Error> {
        let seen = RefCell::new(SecretFileKey::default());
        let unwrapping: Vec<Unwrapping<'_>> =
            identities.iter().map(|identity| Unwrapping { identity: &**identity, seen: &seen }).collect();
        let decrypted = self.decryptor()?.decrypt(unwrapping.iter().map(|u| u as &dyn Identity));
        // Of the decrypted content nothing is read: that is done in parallel.
        drop(decrypted.map_err(|error| self.refused(error))?);
        let nonce = self.age.last_chunk().expect("read behind the header");
        let (key, commitment) = content_key(self.mode, &seen.into_inner(), nonce, &self.salt);
        if self.mode != Mode::Age && verify_slices_are_equal(&commitment, &self.commitment).is_err() {
            return Err(self.wrong("does not commit to the key of the content: it was changed"));
        }
        Ok(key)
    }

    fn wrong(&self, why: &str) -> Error {
        Error::Header { name: self.name.clone(), why: why.to_owned() }
    }

    fn refused(&self, error: DecryptError) -> Error {
        let name = self.name.clone();
        match error {
            DecryptError::NoMatchingKeys => Error::NoIdentity { name },
            DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed => Error::Passphrase { name },
            DecryptError::ExcessiveWork { required, .. } => {
                self.wrong(&format!("asks for {required} doublings of work to try a passphrase, more than is allowed"))
            }
            DecryptError::InvalidMac => self.wrong("is not authentic: it was changed after it was written"),
            DecryptError::InvalidHeader => self.wrong("is not written as age writes it"),
            DecryptError::UnknownFormat => self.wrong("is of another version of age than v1"),
            error => self.wrong(&format!("cannot be used ({error})")),
        }
    }
}
