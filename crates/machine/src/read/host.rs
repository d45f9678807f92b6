//! The tables `[memory.host]` and `[memory.contexts]`: each is given as a whole.

use super::{At, Reader, missing};
use crate::draft::DraftMemory;
use crate::error::{MachineError, Problem};
use crate::host::{ContextScheduler, Contexts, Host, ThreadScheduler};
use crate::units::parse_time;

const HOST_KEYS: &str = "cores, threads, scheduler, interrupts, source";
const CONTEXTS_KEYS: &str = "scheduler, switch, look, spawn, spread, source";

/// The one of this name.
fn scheduler<T: Copy>(at: &At<'_>, all: &[T], name: fn(T) -> &'static str) -> Result<T, MachineError> {
    let found = at.text("the name of a scheduler")?;
    let unknown = || {
        let known: Vec<&str> = all.iter().map(|known| name(*known)).collect();
        at.error(Problem::UnknownScheduler { found: found.into(), known: known.join(", ") })
    };
    all.iter().copied().find(|known| name(*known) == found).ok_or_else(unknown)
}

impl Reader<'_> {
    pub(super) fn host(&self, at: &At<'_>, name: &str, memory: &mut DraftMemory) -> Result<Host, MachineError> {
        let table = at.value.as_table().ok_or_else(|| at.wrong_type("a [memory.host] table"))?;
        let (mut cores, mut threads, mut scheduled, mut interrupts, mut source) = (1, 1, None, None, None);
        for (key, value) in table {
            let at = self.at(value, Some(name), "host", key.get_ref());
            memory.lines.insert(at.key.clone(), at.line);
            let whole = |expected| at.whole(expected).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
            match key.get_ref().as_ref() {
                "cores" => cores = whole("a whole number such as 1")?,
                "threads" => threads = whole("a whole number such as 2")?,
                "scheduler" => scheduled = Some(scheduler(&at, &ThreadScheduler::ALL, ThreadScheduler::name)?),
                "interrupts" => interrupts = Some(whole("a whole number such as 250")?),
                "source" => source = Some(at.text("a text")?.to_string()),
                _ => return Err(self.unknown(key, Some(name), "host", HOST_KEYS)),
            }
        }
        let missing = |key: &str, example| missing(at, key, example);
        Ok(Host {
            cores,
            threads_per_core: threads,
            scheduler: scheduled.ok_or_else(|| missing("host.scheduler", "scheduler = \"linux-2.6.24\""))?,
            interrupts_per_second: interrupts.ok_or_else(|| missing("host.interrupts", "interrupts = 250"))?,
            source,
        })
    }

    pub(super) fn contexts(&self, at: &At<'_>, name: &str, memory: &mut DraftMemory) -> Result<Contexts, MachineError> {
        let table = at.value.as_table().ok_or_else(|| at.wrong_type("a [memory.contexts] table"))?;
        let (mut scheduled, mut times, mut spread, mut source) = (None, [None; 3], 0.0, None);
        for (key, value) in table {
            let at = self.at(value, Some(name), "contexts", key.get_ref());
            memory.lines.insert(at.key.clone(), at.line);
            let time = || at.quantity("a time such as \"5 us\"", parse_time);
            match key.get_ref().as_ref() {
                "scheduler" => scheduled = Some(scheduler(&at, &ContextScheduler::ALL, ContextScheduler::name)?),
                "switch" => times[0] = Some(time()?),
                "look" => times[1] = Some(time()?),
                "spawn" => times[2] = Some(time()?),
                "spread" => spread = at.number("a number such as 0.3")?,
                "source" => source = Some(at.text("a text")?.to_string()),
                _ => return Err(self.unknown(key, Some(name), "contexts", CONTEXTS_KEYS)),
            }
        }
        let missing = |key: &str, example| missing(at, key, example);
        let [switch, look, spawn] = times;
        Ok(Contexts {
            scheduler: scheduled.ok_or_else(|| missing("contexts.scheduler", "scheduler = \"spufs-2.6.24\""))?,
            switch_ns: switch.ok_or_else(|| missing("contexts.switch", "switch = \"26 us\""))?,
            look_ns: look.ok_or_else(|| missing("contexts.look", "look = \"5 us\""))?,
            spawn_ns: spawn.ok_or_else(|| missing("contexts.spawn", "spawn = \"1 ms\""))?,
            spread,
            source,
        })
    }
}
