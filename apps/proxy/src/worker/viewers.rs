//! What a worker does for those who connect: let in, listen, answer, play, send, cut off.

use super::{CONNECTION, LISTENER, Worker, token};
use crate::connection::{Connection, Paced, accepted, send_datagrams};
use crate::feed::Feed;
use crate::http;
use crate::net::{Ready, canonical, is_later};
use crate::session::{Effect, Request, Way};
use crate::shared::Post;
use crate::stream::add;
use crate::text::{self, Bounds, Message, Protocol};
use crate::tfrc::Rate;
use crate::ts::Mux;
use crate::viewer::{Channels, Flow, Sent, behind_max};
use multigrain_console::say;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What a viewer may say at once.
const BOUNDS: Bounds = Bounds { head_bytes: 16 << 10, body_bytes: 4 << 10 };
/// Bytes of a connection that are kept until they are a message.
const INPUT_MAX: usize = BOUNDS.head_bytes + BOUNDS.body_bytes;
/// Responses that wait for room before nothing more is read of a connection.
const OWED_MAX: usize = 64 << 10;
/// How long somebody who connected may take to ask for something.
const FIRST: Duration = Duration::from_secs(10);
/// How long somebody may be connected without playing.
const IDLE: Duration = Duration::from_secs(90);
/// How long a viewer may take nothing.
const STALL: Duration = Duration::from_secs(30);
/// Connections beside those of viewers.
const OTHERS_MAX: usize = 256;

impl Worker {
    pub(super) fn accept(&mut self, listener: usize, now: Instant) {
        loop {
            let Some(waiting) = self.listeners.get(listener) else { return };
            let (socket, peer) = match accepted(waiting) {
                Ok(connected) => connected,
                Err(e) if is_later(&e) || e.kind() == io::ErrorKind::ConnectionAborted => return,
                Err(e) => {
                    // Such as no more files: others are let in when some have gone.
                    say(&format!("cannot let anybody in: {e}; raise the limit on open files (ulimit -n)"));
                    self.is_full = true;
                    return self.listeners.iter().for_each(|listener| self.poll.remove(listener));
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
            let connection = Connection::new(socket, counted, peer, now);
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
        let added = self.poll.add(&connection.socket, token(CONNECTION, slot)).is_ok();
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
                say(&format!("{}: viewer {peer} {}", self.stream_of(feed).name(), why.unwrap_or("is gone")));
            }
            (None, Some(why)) => say(&format!("{peer} {why}")),
            (None, None) => {}
        }
    }

    pub(super) fn connection_is_ready(&mut self, slot: usize, event: Ready, now: Instant) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        if event.can_write {
            connection.out.is_blocked = false;
        }
        if event.can_read && !self.read(slot, now) {
            return self.close(slot, None);
        }
        self.serve(slot, now);
    }

    /// Reads what a viewer says; false at the end.
    fn read(&mut self, slot: usize, now: Instant) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return true };
        let mut bytes = [0; 8192];
        while connection.input.len() < INPUT_MAX {
            match connection.socket.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => {
                    connection.input.extend_from_slice(&bytes[..count]);
                    connection.heard = now;
                    if count < bytes.len() {
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
            match text::take(&connection.input, BOUNDS) {
                Ok(None) if connection.input.len() < INPUT_MAX => break,
                // A frame of data that is larger than any report.
                Ok(None) => return self.close(slot, None),
                Ok(Some((message, length))) => {
                    connection.input.drain(..length);
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
        self.flush(slot, now);
    }

    /// Answers one message; false if the connection is no longer this worker's.
    fn answer(&mut self, slot: usize, message: Message, now: Instant) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        let Message::Request { protocol, method, target, headers, .. } = message else { return true };
        connection.has_asked = true;
        if protocol == Protocol::Http {
            match http::answer(&self.shared, &method, &target) {
                http::Answer::Whole(response) => {
                    connection.out.say(&response);
                    connection.ends = true;
                    return true;
                }
                http::Answer::Stream(stream) => {
                    connection.wants = Some(stream + self.shared.streams.len());
                    return self.play(slot, now);
                }
            }
        }
        let shared = &self.shared;
        let request = Request { method: &method, target: &target, headers: &headers };
        let (response, effect) =
            connection.server.answer(request, &|name| shared.find(name), shared.ports(), || shared.session());
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
        let Some(feed) = connection.wants.or(session.map(|session| session.stream)) else { return true };
        let stream = feed % shared.streams.len();
        let is_outdated = connection.server.is_outdated(shared.streams[stream].told().generation);
        let is_full = connection.feed.is_none()
            && (shared.counts.viewers() >= shared.config.limits.viewers || self.draining.is_some());
        if is_outdated || is_full {
            shared.counts.refuse();
            let response = match connection.wants {
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
                self.poll.remove(&connection.socket);
                if let Some(connection) = self.take(slot) {
                    shared.inboxes[target].post(Post::Adopt(connection));
                }
                return false;
            }
        }
        self.begin(slot, now);
        true
    }

    /// Plays to a viewer from now on, here.
    pub(super) fn begin(&mut self, slot: usize, now: Instant) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        let session = connection.server.session.as_ref();
        let Some(feed) = connection.wants.or(session.map(|session| session.stream)) else { return };
        let stream = &self.shared.streams[feed % self.shared.streams.len()];
        let local = &mut self.feeds[feed];
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
            if local.mux.is_none() {
                local.mux = stream.told().description.as_ref().map(|description| Mux::new(description, now));
            }
            connection.out.begin(&local.feed, now, true);
            connection.out.say(&http::stream_head());
            "HTTP"
        };
        if connection.feed.replace(feed).is_none() {
            local.viewers.push(slot);
            stream.viewers.fetch_add(1, Ordering::Relaxed);
            add(&stream.counts.viewers_served, 1);
            say(&format!("{}: viewer {} plays by {way}", stream.name(), connection.peer));
        }
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
        let feed = connection.feed.map(|feed| &self.feeds[feed].feed);
        let stream = connection.feed.map(|feed| feed % self.shared.streams.len());
        let mut sent = Sent::default();
        if let Some((feed, stream)) = feed.zip(stream) {
            if connection.out.keep_up(feed, behind_max(self.shared.config.limits.queue_bytes), now) {
                add(&self.shared.streams[stream].counts.viewers_behind, 1);
            }
            if connection.is_udp {
                let before = connection.out.flow;
                sent = send_datagrams(connection, feed, &self.shared.udp, now);
                if let (Flow::At(_), Flow::Waiting(..)) = (before, connection.out.flow) {
                    add(&self.shared.streams[stream].counts.viewers_behind, 1);
                }
            }
        }
        let feed = feed.filter(|_| !connection.is_udp);
        let mut result = Ok(Sent::default());
        if !connection.out.is_blocked {
            result = connection.out.send(&mut connection.socket, feed, now);
        }
        match result {
            Err(_) => return self.close(slot, None),
            Ok(more) => {
                sent.packets += more.packets;
                sent.bytes += more.bytes;
            }
        }
        if let Some(stream) = stream {
            let counts = &self.shared.streams[stream].counts;
            add(&counts.packets_sent, sent.packets);
            add(&counts.bytes_sent, sent.bytes);
        }
        if connection.ends && connection.out.owed() == 0 {
            let _ = connection.socket.shutdown(std::net::Shutdown::Write);
            return self.close(slot, None);
        }
        let has_room = connection.out.owed() < OWED_MAX && !connection.ends;
        let waits = (has_room && connection.input.len() < INPUT_MAX, connection.out.is_blocked);
        if waits != connection.waits {
            connection.waits = waits;
            self.poll.wants(&connection.socket, token(CONNECTION, slot), waits.0, waits.1);
        }
    }

    /// Ends connections whose time is over, and what nobody views any more.
    pub(super) fn look_over(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_full) {
            for (number, listener) in self.listeners.iter().enumerate() {
                let _ = self.poll.add(listener, token(LISTENER, number));
            }
        }
        for local in &mut self.feeds {
            if local.viewers.is_empty() && local.mux.take().is_some() {
                local.feed = Feed::new(self.shared.config.limits.queue_bytes);
            }
        }
        for slot in 0..self.connections.len() {
            let Some(connection) = self.connections[slot].as_ref() else { continue };
            let silent = now.saturating_duration_since(connection.heard);
            let stuck = connection.out.is_blocked && now.saturating_duration_since(connection.out.moved) > STALL;
            let why = match connection.feed {
                _ if stuck => Some("has taken nothing for 30 s and is cut off"),
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
