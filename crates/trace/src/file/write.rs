//! Making the sections of a trace file.

use crate::error::TraceError;
use crate::format::{COUNT_MAX, End, MAGIC, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_SOFT, Tag, VERSION};
use crate::header::{Header, SlotInfo, Use};
use crate::observed::Observed;
use crate::record::{Kind, RECORD_BYTES, Record};

/// The first bytes of a trace.
pub(crate) fn magic() -> [u8; 8] {
    let mut bytes = [VERSION; 8];
    bytes[..7].copy_from_slice(&MAGIC);
    bytes
}

/// Appends a section: tag, length, payload, check sum of all three.
fn section(out: &mut Vec<u8>, tag: Tag, payload: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend(tag.bytes());
    out.extend([0; 8]);
    payload(out);
    let length = (out.len() - begin - 12) as u64;
    out[begin + 4..begin + 12].copy_from_slice(&length.to_le_bytes());
    let sum = crc32fast::hash(&out[begin..]);
    out.extend(sum.to_le_bytes());
}

/// Sections of records, in a buffer that can be used again.
#[derive(Debug)]
pub(crate) struct Section {
    buffer: Vec<u8>,
}

impl Section {
    pub(crate) fn new() -> Section {
        Section { buffer: Vec::new() }
    }

    /// The bytes of one section with these records.
    pub(crate) fn records(&mut self, records: &[Record]) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        section(&mut bytes, Tag::Recs, |out| {
            out.reserve(records.len() * RECORD_BYTES + 4);
            for record in records {
                out.extend_from_slice(&record.to_bytes());
            }
        });
        bytes
    }

    /// Takes the buffer back.
    pub(crate) fn reuse(&mut self, bytes: Vec<u8>) {
        self.buffer = bytes;
    }
}

/// The sections with everything that is known before the run.
pub(crate) fn names(header: &Header, slots: &[SlotInfo], uses: &[Use]) -> Result<Vec<u8>, TraceError> {
    let counts = [
        ("workers", header.workers.len()),
        ("edges", header.edges.len()),
        ("tasks", header.tasks.len()),
        ("plans", header.plans.len()),
    ];
    for (what, count) in counts {
        if count as u64 > COUNT_MAX {
            return Err(TraceError::TooLarge { what, found: count as u64, limit: COUNT_MAX });
        }
    }
    let json = serde_json::to_vec(header).map_err(std::io::Error::other)?;
    if json.len() as u64 > PAYLOAD_BYTES_MAX {
        return Err(TraceError::TooLarge { what: "the names", found: json.len() as u64, limit: PAYLOAD_BYTES_MAX });
    }
    let mut out = Vec::new();
    section(&mut out, Tag::Head, |out| out.extend(json));
    let mut rest = slots;
    while !rest.is_empty() {
        section(&mut out, Tag::Slot, |out| {
            let begin = out.len();
            while let [slot, behind @ ..] = rest
                && out.len() - begin < PAYLOAD_BYTES_SOFT
            {
                put_slot(out, slot);
                rest = behind;
            }
        });
    }
    for part in uses.chunks(PAYLOAD_BYTES_SOFT / 8) {
        section(&mut out, Tag::Uses, |out| {
            for used in part {
                out.extend(used.slot.to_le_bytes());
                out.extend(used.call.to_le_bytes());
            }
        });
    }
    Ok(out)
}

fn put_slot(out: &mut Vec<u8>, slot: &SlotInfo) {
    for word in [slot.plan, slot.child, slot.array] {
        out.extend(word.to_le_bytes());
    }
    out.extend(slot.offset_bytes.to_le_bytes());
    out.extend(slot.bytes.to_le_bytes());
    let rank = slot.start.len().min(slot.len.len()).min(255);
    out.push(rank as u8);
    for (start, len) in slot.start.iter().zip(&slot.len).take(rank) {
        out.extend(start.to_le_bytes());
        out.extend(len.to_le_bytes());
    }
}

/// The sections with which a trace ends.
pub(crate) fn end(end: &End, records: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for (worker, totals) in end.totals.iter().enumerate() {
        section(&mut out, Tag::Sums, |out| {
            out.extend((worker as u32).to_le_bytes());
            out.extend((totals.edges() as u32).to_le_bytes());
            for &kind in &Kind::ALL[..Kind::SUMMED] {
                for column in 0..=totals.edges() {
                    let sum = totals.column(kind, column);
                    out.extend(sum.count.to_le_bytes());
                    out.extend(sum.ticks.to_le_bytes());
                }
            }
        });
    }
    // Strings and numbers, which JSON always has.
    if end.observed != Observed::default()
        && let Ok(json) = serde_json::to_vec(&end.observed)
    {
        section(&mut out, Tag::Krnl, |out| out.extend(json));
    }
    section(&mut out, Tag::Done, |out| {
        for word in [end.start, end.tick, end.elapsed_ns, records, end.dropped] {
            out.extend(word.to_le_bytes());
        }
    });
    out
}
