//! A link in virtual time, and who shares it: a viewer that reports as players do, TCP, and TFRC as the standard has it.
//!
//! A packet is lost at random, or because the queue before the link is full (drop tail); what passes takes its time on the link and
//! half a round trip. TCP is NewReno (RFC 5681, RFC 6582, timer of RFC 6298) with an acknowledgement a packet and no selective ones.

use super::tests::random;
use super::{BACK_OFF, Losses, Rate, Report, Share, throughput};
use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::{Duration, Instant};

/// Bytes of all packets.
const BYTES: f64 = 1000.0;

/// One way through the network.
struct Link {
    bytes_a_second: f64,
    queue_bytes: f64,
    trip_s: f64,
    loss: f64,
    state: u64,
    free: f64,
}

impl Link {
    /// When a packet that is sent now arrives, if it does.
    fn carry(&mut self, now: f64) -> Option<f64> {
        if random(&mut self.state) < self.loss || (self.free - now) * self.bytes_a_second > self.queue_bytes - BYTES {
            return None;
        }
        self.free = self.free.max(now) + BYTES / self.bytes_a_second;
        Some(self.free + self.trip_s / 2.0)
    }
}

/// What happens.
#[derive(Clone, Copy, Debug)]
enum What {
    /// The viewer's next packet is due.
    Due,
    /// A packet of the viewer's arrives.
    Came(u64),
    /// A sender's report goes out.
    Told,
    /// The viewer's report arrives: the highest number, how many were lost, which report of ours it saw, and when that had come.
    Heard(u32, u32, u32, f64),
    /// It is sent.
    Reports,
    /// A segment of TCP arrives; an acknowledgement; the timer, if it is still this one.
    Segment(u64),
    Acknowledged(u64),
    Timer(u64),
}

struct Event(f64, What);

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Event) -> Ordering {
        other.0.total_cmp(&self.0)
    }
}

/// A sender that always has something, and its receiver.
struct Tcp {
    window: f64,
    threshold: f64,
    acknowledged: u64,
    next: u64,
    twice: u32,
    recover: u64,
    recovers: bool,
    trip: Option<(f64, f64)>,
    timed: Option<(u64, f64)>,
    backed_off: f64,
    timer: u64,
    received: u64,
    early: BTreeSet<u64>,
}

impl Tcp {
    fn new() -> Tcp {
        Tcp {
            window: 3.0,
            threshold: f64::MAX,
            acknowledged: 0,
            next: 0,
            twice: 0,
            recover: 0,
            recovers: false,
            trip: None,
            timed: None,
            backed_off: 1.0,
            timer: 0,
            received: 0,
            early: BTreeSet::new(),
        }
    }

    fn send(&mut self, number: u64, now: f64, link: &mut Link, events: &mut BinaryHeap<Event>) {
        if let Some(at) = link.carry(now) {
            events.push(Event(at, What::Segment(number)));
        }
    }

    fn start_timer(&mut self, now: f64, events: &mut BinaryHeap<Event>) {
        self.timer += 1;
        let wait = self.trip.map_or(1.0, |(mean, deviation)| (mean + 4.0 * deviation).max(0.2));
        events.push(Event(now + wait * self.backed_off, What::Timer(self.timer)));
    }

    fn fill(&mut self, now: f64, link: &mut Link, events: &mut BinaryHeap<Event>) {
        while self.next < self.acknowledged + self.window as u64 {
            let number = self.next;
            self.next += 1;
            self.timed.get_or_insert((number, now));
            self.send(number, now, link, events);
        }
    }

    fn halve(&mut self) {
        self.threshold = ((self.next - self.acknowledged) as f64 / 2.0).max(2.0);
        self.recover = self.next;
        self.timed = None;
    }

    fn heard(&mut self, to: u64, now: f64, link: &mut Link, events: &mut BinaryHeap<Event>) {
        if to > self.acknowledged {
            if let Some((_, at)) = self.timed.take_if(|(number, _)| *number < to) {
                let (took, before) = (now - at, self.trip);
                let (mean, deviation) = before.unwrap_or((took, took));
                let deviation = 0.75 * deviation + 0.25 * (mean - took).abs();
                self.trip = Some((0.875 * mean + 0.125 * took, deviation));
            }
            let came = (to - self.acknowledged) as f64;
            self.acknowledged = to;
            self.next = self.next.max(to);
            (self.twice, self.backed_off) = (0, 1.0);
            if self.recovers && to < self.recover {
                self.window = (self.window - came + 1.0).max(1.0);
                self.send(to, now, link, events);
            } else if self.recovers {
                (self.recovers, self.window) = (false, self.threshold);
            } else {
                self.window += if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
            }
            self.start_timer(now, events);
        } else if to == self.acknowledged && self.next > to {
            self.twice += 1;
            if self.recovers {
                self.window += 1.0;
            } else if self.twice == 3 && to >= self.recover {
                self.halve();
                self.recovers = true;
                self.window = self.threshold + 3.0;
                self.send(to, now, link, events);
            }
        }
        self.fill(now, link, events);
    }

    fn timed_out(&mut self, now: f64, link: &mut Link, events: &mut BinaryHeap<Event>) {
        self.halve();
        (self.window, self.recovers, self.twice) = (1.0, false, 0);
        self.next = self.acknowledged;
        self.backed_off = (2.0 * self.backed_off).min(64.0);
        self.start_timer(now, events);
        self.fill(now, link, events);
    }

    fn came(&mut self, number: u64) -> u64 {
        if number >= self.received {
            self.early.insert(number);
        }
        while self.early.remove(&self.received) {
            self.received += 1;
        }
        self.received
    }
}

/// What is sent: so many bytes a second, and a key every so many seconds of which everything refers to the one before it, but for so many
/// of each four pictures, to which none refers; nothing of that where every packet is a picture by itself.
#[derive(Clone, Copy, Debug)]
struct Source {
    rate: f64,
    group_s: f64,
    spares: u64,
}

/// Pictures a second, and how much larger keys are than others.
const PICTURES: f64 = 25.0;
const KEY: f64 = 8.0;

/// A picture that begins.
#[derive(Clone, Copy)]
struct Begins {
    is_key: bool,
    is_spare: bool,
}

impl Source {
    /// The picture that begins with a packet of that number, if one does.
    fn begins(self, packet: u64) -> Option<Begins> {
        if self.group_s == 0.0 {
            return Some(Begins { is_key: true, is_spare: false });
        }
        let pictures = PICTURES * self.group_s;
        let group = self.rate * self.group_s / BYTES;
        let picture = group / (pictures - 1.0 + KEY);
        // Where it lies in its group, in pictures that are no keys: the key is the one before the first.
        let place = |packet: f64| ((packet % group) / picture - KEY).max(-1.0).floor();
        let here = place(packet as f64);
        let is_new = packet == 0 || here != place(packet as f64 - 1.0);
        is_new.then_some(Begins { is_key: here < 0.0, is_spare: here >= 0.0 && here as u64 % 4 < self.spares })
    }
}

/// What came of it.
struct Outcome {
    /// Bytes a second that the viewer was sent, that TCP delivered.
    viewer: f64,
    tcp: f64,
    /// Loss events a packet of the viewer's, and the mean round trip.
    events: f64,
    trip_s: f64,
}

/// A viewer of a source, and TCP beside it where that is wanted, for so many seconds. Reports of both sides
/// go every `reports_s`, the viewer's at times that differ by half as RFC 3550, section 6.2, has them.
fn share(mut link: Link, source: Source, with_tcp: bool, seconds: f64, reports_s: f64) -> Outcome {
    let (start, warm) = (Instant::now(), seconds / 5.0);
    let at = |now: f64| start + Duration::from_secs_f64(now);
    let (mut rate, mut tcp, mut events) = (Rate::new(start), Tcp::new(), BinaryHeap::new());
    let half = link.trip_s / 2.0;
    let (mut due, mut goes) = (0_u64, Share::Goes);
    let (mut sent, mut highest, mut came, mut first) = (0_u64, 0_u64, 0_u64, None);
    let (mut told, mut seen) = (0_u32, (0_u32, 0.0));
    let (mut viewer, mut delivered, mut losses, mut packets, mut event_until) = (0.0, 0_u64, 0.0, 0.0, f64::MIN);
    let (mut trips, mut state) = ((0.0, 0.0), link.state ^ 99);
    events.push(Event(0.0, What::Due));
    events.push(Event(0.1, What::Told));
    events.push(Event(reports_s, What::Reports));
    if with_tcp {
        tcp.fill(0.0, &mut link, &mut events);
        tcp.start_timer(0.0, &mut events);
    }
    while let Some(Event(now, what)) = events.pop() {
        if now > seconds {
            break;
        }
        let counts = now > warm;
        match what {
            What::Due => {
                // At times that differ: otherwise the same sender finds the queue full again and again (Floyd and Jacobson 1992).
                events.push(Event(now + BYTES / source.rate * (0.5 + random(&mut state)), What::Due));
                if let Some(begins) = source.begins(due).filter(|begins| begins.is_key || goes != Share::AtKey) {
                    goes = rate.picture(begins.is_spare, at(now));
                }
                due += 1;
                if goes == Share::Goes {
                    rate.went(BYTES as usize, at(now));
                    sent += 1;
                    viewer += if counts { BYTES } else { 0.0 };
                    packets += f64::from(counts);
                    let waits = (link.free - now).max(0.0);
                    trips = (trips.0 + 2.0 * half + waits, trips.1 + 1.0);
                    match link.carry(now) {
                        Some(then) => events.push(Event(then, What::Came(sent))),
                        // What is lost within a round trip of the first is one event.
                        None if now >= event_until => {
                            event_until = now + 2.0 * half + waits;
                            losses += f64::from(counts);
                        }
                        None => {}
                    }
                }
            }
            What::Came(number) => {
                first.get_or_insert(number);
                (highest, came) = (highest.max(number), came + 1);
            }
            What::Told => {
                told += 1;
                rate.reported(told, at(now));
                // It goes the same way as packets, and is small.
                let then = link.free.max(now) + half;
                seen = (told, then);
                events.push(Event(now + reports_s, What::Told));
            }
            What::Reports => {
                let every = reports_s * (0.5 + random(&mut state));
                events.push(Event(now + every, What::Reports));
                if let Some(first) = first {
                    let lost = highest + 1 - first - came;
                    let (which, then) = if seen.1 <= now { seen } else { (0, now) };
                    events.push(Event(now + half, What::Heard(highest as u32, lost as u32, which, now - then)));
                }
            }
            What::Heard(highest, lost, sender, ago) => {
                rate.heard(Report { highest, lost, fraction: 0, sender, delay: (ago * 65_536.0) as u32 }, at(now));
            }
            What::Segment(number) => {
                let before = tcp.received;
                let to = tcp.came(number);
                delivered += if counts { to - before } else { 0 };
                events.push(Event(now + half, What::Acknowledged(to)));
            }
            What::Acknowledged(to) => tcp.heard(to, now, &mut link, &mut events),
            What::Timer(number) if number == tcp.timer => tcp.timed_out(now, &mut link, &mut events),
            What::Timer(_) => {}
        }
    }
    let counted = seconds - warm;
    Outcome {
        viewer: viewer / counted,
        tcp: delivered as f64 * BYTES / counted,
        events: losses / packets,
        trip_s: trips.0 / trips.1,
    }
}

/// A sender as the standard has it, behind a link that loses at random: it is told of every loss, once a round trip. Its mean rate, and
/// that of the equation for the loss events that there were.
fn standard(loss: f64, trip_s: f64, seed: u64) -> (f64, f64) {
    let (mut state, mut losses) = (seed, Losses::default());
    let (mut now, mut rate) = (0.0, throughput(BYTES, trip_s, loss));
    let (mut event_until, mut feedback_at) = (f64::MIN, trip_s);
    let (mut sent, mut events, mut counted) = (0.0, 0.0, (0.0, 0.0));
    let warm = 200.0 / loss;
    while sent < 2200.0 / loss {
        now += BYTES / rate;
        sent += 1.0;
        if random(&mut state) < loss && now >= event_until {
            event_until = now + trip_s;
            losses.event(1.0 / loss);
            events += f64::from(sent > warm);
        }
        losses.came(1.0);
        if sent > warm {
            counted = (counted.0 + BYTES, counted.1 + BYTES / rate);
        }
        if now >= feedback_at {
            feedback_at = now + trip_s;
            if let Some(p) = losses.rate() {
                rate = throughput(BYTES, trip_s, p).max(BYTES / BACK_OFF);
            }
        }
    }
    (counted.0 / counted.1, throughput(BYTES, trip_s, events / (sent - warm)))
}

/// The mean over many intervals is below the equation at the mean, since the rate is that of the mean of the last few.
#[test]
fn a_link_that_loses_gets_the_rate_of_the_equation() {
    for loss in [0.0001, 0.01, 0.05] {
        for trip_s in [0.01, 0.05, 0.2] {
            let (found, expected) = standard(loss, trip_s, 7);
            let ratio = found / expected;
            println!("loss {loss}, {trip_s} s: {:.0} kB/s, {ratio:.3} of the equation", found / 1000.0);
            assert!((0.85..1.1).contains(&ratio), "loss {loss}, {trip_s} s: {ratio}");
        }
    }
}

/// What players that report every five seconds, or once a round trip, are given is within a tenth of the equation.
#[test]
fn a_viewer_that_reports_gets_the_rate_of_the_equation() {
    for loss in [0.0001, 0.01, 0.05] {
        for (trip_s, reports_s) in
            [0.01_f64, 0.05, 0.1, 0.2].into_iter().flat_map(|trip_s| [(trip_s, 5.0), (trip_s, trip_s)])
        {
            let expected = throughput(BYTES, trip_s, loss);
            let link = Link { bytes_a_second: 1e9, queue_bytes: 1e9, trip_s, loss, state: 7, free: 0.0 };
            // So long that chance is a small part of the mean: the standard's own is below the equation by 5 % at the greatest loss.
            let events = if loss < 0.001 { 80.0 } else { 4000.0 };
            let seconds = (events * BYTES / loss / expected).max(600.0);
            let out = share(link, Source { rate: 3.0 * expected, group_s: 0.0, spares: 0 }, false, seconds, reports_s);
            let ratio = out.viewer / throughput(BYTES, trip_s, out.events);
            println!(
                "loss {loss}, {trip_s} s, reports every {reports_s} s: {:.0} kB/s, {ratio:.3} of the equation at {:.5} events a packet, {:.3} at the losses",
                out.viewer / 1000.0,
                out.events,
                out.viewer / expected
            );
            assert!((0.9..1.1).contains(&ratio), "loss {loss}, {trip_s} s, {reports_s} s: {ratio}");
        }
    }
}

/// Video is left out by spare pictures and the tails of its groups, and gets the same in the mean.
#[test]
fn a_viewer_of_groups_gets_the_rate_of_the_equation() {
    let mut worst = Vec::new();
    for loss in [0.0001, 0.01, 0.05] {
        for trip_s in [0.01_f64, 0.05, 0.1, 0.2] {
            for (group_s, more, reports_s, spares) in [
                (4.0, 3.0, 5.0, 0),
                (10.0, 3.0, 5.0, 0),
                (4.0, 1.5, 1.0, 0),
                (10.0, 1.5, 1.0, 0),
                (4.0, 3.0, 5.0, 3),
                (4.0, 1.5, 1.0, 3),
            ] {
                let expected = throughput(BYTES, trip_s, loss);
                let link = Link { bytes_a_second: 1e9, queue_bytes: 1e9, trip_s, loss, state: 7, free: 0.0 };
                let events = if loss < 0.001 { 80.0 } else { 1000.0 };
                let seconds = (events * BYTES / loss / expected).max(400.0);
                let source = Source { rate: more * expected, group_s, spares };
                let out = share(link, source, false, seconds, reports_s);
                let ratio = out.viewer / throughput(BYTES, trip_s, out.events);
                println!(
                    "loss {loss}, {trip_s} s, key every {group_s} s, reports every {reports_s} s, {more} times too much, {spares} spare: {ratio:.3} of the equation, {:.0} s",
                    seconds
                );
                worst.extend((!(0.9..1.1).contains(&ratio)).then_some((loss, trip_s, source, reports_s, ratio)));
            }
        }
    }
    assert!(worst.is_empty(), "{worst:#?}");
}

/// Neither starves. Where many packets are on the way, what a full queue drops comes in bursts, of which a report tells the sum only: they
/// are taken for single losses, and the viewer gets less than TCP, down to 0.4 of it. To take them for bursts where numbers of reports
/// vary more than those of single losses would was tried, and gave TCP a hundredth on short links: rates that swing from report to
/// report look the same.
#[test]
fn a_viewer_shares_a_link_with_tcp() {
    for trip_s in [0.01_f64, 0.05, 0.1, 0.2] {
        for megabits in [2.0, 8.0] {
            let bytes_a_second = megabits * 125_000.0;
            // As much as is on the way, and at least a few packets: what routers are set to.
            let queue_bytes = (bytes_a_second * trip_s).max(20.0 * BYTES);
            let link = Link { bytes_a_second, queue_bytes, trip_s, loss: 0.0, state: 3, free: 0.0 };
            let out = share(link, Source { rate: 1.5 * bytes_a_second, group_s: 0.0, spares: 0 }, true, 600.0, 5.0);
            let ratio = out.viewer / out.tcp;
            println!(
                "{megabits} Mbit/s, {trip_s} s, viewer {:.0} kB/s, TCP {:.0}, ratio {ratio:.2}; {:.5} events a packet, round trip {:.3} s",
                out.viewer / 1000.0,
                out.tcp / 1000.0,
                out.events,
                out.trip_s
            );
            assert!((1.0 / 3.0..2.0).contains(&ratio), "{megabits} Mbit/s, {trip_s} s: {ratio}");
        }
    }
}
