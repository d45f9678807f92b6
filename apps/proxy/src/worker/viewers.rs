//! What a worker does for those who are connected: let in, move, send, cut off.

use super::answers::{INPUT_MAX, OWED_MAX};
use super::{CONNECTED, CONNECTION, LISTENER, SYSTEM, Worker, token};
use crate::connection::{Connection, accepted, send_beside, send_datagrams};
use crate::feed::Feed;
use crate::form::Form;
use crate::net::{canonical, is_later};
use crate::seam;
use crate::shared::Post;
use crate::stream::add;
use crate::viewer::{Flow, Sent, behind_max};
use crate::wire::Wire;
use rustix::io::Errno;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Connections that are let in before others have their turn.
const TURN_ACCEPTS: usize = 64;
/// Connections beside those of viewers.
const OTHERS_MAX: usize = 256;

impl Worker {
    pub(super) fn accept(&mut self, listener: usize, now: Instant) {
        // Who connects again and again takes no more of the others' time than that: the system tells of the rest again.
        for _ in 0..TURN_ACCEPTS {
            let Some(waiting) = self.listeners.get(listener) else { return };
            let is_secure = waiting.is_secure;
            let (socket, peer) = match accepted(&waiting.socket, self.shared.config.limits.queue_bytes) {
                Ok(connected) => connected,
                Err(e) if is_later(&e) || e.kind() == io::ErrorKind::ConnectionAborted => return,
                Err(e) => {
                    // Others are let in when some have gone.
                    self.shared.counts.refuse();
                    let has_no_files = matches!(Errno::from_io_error(&e), Some(Errno::MFILE | Errno::NFILE));
                    let way =
                        if has_no_files { "; raise the limit on open files (ulimit -n)" } else { "; trying again" };
                    self.refusals[SYSTEM].tell(&format!("cannot let anybody in: {e}{way}"));
                    self.is_full = true;
                    return self.listeners.iter().for_each(|listener| self.poll.remove(&listener.socket));
                }
            };
            let limits = &self.shared.config.limits;
            let peer = canonical(peer).ip();
            let (counted, own, all) = self.shared.counts.enter(peer);
            let most = limits.connections_an_address;
            let (viewers, all_max) = (limits.viewers, limits.viewers.saturating_add(OTHERS_MAX));
            let makes_room = own <= most && all > all_max && self.end_one_that_waits();
            if own > most || (all > all_max && !makes_room) {
                self.shared.counts.refuse();
                self.refusals[CONNECTED].tell(&match own > most {
                    true => format!("{peer} is refused: it has {most} connections (--connections-an-address {most})"),
                    false => format!("{peer} is refused: there are {all_max} connections (--viewers {viewers})"),
                });
                continue;
            }
            let wire = match self.shared.live().tls.clone() {
                _ if !is_secure => Wire::from(socket),
                None => continue,
                Some(tls) => match rustls::ServerConnection::new(tls) {
                    Ok(tls) => Wire::secure(socket, tls),
                    Err(_) => continue,
                },
            };
            let mut connection = Box::new(Connection::new(wire, counted, peer, now));
            // A greeting within TLS takes a millisecond of a processor: it is for each worker in its turn.
            let secure = connection.wire.is_secure();
            let turn = if secure { self.greeted.wrapping_add(1) } else { self.index };
            self.greeted = if secure { turn } else { self.greeted };
            let worker = turn % self.shared.inboxes.len();
            connection.counted.waits_on(worker);
            let here = if worker == self.index { Err(connection) } else { self.shared.hand_over(worker, connection) };
            if let Err(mut connection) = here {
                connection.counted.waits_on(self.index);
                let slot = self.keep(connection);
                self.register(slot);
            }
        }
    }

    /// Somebody who does not play makes room, on whichever worker; whether there is one.
    fn end_one_that_waits(&mut self) -> bool {
        match self.shared.counts.first_to_go() {
            None => false,
            Some((worker, number)) if worker == self.index => {
                self.make_room(number);
                true
            }
            Some((worker, number)) => self.shared.inboxes[worker].post(Post::MakeRoom(number)).is_ok(),
        }
    }

    /// The connection of that number makes room, unless it plays by now.
    pub(super) fn make_room(&mut self, number: u64) {
        let has = |one: &Option<Box<Connection>>| {
            one.as_ref().is_some_and(|c| c.counted.number == number && c.feed.is_none())
        };
        if let Some(slot) = self.connections.iter().position(has) {
            self.close(slot, None);
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
    pub(super) fn take(&mut self, slot: usize) -> Option<Box<Connection>> {
        let connection = self.connections.get_mut(slot)?.take()?;
        self.free.push(slot);
        if let Some(paced) = &connection.paced {
            self.forget(paced.from, slot);
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

    /// Looks whether somebody who said who it is may still watch what it watches, by what was read since then; if not, it is sent away.
    pub(super) fn know_again(&mut self, slot: usize) -> bool {
        let Some(connection) = self.connections[slot].as_mut() else { return false };
        let Some(known) = &connection.known else { return true };
        connection.known = self.shared.live().users.again(known);
        let watched = connection.feed.or(connection.wants).map(|feed| Form::of(feed).1);
        let watched = watched.or(connection.server.session.as_ref().map(|session| session.stream));
        let Some(stream) = watched.and_then(|stream| self.streams.get(stream)) else { return true };
        if connection.known.as_ref().is_some_and(|known| known.streams().has(stream.name())) {
            return true;
        }
        self.close(slot, Some("may watch it no more and is sent away"));
        false
    }

    /// Sends to the viewers of streams that have news; whether there were such.
    pub(super) fn send(&mut self, now: Instant) -> bool {
        let mut has_sent = false;
        for stream in 0..self.feeds.len() {
            if !std::mem::take(&mut self.feeds[stream].has_news) {
                continue;
            }
            let viewers = std::mem::take(&mut self.feeds[stream].viewers);
            has_sent |= !viewers.is_empty();
            for slot in &viewers {
                if self.connections[*slot].as_ref().is_some_and(|c| !c.out.is_blocked || c.out.flow != Flow::Idle) {
                    self.flush(*slot, now);
                }
            }
            let connections = &self.connections;
            let gone = |slot: &usize| connections[*slot].as_ref().is_none_or(|c| c.feed != Some(stream));
            self.feeds[stream].viewers = viewers.into_iter().filter(|slot| !gone(slot)).collect();
        }
        has_sent
    }

    /// Sends what there is for one connection.
    pub(super) fn flush(&mut self, slot: usize, now: Instant) {
        let Some(connection) = self.connections[slot].as_mut() else { return };
        let local = connection.feed.map(|feed| &self.feeds[feed]);
        if let Some(head) = local.filter(|_| connection.awaits_head).and_then(|local| local.maker.as_ref()?.head()) {
            connection.out.say(&head);
            connection.awaits_head = false;
        }
        let feed = local.filter(|_| !connection.awaits_head).map(|local| &local.feed);
        let stream = connection.feed.map(|feed| Form::of(feed).1);
        let (mut sent, mut is_silent) = (Sent::default(), false);
        if let Some((feed, stream)) = feed.zip(stream) {
            // What reports there are before the next key goes out before the viewer goes on there.
            if connection.is_udp && matches!(connection.out.flow, Flow::Waiting(..)) {
                sent = send_datagrams(connection, feed, &self.shared.udp, now);
            }
            if connection.out.keep_up(feed, behind_max(self.shared.config.limits.queue_bytes), now) {
                add(&self.streams[stream].counts.viewers_behind, 1);
            }
            if let (Flow::At(place), None) = (connection.out.flow, connection.out.shift) {
                let maker = local.and_then(|local| local.maker.as_ref());
                connection.out.shift = maker.and_then(|maker| maker.begin(feed.at(place)?.1));
            }
            if let Flow::At(place) = connection.out.flow
                && connection.out.is_behind_gap
                && !connection.out.is_blocked
            {
                connection.out.is_behind_gap = false;
                let told = self.streams[stream].told().description.clone();
                let lead = told.and_then(|told| Some(told.tracks[told.lead()?].codec));
                let maker = local.and_then(|local| local.maker.as_ref());
                let seam = match maker {
                    Some(maker) => maker.seam(feed, place),
                    None => lead.and_then(|codec| seam::packet(feed, place, codec)),
                };
                match seam {
                    Some(seam) if connection.is_udp => send_beside(connection, &seam, &self.shared.udp, now),
                    Some(seam) => connection.out.join(seam),
                    None => {}
                }
            }
            if connection.is_udp {
                let before = connection.out.flow;
                let more = send_datagrams(connection, feed, &self.shared.udp, now);
                (sent.packets, sent.bytes) = (sent.packets + more.packets, sent.bytes + more.bytes);
                if let (Flow::At(_), Flow::Waiting(..)) = (before, connection.out.flow) {
                    add(&self.streams[stream].counts.viewers_behind, 1);
                }
                is_silent = connection.paced.as_mut().is_some_and(|paced| paced.rate.falls_silent());
            }
        }
        let silent = connection.peer;
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
        if let Some(stream) = stream.filter(|_| is_silent) {
            let name = self.streams[stream].name().to_owned();
            self.tell(&format!("{name}: viewer {silent} takes datagrams and does not report what arrives: it gets less and less; let it ask \
                 within the connection"));
        }
        let Some(connection) = self.connections[slot].as_mut() else { return };
        if connection.ends && connection.out.is_done() && !connection.wire.owes() {
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
        if self.index == 0 {
            self.shared.read_again();
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
            let why = connection.overdue(now);
            if why.is_some() {
                self.close(slot, why);
            }
        }
    }
}
