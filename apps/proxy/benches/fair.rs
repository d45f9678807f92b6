//! How a link is shared by a viewer over UDP and the system's TCP: two name spaces, between them a link of so many bits a second with a
//! queue that drops what it has no room for (`tbf`), a source that always has more, with a key every two seconds, GStreamer and ffmpeg as
//! viewers.
//!
//! `cargo bench -p multigrain-proxy --bench fair [-- SECONDS [PLAYER]]`, by root, where `ip`, `tc`, GStreamer and ffmpeg are; MULTIGRAIN_EACH prints kB of
//! viewer and TCP in each second. The kernel here delays nothing by itself, so the round trip is what packets wait in the queue.

#[path = "../tests/all/support/mod.rs"]
mod support;

use rustix::net::sockopt::set_tcp_congestion;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Camera, Manners, Playing, Proxy, VIDEO, rtp};

const NEAR: &str = "10.77.3.1";

fn done(line: &str) -> bool {
    let mut words = line.split(' ');
    Command::new(words.next().unwrap()).args(words).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Two name spaces, which are gone when it is dropped.
struct Network([String; 2]);

impl Network {
    fn new(megabits: u32, queue_ms: u32) -> Option<Network> {
        let network = Network(["n", "f"].map(|end| format!("mgfair{}{end}", std::process::id())));
        let [near, far] = &network.0;
        let queue = megabits * 125 * queue_ms;
        let lines = [
            format!("ip netns add {near}"),
            format!("ip netns add {far}"),
            format!("ip link add wire netns {near} type veth peer name wire netns {far}"),
            format!("ip -n {near} addr add {NEAR}/24 dev wire"),
            format!("ip -n {far} addr add 10.77.3.2/24 dev wire"),
            format!("ip -n {near} link set lo up"),
            format!("ip -n {near} link set wire up"),
            format!("ip -n {far} link set wire up"),
            // What the system would cut later would be dropped whole.
            format!("ip -n {near} link set wire gso_max_size 1514 gso_max_segs 1"),
            format!("tc -n {near} qdisc add dev wire root tbf rate {megabits}mbit burst 4kb limit {queue}"),
        ];
        match lines.iter().find(|line| !done(line)) {
            None => Some(network),
            Some(line) => {
                eprintln!("skipped: cannot be done here: {line}");
                None
            }
        }
    }

    fn enter(&self, end: usize) {
        let space = File::open(format!("/run/netns/{}", self.0[end])).unwrap();
        move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for space in &self.0 {
            done(&format!("ip netns del {space}"));
        }
    }
}

/// Pictures a second, and from a key to the next, as most cameras have them: what goes to a viewer goes by such groups.
const PICTURES: u64 = 25;
const GROUP: u64 = 50;

/// Pictures of as many packets as make so many bytes a second, and a report of the sender's every second.
fn send(playing: &mut Playing, bytes_a_second: u64, ends: &AtomicBool) {
    let (began, mut reported) = (Instant::now(), 0);
    let packets = (bytes_a_second / PICTURES / 1000).max(1);
    for number in 0_u64.. {
        let (picture, packet) = (number / packets, number % packets);
        let due = Duration::from_nanos(number * 1_000_000_000 / PICTURES / packets);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        if ends.load(Ordering::Relaxed) {
            return;
        }
        // Slices, of which the first of a picture begins with the first macroblock.
        let mut payload = vec![if picture % GROUP == 0 { 0x65 } else { 0x41 }, if packet == 0 { 0x88 } else { 0x48 }];
        payload.resize(988, 0);
        let ticks = (picture * 90_000 / PICTURES) as u32;
        let kind = if packet + 1 == packets { 0x80 | 96 } else { 96 };
        playing.send(0, &rtp(kind, number as u16, ticks, 7, &payload));
        if began.elapsed().as_secs() > reported {
            reported = began.elapsed().as_secs();
            let mut report = vec![0x80, 200, 0, 6, 0, 0, 0, 7];
            // NTP's seconds and parts, of which the middle tells which report it was.
            report.extend((reported as u32).to_be_bytes());
            report.extend([0; 4]);
            report.extend(ticks.to_be_bytes());
            report.extend((number as u32).to_be_bytes());
            report.extend([0; 4]);
            playing.report(0, &report);
        }
    }
}

/// Until both have found their rates, in seconds.
const WARM: usize = 20;

/// Whoever looks ten times a second and is this late was stopped, and with him the program, or has no processor: then a run says nothing of
/// a link, and is done again, so often at most.
const LATE: Duration = Duration::from_millis(500);
const TRIES: usize = 3;

/// The longest time that somebody who looked ten times a second did not, until told to end.
fn longest_pause(ends: &AtomicBool) -> Duration {
    let (mut longest, mut looked) = (Duration::ZERO, Instant::now());
    while !ends.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        longest = longest.max(looked.elapsed());
        looked = Instant::now();
    }
    longest
}

/// Players, and how often they report.
const PLAYERS: [(&str, &str); 2] = [
    (
        "GStreamer, every 5 s",
        "gst-launch-1.0 -q rtspsrc protocols=udp location=ADDRESS latency=200 ! fakesink sync=false",
    ),
    ("ffmpeg, every 280 kB", "ffprobe -v quiet -rtsp_transport udp -show_packets ADDRESS"),
];

/// Bytes of the viewer and of TCP in each second, from the beginning of both on, and the longest pause.
fn share(
    network: &Network,
    player: &str,
    algorithm: &str,
    bytes_a_second: u64,
    seconds: usize,
) -> (Vec<[f64; 2]>, Duration) {
    let camera = Camera::new(Manners::of(VIDEO));
    let proxy = Proxy::listening(&format!("{NEAR}:0"), &["-s", &format!("front=rtsp://{}/", camera.address)]);
    let mut playing = camera.playing();
    let address = format!("rtsp://{NEAR}:{}/front", proxy.rtsp);
    let listener = TcpListener::bind((NEAR, 0)).unwrap();
    let place = listener.local_addr().unwrap();
    let (ends, came) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| send(&mut playing, bytes_a_second, &ends));
        let pause = scope.spawn(|| longest_pause(&ends));
        let mut viewer = Command::new("ip")
            .args(["netns", "exec", &network.0[1]])
            .args(player.split(' ').map(|word| word.replace("ADDRESS", &address)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        proxy.until("has its viewer", || proxy.metric("viewers ") == 1);
        scope.spawn(|| {
            network.enter(1);
            let (mut socket, mut buffer) = (TcpStream::connect(place).unwrap(), vec![0; 1 << 16]);
            while let Ok(count @ 1..) = socket.read(&mut buffer) {
                came.fetch_add(count as u64, Ordering::Relaxed);
            }
        });
        let (mut socket, _) = listener.accept().unwrap();
        set_tcp_congestion(&socket, algorithm).unwrap();
        socket.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) && socket.write(&[0; 16 << 10]).is_ok() {
                std::hint::spin_loop();
            }
            drop(socket);
        });
        let counted = || [proxy.metric("bytes_sent") as f64, came.load(Ordering::Relaxed) as f64];
        let (mut before, began) = (counted(), Instant::now());
        let each = (1..=WARM + seconds).map(|second| {
            std::thread::sleep(Duration::from_secs(second as u64).saturating_sub(began.elapsed()));
            let after = counted();
            let was = std::mem::replace(&mut before, after);
            [after[0] - was[0], after[1] - was[1]]
        });
        let each = each.collect();
        ends.store(true, Ordering::Relaxed);
        let _ = viewer.kill();
        let _ = viewer.wait();
        (each, pause.join().unwrap())
    })
}

/// The viewer's bytes over TCP's.
fn ratio(seconds: &[[f64; 2]]) -> f64 {
    let sum = |who: usize| seconds.iter().map(|second| second[who]).sum::<f64>();
    sum(0) / sum(1).max(1.0)
}

/// Least, median and greatest ratio in so many seconds one after the other.
fn ratios(seconds: &[[f64; 2]], width: usize) -> String {
    let mut all: Vec<f64> = seconds.windows(width).map(ratio).collect();
    all.sort_by(f64::total_cmp);
    match all.as_slice() {
        [] => String::new(),
        [least, .., most] => format!("; over {width} s {least:.2}, {:.2}, {most:.2}", all[all.len() / 2]),
        [one] => format!("; over {width} s {one:.2}"),
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let seconds = arguments.next().map_or(60, |text| text.parse().expect("a number of seconds"));
    let wanted = arguments.next().unwrap_or_default();
    let players: Vec<_> = PLAYERS.into_iter().filter(|(who, _)| who.starts_with(&wanted)).collect();
    for (megabits, queue_ms) in [(2, 100), (8, 50)] {
        for (&(who, player), algorithm) in players.iter().flat_map(|player| ["reno", "cubic"].map(|a| (player, a))) {
            let Some(network) = Network::new(megabits, queue_ms) else { return };
            let run = || {
                let work = || {
                    network.enter(0);
                    share(&network, player, algorithm, u64::from(megabits) * 150_000, seconds)
                };
                std::thread::scope(|scope| scope.spawn(work).join().unwrap())
            };
            let runs = (0..TRIES).map(|_| run()).inspect(|(_, pause)| {
                if *pause > LATE {
                    println!("a run is left out: it was paused for {:.1} s", pause.as_secs_f64());
                }
            });
            let Some((all, _)) = { runs }.find(|(_, pause)| *pause <= LATE) else { continue };
            let counted = &all[WARM..];
            let mean =
                |who: usize| counted.iter().map(|second| second[who]).sum::<f64>() / 1000.0 / counted.len() as f64;
            println!(
                "{megabits} Mbit/s, a queue of {queue_ms} ms: viewer ({who}) {:.0} kB/s, TCP ({algorithm}) {:.0} kB/s, ratio {:.2}{}{}; \
                 the first 8 s {:.2}",
                mean(0),
                mean(1),
                ratio(counted),
                ratios(counted, 25),
                ratios(counted, 8),
                ratio(&all[..8])
            );
            if std::env::var_os("MULTIGRAIN_EACH").is_some() {
                let each: Vec<_> =
                    all.iter().map(|[viewer, tcp]| format!("{:.0}/{:.0}", viewer / 1e3, tcp / 1e3)).collect();
                println!("{}", each.join(" "));
            }
        }
    }
}
