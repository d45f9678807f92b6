//! In which forms a stream is served, and what is made of its packets for those who take something else.

use crate::feed::{Batch, Cursor, Feed};
use crate::instants::Instants;
use crate::sdp::Description;
use crate::{mp4, ts};
use std::time::Instant;

/// What a viewer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Packets of RTP.
    Packets,
    /// An MPEG transport stream.
    Transport,
    /// Fragmented MP4.
    Fragments,
    /// The same in messages of WebSocket.
    Messages,
}

/// How many there are.
pub const FORMS: usize = 4;

impl Form {
    /// The number of the log of a stream in this form.
    pub fn feed(self, stream: usize) -> usize {
        FORMS * stream + self as usize
    }

    /// The form in a log, and of which stream.
    pub fn of(feed: usize) -> (Form, usize) {
        let form = match feed % FORMS {
            0 => Form::Packets,
            1 => Form::Transport,
            2 => Form::Fragments,
            _ => Form::Messages,
        };
        (form, feed / FORMS)
    }
}

/// Makes a form of packets while somebody views it.
pub enum Maker {
    /// Of a transport stream.
    Transport(ts::Mux),
    /// Of the other two.
    Fragments(mp4::Mux),
}

impl Maker {
    /// One that begins now; nothing is made of packets where these are taken.
    pub fn new(form: Form, description: &Description, now: Instant) -> Option<Maker> {
        match form {
            Form::Packets => None,
            Form::Transport => Some(Maker::Transport(ts::Mux::new(description, now))),
            Form::Fragments | Form::Messages => {
                Some(Maker::Fragments(mp4::Mux::new(description, now, form == Form::Messages)))
            }
        }
    }

    /// Takes packets as they came, of a sender that has told this; gives what is complete by now.
    pub fn take(&mut self, batch: &Batch, instants: &Instants, now: Instant) -> Batch {
        match self {
            Maker::Transport(mux) => mux.take(batch, instants, now),
            Maker::Fragments(mux) => mux.take(batch, instants, now),
        }
    }

    /// From which piece of what was made last on the head is another one, if it is.
    pub fn anew(&mut self) -> Option<usize> {
        match self {
            Maker::Transport(_) => None,
            Maker::Fragments(mux) => mux.anew.take(),
        }
    }

    /// What comes before what lies at a place, for whom something was left out before it.
    pub fn seam(&self, feed: &Feed, place: Cursor) -> Option<Batch> {
        match self {
            Maker::Transport(mux) => Some(mux.seam(feed, place)),
            Maker::Fragments(_) => None,
        }
    }

    /// What is taken from the times of each track for a viewer that begins with this.
    pub fn begin(&self, first: &[u8]) -> Option<[u64; mp4::PARTS]> {
        match self {
            Maker::Transport(_) => None,
            Maker::Fragments(mux) => mux.begin(first),
        }
    }

    /// What a viewer gets before anything else; nothing while it is not known.
    pub fn head(&self) -> Option<Vec<u8>> {
        match self {
            Maker::Transport(_) => Some(Vec::new()),
            Maker::Fragments(mux) => mux.head(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::FRAME;
    use proptest::prelude::*;
    use std::time::Duration;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(100)) })]

        /// Whatever the packets are, each form is pieces that lie one behind the other, and begins anew only where there is one.
        #[test]
        fn lying_batches_do_no_harm(
            packets in prop::collection::vec((
                0..4_u8, prop_oneof![Just(0x67_u8), Just(0x68), Just(0x65), Just(0x41), Just(0x7c), Just(0x78), any::<u8>()],
                prop::collection::vec(any::<u8>(), 0..40), any::<(bool, bool)>(), 0..4_u32, 0..2000_u64,
            ), 0..30),
            video in 0..2_usize, form in 1..FORMS,
        ) {
            let video = ["H264/90000", "H265/90000"][video];
            let text = format!(
                "m=video 0 RTP/AVP 96\na=rtpmap:96 {video}\na=fmtp:96 sprop-parameter-sets=Z2QAH6zZQFAFuwEQAAADABAAAAMDIPGDGWA=,aOvjyyLA\n\
                 m=audio 0 RTP/AVP 97\na=rtpmap:97 mpeg4-generic/16000/1\na=fmtp:97 sizelength=13;indexlength=3;config=1408\n"
            );
            let (now, description) = (Instant::now(), Description::parse(text.as_bytes()).unwrap());
            let mut maker = Maker::new(Form::of(form).0, &description, now).unwrap();
            let mut late = Duration::ZERO;
            for (number, (channel, first, rest, (marker, is_start), timestamp, passed)) in packets.iter().enumerate() {
                let head = [0x80, 96 | u8::from(*marker) << 7, 0, number as u8];
                let stamp = (timestamp * 3600).to_be_bytes();
                let packet = [&head[..], &stamp, &[0, 0, 0, 7, *first], rest].concat();
                let mut batch = Batch::default();
                batch.frame(*channel, &packet, *first == 0x65, *is_start);
                late += Duration::from_millis(*passed);
                let made = maker.take(&batch, &Instants::default(), now + late);
                let mut end = 0;
                for entry in &made.entries {
                    prop_assert!(entry.start == end && entry.end >= entry.start);
                    end = entry.end;
                }
                prop_assert_eq!(end as usize, made.bytes.len());
                prop_assert!(maker.anew().is_none_or(|at| at <= made.entries.len()));
                prop_assert!(maker.head().is_none_or(|head| head.len() < 100_000) && batch.bytes.len() > FRAME);
            }
        }
    }
}
