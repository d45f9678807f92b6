//! Whose the missing packets of a video are, as far as the numbers and the payloads of the others tell.
//!
//! Numbers of packets alone do not tell where a packet lay that is missing between two pictures:
//!
//! - A picture without its marker has lost its end, if others had markers; one packet that is missing was that end. Where no sender
//!   ever marked an end, the end may be missing or not, and the picture counts as damaged.
//! - A picture behind a gap is whole if what comes first of it can only come first ([`rtp::begins_picture`]). A delimiter or a
//!   message (SEI) before that may be missing: pictures are decoded without.

use crate::rtp::{self, Codec, Header};

/// The packets of one track, as they come in order.
#[derive(Debug, Default)]
pub struct Gaps {
    next: Option<u16>,
    timestamp: u32,
    is_open: bool,
    /// Its sender was seen to mark ends.
    marks: bool,
}

/// What a packet tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Something is missing right before it.
    pub is_gap: bool,
    /// It is the first of its picture that came.
    pub begins: Option<Begins>,
    /// It is the last of its picture.
    pub ends: bool,
}

/// What the first packet of a picture tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begins {
    /// The picture before had no end so far.
    pub was_open: bool,
    /// That is missing.
    pub lost_end: bool,
    /// Nothing of this one is missing before this packet.
    pub is_whole: bool,
    /// So many packets are missing that may have been other pictures.
    pub vanished: u16,
}

impl Gaps {
    /// Looks at the next packet.
    pub fn see(&mut self, codec: Codec, header: &Header, payload: &[u8]) -> Seen {
        let next = self.next.replace(header.sequence.wrapping_add(1));
        // How many are missing before this one; who begins knows nothing of what was before.
        let missing = next.map(|next| header.sequence.wrapping_sub(next));
        let is_gap = missing != Some(0);
        let begins = (header.timestamp != self.timestamp || !self.is_open).then(|| {
            let lost_end = self.is_open && is_gap;
            let (can_only_begin, is_one) = (rtp::begins_picture(codec, payload), missing == Some(1));
            let was_end = lost_end && self.marks && is_one;
            // One packet that is missing was this one's beginning, where those before it have their ends.
            let was_beginning = !lost_end && self.marks && is_one && !can_only_begin;
            let vanished = missing.filter(|_| !was_end && !was_beginning).unwrap_or(0);
            Begins { was_open: self.is_open, lost_end, is_whole: !is_gap || was_end || can_only_begin, vanished }
        });
        self.timestamp = header.timestamp;
        self.is_open = !header.marker;
        self.marks |= header.marker;
        Seen { is_gap, begins, ends: header.marker }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One packet is missing between two pictures, of the second of which no beginning is to be seen: where ends are marked, it was the end
    /// of the first; where they never are, it may as well have been the beginning of the second.
    #[test]
    fn what_is_missing_may_be_of_either_where_no_end_is_marked() {
        for marks in [false, true] {
            let mut gaps = Gaps::default();
            let mut see = |sequence, timestamp, marker, payload: &[u8]| {
                let header = Header { sequence, timestamp, source: 1, payload_type: 96, marker };
                gaps.see(Codec::H264, &header, payload)
            };
            see(1, 10, marks, &[0x41, 0x80]);
            see(2, 20, false, &[0x41, 0x80]);
            let seen = see(4, 30, marks, &[0x41, 0x40]);
            let begins = Begins { was_open: true, lost_end: true, is_whole: marks, vanished: u16::from(!marks) };
            assert_eq!((seen.is_gap, seen.begins), (true, Some(begins)));
        }
    }
}
