//! What all workers know of a stream.

use crate::config::Source;
use crate::sdp::Description;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is wrong while nothing is known of a source.
pub const NOTHING_YET: &str = "nothing has come of it so far";

/// A stream: its source, what it sends, and how much of it went where.
#[derive(Debug)]
pub struct Stream {
    /// Its place among the streams.
    pub index: usize,
    /// Its path.
    name: String,
    source: Mutex<Arc<Source>>,
    /// It is served no more, unless it is asked for again.
    pub is_gone: AtomicBool,
    told: Mutex<Told>,
    /// Counters, for metrics.
    pub counts: Counts,
    /// Whether packets come.
    pub is_flowing: AtomicBool,
    /// Viewers that play it, on all workers.
    pub viewers: AtomicUsize,
}

/// What the source said last.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// What it sends.
    pub description: Option<Arc<Description>>,
    /// How often that has changed in a way that viewers cannot follow.
    pub generation: u64,
    /// From where it is pulled, without credentials.
    pub server: String,
    /// What is wrong, for people.
    pub trouble: Option<String>,
}

macro_rules! counts {
    ($($(#[doc = $text:literal])+ $field:ident),+ $(,)?) => {
        /// How often things happened.
        #[derive(Debug, Default)]
        pub struct Counts { $($(#[doc = $text])+ pub $field: AtomicU64),+ }

        impl Counts {
            /// Names, what they count, and how much.
            pub fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($field), concat!($($text),+), self.$field.load(Ordering::Relaxed))),+]
            }
        }
    };
}

counts! {
    /// Packets of media that came
    packets_received,
    /// Their bytes
    bytes_received,
    /// Packets that did not come
    packets_lost,
    /// Packets that came twice or too late
    packets_late,
    /// Packets of pictures that refer to what is lost, or come before the first key, which are for nobody
    packets_left_out,
    /// What came and was no packet of a track
    packets_malformed,
    /// How often the source was pulled
    connections,
    /// Packets that were sent to viewers by RTSP, and pieces of pictures and sound to those by HTTP and WebSocket, which are fewer
    packets_sent,
    /// Bytes that were sent to viewers
    bytes_sent,
    /// How often a viewer missed pictures because it was slow
    viewers_behind,
    /// Viewers that began to play
    viewers_served,
}

/// Adds to a counter.
pub fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Stream {
    /// A stream of which nothing is known yet.
    pub fn new(index: usize, source: Source) -> Stream {
        Stream {
            index,
            name: source.name.clone(),
            source: Mutex::new(Arc::new(source)),
            is_gone: AtomicBool::new(false),
            told: Mutex::new(Told { trouble: Some(NOTHING_YET.to_owned()), ..Told::default() }),
            counts: Counts::default(),
            is_flowing: AtomicBool::new(false),
            viewers: AtomicUsize::new(0),
        }
    }

    /// Its path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was asked for.
    pub fn source(&self) -> Arc<Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for something else under the same name.
    pub fn set_source(&self, source: Source) {
        let mut held = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if **held != source {
            *held = Arc::new(source);
        }
        self.is_gone.store(false, Ordering::Relaxed);
    }

    /// What the source said last. Held for a moment only.
    pub fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
