//! Ranks that exchange messages.

use crate::start::end;
use crate::{Mpi, MpiError, ffi};
use multigrain_schedule::{Domain, Topology};
use multigrain_team::collective::Element;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

/// A group of ranks. Messages of one group are never taken for those of another.
pub struct Comm<'mpi> {
    raw: *mut c_void,
    flights: *mut c_void,
    rank: u32,
    size: u32,
    mpi: PhantomData<&'mpi Mpi>,
}

/// A message that is begun: addresses, which whoever begins it vouches for.
#[derive(Clone, Copy)]
pub(crate) struct Flight {
    pub(crate) sends: bool,
    pub(crate) with: u32,
    pub(crate) data: *mut u8,
    pub(crate) bytes: usize,
}

/// MPI counts bytes of a message in an `int`: longer ones go as several.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

impl Mpi {
    /// All ranks, in a communicator of one's own: what is sent in it meets nobody else's messages. Collective.
    ///
    /// # Errors
    /// What MPI refuses.
    pub fn world(&self) -> Result<Comm<'_>, MpiError> {
        Comm::kept("all ranks cannot be had", |kept| {
            // SAFETY: null means all ranks; MPI is running as long as `self` lives.
            unsafe { ffi::mg_comm_again(std::ptr::null_mut(), kept) }
        })
    }
}

impl<'mpi> Comm<'mpi> {
    pub(crate) fn kept(
        what: &'static str,
        make: impl FnOnce(*mut *mut c_void) -> c_int,
    ) -> Result<Comm<'mpi>, MpiError> {
        let mut raw = std::ptr::null_mut();
        let refused = |code| MpiError::Refused { what, text: ffi::text(0, code) };
        let code = make(&raw mut raw);
        if code != ffi::SUCCESS {
            return Err(refused(code));
        }
        let (mut rank, mut size) = (0, 0);
        // SAFETY: a communicator that was just made.
        let code = unsafe { ffi::mg_comm_place(raw, &raw mut rank, &raw mut size) };
        if code != ffi::SUCCESS {
            return Err(refused(code));
        }
        // SAFETY: no arguments.
        let flights = unsafe { ffi::mg_flights_new() };
        assert!(!flights.is_null(), "no memory for a communicator");
        Ok(Comm { raw, flights, rank: rank as u32, size: size as u32, mpi: PhantomData })
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The same ranks again. Collective.
    ///
    /// # Errors
    /// What MPI refuses.
    pub fn again(&self) -> Result<Comm<'mpi>, MpiError> {
        // SAFETY: a live communicator.
        Comm::kept("a communicator cannot be had again", |kept| unsafe { ffi::mg_comm_again(self.raw, kept) })
    }

    /// Those who say the same colour, in the order of their ranks. Collective.
    ///
    /// # Errors
    /// What MPI refuses.
    pub fn split(&self, colour: u32) -> Result<Comm<'mpi>, MpiError> {
        let (colour, key) = ((colour & i32::MAX as u32) as c_int, self.rank as c_int);
        // SAFETY: a live communicator.
        Comm::kept("ranks cannot be divided", |kept| unsafe { ffi::mg_comm_split(self.raw, colour, key, 0, kept) })
    }

    /// Those on this rank's node. Collective.
    ///
    /// # Errors
    /// What MPI refuses.
    pub fn node(&self) -> Result<Comm<'mpi>, MpiError> {
        let key = self.rank as c_int;
        // SAFETY: a live communicator.
        Comm::kept("the ranks of a node cannot be told", |kept| unsafe {
            ffi::mg_comm_split(self.raw, 0, key, 1, kept)
        })
    }

    /// Where all ranks live: a domain a node. Where the ranks of a node do not follow each other, all are as far from each
    /// other. Collective.
    ///
    /// # Errors
    /// What MPI refuses.
    pub fn topology(&self) -> Result<Topology, MpiError> {
        let node = self.node()?;
        let mut first = [self.rank];
        node.broadcast(0, &mut first)?;
        let mut nodes = vec![0u32; self.size as usize];
        nodes[self.rank as usize] = first[0];
        self.allgather(&mut nodes)?;
        let together = nodes.windows(2).all(|pair| pair[0] <= pair[1]);
        let domains: Vec<Domain> = nodes.chunk_by(|a, b| a == b).map(|n| Domain::Members(n.len() as u32)).collect();
        let topology = if together && domains.len() > 1 {
            Topology::new(Domain::Domains(domains))
        } else {
            Topology::flat(self.size)
        };
        Ok(topology?)
    }

    /// Refuses ranks that do not exist.
    pub(crate) fn known(&self, rank: u32) -> Result<(), MpiError> {
        if rank < self.size { Ok(()) } else { Err(MpiError::NoSuchRank { rank, last: self.size - 1 }) }
    }

    /// Ends the run if MPI failed while buffers were in its hands.
    pub(crate) fn sound(&self, what: &str, code: c_int) {
        if code != ffi::SUCCESS {
            let (rank, node, text) = (self.rank, ffi::text(2, 0), ffi::text(0, code));
            end(&format!("rank {rank} on node {node}: {what}: {text}"));
        }
    }

    /// Sends to one, and waits until the elements are its or MPI's own.
    ///
    /// # Errors
    /// No such rank.
    pub fn send<T: Element>(&self, to: u32, elements: &[T]) -> Result<(), MpiError> {
        self.exchange(&[(to, elements)], &mut [])
    }

    /// Receives from one.
    ///
    /// # Errors
    /// No such rank, or other elements came.
    pub fn receive<T: Element>(&self, from: u32, elements: &mut [T]) -> Result<(), MpiError> {
        self.exchange(&[], &mut [(from, elements)])
    }

    /// Sends and receives, all at the same time, and waits for all.
    ///
    /// # Errors
    /// As [`Comm::receive`].
    pub fn exchange<T: Element>(
        &self,
        sends: &[(u32, &[T])],
        receives: &mut [(u32, &mut [T])],
    ) -> Result<(), MpiError> {
        let sent = sends.iter().map(|(with, elements)| Flight {
            sends: true,
            with: *with,
            data: elements.as_ptr().cast_mut().cast(),
            bytes: size_of_val(*elements),
        });
        let received = receives.iter_mut().map(|(with, elements)| Flight {
            sends: false,
            with: *with,
            data: elements.as_mut_ptr().cast(),
            bytes: size_of_val(*elements),
        });
        let flights: Vec<Flight> = received.chain(sent).collect();
        flights.iter().try_for_each(|flight| self.known(flight.with))?;
        // SAFETY: the slices are borrowed until this returns, those that are received alone; an element may have any bits.
        unsafe { self.fly(&flights) }
    }

    /// Begins messages and waits for all.
    ///
    /// # Safety
    /// The addresses are good for so many bytes, for reading if sent and for writing if received, and nobody else writes
    /// what is sent or touches what is received. The ranks exist.
    pub(crate) unsafe fn fly(&self, flights: &[Flight]) -> Result<(), MpiError> {
        let pieces = |bytes: usize| bytes.div_ceil(MESSAGE_BYTES_MAX).max(1);
        let count: usize = flights.iter().map(|flight| pieces(flight.bytes)).sum();
        // SAFETY: flights of our own.
        let code = unsafe { ffi::mg_flights_room(self.flights, count as c_int) };
        self.sound("no memory for messages", code);
        for &Flight { sends, with, data, bytes } in flights {
            for piece in 0..pieces(bytes) {
                let offset = piece * MESSAGE_BYTES_MAX;
                let len = (bytes - offset).min(MESSAGE_BYTES_MAX) as c_int;
                // SAFETY: within the bytes that the caller vouches for; there is room for the request.
                let code = unsafe {
                    let data = data.add(offset).cast();
                    if sends {
                        ffi::mg_send_begin(self.flights, self.raw, data, len, with as c_int, 0)
                    } else {
                        ffi::mg_receive_begin(self.flights, self.raw, data, len, with as c_int, 0)
                    }
                };
                self.sound("a message cannot be begun", code);
            }
        }
        let (mut from, mut came, mut expected) = (-1, 0, 0);
        // SAFETY: flights of our own.
        let code = unsafe { ffi::mg_wait(self.flights, &raw mut from, &raw mut came, &raw mut expected) };
        self.sound("messages did not arrive", code);
        match u32::try_from(from) {
            Ok(from) => Err(MpiError::OtherLength { from, came: came as u64, expected: expected as u64 }),
            Err(_) => Ok(()),
        }
    }

    /// Bytes as MPI counts them in its own operations.
    fn counted<T>(&self, operation: &'static str, elements: usize) -> Result<c_int, MpiError> {
        let bytes = elements * size_of::<T>();
        c_int::try_from(bytes).map_err(|_| MpiError::Elements {
            operation,
            ranks: self.size,
            what: format!("MPI's own counts bytes up to {}, and these are {bytes}", c_int::MAX),
        })
    }

    /// A message that has come from anybody, whole; none if none has.
    pub(crate) fn receive_any(&self) -> Option<(u32, Vec<u8>)> {
        let (mut from, mut bytes) = (-1, 0);
        // SAFETY: a live communicator.
        self.sound("messages cannot be looked for", unsafe { ffi::mg_probe(self.raw, &raw mut from, &raw mut bytes) });
        let from = u32::try_from(from).ok()?;
        let mut message = vec![0; bytes.max(0) as usize];
        // SAFETY: it has so many bytes, as was just seen, and is received by this thread alone.
        let code = unsafe { ffi::mg_receive(self.raw, message.as_mut_ptr().cast(), bytes, from as c_int) };
        self.sound("a message did not arrive", code);
        Some((from, message))
    }

    /// Sends a message, which is kept until it is sent.
    pub(crate) fn post(&self, to: u32, message: Vec<u8>) -> Letter {
        // SAFETY: no arguments.
        let request = unsafe { ffi::mg_letter_new() };
        let bytes = c_int::try_from(message.len());
        let (false, Ok(bytes)) = (request.is_null(), bytes) else {
            end(&format!("rank {}: a message of {} bytes cannot be sent", self.rank, message.len()));
        };
        // SAFETY: the message stays where it is until MPI has sent it (`Letter`).
        let code = unsafe { ffi::mg_letter_send(request, self.raw, message.as_ptr().cast(), bytes, to as c_int) };
        self.sound("a message cannot be begun", code);
        Letter { request, _message: message }
    }

    /// Whether a message is sent.
    pub(crate) fn is_sent(&self, letter: &Letter) -> bool {
        let mut sent = 0;
        // SAFETY: a request of this communicator; once it is over MPI has made it a null request.
        self.sound("a message was not sent", unsafe { ffi::mg_letter_sent(letter.request, &raw mut sent) });
        sent != 0
    }

    /// MPI's own barrier.
    ///
    /// # Errors
    /// None that is known before.
    pub fn barrier(&self) -> Result<(), MpiError> {
        // SAFETY: a live communicator.
        self.sound("a barrier failed", unsafe { ffi::mg_barrier(self.raw) });
        Ok(())
    }

    /// MPI's own broadcast.
    ///
    /// # Errors
    /// No such root, or too many bytes.
    pub fn broadcast<T: Element>(&self, root: u32, elements: &mut [T]) -> Result<(), MpiError> {
        self.known(root)?;
        let bytes = self.counted::<T>("broadcast", elements.len())?;
        // SAFETY: elements that may have any bits, borrowed alone.
        let code = unsafe { ffi::mg_broadcast(self.raw, elements.as_mut_ptr().cast(), bytes, root as c_int) };
        self.sound("a broadcast failed", code);
        Ok(())
    }

    /// MPI's own all-gather: each rank's part, as many elements of everybody, is in its place.
    ///
    /// # Errors
    /// Elements that are not a whole number a rank, or too many bytes.
    pub fn allgather<T: Element>(&self, elements: &mut [T]) -> Result<(), MpiError> {
        let each = self.dealt("all-gather", elements.len())?;
        let bytes = self.counted::<T>("all-gather", each)?;
        // SAFETY: elements that may have any bits, borrowed alone, so many for each rank.
        let code = unsafe { ffi::mg_allgather(self.raw, elements.as_mut_ptr().cast(), bytes) };
        self.sound("an all-gather failed", code);
        Ok(())
    }

    /// MPI's own all-to-all.
    ///
    /// # Errors
    /// As [`Comm::allgather`], or slices of different lengths.
    pub fn alltoall<T: Element>(&self, from: &[T], into: &mut [T]) -> Result<(), MpiError> {
        self.alike("all-to-all", from, into)?;
        let each = self.dealt("all-to-all", from.len())?;
        let bytes = self.counted::<T>("all-to-all", each)?;
        // SAFETY: elements that may have any bits, so many for each rank; `into` is borrowed alone.
        let code = unsafe { ffi::mg_alltoall(self.raw, from.as_ptr().cast(), into.as_mut_ptr().cast(), bytes) };
        self.sound("an all-to-all failed", code);
        Ok(())
    }

    /// MPI's own sum for everybody, in an order of its choice: of integers it is the sum, of floats one of several.
    ///
    /// # Errors
    /// Slices of different lengths, elements other than `u64` and `f64`, or too many.
    pub fn sum<T: Element>(&self, from: &[T], into: &mut [T]) -> Result<(), MpiError> {
        self.alike("allreduce", from, into)?;
        let kind = match T::NAME {
            "f64" => 0,
            "u64" => 1,
            other => {
                let what = format!("sums by MPI itself are of f64 and u64 here, not of {other}");
                return Err(MpiError::Elements { operation: "allreduce", ranks: self.size, what });
            }
        };
        let count = self.counted::<T>("allreduce", from.len())? / size_of::<T>() as c_int;
        // SAFETY: so many elements of that type each; `into` is borrowed alone.
        let code = unsafe { ffi::mg_sum(self.raw, from.as_ptr().cast(), into.as_mut_ptr().cast(), count, kind) };
        self.sound("an allreduce failed", code);
        Ok(())
    }

    pub(crate) fn alike<T>(&self, operation: &'static str, from: &[T], into: &[T]) -> Result<(), MpiError> {
        if from.len() == into.len() {
            return Ok(());
        }
        let what = format!("{} elements go in, but there is room for {} to come out", from.len(), into.len());
        Err(MpiError::Elements { operation, ranks: self.size, what })
    }

    /// Elements of each rank.
    pub(crate) fn dealt(&self, operation: &'static str, elements: usize) -> Result<usize, MpiError> {
        if elements.is_multiple_of(self.size as usize) {
            return Ok(elements / self.size as usize);
        }
        let what = format!("{elements} elements are not as many for each");
        Err(MpiError::Elements { operation, ranks: self.size, what })
    }
}

/// A message under way. Who drops it has seen that it is sent ([`Comm::is_sent`]), or the process ends.
pub(crate) struct Letter {
    request: *mut c_void,
    _message: Vec<u8>,
}

impl Drop for Letter {
    fn drop(&mut self) {
        // SAFETY: made with it, and MPI keeps nothing there.
        unsafe { ffi::mg_letter_free(self.request) };
    }
}

impl Drop for Comm<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody uses either any more, and nothing is under way.
        unsafe { ffi::mg_flights_free(self.flights) };
        // Freeing is collective: while panicking the others are not going to.
        if !std::thread::panicking() {
            // SAFETY: as above; MPI has not ended.
            unsafe { ffi::mg_comm_free(self.raw) };
        }
    }
}
