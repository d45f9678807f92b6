//! What a worker hears from those who connect, and what it answers, until they play.

use super::{CONNECTION, PLAYING, Worker, token};
use crate::auth::{Asked, Known, Verdict};
use crate::clock::came;
use crate::connection::{Connection, Paced, send_reports};
use crate::feed::Feed;
use crate::form::{Form, Maker};
use crate::http;
use crate::net::{Ready, is_later};
use crate::session::{Effect, Request, Way};
use crate::shared::Post;
use crate::stream::add;
use crate::text::{self, Bounds, Message, Protocol};
use crate::tfrc::{Numbers, Rate};
use crate::tunnel::{self, Back, Tunnel};
use crate::viewer::{Channels, Flow};
use crate::websocket::{self, Said};
use bytes::{Buf, BytesMut};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What a viewer may say at once.
const BOUNDS: Bounds = Bounds { head_bytes: 16 << 10, body_bytes: 4 << 10 };
/// Bytes of a connection that are kept until they are a message.
pub(super) const INPUT_MAX: usize = BOUNDS.head_bytes + BOUNDS.body_bytes;
/// Responses that wait for room before nothing more is read of a connection.
pub(super) const OWED_MAX: usize = 64 << 10;
/// Bytes that are read on the way back of a tunnel before others have their turn.
const TURN_BYTES: usize = 64 << 10;
/// Wrong answers of a connection before it is cut off.
const WRONGS_MAX: u32 = 3;

impl Worker {
    pub(super) fn connection_is_ready(&mut self, slot: usize, event: Ready, now: Instant) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        if event.can_write {
            connection.out.is_blocked = false;
        }
        let goes_on = !event.can_read || self.read(slot);
        self.serve(slot, now);
        if goes_on {
            return self.look_again(slot);
        }
        // Who asks and says no more is answered to the end.
        match self.connections[slot].as_mut().filter(|c| c.feed.is_none() && c.out.owed() > 0) {
            Some(connection) => {
                connection.ends = true;
                self.flush(slot, now);
            }
            None => self.close(slot, None),
        }
    }

    /// What TLS has read already, the system does not tell of again: it has its turn after others.
    fn look_again(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        let back = connection.tunnel.as_mut().and_then(|tunnel| tunnel.back.as_mut());
        let has_back = connection.waits.0 && back.is_some_and(|back| back.wire.holds_input());
        if has_back || connection.waits.0 && connection.wire.holds_input() {
            self.again.push((slot, has_back));
        }
    }

    /// Hears those who were not heard to their end. A place may be somebody else's by now, of whom nothing has come, perhaps.
    pub(super) fn hear_again(&mut self, now: Instant) {
        for (slot, is_back) in std::mem::take(&mut self.again) {
            match is_back {
                true => self.back_is_ready(slot, false, now),
                false => self.connection_is_ready(slot, Ready::SOME, now),
            }
        }
    }

    /// Something has come on the way back of a tunnel, perhaps its end.
    pub(super) fn back_is_ready(&mut self, slot: usize, is_over: bool, now: Instant) {
        let (mut bytes, mut taken) = ([0; 8192], 0);
        loop {
            let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
            let Some(tunnel) = &mut connection.tunnel else { return };
            let Some(back) = tunnel.back.as_mut().filter(|_| connection.input.len() < INPUT_MAX) else {
                // There may never be room for what is left of it.
                tunnel.back.take_if(|_| is_over);
                return;
            };
            // Others have their turn.
            if taken >= TURN_BYTES {
                return self.look_again(slot);
            }
            let is_over = match back.wire.read(&mut bytes) {
                Ok(0) => true,
                Ok(count) => {
                    taken += count;
                    back.decoder.take(&bytes[..count], &mut connection.input).is_err()
                }
                Err(e) if is_later(&e) => return,
                Err(_) => true,
            };
            if is_over {
                // Who asks again may do so on another one.
                tunnel.back = None;
            }
            self.serve(slot, now);
        }
    }

    /// A connection becomes the way back of the viewer with that cookie.
    pub(super) fn join(&mut self, cookie: &str, mut back: Box<Back>, now: Instant) {
        let Some(slot) = self.tunnels.get(cookie).copied() else { return };
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        // Whoever makes one way back after another has no more room than one; and what is said within TLS is said so both ways.
        let is_alike = back.wire.is_secure() == connection.wire.is_secure();
        let has_room = connection.input.len() < INPUT_MAX;
        let Some(tunnel) = connection.tunnel.as_mut().filter(|_| has_room && is_alike) else { return };
        if self.poll.add(&back.wire, token(CONNECTION, slot) | 1).is_ok() {
            connection.input.extend_from_slice(&std::mem::take(&mut back.before));
            tunnel.back = Some(back);
            self.serve(slot, now);
            self.back_is_ready(slot, false, now);
        }
    }

    /// Reads what a viewer says; false at the end.
    pub(super) fn read(&mut self, slot: usize) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return true };
        let mut bytes = [0; 8192];
        let mut ignored = 0;
        while connection.input.len() < INPUT_MAX && ignored < INPUT_MAX {
            match connection.wire.read(&mut bytes) {
                Ok(0) => return false,
                // What a tunnel's viewer says comes on the other way.
                Ok(count) if connection.tunnel.is_some() => ignored += count,
                Ok(count) => {
                    connection.input.extend_from_slice(&bytes[..count]);
                    if count < bytes.len() && !connection.wire.is_secure() {
                        break;
                    }
                }
                Err(e) if is_later(&e) => break,
                Err(_) => return false,
            }
        }
        true
    }

    /// Answers what was asked, and sends, as far as responses have room.
    pub(super) fn serve(&mut self, slot: usize, now: Instant) {
        while self.serve_some(slot, now) {}
    }

    /// Whether there is more to answer, and room for that by now.
    fn serve_some(&mut self, slot: usize, now: Instant) -> bool {
        while let Some(connection) = self.connections[slot].as_mut().filter(|c| !c.ends && c.out.owed() < OWED_MAX) {
            if connection.is_socket {
                match websocket::take(&connection.input) {
                    Ok(None) => break,
                    Ok(Some(Said::Nothing(length))) => connection.input.advance(length),
                    Ok(Some(Said::Answer(length, answer))) => {
                        connection.input.advance(length);
                        connection.out.say(&answer);
                    }
                    Ok(Some(Said::End(answer))) => {
                        connection.out.flow = Flow::Idle;
                        connection.out.say(&answer);
                        connection.ends = true;
                    }
                    Err(_) => {
                        self.close(slot, None);
                        return false;
                    }
                }
                (connection.heard, connection.partial) = (now, None);
                continue;
            }
            match text::take(&connection.input, BOUNDS) {
                Ok(None) if connection.input.len() < INPUT_MAX => break,
                // A frame of data that is larger than any report.
                Ok(None) => {
                    self.close(slot, None);
                    return false;
                }
                Ok(Some((message, length))) => {
                    connection.input.advance(length);
                    (connection.heard, connection.partial) = (now, None);
                    // Viewers' frames of data are reports that nobody reads.
                    if !matches!(message, Message::Data { .. }) && !self.answer(slot, message, now) {
                        return false;
                    }
                }
                Err(why) => {
                    connection.ends = true;
                    let line = connection.input[..].split(|byte| *byte == b'\n').next().unwrap_or_default();
                    let is_rtsp = line.windows(5).any(|word| word == b"RTSP/");
                    let protocol = if is_rtsp { "RTSP/1.0" } else { "HTTP/1.1" };
                    let status = if matches!(why, text::Malformed::Head(_)) { 431 } else { 400 };
                    let line = format!("{protocol} {status} {}", text::reason(status));
                    let kind = [("Connection", "close"), ("Content-Type", "text/plain")];
                    connection.out.say(&text::write(&line, &kind, format!("{why}\n").as_bytes()));
                }
            }
        }
        let is_full = self.connections[slot].as_ref().is_some_and(|c| !c.ends && c.out.owed() >= OWED_MAX);
        if let Some(connection) = self.connections[slot].as_mut() {
            match connection.input.is_empty() {
                true => connection.partial = None,
                false => drop(connection.partial.get_or_insert(now)),
            }
        }
        self.flush(slot, now);
        is_full && self.connections[slot].as_ref().is_some_and(|c| !c.ends && c.out.owed() < OWED_MAX)
    }

    /// Answers one message; false if the connection is no longer this worker's.
    pub(super) fn answer(&mut self, slot: usize, message: Message, now: Instant) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        let Message::Request { protocol, method, target, headers, .. } = message else {
            // It was asked nothing.
            self.close(slot, None);
            return false;
        };
        connection.has_asked = true;
        // An answer would stand in the middle of what plays, and what plays has its place on this worker.
        let has_session = connection.feed.is_some() || connection.server.session.is_some();
        if connection.wants.is_some() || (protocol == Protocol::Http && has_session) {
            self.close(slot, Some("asks for something else while it plays, and is cut off"));
            return false;
        }
        if protocol == Protocol::Http
            && connection.tunnel.is_none()
            && let Some(cookie) = tunnel::cookie(&headers)
        {
            return self.dig(slot, &method, cookie);
        }
        let is_rtsp = protocol == Protocol::Rtsp;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
        let is_private = connection.wire.is_secure() || connection.peer.is_loopback();
        let asked = Asked { peer: connection.peer, method: &method, target: &target, now_s, is_private };
        let (shared, live) = (self.shared.clone(), self.shared.live());
        let needs_nobody = is_rtsp && matches!(method.as_str(), "OPTIONS" | "TEARDOWN");
        let verdict = match &connection.known {
            Some(known) => Verdict::Known(known.clone()),
            None if needs_nobody => Verdict::Known(Known::default()),
            // Who guesses is not told whether a guess was right.
            None if shared.counts.is_barred(connection.peer, now) && !live.users.is_open() => Verdict::Silent,
            None => live.users.judge(headers.get("authorization"), asked),
        };
        let Verdict::Known(known) = verdict else {
            let is_wrong = verdict == Verdict::Wrong;
            connection.wrongs += u32::from(is_wrong);
            let challenges = live.users.challenges(asked, &verdict, connection.wire.is_secure());
            connection.out.say(&match is_rtsp {
                true => connection.server.unknown(&headers, &challenges),
                false => http::unknown(&challenges),
            });
            connection.ends = !is_rtsp || connection.wrongs >= WRONGS_MAX;
            if is_wrong {
                let (peer, count) = (connection.peer, shared.counts.wrong(connection.peer, now));
                if count.is_power_of_two() {
                    self.tell(&format!("{peer} has asked with a wrong name or password: {count} within a minute"));
                }
            }
            return true;
        };
        let streams = known.streams();
        if !needs_nobody {
            connection.known = Some(known);
        }
        if !is_rtsp {
            match http::answer(&self.shared, &streams, &method, &target, &headers) {
                http::Answer::Whole(response) => {
                    connection.out.say(&response);
                    connection.ends = true;
                    return true;
                }
                http::Answer::Stream(feed) => {
                    connection.wants = Some(feed);
                    return self.play(slot, now);
                }
                http::Answer::Upgrade(feed, response) => {
                    connection.out.say(&response);
                    (connection.wants, connection.is_socket) = (Some(feed), true);
                    return self.play(slot, now);
                }
            }
        }
        let shared = &self.shared;
        // Datagrams would go in the clear, or not through the firewall.
        let is_plain = !connection.wire.is_secure() && connection.tunnel.is_none();
        // An address that means another computer on each network is not enough to send to.
        let is_local = matches!(connection.peer, IpAddr::V6(peer) if peer.is_unicast_link_local());
        let may_send = is_plain && !is_local;
        let ports = shared.ports().filter(|_| may_send);
        let request = Request { method: &method, target: &target, headers: &headers };
        let (response, effect) =
            connection.server.answer(request, &|name| shared.find(name, &streams), ports, || shared.session());
        connection.out.say(&response);
        match effect {
            Effect::None => {}
            Effect::End => connection.ends = true,
            Effect::Pause => self.rest(slot),
            Effect::Play => return self.play(slot, now),
        }
        true
    }

    /// A viewer pauses: its place is another's.
    fn rest(&mut self, slot: usize) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        connection.out.flow = Flow::Idle;
        if let Some(feed) = connection.feed.take() {
            connection.counted.waits_on(self.index);
            self.feeds[feed].viewers.retain(|viewer| *viewer != slot);
            self.stream_of(feed).viewers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets a viewer play where it is to be played.
    pub(super) fn play(&mut self, slot: usize, now: Instant) -> bool {
        let shared = self.shared.clone();
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        let session = connection.server.session.as_ref();
        let packets = session.map(|session| Form::Packets.feed(session.stream));
        let Some(feed) = connection.wants.or(packets) else { return true };
        let stream = Form::of(feed).1;
        if stream >= self.streams.len() {
            self.follow(now);
        }
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        let is_outdated = connection.server.is_outdated(self.streams[stream].told().generation);
        let is_full = connection.feed.is_none()
            && (shared.counts.viewers() >= shared.config.limits.viewers || self.draining.is_some());
        if is_outdated || is_full {
            shared.counts.refuse();
            let peer = connection.peer;
            let response = match connection.wants {
                Some(_) if connection.is_socket => websocket::later("there are as many viewers as there may be"),
                Some(_) => http::full(),
                None => connection.server.plain(if is_outdated { 454 } else { 503 }),
            };
            connection.out.say(&response);
            connection.ends = true;
            if is_full {
                let why = match self.draining.is_some() {
                    true => "the proxy ends".to_owned(),
                    false => format!("as many play as may (--viewers {})", shared.config.limits.viewers),
                };
                self.refusals[PLAYING].tell(&format!("{peer} is refused: {why}"));
            }
            return true;
        }
        if connection.feed.is_none() {
            let target = shared.place(stream);
            connection.counted.plays_on(target);
            if target != self.index {
                self.poll.remove(&connection.wire);
                if let Some(back) = connection.tunnel.as_ref().and_then(|tunnel| tunnel.back.as_ref()) {
                    self.poll.remove(&back.wire);
                }
                if let Some(connection) = self.take(slot)
                    && let Err(connection) = shared.hand_over(target, connection)
                {
                    shared.counts.refuse();
                    self.refusals[PLAYING]
                        .tell(&format!("{} is refused: worker {target} is too far behind", connection.peer));
                }
                return false;
            }
        }
        self.begin(slot, now)
    }

    /// A request of a tunnel: the first way is kept, the second goes to the first.
    pub(super) fn dig(&mut self, slot: usize, method: &str, cookie: &str) -> bool {
        let known = self.shared.tunnels().get(cookie).copied();
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        match (method, known) {
            ("GET", None) => {
                connection.tunnel = Some(Tunnel { cookie: cookie.to_owned(), back: None });
                connection.input.clear();
                connection.out.say(tunnel::HEAD.as_bytes());
                let peer = connection.peer;
                self.tunnels.insert(cookie.to_owned(), slot);
                self.shared.tunnels().insert(cookie.to_owned(), (self.index, peer));
                true
            }
            ("POST", Some((worker, peer))) if peer == connection.peer => {
                self.poll.remove(&connection.wire);
                let Some(connection) = self.take(slot) else { return false };
                let Connection { wire, input, counted, .. } = *connection;
                counted.stays();
                let mut back = Box::new(Back { wire, decoder: Default::default(), before: BytesMut::new(), counted });
                if back.decoder.take(&input, &mut back.before).is_err() {
                    return false;
                }
                if worker == self.index {
                    self.join(cookie, back, Instant::now());
                } else if self.shared.inboxes[worker].post(Post::Back(cookie.to_owned(), back)).is_err() {
                    self.tell(&format!("{peer} is cut off: worker {worker} is too far behind"));
                }
                false
            }
            _ => {
                connection.out.say(&http::untunnelled());
                connection.ends = true;
                true
            }
        }
    }

    /// What goes to a viewer as datagrams has a rate from now on, which follows its reports.
    fn pace(&mut self, slot: usize, now: Instant) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        let session = connection.server.session.as_ref().filter(|_| connection.wants.is_none());
        let paced = session.and_then(|session| session.paced());
        let first = paced.map(|(track, port)| (track, SocketAddr::new(connection.peer, port)));
        let before = connection.paced.take();
        let before_from = before.as_ref().map(|before| before.from);
        connection.paced = first.map(|(track, from)| match before {
            // Who plays again is where it was.
            Some(before) if (before.track, before.from) == (track, from) => before,
            before => {
                let rate = before.map_or_else(|| Rate::new(now), |before| before.rate.elsewhere(now));
                Paced { rate, numbers: Numbers::default(), track, skips: false, source: 0, from }
            }
        });
        if let Some(before) = before_from {
            self.forget(before, slot);
        }
        if let Some((_, from)) = first {
            self.listen_to(from, slot);
        }
    }

    /// Begins to make a form of a stream, with what is there since the last key, at the times at which it came as far as it tells.
    fn make(&mut self, feed: usize, now: Instant) {
        let (form, stream) = Form::of(feed);
        let Some(description) = self.streams[stream].told().description.clone() else { return };
        let (mut group, lead) = (self.feeds[Form::Packets.feed(stream)].feed.group(), description.lead());
        let rate = lead.and_then(|lead| description.tracks.get(lead)).map_or(0, |track| track.clock_rate);
        group.retain(|batch| !batch.entries.is_empty());
        let stamps = group.iter().map(|batch| Some(batch.first_of(2 * lead? as u8)?.1));
        let times = came(&stamps.collect::<Vec<_>>(), rate, now);
        let Some(mut maker) = Maker::new(form, &description, times.first().copied().unwrap_or(now)) else { return };
        let queue_bytes = self.shared.config.limits.queue_bytes;
        let local = &mut self.feeds[feed];
        for (batch, at) in group.iter().zip(times) {
            let mut pieces = maker.take(batch, &self.instants[stream], at);
            if let Some(anew) = maker.anew() {
                (pieces, local.feed) = (pieces.split_off(anew), Feed::new(queue_bytes));
            }
            local.add(pieces);
        }
        local.maker = Some(maker);
    }

    /// Plays to a viewer from now on, here; false if that cannot be any more.
    pub(super) fn begin(&mut self, slot: usize, now: Instant) -> bool {
        let Some(connection) = self.connections[slot].as_ref() else { return false };
        let session = connection.server.session.as_ref();
        let packets = session.map(|session| Form::Packets.feed(session.stream));
        let Some(feed) = connection.wants.or(packets) else { return true };
        let (form, stream) = Form::of(feed);
        if stream >= self.streams.len() {
            self.follow(now);
        }
        // While it moved here the stream may have become another one.
        let generation = self.streams[stream].told().generation;
        self.is_of(stream, generation);
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        if connection.server.is_outdated(generation) {
            connection.out.say(&connection.server.plain(454));
            connection.ends = true;
            return true;
        }
        // Who is known may have been told to go meanwhile, too.
        if !self.know_again(slot) {
            return false;
        }
        self.pace(slot, now);
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        if connection.wants.is_some() && self.feeds[feed].maker.is_none() {
            self.make(feed, now);
        }
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        let session = connection.server.session.as_ref();
        let (stream, instants, local) = (&self.streams[stream], &self.instants[stream], &mut self.feeds[feed]);
        let way = if let Some(session) = session.filter(|_| connection.wants.is_none()) {
            let tracks = connection.server.description().map_or(0, |description| description.tracks.len());
            connection.is_udp = session.ways.iter().flatten().any(|way| matches!(way, Way::Ports(..)));
            connection.out.channels = Channels::of(&session.ways, tracks);
            // A burst of old pictures is what a connection can take; datagrams begin with what comes. Who plays already goes on.
            let begins = connection.out.flow == Flow::Idle;
            if begins {
                connection.out.begin(&local.feed, now, !connection.is_udp);
            }
            let from = match connection.out.flow {
                Flow::At(cursor) => Some(cursor),
                _ => None,
            };
            // Timestamps of one instant, as far as that is told (RFC 2326, section 12.33).
            let first = |track: usize| local.feed.first_of(from?, 2 * track as u8);
            let instant = instants.earliest(|track| Some(first(track)?.1));
            let response = connection.server.playing(&|track| {
                let (sequence, stamp) = first(track)?;
                Some((sequence, instant.and_then(|instant| instants.stamp(track, instant)).unwrap_or(stamp)))
            });
            connection.out.say(&response);
            if begins {
                send_reports(connection, instants, instant, &self.shared.udp, now);
            }
            if connection.is_udp { "RTSP and UDP" } else { "RTSP" }
        } else {
            connection.out.begin(&local.feed, now, true);
            connection.awaits_head = true;
            if !connection.is_socket {
                connection.out.say(&http::stream_head(form));
            }
            if connection.is_socket { "WebSocket" } else { "HTTP" }
        };
        connection.has_played = true;
        if connection.feed.replace(feed).is_none() {
            local.viewers.push(slot);
            stream.viewers.fetch_add(1, Ordering::Relaxed);
            add(&stream.counts.viewers_served, 1);
            let how = if connection.wire.is_secure() { " within TLS" } else { "" };
            let how = if connection.tunnel.is_some() { format!(" over HTTP{how}") } else { how.to_owned() };
            let text = format!("{}: viewer {} plays by {way}{how}", stream.name(), connection.peer);
            self.tell(&text);
        }
        true
    }
}
