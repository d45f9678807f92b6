//! Reading the sections of a trace file, which may be anything.

use std::io::Read;

use super::Trace;
use crate::error::TraceError;
use crate::format::{COUNT_MAX, End, MAGIC, PAYLOAD_BYTES_MAX, Tag, VERSION, VERSION_READ};
use crate::header::{Header, SlotInfo, Use};
use crate::record::{Kind, RECORD_BYTES, Record};
use crate::totals::{Sum, Totals};

struct Input<'a, R> {
    from: &'a mut R,
    /// Bytes read so far.
    at: u64,
}

impl<R: Read> Input<'_, R> {
    /// Up to `length` bytes; fewer at the end of the input. Takes as much memory as there are bytes.
    fn some(&mut self, length: u64) -> Result<Vec<u8>, TraceError> {
        let mut bytes = Vec::new();
        self.from.by_ref().take(length).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes)
    }

    fn exactly(&mut self, length: u64, part: &'static str) -> Result<Vec<u8>, TraceError> {
        let bytes = self.some(length)?;
        match bytes.len() as u64 == length {
            true => Ok(bytes),
            false => Err(TraceError::Truncated { part, at: self.at }),
        }
    }

    fn section(&mut self) -> Result<(Tag, u64, Vec<u8>), TraceError> {
        let begin = self.at;
        let first = self.exactly(12, "a section")?;
        let Some(tag) = Tag::ALL.into_iter().find(|tag| first.starts_with(&tag.bytes())) else {
            let found = format!("a section {:02x?}", &first[..4]);
            return Err(damaged("a section", begin, found, "HEAD, SLOT, USES, RECS, KRNL, SUMS or DONE"));
        };
        let length = Fields(&first[4..]).u64().unwrap_or(0);
        if length > PAYLOAD_BYTES_MAX {
            let expected = format!("at most {PAYLOAD_BYTES_MAX}");
            return Err(damaged(tag.what(), begin, format!("a length of {length} bytes"), expected));
        }
        let payload = self.exactly(length, tag.what())?;
        let sum = Fields(&self.exactly(4, tag.what())?).u32().unwrap_or(0);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&first);
        hasher.update(&payload);
        let found = hasher.finalize();
        match sum == found {
            true => Ok((tag, begin, payload)),
            false => {
                Err(damaged(tag.what(), begin, format!("bytes with the sum {found:08x}"), format!("the sum {sum:08x}")))
            }
        }
    }
}

fn damaged(part: &'static str, at: u64, found: impl ToString, expected: impl ToString) -> TraceError {
    TraceError::Damaged { part, at, found: found.to_string(), expected: expected.to_string() }
}

/// Numbers from the front of a payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

/// Whoever takes the records of a section.
pub(crate) type Take<'a> = &'a mut dyn FnMut(Vec<Record>) -> Result<(), TraceError>;

/// Reads a whole trace, whose records are taken section by section.
pub(crate) fn read<R: Read>(from: &mut R, take: Take<'_>) -> Result<Trace, TraceError> {
    let mut input = Input { from, at: 0 };
    let first = input.some(8)?;
    if !first.starts_with(&MAGIC) {
        // A file that is too short to have all of them is a cut trace only if those that it has are right.
        return Err(match MAGIC.starts_with(&first) {
            true => TraceError::Truncated { part: "the first bytes", at: input.at },
            false => TraceError::NotATrace { found: first },
        });
    }
    match first.get(7) {
        Some(&(VERSION_READ..=VERSION)) => {}
        Some(&found) => return Err(TraceError::Version { found }),
        None => return Err(TraceError::Truncated { part: "the version", at: input.at }),
    }
    let (tag, at, payload) = input.section()?;
    if tag != Tag::Head {
        return Err(damaged(tag.what(), at, "it first", "the header first"));
    }
    let mut trace = Trace { header: header(&payload, at)?, ..Trace::default() };
    let mut taken = 0;
    loop {
        let (tag, at, payload) = input.section()?;
        let part = tag.what();
        match tag {
            Tag::Head => return Err(damaged(part, at, "a second header", "one")),
            Tag::Slot => slots(&payload, &mut trace.slots)
                .ok_or_else(|| damaged(part, at, "a block that does not end", "whole blocks"))?,
            Tag::Uses => {
                let mut fields = Fields(&payload);
                while let (Some(slot), Some(call)) = (fields.u32(), fields.u32()) {
                    trace.uses.push(Use { slot, call });
                }
            }
            Tag::Recs => {
                let records = records(&payload, at, trace.header.workers.len() as u64)?;
                taken += records.len() as u64;
                take(records)?;
            }
            Tag::Krnl => {
                let observed = serde_json::from_slice(&payload);
                trace.end.observed = observed.map_err(|error| damaged(part, at, error, "names as JSON"))?;
            }
            Tag::Sums => {
                let totals = sums(&payload, trace.end.totals.len())
                    .ok_or_else(|| damaged(part, at, "other numbers of workers, edges or kinds", "one row a worker"))?;
                trace.end.totals.push(totals);
            }
            Tag::Done => {
                done(&payload, at, taken, &mut trace)?;
                break;
            }
        }
    }
    if !input.some(1)?.is_empty() {
        return Err(damaged("the end", input.at - 1, "further bytes", "no more"));
    }
    trace.uses.sort_unstable();
    Ok(trace)
}

fn header(payload: &[u8], at: u64) -> Result<Header, TraceError> {
    let part = Tag::Head.what();
    let header: Header = serde_json::from_slice(payload).map_err(|error| damaged(part, at, error, "names as JSON"))?;
    let rate = header.clock.ticks_per_second;
    if !(rate.is_finite() && rate > 0.0) {
        return Err(damaged(part, at, format!("{rate} ticks in a second"), "a positive number"));
    }
    let counts = [header.workers.len(), header.edges.len(), header.tasks.len(), header.plans.len()];
    if counts.iter().any(|count| *count as u64 > COUNT_MAX) {
        return Err(damaged(part, at, format!("{counts:?} names"), format!("at most {COUNT_MAX} of a kind")));
    }
    Ok(header)
}

fn slots(payload: &[u8], into: &mut Vec<SlotInfo>) -> Option<()> {
    let mut fields = Fields(payload);
    while !fields.0.is_empty() {
        let [plan, child, array] = [fields.u32()?, fields.u32()?, fields.u32()?];
        let (offset_bytes, bytes) = (fields.u64()?, fields.u64()?);
        let [rank] = fields.take()?;
        let (mut start, mut len) = (Vec::new(), Vec::new());
        for _ in 0..rank {
            start.push(fields.u64()?);
            len.push(fields.u64()?);
        }
        into.push(SlotInfo { plan, child, array, offset_bytes, bytes, start, len });
    }
    Some(())
}

fn records(payload: &[u8], at: u64, workers: u64) -> Result<Vec<Record>, TraceError> {
    let part = Tag::Recs.what();
    let (records, rest) = payload.as_chunks::<RECORD_BYTES>();
    if !rest.is_empty() {
        return Err(damaged(part, at, format!("{} bytes", payload.len()), "whole records of 32 bytes"));
    }
    let record = |bytes: &[u8; RECORD_BYTES]| {
        let record = Record::from_bytes(bytes)
            .ok_or_else(|| damaged(part, at, format!("kind {}", bytes[30]), "a known kind"))?;
        match u64::from(record.worker) < workers {
            true => Ok(record),
            false => Err(damaged(part, at, format!("worker {}", record.worker), format!("one of {workers}"))),
        }
    };
    records.iter().map(record).collect()
}

fn sums(payload: &[u8], worker: usize) -> Option<Totals> {
    let mut fields = Fields(payload);
    let (number, edges) = (fields.u32()? as usize, fields.u32()? as usize);
    let expected = edges.checked_add(1)?.checked_mul(Kind::SUMMED * 16)?;
    if number != worker || fields.0.len() != expected {
        return None;
    }
    let mut totals = Totals::new(edges);
    for kind in &Kind::ALL[..Kind::SUMMED] {
        for column in 0..=edges {
            let kind = *kind;
            totals.set_column(kind, column, Sum { count: fields.u64()?, ticks: fields.u64()? })?;
        }
    }
    Some(totals)
}

fn done(payload: &[u8], at: u64, taken: u64, trace: &mut Trace) -> Result<(), TraceError> {
    let part = Tag::Done.what();
    let mut fields = Fields(payload);
    let (Some(start), Some(tick), Some(elapsed_ns), Some(records), Some(dropped), []) =
        (fields.u64(), fields.u64(), fields.u64(), fields.u64(), fields.u64(), fields.0)
    else {
        return Err(damaged(part, at, format!("{} bytes", payload.len()), "40"));
    };
    if records != taken {
        let found = format!("{taken} records");
        return Err(damaged(part, at, found, format!("the {records} that were written")));
    }
    if tick < start {
        return Err(damaged(part, at, format!("the last tick {tick}"), "one after the first"));
    }
    let workers = trace.header.workers.len();
    if !matches!(trace.end.totals.len(), 0) && trace.end.totals.len() != workers {
        return Err(damaged(part, at, format!("sums of {} workers", trace.end.totals.len()), workers));
    }
    trace.end = End { start, tick, elapsed_ns, dropped, ..std::mem::take(&mut trace.end) };
    Ok(())
}
