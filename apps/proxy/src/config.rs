//! What the proxy is told: options, and a file of the same.

mod file;

use crate::address::{Address, Credentials};
use crate::auth::{Streams, User};
use clap::{Parser, ValueEnum};
pub(crate) use file::shown;
use file::{File, FileUser, Size, file};
use serde::Deserialize;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use toml::Spanned;

/// Serves cameras to any number of viewers
///
/// Each source is pulled once by RTSP, over UDP or within the connection, and served as rtsp://HOST:8554/NAME to whoever asks,
/// within the connection, over UDP or over HTTP; and as MPEG-TS, fragmented MP4 and WebSocket over HTTP. Viewers that are slow
/// miss groups of pictures; nobody waits for them. SIGTERM lets viewers finish for a while, then ends; SIGHUP reads the file of
/// --config again, and ends it without one.
#[derive(Parser, Clone, Debug, Default)]
#[command(name = "multigrain proxy", version, max_term_width = 100)]
pub struct Args {
    /// A source: rtsp://USER:PASSWORD@HOST/PATH or rtsps://..., with NAME= before it to serve it as /NAME [default name: camera, camera2, ...]. Others on
    /// this computer see it with its password: better in the file
    #[arg(short, long = "source", value_name = "[NAME=]URL")]
    pub sources: Vec<String>,
    /// A TOML file with the same: tables `source` with name, transport, and url or, of several servers, urls; tables `user` with name, password
    /// and, if not all, streams; and the options below
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where viewers ask by RTSP [default: :8554, unless there is --rtsps]
    #[arg(long, value_name = "[HOST]:PORT")]
    pub listen: Option<String>,
    /// Where viewers ask by HTTP: /NAME.ts, /NAME.mp4, /NAME.ws, a page of what is flowing, /metrics
    #[arg(long, value_name = "[HOST]:PORT")]
    pub http: Option<String>,
    /// Where viewers ask by RTSP within TLS
    #[arg(long, value_name = "[HOST]:PORT")]
    pub rtsps: Option<String>,
    /// Where viewers ask by HTTP within TLS
    #[arg(long, value_name = "[HOST]:PORT")]
    pub https: Option<String>,
    /// The certificate that viewers see, and those of its authorities: a PEM file
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Its private key: a PEM file
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Certificates of rtsps sources, or of their authorities, that are believed beside the system's: a PEM file
    #[arg(long, value_name = "FILE")]
    pub trust: Option<PathBuf>,
    /// Somebody who may watch; without any, everybody may. Others on this computer see it: better in the file
    #[arg(long = "user", value_name = "NAME:PASSWORD")]
    pub users: Vec<String>,
    /// The first of two UDP ports from which viewers are served, even [default: any]
    #[arg(long, value_name = "PORT")]
    pub udp_port: Option<u16>,
    /// How sources are asked to send [default: auto]
    #[arg(long, value_name = "WAY")]
    pub transport: Option<Transport>,
    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Which thread does what [default: spread]
    #[arg(long, value_name = "POLICY")]
    pub placement: Option<Placement>,
    /// Within which time packets should be on their way: what sending leaves of it is waited for others, which saves processor time;
    /// milliseconds, such as 0.5; 0 for never [default: 0.5]
    #[arg(long, value_name = "MS")]
    pub gather_ms: Option<f64>,
    /// How long packets wait for those before them, milliseconds [default: 50]
    #[arg(long, value_name = "MS")]
    pub reorder_ms: Option<u64>,
    /// How far a viewer may be behind before it misses pictures [default: 8MiB]
    #[arg(long, value_name = "BYTES")]
    pub queue: Option<String>,
    /// Viewers at most [default: 1000]
    #[arg(long, value_name = "N")]
    pub viewers: Option<usize>,
    /// Connections from one address at most [default: 200]
    #[arg(long, value_name = "N")]
    pub connections_an_address: Option<usize>,
    /// Seconds that viewers have to leave after SIGTERM [default: 5]
    #[arg(long, value_name = "S")]
    pub drain_s: Option<u64>,
    /// Serves nobody, but translates in place between clients and the sources, as a router between them: RTSP and RTP over UDP towards
    /// a source, TCP towards a client that asks it by RTSP or HTTP. The device is one of `ip tuntap`, to which both directions are routed
    #[arg(long, value_name = "DEVICE")]
    pub transparent: Option<String>,
    /// Prints one JSON object with the ports when it serves
    #[arg(long)]
    pub json: bool,
}

/// How a source is asked to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// As datagrams, and within the connection where none come, or where that is within TLS
    #[default]
    Auto,
    /// As datagrams
    Udp,
    /// Within the connection
    Tcp,
    /// As datagrams to a group
    Multicast,
}

/// Which thread does what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Sources over all threads, viewers where the fewest are
    #[default]
    Spread,
    /// Sources over all threads, viewers on their source's
    RunToCompletion,
    /// Sources on the first thread, viewers on the others
    Pipelined,
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its path towards viewers.
    pub name: String,
    /// Where it is; servers that all have it, if there are several.
    pub addresses: Vec<Address>,
    /// How it is asked to send.
    pub transport: Transport,
}

/// Everything, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// What is served.
    pub sources: Vec<Source>,
    /// RTSP.
    pub listen: Option<SocketAddr>,
    /// HTTP, if it is wanted.
    pub http: Option<SocketAddr>,
    /// RTSP within TLS.
    pub rtsps: Option<SocketAddr>,
    /// HTTP within TLS.
    pub https: Option<SocketAddr>,
    /// Files of the certificate and of its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// A file of certificates of sources.
    pub trust: Option<PathBuf>,
    /// Who may watch; everybody, if there is nobody.
    pub users: Vec<User>,
    /// The first UDP port towards viewers; 0 for any.
    pub udp_port: u16,
    /// Threads.
    pub workers: usize,
    /// Which does what.
    pub placement: Placement,
    /// What is bounded.
    pub limits: Limits,
    /// How long viewers have to leave.
    pub drain: Duration,
    /// The device of packets that are translated, if nobody is served.
    pub transparent: Option<String>,
}

/// What is bounded, beside what is a constant.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Viewers that play.
    pub viewers: usize,
    /// Connections from one address.
    pub connections_an_address: usize,
    /// Bytes of a stream's log, and of what a viewer may be behind.
    pub queue_bytes: usize,
    /// How long a packet waits for those before it.
    pub reorder: Duration,
    /// How long it waits at most for others of its picture.
    pub gather: Duration,
}

/// Addresses of one source at most.
const ADDRESSES_MAX: usize = 64;
/// Names of sources that are told where one was wrong.
const SHOWN_MAX: usize = 8;

/// Sources at most.
pub const SOURCES_MAX: usize = 1000;

/// Bytes of a stream's log, unless told otherwise.
const QUEUE: u64 = 8 << 20;

/// Threads at most.
pub const WORKERS_MAX: usize = 64;

/// An address to listen at; without a host, all of this computer's.
fn place(text: &str, told: &str) -> Result<SocketAddr, String> {
    let all = text.strip_prefix(':').and_then(|port| port.parse().ok());
    let all = all.map(|port: u16| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    all.or_else(|| text.parse().ok()).ok_or_else(|| {
        format!("{told} is no place to listen at; write :PORT, or ADDRESS:PORT with an IP address of this computer")
    })
}

/// Whether a name can be a path, a label and a word of a log.
fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.')
}

impl Args {
    /// Options and file together; options count more, and their sources come first.
    ///
    /// # Errors
    /// What is wrong and what to write instead. No text has a password in it.
    pub fn config(&self) -> Result<Config, String> {
        let mut file = self.config.as_deref().map_or_else(|| Ok(File::default()), file)?;
        let sources = self.sources(&mut file)?;
        let queue = file.queue.take();
        let queue = file.pick("queue", self.queue.clone().map(Size::Text), queue);
        let bytes = match &queue {
            None => Some(QUEUE),
            Some((Size::Bytes(bytes), _)) => Some(*bytes),
            Some((Size::Text(text), _)) => multigrain::parse_bytes(text).ok(),
        };
        let bytes = bytes.filter(|bytes| (64 << 10..=1 << 30).contains(bytes));
        let told = queue.map_or_else(String::new, |(_, told)| told);
        let bytes = bytes.ok_or_else(|| format!("{told} is no size from 64KiB to 1GiB, such as 8MiB"))?;
        let number = |picked: Option<(usize, String)>, usual: usize, most: usize, what: &str| match picked {
            None => Ok(usual),
            Some((n, _)) if (1..=most).contains(&n) => Ok(n),
            Some((_, told)) => Err(format!("{told}: {what}")),
        };
        let usual_workers = std::thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
        let workers = file.workers.take();
        let workers = file.pick("workers", self.workers, workers);
        let workers =
            number(workers, usual_workers, WORKERS_MAX, &format!("threads are a number from 1 to {WORKERS_MAX}"))?;
        let udp_port = file.udp_port.take();
        let udp_port = match file.pick("udp_port", self.udp_port, udp_port) {
            Some((port, told)) if port % 2 == 1 => {
                return Err(format!("{told} is odd; RTP takes an even port and its reports the next one"));
            }
            picked => picked.map_or(0, |(port, _)| port),
        };
        let reorder = file.reorder_ms.take();
        let reorder = match file.pick("reorder_ms", self.reorder_ms, reorder) {
            Some((ms, told)) if ms > 2000 => {
                return Err(format!("{told} would keep pictures back for seconds; give at most 2000"));
            }
            picked => picked.map_or(50, |(ms, _)| ms),
        };
        let gather = file.gather_ms.take();
        let gather = match file.pick("gather_ms", self.gather_ms, gather) {
            Some((ms, told)) if !(0.0..=100.0).contains(&ms) => {
                return Err(format!("{told} is no time to keep packets; give milliseconds from 0 to 100"));
            }
            picked => picked.map_or(0.5, |(ms, _)| ms),
        };
        let drain = file.drain_s.take();
        let drain = match file.pick("drain_s", self.drain_s, drain) {
            Some((s, told)) if s > 3600 => {
                return Err(format!("{told} would keep it running for hours; give at most 3600"));
            }
            picked => picked.map_or(5, |(s, _)| s),
        };
        let viewers = file.viewers.take();
        let viewers = file.pick("viewers", self.viewers, viewers);
        let viewers = number(viewers, 1000, usize::MAX, "this would serve nobody; give how many may play at a time")?;
        let own = file.connections_an_address.take();
        let own = file.pick("connections_an_address", self.connections_an_address, own);
        let own = number(own, 200, usize::MAX, "this would let nobody in; give how many one address may have")?;
        let users = self.users(&mut file, &sources)?;
        let at = |key: &str, given: &Option<String>, filed: Option<Spanned<String>>| {
            file.pick(key, given.clone(), filed).map(|(text, told)| place(&text, &told)).transpose()
        };
        let rtsps = at("rtsps", &self.rtsps, file.rtsps.clone())?;
        let https = at("https", &self.https, file.https.clone())?;
        let listen = at("listen", &self.listen, file.listen.clone())?;
        let usual_place = || rtsps.is_none().then(|| place(":8554", "--listen")).transpose();
        let certificate = match (self.cert.clone().or(file.cert.clone()), self.key.clone().or(file.key.clone())) {
            (Some(_), Some(_)) if rtsps.is_none() && https.is_none() => {
                return Err(
                    "there is a certificate, and nothing is served within TLS; give --rtsps or --https".to_owned()
                );
            }
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) if rtsps.is_none() && https.is_none() => None,
            _ => return Err("TLS needs a certificate and its private key; give --cert FILE and --key FILE".to_owned()),
        };
        let listen = listen.map_or_else(usual_place, |place| Ok::<_, String>(Some(place)))?;
        let http = at("http", &self.http, file.http.clone())?;
        let places = [("--listen", listen), ("--http", http), ("--rtsps", rtsps), ("--https", https)];
        for (number, (option, place)) in places.iter().enumerate() {
            let same =
                places[..number].iter().find(|(_, other)| place.is_some_and(|p| p.port() != 0 && *other == Some(p)));
            if let (Some((other, _)), Some(place)) = (same, place) {
                return Err(format!("{other} and {option} are both {place}; give one of them another port"));
            }
        }
        let transparent = self.transparent.clone().or(file.transparent.clone());
        if transparent.is_some() {
            if !users.is_empty() || rtsps.is_some() || https.is_some() {
                return Err("with --transparent nobody is asked for a password and nothing is within TLS: clients talk to the sources; leave \
                     out --user, --rtsps and --https"
                    .to_owned());
            }
            if sources.iter().flat_map(|source| &source.addresses).any(|address| address.credentials.is_some()) {
                return Err("with --transparent whoever asks by HTTP would come in by the password that is in a source's address; leave it out: \
                     by RTSP clients give their own"
                    .to_owned());
            }
        }
        Ok(Config {
            sources,
            listen,
            http,
            rtsps,
            https,
            certificate,
            trust: self.trust.clone().or(file.trust),
            users,
            udp_port,
            workers,
            placement: self.placement.or(file.placement).unwrap_or_default(),
            limits: Limits {
                viewers,
                connections_an_address: own,
                queue_bytes: bytes as usize,
                reorder: Duration::from_millis(reorder),
                gather: Duration::from_secs_f64(gather / 1000.0),
            },
            drain: Duration::from_secs(drain),
            transparent,
        })
    }

    /// What is served: options first.
    fn sources(&self, file: &mut File) -> Result<Vec<Source>, String> {
        let usual = self.transport.or(file.transport).unwrap_or_default();
        let given = self.sources.iter().map(|text| {
            // Before the scheme is a name, and nothing else: without one, the text may begin with a password.
            let before = text.find("://").map_or("", |scheme| &text[..scheme]);
            match before.split_once('=').filter(|(name, _)| !name.contains([':', '@'])) {
                Some((name, _)) => {
                    (String::new(), Some(name.to_owned()), vec![text[name.len() + 1..].to_owned()], usual)
                }
                None => (String::new(), None, vec![text.clone()], usual),
            }
        });
        let filed = std::mem::take(&mut file.source);
        let filed = filed.into_iter().map(|source| {
            let (line, s) = (format!("{}: ", file.line(&source.span())), source.into_inner());
            let urls = s.url.into_iter().chain(s.urls).collect::<Vec<String>>();
            (line, s.name, urls, s.transport.unwrap_or(usual))
        });
        let mut sources: Vec<Source> = Vec::new();
        for (number, (line, name, urls, transport)) in given.chain(filed).enumerate() {
            let unnamed = || if number == 0 { "camera".to_owned() } else { format!("camera{}", number + 1) };
            let name = name.unwrap_or_else(unnamed);
            if !is_name(&name) {
                let so = if line.is_empty() { format!("{:?}", shown(&name)) } else { "so".to_owned() };
                return Err(format!(
                    "{line}a source cannot be called {so}: names have 1 to 64 letters, digits, -, _ and ., and do not begin with ."
                ));
            }
            if sources.iter().any(|source| source.name == name) {
                return Err(format!("{line}two sources are called {name}; give one of them another name"));
            }
            let wrong = |why: String| format!("{line}the address of source {name} is wrong: {why}");
            let addresses: Vec<Address> =
                urls.iter().map(|url| Address::parse(url)).collect::<Result<_, _>>().map_err(wrong)?;
            if !(1..=ADDRESSES_MAX).contains(&addresses.len()) {
                return Err(format!(
                    "{line}source {name} has {} addresses; give url, or urls with 1 to {ADDRESSES_MAX}",
                    addresses.len()
                ));
            }
            let goes_clear = matches!(transport, Transport::Udp | Transport::Multicast);
            if goes_clear && addresses.iter().any(|address| address.is_secure) {
                return Err(format!(
                    "{line}source {name} is asked within TLS, and datagrams would come in the clear; give it transport tcp or auto, or rtsp://"
                ));
            }
            sources.push(Source { name, addresses, transport });
        }
        if sources.is_empty() {
            return Err("there is nothing to serve; give --source rtsp://..., or --config FILE with sources".to_owned());
        }
        if sources.len() > SOURCES_MAX {
            return Err(format!(
                "{} sources are more than the {SOURCES_MAX} that one proxy pulls; start several",
                sources.len()
            ));
        }
        Ok(sources)
    }

    /// Who may watch, of these.
    fn users(&self, file: &mut File, sources: &[Source]) -> Result<Vec<User>, String> {
        let mut users: Vec<(String, User)> = Vec::new();
        for text in &self.users {
            let (user, password) =
                text.split_once(':').ok_or("--user is NAME:PASSWORD, and there is no colon in it")?;
            let who = Credentials { user: user.to_owned(), password: password.to_owned() };
            users.push((String::new(), User { who, streams: Streams::default() }));
        }
        for user in std::mem::take(&mut file.user) {
            let (line, user) = (format!("{}: ", file.line(&user.span())), user.into_inner());
            let FileUser { name, password, streams: own } = user;
            let is_unknown = |own: &String| !sources.iter().any(|source| source.name == *own);
            if let Some(number) = own.iter().flatten().position(is_unknown) {
                // The name may be a password in the wrong place; those of sources are none.
                let mut names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).take(SHOWN_MAX).collect();
                names.extend((sources.len() > SHOWN_MAX).then_some("..."));
                return Err(format!(
                    "{line}number {} of the streams of user {} is no source; correct the name there: sources are {}",
                    number + 1,
                    users.len() + 1,
                    names.join(", ")
                ));
            }
            if own.as_ref().is_some_and(Vec::is_empty) {
                return Err(format!("{line}a user may watch nothing; name streams, or leave streams out for all"));
            }
            let streams = Streams(own.map(Arc::new));
            users.push((line, User { who: Credentials { user: name, password }, streams }));
        }
        for (number, (line, User { who, .. })) in users.iter().enumerate() {
            if who.user.is_empty() || who.password.is_empty() || who.user.contains([':', '"']) {
                return Err(format!(
                    "{line}a user's name and password are not empty, and the name has neither : nor \" in it"
                ));
            }
            // Names may be as secret as passwords: whoever mistakes one for the other sees neither.
            if users[..number].iter().any(|(_, other)| other.who.user == who.user) {
                return Err(format!(
                    "{line}user {} has the name of one before; give each a name of its own",
                    number + 1
                ));
            }
        }
        Ok(users.into_iter().map(|(_, user)| user).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_file_are_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proxy.toml");
        let text =
            "viewers = 7\nworkers = 3\n[[source]]\nname = \"yard\"\nurl = \"rtsp://u:p@b/\"\ntransport = \"tcp\"\n";
        std::fs::write(&path, text).unwrap();
        let args = Args {
            sources: vec!["door=rtsp://a/x=1".to_owned(), "rtsp://c/?a=b".to_owned()],
            config: Some(path.clone()),
            workers: Some(2),
            ..Args::default()
        };
        let config = args.config().unwrap();
        let names: Vec<_> =
            config.sources.iter().map(|s| (s.name.as_str(), s.addresses[0].to_string(), s.transport)).collect();
        assert_eq!(
            names,
            [
                ("door", "rtsp://a".to_owned(), Transport::Auto),
                ("camera2", "rtsp://c".to_owned(), Transport::Auto),
                ("yard", "rtsp://b".to_owned(), Transport::Tcp),
            ]
        );
        assert_eq!((config.limits.viewers, config.workers, config.listen.unwrap().port()), (7, 2, 8554));
        // Who may watch what is not there is told so.
        std::fs::write(&path, format!("{text}[[user]]\nname = \"eve\"\npassword = \"hidden\"\nstreams = [\"gone\"]\n"))
            .unwrap();
        let said = args.config().unwrap_err();
        assert!(
            said.contains("number 1 of the streams of user 1 is no source; correct the name there: sources are door, camera2, yard") && !said.contains("gone") && !said.contains("hidden"),
            "{said}"
        );
        // A line that is wrong is named, and not shown.
        std::fs::write(&path, "viewers = 1\nurl = \"rtsp://u:hidden@b/\"\n").unwrap();
        let args = Args { config: Some(path.clone()), ..Args::default() };
        let said = args.config().unwrap_err();
        assert!(said.contains("line 2") && !said.contains("hidden"), "{said}");
        std::fs::write(&path, "[[source]]\n\"rtsp://u:hidden@b/\" = \"front\"\n").unwrap();
        let said = args.config().unwrap_err();
        assert!(said.contains("line 2") && said.contains("`url`") && !said.contains("hidden"), "{said}");
        for password in ["8241973", "82.41973", "true", "[8241973]", "2020-08-24"] {
            std::fs::write(&path, format!("[[user]]\nname = \"eve\"\npassword = {password}\n")).unwrap();
            let said = args.config().unwrap_err();
            assert!(said.contains("line 3: there has to be a text in quotes") && !said.contains(password), "{said}");
        }
        // What is wrong in the file is found in the file, in words of this program.
        let source = "[[source]]\nname = \"yard\"\nurl = \"rtsp://b/\"\n";
        let user = "[[user]]\nname = \"eve\"\npassword = \"hidden\"\n";
        for (text, told) in [
            (format!("viewers = 3\nworkers = 100\n{source}"), "line 2: workers: threads are"),
            (format!("viewers = 0\n{source}"), "line 1: viewers: this would serve nobody"),
            (
                format!("connections_an_address = 0\n{source}"),
                "line 1: connections_an_address: this would let nobody in",
            ),
            (format!("queue = 7\n{source}"), "line 1: queue is no size"),
            (format!("queue = true\n{source}"), "line 1: there has to be a size"),
            (format!("workers = -1\n{source}"), "line 1: there has to be a number without a sign"),
            (format!("udp_port = 70000\n{source}"), "line 1: there has to be a number from 0 to 65535"),
            (format!("listen = \":85\n{source}"), "line 1: a text ends with"),
            (format!("listen = \"here\"\n{source}"), "line 1: listen is no place"),
            (format!("{source}urls = [\n"), "unclosed array, expected `]`"),
            (format!("listen = = \"hidden\"\n{source}"), "line 1: extra `=`"),
            ("[[source\nname = \"hidden\"\n".to_owned(), "line 1: unclosed array table, expected `]]`"),
            (format!("{source}[[user]]\nname = \"hidden\"\n"), "line 4: missing field `password`"),
            // What is quoted may look like what is said.
            (format!("viewers = \"a, expected hidden\"\n{source}"), "line 1: there has to be a number without"),
            (format!("\"a, expected hidden\" = 1\n{source}"), "line 1: there is no such key, but `source`"),
            (format!("{source}{source}"), "line 4: two sources are called yard"),
            (format!("{source}{user}{user}"), "line 7: user 2 has the name of one before"),
            (
                format!("{source}{user}streams = [\"nope\"]\n"),
                "line 4: number 1 of the streams of user 1 is no source; correct the name there: sources are yard",
            ),
            (
                "[[source]]\nurl = \"rtsp://u:hidden@[::1/x\"\n".to_owned(),
                "line 1: the address of source camera is wrong: the [ before its host has no ]",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let said = args.config().unwrap_err();
            assert!(said.contains(told) && said.contains("proxy.toml") && !said.contains("hidden"), "{said}");
        }
        // An address is as secret wherever it stands.
        for (text, told) in [
            (
                "[[source]]\nname = \"rtsp://u:hidden@h/\"\nurl = \"front\"\n".to_owned(),
                "line 1: a source cannot be called",
            ),
            (
                format!("{source}{user}streams = [\"rtsp://u:hidden@h/\"]\n"),
                "line 4: number 1 of the streams of user 1 is no source; correct the name there: sources are yard",
            ),
            (format!("listen = \"rtsp://u:hidden@h/\"\n{source}"), "line 1: listen is no place"),
            (format!("listen = \"rtsp://h/?key=hidden\"\n{source}"), "line 1: listen is no place"),
            // Nor is a word that may be one.
            (format!("listen = \"hidden\"\n{source}"), "line 1: listen is no place"),
            (format!("queue = \"hidden\"\n{source}"), "line 1: queue is no size"),
            (
                "[[source]]\nname = \"hidden!\"\nurl = \"rtsp://h/\"\n".to_owned(),
                "line 1: a source cannot be called so",
            ),
            (format!("{source}{user}streams = [\"yard\", \"hidden\"]\n"), "number 2 of the streams of user 1"),
            (format!("queue = \"u:hidden@h\"\n{source}"), "line 1: queue is no size"),
            (format!("transport = \"rtsp://u:hidden@h/\"\n{source}"), "line 1: there has to be one of `auto`"),
            (format!("placement = \"hidden\"\n{source}"), "line 1: there has to be one of `"),
        ] {
            std::fs::write(&path, text).unwrap();
            let said = args.config().unwrap_err();
            assert!(said.contains(told) && !said.contains("hidden"), "{said}");
        }
        // Keys are as secret as what was meant to be a value.
        for text in [
            "\"rtsp://u:hidden@h/\" = \"a\"",
            "hidden = 1",
            "url = 1\nurl = \"hidden\"",
            "\"hidden\" = 1\n\"hidden\" = 2",
            "hidden",
        ] {
            for table in ["source", "user"] {
                std::fs::write(&path, format!("[[{table}]]\n{text}\n")).unwrap();
                let said = args.config().unwrap_err();
                assert!(said.contains("line ") && !said.contains("hidden"), "{said}");
            }
        }
        for (text, told) in [
            ("source = [\"rtsp://u:hidden@h/\"]\n", "line 1: write [[source]]"),
            ("source = \"rtsp://u:hidden@h/\"\n", "line 1: write [[source]]"),
            ("user = [\"a:hidden\"]\n", "line 1: write [[user]]"),
            (
                "[[source]]\nurl = \"rtsps://u:hidden@h/\"\ntransport = \"udp\"\n",
                "line 1: source camera is asked within TLS",
            ),
            ("[[source]]\nname\n", "line 2: this line is not whole"),
            ("cert = \"a\"\nkey = \"b\"\n[[source]]\nurl = \"rtsp://h/\"\n", "give --rtsps or --https"),
            (
                "[[source]]\nurl = \"rtsp://h/\"\n[[user]]\nname = \"eve\"\npassword = \"hidden\"\nstreams = []\n",
                "may watch nothing",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let said = args.config().unwrap_err();
            assert!(said.contains(told) && !said.contains("hidden"), "{said}");
        }
        std::fs::write(&path, b"viewers = 1\n# \xff\n").unwrap();
        assert!(args.config().unwrap_err().contains("line 2: this is no text in UTF-8"));
        std::fs::write(&path, format!("queue = 1048576\n{source}")).unwrap();
        assert_eq!(args.config().unwrap().limits.queue_bytes, 1 << 20);
        for name in ["source", "user"] {
            std::fs::write(&path, format!("viewers = 1\n[{name}]\nname = \"hidden\"\n")).unwrap();
            let said = args.config().unwrap_err();
            assert!(said.contains(&format!("line 2: write [[{name}]]")) && !said.contains("hidden"), "{said}");
        }
    }

    #[test]
    fn wrong_requests_tell_what_to_write() {
        let with = |edit: &dyn Fn(&mut Args)| {
            let mut args = Args { sources: vec!["rtsp://u:hidden@a/".to_owned()], ..Args::default() };
            edit(&mut args);
            args.config().unwrap_err()
        };
        let all = [
            with(&|a| a.sources.clear()),
            with(&|a| a.sources.push("camera=rtsp://b/".to_owned())),
            with(&|a| a.sources.push("a b=rtsp://b/".to_owned())),
            with(&|a| a.sources.push("x=http://u:hidden@b/".to_owned())),
            with(&|a| a.sources.push("user:hidden=1@b/x".to_owned())),
            with(&|a| a.sources.push("user:hidden=1@b/rtsp://x".to_owned())),
            with(&|a| a.listen = Some("everywhere".to_owned())),
            with(&|a| a.queue = Some("7".to_owned())),
            with(&|a| a.listen = Some("rtsp://u:hidden@a/".to_owned())),
            with(&|a| a.workers = Some(0)),
            with(&|a| a.viewers = Some(0)),
            with(&|a| a.udp_port = Some(9)),
            with(&|a| a.connections_an_address = Some(0)),
            with(&|a| a.transparent = Some("grain".to_owned())),
            with(&|a| {
                (a.transparent, a.sources, a.users) =
                    (Some("grain".to_owned()), vec!["rtsp://a/".to_owned()], vec!["eve:hidden".to_owned()])
            }),
            with(&|a| a.users.extend(["eve:hidden".to_owned(), "eve:other".to_owned()])),
            with(&|a| a.reorder_ms = Some(9999)),
            with(&|a| a.gather_ms = Some(9999.0)),
            with(&|a| a.gather_ms = Some(f64::NAN)),
            with(&|a| a.users.push("hidden".to_owned())),
            with(&|a| a.users.push(":hidden".to_owned())),
            with(&|a| a.https = Some(":9".to_owned())),
            with(&|a| (a.listen, a.http) = (Some(":9".to_owned()), Some(":9".to_owned()))),
        ];
        assert!(all.iter().all(|said| !said.contains("hidden")), "{all:?}");
    }
}
