//! In which forms a stream is served, and what is made of its packets for those who take something else.

use crate::feed::Batch;
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

    /// Takes packets as they came; gives what is complete by now.
    pub fn take(&mut self, batch: &Batch, now: Instant) -> Batch {
        match self {
            Maker::Transport(mux) => mux.take(batch, now),
            Maker::Fragments(mux) => mux.take(batch, now),
        }
    }

    /// From which piece of what was made last on the head is another one, if it is.
    pub fn anew(&mut self) -> Option<usize> {
        match self {
            Maker::Transport(_) => None,
            Maker::Fragments(mux) => mux.anew.take(),
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
