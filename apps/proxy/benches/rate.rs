//! What rate a viewer over UDP gets of the program itself, beside what the equation of TFRC (RFC 5348) says at the rate of loss events that it saw:
//! it throws away a part of what comes at random, counts what is lost within a round trip of the first as one event, and reports once a second.
//!
//! `cargo bench -p multigrain-proxy --bench rate [-- SECONDS]`; all viewers at the same time, on the loopback.

#[path = "../tests/all/support/mod.rs"]
mod support;

use multigrain_proxy::net::datagrams;
use multigrain_proxy::tfrc::throughput;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{Camera, Manners, Playing, Proxy, VIDEO, Viewer, rtp};

const PICTURES: u64 = 25;
const BYTES: usize = 1200;

/// Pictures of so many kbit a second, a key in each so many, and a report of the sender's every second.
fn send(playing: &mut Playing, kbits: u64, group: u64, ends: &AtomicBool) {
    let packets = (kbits * 125 / PICTURES / BYTES as u64).max(1);
    let (began, mut number) = (Instant::now(), 0_u32);
    for picture in 0.. {
        let due = Duration::from_millis(picture * 1000 / PICTURES);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let ticks = (picture * 90_000 / PICTURES) as u32;
        if picture % PICTURES == 0 {
            let mut report = vec![0x80, 200, 0, 6, 0, 0, 0, 7];
            let words = [(picture / PICTURES + 1) as u32, 0, ticks, number, 0];
            words.iter().for_each(|word| report.extend(word.to_be_bytes()));
            playing.report(0, &report);
        }
        for packet in 0..packets {
            let mut payload =
                vec![if picture % group == 0 { 0x65 } else { 0x41 }, if packet == 0 { 0x88 } else { 0x48 }];
            payload.resize(BYTES - 12, 0);
            let kind = if packet + 1 == packets { 0x80 | 96 } else { 96 };
            playing.send(0, &rtp(kind, number as u16, ticks, 7, &payload));
            number += 1;
        }
    }
}

/// What a viewer saw.
#[derive(Default)]
struct Saw {
    first: Option<u32>,
    highest: u32,
    source: u32,
    /// That came, were thrown away, and were events, since the beginning; bytes since they are counted.
    came: u32,
    lost: u32,
    events: u32,
    bytes: u64,
    event: Option<Instant>,
    /// The middles of the sender's reports, and when they came.
    told: Vec<(u32, Instant)>,
}

/// The rate of a viewer that loses such a part, at such a round trip, over so many seconds after a quarter of them; events and packets.
fn view(proxy: &Proxy, loss: f64, trip: Duration, seconds: u64) -> (f64, u32, u32) {
    let (packets, reports) = datagrams([127, 0, 0, 1].into(), 0).unwrap();
    let port = packets.local_addr().unwrap().port();
    let mut viewer = Viewer::connect(proxy);
    let transport = format!("Transport: RTP/AVP;unicast;client_port={port}-{}\r\n", port + 1);
    let (told, _) = viewer.ask("SETUP", "rtsp://h/front/trackID=0", &transport);
    let server = told.split("server_port=").nth(1).unwrap().split(['-', '\r']).nth(1).unwrap();
    let server: u16 = server.parse().unwrap();
    assert!(viewer.ask("PLAY", "rtsp://h/front", "").0.contains(" 200 "));
    let (saw, ends, began) = (Mutex::new(Saw::default()), AtomicBool::new(false), Instant::now());
    packets.set_nonblocking(false).unwrap();
    reports.set_nonblocking(false).unwrap();
    packets.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    reports.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut bytes, mut state) = ([0; 2000], 0x2545_f491_4f6c_dd1d_u64);
            while !ends.load(Ordering::Relaxed) {
                let Ok((length, _)) = packets.recv_from(&mut bytes) else { continue };
                let mut saw = saw.lock().unwrap();
                let sequence = u32::from(u16::from_be_bytes([bytes[2], bytes[3]]));
                let step = (sequence.wrapping_sub(saw.highest) as u16) as i16;
                saw.highest = if saw.first.is_none() {
                    sequence
                } else {
                    saw.highest.wrapping_add_signed(i32::from(step.max(0)))
                };
                saw.first.get_or_insert(sequence);
                saw.source = u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
                if began.elapsed() > Duration::from_secs(seconds / 4) {
                    saw.bytes += length as u64;
                }
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                if (state >> 11) as f64 / (1_u64 << 53) as f64 >= loss {
                    saw.came += 1;
                    continue;
                }
                saw.lost += 1;
                if saw.event.is_none_or(|at| at.elapsed() > trip) {
                    (saw.events, saw.event) = (saw.events + 1, Some(Instant::now()));
                }
            }
        });
        scope.spawn(|| {
            let mut bytes = [0; 2000];
            while !ends.load(Ordering::Relaxed) {
                if reports.recv_from(&mut bytes).is_ok() && bytes[1] == 200 {
                    let middle = u32::from_be_bytes([bytes[10], bytes[11], bytes[12], bytes[13]]);
                    saw.lock().unwrap().told.push((middle, Instant::now()));
                }
            }
        });
        let (mut expected_before, mut came_before) = (0, 0);
        for second in 1..=seconds {
            std::thread::sleep(Duration::from_secs(second).saturating_sub(began.elapsed()));
            let saw = saw.lock().unwrap();
            let Some(first) = saw.first else { continue };
            let expected = saw.highest - first + 1;
            let (new, came) = (expected - expected_before, saw.came - came_before);
            (expected_before, came_before) = (expected, saw.came);
            let fraction = (256 * new.saturating_sub(came) / new.max(1)).min(255);
            // As if the way there and back took so long: what came later is still on it.
            let echo = |(middle, at): &(u32, Instant)| Some((*middle, at.elapsed().checked_sub(trip)?));
            let echo = saw.told.iter().rev().find_map(echo);
            let (middle, delay) =
                echo.map_or((0, 0), |(middle, delay)| (middle, (delay.as_secs_f64() * 65_536.0) as u32));
            let mut report = vec![0x81, 201, 0, 7, 0, 0, 0, 99];
            let words = [saw.source, fraction << 24 | (expected - saw.came) & 0xff_ffff, saw.highest, 0, middle, delay];
            words.iter().for_each(|word| report.extend(word.to_be_bytes()));
            reports.send_to(&report, ("127.0.0.1", server)).unwrap();
        }
        ends.store(true, Ordering::Relaxed);
    });
    let saw = saw.into_inner().unwrap();
    (saw.bytes as f64 / (seconds - seconds / 4) as f64, saw.events, saw.came + saw.lost)
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let seconds = arguments.next().map_or(120, |text| text.parse().expect("a number of seconds"));
    let cases = [
        (0.05, 100, 1000, 100),
        (0.05, 100, 1000, 250),
        (0.01, 100, 3000, 100),
        (0.01, 200, 1500, 100),
        (0.05, 50, 2000, 50),
    ];
    std::thread::scope(|scope| {
        for (loss, trip_ms, kbits, group) in cases {
            scope.spawn(move || {
                let camera = Camera::new(Manners::of(VIDEO));
                let proxy = Proxy::start(&["-s", &format!("front=rtsp://{}/", camera.address)]);
                let (mut playing, ends) = (camera.playing(), AtomicBool::new(false));
                proxy.serves("front");
                std::thread::scope(|scope| {
                    scope.spawn(|| send(&mut playing, kbits, group, &ends));
                    let trip = Duration::from_millis(trip_ms);
                    let (rate, events, packets) = view(&proxy, loss, trip, seconds);
                    ends.store(true, Ordering::Relaxed);
                    let says = |p: f64| throughput(BYTES as f64, trip.as_secs_f64(), p);
                    let equation = says(f64::from(events) / f64::from(packets));
                    println!(
                        "{:.0} % lost, {trip_ms} ms, {kbits} kbit/s, a key every {} s: {:.0} kbit/s, {events} events in {packets} packets, of \
                         which the equation says {:.0}: {:.2} (of single losses {:.0})",
                        100.0 * loss,
                        group / PICTURES,
                        rate / 125.0,
                        equation / 125.0,
                        rate / equation,
                        says(loss) / 125.0
                    );
                });
            });
        }
    });
}
