//! What a packet costs: processor time of the program for each packet that a viewer gets, one source over UDP, 100 viewers within
//! their connections, on the loopback; and how late packets are with one more viewer, from sending to having been read.
//!
//! Then the most packets a second of which all arrive, found by halving, and the latency at half of these. Sender and viewers run on the
//! same processors as the program, so it is told for which part of the time its threads were ready and had none.
//!
//! `cargo bench -p multigrain-proxy --bench packets [-- costs|gather|most|peer [VIEWERS]]`, or `at PLACEMENT WORKERS MS
//! RATE...`, such as `at spread 2 0.5 3500 1000p`: `peer` is a relay of gst-rtsp-server beside the
//! program, in turns, where python3 with PyGObject is installed (MULTIGRAIN_PYTHON names another one).

#[path = "../tests/all/support/mod.rs"]
mod support;

use nix::cmsg_space;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::net::{RecvFlags, recv};
use std::io::{BufRead, BufReader, IoSliceMut, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use support::{Camera, Manners, Playing, Proxy, VIDEO, hear, rtp};

/// Nanoseconds of processor time that a process has had, and for which it was ready and had none, all threads.
fn processor_ns(process: u32) -> (u64, u64) {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let times = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    times.fold((0, 0), |(had, waited), text| {
        let mut numbers = text.split(' ').map(|number| number.trim().parse::<u64>().unwrap_or(0));
        (had + numbers.next().unwrap_or(0), waited + numbers.next().unwrap_or(0))
    })
}

/// Nanoseconds since 1970, as the system stamps what comes.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Packets that were sent.
static SENT: AtomicU64 = AtomicU64::new(0);

/// Pictures a second, and packets of each.
const PICTURES: u64 = 25;
const BYTES: usize = 1200;
/// As they come within a connection.
const FRAME_BYTES: usize = 4 + BYTES;

/// Threads that get a processor before all others as soon as they are ready: what is late then is late by work, not by waiting for one.
fn come_first(threads: &[&str]) -> bool {
    Command::new("chrt")
        .args(["-f", "-p"])
        .args(threads)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The same of the thread that calls this.
fn comes_first() {
    come_first(&["20", &rustix::thread::gettid().as_raw_nonzero().to_string()]);
}

/// Sends so many packets a picture until told to stop: at once, or evenly.
fn send(playing: &mut Playing, packets: u16, is_even: bool, ends: &AtomicBool) {
    let (mut sequence, began) = (SENT.load(Ordering::Relaxed) as u16, Instant::now());
    for picture in 0.. {
        for packet in 0..packets {
            let slot = picture * u64::from(packets) + if is_even { u64::from(packet) } else { 0 };
            let due = Duration::from_nanos(slot * 1_000_000_000 / PICTURES / u64::from(packets));
            if let Some(left) = due.checked_sub(began.elapsed()) {
                std::thread::sleep(left);
            }
            if ends.load(Ordering::Relaxed) {
                return;
            }
            // Fragments of one picture; every 25th is a key.
            let first = if packet == 0 { 0x80 } else { 0 } | if picture % 25 == 0 { 5 } else { 1 };
            let mut payload = vec![0x7c, first];
            payload.extend(now().to_be_bytes());
            payload.resize(BYTES - 12, 0);
            let kind = if packet + 1 == packets { 0x80 | 96 } else { 96 };
            playing.send(0, &rtp(kind, sequence, picture as u32 * 3600, 7, &payload));
            SENT.fetch_add(1, Ordering::Relaxed);
            sequence = sequence.wrapping_add(1);
        }
    }
}

fn viewer(place: &str) -> BufReader<TcpStream> {
    let socket = TcpStream::connect(place).unwrap();
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let (mut session, mut track) = (String::new(), "trackID=0".to_owned());
    let asked = [
        ("DESCRIBE", "", "Accept: application/sdp\r\n"),
        ("SETUP", "T", "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"),
        ("PLAY", "", ""),
    ];
    for (number, (method, with_track, headers)) in asked.into_iter().enumerate() {
        let path = if with_track.is_empty() { String::new() } else { format!("/{track}") };
        let text =
            format!("{method} rtsp://{place}/front{path} RTSP/1.0\r\nCSeq: {}\r\n{session}{headers}\r\n", number + 1);
        (&socket).write_all(text.as_bytes()).unwrap();
        // Some send packets before they have answered.
        let (text, body) = loop {
            match hear(&mut reader) {
                support::Heard::Text(text, body) => break (text, body),
                support::Heard::Frame(..) => {}
                support::Heard::End => panic!("no answer to {method}"),
            }
        };
        assert!(text.contains(" 200 "), "{text}");
        if let Some(told) = text.split("Session: ").nth(1) {
            session = format!("Session: {}\r\n", told.split([';', '\r']).next().unwrap());
        }
        let body = String::from_utf8(body).unwrap();
        if let Some(told) = body.split("m=video").nth(1).and_then(|media| media.split("a=control:").nth(1)) {
            track = told.split(['\r', '\n']).next().unwrap().rsplit('/').next().unwrap().to_owned();
        }
    }
    reader
}

/// Nanoseconds that packets took until they had come to a viewer's connection, sorted: the system tells when the last of what is read
/// came, so it counts no time that the viewer, which stands for another computer, waits for a processor of this one.
fn latencies(reader: BufReader<TcpStream>, ends: &AtomicBool) -> Vec<u64> {
    let (socket, mut bytes) = (reader.get_ref(), reader.buffer().to_vec());
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    setsockopt(socket, ReceiveTimestampns, &true).unwrap();
    let (mut all, mut buffer, mut room) = (Vec::new(), vec![0; 1 << 16], cmsg_space!(TimeSpec));
    while !ends.load(Ordering::Relaxed) {
        let mut places = [IoSliceMut::new(&mut buffer)];
        let Ok(message) = recvmsg::<()>(socket.as_raw_fd(), &mut places, Some(&mut room), MsgFlags::empty()) else {
            break;
        };
        let came = message.cmsgs().unwrap().find_map(|told| match told {
            ControlMessageOwned::ScmTimestampns(time) => {
                Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
            }
            _ => None,
        });
        let length = message.bytes;
        if length == 0 {
            break;
        }
        bytes.extend_from_slice(&buffer[..length]);
        let mut frames = bytes.chunks_exact(FRAME_BYTES);
        for frame in &mut frames {
            let sent = u64::from_be_bytes(frame[18..26].try_into().unwrap());
            // A relay may put something before what was sent, so that it is not found; what came before it was asked for has no stamp.
            if let Some(came) = came.filter(|_| sent > 0) {
                all.push(came.saturating_sub(sent));
            }
        }
        bytes = frames.remainder().to_vec();
    }
    // Who begins gets what was before.
    let mut all = all.split_off(all.len() / 4);
    all.sort_unstable();
    all
}

/// Viewers beside the one that is looked at: sockets whose bytes are counted, and thrown away by the system without being copied, as
/// if other computers had them. So they are read from time to time: to wake who waits for them would be the work of who sends, some 45 us
/// where the other processor rests and is one of a hypervisor's.
struct Crowd {
    sockets: Vec<TcpStream>,
    bytes: AtomicU64,
}

impl Crowd {
    fn new(sockets: Vec<TcpStream>) -> Crowd {
        sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        Crowd { sockets, bytes: AtomicU64::new(0) }
    }

    fn read(&self, ends: &AtomicBool) {
        let mut buffer = vec![0_u8; 1 << 20];
        while !ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
            for socket in &self.sockets {
                let (_, count) = recv(socket, buffer.as_mut_slice(), RecvFlags::TRUNC).unwrap_or_default();
                self.bytes.fetch_add(count as u64, Ordering::Relaxed);
            }
        }
    }
}

/// Of a process that serves at a place.
struct Figures {
    /// Microseconds a packet.
    us: f64,
    /// Packets a second, to all viewers together.
    rate: f64,
    /// Of what was sent.
    arrived: f64,
    /// Parts of the time for which threads had a processor, and waited for one.
    busy: (f64, f64),
    /// Milliseconds of latency: the median, and what 99 of 100 are below.
    late_ms: (f64, f64),
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures { us, rate, arrived, busy, late_ms: (half, most) } = self;
        let (arrived, had, waited) = (100.0 * arrived, 100.0 * busy.0, 100.0 * busy.1);
        write!(
            f,
            "{us:.2} us a packet, {rate:.0} a second, {arrived:.1} % arrived, {half:.2} ms late, 99 of 100 below {most:.2}; \
             processors {had:.0} %, waited for them {waited:.0} %"
        )
    }
}

fn measure(process: u32, place: &str, viewers: usize, seconds: u64, is_first: bool) -> Figures {
    // Who is served in the middle is late like most.
    let mut sockets: Vec<TcpStream> = (0..viewers / 2).map(|_| viewer(place).into_inner()).collect();
    let probe = viewer(place);
    sockets.extend((viewers / 2..viewers).map(|_| viewer(place).into_inner()));
    let (crowd, ends) = (Crowd::new(sockets), AtomicBool::new(false));
    let bytes = &crowd.bytes;
    std::thread::scope(|scope| {
        scope.spawn(|| crowd.read(&ends));
        let late = scope.spawn(|| {
            if is_first {
                comes_first();
            }
            latencies(probe, &ends)
        });
        std::thread::sleep(Duration::from_secs(2));
        let before = (processor_ns(process), bytes.load(Ordering::Relaxed), Instant::now());
        let sent = SENT.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_secs(seconds));
        let packets = (bytes.load(Ordering::Relaxed) - before.1) as f64 / (BYTES + 4) as f64;
        let sent = (SENT.load(Ordering::Relaxed) - sent) as f64;
        let (had, waited) = processor_ns(process);
        let (taken, passed) = ((had - before.0.0) as f64, before.2.elapsed().as_nanos() as f64);
        ends.store(true, Ordering::Relaxed);
        let late = late.join().unwrap();
        let part = |hundredths: usize| late.get(late.len() * hundredths / 100).map_or(f64::NAN, |ns| *ns as f64 / 1e6);
        Figures {
            arrived: packets / sent / viewers as f64,
            us: taken / 1000.0 / packets,
            rate: packets / passed * 1e9,
            busy: (taken / passed, (waited - before.0.1) as f64 / passed),
            late_ms: (part(50), part(99)),
        }
    })
}

/// Who is measured.
struct Subject<'a> {
    who: String,
    process: u32,
    place: String,
    viewers: usize,
    playing: &'a mut Playing,
    /// It comes before all others on the processors, with the sender and the viewer whose packets are looked at.
    is_first: bool,
}

impl Subject<'_> {
    /// With so many packets a picture, for some seconds.
    fn at(&mut self, packets: u16, is_even: bool, seconds: u64) -> Figures {
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let is_first = self.is_first;
            let (playing, ends) = (&mut *self.playing, &ends);
            scope.spawn(move || {
                if is_first {
                    comes_first();
                }
                send(playing, packets, is_even, ends)
            });
            let figures = measure(self.process, &self.place, self.viewers, seconds, is_first);
            ends.store(true, Ordering::Relaxed);
            let (a_second, how) = (u64::from(packets) * PICTURES, if is_even { "evenly" } else { "by pictures" });
            println!("{}, {a_second} packets a second {how}: {figures}", self.who);
            figures
        })
    }

    /// With so many packets a picture, coming before all others on the processors; nothing where that is not allowed.
    fn first_at(&mut self, packets: u16, is_even: bool) {
        let process = self.process.to_string();
        if come_first(&["-a", "20", &process]) {
            let who = format!("{}, before all others", self.who);
            let who = std::mem::replace(&mut self.who, who);
            self.is_first = true;
            self.at(packets, is_even, 5);
            (self.who, self.is_first) = (who, false);
            Command::new("chrt").args(["-a", "-o", "-p", "0", &process]).status().unwrap();
        }
    }

    /// The most of which all arrive, and how late they are at half of that, which is returned in packets a picture.
    fn most(&mut self, is_even: bool) -> u16 {
        let (mut good, mut bad) = (0, None);
        for packets in std::iter::successors(Some(40_u16), |packets| Some(packets * 2)).take(8) {
            match self.at(packets, is_even, 2).arrived > 0.995 {
                true => good = packets,
                false => {
                    bad = Some(packets);
                    break;
                }
            }
        }
        for _ in 0..2 {
            let Some(upper) = bad else { break };
            let middle = good.midpoint(upper);
            if self.at(middle, is_even, 2).arrived > 0.995 { good = middle } else { bad = Some(middle) }
        }
        println!(
            "{}: the most is {} packets a second to {} viewers; at half of that:",
            self.who,
            u64::from(good) * PICTURES,
            self.viewers + 1
        );
        let half = (good / 2).max(1);
        self.at(half, is_even, 5);
        self.first_at(half, is_even);
        half
    }
}

/// The program, pulled from a camera.
fn own<T>(placement: &str, workers: &str, viewers: usize, gather: &str, work: impl FnOnce(&mut Subject<'_>) -> T) -> T {
    let camera = Camera::new(Manners::of(VIDEO));
    let source = format!("front=rtsp://{}/", camera.address);
    let proxy = Proxy::start(&["-s", &source, "--placement", placement, "--workers", workers, "--gather-ms", gather]);
    let mut playing = camera.playing();
    proxy.serves("front");
    let who = format!("{placement}, {workers} workers, gathered {gather} ms");
    let place = format!("127.0.0.1:{}", proxy.rtsp);
    let done =
        work(&mut Subject { who, process: proxy.process(), place, viewers, playing: &mut playing, is_first: false });
    println!("lost: {}", proxy.metric("packets_lost") + proxy.metric("viewers_behind"));
    done
}

/// The relay, pulled from a camera; nothing where it cannot be started.
fn relay(viewers: usize, work: impl FnOnce(&mut Subject<'_>)) -> Option<()> {
    let camera = Camera::new(Manners::of(VIDEO));
    let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
    let python = std::env::var("MULTIGRAIN_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/relay.py");
    let mut child = Command::new(python)
        .args([script, &format!("rtsp://{}/", camera.address), &port.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
    if !line.is_empty() {
        let place = format!("127.0.0.1:{port}");
        // It pulls when somebody asks, and as long as somebody views.
        let first = std::thread::spawn({
            let place = place.clone();
            move || viewer(&place)
        });
        let (ends, mut playing) = (AtomicBool::new(false), camera.playing());
        let _first = std::thread::scope(|scope| {
            scope.spawn(|| send(&mut playing, 40, false, &ends));
            let first = first.join().unwrap();
            ends.store(true, Ordering::Relaxed);
            first
        });
        let who = "gst-rtsp-server".to_owned();
        work(&mut Subject {
            who,
            process: child.id(),
            place,
            viewers: viewers - 1,
            playing: &mut playing,
            is_first: false,
        });
    }
    let _ = child.kill();
    let _ = child.wait();
    (!line.is_empty()).then_some(())
}

/// What the system takes for a call that gives one packet to a connection, and nothing else: so many viewers, 1000 packets a second evenly.
fn bare(viewers: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pairs = (0..viewers).map(|_| {
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let near = listener.accept().unwrap().0;
        near.set_nodelay(true).unwrap();
        near.set_nonblocking(true).unwrap();
        (near, far)
    });
    let (near, far): (Vec<_>, Vec<_>) = pairs.unzip();
    let (crowd, ends) = (Crowd::new(far), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| crowd.read(&ends));
        let had = || std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let had = || had().split(' ').next().unwrap().parse::<u64>().unwrap();
        let (before, began, packet) = (had(), Instant::now(), vec![0; BYTES + 4]);
        for number in 0..3000_u64 {
            std::thread::sleep(Duration::from_millis(number).saturating_sub(began.elapsed()));
            near.iter().for_each(|mut socket| drop(socket.write(&packet)));
        }
        let us = (had() - before) as f64 / 3000.0 / viewers as f64 / 1000.0;
        println!("a call that gives one packet to a connection, and nothing else: {us:.2} us");
        ends.store(true, Ordering::Relaxed);
    });
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench").peekable();
    let section = arguments.next_if(|text| matches!(text.as_str(), "at" | "costs" | "gather" | "most" | "peer"));
    if section.as_deref() == Some("at") {
        let mut word = || {
            arguments.next().expect("a placement, workers, milliseconds of gathering, and rates, by pictures with a p")
        };
        let (placement, workers, gather) = (word(), word(), word());
        return own(&placement, &workers, 100, &gather, |subject| {
            for rate in arguments {
                let packets = rate.trim_end_matches('p').parse::<u16>().expect("packets a second") / PICTURES as u16;
                subject.at(packets, !rate.ends_with('p'), 5);
            }
        });
    }
    let wants = |name: &str| section.as_deref().is_none_or(|section| section == name);
    let viewers = arguments.next().map_or(100, |text| text.parse().expect("a number of viewers"));
    if wants("costs") {
        let mut costs = Vec::new();
        let placements = [
            ("run-to-completion", "1"),
            ("pipelined", "1"),
            ("run-to-completion", "2"),
            ("pipelined", "2"),
            ("spread", "2"),
        ];
        for (placement, workers) in placements {
            for is_even in [false, true] {
                let figures = own(placement, workers, viewers, "0.5", |subject| subject.at(40, is_even, 5));
                costs.push((placement, workers, is_even, figures));
            }
        }
        for (_, workers, is_even, piped) in costs.iter().filter(|cost| cost.0 == "pipelined") {
            let same = |cost: &&(_, _, _, _)| (cost.0, cost.1, cost.2) == ("run-to-completion", *workers, *is_even);
            let Some((.., complete)) = costs.iter().find(same) else { continue };
            println!(
                "pipelined over run to completion, {workers} workers, {}: {:.2} of the processor time, {:.2} of the latency",
                if *is_even { "evenly" } else { "by pictures" },
                piped.us / complete.us,
                piped.late_ms.1 / complete.late_ms.1
            );
        }
    }
    if wants("gather") {
        bare(viewers);
        // What gathering gives and takes, as a worker becomes busy.
        for gather in ["0", "0.5", "4"] {
            own("run-to-completion", "1", viewers, gather, |subject| {
                for packets in [40, 80, 160, 320, 640] {
                    subject.at(packets, true, 3);
                }
            });
        }
    }
    if wants("most") {
        let halves =
            own("run-to-completion", "1", viewers, "0.5", |subject| [false, true].map(|is_even| subject.most(is_even)));
        // The same in other ways: nothing is gathered, viewers are divided among two threads, or receiving is another thread's.
        for (placement, workers, gather) in
            [("run-to-completion", "1", "0"), ("spread", "2", "0.5"), ("spread", "2", "0"), ("pipelined", "2", "0")]
        {
            own(placement, workers, viewers, gather, |subject| {
                halves.into_iter().zip([false, true]).for_each(|(half, is_even)| subject.first_at(half, is_even));
            });
        }
        own("spread", "2", viewers, "0.5", |subject| {
            for is_even in [false, true] {
                subject.most(is_even);
            }
        });
    }
    if wants("peer") {
        for is_even in [false, true] {
            let both = |subject: &mut Subject<'_>| {
                subject.at(40, is_even, 5);
                subject.most(is_even);
            };
            own("run-to-completion", "1", viewers, "0.5", both);
            if relay(viewers, both).is_none() {
                return println!("skipped: no relay of gst-rtsp-server can be started here");
            }
        }
    }
}
