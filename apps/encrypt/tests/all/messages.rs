//! Messages of any length, on any number of threads, in any memory: what is sealed is opened again, equals a plain
//! sequential reference, and nothing that was changed is opened.

use crate::support;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA512, KeyType, Prk};
use multigrain_encrypt::cipher::{ContentKey, Kind};
use multigrain_encrypt::header::{self, Header};
use multigrain_encrypt::pipeline::{Part, Pipeline, WHOLE, Way};
use multigrain_encrypt::{Error, Mode};
use proptest::prelude::*;
use std::io::Read;
use support::{content, key, sealed, through};

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Chunked encryption as its specification says it, one chunk after the other.
fn reference(mode: Mode, input_key: &[u8], salt: &[u8; 24], context: &[u8], content: &[u8]) -> Vec<u8> {
    let (name, algorithm) = match mode {
        Mode::Aes128 => ("AEAD_AES_128_GCM", &AES_128_GCM),
        _ => ("AEAD_AES_256_GCM", &AES_256_GCM),
    };
    let info = [b"c2sp.org/chunked-encryption@v1+", name.as_bytes(), b"\0", salt, context].concat();
    let mut derived = vec![0; algorithm.key_len() + 12 + 32];
    let prk = Prk::new_less_safe(HKDF_SHA512, input_key);
    prk.expand(&[&info], Length(derived.len())).unwrap().fill(&mut derived).unwrap();
    let (cipher_key, rest) = derived.split_at(algorithm.key_len());
    let (base, commitment) = rest.split_at(12);
    let cipher = LessSafeKey::new(UnboundKey::new(algorithm, cipher_key).unwrap());
    let mut out = [&salt[..], commitment].concat();
    for counter in 0..=content.len() / 16384 {
        let mut chunk = content[counter * 16384..content.len().min((counter + 1) * 16384)].to_vec();
        let mut nonce = [0; 12];
        nonce.copy_from_slice(base);
        let mut wide = [0; 12];
        wide[4..].copy_from_slice(&(counter as u64).to_be_bytes());
        nonce.iter_mut().zip(wide).for_each(|(n, c)| *n ^= c);
        cipher.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut chunk).unwrap();
        out.extend(chunk);
    }
    out
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Age), Just(Mode::Aes128), Just(Mode::Aes256)]
}

/// Lengths near the borders of chunks and blocks, and any.
fn lengths(mode: Mode) -> impl Strategy<Value = usize> {
    let chunk = mode.chunk_bytes();
    prop_oneof![
        (0..12_usize, 0..5_usize).prop_map(move |(chunks, off)| (chunks * chunk + off).saturating_sub(2)),
        0..10 * chunk,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_sealed_is_opened(
        (mode, length) in modes().prop_flat_map(|mode| (Just(mode), lengths(mode))),
        threads in 1..=4_usize,
        pairs in 0..30_u64,
    ) {
        let memory = (2 * threads as u64 + 2 + pairs) * 2 * mode.sealed_chunk_bytes() as u64;
        let pipeline = Pipeline::new(mode, Some(threads), Some(memory)).unwrap();
        let content = content(length);
        let key = key(mode, 7);
        let message = sealed(&pipeline, &key, &content);
        prop_assert_eq!(message.len() as u64, mode.sealed_bytes(length as u64));
        if mode != Mode::Age {
            let input_key = [7; 32];
            let input_key = if mode == Mode::Aes128 { &input_key[..16] } else { &input_key[..] };
            prop_assert!(reference(mode, input_key, &[7; 24], b"", &content)[56..] == message);
        }
        let (opened, done) = through(&pipeline, Way::Open, &key, WHOLE, &message);
        done.unwrap();
        prop_assert!(opened == content);
        // Cut off anywhere, nothing is taken as whole, and what left is the beginning.
        let cut = (length * 7919 + pairs as usize) % message.len();
        let (opened, done) = through(&pipeline, Way::Open, &key, WHOLE, &message[..cut]);
        prop_assert!(done.is_err() && content.starts_with(&opened));
    }

    /// Files of age, both ways against the crate that is the reference.
    #[test]
    fn age_files_are_those_of_the_crate(length in lengths(Mode::Age), threads in 1..=3_usize) {
        let pipeline = Pipeline::new(Mode::Age, Some(threads), Some(16 << 20)).unwrap();
        let (content, identity) = (content(length), age::x25519::Identity::generate());
        let (mut file, key) = header::write(Mode::Age, &[Box::new(identity.to_public())]).unwrap();
        file.extend(sealed(&pipeline, &key, &content));
        prop_assert!(age::decrypt(&identity, &file).unwrap() == content);
        let file = age::encrypt(&identity.to_public(), &content).unwrap();
        let mut rest = &file[..];
        let header = Header::read("in", &mut rest).unwrap();
        prop_assert_eq!((header.bytes() as usize, header.mode()), (file.len() - rest.len(), Mode::Age));
        let key = header.unlock(&[Box::new(identity)]).unwrap();
        let (opened, done) = through(&pipeline, Way::Open, &key, WHOLE, rest);
        done.unwrap();
        prop_assert!(opened == content);
    }
}

/// A pipeline with blocks of one chunk.
fn small(mode: Mode) -> Pipeline {
    Pipeline::new(mode, Some(2), Some(12 * mode.sealed_chunk_bytes() as u64)).unwrap()
}

fn refused(pipeline: &Pipeline, key: &ContentKey, content: &[u8], message: &[u8], what: &str) -> Kind {
    let (opened, done) = through(pipeline, Way::Open, key, WHOLE, message);
    assert!(content.starts_with(&opened), "{what}: what left is not the content's beginning");
    match done {
        Err(Error::Damaged { damage, .. }) => damage.kind,
        done => panic!("{what}: {done:?}"),
    }
}

#[test]
fn every_flipped_bit_is_seen() {
    for mode in Mode::ALL {
        let (pipeline, key) = (small(mode), key(mode, 1));
        let content = content(mode.chunk_bytes() + 3);
        let message = sealed(&pipeline, &key, &content);
        // All bits of the short chunk, some of the long one, all of both tags.
        let border = mode.sealed_chunk_bytes();
        for byte in (0..border - 16).step_by(4999).chain(border - 16..message.len()) {
            for bit in 0..8 {
                let mut flipped = message.clone();
                flipped[byte] ^= 1 << bit;
                let kind = refused(&pipeline, &key, &content, &flipped, &format!("{mode:?} byte {byte} bit {bit}"));
                assert_eq!(kind, if byte < border { Kind::Changed } else { Kind::Ending });
            }
        }
    }
}

#[test]
fn every_cut_and_every_extension_is_seen() {
    for mode in Mode::ALL {
        let (pipeline, key) = (small(mode), key(mode, 1));
        let chunk = mode.chunk_bytes();
        for length in [0, 5, chunk, chunk + 5, 2 * chunk] {
            let content = content(length);
            let message = sealed(&pipeline, &key, &content);
            let border = mode.sealed_chunk_bytes();
            let near = |at: usize| (0..message.len()).filter(move |cut| cut.abs_diff(at) < 20);
            for cut in near(0).chain(near(border)).chain(near(2 * border)).chain(near(message.len())) {
                refused(&pipeline, &key, &content, &message[..cut], &format!("{mode:?} {length} cut to {cut}"));
            }
            for more in [1, 15, 16, 17, border] {
                let long = [&message[..], &vec![0; more]].concat();
                refused(&pipeline, &key, &content, &long, &format!("{mode:?} {length} and {more} more"));
            }
            let twice = [&message[..], &message[..]].concat();
            refused(&pipeline, &key, &content, &twice, &format!("{mode:?} {length} twice"));
        }
        // What was cut between chunks or appended there is told as such.
        let content = content(2 * chunk + 5);
        let message = sealed(&pipeline, &key, &content);
        let border = mode.sealed_chunk_bytes();
        let kind = |message: &[u8]| refused(&pipeline, &key, &content, message, "a border");
        assert_eq!(kind(&message[..2 * border]), Kind::Truncated, "{mode:?}");
        assert_eq!(kind(&message[..0]), Kind::Truncated, "{mode:?}");
        assert_eq!(kind(&message[..border + 10]), Kind::Truncated, "{mode:?}");
    }
    let (pipeline, key) = (small(Mode::Age), key(Mode::Age, 1));
    let content = content(64 << 10);
    let message = sealed(&pipeline, &key, &content);
    let long = [&message[..], &message[..]].concat();
    assert_eq!(refused(&pipeline, &key, &content, &long, "two files"), Kind::Extended);
}

#[test]
fn chunks_that_change_places_are_seen() {
    for mode in Mode::ALL {
        let (pipeline, key, other) = (small(mode), key(mode, 1), key(mode, 2));
        let content = content(4 * mode.chunk_bytes() + 100);
        let message = sealed(&pipeline, &key, &content);
        let chunks: Vec<&[u8]> = message.chunks(mode.sealed_chunk_bytes()).collect();
        for a in 0..chunks.len() {
            for b in 0..a {
                let mut swapped = chunks.clone();
                swapped.swap(a, b);
                refused(&pipeline, &key, &content, &swapped.concat(), &format!("{mode:?} {a} and {b} swapped"));
            }
            let mut without = chunks.clone();
            without.remove(a);
            refused(&pipeline, &key, &content, &without.concat(), &format!("{mode:?} without {a}"));
            let mut twice = chunks.clone();
            twice.insert(a, chunks[a]);
            refused(&pipeline, &key, &content, &twice.concat(), &format!("{mode:?} {a} twice"));
        }
        refused(&pipeline, &other, &[], &message, "another key");
    }
}

#[test]
fn parts_are_opened_where_they_are() {
    for mode in Mode::ALL {
        let (pipeline, key) = (small(mode), key(mode, 1));
        let content = content(5 * mode.chunk_bytes() + 7);
        let message = sealed(&pipeline, &key, &content);
        for first in 0..6 {
            for end in first + 1..=6 {
                let sealed_at = |chunk: usize| (chunk * mode.sealed_chunk_bytes()).min(message.len());
                let content_at = |chunk: usize| (chunk * mode.chunk_bytes()).min(content.len());
                let part = Part { first: first as u64, ends: end == 6 };
                let bytes = &message[sealed_at(first)..sealed_at(end)];
                let (opened, done) = through(&pipeline, Way::Open, &key, part, bytes);
                done.unwrap();
                assert!(opened == content[content_at(first)..content_at(end)]);
                let moved = Part { first: part.first + 1, ..part };
                assert!(through(&pipeline, Way::Open, &key, moved, bytes).1.is_err());
            }
        }
    }
}

#[test]
fn headers_that_are_changed_are_refused() {
    let identity = age::x25519::Identity::generate();
    for mode in Mode::ALL {
        let (head, _) = header::write(mode, &[Box::new(identity.to_public())]).unwrap();
        let unlocked = |head: &[u8]| {
            Header::read("in", &mut &head[..]).and_then(|header| header.unlock(&[Box::new(identity.clone())]))
        };
        assert_eq!(unlocked(&head).unwrap().mode(), mode);
        // The nonce of age is not part of its header: with another one, the content is not authentic.
        let until = if mode == Mode::Age { head.len() - 16 } else { head.len() };
        for byte in 0..until {
            for bit in 0..8 {
                let mut changed = head.clone();
                changed[byte] ^= 1 << bit;
                assert!(unlocked(&changed).is_err(), "{mode:?} byte {byte} bit {bit}");
            }
        }
        for cut in 0..head.len() {
            assert!(unlocked(&head[..cut]).is_err(), "{mode:?} cut to {cut}");
        }
    }
    // A header without end takes neither memory nor time without end.
    let endless = b"age-encryption.org/v1\n-> X25519 ".chain(std::io::repeat(b'a'));
    let error = Header::read("in", &mut std::io::BufReader::new(endless)).unwrap_err();
    assert!(error.to_string().contains("longer than 16 MiB"), "{error}");
}
