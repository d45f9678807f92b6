//! What a worker does for those who connect: let in, listen, answer, play, send, cut off.

use super::{CONNECTION, LINES_MAX, LISTENER, Worker, token};
use crate::auth::{Asked, Verdict};
use crate::connection::{Connection, Paced, accepted, send_datagrams};
use crate::feed::Feed;
use crate::form::{Form, Maker};
use crate::http;
use crate::net::{Ready, canonical, is_later};
use crate::session::{Effect, Request, Way};
use crate::shared::Post;
use crate::stream::add;
use crate::text::{self, Bounds, Message, Protocol};
use crate::tfrc::Rate;
use crate::tunnel::{self, Back, Tunnel};
use crate::viewer::{Channels, Flow, Sent, behind_max};
use crate::websocket::{self, Said};
use crate::wire::Wire;
use multigrain_console::say;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a viewer may say at once.
const BOUNDS: Bounds = Bounds { head_bytes: 16 << 10, body_bytes: 4 << 10 };
/// Bytes of a connection that are kept until they are a message.
const INPUT_MAX: usize = BOUNDS.head_bytes + BOUNDS.body_bytes;
/// Responses that wait for room before nothing more is read of a connection.
const OWED_MAX: usize = 64 << 10;
/// How long a message may take to be complete, the first from the beginning of the connection on.
const FIRST: Duration = Duration::from_secs(10);
/// How long somebody may be connected without playing.
const IDLE: Duration = Duration::from_secs(90);
/// How long what decoders have to know may not come.
const HEAD: Duration = Duration::from_secs(20);
/// How long a viewer may take nothing.
const STALL: Duration = Duration::from_secs(30);
/// Wrong answers of a connection before it is cut off.
const WRONGS_MAX: u32 = 3;
/// Connections beside those of viewers.
const OTHERS_MAX: usize = 256;

impl Worker {
    pub(super) fn accept(&mut self, listener: usize, now: Instant) {
        loop {
            let Some(waiting) = self.listeners.get(listener) else { return };
            let (socket, peer) = match accepted(&waiting.socket) {
                Ok(connected) => connected,
                Err(e) if is_later(&e) || e.kind() == io::ErrorKind::ConnectionAborted => return,
                Err(e) => {
                    // Such as no more files: others are let in when some have gone.
                    say(&format!("cannot let anybody in: {e}; raise the limit on open files (ulimit -n)"));
                    self.is_full = true;
                    return self.listeners.iter().for_each(|listener| self.poll.remove(&listener.socket));
                }
            };
            let limits = &self.shared.config.limits;
            let peer = canonical(peer).ip();
            let (counted, own, all) = self.shared.counts.enter(peer);
            let most = limits.connections_an_address;
            if own > most || all > limits.viewers + OTHERS_MAX {
                if self.shared.counts.refuse().is_power_of_two() {
                    say(&format!(
                        "{peer} is refused: it has {own} connections (--connections-an-address {most}), all have {}",
                        all
                    ));
                }
                continue;
            }
            let wire = match self.shared.live().tls.clone().filter(|_| waiting.is_secure) {
                None => Wire::from(socket),
                Some(tls) => match rustls::ServerConnection::new(tls) {
                    Ok(tls) => Wire::secure(socket, tls),
                    Err(_) => continue,
                },
            };
            let connection = Connection::new(wire, counted, peer, now);
            let slot = self.keep(Box::new(connection));
            self.register(slot);
        }
    }

    pub(super) fn keep(&mut self, connection: Box<Connection>) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        self.connections[slot] = Some(connection);
        slot
    }

    pub(super) fn register(&mut self, slot: usize) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        connection.waits = (true, false);
        let added = self.poll.add(&connection.wire, token(CONNECTION, slot)).is_ok();
        if let Some(tunnel) = &connection.tunnel {
            if let Some(back) = &tunnel.back {
                let _ = self.poll.add(&back.wire, token(CONNECTION, slot) | 1);
            }
            self.tunnels.insert(tunnel.cookie.clone(), slot);
            self.shared.tunnels().insert(tunnel.cookie.clone(), (self.index, connection.peer));
        }
        if !added {
            self.close(slot, None);
        }
        added
    }

    /// Takes a connection out of everything.
    fn take(&mut self, slot: usize) -> Option<Box<Connection>> {
        let connection = self.connections.get_mut(slot)?.take()?;
        self.free.push(slot);
        if let Some(paced) = &connection.paced {
            self.reporters.remove(&paced.from);
        }
        if let Some(tunnel) = &connection.tunnel
            && self.tunnels.get(&tunnel.cookie) == Some(&slot)
        {
            self.tunnels.remove(&tunnel.cookie);
            self.shared.tunnels().remove(&tunnel.cookie);
        }
        if let Some(feed) = connection.feed {
            self.stream_of(feed).viewers.fetch_sub(1, Ordering::Relaxed);
            self.feeds[feed].viewers.retain(|viewer| *viewer != slot);
        }
        Some(connection)
    }

    pub(super) fn close(&mut self, slot: usize, why: Option<&str>) {
        let Some(connection) = self.take(slot) else { return };
        let peer = connection.peer;
        match (connection.feed, why) {
            (Some(feed), why) => {
                self.tell(&format!("{}: viewer {peer} {}", self.stream_of(feed).name(), why.unwrap_or("is gone")));
            }
            (None, Some(why)) => self.tell(&format!("{peer} {why}")),
            (None, None) => {}
        }
    }

    pub(super) fn connection_is_ready(&mut self, slot: usize, event: Ready, now: Instant) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        if event.can_write {
            connection.out.is_blocked = false;
        }
        let mut can_read = event.can_read;
        loop {
            if can_read && !self.read(slot) {
                return self.close(slot, None);
            }
            self.serve(slot, now);
            // What TLS has read already, the system does not tell of again.
            let connection = self.connections.get_mut(slot).and_then(Option::as_mut);
            can_read = connection.is_some_and(|c| c.waits.0 && c.wire.holds_input());
            if !can_read {
                break;
            }
        }
        let connection = self.connections.get_mut(slot).and_then(Option::as_mut);
        let back = connection.and_then(|c| c.tunnel.as_mut()?.back.as_mut());
        if back.is_some_and(|back| back.wire.holds_input()) {
            self.back_is_ready(slot, now);
        }
    }

    /// Something has come on the way back of a tunnel.
    pub(super) fn back_is_ready(&mut self, slot: usize, now: Instant) {
        let mut bytes = [0; 8192];
        loop {
            let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
            let Some(tunnel) = &mut connection.tunnel else { return };
            let Some(back) = tunnel.back.as_mut().filter(|_| connection.input.len() < INPUT_MAX) else { return };
            let is_over = match back.wire.read(&mut bytes) {
                Ok(0) => true,
                Ok(count) => back.decoder.take(&bytes[..count], &mut connection.input).is_err(),
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
        let Some(tunnel) = &mut connection.tunnel else { return };
        if self.poll.add(&back.wire, token(CONNECTION, slot) | 1).is_ok() {
            connection.input.append(&mut back.before);
            tunnel.back = Some(back);
            self.serve(slot, now);
            self.back_is_ready(slot, now);
        }
    }

    /// Reads what a viewer says; false at the end.
    fn read(&mut self, slot: usize) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return true };
        let mut bytes = [0; 8192];
        while connection.input.len() < INPUT_MAX {
            match connection.wire.read(&mut bytes) {
                Ok(0) => return false,
                // What a tunnel's viewer says comes on the other way.
                Ok(_) if connection.tunnel.is_some() => {}
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

    /// Answers what was asked as far as responses have room, and sends.
    pub(super) fn serve(&mut self, slot: usize, now: Instant) {
        while let Some(connection) = self.connections[slot].as_mut().filter(|c| !c.ends && c.out.owed() < OWED_MAX) {
            if connection.is_socket {
                match websocket::take(&connection.input) {
                    Ok(None) => break,
                    Ok(Some(Said::Nothing(length))) => drop(connection.input.drain(..length)),
                    Ok(Some(Said::Answer(length, answer))) => {
                        connection.input.drain(..length);
                        connection.out.say(&answer);
                    }
                    Ok(Some(Said::End(answer))) => {
                        connection.out.flow = Flow::Idle;
                        connection.out.say(&answer);
                        connection.ends = true;
                    }
                    Err(_) => return self.close(slot, None),
                }
                continue;
            }
            match text::take(&connection.input, BOUNDS) {
                Ok(None) if connection.input.len() < INPUT_MAX => break,
                // A frame of data that is larger than any report.
                Ok(None) => return self.close(slot, None),
                Ok(Some((message, length))) => {
                    connection.input.drain(..length);
                    (connection.heard, connection.partial) = (now, None);
                    if !self.answer(slot, message, now) {
                        return;
                    }
                }
                Err(why) => {
                    connection.ends = true;
                    let protocol = if connection.input.first() == Some(&b'R') { "RTSP/1.0" } else { "HTTP/1.1" };
                    let status = if matches!(why, text::Malformed::Head(_)) { 431 } else { 400 };
                    let line = format!("{protocol} {status} {}", text::reason(status));
                    connection.out.say(&text::write(&line, &[("Connection", "close")], &[]));
                }
            }
        }
        if let Some(connection) = self.connections[slot].as_mut() {
            match connection.input.is_empty() {
                true => connection.partial = None,
                false => drop(connection.partial.get_or_insert(now)),
            }
        }
        self.flush(slot, now);
    }

    /// Answers one message; false if the connection is no longer this worker's.
    fn answer(&mut self, slot: usize, message: Message, now: Instant) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        let Message::Request { protocol, method, target, headers, .. } = message else { return true };
        connection.has_asked = true;
        if protocol == Protocol::Http
            && connection.tunnel.is_none()
            && let Some(cookie) = tunnel::cookie(&headers)
        {
            return self.dig(slot, &method, cookie);
        }
        let is_rtsp = protocol == Protocol::Rtsp;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
        let asked = Asked { peer: connection.peer, method: &method, target: &target, now_s };
        let live = self.shared.live();
        let verdict = if connection.is_known || (is_rtsp && matches!(method.as_str(), "OPTIONS" | "TEARDOWN")) {
            Verdict::Known
        } else {
            live.users.judge(headers.get("authorization"), asked)
        };
        if verdict != Verdict::Known {
            connection.wrongs += u32::from(verdict == Verdict::Wrong);
            let challenges = live.users.challenges(asked, verdict, connection.wire.is_secure());
            connection.out.say(&match is_rtsp {
                true => connection.server.unknown(&headers, &challenges),
                false => http::unknown(&challenges),
            });
            connection.ends = !is_rtsp || connection.wrongs >= WRONGS_MAX;
            if verdict == Verdict::Wrong && self.shared.counts.refuse().is_power_of_two() {
                say(&format!("{} has asked with a wrong name or password", connection.peer));
            }
            return true;
        }
        connection.is_known |= is_rtsp && method != "OPTIONS" && method != "TEARDOWN";
        if !is_rtsp {
            match http::answer(&self.shared, &method, &target, &headers) {
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
        let may_send = !connection.wire.is_secure() && connection.tunnel.is_none();
        let ports = shared.ports().filter(|_| may_send);
        let request = Request { method: &method, target: &target, headers: &headers };
        let (response, effect) =
            connection.server.answer(request, &|name| shared.find(name), ports, || shared.session());
        connection.out.say(&response);
        match effect {
            Effect::None => {}
            Effect::End => connection.ends = true,
            Effect::Pause => connection.out.flow = Flow::Idle,
            Effect::Play => return self.play(slot, now),
        }
        true
    }

    /// Lets a viewer play where it is to be played.
    fn play(&mut self, slot: usize, now: Instant) -> bool {
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
            let response = match connection.wants {
                Some(_) if connection.is_socket => Vec::new(),
                Some(_) => http::full(),
                None => connection.server.plain(if is_outdated { 454 } else { 503 }),
            };
            connection.out.say(&response);
            connection.ends = true;
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
                    && let Err(Post::Adopt(connection)) = shared.inboxes[target].post(Post::Adopt(connection))
                {
                    shared.counts.refuse();
                    say(&format!("{} is refused: worker {target} is too far behind", connection.peer));
                }
                return false;
            }
        }
        self.begin(slot, now)
    }

    /// A request of a tunnel: the first way is kept, the second goes to the first.
    fn dig(&mut self, slot: usize, method: &str, cookie: &str) -> bool {
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
                let mut back = Box::new(Back { wire, decoder: Default::default(), before: Vec::new(), counted });
                if back.decoder.take(&input, &mut back.before).is_err() {
                    return false;
                }
                if worker == self.index {
                    self.join(cookie, back, Instant::now());
                } else if self.shared.inboxes[worker].post(Post::Back(cookie.to_owned(), back)).is_err() {
                    say(&format!("{peer} is cut off: worker {worker} is too far behind"));
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
        let session = connection.server.session.as_ref();
        let (stream, local) = (&self.streams[stream], &mut self.feeds[feed]);
        let way = if let Some(session) = session.filter(|_| connection.wants.is_none()) {
            let tracks = connection.server.description().map_or(0, |description| description.tracks.len());
            connection.is_udp = session.ways.iter().flatten().any(|way| matches!(way, Way::Ports(..)));
            connection.out.channels = Channels::of(&session.ways, tracks);
            // A burst of old pictures is what a connection can take; datagrams begin with what comes.
            connection.out.begin(&local.feed, now, !connection.is_udp);
            let from = match connection.out.flow {
                Flow::At(cursor) => Some(cursor),
                _ => None,
            };
            let response = connection.server.playing(&|track| local.feed.first_of(from?, 2 * track as u8));
            connection.out.say(&response);
            let track = session.ways.iter().position(|way| matches!(way, Some(Way::Ports(..))));
            if let Some((track, Some(Way::Ports(_, port)))) = track.map(|track| (track, session.ways[track])) {
                let from = SocketAddr::new(connection.peer, port);
                self.reporters.insert(from, slot);
                connection.paced = Some(Paced { rate: Rate::new(now), track, source: 0, from });
            }
            if connection.is_udp { "RTSP and UDP" } else { "RTSP" }
        } else {
            if local.maker.is_none() {
                local.maker = stream.told().description.as_ref().and_then(|told| Maker::new(form, told, now));
            }
            connection.out.begin(&local.feed, now, true);
            connection.awaits_head = true;
            if !connection.is_socket {
                connection.out.say(&http::stream_head(form));
            }
            if connection.is_socket { "WebSocket" } else { "HTTP" }
        };
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

    /// Sends to the viewers of streams that have news.
    pub(super) fn send(&mut self, now: Instant) {
        for stream in 0..self.feeds.len() {
            if !std::mem::take(&mut self.feeds[stream].has_news) {
                continue;
            }
            let viewers = std::mem::take(&mut self.feeds[stream].viewers);
            for slot in &viewers {
                if self.connections[*slot].as_ref().is_some_and(|c| !c.out.is_blocked || c.out.flow != Flow::Idle) {
                    self.flush(*slot, now);
                }
            }
            let connections = &self.connections;
            let gone = |slot: &usize| connections[*slot].as_ref().is_none_or(|c| c.feed != Some(stream));
            self.feeds[stream].viewers = viewers.into_iter().filter(|slot| !gone(slot)).collect();
        }
    }

    /// Sends what there is for one connection.
    fn flush(&mut self, slot: usize, now: Instant) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        let local = connection.feed.map(|feed| &self.feeds[feed]);
        if let Some(head) = local.filter(|_| connection.awaits_head).and_then(|local| local.maker.as_ref()?.head()) {
            connection.out.say(&head);
            connection.awaits_head = false;
        }
        let feed = local.filter(|_| !connection.awaits_head).map(|local| &local.feed);
        let stream = connection.feed.map(|feed| Form::of(feed).1);
        let mut sent = Sent::default();
        if let Some((feed, stream)) = feed.zip(stream) {
            if connection.out.keep_up(feed, behind_max(self.shared.config.limits.queue_bytes), now) {
                add(&self.streams[stream].counts.viewers_behind, 1);
            }
            if connection.is_udp {
                let before = connection.out.flow;
                sent = send_datagrams(connection, feed, &self.shared.udp, now);
                if let (Flow::At(_), Flow::Waiting(..)) = (before, connection.out.flow) {
                    add(&self.streams[stream].counts.viewers_behind, 1);
                }
            }
        }
        let feed = feed.filter(|_| !connection.is_udp);
        let mut result = Ok(Sent::default());
        if !connection.out.is_blocked {
            result = connection.wire.push().and_then(|pushed| {
                if pushed > 0 {
                    connection.out.moved = now;
                }
                connection.out.send(&mut connection.wire, feed, now)
            });
            connection.out.is_blocked |= connection.wire.owes();
        }
        match result {
            Err(_) => return self.close(slot, None),
            Ok(more) => {
                sent.packets += more.packets;
                sent.bytes += more.bytes;
            }
        }
        if let Some(stream) = stream {
            let counts = &self.streams[stream].counts;
            add(&counts.packets_sent, sent.packets);
            add(&counts.bytes_sent, sent.bytes);
        }
        if connection.ends && connection.out.owed() == 0 && !connection.wire.owes() {
            connection.wire.finish();
            return self.close(slot, None);
        }
        let has_room = connection.out.owed() < OWED_MAX && !connection.ends;
        let waits = (has_room && connection.input.len() < INPUT_MAX, connection.out.is_blocked);
        if waits != connection.waits {
            connection.waits = waits;
            self.poll.wants(&connection.wire, token(CONNECTION, slot), waits.0, waits.1);
            if let Some(back) = connection.tunnel.as_ref().and_then(|tunnel| tunnel.back.as_ref()) {
                self.poll.wants(&back.wire, token(CONNECTION, slot) | 1, waits.0, false);
            }
        }
    }

    /// Ends connections whose time is over, and what nobody views any more.
    pub(super) fn look_over(&mut self, now: Instant) {
        if self.index == 0
            && let Some(came) = self.shared.read_again()
        {
            match came {
                Ok(told) => say(&told),
                Err(why) => say(&format!("nothing is changed: {why}")),
            }
        }
        let lines = std::mem::take(&mut self.lines);
        if lines > LINES_MAX {
            say(&format!("{} more lines about viewers are left out", lines - LINES_MAX));
        }
        for stream in 0..self.streams.len() {
            let generation = self.streams[stream].told().generation;
            self.is_of(stream, generation);
        }
        if std::mem::take(&mut self.is_full) {
            for (number, listener) in self.listeners.iter().enumerate() {
                let _ = self.poll.add(&listener.socket, token(LISTENER, number));
            }
        }
        for local in &mut self.feeds {
            if local.viewers.is_empty() && local.maker.take().is_some() {
                local.feed = Feed::new(self.shared.config.limits.queue_bytes);
            }
        }
        for slot in 0..self.connections.len() {
            let Some(connection) = self.connections[slot].as_ref() else { continue };
            let silent = now.saturating_duration_since(connection.heard);
            let stuck = connection.out.is_blocked && now.saturating_duration_since(connection.out.moved) > STALL;
            let why = match connection.feed {
                _ if stuck => Some("has taken nothing for 30 s and is cut off"),
                _ if connection.partial.is_some_and(|since| now.saturating_duration_since(since) > FIRST) => {
                    Some("has not said to its end what it began 10 s ago, and is cut off")
                }
                Some(_) if connection.awaits_head && now.saturating_duration_since(connection.out.moved) > HEAD => {
                    Some("is cut off: the video tells no parameters, without which it is for RTSP and MPEG-TS only")
                }
                None if !connection.has_asked && silent > FIRST => Some("asked for nothing and is cut off"),
                None if silent > IDLE => Some("has not played for 90 s and is cut off"),
                _ => None,
            };
            if why.is_some() {
                self.close(slot, why);
            }
        }
    }
}
