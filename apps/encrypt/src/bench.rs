//! What `multigrain bench encrypt` measures within one process: content in memory encrypted into other memory.
//!
//! It speaks as the peers of `multigrain bench` do (bench/README.md): one line when the memory is there, one with the
//! seconds of everybody's turn for each line `run`. Counter mode stands here to be compared with, and nowhere else: a
//! file that is not authenticated can be changed without anybody seeing it.

use crate::cipher::{ContentKey, SALT_BYTES};
use crate::error::Error;
use crate::mode::{Mode, TAG_BYTES};
use crate::pipeline::Pipeline;
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use multigrain::jobs::{Batching, Dispatch, JobOptions};
use multigrain_console::{Failure, print};
use serde_json::json;
use std::io::BufRead;
use std::time::Instant;

/// Takes turns until the input ends.
///
/// # Errors
/// The memory or the threads cannot be had, or nobody reads any more.
pub fn bench(mode: Mode, threads: Option<usize>, bytes: usize) -> Result<(), Failure> {
    let failure = crate::app::failure;
    let pipeline = Pipeline::new(mode, threads, None).map_err(failure)?;
    let content: Vec<u8> = (0..bytes).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 13) as u8).collect();
    let mut sealed = vec![1; mode.sealed_bytes(bytes as u64) as usize];
    check(mode, &pipeline, &content, &mut sealed)?;
    print(&format!("{}\n", json!({ "ready": true, "peer": "aws-lc-rs", "version": "" })))?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| Failure::Run(format!("cannot read standard input: {e}")))?;
        let answer = match line.trim() {
            "run" => json!({
                "seconds": ours(mode, &pipeline, &content, &mut sealed).map_err(failure)?,
                "one_core_seconds": one_core(mode, &content, &mut sealed),
                "counter_seconds": counter(&content, &mut sealed),
                "copy_seconds": copy(&pipeline, &content, &mut sealed).map_err(failure)?,
                "queue_seconds": one_by_one(&pipeline, Dispatch::Queue, &content, &mut sealed).map_err(failure)?,
                "mailbox_seconds": one_by_one(&pipeline, Dispatch::Mailbox, &content, &mut sealed).map_err(failure)?,
            }),
            "quit" => return Ok(()),
            other => json!({ "error": format!("unknown request {other:?}") }),
        };
        print(&format!("{answer}\n"))?;
    }
    Ok(())
}

/// What is timed gives back the content that it was given.
fn check(mode: Mode, pipeline: &Pipeline, content: &[u8], sealed: &mut [u8]) -> Result<(), Failure> {
    let key = new_key(mode);
    pipeline.seal_in_memory(&key, content, sealed).map_err(crate::app::failure)?;
    let mut opened = vec![0; mode.chunk_bytes()];
    let mut rest = content;
    for (number, chunk) in sealed.chunks(mode.sealed_chunk_bytes()).enumerate() {
        let ends = (number as u64 + 1) * mode.sealed_chunk_bytes() as u64 >= sealed.len() as u64;
        let (bytes, damage) = key.open(number as u64, ends, chunk, &mut opened);
        let expected;
        (expected, rest) = rest.split_at(bytes.min(rest.len()));
        if damage.is_some() || opened[..bytes] != *expected {
            return Err(Failure::Run(format!("chunk {number} does not open to its content: {damage:?}")));
        }
    }
    // The same pieces whoever makes them.
    let mut expected = vec![0; content.len()];
    counter(content, &mut expected);
    for dispatch in [Dispatch::Queue, Dispatch::Mailbox] {
        sealed.fill(0);
        one_by_one(pipeline, dispatch, content, sealed).map_err(crate::app::failure)?;
        if sealed[..content.len()] != expected {
            return Err(Failure::Run(format!("by {dispatch} the pieces are not those of one thread")));
        }
    }
    match rest.is_empty() {
        true => Ok(()),
        false => Err(Failure::Run(format!("{} bytes at the end were not encrypted", rest.len()))),
    }
}

/// A new key, as each file has one.
fn new_key(mode: Mode) -> ContentKey {
    let (mut secret, mut salt) = ([0; 32], [0; SALT_BYTES]);
    aws_lc_rs::rand::fill(&mut secret).expect("the system gives random bytes");
    aws_lc_rs::rand::fill(&mut salt).expect("the system gives random bytes");
    match mode {
        Mode::Age => {
            ContentKey::age(secret[..16].try_into().expect("16 bytes"), salt[..16].try_into().expect("16 bytes"))
        }
        _ => ContentKey::chunked(mode, &secret[..mode.key_bytes()], &salt, b"").0,
    }
}

fn ours(mode: Mode, pipeline: &Pipeline, content: &[u8], sealed: &mut [u8]) -> Result<f64, Error> {
    let begin = Instant::now();
    let key = new_key(mode);
    pipeline.seal_in_memory(&key, content, sealed)?;
    Ok(begin.elapsed().as_secs_f64())
}

/// The library's cipher chunk by chunk, from the one memory into the other, on this thread.
fn one_core(mode: Mode, content: &[u8], sealed: &mut [u8]) -> f64 {
    let algorithm: &Algorithm = match mode {
        Mode::Age => &CHACHA20_POLY1305,
        Mode::Aes128 => &AES_128_GCM,
        Mode::Aes256 => &AES_256_GCM,
    };
    let secret = vec![7; algorithm.key_len()];
    let key = LessSafeKey::new(UnboundKey::new(algorithm, &secret).expect("a key of its length"));
    let begin = Instant::now();
    let chunks = content.chunks(mode.chunk_bytes()).zip(sealed.chunks_mut(mode.sealed_chunk_bytes()));
    for (number, (from, into)) in chunks.enumerate() {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&(number as u64).to_be_bytes());
        let (text, tag) = into.split_at_mut(from.len());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let done = key.seal_out_of_place_scatter(nonce, Aad::empty(), from, text, &[], &mut tag[..TAG_BYTES]);
        done.expect("chunks are far below the cipher's limits");
    }
    begin.elapsed().as_secs_f64()
}

/// AES-128 in counter mode in pieces of 16 KiB, in place behind a copy, on this thread.
fn counter(content: &[u8], into: &mut [u8]) -> f64 {
    let begin = Instant::now();
    pieces(content, into).for_each(|(number, from, into)| count_up(number, from, into));
    begin.elapsed().as_secs_f64()
}

/// The thesis's jobs (its chapter 5): 16 KiB each, with their numbers.
fn pieces<'a>(content: &'a [u8], into: &'a mut [u8]) -> impl Iterator<Item = (u64, &'a [u8], &'a mut [u8])> {
    let piece = Mode::Aes128.chunk_bytes();
    let pairs = content.chunks(piece).zip(into.chunks_mut(piece));
    (0..).zip(pairs).map(|(number, (from, into))| (number, from, &mut into[..from.len()]))
}

/// AES-128 in counter mode of one piece.
fn count_up(number: u64, from: &[u8], into: &mut [u8]) {
    into.copy_from_slice(from);
    let mut counter = [0; 16];
    counter[..8].copy_from_slice(&number.to_be_bytes());
    counter_mode(&[7; 16], counter, into);
}

/// AES-128 in counter mode, in place.
fn counter_mode(key: &[u8; 16], counter: [u8; 16], text: &mut [u8]) {
    let key = UnboundCipherKey::new(&AES_128, key).and_then(EncryptingKey::ctr).expect("a key of its length");
    let context = EncryptionContext::Iv128(FixedLength::from(&counter));
    key.less_safe_encrypt(text, context).expect("any length can be encrypted");
}

/// The same jobs handed out one by one by a host that works on them too.
fn one_by_one(pipeline: &Pipeline, dispatch: Dispatch, content: &[u8], into: &mut [u8]) -> Result<f64, Error> {
    let begin = Instant::now();
    let mut jobs = pieces(content, into);
    pipeline.team().jobs(
        &JobOptions { dispatch, batch: Batching::Fixed(1), ..JobOptions::default() },
        || Ok::<_, Error>(jobs.next()),
        |_| (),
        |(), (number, from, into)| {
            count_up(number, from, into);
            Ok(())
        },
        |()| Ok(()),
    )?;
    Ok(begin.elapsed().as_secs_f64())
}

/// The same bytes copied by the same workers in pieces as long as ours.
fn copy(pipeline: &Pipeline, content: &[u8], into: &mut [u8]) -> Result<f64, Error> {
    let begin = Instant::now();
    let mut pieces = content.chunks(256 << 10).zip(into.chunks_mut(256 << 10));
    pipeline.team().jobs(
        &JobOptions::default(),
        || Ok::<_, Error>(pieces.next()),
        |_| (),
        |(), (from, into): (&[u8], &mut [u8])| {
            into[..from.len()].copy_from_slice(from);
            Ok(())
        },
        |()| Ok(()),
    )?;
    Ok(begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
    }

    #[test]
    fn counter_mode_is_that_of_the_standard() {
        // NIST SP 800-38A, F.5.1: CTR-AES128.Encrypt.
        let key = bytes("2b7e151628aed2a6abf7158809cf4f3c");
        let counter = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
        let mut text: [u8; 64] = bytes(concat!(
            "6bc1bee22e409f96e93d7e117393172a",
            "ae2d8a571e03ac9c9eb76fac45af8e51",
            "30c81c46a35ce411e5fbc1191a0a52ef",
            "f69f2445df4f9b17ad2b417be66c3710"
        ));
        counter_mode(&key, counter, &mut text);
        let expected: [u8; 64] = bytes(concat!(
            "874d6191b620e3261bef6864990db6ce",
            "9806f66b7970fdff8617187bb9fffdff",
            "5ae4df3edbd5d35e5b4f09020db03eab",
            "1e031dda2fbe03d1792170a0f3009cee"
        ));
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_timed_is_right_in_every_mode() {
        for mode in Mode::ALL {
            let pipeline = Pipeline::new(mode, Some(2), None).unwrap();
            for bytes in [0, 1, 16 << 10, (64 << 10) + 1, 1_000_000] {
                let content: Vec<u8> = (0..bytes).map(|i| ((i * 7) >> 3) as u8).collect();
                let mut sealed = vec![1; mode.sealed_bytes(bytes as u64) as usize];
                assert!(check(mode, &pipeline, &content, &mut sealed).is_ok(), "{mode:?}, {bytes} bytes");
            }
        }
    }
}
