//! What others hand to a worker that waits for sockets: a bounded queue, and a descriptor that wakes the worker.
//!
//! ```text
//! who posts     push -> raise
//! the worker    wait until it is raised -> lower -> take until there is nothing -> wait again
//! ```
//! No message lies in the queue while the worker waits:
//!
//! - [looked too early] The queue was empty, and somebody pushes before the worker waits. Whoever pushes raises behind that, so the wait ends.
//! - [lowered too late] Somebody pushes and raises while the worker lowers. What was raised before the worker lowers was pushed before that, and
//!   it looks behind it; what is raised later stays raised.
//! - [behind another] The queue seems to be empty, since one that has taken its place has not pushed yet, and another is behind it. Who has the first
//!   place raises, too, and then both are there.
//!
//! What is refused since there is no room raises as well: the worker is late, not asleep. The model checks (`inbox/model.rs`) execute this code on
//! loom's threads: `RUSTFLAGS="--cfg loom" cargo test -p multigrain-proxy --release --lib inbox`.

#[cfg(all(test, loom))]
mod model;

use multigrain::jobs::{Fifo, SpinLimit};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::io;

/// What a worker waits for.
pub trait Wake {
    /// Waits end until it is lowered.
    fn raise(&self);
    /// From now on they do not.
    fn lower(&self);
}

/// An event descriptor, ready to read while it is raised.
impl Wake for OwnedFd {
    fn raise(&self) {
        // It fails where it was raised too often to be counted, and is raised.
        let _ = rustix::io::write(self, &1_u64.to_ne_bytes());
    }

    fn lower(&self) {
        let _ = rustix::io::read(self, &mut [0_u8; 8]);
    }
}

/// Where a worker gets what others hand to it.
#[derive(Debug)]
pub struct Inbox<T, W = OwnedFd> {
    queue: Fifo<T>,
    /// Raised when something has come.
    pub wake: W,
}

impl<T> Inbox<T> {
    /// An inbox for so many messages.
    ///
    /// # Errors
    /// The system's.
    pub fn new(room: usize) -> io::Result<Inbox<T>> {
        Ok(Inbox::waking(room, eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }
}

impl<T, W: Wake> Inbox<T, W> {
    fn waking(room: usize, wake: W) -> Inbox<T, W> {
        Inbox { queue: Fifo::new(room, SpinLimit::SHORT), wake }
    }

    /// Hands something over; gives it back if the worker is so far behind that there is no room.
    ///
    /// # Errors
    /// The message.
    pub fn post(&self, message: T) -> Result<(), T> {
        let posted = self.queue.try_push(message).map_err(|back| back.0);
        self.wake_up();
        posted
    }

    /// Lets the worker look whether there is something to do.
    pub fn wake_up(&self) {
        self.wake.raise();
    }

    /// All messages there are, of who was woken, or looks by itself.
    pub fn come(&self, is_woken: bool) -> impl Iterator<Item = T> {
        if is_woken {
            self.wake.lower();
        }
        std::iter::from_fn(|| self.queue.try_pull())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::{Cell, OnceCell};
    use std::rc::Rc;

    /// What somebody else does at that moment; whether it is raised, or lowered.
    #[derive(Default)]
    struct Meanwhile(OnceCell<Box<dyn Fn(bool)>>);

    impl Wake for Meanwhile {
        fn raise(&self) {
            self.0.get().unwrap()(true);
        }

        fn lower(&self) {
            self.0.get().unwrap()(false);
        }
    }

    /// Who is woken up at once finds why, and what comes while that is taken back is taken behind it.
    #[test]
    fn nothing_lies_there_without_a_wake_up() {
        let (inbox, found) = (Rc::new(Inbox::waking(2, Meanwhile::default())), Rc::new(Cell::new(None)));
        let (others, finds) = (Rc::downgrade(&inbox), found.clone());
        let meanwhile = move |is_raised| {
            let inbox = others.upgrade().unwrap();
            match is_raised {
                true => finds.set(inbox.come(false).next()),
                false => assert!(inbox.queue.try_push(8).is_ok()),
            }
        };
        assert!(inbox.wake.0.set(Box::new(meanwhile)).is_ok());
        assert!(inbox.post(7).is_ok());
        assert_eq!(found.get(), Some(7));
        assert_eq!(inbox.come(true).collect::<Vec<_>>(), [8]);
    }
}
