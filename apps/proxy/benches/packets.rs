//! What a packet costs: processor time of the program for each packet that a viewer gets, one source over UDP, 100 viewers within
//! their connections, on the loopback; and how late packets are with one more viewer, from sending to having been read.
//!
//! Then the same with more and more packets a second, until some do not arrive.
//!
//! `cargo bench -p multigrain-proxy [-- VIEWERS [PEER-ADDRESS PEER-PID]]`: a peer that pulls `rtsp://127.0.0.1:8600/` and serves
//! it at the address is measured by the same viewers.

#[path = "../tests/support/mod.rs"]
mod support;

use multigrain_proxy::net::{Poll, Ready};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Camera, Manners, Playing, Proxy, VIDEO, hear, rtp};

/// Nanoseconds of processor time that a process has had, all threads.
fn processor_ns(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let times = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    times.filter_map(|text| text.split(' ').next()?.parse::<u64>().ok()).sum()
}

/// What times in packets count from.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Packets that were sent.
static SENT: AtomicU64 = AtomicU64::new(0);

/// Pictures a second, and packets of each.
const PICTURES: u64 = 25;
const BYTES: usize = 1200;

/// Sends so many packets a picture until told to stop: at once, or evenly.
fn send(playing: &mut Playing, packets: u16, is_even: bool, ends: &AtomicBool) {
    let (mut sequence, began) = (0_u16, Instant::now());
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
            payload.extend((BEGAN.elapsed().as_nanos() as u64).to_be_bytes());
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

/// Nanoseconds that packets took until a viewer had read them, sorted.
fn latencies(mut reader: BufReader<TcpStream>, ends: &AtomicBool) -> Vec<u64> {
    reader.get_ref().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut all = Vec::new();
    let mut frame = vec![0; 4 + BYTES];
    while !ends.load(Ordering::Relaxed) && reader.read_exact(&mut frame).is_ok() {
        let sent = u64::from_be_bytes(frame[18..26].try_into().unwrap());
        all.push((BEGAN.elapsed().as_nanos() as u64).saturating_sub(sent));
    }
    // Who begins gets what was before.
    let mut all = all.split_off(all.len() / 4);
    all.sort_unstable();
    all
}

/// Of a process that serves at a place.
struct Figures {
    /// Microseconds a packet.
    us: f64,
    /// Packets a second, to all viewers together.
    rate: f64,
    /// Of what was sent.
    arrived: f64,
    /// Milliseconds of latency: the median, and what 99 of 100 are below.
    late_ms: (f64, f64),
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures { us, rate, arrived, late_ms: (half, most) } = self;
        let arrived = 100.0 * arrived;
        write!(
            f,
            "{us:.2} us a packet, {rate:.0} a second, {arrived:.1} % arrived, {half:.2} ms late, 99 of 100 below {most:.2}"
        )
    }
}

fn measure(process: u32, place: &str, viewers: usize, seconds: u64) -> Figures {
    let probe = viewer(place);
    let sockets: Vec<TcpStream> = (0..viewers).map(|_| viewer(place).into_inner()).collect();
    sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
    let poll = Poll::new().unwrap();
    sockets.iter().enumerate().for_each(|(i, socket)| poll.add(socket, i as u64).unwrap());
    let (bytes, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut ready, mut buffer): (Vec<Ready>, _) = (Vec::new(), vec![0; 1 << 20]);
            while !ends.load(Ordering::Relaxed) {
                poll.wait(Duration::from_millis(100), &mut ready).unwrap();
                for event in &ready {
                    let count = (&sockets[event.token as usize]).read(&mut buffer).unwrap_or(0);
                    bytes.fetch_add(count as u64, Ordering::Relaxed);
                }
            }
        });
        let late = scope.spawn(|| latencies(probe, &ends));
        std::thread::sleep(Duration::from_secs(2));
        let before = (processor_ns(process), bytes.load(Ordering::Relaxed), Instant::now());
        let sent = SENT.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_secs(seconds));
        let packets = (bytes.load(Ordering::Relaxed) - before.1) as f64 / (BYTES + 4) as f64;
        let sent = (SENT.load(Ordering::Relaxed) - sent) as f64;
        let taken = (processor_ns(process) - before.0) as f64;
        ends.store(true, Ordering::Relaxed);
        let late = late.join().unwrap();
        let part = |hundredths: usize| late.get(late.len() * hundredths / 100).map_or(f64::NAN, |ns| *ns as f64 / 1e6);
        Figures {
            arrived: packets / sent / viewers as f64,
            us: taken / 1000.0 / packets,
            rate: packets / before.2.elapsed().as_secs_f64(),
            late_ms: (part(50), part(99)),
        }
    })
}

/// Packets of a picture when there are more and more.
const MORE: [u16; 6] = [80, 160, 320, 640, 1280, 2560];

/// With so many packets a picture; whether all arrived.
fn more(playing: &mut Playing, packets: u16, process: u32, place: &str, viewers: usize, who: &str) -> bool {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| send(playing, packets, false, &ends));
        let figures = measure(process, place, viewers, 3);
        ends.store(true, Ordering::Relaxed);
        println!("{who}, {} packets a second: {figures}", u64::from(packets) * PICTURES);
        figures.arrived > 0.99
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let viewers = arguments.next().map_or(100, |text| text.parse().expect("a number of viewers"));
    if let Some(place) = arguments.next() {
        let process = arguments.next().expect("the peer's process").parse().unwrap();
        let camera = Camera::at("127.0.0.1:8600", Manners::of(VIDEO));
        println!("waiting for the peer to pull rtsp://{}/", camera.address);
        for is_even in [false, true] {
            // A peer may pull only when somebody asks, so it is asked first.
            let first = std::thread::spawn({
                let place = place.clone();
                move || viewer(&place)
            });
            let ends = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let mut playing = camera.playing();
                let told = &ends;
                scope.spawn(move || send(&mut playing, 40, is_even, told));
                let first = first.join().unwrap();
                println!(
                    "peer, packets {}: {}",
                    if is_even { "evenly" } else { "by pictures" },
                    measure(process, &place, viewers - 1, 5)
                );
                drop(first);
                ends.store(true, Ordering::Relaxed);
            });
            std::thread::sleep(Duration::from_secs(3));
        }
        for packets in MORE {
            let first = std::thread::spawn({
                let place = place.clone();
                move || viewer(&place)
            });
            let mut playing = camera.playing();
            let first = first.join().unwrap();
            if !more(&mut playing, packets, process, &place, viewers - 1, "peer") {
                return;
            }
            drop(first);
            std::thread::sleep(Duration::from_secs(3));
        }
        return;
    }
    for (placement, workers) in [("run-to-completion", "1"), ("pipelined", "2"), ("spread", "2")] {
        for (is_even, gather) in [(false, "4"), (true, "0"), (true, "1"), (true, "4")] {
            let camera = Camera::new(Manners::of(VIDEO));
            let source = format!("front=rtsp://{}/", camera.address);
            let proxy =
                Proxy::start(&["-s", &source, "--placement", placement, "--workers", workers, "--gather-ms", gather]);
            let mut playing = camera.playing();
            proxy.serves("front");
            let ends = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| send(&mut playing, 40, is_even, &ends));
                let figures = measure(proxy.process(), &format!("127.0.0.1:{}", proxy.rtsp), viewers, 5);
                let how = if is_even { "evenly" } else { "by pictures" };
                let lost = proxy.metric("packets_lost") + proxy.metric("viewers_behind");
                println!("{placement}, {workers} workers, packets {how}, gathered {gather} ms: {figures}, {lost} lost");
                ends.store(true, Ordering::Relaxed);
            });
        }
    }
    for (placement, workers) in [("run-to-completion", "1"), ("spread", "2")] {
        for packets in MORE {
            let camera = Camera::new(Manners::of(VIDEO));
            let source = format!("front=rtsp://{}/", camera.address);
            let proxy = Proxy::start(&["-s", &source, "--placement", placement, "--workers", workers]);
            let mut playing = camera.playing();
            proxy.serves("front");
            let place = format!("127.0.0.1:{}", proxy.rtsp);
            if !more(
                &mut playing,
                packets,
                proxy.process(),
                &place,
                viewers,
                &format!("{placement}, {workers} workers"),
            ) {
                break;
            }
        }
    }
}
