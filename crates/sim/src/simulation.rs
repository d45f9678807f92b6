//! The clock, what is planned, and the things of a machine.

use crate::dma::{Dma, DmaId, DmaState, Pending, Transfer};
use crate::host::{Cause, Class, Host, HostId, HostState, HostUse, ThreadId, Timer};
use crate::network::{LinkId, Network};
use crate::queue::Queue;
use crate::server::{Disk, DiskId, DiskState, Serial, ServerId};
use crate::time::Time;

/// What is planned: an event of the model, or a step of something of the machine.
enum Planned<E> {
    Event(E),
    /// The latency of a transfer is over.
    Flow(Pending<E>),
    Timer(Timer),
}

/// A machine in virtual time.
///
/// `E` is the model's event: a small value, usually an enum, that says which actor goes on and why. Whatever takes time
/// is given an event that is due at its end; [`Simulation::next`] gives events in the order of (time, sequence). So an
/// actor is a state machine, the model owns its state and the simulation, and the loop is
///
/// ```
/// use multigrain_sim::{Simulation, Time, Transfer};
///
/// #[derive(Debug, PartialEq)]
/// enum Event { Arrived(u32), Computed(u32) }
///
/// let mut sim = Simulation::new();
/// let link = sim.link(1_000_000_000, Time::from_ns(50.0));
/// let core = sim.server();
/// for worker in 0..2 {
///     sim.transfer(Transfer::new(&[link], 1000), Event::Arrived(worker));
/// }
/// let mut last = Time::ZERO;
/// while let Some(event) = sim.next() {
///     match event {
///         Event::Arrived(worker) => sim.serve(core, Time::from_ns(10.0), Event::Computed(worker)),
///         Event::Computed(_) => last = sim.now(),
///     }
/// }
/// // 50 ns of latency, 2000 bytes shared at one a nanosecond, 10 ns for each worker on the one core.
/// assert_eq!(last, Time::from_ns(2070.0));
/// ```
pub struct Simulation<E> {
    now: Time,
    sequence: u64,
    events: u64,
    queue: Queue<Planned<E>>,
    network: Network,
    /// For each flow what its end means.
    flows: Vec<Option<(Option<DmaId>, E)>>,
    engines: Vec<DmaState<E>>,
    servers: Vec<Serial>,
    disks: Vec<DiskState>,
    hosts: Vec<HostState<E>>,
    /// Hosts whose threads may have to be switched before time goes on.
    unsettled: Vec<HostId>,
}

impl<E> Default for Simulation<E> {
    fn default() -> Self {
        Simulation::new()
    }
}

impl<E> Simulation<E> {
    /// A machine of nothing, at time zero.
    pub fn new() -> Simulation<E> {
        Simulation {
            now: Time::ZERO,
            sequence: 0,
            events: 0,
            queue: Queue::new(),
            network: Network::default(),
            flows: Vec::new(),
            engines: Vec::new(),
            servers: Vec::new(),
            disks: Vec::new(),
            hosts: Vec::new(),
            unsettled: Vec::new(),
        }
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many things have happened so far: events of the model, and steps of links, engines and schedulers.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Goes on to the next event and gives it; `None` when nothing is planned any more.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<E> {
        loop {
            self.settle_hosts();
            let planned = self.queue.first();
            let mut flow = self.network.first();
            let next = [planned, flow].into_iter().flatten().min();
            if self.network.is_unsettled() && next.is_none_or(|(time, _)| time > self.now) {
                self.network.settle(self.now);
                flow = self.network.first();
            }
            if let Some(key) = flow
                && planned.is_none_or(|planned| key < planned)
            {
                self.now = key.0;
                self.events += 1;
                let id = self.network.pop()?;
                let (engine, done) = self.flows[id as usize].take()?;
                self.transferred(engine);
                return Some(done);
            }
            self.now = planned?.0;
            self.events += 1;
            match self.queue.pop()? {
                Planned::Event(event) => return Some(event),
                Planned::Timer(timer) => {
                    if let Some(event) = self.host_timer(timer) {
                        return Some(event);
                    }
                }
                Planned::Flow(pending) => {
                    if pending.bytes == 0 {
                        self.transferred(pending.engine);
                        return Some(pending.done);
                    }
                    self.flow(pending);
                }
            }
        }
    }

    fn plan(&mut self, time: Time, what: Planned<E>) {
        self.sequence += 1;
        self.queue.push((time, self.sequence), what);
    }

    /// An event after so much time.
    pub fn after(&mut self, time: Time, event: E) {
        self.plan(self.now + time, Planned::Event(event));
    }

    /// An event at a time; at once if that is past.
    pub fn at(&mut self, time: Time, event: E) {
        self.plan(time.max(self.now), Planned::Event(event));
    }

    /// A link of so many bytes per second, one way. Flows through it share it max-min fairly.
    ///
    /// # Panics
    /// If it has no bandwidth.
    pub fn link(&mut self, bytes_per_second: u64, latency: Time) -> LinkId {
        self.network.link(bytes_per_second, latency)
    }

    /// Bytes that have begun to cross a link.
    pub fn carried_bytes(&self, link: LinkId) -> u64 {
        self.network.bytes(link)
    }

    /// Begins a transfer; `done` when its last byte has arrived. First its latency passes, then its bytes flow.
    pub fn transfer(&mut self, transfer: Transfer<'_>, done: E) {
        let pending = Pending::new(transfer, None, done);
        self.begin(pending, Time::ZERO);
    }

    fn begin(&mut self, pending: Pending<E>, wait: Time) {
        let latency = wait + pending.latency + self.network.latency(&pending.path);
        if latency == Time::ZERO && pending.bytes > 0 {
            return self.flow(pending);
        }
        self.plan(self.now + latency, Planned::Flow(pending));
    }

    /// The bytes of a transfer begin to flow.
    fn flow(&mut self, pending: Pending<E>) {
        self.sequence += 1;
        let key = (self.now, self.sequence);
        let limit = pending.bytes_per_second_max;
        let id = self.network.begin(&pending.path, pending.bytes, limit, key) as usize;
        if id >= self.flows.len() {
            self.flows.resize_with(id + 1, || None);
        }
        self.flows[id] = Some((pending.engine, pending.done));
    }

    /// A DMA engine.
    ///
    /// # Panics
    /// If its queue has no depth.
    pub fn dma(&mut self, dma: Dma) -> DmaId {
        self.engines.push(DmaState::new(dma));
        DmaId((self.engines.len() - 1) as u32)
    }

    /// Gives a transfer to an engine, which begins it as soon as its queue has a place; `done` at its end.
    pub fn issue(&mut self, engine: DmaId, transfer: Transfer<'_>, done: E) {
        let pending = Pending::new(transfer, Some(engine), done);
        let state = &mut self.engines[engine.0 as usize];
        if state.under_way < state.dma.depth {
            self.begin_of(engine, pending);
        } else {
            state.waiting.push_back(pending);
        }
    }

    fn begin_of(&mut self, engine: DmaId, pending: Pending<E>) {
        let state = &mut self.engines[engine.0 as usize];
        state.under_way += 1;
        let begun = state.issuer.serve(self.now, state.dma.issue);
        let wait = begun - self.now;
        self.begin(pending, wait);
    }

    /// A transfer of an engine has ended: the next one may begin.
    fn transferred(&mut self, engine: Option<DmaId>) {
        let Some(engine) = engine else { return };
        let state = &mut self.engines[engine.0 as usize];
        state.under_way -= 1;
        if let Some(next) = state.waiting.pop_front() {
            self.begin_of(engine, next);
        }
    }

    /// Transfers of an engine that are under way or wait.
    pub fn queued(&self, engine: DmaId) -> usize {
        let state = &self.engines[engine.0 as usize];
        state.under_way + state.waiting.len()
    }

    /// A serial server: a processor without operating system, a bus that is held, a lock.
    pub fn server(&mut self) -> ServerId {
        self.servers.push(Serial::default());
        ServerId((self.servers.len() - 1) as u32)
    }

    /// Keeps a server busy for so much time, after what it was asked before; `done` at the end.
    pub fn serve(&mut self, server: ServerId, time: Time, done: E) {
        let end = self.servers[server.0 as usize].serve(self.now, time);
        self.plan(end, Planned::Event(done));
    }

    /// As [`Simulation::serve`], for an answer that takes so much time to arrive when the server is free already. Gives
    /// when the server begins with it.
    pub fn request(&mut self, server: ServerId, time: Time, latency: Time, done: E) -> Time {
        let end = self.servers[server.0 as usize].serve(self.now, time);
        self.plan(end + latency, Planned::Event(done));
        end - time
    }

    /// What a server was and is asked to do, in all.
    pub fn busy(&self, server: ServerId) -> Time {
        self.servers[server.0 as usize].busy
    }

    /// A disk.
    pub fn disk(&mut self, disk: Disk) -> DiskId {
        self.disks.push(DiskState::new(disk));
        DiskId((self.disks.len() - 1) as u32)
    }

    /// Asks a disk for bytes from a byte of it on, after what it was asked before; `done` when they have been moved.
    pub fn access(&mut self, disk: DiskId, from: u64, bytes: u64, writes: bool, done: E) {
        let state = &mut self.disks[disk.0 as usize];
        let time = state.request(from, bytes, writes);
        let end = state.serial.serve(self.now, time);
        self.plan(end, Planned::Event(done));
    }

    /// A host: hardware threads with an operating system.
    ///
    /// # Panics
    /// If it has no hardware threads, or its speeds are not one for each number of busy threads of a core.
    pub fn host(&mut self, host: Host) -> HostId {
        self.hosts.push(HostState::new(host));
        HostId((self.hosts.len() - 1) as u32)
    }

    /// A thread of a host, asleep; schedulers that know classes treat it by its own.
    pub fn thread(&mut self, host: HostId, class: Class) -> ThreadId {
        ThreadId { host, index: self.hosts[host.0 as usize].thread(class) }
    }

    /// Wakes a thread for a burst of so much work, in time that it takes on a hardware thread whose core has nothing else
    /// to do; `done` at its end. When `done` is given, the thread still has its processor: with a new burst at that
    /// instant it goes on, otherwise it sleeps.
    ///
    /// # Panics
    /// If the thread has not finished its last burst.
    pub fn compute(&mut self, thread: ThreadId, work: Time, done: E) {
        self.burst(thread, Cause::Event, Some(work), done);
    }

    /// As [`Simulation::compute`], woken by another thread of the host that has a processor now: schedulers may prefer its
    /// processor.
    pub fn wake(&mut self, by: ThreadId, thread: ThreadId, work: Time, done: E) {
        self.burst(thread, Cause::Woken(by.index), Some(work), done);
    }

    /// As [`Simulation::compute`], for the first burst of a thread that `parent`, which has a processor now, has made.
    pub fn fork(&mut self, parent: ThreadId, thread: ThreadId, work: Time, done: E) {
        self.burst(thread, Cause::Made(parent.index), Some(work), done);
    }

    /// Lets a sleeping thread count as if it had run for so much longer, where schedulers count that.
    pub fn charge(&mut self, thread: ThreadId, time: Time) {
        self.hosts[thread.host.0 as usize].charge_for(thread.index, time);
    }

    fn burst(&mut self, thread: ThreadId, cause: Cause, work: Option<Time>, done: E) {
        self.hosts[thread.host.0 as usize].burst(thread.index, cause, work, done);
        self.unsettled.push(thread.host);
    }

    /// As [`Simulation::compute`], with a burst that lasts until [`Simulation::end_spin`]: the thread waits without
    /// giving up its processor.
    pub fn spin(&mut self, thread: ThreadId, done: E) {
        self.burst(thread, Cause::Event, None, done);
    }

    /// What a spinning thread waits for has happened. Its event is due as soon as it has a processor.
    pub fn end_spin(&mut self, thread: ThreadId) {
        self.hosts[thread.host.0 as usize].end_spin(thread.index);
        self.unsettled.push(thread.host);
    }

    /// What a host's threads and its scheduler did so far.
    pub fn host_use(&self, host: HostId) -> HostUse {
        self.hosts[host.0 as usize].used(self.now)
    }

    /// Time for which a thread had a processor, switches to it not counted.
    pub fn thread_time(&self, thread: ThreadId) -> Time {
        self.hosts[thread.host.0 as usize].thread_time(thread.index, self.now)
    }

    fn settle_hosts(&mut self) {
        if self.unsettled.is_empty() {
            return;
        }
        let mut hosts = std::mem::take(&mut self.unsettled);
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts.drain(..) {
            let state = &mut self.hosts[host.0 as usize];
            for (time, timer) in state.settle(self.now, host) {
                self.sequence += 1;
                self.queue.push((time, self.sequence), Planned::Timer(timer));
            }
        }
        self.unsettled = hosts;
    }

    fn host_timer(&mut self, timer: Timer) -> Option<E> {
        let event = self.hosts[timer.host.0 as usize].ring(timer, self.now);
        self.unsettled.push(timer.host);
        event
    }
}
