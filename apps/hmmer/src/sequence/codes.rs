//! Codes of residues, and how what is none is shown.

use crate::profile::alphabet;

/// How much of a line that makes no sense is shown.
const SHOWN_CHARS: usize = 40;

/// Set in the codes of bytes that are no residues.
pub(super) const OTHER: u8 = 0x80;

/// The code of every byte, [`OTHER`] for those that stand for no residue.
pub(super) const CODES: [u8; 256] = {
    let mut codes = [OTHER; 256];
    let mut byte = 0;
    while byte < 256 {
        if let Some(code) = alphabet::code_in_sequence(byte as u8) {
            codes[byte] = code;
        }
        byte += 1;
    }
    codes
};

/// Bytes as they can be shown in a message.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN_CHARS)]).into_owned();
    let printable = |c: char| if c.is_control() { c.escape_default().collect() } else { c.to_string() };
    let mut shown: String = text.chars().take(SHOWN_CHARS).map(printable).collect();
    if text.chars().count() > SHOWN_CHARS {
        shown.push_str("...");
    }
    shown
}
