//! Shared by the tests.

#![allow(dead_code)]

pub(crate) mod traces;

/// Appends a section of a trace file as `docs/format.md` draws it, written here a second time.
pub(crate) fn section(out: &mut Vec<u8>, tag: &[u8; 4], payload: &[u8]) {
    let begin = out.len();
    out.extend(tag);
    out.extend((payload.len() as u64).to_le_bytes());
    out.extend(payload);
    let sum = crc32(&out[begin..]);
    out.extend(sum.to_le_bytes());
}

/// The check sum of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(sum & 1)))
    };
    !bytes.iter().fold(u32::MAX, step)
}
