//! How much a viewer gets over UDP beside others' TCP: TFRC (RFC 5348), as state machines over times that they are told.
//!
//! The sender's rate is what TCP would reach at the same loss and round trip ([`throughput`]). Loss counts by events: what is lost within
//! one round trip of the first is one ([`Losses`]). Viewers are players that send nothing but receiver reports (RFC 3550), so
//! [`Rate`] reckons from these: the round trip from the sender report that they echo, loss events, at most one a round trip, from how many
//! packets a report misses, where reports are rarer than that. A live stream cannot begin slowly, so there is no limit until something is lost.

#[cfg(test)]
mod link;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Weights of loss intervals, the latest first (RFC 5348, section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// The longest time between two packets at the least rate (t_mbi, section 4.3).
const BACK_OFF: f64 = 64.0;

/// The round trip is the median of the last few. An average, as section 4.3 has it for one a round trip, would take minutes to forget one
/// that waited where players report every five seconds, and a viewer starve until then.
const TRIPS: usize = 5;

/// f(p) with b = 1 and t_RTO = 4 R: round trips a packet takes at a rate of loss events (section 3.1).
pub fn trips_a_packet(p: f64) -> f64 {
    (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)
}

/// Bytes a second for packets of `bytes`, a round trip of so many seconds, and loss events a packet.
pub fn throughput(bytes: f64, round_trip_s: f64, p: f64) -> f64 {
    bytes / (round_trip_s * trips_a_packet(p))
}

/// The lengths of the last loss intervals, in packets.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// The one that goes on.
    open: f64,
    /// Those that ended, the latest first.
    closed: VecDeque<f64>,
}

impl Losses {
    /// So many packets came.
    pub fn came(&mut self, packets: f64) {
        self.open += packets;
    }

    /// A loss event: another interval begins. Before the first, nothing is known of how long it was; `first` is its length then.
    pub fn event(&mut self, first: f64) {
        let ended = if self.closed.is_empty() { first.max(1.0) } else { self.open.max(1.0) };
        self.closed.push_front(ended);
        self.closed.truncate(WEIGHTS.len());
        self.open = 0.0;
    }

    /// Loss events a packet; nothing if there was none (section 5.4).
    pub fn rate(&self) -> Option<f64> {
        if self.closed.is_empty() {
            return None;
        }
        let average = |intervals: &mut dyn Iterator<Item = f64>| {
            let (sum, weights) = intervals.zip(WEIGHTS).fold((0.0, 0.0), |(sum, all), (n, w)| (sum + n * w, all + w));
            sum / weights
        };
        let closed = average(&mut self.closed.iter().copied());
        // The open interval counts as soon as it makes the average longer, in the place of the oldest.
        let all = std::iter::once(self.open).chain(self.closed.iter().copied());
        let open = average(&mut all.take(self.closed.len()));
        Some(1.0 / closed.max(open).max(1.0))
    }

    /// The interval before the first event that would explain a rate of so many bytes a second (section 6.3.1).
    pub fn first(bytes: f64, round_trip_s: f64, rate: f64) -> f64 {
        let (mut low, mut high) = (1e-8_f64, 1.0_f64);
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if throughput(bytes, round_trip_s, middle) > rate { low = middle } else { high = middle }
        }
        1.0 / high
    }
}

/// What a report of a receiver says of one source (RFC 3550, section 6.4.1).
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The highest sequence number, with cycles.
    pub highest: u32,
    /// Packets lost since the beginning: of a receiver's count the 24 bits that it has.
    pub lost: u32,
    /// 256ths of what was expected since the last report that were lost.
    pub fraction: u8,
    /// The middle of the time of the last sender's report, zero if there was none.
    pub sender: u32,
    /// How long ago that came, in 1/65536 s.
    pub delay: u32,
}

impl Report {
    /// Before anything was sent.
    const NONE: Report = Report { highest: 0, lost: 0, fraction: 0, sender: 0, delay: 0 };

    /// The reports in a compound packet of RTCP about a source.
    pub fn of(mut packet: &[u8], source: u32) -> Option<Report> {
        let word = |bytes: &[u8], at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        while let Some(&[first, kind, high, low, ..]) = packet.get(..4) {
            let length = 4 * (usize::from(u16::from_be_bytes([high, low])) + 1);
            let part = packet.get(..length).filter(|_| first >> 6 == 2)?;
            let start = match kind {
                200 => 28,
                201 => 8,
                _ => length,
            };
            for block in part.get(start..).unwrap_or_default().chunks_exact(24).take(usize::from(first & 31)) {
                if word(block, 0) == Some(source) {
                    let (lost, highest) = (word(block, 4)?, word(block, 8)?);
                    let (fraction, lost) = ((lost >> 24) as u8, lost & 0xff_ffff);
                    return Some(Report { highest, lost, fraction, sender: word(block, 16)?, delay: word(block, 20)? });
                }
            }
            packet = &packet[length..];
        }
        None
    }
}

/// Which numbers went to a viewer: what it misses of the others was never sent, since pictures were left out, or lost before it came here.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The first and the last, with cycles.
    first: u64,
    last: Option<u64>,
    /// How many were not sent so far, and of those that no report has reached yet, before which number.
    left_out: u64,
    gaps: VecDeque<(u64, u64)>,
    /// How many were not sent before the first of these.
    before: u64,
    /// The highest number and the count of the last report, and how many were lost by then, however many that are.
    told: Option<u64>,
    count: u32,
    lost: u32,
}

/// Gaps that are remembered: between two reports there are fewer.
const GAPS_MAX: usize = 4096;

impl Numbers {
    /// A packet went out. What is out of order, as no other end would number it, counts for nothing.
    pub fn went(&mut self, sequence: u16) {
        let Some(last) = self.last else {
            self.first = (1 << 16) + u64::from(sequence);
            self.last = Some(self.first);
            return;
        };
        let step = sequence.wrapping_sub(last as u16);
        if step == 0 || step > 1 << 15 {
            return;
        }
        let number = last + u64::from(step);
        self.last = Some(number);
        if step > 1 {
            self.left_out += u64::from(step) - 1;
            self.gaps.push_back((number, self.left_out));
        }
        if self.gaps.len() > GAPS_MAX {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.before = self.gaps.pop_front().map_or(self.before, |(_, left_out)| left_out);
    }

    /// A report, of what was sent only, with the packets sent so far for a number; nothing if it tells of one that never was.
    pub fn only(&mut self, report: Report) -> Option<Report> {
        let last = self.last?;
        let highest = last - u64::from((last as u16).wrapping_sub(report.highest as u16));
        let sent = (highest + 1).checked_sub(self.first)?;
        while self.gaps.front().is_some_and(|(number, _)| *number <= highest) {
            self.forget();
        }
        let left_out = self.before;
        let expected = highest.saturating_sub(self.told.replace(highest).unwrap_or(self.first - 1));
        let before = std::mem::replace(&mut self.count, report.lost);
        self.lost = self.lost.wrapping_add(match report.lost {
            // It stops at an end of its 24 bits (RFC 3550, A.3; ffmpeg's has no sign). What was left out fills it within hours, and the part
            // that is missing is told all the same, to a 256th.
            0x7f_ffff | 0xff_ffff => (expected * u64::from(report.fraction) / 256) as u32,
            // Down where packets came twice.
            count => ((count.wrapping_sub(before) << 8) as i32 >> 8) as u32,
        });
        Some(Report {
            highest: (sent - left_out.min(sent)) as u32,
            lost: self.lost.wrapping_sub(left_out as u32),
            ..report
        })
    }
}

/// Seconds over which what is sent is averaged.
const SENDING_S: f64 = 1.0;

/// A viewer of whom nothing is heard for so long gets half of it (section 4.4), again and again. Players report every 5 s, at most 7.5, or after
/// 280 kB, so it is silent when four of both are over.
const SILENT: Duration = Duration::from_secs(20);
const SILENT_BYTES: f64 = 4.0 * 280e3;

/// For how many seconds what was not sent is saved up, and while a key is awaited: groups of pictures are shorter.
const SAVED_S: f64 = 0.5;
const SAVED_MAX_S: f64 = 30.0;

/// What becomes of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// It goes out.
    Goes,
    /// It is left out, and no other.
    Without,
    /// It is left out, and all to the next key.
    AtKey,
}

/// Packets that come later and tell that one is lost (section 5.1): so many may be overtaken at a time.
const OVERTAKEN: u32 = 3;

/// Sender reports whose echoes are awaited.
const SENT_MAX: usize = 16;

/// The rate of one viewer.
#[derive(Debug)]
pub struct Rate {
    losses: Losses,
    round_trip_s: Option<f64>,
    /// The last that were measured, the latest first.
    trips: VecDeque<f64>,
    last: (Report, Instant),
    /// What of that counts as lost.
    counted: u32,
    sent: VecDeque<(u32, Instant)>,
    /// Mean size of packets, and bytes since the last report.
    size: f64,
    bytes: f64,
    /// Bytes a second that are sent, lately, if that is known.
    sending: Option<f64>,
    /// Loss events that are not counted yet: a part of one, half of one more; when the last was.
    events: f64,
    event_at: Option<Instant>,
    /// Bytes a second, once something was lost.
    limit: Option<f64>,
    /// Bytes a second, where nothing is heard of the viewer; since when that is so, and bytes that went since.
    unheard: Option<f64>,
    heard: Instant,
    since_heard: f64,
    /// It was not said yet that nothing is heard.
    falls_silent: bool,
    /// Bytes that may be sent now, and of how many seconds they may be saved up.
    tokens: f64,
    saved_s: f64,
    /// The next key is awaited.
    waits: bool,
    filled: Instant,
    /// Since the last report, how long packets were on the way or would have been acknowledged; until when those that went are.
    busy_s: f64,
    went: Instant,
}

impl Rate {
    /// No limit yet.
    pub fn new(now: Instant) -> Rate {
        Rate {
            losses: Losses::default(),
            round_trip_s: None,
            trips: VecDeque::new(),
            // What the first report tells has been lost since here.
            last: (Report::NONE, now),
            counted: 0,
            sent: VecDeque::new(),
            size: 1200.0,
            bytes: 0.0,
            sending: None,
            events: 0.5,
            event_at: None,
            limit: None,
            unheard: None,
            heard: now,
            since_heard: 0.0,
            falls_silent: false,
            tokens: 0.0,
            saved_s: SAVED_S,
            waits: false,
            filled: now,
            busy_s: 0.0,
            went: now,
        }
    }

    /// The same viewer takes its packets elsewhere, or others, and counts anew.
    pub fn elsewhere(mut self, now: Instant) -> Rate {
        (self.last, self.counted, self.bytes) = ((Report::NONE, now), 0, 0.0);
        self.sent.clear();
        self
    }

    /// Bytes a second, if there is a limit.
    pub fn limit(&self) -> Option<f64> {
        self.limit.into_iter().chain(self.unheard).reduce(f64::min)
    }

    /// Whether it has just come to light that nothing is heard of the viewer.
    pub fn falls_silent(&mut self) -> bool {
        std::mem::take(&mut self.falls_silent)
    }

    /// A sender's report went out, with this as the middle of its time.
    pub fn reported(&mut self, middle: u32, now: Instant) {
        self.sent.push_front((middle, now));
        self.sent.truncate(SENT_MAX);
    }

    /// A packet went out.
    pub fn went(&mut self, bytes: usize, now: Instant) {
        let since = now.saturating_duration_since(std::mem::replace(&mut self.went, now)).as_secs_f64();
        self.busy_s += since.min(self.trip_s());
        self.size += (bytes as f64 - self.size) / 16.0;
        self.bytes += bytes as f64;
        self.since_heard += bytes as f64;
        self.tokens -= bytes as f64;
    }

    /// Bytes of another track went beside it: they have their part of the rate.
    pub fn went_beside(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
    }

    /// No report has echoed one of ours: then it is a distant viewer.
    fn trip_s(&self) -> f64 {
        self.round_trip_s.unwrap_or(0.1)
    }

    /// What becomes of a picture that begins; `is_spare` are those to which none refers. These are left out first, when half of what may be
    /// saved up is gone. Who is refused another gets nothing until the next key, and what would have been sent meanwhile is saved up:
    /// otherwise the mean would be a fraction of the rate. It never goes out faster than the stream itself.
    pub fn picture(&mut self, is_spare: bool, now: Instant) -> Share {
        let silent = now.saturating_duration_since(self.heard);
        if silent > SILENT && self.since_heard > SILENT_BYTES {
            let before = self.limit().unwrap_or_else(|| {
                (self.filled, self.tokens) = (now, 0.0);
                self.since_heard / silent.as_secs_f64()
            });
            self.falls_silent = self.unheard.is_none();
            self.unheard = Some((before / 2.0).max(self.size / BACK_OFF));
            (self.heard, self.since_heard) = (now, 0.0);
        }
        let Some(limit) = self.limit() else { return Share::Goes };
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        let usual = (limit * SAVED_S).max(64.0 * self.size);
        if self.waits {
            self.saved_s = (self.saved_s + passed).min(SAVED_MAX_S);
        } else if self.tokens < usual {
            self.saved_s = SAVED_S;
        }
        let most = (limit * self.saved_s).max(usual);
        self.tokens = (self.tokens + limit * passed).min(most);
        if is_spare && self.tokens < most / 2.0 {
            return Share::Without;
        }
        self.waits = self.tokens <= 0.0;
        if self.waits { Share::AtKey } else { Share::Goes }
    }

    /// A packet and its acknowledgement took so long.
    pub fn took(&mut self, trip: Duration) {
        self.round_trip_s = Some(trip.as_secs_f64().max(0.000_1));
    }

    /// A receiver's report came.
    pub fn heard(&mut self, report: Report, now: Instant) {
        let echoed = self.sent.iter().position(|(middle, _)| report.sender != 0 && *middle == report.sender);
        // Another echo of it, or of one before, tells nothing new.
        if let Some((_, at)) = echoed.and_then(|index| self.sent.drain(index..).next()) {
            let delay = Duration::from_nanos(u64::from(report.delay) * 1_000_000_000 / 65_536);
            let trip = now.saturating_duration_since(at).saturating_sub(delay).as_secs_f64().max(0.000_1);
            self.trips.push_front(trip);
            self.trips.truncate(TRIPS);
            let mut sorted: Vec<f64> = self.trips.iter().copied().collect();
            sorted.sort_by(f64::total_cmp);
            // Of two the shorter.
            self.round_trip_s = Some(sorted[(sorted.len() - 1) / 2]);
        }
        (self.unheard, self.heard, self.since_heard) = (None, now, 0.0);
        let (before, at) = self.last;
        let passed = now.saturating_duration_since(at).as_secs_f64();
        let expected = report.highest.wrapping_sub(before.highest);
        let trip = self.trip_s();
        // Numbers differ from those that were reported by what was not sent, and go down where something came twice, or late: what was told before
        // counts once. Where nothing was lost so far, a few may only have been overtaken when the report was made (section 5.1), so of these the
        // next report has to tell again; later that would be a report's time in which too much is sent.
        let more = |lost: u32| (lost.wrapping_sub(self.counted) as i32).max(0).unsigned_abs();
        let (now_lost, before_lost) = (more(report.lost), more(before.lost));
        let overtaken = if self.limit.is_none() { OVERTAKEN } else { 0 };
        let lost = now_lost.min(before_lost).max(now_lost.saturating_sub(overtaken)).min(expected);
        let may_begin = self.event_at.is_none_or(|at| now.saturating_duration_since(at).as_secs_f64() >= trip);
        // Once a round trip is enough, but what is lost is told at once (section 6.2); the next report tells the same and more.
        if passed <= 0.0 || (passed < trip && expected < 1 << 20 && !(lost > 0 && may_begin)) {
            return;
        }
        self.last = (report, now);
        // What cannot be, such as of a receiver that began anew, is no loss.
        if expected == 0 || expected > 1 << 20 {
            self.counted = report.lost;
            return;
        }
        self.counted = self.counted.wrapping_add(lost);
        let (weight, sent) = (passed / (passed + SENDING_S), std::mem::take(&mut self.bytes) / passed);
        let busy_s = std::mem::take(&mut self.busy_s);
        let sending = self.sending.map_or(sent, |before| before + weight * (sent - before));
        self.sending = Some(sending);
        let events = if passed <= 2.0 * trip {
            u32::from(lost > 0)
        } else {
            // What is lost within a round trip of the first is one event: of losses at random times while something was sent, so many are
            // first. Parts of one are kept for the next report.
            self.events += f64::from(lost) / (1.0 + f64::from(lost) * trip / busy_s.clamp(trip, passed));
            let events = if lost > 0 { self.events.floor() as u32 } else { 0 };
            self.events -= f64::from(events);
            events
        };
        // Before the first there was no limit, so what else was lost says nothing of a rate that was given.
        let events = if self.limit.is_none() { events.min(1) } else { events };
        for _ in 0..events {
            self.losses.came(f64::from(expected) / f64::from(events));
            // What was right is half of what was sent before the first (section 6.3.1).
            self.losses.event(Losses::first(self.size, trip, (sending / 2.0).max(self.size)));
            self.event_at = Some(now);
        }
        if events == 0 {
            self.losses.came(f64::from(expected));
        }
        if let Some(p) = self.losses.rate() {
            if self.limit.is_none() {
                (self.filled, self.tokens) = (now, 0.0);
            }
            self.limit = Some(throughput(self.size, trip, p).max(self.size / BACK_OFF));
        }
    }
}
