//! The dual-Cell blade of Gaona, Fernandez and Acacio (Euro-Par 2009), in virtual time.

use super::published::{Row, lines, number, usage};
use crate::collective::{CollectiveError, Costs, Fabric, Tier, collectives};
use crate::{Dma, Time};
use multigrain_schedule::{Algorithm, Kind, Laws, Operation, Order, Request, ScheduleError, Topology, schedules};

/// SPEs of a chip.
pub const SPES: u32 = 8;
/// The buffer of each SPE.
const BUFFER_BYTES: u64 = 16 << 10;
/// How often an operation is repeated: the rhythm is found after two or three.
const REPEATS: usize = 24;
/// How many of these are left out.
const WARM: usize = 8;
/// A cycle of an SPE at 3.2 GHz.
const CYCLE_NS: f64 = 1.0 / 3.2;
/// Half a signal's round trip on a chip, Abellan, Fernandez and Acacio 2008, quoted by Gaona et al.
const SIGNAL_NS: f64 = 160.1 / 2.0;
/// The same across the two chips.
const SIGNAL_ACROSS_NS: f64 = 619.4 / 2.0;
/// A transfer of one line between two local stores: issue 10, to the bus 30, list fetch 10, coherence 100, data 140
/// cycles, Kistler, Perrone and Petrini, IEEE Micro 2006.
const TRANSFER_NS: f64 = 290.0 * CYCLE_NS;
/// For how long an engine that signals can begin nothing else. Assumed: 12.5 ns for issue and way to the bus would be the
/// least, 43.8 ns with the coherence phase the most (Kistler et al.).
const SIGNAL_COMMAND_NS: f64 = 25.0;
/// What a command costs the processor that gives it, 10 cycles: Kistler et al. As much assumed for reading the register and
/// for a test of the bits that were read.
const STEP_CYCLES: f64 = 10.0;
/// The bus moves lines of so many bytes: IBM Cell programming handbook.
const LINE_BYTES: u64 = 128;
/// A combination, besides 16 cycles for every 16 bytes (two loads, an addition and a store of 6 cycles each, half of it
/// overlapped): a call and some mispredicted branches of 18 to 20 cycles. Assumed, since the paper says nothing about it:
/// with 150 to 180 cycles all orders of reductions that it states hold, with 100 or 200 all but that of five SPEs, by 1 %.
const COMBINE_CYCLES: f64 = 165.0;

/// What lies between the SPEs of the blade.
///
/// An engine carries out one small transfer after the other, and what crosses the chips holds it for the crossing as
/// well: assumed, since the paper's root has latencies that grow by nearly a round trip for each SPE of the other chip.
pub fn fabric() -> Fabric {
    let ns = Time::from_ns;
    let across_ns = SIGNAL_ACROSS_NS - SIGNAL_NS;
    let step_ns = STEP_CYCLES * CYCLE_NS;
    // The published times are those of one line, with its crossing and with what sender and receiver do: send, read and test.
    let tier = |more_ns: f64, line_ns: f64, bytes_per_second| Tier {
        signal: ns(SIGNAL_NS - 3.0 * step_ns - line_ns + more_ns),
        transfer: ns(TRANSFER_NS - line_ns + more_ns),
        signal_command: ns(SIGNAL_COMMAND_NS + more_ns),
        transfer_command: ns(TRANSFER_NS - line_ns + more_ns),
        bytes_per_second: Some(bytes_per_second),
    };
    Fabric {
        tiers: vec![
            // Four rings, 96 bytes a bus cycle: IBM Cell programming handbook.
            tier(0.0, LINE_BYTES as f64 / 25.6, 204_800_000_000),
            // Gaona et al., section 2.
            tier(across_ns, LINE_BYTES as f64 / 20.0, 20_000_000_000),
        ],
        // 25.6 GB/s a port each way, 16 transfers in flight: IBM Cell programming handbook.
        port_bytes_per_second: 25_600_000_000,
        packet_bytes: Some(LINE_BYTES),
        dma: Dma { depth: 16, issue: Time::ZERO },
        costs: Costs {
            enter: Time::ZERO,
            send: ns(step_ns),
            read: ns(step_ns),
            test: ns(step_ns),
            start: ns(step_ns),
            flush: Time::ZERO,
            combine: ns(COMBINE_CYCLES * CYCLE_NS),
            combine_bytes_per_second: 16.0 * 3.2e9 / 16.0,
        },
    }
}

/// Why the blade cannot perform an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BladeError {
    /// The request makes no sense.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The schedule does not run.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

/// Nanoseconds that an operation takes among the first `spes` SPEs of the blade, when it is repeated.
///
/// The optimised reductions of the paper are the eager ones here, with a ring of one place: an SPE, intermediate ones too,
/// tells a child as soon as the child's part was gathered ("the gather phase overlaps with the ready and go phases in the
/// root and intermediate SPEs"), and a child needs to know it before it contributes again. The paper has the child wait
/// for that before it leaves; in a loop, which is what is measured, both are the same.
///
/// # Errors
/// [`BladeError`].
pub fn latency_ns(operation: Operation, algorithm: &str, spes: u32) -> Result<f64, BladeError> {
    let mut algorithm: Algorithm = algorithm.parse()?;
    if operation.kind() == Kind::Reduce && algorithm.optimised {
        algorithm = Algorithm { optimised: false, eager: true, ..algorithm };
    }
    period_ns(operation, algorithm, spes)
}

fn period_ns(operation: Operation, algorithm: Algorithm, spes: u32) -> Result<f64, BladeError> {
    let topology = Topology::packed(spes, &[2, SPES])?;
    let schedules = schedules(&Request { operation, algorithm, topology, buffer_bytes: BUFFER_BYTES, ring: 1 })?;
    Ok(collectives(&[&schedules; REPEATS], &fabric())?.mean(WARM).ns())
}

/// A reduction of floats in any order, as the paper's.
pub fn reduce(bytes: u64) -> Operation {
    Operation::Reduce { root: 0, bytes, element_bytes: 4, order: any_order() }
}

/// A broadcast by the first SPE.
pub fn broadcast(bytes: u64) -> Operation {
    Operation::Broadcast { root: 0, bytes }
}

fn any_order() -> Order {
    Laws { associative: true, commutative: true }.order()
}

/// Barriers that the paper compares.
pub const BARRIERS: [&str; 7] = ["ATOBar", "ATOBarB", "TTBar(2)", "TTBar(3)", "TTBarB(2)", "TTBarB(3)", "PEBar"];
/// Broadcasts that it compares.
pub const BROADCASTS: [&str; 3] = ["ATOBcastB_Opt", "TTBcastB_Opt(2)", "TTBcastB_Opt(3)"];
/// Reductions that it compares.
pub const REDUCTIONS: [&str; 3] = ["ATORedB_Opt", "TTRedB_Opt(2)", "TTRedB_Opt(3)"];

/// The published figures and the simulated ones.
///
/// # Errors
/// [`BladeError`].
pub fn rows() -> Result<Vec<Row>, BladeError> {
    let mut rows = Vec::new();
    for line in lines(include_str!("blade.csv")) {
        let &[operation, algorithm, spes, bytes, unit, value, used] = &line[..] else { continue };
        let (spes_number, bytes_number) = (number(spes) as u32, number(bytes) as u64);
        let operation_of = match operation {
            "barrier" => Operation::Barrier,
            "broadcast" => broadcast(bytes_number),
            _ => reduce(bytes_number),
        };
        let (name, ns) = match algorithm {
            "best" => {
                let mut best = ("", f64::INFINITY);
                for name in BARRIERS {
                    let ns = latency_ns(operation_of, name, spes_number)?;
                    if ns < best.1 {
                        best = (name, ns);
                    }
                }
                best
            }
            name => (name, latency_ns(operation_of, name, spes_number)?),
        };
        let (unit, simulated) = match unit {
            "GB/s" => ("GB/s", f64::from(spes_number - 1) * bytes_number as f64 / ns),
            _ => ("ns", ns),
        };
        rows.push(Row {
            table: "Gaona 2009".into(),
            row: format!("{operation}, {algorithm}, {spes} SPEs, {bytes} bytes"),
            unit,
            published: number(value),
            simulated: Some(simulated),
            usage: usage(used),
            follows: true,
            note: match operation {
                "barrier" => Some(format!("the lowest is {name}")),
                "reduce" => {
                    let own = period_ns(operation_of, name.parse()?, spes_number)?;
                    Some(format!("a child is told once its part was gathered; {own:.0} ns where all wait for go"))
                }
                _ => None,
            },
        });
    }
    Ok(rows)
}
