//! What tells a player that what comes next does not follow what came: something was left out for it.
//!
//! Whoever goes on at a key goes on like one who begins there, but its decoder does not know. Behind H.265's keys that are none to what came before
//! them (CRA) it would show pictures that refer to what it has not got (RASL), though who begins there is not shown them: so it is told that the
//! sequence has ended (ITU-T H.265, section 7.4.2.4.4, EOS). Transport streams count packets, so there it is told of the gap, too
//! ([`ts::Mux::seam`](crate::ts::Mux::seam)); fragments have pictures that lead a key marked, and whoever goes on there does not get them
//! ([`Entry`](crate::feed::Entry)).

use crate::feed::{Batch, Cursor, Feed};
use crate::rtp::{self, Codec};

/// The end of a sequence of H.265's.
pub const END: [u8; 2] = [36 << 1, 1];
/// The same and the end of all (EOB), together as a payload (RFC 7798, section 4.4.2): ffmpeg takes none that is as short as one of them.
const PAYLOAD: [u8; 10] = [48 << 1, 1, 0, 2, END[0], END[1], 0, 2, 37 << 1, 1];

/// The end of a sequence before the key at a place, as a packet on its channel: it takes the last number and time that were left out.
pub fn packet(feed: &Feed, key: Cursor, codec: Codec) -> Option<Batch> {
    let (entry, bytes) = feed.at(key).filter(|(entry, _)| entry.is_key && codec == Codec::H265)?;
    let (header, _) = rtp::parse(bytes.get(crate::feed::FRAME..)?)?;
    let mut packet = vec![0x80, 0x80 | header.payload_type];
    packet.extend(header.sequence.wrapping_sub(1).to_be_bytes());
    packet.extend(header.timestamp.wrapping_sub(1).to_be_bytes());
    packet.extend(header.source.to_be_bytes());
    packet.extend(PAYLOAD);
    let mut batch = Batch::default();
    batch.frame(entry.channel, &packet, false, false);
    Some(batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_end_of_a_sequence_lies_right_before_its_key() {
        let mut feed = Feed::new(1 << 20);
        let mut batch = Batch::default();
        batch.frame(2, &[1; 20], false, false);
        batch.frame(4, &[0x80, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 21 << 1, 1, 0x80], true, true);
        feed.push(0, Arc::new(batch));
        let key = Cursor { batch: 0, entry: 1 };
        let seam = packet(&feed, key, Codec::H265).unwrap();
        assert_eq!(seam.bytes[..16], [b'$', 4, 0, 22, 0x80, 0xe0, 255, 255, 255, 255, 255, 255, 0, 0, 0, 7]);
        let units: Vec<&[u8]> = rtp::aggregated(&seam.bytes[18..]).collect();
        assert_eq!((seam.bytes[16] >> 1, units), (48, vec![&[72, 1][..], &[74, 1]]));
        // There is none before what is no key, or where none is needed.
        assert!(packet(&feed, Cursor { batch: 0, entry: 0 }, Codec::H265).is_none());
        assert!(packet(&feed, key, Codec::H264).is_none() && packet(&feed, feed.end(), Codec::H265).is_none());
    }
}
