//! What is said to a source until it plays, and while it does (RFC 2326): requests out, responses in, no sockets.
//!
//! ```text
//! OPTIONS -> DESCRIBE -> SETUP of each track -> PLAY -> keep-alives until the end
//! ```
//! Each request may be answered with a challenge once (RFC 7617, RFC 7616; by the crate `http-auth`). Where a source
//! says less or something else than it should, the dialogue goes on as long as that can work: a base that names another
//! host is looked for at the host that answered, keep-alives by GET_PARAMETER that are refused become OPTIONS, media that
//! cannot be set up beside the video are left out.

use crate::address::Address;
use crate::sdp::Description;
use crate::text::{self, Headers};
use crate::transport::alternatives;
use http_auth::{PasswordClient, PasswordParams};
use std::net::IpAddr;
use std::time::Duration;
use thiserror::Error;

/// How packets come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As datagrams.
    Udp,
    /// Within the connection.
    Tcp,
    /// As datagrams to a group.
    Multicast,
}

/// What a track was set up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// Channels of packets and of reports.
    Channels(u8, u8),
    /// Ports from which they come, and the host if it is told.
    Ports(Option<(u16, u16)>, Option<IpAddr>),
    /// The group to which they come, its ports, and the host that sends if it is told.
    Group(IpAddr, (u16, u16), Option<IpAddr>),
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// This is to be sent.
    Say(Vec<u8>),
    /// It plays.
    Play,
    /// Nothing: it was no answer to what was asked, or one to a keep-alive.
    Nothing,
}

/// Why it does not play.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Trouble {
    /// Datagrams are not offered: to be tried within the connection.
    #[error("it does not send over UDP")]
    NoUdp,
    /// The password is wrong.
    #[error("{0}")]
    Refused(String),
    /// Anything else, with the way out.
    #[error("{0}")]
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Options,
    Describe,
    Setup(usize),
    Play,
    Playing,
}

/// Method, address and headers of a request.
type Asked = (&'static str, String, Vec<(&'static str, String)>);

/// The state of one connection.
#[derive(Debug)]
pub struct Dialogue {
    address: Address,
    way: Way,
    state: State,
    sequence: u32,
    /// The request under way, to be repeated with an answer to a challenge.
    asked: Option<Asked>,
    challenge: Option<PasswordClient>,
    is_repeated: bool,
    /// How often it has told another path.
    moves: u32,
    base: String,
    session: Option<String>,
    /// Half of what the source allows.
    every: Duration,
    keep_alive: &'static str,
    /// What it sends, once it has told.
    pub description: Description,
    /// Of each track that is in the description.
    pub setups: Vec<Setup>,
}

/// How often a source is followed to another path.
const MOVES_MAX: u32 = 4;

/// What a session may be silent for where nothing is told (RFC 2326, section 12.37).
const TIMEOUT: Duration = Duration::from_secs(60);

impl Dialogue {
    /// Before anything was said.
    pub fn new(address: Address, way: Way) -> Dialogue {
        Dialogue {
            base: address.url(),
            address,
            way,
            state: State::Options,
            sequence: 0,
            asked: None,
            challenge: None,
            is_repeated: false,
            moves: 0,
            session: None,
            every: TIMEOUT / 2,
            keep_alive: "OPTIONS",
            description: Description::default(),
            setups: Vec::new(),
        }
    }

    /// How packets come.
    pub fn way(&self) -> Way {
        self.way
    }

    /// After how long the source is to be told that somebody is there.
    pub fn keep_alive_every(&self) -> Duration {
        self.every
    }

    /// Whether an answer is awaited.
    pub fn waits(&self) -> bool {
        self.asked.is_some()
    }

    /// The first words.
    pub fn begin(&mut self) -> Vec<u8> {
        self.ask("OPTIONS", self.address.url(), Vec::new())
    }

    /// The words that keep it playing.
    pub fn still_there(&mut self) -> Vec<u8> {
        let url = self.aggregate();
        self.ask(self.keep_alive, url, Vec::new())
    }

    /// The last words; none where no session is to be ended.
    pub fn end(&mut self) -> Vec<u8> {
        if self.session.is_none() {
            return Vec::new();
        }
        let url = self.aggregate();
        self.ask("TEARDOWN", url, Vec::new())
    }

    fn ask(&mut self, method: &'static str, url: String, headers: Vec<(&'static str, String)>) -> Vec<u8> {
        self.is_repeated = false;
        self.asked = Some((method, url, headers));
        self.said()
    }

    /// The request under way as text.
    fn said(&mut self) -> Vec<u8> {
        self.sequence += 1;
        let Some((method, url, headers)) = &self.asked else { return Vec::new() };
        let sequence = self.sequence.to_string();
        let mut all: Vec<(&str, &str)> = vec![("CSeq", &sequence), ("User-Agent", "multigrain-proxy")];
        all.extend(headers.iter().map(|(name, value)| (*name, value.as_str())));
        all.extend(self.session.as_deref().map(|session| ("Session", session)));
        let authorization = self.challenge.as_mut().zip(self.address.credentials.as_ref()).and_then(|(client, who)| {
            let (username, password) = (who.user.as_str(), who.password.as_str());
            client.respond(&PasswordParams { username, password, uri: url, method, body: Some(&[]) }).ok()
        });
        all.extend(authorization.as_deref().map(|text| ("Authorization", text)));
        text::write(&format!("{method} {url} RTSP/1.0"), &all, &[])
    }

    /// The address of the whole.
    fn aggregate(&self) -> String {
        match self.description.control.as_deref() {
            None | Some("*" | "") => self.base.clone(),
            Some(control) => self.resolved(control),
        }
    }

    /// The address of a control (RFC 2326, appendix C.1.1), at the host that we talk to.
    fn resolved(&self, control: &str) -> String {
        if control.is_empty() || control == "*" {
            return self.base.clone();
        }
        if let Ok(absolute) = Address::parse(control) {
            return self.address.with_path(&absolute.path);
        }
        match self.base.ends_with('/') {
            true => format!("{}{control}", self.base),
            false => format!("{}/{control}", self.base),
        }
    }

    /// Takes an answer. `open` gives the first of two ports for a track's datagrams.
    ///
    /// # Errors
    /// Why it will not play.
    pub fn heard(
        &mut self,
        status: u16,
        headers: &Headers,
        body: &[u8],
        open: &mut dyn FnMut(usize) -> Result<u16, String>,
    ) -> Result<Next, Trouble> {
        let told = headers.get("cseq").and_then(|text| text.trim().parse::<u32>().ok());
        if told.is_some_and(|told| told != self.sequence) {
            return Ok(Next::Nothing);
        }
        let Some((method, _, _)) = self.asked else { return Ok(Next::Nothing) };
        // Who plays has been let in: a keep-alive for which a password is no use is refused like any other.
        let is_vain = self.is_repeated || self.address.credentials.is_none();
        if status == 401 && !(self.state == State::Playing && is_vain) {
            return self.challenged(headers);
        }
        if let Some(session) = headers.get("session") {
            let mut parts = session.split(';');
            self.session = parts.next().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
            // It is told once: what names the session later, such as the answer to PLAY, need not repeat it.
            let mut timeout = parts.filter_map(|part| part.trim().strip_prefix("timeout=")?.trim().parse().ok());
            if let Some(seconds) = timeout.next() {
                self.every = Duration::from_secs(u64::clamp(seconds, 2, 3600)) / 2;
            }
        }
        self.asked = None;
        let is_well = (200..300).contains(&status);
        match self.state {
            State::Options => {
                // Some refuse this and answer all else.
                let public = headers.get("public").unwrap_or("");
                if public.split(',').any(|method| method.trim() == "GET_PARAMETER") {
                    self.keep_alive = "GET_PARAMETER";
                }
                self.state = State::Describe;
                let url = self.address.url();
                Ok(Next::Say(self.ask("DESCRIBE", url, vec![("Accept", "application/sdp".to_owned())])))
            }
            State::Describe if is_well => {
                let unreadable =
                    |why| Trouble::Other(format!("its description cannot be used: {why}; look at what it sends"));
                self.description = Description::parse(body).map_err(unreadable)?;
                let base = headers.get("content-base").or_else(|| headers.get("content-location"));
                if let Some(base) = base.and_then(|base| Address::parse(base.trim()).ok()) {
                    self.base = self.address.with_path(&base.path);
                }
                self.set_up(0, open)
            }
            State::Setup(track) if is_well => {
                let told = headers.get("transport").unwrap_or("");
                let setup = set_up_to(told, self.way, track).ok_or_else(|| {
                    Trouble::Other(format!("it sets up {told:?}, which was not asked for; try the other transport"))
                })?;
                self.setups.push(setup);
                self.set_up(track + 1, open)
            }
            State::Setup(_) if self.way == Way::Udp && matches!(status, 461 | 400 | 406 | 500) => Err(Trouble::NoUdp),
            State::Setup(_) if self.way == Way::Multicast && status == 461 => {
                Err(Trouble::Other("it sends to no group; give it transport auto".to_owned()))
            }
            State::Setup(_) if self.way == Way::Tcp && status == 461 && self.description.tracks.len() == 1 => {
                Err(Trouble::Other(
                    "it sends neither over UDP nor within the connection; where it sends to a group, give it transport multicast"
                        .to_owned(),
                ))
            }
            State::Setup(track) if track > 0 || self.description.tracks.len() > 1 => {
                // One medium that cannot be had does not keep the others away.
                self.description.tracks.remove(track);
                self.set_up(track, open)
            }
            State::Play if is_well => {
                self.state = State::Playing;
                Ok(Next::Play)
            }
            State::Playing => match status {
                454 => Err(Trouble::Other("it has forgotten the session".to_owned())),
                _ => {
                    if !is_well && method == "GET_PARAMETER" {
                        self.keep_alive = "OPTIONS";
                    }
                    Ok(Next::Nothing)
                }
            },
            State::Describe if matches!(status, 301 | 302 | 305 | 307 | 308) => {
                let place = headers.get("location").and_then(|place| Address::parse(place.trim()).ok());
                // Elsewhere the password is nobody's business.
                let place = place.map(|place| (place.to_string() == self.address.to_string(), place));
                let Some((true, place)) = place else { return Err(Trouble::Other(refusal(method, status, headers))) };
                self.moves += 1;
                if self.moves > MOVES_MAX {
                    return Err(Trouble::Other(
                        "it tells another path again and again; give the path at which it plays, or look at its settings"
                            .to_owned(),
                    ));
                }
                self.address.path = place.path;
                self.base = self.address.url();
                let url = self.address.url();
                Ok(Next::Say(self.ask("DESCRIBE", url, vec![("Accept", "application/sdp".to_owned())])))
            }
            _ => Err(Trouble::Other(refusal(method, status, headers))),
        }
    }

    fn set_up(&mut self, track: usize, open: &mut dyn FnMut(usize) -> Result<u16, String>) -> Result<Next, Trouble> {
        let Some(control) = self.description.tracks.get(track).map(|track| track.control.clone()) else {
            if self.setups.is_empty() {
                return Err(Trouble::Other("none of its media can be set up".to_owned()));
            }
            self.state = State::Play;
            let url = self.aggregate();
            return Ok(Next::Say(self.ask("PLAY", url, vec![("Range", "npt=0.000-".to_owned())])));
        };
        self.state = State::Setup(track);
        let transport = match self.way {
            Way::Multicast => "RTP/AVP;multicast".to_owned(),
            Way::Tcp => format!("RTP/AVP/TCP;unicast;interleaved={}-{}", 2 * track, 2 * track + 1),
            Way::Udp => {
                let port = open(track).map_err(Trouble::Other)?;
                format!("RTP/AVP;unicast;client_port={port}-{}", port + 1)
            }
        };
        let url = self.resolved(&control);
        Ok(Next::Say(self.ask("SETUP", url, vec![("Transport", transport)])))
    }

    fn challenged(&mut self, headers: &Headers) -> Result<Next, Trouble> {
        let shown = &self.address;
        if self.address.credentials.is_none() {
            let scheme = if self.address.is_secure { "rtsps" } else { "rtsp" };
            return Err(Trouble::Other(format!(
                "{shown} asks who wants to see it; give the address as {scheme}://USER:PASSWORD@..."
            )));
        }
        if self.is_repeated {
            return Err(Trouble::Refused(format!(
                "{shown} refuses the user and password of its address; correct them (other characters than letters and digits \
                 as %XX)"
            )));
        }
        // The strongest that is understood; each challenge may stand in a line of its own.
        let all: Vec<&str> = headers.all("www-authenticate").collect();
        let client = PasswordClient::try_from(all.join(", ").as_str())
            .or_else(|e| all.iter().find_map(|one| PasswordClient::try_from(*one).ok()).ok_or(e));
        let unknown = |_| {
            let words = all.iter().filter_map(|one| one.split_whitespace().next()).collect::<Vec<_>>().join(", ");
            let how = if words.is_empty() { "no way that it tells".to_owned() } else { words };
            let text =
                format!("{shown} takes a password by {how}; let it take one by Digest or Basic, which are known");
            Trouble::Other(text)
        };
        self.challenge = Some(client.map_err(unknown)?);
        self.is_repeated = true;
        Ok(Next::Say(self.said()))
    }
}

/// What a refusal means.
fn refusal(method: &str, status: u16, headers: &Headers) -> String {
    match status {
        301 | 302 | 305 => {
            let place = headers.get("location").and_then(|place| Address::parse(place).ok());
            let place = place.map_or_else(|| "another address".to_owned(), |place| place.to_string());
            format!(
                "it has moved to {place}; give that address with its path, which is not shown here since it may hold a password"
            )
        }
        403 => "it forbids to see it; ask who owns it".to_owned(),
        404 => "there is nothing at the path of its address; look up the path in its manual".to_owned(),
        453 | 503 => "it serves no more viewers at the moment".to_owned(),
        _ => format!("it answers {method} with {status} {}", text::reason(status)),
    }
}

/// Reads the answer to a setup. What was asked for is what is meant where nothing is said.
fn set_up_to(header: &str, asked: Way, track: usize) -> Option<Setup> {
    let told = alternatives(header).next()?;
    if let Some((packets, reports)) = told.pair("interleaved") {
        return Some(Setup::Channels(packets, reports));
    }
    let host = told.value("source").and_then(|ip| ip.parse().ok());
    if told.is_multicast() || asked == Way::Multicast {
        let group: IpAddr = told.value("destination")?.parse().ok()?;
        let ports = told.pair::<u16>("port").filter(|ports| ports.0 > 0 && ports.1 > 0)?;
        return (asked == Way::Multicast && group.is_multicast()).then_some(Setup::Group(group, ports, host));
    }
    match asked {
        Way::Multicast => None,
        Way::Tcp if told.is_datagrams() => None,
        Way::Tcp => Some(Setup::Channels(2 * track as u8, 2 * track as u8 + 1)),
        Way::Udp => Some(Setup::Ports(told.pair("server_port"), host)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Bounds, Message, take};
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds { head_bytes: 4096, body_bytes: 4096 };
    const SDP: &str = "m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=control:rtsp://10.9.9.9/x/v\nm=audio 0 RTP/AVP 8\na=control:a\n";

    /// Gives the dialogue a response; what it says next, as text.
    fn answer(dialogue: &mut Dialogue, response: &str) -> Result<Next, Trouble> {
        let Some((Message::Response { status, headers, body }, _)) = take(response.as_bytes(), BOUNDS).unwrap() else {
            panic!("{response}")
        };
        dialogue.heard(status, &headers, &body, &mut |track| Ok(5000 + 2 * track as u16))
    }

    fn said(next: Result<Next, Trouble>) -> String {
        let Ok(Next::Say(bytes)) = next else { panic!("{next:?}") };
        String::from_utf8(bytes).unwrap()
    }

    fn described(base: &str) -> String {
        format!("RTSP/1.0 200 OK\r\n{base}Content-Length: {}\r\n\r\n{SDP}", SDP.len())
    }

    #[test]
    fn it_plays_over_udp_with_digest_and_a_base_that_lies() {
        let mut dialogue = Dialogue::new(Address::parse("rtsp://u:secret@cam:99/live?x=1").unwrap(), Way::Udp);
        let first = String::from_utf8(dialogue.begin()).unwrap();
        assert!(first.starts_with("OPTIONS rtsp://cam:99/live?x=1 RTSP/1.0\r\nCSeq: 1\r\n"), "{first}");
        let describe = said(answer(&mut dialogue, "RTSP/1.0 200 OK\r\nCSeq: 1\r\nPublic: PLAY, GET_PARAMETER\r\n\r\n"));
        assert!(describe.starts_with("DESCRIBE rtsp://cam:99/live?x=1 "), "{describe}");
        let challenge = "RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", algorithm=SHA-256\r\n\
            WWW-Authenticate: Basic realm=\"r\"\r\n\r\n";
        let again = said(answer(&mut dialogue, challenge));
        let response = again.split("response=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("");
        assert!(again.contains("Authorization: Digest ") && response.len() == 64, "{again}");
        assert!(!again.contains("secret"));
        let setup = said(answer(&mut dialogue, &described("Content-Base: rtsp://192.168.0.1:554/live/\r\n")));
        assert!(setup.starts_with("SETUP rtsp://cam:99/x/v ") && setup.contains("client_port=5000-5001"), "{setup}");
        let second = said(answer(
            &mut dialogue,
            "RTSP/1.0 200 OK\r\nSession: 77; timeout=20\r\nTransport: RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001;source=10.0.0.1\r\n\r\n",
        ));
        assert!(second.starts_with("SETUP rtsp://cam:99/live/a ") && second.contains("Session: 77\r\n"), "{second}");
        let play = said(answer(&mut dialogue, "RTSP/1.0 200 OK\r\nSession: 77\r\n\r\n"));
        assert!(play.starts_with("PLAY rtsp://cam:99/live/ "), "{play}");
        assert_eq!(answer(&mut dialogue, "RTSP/1.0 200 OK\r\n\r\n"), Ok(Next::Play));
        let source = Some("10.0.0.1".parse().unwrap());
        assert_eq!(dialogue.setups, [Setup::Ports(Some((6000, 6001)), source), Setup::Ports(None, None)]);
        assert_eq!(dialogue.keep_alive_every(), Duration::from_secs(10));
        // A keep-alive that is refused is asked otherwise.
        assert!(dialogue.still_there().starts_with(b"GET_PARAMETER "));
        assert_eq!(answer(&mut dialogue, "RTSP/1.0 405 No\r\n\r\n"), Ok(Next::Nothing));
        assert!(dialogue.still_there().starts_with(b"OPTIONS "));
        // One that wants the password for it again and again is no reason to end: it plays.
        assert!(said(answer(&mut dialogue, challenge)).starts_with("OPTIONS "));
        assert_eq!(answer(&mut dialogue, challenge), Ok(Next::Nothing));
    }

    /// What was let in without a password goes on though keep-alives want one.
    #[test]
    fn keep_alives_that_are_refused_end_nothing() {
        let mut dialogue = Dialogue::new(Address::parse("rtsp://cam/").unwrap(), Way::Tcp);
        dialogue.begin();
        let well = "RTSP/1.0 200 OK\r\nPublic: GET_PARAMETER\r\n\r\n";
        said(answer(&mut dialogue, well));
        said(answer(&mut dialogue, &described("")));
        (0..2).for_each(|_| drop(said(answer(&mut dialogue, well))));
        assert_eq!(answer(&mut dialogue, well), Ok(Next::Play));
        assert!(dialogue.still_there().starts_with(b"GET_PARAMETER "));
        let basic = "RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\n\r\n";
        assert_eq!(answer(&mut dialogue, basic), Ok(Next::Nothing));
        assert!(dialogue.still_there().starts_with(b"OPTIONS "));
    }

    #[test]
    fn a_group_is_joined_where_it_is_told() {
        let begun = || {
            let mut dialogue = Dialogue::new(Address::parse("rtsp://cam/").unwrap(), Way::Multicast);
            dialogue.begin();
            said(answer(&mut dialogue, "RTSP/1.0 200 OK\r\n\r\n"));
            let setup = said(answer(&mut dialogue, &described("")));
            assert!(setup.contains("Transport: RTP/AVP;multicast\r\n"), "{setup}");
            dialogue
        };
        let group =
            "RTSP/1.0 200 OK\r\nTransport: RTP/AVP;multicast;destination=239.1.2.3;port=7000-7001;ttl=1\r\n\r\n";
        let mut dialogue = begun();
        said(answer(&mut dialogue, group));
        assert_eq!(dialogue.setups, [Setup::Group("239.1.2.3".parse().unwrap(), (7000, 7001), None)]);
        // What is no group is not joined.
        for wrong in
            [group.replace("239.1.2.3", "10.0.0.1"), group.replace(";port=7000-7001", ""), group.replace("7000", "0")]
        {
            assert!(answer(&mut begun(), &wrong).is_err(), "{wrong}");
        }
        assert!(answer(&mut begun(), "RTSP/1.0 461 No\r\n\r\n").unwrap_err().to_string().contains("transport auto"));
    }

    #[test]
    fn refusals_tell_the_way_out() {
        let begun = |address: &str, way| {
            let mut dialogue = Dialogue::new(Address::parse(address).unwrap(), way);
            dialogue.begin();
            said(answer(&mut dialogue, "RTSP/1.0 200 OK\r\n\r\n"));
            dialogue
        };
        let basic = "RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"\r\n\r\n";
        let told = answer(&mut begun("rtsp://cam/", Way::Tcp), basic).unwrap_err().to_string();
        assert!(told.contains("rtsp://USER:PASSWORD@"), "{told}");
        let mut dialogue = begun("rtsp://me:hidden@cam/", Way::Tcp);
        assert!(said(answer(&mut dialogue, basic)).contains("Authorization: Basic bWU6aGlkZGVu"));
        let told = answer(&mut dialogue, basic).unwrap_err().to_string();
        assert!(told.contains("refuses") && !told.contains("hidden"), "{told}");
        // In words of this program, whatever it asks for.
        for (asked, named) in [("", "no way that it tells"), ("WWW-Authenticate: Negotiate a=\"\r\n", "by Negotiate;")]
        {
            let response = format!("RTSP/1.0 401 Unauthorized\r\n{asked}\r\n");
            let told = answer(&mut begun("rtsp://me:hidden@cam/", Way::Tcp), &response).unwrap_err().to_string();
            assert!(told.contains(named) && told.contains("Digest or Basic") && !told.contains("EOF"), "{told}");
        }
        // It is followed to another path, a few times, and nowhere else: there it would be asked with the password.
        let mut dialogue = begun("rtsp://me:hidden@cam/", Way::Tcp);
        let moved = |to: &str| format!("RTSP/1.0 302 Found\r\nLocation: {to}\r\n\r\n");
        for _ in 0..MOVES_MAX {
            let again = said(answer(&mut dialogue, &moved("rtsp://cam/live?secret=1")));
            assert!(again.starts_with("DESCRIBE rtsp://cam/live?secret=1 RTSP/1.0\r\n"), "{again}");
        }
        let told = answer(&mut dialogue, &moved("rtsp://cam/live?secret=1")).unwrap_err().to_string();
        assert!(told.contains("another path again and again") && !told.contains("secret"), "{told}");
        for place in ["rtsp://evil/?secret", "rtsps://cam/", "rtsp://cam:99/", "elsewhere"] {
            let told = answer(&mut begun("rtsp://me:hidden@cam/", Way::Tcp), &moved(place)).unwrap_err().to_string();
            assert!(told.contains("it has moved to") && !told.contains("secret"), "{told}");
        }
        let told = answer(&mut begun("rtsp://cam/", Way::Tcp), "RTSP/1.0 404 No\r\n\r\n").unwrap_err().to_string();
        assert!(told.contains("path"), "{told}");
        let mut dialogue = begun("rtsp://cam/", Way::Udp);
        said(answer(&mut dialogue, &described("")));
        assert_eq!(answer(&mut dialogue, "RTSP/1.0 461 No\r\n\r\n"), Err(Trouble::NoUdp));
        // Neither datagrams nor the connection: it may know of groups only.
        let mut dialogue = begun("rtsp://cam/", Way::Tcp);
        let one = "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n";
        said(answer(&mut dialogue, &format!("RTSP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{one}", one.len())));
        let told = answer(&mut dialogue, "RTSP/1.0 461 No\r\n\r\n").unwrap_err().to_string();
        assert!(told.contains("transport multicast"), "{told}");
        // Without the first medium the second is played.
        let mut dialogue = begun("rtsp://cam/", Way::Tcp);
        said(answer(&mut dialogue, &described("")));
        let other = said(answer(&mut dialogue, "RTSP/1.0 404 No\r\n\r\n"));
        assert!(other.starts_with("SETUP rtsp://cam/a "), "{other}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(200)) })]

        /// Whatever a source answers, the dialogue ends or goes on, and never says the password.
        #[test]
        fn lying_sources_do_no_harm(answers in prop::collection::vec((
            prop_oneof![Just(200_u16), Just(401), Just(461), Just(454), 100..999_u16],
            prop::collection::vec(prop_oneof![
                Just("Session: 1;timeout=0".to_owned()), Just("Transport: RTP/AVP/TCP;interleaved=300-1".to_owned()),
                Just("Transport: RTP/AVP;server_port=x".to_owned()), Just("WWW-Authenticate: Digest realm=\"\", nonce=\"\"".to_owned()),
                Just("Content-Base: rtsp:///".to_owned()), "[A-Za-z-]{1,16}: [ -~]{0,40}",
            ], 0..4),
            any::<bool>(),
        ), 1..14), udp in any::<bool>()) {
            let way = if udp { Way::Udp } else { Way::Tcp };
            let mut dialogue = Dialogue::new(Address::parse("rtsp://u:topsecret@cam/").unwrap(), way);
            dialogue.begin();
            for (status, headers, with_sdp) in answers {
                let mut text = format!("RTSP/1.0 {status} X\r\n");
                headers.iter().for_each(|header| { text.push_str(header); text.push_str("\r\n") });
                if with_sdp {
                    text.push_str(&format!("Content-Length: {}\r\n\r\n{SDP}", SDP.len()));
                } else {
                    text.push_str("\r\n");
                }
                let Ok(Some((Message::Response { status, headers, body }, _))) = take(text.as_bytes(), BOUNDS) else { continue };
                match dialogue.heard(status, &headers, &body, &mut |_| Ok(9000)) {
                    Ok(Next::Say(bytes)) => prop_assert!(!String::from_utf8_lossy(&bytes).contains("topsecret")),
                    Ok(_) => {}
                    Err(trouble) => { prop_assert!(!trouble.to_string().contains("topsecret")); break }
                }
                prop_assert!(dialogue.setups.len() <= dialogue.description.tracks.len());
            }
        }
    }
}
