//! Fragmented MP4 (ISO/IEC 14496-12): what browsers play, over HTTP or, a piece a message, over WebSocket.
//!
//! A fragment is one picture, or one frame of sound, so nothing waits for others. What decoders have to know comes first, apart from
//! the log, since every viewer needs it. Where a key has other parameters there is another head, and the log begins anew
//! ([`Mux::anew`]): players read a file's first description only. There is one video track and one of audio at most, as browsers have it. The crate `mp4-atom` writes the boxes.

use crate::clock::{Beside, Clock, DecodeOrder};
use crate::feed::{Batch, FRAME};
use crate::instants::Instants;
use crate::picture::{self, Facts};
use crate::rtp::Codec;
use crate::sdp::Description;
use crate::units::{Assembly, SET_BYTES_MAX, Unit};
use crate::websocket;
use mp4_atom::{
    Audio, Avc1, Avcc, AvccExt, Dinf, Dops, Dref, DrefEntry, Encode, Esds, FourCC, Ftyp, Hdlr, Hvc1, HvcCArray, Hvcc,
    Mdhd, Mdia, Mfhd, Minf, Moof, Moov, Mp4a, Mvex, Mvhd, Opus, Smhd, Stbl, Stco, Stsd, Stsz, StszSamples, Tfdt, Tfhd,
    Tkhd, Traf, Trak, Trex, Trun, TrunEntry, TrunSamples, Url, Visual, Vmhd,
};
use std::time::Instant;

/// A picture that others do not need, and one that they do (ISO/IEC 14496-12, section 8.8.3.1).
const KEY: u32 = 0x0200_0000;
const OTHER: u32 = 0x0101_0000;

/// Parameter sets at most, of each kind: what a box has room for.
const SETS_MAX: usize = 16;

/// Where in a fragment the number of its track and its time stand: the boxes before them have one length.
const TRACK: usize = 44;
/// Where the time stands.
pub const TIME: usize = 60;
/// Bytes of the time.
pub const TIME_BYTES: usize = 8;

/// Tracks of a stream at most.
pub const PARTS: usize = 2;

/// The track of a fragment, and when it is decoded, in ticks of the track.
pub fn time(fragment: &[u8]) -> Option<(usize, u64)> {
    let id = u32::from_be_bytes(fragment.get(TRACK..TRACK + 4)?.try_into().ok()?);
    let time = u64::from_be_bytes(fragment.get(TIME..TIME + TIME_BYTES)?.try_into().ok()?);
    Some((usize::try_from(id).ok()?.checked_sub(1).filter(|track| *track < PARTS)?, time))
}

struct Part {
    /// The number of the track at the source, and here.
    track: usize,
    id: u32,
    codec: Codec,
    assembly: Assembly,
    clock: Clock,
    order: DecodeOrder,
    /// Parameter sets in force: of H.265's videos, sequences, pictures; of H.264 the last two.
    sets: [Vec<Vec<u8>>; 3],
    facts: Facts,
    channels: u8,
    config: Vec<u8>,
    /// The time of decoding before, and how long that unit lasts.
    last: Option<u64>,
    lasts: u32,
}

/// Fragments that are being made.
pub struct Mux {
    parts: Vec<Part>,
    is_socket: bool,
    sequence: u32,
    /// What decoders have to know first, once it is known.
    head: Option<Vec<u8>>,
    /// From which piece of those that were made last on the head is another one.
    pub anew: Option<usize>,
    units: Vec<Unit>,
}

impl Mux {
    /// Of the first video and the first audio that it can hold; for WebSocket each piece is a message.
    pub fn new(description: &Description, now: Instant, is_socket: bool) -> Mux {
        let mut parts: Vec<Part> = Vec::new();
        for (track, told) in description.tracks.iter().enumerate() {
            let is_new = !parts.iter().any(|part| part.codec.is_video() == told.codec.is_video());
            let Some(assembly) = Assembly::new(told).filter(|_| is_new) else { continue };
            parts.push(Part {
                track,
                id: parts.len() as u32 + 1,
                codec: told.codec,
                clock: Clock::new(told.clock_rate, now),
                order: DecodeOrder::new(told.clock_rate),
                sets: Default::default(),
                facts: Facts::default(),
                channels: assembly.channels().unwrap_or_else(|| told.channels()),
                config: assembly.config().to_vec(),
                assembly,
                last: None,
                lasts: told.clock_rate / if told.codec.is_video() { 25 } else { 50 },
            });
        }
        let mut mux = Mux { parts, is_socket, sequence: 0, head: None, anew: None, units: Vec::new() };
        for number in 0..mux.parts.len() {
            let sets = mux.parts[number].assembly.parameters().to_vec();
            mux.parts[number].take_sets(sets.iter().map(Vec::as_slice));
        }
        mux.head = mux.written_head();
        mux
    }

    /// What a viewer gets before anything else; nothing while it is not known.
    pub fn head(&self) -> Option<Vec<u8>> {
        let head = self.head.as_ref()?;
        if !self.is_socket {
            return Some(head.clone());
        }
        let mut bytes = websocket::text(&format!("video/mp4; codecs=\"{}\"", self.codecs()));
        let start = bytes.len();
        bytes.extend(head);
        websocket::enclose(&mut bytes, start);
        Some(bytes)
    }

    /// When each track is to begin for a viewer whose first fragment is that: VLC plays nothing that begins later than at 0. Within WebSocket
    /// pages see to that.
    pub fn begin(&self, fragment: &[u8]) -> Option<[u64; PARTS]> {
        let (track, time) = time(fragment).filter(|_| !self.is_socket)?;
        let rate = |track: usize| self.parts.get(track).map_or(1, |part| u128::from(part.clock.rate));
        Some(std::array::from_fn(|other| (u128::from(time) * rate(other) / rate(track)) as u64))
    }

    /// What the tracks are called in the type of the medium (RFC 6381).
    fn codecs(&self) -> String {
        let names: Vec<String> = self.parts.iter().map(Part::name).collect();
        names.join(",")
    }

    /// Takes packets as they came, of a sender that has told this; gives what is complete by now.
    pub fn take(&mut self, batch: &Batch, instants: &Instants, now: Instant) -> Batch {
        let mut out = Batch::default();
        for entry in batch.entries.iter().filter(|entry| entry.channel % 2 == 0) {
            let track = usize::from(entry.channel / 2);
            let Some(number) = self.parts.iter().position(|part| part.track == track) else { continue };
            let mut units = std::mem::take(&mut self.units);
            self.parts[number].assembly.take(&batch.bytes[entry.range()][FRAME..], &mut units);
            for unit in units.drain(..) {
                self.write(number, &unit, instants, now, &mut out);
            }
            self.units = units;
        }
        out
    }

    fn write(&mut self, number: usize, unit: &Unit, instants: &Instants, now: Instant, out: &mut Batch) {
        let start = out.bytes.len();
        let has_video = self.parts.iter().any(|part| part.codec.is_video());
        let part = &mut self.parts[number];
        let is_key = unit.is_key && (part.codec.is_video() || !has_video);
        let codec = part.codec;
        let sets = unit.pieces().filter(|piece| codec.is_parameter(piece));
        if codec.is_video() && unit.is_key && part.take_sets(sets) {
            let head = self.written_head();
            if std::mem::replace(&mut self.head, head).is_some() {
                self.anew = Some(out.entries.len());
            }
        }
        if self.head.is_none() {
            return out.bytes.truncate(start);
        }
        let lead = self.parts.iter().find(|part| part.codec.is_video()).unwrap_or(&self.parts[0]);
        let other = Beside::of(instants, self.parts[number].track, (lead.track, &lead.clock));
        let part = &mut self.parts[number];
        let Some(shown) = part.clock.time(unit.timestamp, now, other) else { return out.bytes.truncate(start) };
        let decoded = if part.codec.is_video() { part.order.time(shown) } else { shown };
        if part.last.is_some_and(|last| decoded <= last && last - decoded < u64::from(part.clock.rate)) {
            // Where reports move sound back, what would be heard twice is left out.
            return out.bytes.truncate(start);
        }
        if let Some(step) = part.last.replace(decoded).and_then(|last| decoded.checked_sub(last)) {
            part.lasts =
                u32::try_from(step).ok().filter(|step| *step > 0 && *step < 10 * part.clock.rate).unwrap_or(part.lasts);
        }
        let mut data = Vec::with_capacity(unit.bytes.len());
        match part.codec {
            Codec::H264 | Codec::H265 => {
                // Parameters of keys are in the head; what comes between is for those who know the head already.
                for piece in unit.pieces().filter(|piece| !(unit.is_key && part.codec.is_parameter(piece))) {
                    data.extend((piece.len() as u32).to_be_bytes());
                    data.extend_from_slice(piece);
                }
            }
            // Behind the header that transport streams need.
            Codec::Aac => data.extend_from_slice(unit.bytes.get(7..).unwrap_or_default()),
            _ => data.extend_from_slice(&unit.bytes),
        }
        if data.is_empty() {
            return out.bytes.truncate(start);
        }
        self.sequence = self.sequence.wrapping_add(1);
        let entry = TrunEntry {
            duration: Some(part.lasts),
            size: Some(data.len() as u32),
            flags: Some(if unit.is_key { KEY } else { OTHER }),
            cts: Some((shown as i64).saturating_sub(decoded as i64).clamp(i32::MIN.into(), i32::MAX.into())),
        };
        let mut fragment = Moof {
            mfhd: Mfhd { sequence_number: self.sequence },
            traf: vec![Traf {
                tfhd: Tfhd { track_id: part.id, default_base_is_moof: true, ..Tfhd::default() },
                tfdt: Some(Tfdt { base_media_decode_time: decoded }),
                trun: vec![Trun { data_offset: Some(0), samples: TrunSamples::Explicit(vec![entry]) }],
                ..Traf::default()
            }],
        };
        // Where the data lies is known when it is known how long the boxes before are, whatever the number says.
        let Some(before) = boxed(&fragment) else { return out.bytes.truncate(start) };
        fragment.traf[0].trun[0].data_offset = Some(before.len() as i32 + 8);
        out.bytes.extend(boxed(&fragment).unwrap_or(before));
        out.bytes.extend((data.len() as u32 + 8).to_be_bytes());
        out.bytes.extend(b"mdat");
        out.bytes.extend(data);
        if self.is_socket {
            websocket::enclose(&mut out.bytes, start);
        }
        out.piece(is_key, unit.is_leading);
    }

    fn written_head(&self) -> Option<Vec<u8>> {
        let tracks =
            self.parts.iter().map(Part::described).collect::<Option<Vec<Trak>>>().filter(|all| !all.is_empty())?;
        let brands = [b"iso5", b"iso6", b"mp41"].map(FourCC::new);
        let mut bytes =
            boxed(&Ftyp { major_brand: brands[0], minor_version: 512, compatible_brands: brands.to_vec() })?;
        let extend = |part: &Part| Trex { track_id: part.id, default_sample_description_index: 1, ..Trex::default() };
        bytes.extend(boxed(&Moov {
            mvhd: Mvhd {
                creation_time: 0,
                modification_time: 0,
                timescale: 1000,
                duration: 0,
                rate: 1.into(),
                volume: 1.into(),
                matrix: Default::default(),
                next_track_id: tracks.len() as u32 + 1,
            },
            mvex: Some(Mvex { mehd: None, trex: self.parts.iter().map(extend).collect() }),
            trak: tracks,
            ..Moov::default()
        })?);
        Some(bytes)
    }
}

/// A box in bytes; nothing where something has no room in it, which only a source that lies has to say.
fn boxed(atom: &impl Encode) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    atom.encode(&mut bytes).ok()?;
    Some(bytes)
}

impl Part {
    /// Takes parameter sets; whether these are others than before.
    fn take_sets<'a>(&mut self, sets: impl Iterator<Item = &'a [u8]>) -> bool {
        let mut found: [Vec<Vec<u8>>; 3] = Default::default();
        for set in sets.filter(|set| set.len() <= SET_BYTES_MAX) {
            let kind = match (self.codec, set.first()) {
                (Codec::H264, Some(first)) => usize::from(first & 0x1f).checked_sub(6),
                (_, Some(first)) => usize::from(first >> 1 & 0x3f).checked_sub(32),
                _ => None,
            };
            let kind = kind.and_then(|kind| found.get_mut(kind)).filter(|kind| kind.len() < SETS_MAX);
            // Some senders say everything twice.
            if let Some(kind) = kind.filter(|kind| !kind.iter().any(|known| known == set)) {
                kind.push(set.to_vec());
            }
        }
        let read = if self.codec == Codec::H264 { picture::h264 } else { picture::h265 };
        let Some(facts) = found[1].first().and_then(|set| read(set)) else { return false };
        let is_whole = !found[2].is_empty() && (self.codec == Codec::H264 || !found[0].is_empty());
        if !is_whole {
            return false;
        }
        if found[..2] == self.sets[..2] {
            // Who tells those of a picture only which that needs has not taken back the others.
            let id = |set: &Vec<u8>| picture::parameters_id(self.codec, set);
            let others = self.sets[2].iter().filter(|set| !found[2].iter().any(|new| id(new) == id(set)));
            let all: Vec<Vec<u8>> = others.chain(&found[2]).cloned().collect();
            if found[2].iter().all(|set| self.sets[2].contains(set)) {
                return false;
            }
            if all.len() <= SETS_MAX {
                found[2] = all;
            }
        }
        self.order.deepen(facts.depth.unwrap_or(0));
        (self.sets, self.facts) = (found, facts);
        true
    }

    fn name(&self) -> String {
        let profile = &self.facts.profile;
        match self.codec {
            Codec::H264 => {
                let set = self.sets[1].first().and_then(|set| set.get(1..4)).unwrap_or(&[66, 0, 30]);
                format!("avc1.{:02x}{:02x}{:02x}", set[0], set[1], set[2])
            }
            // ISO/IEC 14496-15, annex E.3.
            Codec::H265 => {
                let space = ["", "A", "B", "C"][usize::from(profile[0] >> 6)];
                let fits = u32::from_be_bytes([profile[1], profile[2], profile[3], profile[4]]).reverse_bits();
                let tier = if profile[0] & 0x20 == 0 { 'L' } else { 'H' };
                let end = profile[5..11].iter().rposition(|byte| *byte != 0).map_or(5, |at| at + 6);
                let rest: String = profile[5..end].iter().map(|byte| format!(".{byte:X}")).collect();
                format!("hvc1.{space}{}.{fits:X}.{tier}{}{rest}", profile[0] & 0x1f, profile[11])
            }
            Codec::Aac => format!("mp4a.40.{}", self.config.first().map_or(2, |first| first >> 3)),
            _ => "opus".to_owned(),
        }
    }

    /// What decoders have to know; nothing while parameters are missing.
    fn described(&self) -> Option<Trak> {
        let Facts { width, height, .. } = self.facts;
        let visual = Visual { width, height, ..Visual::default() };
        let audio = |rate: u32| Audio {
            data_reference_index: 1,
            channel_count: u16::from(self.channels),
            sample_size: 16,
            sample_rate: u16::try_from(rate).unwrap_or(0).into(),
        };
        let [videos, sequences, pictures] = &self.sets;
        let entry = match self.codec {
            Codec::H264 => {
                let first = sequences.first()?;
                // Profiles that may have other colours tell which (ISO/IEC 14496-15, section 5.3.3.1.2).
                let (chroma_format, luma, chroma) = self.facts.format;
                let ext = (!matches!(first.get(1)?, 66 | 77 | 88)).then(|| AvccExt {
                    chroma_format,
                    bit_depth_luma: 8 + luma,
                    bit_depth_chroma: 8 + chroma,
                    sequence_parameter_sets_ext: Vec::new(),
                });
                mp4_atom::Codec::Avc1(Avc1 {
                    visual,
                    avcc: Avcc {
                        configuration_version: 1,
                        avc_profile_indication: *first.get(1)?,
                        profile_compatibility: *first.get(2)?,
                        avc_level_indication: *first.get(3)?,
                        length_size: 4,
                        sequence_parameter_sets: sequences.clone(),
                        picture_parameter_sets: pictures.clone(),
                        ext,
                    },
                    ..Avc1::default()
                })
            }
            Codec::H265 => {
                sequences.first()?;
                let profile = &self.facts.profile;
                let (chroma_format_idc, bit_depth_luma_minus8, bit_depth_chroma_minus8) = self.facts.format;
                let array = |nal_unit_type, sets: &Vec<Vec<u8>>| HvcCArray {
                    completeness: true,
                    nal_unit_type,
                    nalus: sets.clone(),
                };
                mp4_atom::Codec::Hvc1(Hvc1 {
                    visual,
                    hvcc: Hvcc {
                        general_profile_space: profile[0] >> 6,
                        general_tier_flag: profile[0] & 0x20 != 0,
                        general_profile_idc: profile[0] & 0x1f,
                        general_profile_compatibility_flags: profile[1..5].try_into().ok()?,
                        general_constraint_indicator_flags: profile[5..11].try_into().ok()?,
                        general_level_idc: profile[11],
                        chroma_format_idc,
                        bit_depth_luma_minus8,
                        bit_depth_chroma_minus8,
                        num_temporal_layers: 1,
                        temporal_id_nested: true,
                        length_size_minus_one: 3,
                        arrays: vec![array(32, videos), array(33, sequences), array(34, pictures)],
                        ..Hvcc::new()
                    },
                    ..Hvc1::default()
                })
            }
            Codec::Aac => {
                let mut esds = Esds::default();
                let config = &mut esds.es_desc.dec_config;
                (config.object_type_indication, config.stream_type) = (0x40, 5);
                config.dec_specific =
                    Some(mp4_atom::esds::DecoderSpecific { raw: self.config.clone(), ..Default::default() });
                mp4_atom::Codec::Mp4a(Mp4a { audio: audio(self.clock.rate), esds, btrt: None, taic: None })
            }
            _ => {
                let dops = Dops {
                    output_channel_count: self.channels.min(2),
                    pre_skip: 0,
                    input_sample_rate: 48_000,
                    output_gain: 0,
                    channel_mapping: None,
                };
                mp4_atom::Codec::Opus(Opus { audio: audio(48_000), dops, btrt: None })
            }
        };
        let is_video = self.codec.is_video();
        let (kind, name) = if is_video { (b"vide", "video") } else { (b"soun", "audio") };
        Some(Trak {
            tkhd: Tkhd {
                track_id: self.id,
                enabled: true,
                in_movie: true,
                volume: u8::from(!is_video).into(),
                width: width.into(),
                height: height.into(),
                ..Tkhd::default()
            },
            mdia: Mdia {
                mdhd: Mdhd { timescale: self.clock.rate, language: "und".into(), ..Mdhd::default() },
                hdlr: Hdlr { handler: FourCC::new(kind), name: name.into() },
                minf: Minf {
                    vmhd: is_video.then(Vmhd::default),
                    smhd: (!is_video).then(Smhd::default),
                    dinf: Dinf { dref: Dref { entries: vec![DrefEntry::Url(Url::default())] } },
                    stbl: Stbl {
                        stsd: Stsd { codecs: vec![entry] },
                        // There are none, but the box is asked for (ISO/IEC 14496-12, section 8.7.5), and VLC insists.
                        stco: Some(Stco::default()),
                        stsz: Stsz { samples: StszSamples::Different { sizes: Vec::new() } },
                        ..Stbl::default()
                    },
                    ..Minf::default()
                },
            },
            ..Trak::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    /// Kinds of the boxes that follow each other in a stream; nothing where they do not end with it.
    fn kinds(mut bytes: &[u8]) -> Option<Vec<[u8; 4]>> {
        let mut found = Vec::new();
        while let Some((head, _)) = bytes.split_first_chunk::<8>() {
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            found.push([head[4], head[5], head[6], head[7]]);
            bytes = bytes.get(length..).filter(|_| length >= 8)?;
        }
        bytes.is_empty().then_some(found)
    }

    fn sets() -> [Vec<u8>; 5] {
        [
            "Z2QAH6zZQFAFuwEQAAADABAAAAMDIPGDGWA=",
            "aOvjyyLA",
            "QAEMAf//BAgAAAMAnggAAAMAADyVmAk=",
            "QgEBBAgAAAMAnggAAAMAADyQAUEB4ssrNJJleAtwICAAQAAAAwBAAAAGQg==",
            "RAHBcoYMRiQ=",
        ]
        .map(|text| STANDARD.decode(text).unwrap())
    }

    #[test]
    fn tracks_are_called_what_browsers_know() {
        let [_, _, videos, sequences, pictures] = sets().map(|set| STANDARD.encode(set));
        let text = format!(
            "m=video 0 RTP/AVP 96\na=rtpmap:96 H265/90000\na=fmtp:96 sprop-vps={videos}; sprop-sps={sequences}; sprop-pps={pictures}\n\
             m=audio 0 RTP/AVP 97\na=rtpmap:97 mpeg4-generic/48000/2\n\
             a=fmtp:97 sizelength=13; indexlength=3; indexdeltalength=3; config=1190\n\
             m=audio 0 RTP/AVP 98\na=rtpmap:98 opus/48000/2\n"
        );
        let mux = Mux::new(&Description::parse(text.as_bytes()).unwrap(), Instant::now(), false);
        // As ffmpeg calls the same video: Rext, level 2.
        assert_eq!(mux.codecs(), "hvc1.4.10.L60.9E.8,mp4a.40.2");
        assert_eq!(kinds(&mux.head().unwrap()), Some(vec![*b"ftyp", *b"moov"]));
        // What leads a key is marked, so that who begins there does not get it.
        let (mut mux, mut batch) = (mux, Batch::default());
        for (number, kind) in [21_u8, 8, 6, 1].into_iter().enumerate() {
            let head = [0x80, 0x80 | 96, 0, number as u8, 0, 0, number as u8, 0, 0, 0, 0, 1];
            batch.frame(0, &[&head[..], &[kind << 1, 1, 0x80, 7]].concat(), number == 0, true);
        }
        let out = mux.take(&batch, &Instants::default(), Instant::now());
        let marks: Vec<_> = out.entries.iter().map(|entry| (entry.is_key, entry.is_leading)).collect();
        assert_eq!(marks, [(true, false), (false, true), (false, false), (false, false)]);
        let text = "m=audio 0 RTP/AVP 98\na=rtpmap:98 opus/48000/2\n";
        let mut mux = Mux::new(&Description::parse(text.as_bytes()).unwrap(), Instant::now(), false);
        assert_eq!((mux.codecs(), mux.head().is_some()), ("opus".to_owned(), true));
        let mut batch = Batch::default();
        batch.frame(0, &[0x80, 98, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 7, 8, 9], true, true);
        let out = mux.take(&batch, &Instants::default(), Instant::now());
        assert!(out.entries[0].is_key && kinds(&out.bytes) == Some(vec![*b"moof", *b"mdat"]));
        assert_eq!((&out.bytes[TRACK - 8..TRACK - 4], &out.bytes[TIME - 8..TIME - 4]), (&b"tfhd"[..], &b"tfdt"[..]));
        let (track, began) = time(&out.bytes).unwrap();
        assert_eq!((track, mux.begin(&out.bytes)), (0, Some([began, began / 48_000])));
    }

    /// Where pictures are decoded in another order than they are shown, each fragment says by how much the time of show is later.
    #[test]
    fn pictures_are_shown_when_they_were_told_to_be() {
        let (now, [sequence, picture, ..]) = (Instant::now(), sets());
        let told = [&sequence, &picture].map(|set| STANDARD.encode(set)).join(",");
        let text = format!("m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=fmtp:96 sprop-parameter-sets={told}\n");
        let mut mux = Mux::new(&Description::parse(text.as_bytes()).unwrap(), now, false);
        let mut batch = Batch::default();
        let order = [0_u32, 3, 1, 2, 6, 4, 5, 9, 7, 8];
        for (number, shown) in order.iter().enumerate() {
            let head = [&[0x80, 0x80 | 96, 0, number as u8][..], &(shown * 3600).to_be_bytes(), &[0, 0, 0, 1]].concat();
            let unit = if number == 0 { [0x65, 0x88, 1] } else { [0x41, 0x9a, 1] };
            batch.frame(0, &[&head[..], &unit].concat(), number == 0, true);
        }
        let out = mux.take(&batch, &Instants::default(), now);
        let times = out.entries.iter().map(|entry| {
            let fragment = &out.bytes[entry.range()];
            // Behind version, count, place of the data, duration, size and flags (ISO/IEC 14496-12, section 8.8.8).
            let at = fragment.windows(4).position(|name| name == b"trun").unwrap() + 4 + 24;
            let offset = i32::from_be_bytes(fragment[at..at + 4].try_into().unwrap());
            (time(fragment).unwrap().1, offset)
        });
        let times: Vec<(u64, i32)> = times.collect();
        assert!(times.iter().all(|(_, offset)| *offset >= 0), "{times:?}");
        assert!(times.is_sorted_by(|a, b| a.0 < b.0), "{times:?}");
        let shown: Vec<u64> = times.iter().map(|(decoded, offset)| decoded + *offset as u64).collect();
        // The clock of what has just begun says 10 s.
        assert_eq!(shown, order.map(|shown| 900_000 + u64::from(shown) * 3600));
    }

    #[test]
    fn who_says_its_parameters_again_begins_nothing_anew() {
        let [sequence, picture, ..] = sets();
        let told = [&sequence, &picture].map(|set| STANDARD.encode(set)).join(",");
        let text = format!("m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=fmtp:96 sprop-parameter-sets={told}\n");
        let mut mux = Mux::new(&Description::parse(text.as_bytes()).unwrap(), Instant::now(), false);
        assert!(mux.head().unwrap().windows(4).any(|name| name == b"stco"));
        let mut batch = Batch::default();
        let key = vec![0x65, 0x88, 1];
        for (number, unit) in [&sequence, &picture, &sequence, &picture, &key].into_iter().enumerate() {
            let kind = if number == 4 { 0x80 | 96 } else { 96 };
            let head = [0x80, kind, 0, number as u8, 0, 0, 0, 0, 0, 0, 0, 1];
            batch.frame(0, &[&head, unit.as_slice()].concat(), false, number == 0);
        }
        assert_eq!(
            kinds(&mux.take(&batch, &Instants::default(), Instant::now()).bytes),
            Some(vec![*b"moof", *b"mdat"])
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        /// Whatever a source sends, what comes out are whole fragments, or nothing.
        #[test]
        fn lying_packets_do_no_harm(
            packets in prop::collection::vec((
                prop_oneof![
                    (0..5_usize).prop_map(|which| sets()[which].clone()),
                    Just(vec![0x65; 9]), Just(vec![19 << 1, 1, 7]), prop::collection::vec(any::<u8>(), 0..40),
                    // A parameter set that is larger than any box has room for.
                    Just([vec![0x7c, 0x88], vec![3; 3000]].concat()), Just([vec![0x7c, 8], vec![3; 3000]].concat()),
                ],
                any::<bool>(), prop_oneof![0..4_u32, any::<u32>()], 1..3_u16,
            ), 0..40),
            kind in 0..4_usize, rate in prop_oneof![Just(90_000), 1..u32::MAX],
        ) {
            let encoding = ["H264", "H265", "mpeg4-generic", "opus"][kind];
            let text = format!("m=video 0 RTP/AVP 96\na=rtpmap:96 {encoding}/{rate}\na=fmtp:96 sizelength=13;indexlength=3;config=1408\n");
            let Ok(description) = Description::parse(text.as_bytes()) else { return Ok(()) };
            let now = Instant::now();
            let mut mux = Mux::new(&description, now, false);
            let mut sequence = 0_u16;
            for (payload, marker, timestamp, step) in packets {
                sequence = sequence.wrapping_add(step);
                let mut packet = vec![0x80, if marker { 0x80 | 96 } else { 96 }];
                packet.extend(sequence.to_be_bytes());
                packet.extend(timestamp.to_be_bytes());
                packet.extend([0, 0, 0, 1]);
                packet.extend(payload);
                let mut batch = Batch::default();
                batch.frame(0, &packet, false, true);
                let out = mux.take(&batch, &Instants::default(), now);
                for entry in &out.entries {
                    let found = kinds(&out.bytes[entry.range()]);
                    prop_assert!(found.as_ref().is_some_and(|kinds| kinds.ends_with(&[*b"moof", *b"mdat"])), "{found:?}");
                }
                prop_assert_eq!(out.bytes.len(), out.entries.last().map_or(0, |last| last.end as usize));
            }
        }
    }
}
