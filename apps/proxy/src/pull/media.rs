//! What comes of a source: datagrams received, put in order, translated into the batch under way, and the batch handed on.

use super::{GATHER_BYTES, Phase, Place, Pull, ROUND_CALLS};
use crate::feed::Batch;
use crate::net::is_later;
use crate::passage::{Passage, Passed};
use crate::receive::{Expected, Receiver};
use crate::reorder::Verdict;
use crate::rtp;
use crate::stream::add;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Pull {
    /// The packets that came since the last time, with their number; nothing while more are gathered. Sending takes so long of late.
    pub fn take_batch(&mut self, sending: Duration, now: Instant) -> Option<(u64, Arc<Batch>)> {
        self.sending = sending;
        let is_due = self.gathering.due(sending, self.limits.gather).is_some_and(|due| now >= due);
        if self.batch.entries.is_empty() || !(is_due || self.batch.bytes.len() > GATHER_BYTES) {
            return None;
        }
        self.gathering.sent();
        let room = (self.batch.bytes.len(), self.batch.entries.len());
        // The next will be of that size, more or less.
        let next = Batch { bytes: Vec::with_capacity(room.0), entries: Vec::with_capacity(room.1) };
        let mut batch = std::mem::replace(&mut self.batch, next);
        batch.fit();
        self.number += 1;
        Some((self.number - 1, Arc::new(batch)))
    }

    pub(super) fn read_datagrams(&mut self, track: usize, is_reports: bool, receiver: &mut Receiver, now: Instant) {
        for _ in 0..ROUND_CALLS {
            let Phase::Talking(talk) = &mut self.phase else { break };
            let Some((first, second)) = talk.datagrams.get(&track) else { break };
            let socket = if is_reports { second } else { first };
            let mut usual = Expected::default();
            let expected = self.tracks.get_mut(track).filter(|_| !is_reports).map(|incoming| &mut incoming.expected);
            let start = self.batch.bytes.len();
            let result = receiver.receive(socket, expected.unwrap_or(&mut usual), &mut self.batch.bytes);
            let (end, mut used) = (self.batch.bytes.len(), start);
            for came in &receiver.came {
                let Phase::Talking(talk) = &mut self.phase else { break };
                // Who else sends here is no source.
                let from = came.from.ip().to_canonical();
                if !talk.is_playing {
                    continue;
                }
                if !talk.peers.contains(&from) {
                    talk.stranger = Some(from);
                    add(&self.stream.counts.packets_malformed, 1);
                    continue;
                }
                if is_reports {
                    let packet = self.batch.bytes[came.range.clone()].to_vec();
                    self.reports(track, &packet, now);
                } else if self.receive(track, came.range.clone(), came.from, now) {
                    // One that was longer than expected lies behind those that came after it.
                    used = used.max(came.range.end);
                }
            }
            // What nobody needs is given back, unless something lies behind it.
            if self.batch.bytes.len() == end {
                self.batch.bytes.truncate(used);
            }
            match result {
                Ok(true) => {}
                // What an earlier datagram of ours met; there may be others.
                Err(e) if !is_later(&e) => {}
                _ => break,
            }
        }
    }

    /// A packet that may be out of order; whether it stays where it lies.
    pub(super) fn receive(&mut self, track: usize, range: Range<usize>, from: SocketAddr, now: Instant) -> bool {
        let packet = &self.batch.bytes[range.clone()];
        let Some((header, _)) = rtp::parse(packet) else {
            add(&self.stream.counts.packets_malformed, 1);
            return false;
        };
        if !self.is_own(track, &header, from, now) {
            return false;
        }
        let (packet, incoming) = (&self.batch.bytes[range.clone()], &mut self.tracks[track]);
        let verdict = incoming.reorder.judge(header.sequence);
        let mut stays = false;
        match verdict {
            Verdict::Pass => stays = self.pass(track, Place::In(range), now),
            Verdict::Keep => incoming.reorder.keep(header.sequence, packet.to_vec(), now),
            Verdict::Drop => add(&self.stream.counts.packets_late, 1),
        }
        self.release_track(track, now);
        stays
    }

    /// Whether a packet that comes from there is one of the track's; another sender begins anew.
    pub(super) fn is_own(&mut self, track: usize, header: &rtp::Header, from: SocketAddr, now: Instant) -> bool {
        let Some(incoming) = self.tracks.get_mut(track) else { return false };
        if header.payload_type != incoming.payload_type || !incoming.origin.is(from, header.source, now) {
            add(&self.stream.counts.packets_malformed, 1);
            return false;
        }
        if incoming.source.replace(header.source).is_some_and(|before| before != header.source) {
            incoming.reorder.restart();
        }
        true
    }

    pub(super) fn release(&mut self, now: Instant) {
        (0..self.tracks.len()).for_each(|track| self.release_track(track, now));
    }

    pub(super) fn release_track(&mut self, track: usize, now: Instant) {
        loop {
            let Some(incoming) = self.tracks.get_mut(track) else { return };
            let released = incoming.reorder.release(now);
            let lost = std::mem::take(&mut incoming.reorder.lost);
            if lost > 0 {
                add(&self.stream.counts.packets_lost, lost);
            }
            match released {
                Some(packet) => drop(self.pass(track, Place::Out(&packet), now)),
                None => return,
            }
        }
    }

    /// A packet in its turn goes into the batch; whether it did.
    pub(super) fn pass(&mut self, track: usize, place: Place<'_>, now: Instant) -> bool {
        let counts = &self.stream.counts;
        let packet = match &place {
            Place::In(range) => &self.batch.bytes[range.clone()],
            Place::Out(packet) => *packet,
        };
        let Some(incoming) = self.tracks.get_mut(track) else { return false };
        let Some((header, payload)) = rtp::parse(packet).filter(|_| packet.len() <= usize::from(u16::MAX)) else {
            add(&counts.packets_malformed, 1);
            return false;
        };
        add(&counts.packets_received, 1);
        add(&counts.bytes_received, packet.len() as u64);
        if !self.stream.is_flowing.load(Ordering::Relaxed) {
            self.stream.is_flowing.store(true, Ordering::Relaxed);
            self.stream.told().trouble = None;
            if let Phase::Talking(talk) = &mut self.phase
                && let Some(playing) = talk.says_at_once(&mut self.told, self.rest)
            {
                crate::lines::say(&format!("{}: {playing}", self.stream.name()));
            }
        }
        // An encoder that hangs may go on to send reports, and sound.
        if let Phase::Talking(talk) = &mut self.phase
            && self.lead.is_none_or(|lead| lead == track)
        {
            talk.heard = now;
        }
        incoming.report.received(&header);
        let has_keys = incoming.passage.is_some();
        if incoming.continuity.begins(&header) {
            incoming.passage.as_mut().map(Passage::restart);
        }
        let passed = incoming.passage.as_mut().map_or(Passed::AS_IT_IS, |passage| passage.take(&header, payload));
        if !passed.goes {
            incoming.continuity.leave_out();
            add(&counts.packets_left_out, 1);
            return false;
        }
        let is_new = incoming.timestamp.replace(header.timestamp) != Some(header.timestamp);
        let (is_key, is_start) = match self.lead {
            Some(lead) if lead != track => (false, false),
            None => (true, true),
            // The first packet of a picture at which decoding can begin.
            Some(_) => {
                let begins = if has_keys { rtp::is_key(incoming.codec, payload) && passed.is_whole } else { is_new };
                let is_key = begins && incoming.key_timestamp != Some(header.timestamp);
                if is_key {
                    incoming.key_timestamp = Some(header.timestamp);
                }
                (is_key, is_new)
            }
        };
        self.gathering.came(header.marker || self.lead.is_none(), now);
        let (sequence, timestamp, source) = incoming.continuity.translate(&header, now);
        let channel = 2 * track as u8;
        let bytes = match place {
            Place::In(range) => self.batch.enframe(channel, range, is_key, is_start),
            Place::Out(packet) => self.batch.frame(channel, packet, is_key, is_start),
        };
        rtp::rewrite(bytes, sequence, timestamp, source);
        if passed.is_spare && self.lead == Some(track) {
            self.batch.is_spare(channel);
        }
        true
    }

    /// Reports of the sender go to viewers with the numbers that they see.
    pub(super) fn reports(&mut self, track: usize, packet: &[u8], now: Instant) {
        let Some(incoming) = self.tracks.get_mut(track) else { return };
        let mut changed = packet.to_vec();
        if packet.len() > usize::from(u16::MAX) || !incoming.continuity.translate_reports(&mut changed) {
            return;
        }
        if let Some(&[a, b, c, d]) = packet.get(10..14).filter(|_| packet[1] == 200) {
            incoming.report.sender = Some((u32::from_be_bytes([a, b, c, d]), now));
        }
        self.gathering.came_beside(now);
        self.batch.frame(2 * track as u8 + 1, &changed, false, false);
    }
}
