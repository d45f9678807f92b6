//! One end of a TCP connection (RFC 9293), as little of it as a translator needs.
//!
//! ```text
//! Answering --ACK--> Open --both have ended, or one breaks off--> Over
//! Opening --SYN and ACK--^
//! ```
//! What arrives out of order is not kept: who sent it sends it again. What goes out is kept as the packet it is until it is
//! acknowledged; it is sent again after three repeated acknowledgements, or after a while that doubles
//! (RFC 6298, RFC 6582). There is no congestion window: what is offered is bounded by who asks
//! [`Half::kept`], and by TFRC, to which losses and round trips are told.

use super::packet::{Ends, Packet, Told, bare_segment};
use smoltcp::wire::{TcpControl, TcpRepr};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Content of a segment at most: an Ethernet frame less the headers.
pub const SEGMENT: u16 = 1460;
/// What the other end may send before it is acknowledged; all of it is taken at once.
const WINDOW: u16 = 16 << 10;
/// Bounds of the time after which something is sent again.
const AGAIN_MIN: Duration = Duration::from_millis(200);
const AGAIN_MAX: Duration = Duration::from_secs(10);
/// How often the same is sent before the other end is given up.
const TRIES: u32 = 8;
/// Where packets go.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    Answering,
    Open,
    Over,
}

/// A segment that is not acknowledged.
#[derive(Debug)]
struct Flying {
    sequence: u32,
    /// Of sequence numbers.
    length: u32,
    what: What,
    since: Instant,
    is_again: bool,
}

#[derive(Debug)]
enum What {
    Syn,
    Fin,
    Content(Packet),
}

/// What has become of a segment that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing that is new.
    Nothing,
    /// Its content is what comes next.
    Content,
    /// The other end has refused, or broken off.
    Broken,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Half {
    ends: Ends,
    state: State,
    /// The first number that is not acknowledged, and the next.
    first: u32,
    next: u32,
    /// The next number of the other end.
    expects: u32,
    window: usize,
    /// By how much windows of the other end are shifted; nothing where it does not ask for that (RFC 7323).
    shift: Option<u8>,
    segment: usize,
    flight: VecDeque<Flying>,
    waiting: VecDeque<Packet>,
    waiting_bytes: usize,
    repeats: u32,
    /// Where a loss is mended that was found before this number was sent.
    mends: Option<u32>,
    trip: Option<(Duration, Duration)>,
    again_at: Option<Instant>,
    tries: u32,
    wants_end: bool,
    has_ended: bool,
    is_acknowledged: bool,
    /// It takes no content for now.
    is_shut: bool,
    /// Whether the other end has ended.
    pub is_ended: bool,
    /// Segments that were sent again because they were lost.
    pub lost: u32,
    /// Segments of content that were sent.
    pub sent: u32,
}

/// Whether a sequence number is behind another.
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Half {
    fn new(ends: Ends, state: State, first: u32, expects: u32) -> Half {
        Half {
            ends,
            state,
            first,
            next: first,
            expects,
            window: usize::from(SEGMENT),
            shift: None,
            segment: 536,
            flight: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            repeats: 0,
            mends: None,
            trip: None,
            again_at: None,
            tries: 0,
            wants_end: false,
            has_ended: false,
            is_acknowledged: false,
            is_shut: false,
            is_ended: false,
            lost: 0,
            sent: 0,
        }
    }

    /// Opens a connection, as its `from`.
    pub fn opening(ends: Ends, first: u32, now: Instant, sink: Sink<'_>) -> Half {
        let mut half = Half::new(ends, State::Opening, first, 0);
        half.fly(What::Syn, 1, now, sink);
        half
    }

    /// Answers who opens one, as its `from`.
    pub fn answering(ends: Ends, syn: &TcpRepr<'_>, first: u32, now: Instant, sink: Sink<'_>) -> Half {
        let mut half = Half::new(ends, State::Answering, first, (syn.seq_number.0 as u32).wrapping_add(1));
        half.hear_options(syn);
        half.fly(What::Syn, 1, now, sink);
        half
    }

    fn hear_options(&mut self, syn: &TcpRepr<'_>) {
        self.segment = usize::from(syn.max_seg_size.unwrap_or(536).clamp(64, SEGMENT));
        self.shift = syn.window_scale.filter(|_| self.state == State::Answering).map(|shift| shift.min(14));
        self.window = usize::from(syn.window_len);
    }

    /// Between whom.
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether nothing goes through it any more.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// The mean round trip, once it is known.
    pub fn trip(&self) -> Option<Duration> {
        self.trip.map(|(mean, _)| mean)
    }

    /// Bytes that wait for room: nothing, as long as the other end keeps up.
    pub fn waiting(&self) -> usize {
        self.waiting_bytes
    }

    /// Bytes that are kept: they wait for room, or are not acknowledged.
    pub fn kept(&self) -> usize {
        self.waiting_bytes + self.next.wrapping_sub(self.first) as usize
    }

    /// Whether content is taken from now on: who sends it is told, and keeps it as long as it is not.
    pub fn takes(&mut self, does: bool, sink: Sink<'_>) {
        let was_shut = std::mem::replace(&mut self.is_shut, !does);
        if was_shut && does && self.state == State::Open {
            self.acknowledge(sink);
        }
    }

    fn told(&self, sequence: u32) -> Told {
        let window = if self.is_shut { 0 } else { WINDOW };
        Told { ends: self.ends, sequence, expects: self.expects, window }
    }

    fn fly(&mut self, what: What, length: u32, now: Instant, sink: Sink<'_>) {
        let mut flying = Flying { sequence: self.next, length, what, since: now, is_again: false };
        self.next = self.next.wrapping_add(length);
        self.put(&mut flying, sink);
        self.flight.push_back(flying);
        if self.again_at.is_none() {
            self.again_at = Some(now + self.again());
        }
    }

    fn put(&mut self, flying: &mut Flying, sink: Sink<'_>) {
        let told = self.told(flying.sequence);
        let is_first = self.state == State::Opening;
        match &mut flying.what {
            What::Syn => {
                let scale = self.shift.map(|_| 0);
                sink(&bare_segment(told, TcpControl::Syn, !is_first, Some((SEGMENT, scale))));
            }
            What::Fin => sink(&bare_segment(told, TcpControl::Fin, true, None)),
            What::Content(packet) => sink(packet.seal(told)),
        }
    }

    fn again(&self) -> Duration {
        let usual = self.trip.map_or(Duration::from_secs(1), |(mean, off)| mean + 4 * off);
        (usual.max(AGAIN_MIN) * (1 << self.tries.min(6))).min(AGAIN_MAX)
    }

    fn acknowledge(&self, sink: Sink<'_>) {
        sink(&bare_segment(self.told(self.next), TcpControl::None, true, None));
    }

    /// Breaks off.
    pub fn reset(&mut self, sink: Sink<'_>) {
        if self.state != State::Over {
            sink(&bare_segment(self.told(self.next), TcpControl::Rst, self.state != State::Opening, None));
            self.state = State::Over;
        }
    }

    /// Ends when everything has gone out.
    pub fn finish(&mut self, now: Instant, sink: Sink<'_>) {
        self.wants_end = true;
        self.push(now, sink);
    }

    /// Sends bytes, when there is room.
    pub fn say(&mut self, bytes: &[u8], now: Instant, sink: Sink<'_>) {
        for piece in bytes.chunks(self.segment) {
            self.waiting_bytes += piece.len();
            self.waiting.push_back(Packet::of(piece));
        }
        self.push(now, sink);
    }

    /// Sends a packet, when there is room.
    pub fn pass(&mut self, mut packet: Packet, now: Instant, sink: Sink<'_>) {
        self.waiting_bytes += packet.len();
        let tail = packet.split(self.segment);
        self.waiting.push_back(packet);
        match tail {
            Some(tail) => {
                self.waiting_bytes -= tail.len();
                self.pass(tail, now, sink);
            }
            None => self.push(now, sink),
        }
    }

    fn push(&mut self, now: Instant, sink: Sink<'_>) {
        if self.state != State::Open {
            return;
        }
        while let Some(packet) = self.waiting.front() {
            let (length, flying) = (packet.len(), self.next.wrapping_sub(self.first) as usize);
            if flying > 0 && flying + length > self.window {
                return;
            }
            let Some(packet) = self.waiting.pop_front() else { return };
            self.waiting_bytes -= length;
            if length > 0 {
                self.sent += 1;
                self.fly(What::Content(packet), length as u32, now, sink);
            }
        }
        if self.wants_end && !self.has_ended {
            self.has_ended = true;
            self.fly(What::Fin, 1, now, sink);
        }
    }

    /// Hears a segment from the other end.
    pub fn heard(&mut self, segment: &TcpRepr<'_>, now: Instant, sink: Sink<'_>) -> Heard {
        let sequence = segment.seq_number.0 as u32;
        if self.state == State::Over {
            // The last acknowledgement may have been lost.
            if self.is_ended && segment.control == TcpControl::Fin {
                self.acknowledge(sink);
            }
            return Heard::Nothing;
        }
        if segment.control == TcpControl::Rst {
            // One that fits: others are of somebody who guesses.
            let fits = match self.state {
                State::Opening => segment.ack_number.is_some_and(|told| told.0 as u32 == self.next),
                _ => sequence.wrapping_sub(self.expects) < u32::from(WINDOW),
            };
            if fits {
                self.state = State::Over;
            }
            return if fits { Heard::Broken } else { Heard::Nothing };
        }
        let is_answer = segment.control == TcpControl::Syn;
        match (self.state, segment.ack_number) {
            (State::Opening, Some(told)) if is_answer && told.0 as u32 == self.next => {
                self.expects = sequence.wrapping_add(1);
                self.hear_options(segment);
                self.state = State::Open;
                self.acknowledged(self.next, segment, now, sink);
                self.acknowledge(sink);
                return Heard::Nothing;
            }
            (State::Opening, _) => return Heard::Nothing,
            // The first again: what answered it is lost, or under way.
            _ if is_answer => {
                self.acknowledge(sink);
                return Heard::Nothing;
            }
            (_, None) => return Heard::Nothing,
            (_, Some(told)) => {
                let told = told.0 as u32;
                if is_before(self.next, told) {
                    return Heard::Nothing;
                }
                if self.state == State::Answering && told == self.next {
                    self.state = State::Open;
                }
                self.acknowledged(told, segment, now, sink);
            }
        }
        let ends = segment.control == TcpControl::Fin;
        if segment.payload.is_empty() && !ends {
            // Who asks whether somebody is there.
            if is_before(sequence, self.expects) {
                self.acknowledge(sink);
            }
            return Heard::Nothing;
        }
        let is_next = sequence == self.expects && !self.is_ended && (!self.is_shut || segment.payload.is_empty());
        if is_next {
            self.expects = self.expects.wrapping_add(segment.payload.len() as u32 + u32::from(ends));
            self.is_ended = ends;
        }
        self.acknowledge(sink);
        if self.is_acknowledged && self.is_ended {
            self.state = State::Over;
        }
        if is_next && !segment.payload.is_empty() { Heard::Content } else { Heard::Nothing }
    }

    fn acknowledged(&mut self, told: u32, segment: &TcpRepr<'_>, now: Instant, sink: Sink<'_>) {
        let window = usize::from(segment.window_len) << self.shift.unwrap_or(0);
        if told == self.first {
            let is_repeat = !self.flight.is_empty() && segment.payload.is_empty() && window == self.window;
            self.window = window;
            self.repeats += u32::from(is_repeat && segment.control != TcpControl::Fin);
            if self.repeats == 3 && self.mends.is_none() {
                self.mends = Some(self.next);
                self.send_first_again(now, sink);
            }
            return self.push(now, sink);
        }
        if is_before(told, self.first) {
            return;
        }
        self.window = window;
        while let Some(flying) = self.flight.front() {
            if is_before(told, flying.sequence.wrapping_add(flying.length)) {
                break;
            }
            let Some(flying) = self.flight.pop_front() else { break };
            self.is_acknowledged |= matches!(flying.what, What::Fin);
            // Only what was sent once tells how long it took (Karn's rule).
            if !flying.is_again {
                let took = now.saturating_duration_since(flying.since);
                self.trip = Some(self.trip.map_or((took, took / 2), |(mean, off)| {
                    ((7 * mean + took) / 8, (3 * off + mean.abs_diff(took)) / 4)
                }));
            }
        }
        (self.first, self.repeats, self.tries) = (told, 0, 0);
        self.again_at = (!self.flight.is_empty()).then(|| now + self.again());
        match self.mends {
            Some(until) if is_before(told, until) => self.send_first_again(now, sink),
            _ => self.mends = None,
        }
        if self.is_acknowledged && self.is_ended {
            self.state = State::Over;
        }
        self.push(now, sink);
    }

    fn send_first_again(&mut self, now: Instant, sink: Sink<'_>) {
        let Some(mut flying) = self.flight.pop_front() else { return };
        (flying.is_again, flying.since) = (true, now);
        self.lost += 1;
        self.put(&mut flying, sink);
        self.flight.push_front(flying);
        self.again_at = Some(now + self.again());
    }

    /// When it has to be looked after, if nothing comes.
    pub fn deadline(&self) -> Option<Instant> {
        self.again_at.filter(|_| self.state != State::Over)
    }

    /// Sends again what is due; false if the other end is given up.
    pub fn tick(&mut self, now: Instant, sink: Sink<'_>) -> bool {
        if self.deadline().is_none_or(|at| now < at) {
            return true;
        }
        if self.flight.is_empty() {
            self.again_at = None;
            return true;
        }
        self.tries += 1;
        if self.tries > TRIES {
            self.state = State::Over;
            return false;
        }
        // All that is in flight may be lost: what is acknowledged of it is not sent again.
        self.mends = Some(self.next);
        self.send_first_again(now, sink);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{Kind, ROOM, kind, segment};
    use super::*;
    use proptest::prelude::*;

    fn take(half: &mut Half, packet: &[u8], now: Instant, out: &mut Vec<Vec<u8>>, got: &mut Vec<u8>) -> Heard {
        let bytes = [&[0; ROOM], packet].concat();
        let Kind::Tcp(ends, range) = kind(&bytes) else { panic!("no segment") };
        let repr = segment(&bytes, ends, &range).unwrap();
        let heard = half.heard(&repr, now, &mut |packet| out.push(packet.to_vec()));
        if heard == Heard::Content {
            got.extend_from_slice(repr.payload);
        }
        heard
    }

    fn ends() -> Ends {
        Ends { from: "10.0.0.1:4000".parse().unwrap(), to: "10.0.0.7:554".parse().unwrap() }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(60)) })]

        /// Over a link that loses, doubles and reorders, both sides get every byte that the other said, in order, and the end.
        #[test]
        fn everything_arrives(
            first in any::<u32>(), second in any::<u32>(),
            words in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..4000)), 0..12),
            fates in prop::collection::vec(0..6_u8, 40..200),
        ) {
            let mut now = Instant::now();
            let mut fates = fates.iter().cycle();
            // Packets under way: when they arrive, and to which side.
            let mut link: Vec<(Instant, bool, Vec<u8>)> = Vec::new();
            let mut out = Vec::new();
            let mut one = Half::opening(ends(), first, now, &mut |packet| out.push(packet.to_vec()));
            let mut other: Option<Half> = None;
            let (mut said, mut got) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
            let mut words = words.into_iter();
            let mut is_told = false;
            let mut counts = [0; 2];
            let mut from_one = vec![(true, std::mem::take(&mut out))];
            for _ in 0..20_000 {
                for (is_first, packets) in from_one.drain(..) {
                    for packet in packets {
                        let count = &mut counts[usize::from(is_first)];
                        *count += 1;
                        // Nothing of either side is lost for ever: a sixth at most times, and never again and again for long.
                        let fate = if *count > 1500 || *count % 5 == 0 { 5 } else { *fates.next().unwrap() };
                        let late = Duration::from_millis(if fate == 1 { 35 } else { 10 });
                        if fate > 0 {
                            link.push((now + late, !is_first, packet.clone()));
                        }
                        if fate == 2 {
                            link.push((now + 2 * late, !is_first, packet));
                        }
                    }
                }
                let is_open = one.is_open() && other.as_ref().is_some_and(Half::is_open);
                if is_open && !is_told {
                    match words.next() {
                        Some((is_first, bytes)) => {
                            let half = if is_first { &mut one } else { other.as_mut().unwrap() };
                            said[usize::from(is_first)].extend_from_slice(&bytes);
                            half.say(&bytes, now, &mut |packet| out.push(packet.to_vec()));
                            from_one.push((is_first, std::mem::take(&mut out)));
                        }
                        None => {
                            is_told = true;
                            one.finish(now, &mut |packet| out.push(packet.to_vec()));
                            from_one.push((true, std::mem::take(&mut out)));
                            other.as_mut().unwrap().finish(now, &mut |packet| out.push(packet.to_vec()));
                            from_one.push((false, std::mem::take(&mut out)));
                        }
                    }
                    continue;
                }
                if one.is_over() && other.as_ref().is_some_and(Half::is_over) {
                    break;
                }
                now += Duration::from_millis(5);
                let (due, later): (Vec<_>, Vec<_>) = link.drain(..).partition(|(at, ..)| *at <= now);
                link = later;
                for (_, to_first, packet) in due {
                    let half = match (to_first, &mut other) {
                        (true, _) => &mut one,
                        (false, Some(other)) => other,
                        (false, None) => {
                            let bytes = [&[0; ROOM], packet.as_slice()].concat();
                            let Kind::Tcp(ends, range) = kind(&bytes) else { panic!() };
                            let syn = segment(&bytes, ends, &range).unwrap();
                            other = Some(Half::answering(ends.back(), &syn, second, now, &mut |p| out.push(p.to_vec())));
                            from_one.push((false, std::mem::take(&mut out)));
                            continue;
                        }
                    };
                    take(half, &packet, now, &mut out, &mut got[usize::from(!to_first)]);
                    from_one.push((to_first, std::mem::take(&mut out)));
                }
                // The last acknowledgement may be what is lost; nobody waits for it.
                let goes_on = one.tick(now, &mut |packet| out.push(packet.to_vec()));
                prop_assert!(goes_on || other.as_ref().is_some_and(Half::is_over), "one gives up");
                from_one.push((true, std::mem::take(&mut out)));
                if let Some(other) = &mut other {
                    let goes_on = other.tick(now, &mut |packet| out.push(packet.to_vec()));
                    prop_assert!(goes_on || one.is_over(), "the other gives up");
                    from_one.push((false, std::mem::take(&mut out)));
                }
            }
            prop_assert_eq!(&got[1], &said[1]);
            prop_assert_eq!(&got[0], &said[0]);
        }
    }

    /// Who guesses ends nobody's connection, and what was sent again does not tell how long the way is.
    #[test]
    fn only_a_reset_that_fits_is_believed_and_only_what_was_sent_once_is_timed() {
        let mut now = Instant::now();
        let (mut out, mut got) = (Vec::new(), Vec::new());
        let mut half = Half::opening(ends(), 9, now, &mut |_| {});
        let told = |sequence, expects| Told { ends: ends().back(), sequence, expects, window: 60_000 };
        now = half.deadline().unwrap();
        assert!(half.tick(now, &mut |_| {}));
        let answer = bare_segment(told(500, 10), TcpControl::Syn, true, None);
        take(&mut half, &answer, now + Duration::from_millis(1), &mut out, &mut got);
        assert!(half.is_open() && half.trip().is_none());
        half.say(b"hello", now, &mut |_| {});
        let acknowledgement = bare_segment(told(501, 15), TcpControl::None, true, None);
        take(&mut half, &acknowledgement, now + Duration::from_millis(30), &mut out, &mut got);
        assert_eq!(half.trip(), Some(Duration::from_millis(30)));
        for sequence in [500, 501 + u32::from(WINDOW), 7] {
            let guess = bare_segment(told(sequence, 15), TcpControl::Rst, true, None);
            assert_eq!(take(&mut half, &guess, now, &mut out, &mut got), Heard::Nothing);
        }
        assert!(half.is_open());
        let reset = bare_segment(told(501, 15), TcpControl::Rst, true, None);
        assert_eq!(take(&mut half, &reset, now, &mut out, &mut got), Heard::Broken);
    }

    #[test]
    fn one_that_is_refused_is_over() {
        let (now, mut out) = (Instant::now(), Vec::new());
        let mut half = Half::opening(ends(), 9, now, &mut |packet| out.push(packet.to_vec()));
        let told = Told { ends: ends().back(), sequence: 0, expects: 10, window: 0 };
        let refusal = bare_segment(told, TcpControl::Rst, true, None);
        assert_eq!(take(&mut half, &refusal, now, &mut out, &mut Vec::new()), Heard::Broken);
        assert!(half.is_over() && half.deadline().is_none());
        // Nobody answers: it is tried some times, then given up.
        let mut half = Half::opening(ends(), 9, now, &mut |packet| out.push(packet.to_vec()));
        let mut at = now;
        while half.tick(at, &mut |packet| out.push(packet.to_vec())) {
            at = half.deadline().unwrap();
            assert!(at < now + Duration::from_secs(120));
        }
        assert!(half.is_over());
    }
}
