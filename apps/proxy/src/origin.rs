//! From where a track's packets come, so that nobody else's are taken for them.
//!
//! Sources tell ports that they do not send from, and sources' numbers (SSRC) that they do not send; so the first that sends is believed,
//! or the first at the port that was told, and another one only when that one has been silent for a while. Whoever wants to put packets
//! into a stream from elsewhere has to know address, port and number.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long the one that was believed has to be silent until another one is.
const SILENCE: Duration = Duration::from_secs(1);

/// Who sends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// The port that the source told.
    told: Option<u16>,
    /// Address, number, and when it was last heard.
    known: Option<(SocketAddr, u32, Instant)>,
}

impl Origin {
    /// Nobody yet; the source may have told a port.
    pub fn new(told: Option<u16>) -> Origin {
        Origin { told, known: None }
    }

    /// Whether a packet from there, of the source of that number, is the track's.
    pub fn is(&mut self, from: SocketAddr, source: u32, now: Instant) -> bool {
        let is_told = |from: SocketAddr| Some(from.port()) == self.told;
        let is_it = self.known.is_none_or(|(before, number, heard)| {
            (before, number) == (from, source)
                || now.saturating_duration_since(heard) >= SILENCE
                || (is_told(from) && !is_told(before))
        });
        if is_it {
            self.known = Some((from, source, now));
        }
        is_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_believed_until_it_is_silent() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let [camera, stranger, told] =
            ["10.0.0.1:5000", "10.0.0.1:5001", "10.0.0.1:6000"].map(|text| text.parse().unwrap());
        let mut origin = Origin::new(Some(6000));
        assert!(origin.is(camera, 7, at(0)));
        assert!(!origin.is(stranger, 7, at(900)) && !origin.is(camera, 8, at(900)));
        assert!(origin.is(camera, 7, at(950)));
        // Others' packets keep nobody alive.
        assert!(!origin.is(stranger, 7, at(1900)) && origin.is(stranger, 9, at(1950)));
        assert!(!origin.is(camera, 7, at(2000)));
        // Who sends from the port that was told comes first, whoever was before.
        assert!(origin.is(told, 3, at(2001)) && !origin.is(stranger, 9, at(2002)) && !origin.is(told, 4, at(2002)));
    }
}
