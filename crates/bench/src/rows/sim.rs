//! How fast virtual time passes.

use crate::entry::Entry;
use crate::harness::Bench;
use crate::harness::row::{Bar, Figure, Row, Unit};
use multigrain::rooms::sim::{Dma, LinkId, Random, Simulation, Time, Transfer};
use multigrain::{Machine, MachineChoice, Options, Runtime};
use multigrain_console::Failure;
use std::time::Instant;

pub(super) const ENTRIES: &[Entry] =
    &[Entry::rows("sim", "The simulator: an event, a Fourier transform on a thousand nodes", sim)];

/// Nodes of the large machine.
const NODES: usize = 1000;

/// Events of a busy machine, and a Fourier transform on a thousand nodes from its plan on.
pub(crate) fn sim(bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let label = "sim";
    let row = |name: &str, unit, ours, most: f64, note: String| {
        Row::new(
            format!("{label} {name}").trim_end().to_owned(),
            unit,
            ours,
            None::<Figure>,
            Bar::AtMost(most),
            vec![note],
        )
    };
    let events = bench.size(2_000_000, 20_000);
    let mut costs = Vec::new();
    for _ in 0..bench.args.rounds {
        let begin = Instant::now();
        let happened = traffic(events);
        costs.push(begin.elapsed().as_nanos() as f64 / happened as f64);
    }
    let note =
        format!("nanoseconds an event, of {events}: 64 processors that compute, move blocks by DMA and meet on buses");
    let busy = row("events", Unit::Nanoseconds, costs, 1000.0, note);

    let n = bench.size(2048, 128);
    let app = multigrain_cli::front().typed("fft3d", &format!("--n {n}"))?;
    let machine = nodes(NODES)?;
    let runtime = Runtime::new(Options { machine: MachineChoice::Given(Box::new(machine)), ..Options::default() })?;
    let job = app.prepare(&runtime)?.job;
    let (mut costs, mut note) = (Vec::new(), String::new());
    for _ in 0..bench.args.rounds.min(3) {
        let begin = Instant::now();
        let simulated = runtime.simulate(&job, multigrain::Simulation::default())?;
        costs.push(begin.elapsed().as_secs_f64());
        let (events, seconds) = (simulated.events, simulated.seconds);
        note = format!(
            "{n}^3 numbers on {NODES} nodes, plan and simulation: {events} events, {seconds:.3} s of virtual time"
        );
    }
    Ok(vec![busy, row("fft3d", Unit::Seconds, costs, 60.0, note)])
}

/// The shipped cluster with more nodes: bandwidth and capacity of the whole grow with them.
fn nodes(count: usize) -> Result<Machine, Failure> {
    let machine = Machine::named("cluster")?;
    let root = machine.memory(machine.root()).name.clone();
    let node = machine.children(machine.root()).next().map(|id| machine.memory(id).clone());
    let Some(node) = node else { return Err(Failure::Run("internal error: a cluster without nodes".into())) };
    let more = count as f64 / node.count as f64;
    let machine = machine.with(&root, |memory| memory.capacity_bytes = node.capacity_bytes * count as u64)?;
    Ok(machine.with(&node.name, |memory| {
        memory.count = count;
        if let Some(edge) = &mut memory.edge {
            edge.read_bytes_per_second *= more;
            edge.write_bytes_per_second *= more;
        }
    })?)
}

/// A machine of 8 buses with 8 processors each: every processor computes, then moves a block over its bus and another.
fn traffic(events: u64) -> u64 {
    let mut sim = Simulation::new();
    let mut random = Random::new(1);
    let buses: Vec<LinkId> = (0..8).map(|_| sim.link(25_600_000_000, Time::from_ns(90.0))).collect();
    let engines: Vec<_> = (0..64).map(|_| sim.dma(Dma { depth: 16, issue: Time::from_ns(3.0) })).collect();
    let cores: Vec<_> = (0..64).map(|_| sim.server()).collect();
    for processor in 0..64usize {
        sim.after(Time::ZERO, (processor, false));
    }
    while let Some((processor, computed)) = sim.next() {
        if sim.events() > events {
            break;
        }
        match computed {
            false => sim.serve(cores[processor], Time::from_ps(1000 + random.below(1_000_000)), (processor, true)),
            true => {
                let other = random.below(8) as usize;
                let (own, bytes) = (processor / 8, 16 + random.below(16 << 10));
                let path = [buses[own], buses[other]];
                let path = if own == other { &path[..1] } else { &path[..] };
                sim.issue(engines[processor], Transfer::new(path, bytes), (processor, false));
            }
        }
    }
    sim.events()
}
