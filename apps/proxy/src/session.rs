//! What is answered to a viewer that speaks RTSP (RFC 2326): requests in, responses out, no sockets.
//!
//! A connection has one session, which ends with it. What playing means is done by who asks here; the response to PLAY is
//! written when it is known with which packets it begins.

use crate::sdp::{Description, TRACKS_MAX};
use crate::text::{Headers, reason, write};
use crate::transport::alternatives;
use std::sync::Arc;

/// How one track goes to a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On these channels of the connection.
    Channels(u8, u8),
    /// To these ports of the viewer's host.
    Ports(u16, u16),
}

/// A stream that can be asked for.
#[derive(Clone, Debug)]
pub enum Found {
    /// There is none of that name.
    Nothing,
    /// Its source does not play.
    NotYet,
    /// It can be played.
    Stream {
        /// Its number.
        index: usize,
        /// What it sends.
        description: Arc<Description>,
        /// To be compared when it is played.
        generation: u64,
    },
}

/// What was set up.
#[derive(Clone, Debug)]
pub struct Session {
    id: String,
    /// The name of the stream.
    pub name: String,
    /// Its number.
    pub stream: usize,
    /// What it sent at setup.
    pub generation: u64,
    description: Arc<Description>,
    /// By the tracks' numbers.
    pub ways: [Option<Way>; TRACKS_MAX],
}

impl Session {
    /// The track that has a rate, and the port of its viewer's reports: of those that are sent as datagrams that of the
    /// pictures, since whole pictures are left out, else the first.
    pub fn paced(&self) -> Option<(usize, u16)> {
        let ports = |track: usize| match self.ways.get(track).copied().flatten() {
            Some(Way::Ports(_, reports)) => Some((track, reports)),
            _ => None,
        };
        self.description.lead().and_then(ports).or_else(|| (0..self.ways.len()).find_map(ports))
    }
}

/// What has to be done, beside sending the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// To play; the response is written by [`Server::playing`].
    Play,
    /// To pause.
    Pause,
    /// To end the connection when the response is sent.
    End,
}

/// A request, as far as it matters.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is to be done.
    pub method: &'a str,
    /// To what.
    pub target: &'a str,
    /// How.
    pub headers: &'a Headers,
}

/// The server's side of a connection.
#[derive(Debug, Default)]
pub struct Server {
    /// What was set up, if anything.
    pub session: Option<Session>,
    is_playing: bool,
    /// Of the last request, for the response to PLAY.
    sequence: String,
    target: String,
}

/// Ports below are for services of the system: nobody plays there, and whoever asks for it means somebody else harm.
const PORT_MIN: u16 = 1024;
const METHODS: &str = "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER";

/// The name of a stream in an address, and the number of a track if it has one.
pub fn path(target: &str) -> (&str, Option<usize>) {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest.find('/').map_or("", |at| &rest[at..]));
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path).trim_matches('/');
    match rest.rsplit_once('/') {
        Some((name, last)) if last.starts_with("trackID=") => (name, last[8..].parse().ok().or(Some(usize::MAX))),
        _ => (rest, None),
    }
}

/// The first of the alternatives in a Transport header that can be had.
fn way(header: &str, track: usize, with_udp: bool) -> Option<Way> {
    alternatives(header).find_map(|one| {
        let plays = one.value("mode").is_none_or(|mode| mode.trim_matches('"').eq_ignore_ascii_case("play"));
        if one.is_multicast() || !plays {
            return None;
        }
        if one.is_within() {
            let usual = (2 * track as u8, 2 * track as u8 + 1);
            let (a, b) = one.value("interleaved").map_or(Some(usual), |_| one.pair("interleaved"))?;
            return Some(Way::Channels(a, b));
        }
        let ports = one.pair::<u16>("client_port");
        let ports = ports.filter(|(a, b)| with_udp && one.is_datagrams() && *a.min(b) >= PORT_MIN);
        ports.map(|(a, b)| Way::Ports(a, b))
    })
}

impl Server {
    /// Answers a request.
    ///
    /// `find` looks a stream up by its name, `ports` are those from which datagrams go out, `id` is what a new session is called.
    pub fn answer(
        &mut self,
        request: Request<'_>,
        find: &dyn Fn(&str) -> Found,
        ports: Option<(u16, u16)>,
        id: impl FnOnce() -> String,
    ) -> (Vec<u8>, Effect) {
        let Request { method, target, headers } = request;
        self.sequence = headers.get("cseq").unwrap_or("").chars().take(16).collect();
        self.target = target.to_owned();
        let foreign = headers.get("session").map(|told| told.split(';').next().unwrap_or("").trim());
        if foreign.is_some_and(|told| self.session.as_ref().is_none_or(|session| session.id != told)) {
            return (self.plain(454), Effect::None);
        }
        let (name, track) = path(target);
        match method {
            "OPTIONS" => (self.response(200, &[("Public", METHODS)], &[]), Effect::None),
            "GET_PARAMETER" | "SET_PARAMETER" => (self.plain(200), Effect::None),
            "DESCRIBE" => match find(name) {
                Found::Nothing => (self.plain(404), Effect::None),
                Found::NotYet => (self.plain(503), Effect::None),
                Found::Stream { description, .. } => {
                    let base =
                        format!("{}/", target.split_once('?').map_or(target, |(path, _)| path).trim_end_matches('/'));
                    let headers = [("Content-Base", base.as_str()), ("Content-Type", "application/sdp")];
                    (self.response(200, &headers, description.for_viewers(name).as_bytes()), Effect::None)
                }
            },
            "SETUP" => (self.set_up(name, track, headers, find, ports, id), Effect::None),
            "PLAY" if self.session.is_some() => {
                self.is_playing = true;
                (Vec::new(), Effect::Play)
            }
            "PAUSE" if self.session.is_some() => {
                self.is_playing = false;
                (self.plain(200), Effect::Pause)
            }
            "TEARDOWN" if self.session.is_some() => (self.plain(200), Effect::End),
            "PLAY" | "PAUSE" | "TEARDOWN" => (self.plain(455), Effect::None),
            _ => (self.response(405, &[("Allow", METHODS)], &[]), Effect::None),
        }
    }

    fn set_up(
        &mut self,
        name: &str,
        track: Option<usize>,
        headers: &Headers,
        find: &dyn Fn(&str) -> Found,
        ports: Option<(u16, u16)>,
        id: impl FnOnce() -> String,
    ) -> Vec<u8> {
        let (stream, description, generation) = match find(name) {
            Found::Nothing => return self.plain(404),
            Found::NotYet => return self.plain(503),
            Found::Stream { index, description, generation } => (index, description, generation),
        };
        let only = (description.tracks.len() == 1).then_some(0);
        let Some(track) = track.or(only) else { return self.plain(459) };
        if track >= description.tracks.len().min(TRACKS_MAX) {
            return self.plain(404);
        }
        if self.is_playing || self.session.as_ref().is_some_and(|s| s.stream != stream || s.generation != generation) {
            return self.plain(455);
        }
        let Some(way) = way(headers.get("transport").unwrap_or(""), track, ports.is_some()) else {
            return self.plain(461);
        };
        let session = self.session.get_or_insert_with(|| {
            let ways = [None; TRACKS_MAX];
            Session { id: id(), name: name.to_owned(), stream, generation, description, ways }
        });
        // All within the connection, or all beside it; no channel twice.
        let clashes = |other: &Way| match (*other, way) {
            (Way::Channels(a, b), Way::Channels(c, d)) => a == c || a == d || b == c || b == d,
            (Way::Ports(..), Way::Ports(..)) => false,
            _ => true,
        };
        let others = session.ways.iter().enumerate().filter(|(number, _)| *number != track);
        if others.filter_map(|(_, way)| way.as_ref()).any(clashes) || matches!(way, Way::Channels(a, b) if a == b) {
            return self.plain(461);
        }
        session.ways[track] = Some(way);
        let told = match (way, ports) {
            (Way::Ports(a, b), Some((c, d))) => format!("RTP/AVP;unicast;client_port={a}-{b};server_port={c}-{d}"),
            (Way::Channels(a, b), _) => format!("RTP/AVP/TCP;unicast;interleaved={a}-{b}"),
            (Way::Ports(..), None) => String::new(),
        };
        self.response(200, &[("Transport", &told)], &[])
    }

    /// The response to the last PLAY. `begins` gives sequence number and timestamp with which a track begins, where that is known.
    pub fn playing(&self, begins: &dyn Fn(usize) -> Option<(u16, u32)>) -> Vec<u8> {
        let Some(session) = &self.session else { return self.plain(455) };
        let base = self.target.trim_end_matches('/');
        let tracks = (0..TRACKS_MAX).filter(|track| session.ways[*track].is_some());
        let info: Vec<String> = tracks
            .map(|track| match begins(track) {
                Some((sequence, timestamp)) => format!("url={base}/trackID={track};seq={sequence};rtptime={timestamp}"),
                None => format!("url={base}/trackID={track}"),
            })
            .collect();
        self.response(200, &[("Range", "npt=now-"), ("RTP-Info", &info.join(","))], &[])
    }

    /// The answer to somebody who has not said who it is.
    pub fn unknown(&mut self, headers: &Headers, challenges: &[String]) -> Vec<u8> {
        self.sequence = headers.get("cseq").unwrap_or("").chars().take(16).collect();
        let fields: Vec<(&str, &str)> = challenges.iter().map(|text| ("WWW-Authenticate", text.as_str())).collect();
        self.response(401, &fields, &[])
    }

    /// A response without content.
    pub fn plain(&self, status: u16) -> Vec<u8> {
        self.response(status, &[], &[])
    }

    fn response(&self, status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let mut all = Vec::with_capacity(headers.len() + 3);
        if !self.sequence.is_empty() {
            all.push(("CSeq", self.sequence.as_str()));
        }
        all.push(("Server", "multigrain-proxy"));
        let session = self.session.as_ref().map(|session| format!("{};timeout=60", session.id));
        all.extend(session.as_deref().map(|session| ("Session", session)));
        all.extend(headers);
        write(&format!("RTSP/1.0 {status} {}", reason(status)), &all, body)
    }

    /// What the session was made of is no longer sent.
    pub fn is_outdated(&self, generation: u64) -> bool {
        self.session.as_ref().is_some_and(|session| session.generation != generation)
    }

    /// What the tracks are, as they were set up.
    pub fn description(&self) -> Option<&Description> {
        self.session.as_ref().map(|session| &*session.description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Bounds, Message, take};
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds { head_bytes: 4096, body_bytes: 0 };

    fn find(name: &str) -> Found {
        let text = "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\nm=audio 0 RTP/AVP 8\n";
        match name {
            "front" => Found::Stream {
                index: 3,
                description: Arc::new(Description::parse(text.as_bytes()).unwrap()),
                generation: 1,
            },
            "late" => Found::NotYet,
            _ => Found::Nothing,
        }
    }

    fn ask(server: &mut Server, text: &str, ports: Option<(u16, u16)>) -> (String, Effect) {
        let text = text.replace('\n', "\r\n") + "\r\n\r\n";
        let Some((Message::Request { method, target, headers, .. }, _)) = take(text.as_bytes(), BOUNDS).unwrap() else {
            panic!("{text}")
        };
        let request = Request { method: &method, target: &target, headers: &headers };
        let (bytes, effect) = server.answer(request, &find, ports, || "1a".to_owned());
        (String::from_utf8(bytes).unwrap(), effect)
    }

    #[test]
    fn a_viewer_plays() {
        let mut server = Server::default();
        let ports = Some((9000, 9001));
        let said = |server: &mut Server, text: &str| ask(server, text, ports);
        assert!(said(&mut server, "OPTIONS * RTSP/1.0\nCSeq: 1").0.contains("Public: OPTIONS, DESCRIBE"));
        let described = said(&mut server, "DESCRIBE rtsp://h:1/front?x RTSP/1.0\nCSeq: 2").0;
        assert!(
            described.contains("Content-Base: rtsp://h:1/front/\r\n") && described.contains("m=audio 0 RTP/AVP 8"),
            "{described}"
        );
        assert!(said(&mut server, "DESCRIBE rtsp://h/late RTSP/1.0\nCSeq: 2").0.starts_with("RTSP/1.0 503 "));
        assert!(said(&mut server, "DESCRIBE rtsp://h/nobody RTSP/1.0\nCSeq: 2").0.starts_with("RTSP/1.0 404 "));
        assert!(said(&mut server, "PLAY rtsp://h/front RTSP/1.0\nCSeq: 3").0.starts_with("RTSP/1.0 455 "));
        let wrong = "SETUP rtsp://h/front/trackID=0 RTSP/1.0\nCSeq: 4\nTransport: RTP/AVP;multicast, RTP/SAVP;unicast";
        assert!(said(&mut server, wrong).0.starts_with("RTSP/1.0 461 "));
        // Datagrams go to ports that any program may take only.
        for ports in ["53-54", "1024-1023", "0-1"] {
            let system =
                format!("SETUP rtsp://h/front/trackID=0 RTSP/1.0\nCSeq: 4\nTransport: RTP/AVP;client_port={ports}");
            assert!(said(&mut server, &system).0.starts_with("RTSP/1.0 461 "), "{ports}");
        }
        let first = "SETUP rtsp://h/front/trackID=0 RTSP/1.0\nCSeq: 4\nTransport: RTP/AVP;multicast, RTP/AVP/TCP;unicast;interleaved=4-5";
        let set_up = said(&mut server, first).0;
        assert!(set_up.contains("interleaved=4-5\r\n") && set_up.contains("Session: 1a;timeout=60"), "{set_up}");
        for transport in
            ["RTP/AVP/TCP;interleaved=5-6", "RTP/AVP;client_port=7000-7001", "RTP/AVP/TCP;interleaved=300-301"]
        {
            let text = format!("SETUP rtsp://h/front/trackID=1 RTSP/1.0\nCSeq: 5\nSession: 1a\nTransport: {transport}");
            assert!(said(&mut server, &text).0.starts_with("RTSP/1.0 461 "), "{transport}");
        }
        assert!(said(&mut server, "PLAY rtsp://h/front RTSP/1.0\nCSeq: 6\nSession: 9").0.starts_with("RTSP/1.0 454 "));
        let (nothing, effect) = said(&mut server, "PLAY rtsp://h/front/ RTSP/1.0\nCSeq: 6\nSession: 1a;timeout=60");
        assert_eq!((nothing.as_str(), effect), ("", Effect::Play));
        let playing = String::from_utf8(server.playing(&|track| Some((7, 8 + track as u32)))).unwrap();
        assert!(
            playing.contains("CSeq: 6\r\n")
                && playing.contains("RTP-Info: url=rtsp://h/front/trackID=0;seq=7;rtptime=8\r\n"),
            "{playing}"
        );
        assert_eq!(said(&mut server, "TEARDOWN rtsp://h/front/ RTSP/1.0\nCSeq: 7\nSession: 1a").1, Effect::End);
        assert!(said(&mut server, "RECORD rtsp://h/front/ RTSP/1.0\nCSeq: 7").0.starts_with("RTSP/1.0 405 "));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(200)) })]

        /// Whatever is asked, each request gets one well-formed response that has the request's number and no other line.
        #[test]
        fn any_request_gets_one_response(requests in prop::collection::vec((
            prop_oneof![Just("SETUP"), Just("PLAY"), Just("DESCRIBE"), Just("TEARDOWN"), Just("NONSENSE"), Just("PAUSE")],
            prop_oneof![Just("rtsp://h/front".to_owned()), "rtsp://h/front/trackID=[0-9x]{0,20}", "[!-~]{1,20}"],
            "(RTP/AVP(/TCP)?;)?(unicast;)?((interleaved|client_port)=[0-9]{0,6}(-[0-9]{0,6})?)?(;mode=[a-z\"]{0,6})?",
        ), 1..12), udp in any::<bool>()) {
            let mut server = Server::default();
            for (number, (method, target, transport)) in requests.iter().enumerate() {
                let text = format!("{method} {target} RTSP/1.0\nCSeq: {number}\nTransport: {transport}");
                let (mut said, effect) = ask(&mut server, &text, udp.then_some((2, 3)));
                if effect == Effect::Play {
                    said = String::from_utf8(server.playing(&|_| None)).unwrap();
                }
                let big = Bounds { head_bytes: 1 << 16, body_bytes: 1 << 16 };
                let taken = take(said.as_bytes(), big).unwrap().unwrap();
                prop_assert_eq!(taken.1, said.len());
                let Message::Response { headers, .. } = taken.0 else { panic!("{said}") };
                prop_assert_eq!(headers.get("cseq").map(str::to_owned), Some(number.to_string()));
            }
        }
    }
}
