//! The way of records into a file while the run goes on: bounded memory, however long it takes.
//!
//! A worker fills a chunk, hands it over and gets an empty one. A thread of its own writes the chunks and gives them
//! back. There is a limited number of them: when the file system is slower than the run makes records, and all chunks
//! are full, the newest records are dropped and counted. A worker never waits. When the run is over, work on its results
//! may add records of its own, until the file is published.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use multigrain_whole::WholeFile;

use crate::clock;
use crate::error::TraceError;
use crate::file::{self, Section};
use crate::format::End;
use crate::header::{Header, SlotInfo, Use};
use crate::observed::Observed;
use crate::part::Part;
use crate::record::Record;
use crate::totals::Totals;

/// Records in one chunk: 128 KiB, which stays in the second-level cache, so that handing one over is rare and the
/// memory is written while it is warm.
pub(crate) const CHUNK_RECORDS: usize = 4 * 1024;

/// Memory for records on their way to the file: 32 MiB, in chunks of 128 KiB.
const CHUNKS_MAX: usize = (32 << 20) / (CHUNK_RECORDS * size_of::<Record>());

enum Message {
    /// A part of the file, as it is.
    Bytes(Vec<u8>),
    /// Records to be written and given back empty.
    Chunk(Vec<Record>),
    Stop,
}

#[derive(Debug)]
struct Pool {
    free: Mutex<Vec<Vec<Record>>>,
    /// The first fault of the file; what comes after it is not written.
    fault: Mutex<Option<std::io::Error>>,
    written: AtomicU64,
}

/// Who has the file.
#[derive(Debug)]
enum Holder {
    /// The thread that writes what it is told.
    Thread(JoinHandle<WholeFile>),
    /// It has been published, or its thread has failed.
    Nobody,
}

/// A trace file that is being written.
#[derive(Debug)]
pub struct Spill {
    path: PathBuf,
    pool: Arc<Pool>,
    made: AtomicUsize,
    dropped: AtomicU64,
    sender: mpsc::Sender<Message>,
    holder: Mutex<Holder>,
    /// Names of tasks, by number.
    tasks: Mutex<Vec<String>>,
    /// Once the run is over: how it ended, with what was done after it.
    end: Mutex<Option<End>>,
    /// What other processes have recorded of the same run.
    parts: Mutex<Vec<Part>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spill {
    /// Creates the file, under another name until [`publish`](Self::publish), and starts the thread that writes it.
    ///
    /// # Errors
    /// [`TraceError::Create`] when the file cannot be created; [`TraceError::Io`] when there is no thread.
    pub fn create(path: &Path) -> Result<Arc<Spill>, TraceError> {
        let create = |source| TraceError::Create { path: path.to_owned(), source };
        let mut file = WholeFile::create(path).map_err(create)?;
        let pool = Arc::new(Pool { free: Mutex::new(Vec::new()), fault: Mutex::new(None), written: AtomicU64::new(0) });
        let (sender, receiver) = mpsc::channel();
        let for_thread = Arc::clone(&pool);
        let thread = std::thread::Builder::new().name("trace".into()).spawn(move || {
            let failed = file.write_all(&file::magic()).err();
            *lock(&for_thread.fault) = failed;
            serve(&mut file, &receiver, &for_thread);
            file
        })?;
        Ok(Arc::new(Spill {
            path: path.to_owned(),
            pool,
            made: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            sender,
            holder: Mutex::new(Holder::Thread(thread)),
            tasks: Mutex::default(),
            end: Mutex::default(),
            parts: Mutex::default(),
        }))
    }

    /// Where the trace will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what the numbers in the records stand for. To be called once, before the run.
    ///
    /// # Errors
    /// [`TraceError::TooLarge`] for what the format cannot hold.
    pub fn begin(&self, header: &Header, slots: &[SlotInfo], uses: &[Use]) -> Result<(), TraceError> {
        self.tell(Message::Bytes(file::names(header, slots, uses)?));
        lock(&self.tasks).clone_from(&header.tasks);
        Ok(())
    }

    /// Takes a chunk of up to 4096 records and gives an empty one with room for as many. Where the file is slower than records
    /// are made, those are dropped, and counted.
    pub fn exchange(&self, full: Vec<Record>) -> Vec<Record> {
        if full.capacity() == 0 {
            return self.empty().unwrap_or_else(|| Vec::with_capacity(CHUNK_RECORDS));
        }
        match self.empty() {
            Some(empty) => {
                self.tell(Message::Chunk(full));
                empty
            }
            None => {
                self.dropped.fetch_add(full.len() as u64, Ordering::Relaxed);
                let mut empty = full;
                empty.clear();
                empty
            }
        }
    }

    fn empty(&self) -> Option<Vec<Record>> {
        if let Some(chunk) = lock(&self.pool.free).pop() {
            return Some(chunk);
        }
        let room = self.made.fetch_add(1, Ordering::Relaxed) < CHUNKS_MAX;
        room.then(|| Vec::with_capacity(CHUNK_RECORDS))
    }

    /// Takes the last chunk of a recorder, or any records.
    pub fn put(&self, records: Vec<Record>) {
        if !records.is_empty() {
            self.tell(Message::Chunk(records));
        }
    }

    fn tell(&self, message: Message) {
        // The thread ends only after `Stop`, and nothing is told after that.
        let _ = self.sender.send(message);
    }

    /// The run is over. To its dropped records those will be added that find no room here. Whether the file took
    /// everything, [`publish`](Self::publish) tells.
    pub fn end(&self, end: &End) {
        *lock(&self.end) = Some(end.clone());
    }

    /// The number in the records of the task with this name.
    pub fn task(&self, name: &str) -> Option<u16> {
        let number = lock(&self.tasks).iter().position(|task| task == name)?;
        u16::try_from(number).ok()
    }

    /// What was found of the operating system, once the run is over and until the trace is published; `None` if it was not
    /// observed.
    pub fn observed(&self) -> Option<Observed> {
        lock(&self.end).as_ref().map(|end| end.observed.clone()).filter(|observed| observed.by.is_some())
    }

    /// How many edges a worker's sums have, once the run is over and if it had this worker.
    pub(crate) fn edges(&self, worker: usize) -> Option<usize> {
        Some(lock(&self.end).as_ref()?.totals.get(worker)?.edges())
    }

    /// The trace now ends at this moment, with what a worker did after the run, and with more records that had no room.
    pub(crate) fn extend(&self, worker: usize, with: &Totals, dropped: u64) {
        let now = clock::now().0;
        let mut end = lock(&self.end);
        let Some(end) = end.as_mut() else { return };
        if let Some(totals) = end.totals.get_mut(worker) {
            totals.merge(with);
        }
        end.dropped += dropped;
        let more = now.saturating_sub(end.tick);
        end.tick += more;
        end.elapsed_ns += (more as f64 / clock::ticks_per_second() * 1e9) as u64;
    }

    /// What another process has recorded of this run: becomes a part of the trace when that is published, and its file is removed.
    pub fn join(&self, part: Part) {
        lock(&self.parts).push(part);
    }

    /// Writes the end of the trace, waits until everything is written, and gives it its name.
    ///
    /// # Errors
    /// [`TraceError::Create`] when the system refused anything since the file was created, or when
    /// [`end`](Self::end) has not been called; [`TraceError::Part`] when a part is not there.
    pub fn publish(&self) -> Result<(), TraceError> {
        let failed = |source| TraceError::Create { path: self.path.clone(), source };
        let mut holder = lock(&self.holder);
        let ended = lock(&self.end).take();
        let (mut end, thread) = match (ended, std::mem::replace(&mut *holder, Holder::Nobody)) {
            (Some(end), Holder::Thread(thread)) => (end, thread),
            (None, going_on @ Holder::Thread(_)) => {
                *holder = going_on;
                return Err(failed(std::io::Error::other("the run has not ended")));
            }
            (_, Holder::Nobody) => return Err(failed(std::io::Error::other("there is nothing more to write"))),
        };
        self.tell(Message::Stop);
        let Ok(mut file) = thread.join() else {
            return Err(failed(std::io::Error::other("the thread that writes it has failed")));
        };
        if let Some(source) = lock(&self.pool.fault).take() {
            return Err(failed(source));
        }
        let mut records = self.pool.written.load(Ordering::Acquire);
        end.dropped += self.dropped.load(Ordering::Relaxed);
        for part in &*lock(&self.parts) {
            records += part.append(&mut file, &mut end).map_err(|error| match error {
                TraceError::Io(source) => failed(source),
                other => other,
            })?;
        }
        file.write_all(&file::end(&end, records)).map_err(failed)?;
        file.publish().map_err(failed)
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        for part in self.parts.get_mut().unwrap_or_else(PoisonError::into_inner) {
            let _ = std::fs::remove_file(&part.path);
        }
        let holder = self.holder.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Holder::Thread(thread) = std::mem::replace(holder, Holder::Nobody) {
            self.tell(Message::Stop);
            // What it gives back, or has lost, leaves nothing behind.
            let _ = thread.join();
        }
    }
}

fn serve(file: &mut WholeFile, receiver: &mpsc::Receiver<Message>, pool: &Pool) {
    let mut section = Section::new();
    for message in receiver {
        let (bytes, chunk) = match message {
            Message::Stop => return,
            Message::Bytes(bytes) => (bytes, None),
            Message::Chunk(records) => (section.records(&records), Some(records)),
        };
        let mut fault = lock(&pool.fault);
        if fault.is_none() {
            match file.write_all(&bytes) {
                Ok(()) => {
                    let records = chunk.as_ref().map_or(0, Vec::len) as u64;
                    pool.written.fetch_add(records, Ordering::Release);
                }
                Err(error) => *fault = Some(error),
            }
        }
        drop(fault);
        if let Some(mut records) = chunk {
            section.reuse(bytes);
            records.clear();
            lock(&pool.free).push(records);
        }
    }
}
