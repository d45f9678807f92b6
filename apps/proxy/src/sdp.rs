//! What a source says that it sends (SDP, RFC 8866), as far as it is needed, and the same said to viewers.
//!
//! It is read line by line and forgivingly: cameras leave out lines that must be there, repeat others, and put them in any
//! order, and a strict reader would refuse them. Viewers get a description of their own that is made from what was
//! understood, so what is wrong with the source's ends here.

use crate::rtp::Codec;
use std::fmt::Write as _;

/// Tracks of a source at most: each has two of the channels that a batch tells apart.
pub const TRACKS_MAX: usize = 8;

/// Ticks a second at most: fifty times those of any sound. Times in ticks stay far from the ends of their types.
const RATE_MAX: u32 = 10_000_000;

/// One medium of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// `video`, `audio` or `application`.
    pub media: String,
    /// The number in the packets.
    pub payload_type: u8,
    /// What is known of it.
    pub codec: Codec,
    /// Encoding, clock rate and channels as they were told: `H264/90000`.
    pub encoding: String,
    /// Ticks a second.
    pub clock_rate: u32,
    /// Parameters of the format, as they were told.
    pub format: Option<String>,
    /// Where it is set up: absolute, or relative to the base; empty if it was not told.
    pub control: String,
}

impl Track {
    /// Whether decoding it begins with certain pictures only.
    pub fn has_keys(&self) -> bool {
        self.codec.is_video()
    }

    /// Channels of audio.
    pub fn channels(&self) -> u8 {
        let told = self.encoding.split('/').nth(2).and_then(|n| n.parse().ok());
        told.filter(|n| (1..=8).contains(n)).unwrap_or(if self.codec == Codec::Opus { 2 } else { 1 })
    }

    /// A parameter of the format by its name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.format.as_deref()?.split(';');
        pairs
            .filter_map(|pair| pair.split_once('='))
            .find(|(n, _)| n.trim().eq_ignore_ascii_case(name))
            .map(|p| p.1.trim())
    }
}

/// All of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// In the order in which they were told.
    pub tracks: Vec<Track>,
    /// Where the whole is played, if it was told.
    pub control: Option<String>,
}

impl Description {
    /// The track by which the others go: the first whose decoding begins with certain pictures, else the first of pictures.
    pub fn lead(&self) -> Option<usize> {
        let with_keys = self.tracks.iter().position(Track::has_keys);
        with_keys.or_else(|| self.tracks.iter().position(|track| track.media == "video"))
    }
}

/// What a payload type means that needs no `a=rtpmap` (RFC 3551, section 6).
fn fixed(payload_type: u8) -> Option<&'static str> {
    Some(match payload_type {
        0 => "PCMU/8000",
        3 => "GSM/8000",
        8 => "PCMA/8000",
        9 => "G722/8000",
        10 => "L16/44100/2",
        11 => "L16/44100/1",
        14 => "MPA/90000",
        26 => "JPEG/90000",
        32 => "MPV/90000",
        33 => "MP2T/90000",
        _ => return None,
    })
}

impl Description {
    /// Reads what a source sent.
    ///
    /// # Errors
    /// Why nothing in it can be played.
    pub fn parse(bytes: &[u8]) -> Result<Description, &'static str> {
        let text = String::from_utf8_lossy(bytes);
        let mut description = Description::default();
        // Whether the lines belong to a medium that is taken, or to one that is not.
        let (mut in_medium, mut taken, mut is_secret) = (false, false, false);
        for line in text.lines() {
            let Some((kind, value)) = line.trim().split_once('=') else { continue };
            let value = value.trim();
            if kind == "m" {
                in_medium = true;
                is_secret |= value.split_whitespace().nth(2).is_some_and(|protocol| protocol.contains("SAVP"));
                let track = medium(value).filter(|_| description.tracks.len() < TRACKS_MAX);
                taken = track.is_some();
                description.tracks.extend(track);
                continue;
            }
            let Some((name, value)) = value.split_once(':').filter(|_| kind == "a") else { continue };
            let (name, value) = (name.trim(), value.trim());
            match description.tracks.last_mut().filter(|_| in_medium && taken) {
                Some(track) => attribute(track, name, value),
                None if !in_medium && name == "control" => description.control = Some(value.to_owned()),
                None => {}
            }
        }
        description.tracks.retain(|track| track.clock_rate > 0);
        match description.tracks.is_empty() {
            true if is_secret => {
                Err("its media are encrypted by SRTP, which is not read; let it send plain RTP, within TLS by rtsps://")
            }
            true => Err("it describes no medium sent as RTP whose format is told"),
            false => Ok(description),
        }
    }

    /// What viewers are told.
    pub fn for_viewers(&self, name: &str) -> String {
        let mut text =
            format!("v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns={name}\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\na=control:*\r\n");
        for (number, track) in self.tracks.iter().enumerate() {
            let (media, payload) = (&track.media, track.payload_type);
            let _ = write!(text, "m={media} 0 RTP/AVP {payload}\r\na=rtpmap:{payload} {}\r\n", track.encoding);
            if let Some(format) = &track.format {
                let _ = write!(text, "a=fmtp:{payload} {format}\r\n");
            }
            let _ = write!(text, "a=control:trackID={number}\r\n");
        }
        text
    }

    /// Whether somebody who plays the other can go on with this.
    pub fn goes_on_from(&self, other: &Description) -> bool {
        let same = |(a, b): (&Track, &Track)| {
            (a.payload_type, &a.encoding, &a.format) == (b.payload_type, &b.encoding, &b.format)
        };
        self.tracks.len() == other.tracks.len() && self.tracks.iter().zip(&other.tracks).all(same)
    }
}

/// The track of an `m=` line, if it is sent as plain RTP.
fn medium(value: &str) -> Option<Track> {
    let mut words = value.split_whitespace();
    let (media, _port, protocol) = (words.next()?, words.next()?, words.next()?);
    let known = matches!(media, "video" | "audio" | "application");
    if !known
        || !matches!(protocol.to_ascii_uppercase().as_str(), "RTP/AVP" | "RTP/AVP/UDP" | "RTP/AVP/TCP" | "RTP/AVPF")
    {
        return None;
    }
    let payload_type: u8 = words.next()?.parse().ok().filter(|number| *number < 128)?;
    let mut track = Track {
        media: media.to_owned(),
        payload_type,
        codec: Codec::Other,
        encoding: String::new(),
        clock_rate: 0,
        format: None,
        control: String::new(),
    };
    if let Some(encoding) = fixed(payload_type) {
        encode(&mut track, encoding);
    }
    Some(track)
}

/// Bytes of what a track is called.
const ENCODING_MAX: usize = 64;

fn encode(track: &mut Track, encoding: &str) {
    let mut parts = encoding.split('/');
    let (name, rate) = (parts.next().unwrap_or(""), parts.next().and_then(|rate| rate.trim().parse().ok()));
    // It is shown to people and told to viewers.
    let is_plain = encoding.len() <= ENCODING_MAX && encoding.bytes().all(|b| b.is_ascii_graphic());
    if let Some(rate) = rate.filter(|rate| (1..=RATE_MAX).contains(rate) && is_plain) {
        track.codec = Codec::named(name.trim());
        track.clock_rate = rate;
        track.encoding = encoding.to_owned();
    }
}

fn attribute(track: &mut Track, name: &str, value: &str) {
    let of_payload = || {
        let (number, rest) = value.split_once(char::is_whitespace)?;
        (number.parse() == Ok(track.payload_type)).then(|| rest.trim().to_owned())
    };
    match name {
        "control" => track.control = value.to_owned(),
        "rtpmap" => {
            if let Some(encoding) = of_payload() {
                encode(track, &encoding);
            }
        }
        "fmtp" => {
            if let Some(format) = of_payload().filter(|format| !format.contains(char::is_control)) {
                track.format = Some(format);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAMERA: &str = "v=0\r\ns=x\r\na=control:rtsp://1.2.3.4/all\r\nm=video 0 RTP/AVP 96\r\nb=AS:5000\r\n\
        a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z0I=,aM4=\r\na=rtpmap:96 H264/90000\r\na=control:track1\r\n\
        m=audio 0 RTP/AVP 0\r\na=control:track2\r\nm=video 0 RTP/SAVP 97\r\na=rtpmap:97 H265/90000\r\na=control:no\r\n\
        m=application 0 RTP/AVP 107\r\nm=audio 0 RTP/AVP 98\r\na=rtpmap: 98  mpeg4-generic/16000/1\r\n";

    #[test]
    fn what_cameras_say_is_understood() {
        let description = Description::parse(CAMERA.as_bytes()).unwrap();
        assert_eq!(description.control.as_deref(), Some("rtsp://1.2.3.4/all"));
        let found: Vec<_> =
            description.tracks.iter().map(|t| (t.codec, t.clock_rate, t.payload_type, t.control.as_str())).collect();
        assert_eq!(
            found,
            [(Codec::H264, 90_000, 96, "track1"), (Codec::Other, 8000, 0, "track2"), (Codec::Aac, 16_000, 98, "")]
        );
        assert_eq!(description.tracks[0].parameter("Sprop-parameter-sets"), Some("Z0I=,aM4="));
        let told = description.for_viewers("front");
        let again = Description::parse(told.as_bytes()).unwrap();
        assert!(again.goes_on_from(&description), "{told}");
        assert_eq!(again.tracks[1].control, "trackID=1");
        assert!(Description::parse(b"v=0\r\nm=video 0 RTP/AVP 96\r\n").is_err());
        let long = format!("m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000/{}\r\n", "A".repeat(60));
        assert!(Description::parse(long.as_bytes()).is_err());
        // Media that are encrypted are told to be so.
        let secret = Description::parse(b"m=video 0 RTP/SAVP 96\r\na=rtpmap:96 H264/90000\r\n").unwrap_err();
        assert!(secret.contains("SRTP"), "{secret}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        #[test]
        fn damaged_descriptions_do_no_harm(at in 0..CAMERA.len(), with in "[ -~\r\n]{0,6}", length in 0..20_usize) {
            let mut bytes = CAMERA.as_bytes().to_vec();
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, with.bytes());
            if let Ok(description) = Description::parse(&bytes) {
                prop_assert!(description.tracks.len() <= TRACKS_MAX);
                let again = Description::parse(description.for_viewers("x").as_bytes()).unwrap();
                prop_assert!(again.goes_on_from(&description));
            }
        }
    }
}
