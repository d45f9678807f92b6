//! Lines of strands under every policy, driven as threads drive them, in every order of events: each strand is executed to
//! its end by one host, and whoever sleeps is rung when there is something for it.

use multigrain_schedule::jobs::Dispatch;
use multigrain_schedule::policy::{Arrival, Decision, Departure, Start};
use multigrain_schedule::strands::{Lines, LinesOptions, Next};
use proptest::prelude::*;

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    /// It looks around next.
    Looks,
    /// It sleeps until it is rung.
    Sleeps,
    /// It executes this strand.
    Strand(u32),
    /// It leads a task, its own strand's or another's.
    Task,
}

struct Model {
    lines: Lines,
    shared: bool,
    hosts: Vec<Doing>,
    /// Of each strand, where it is: host and place; and how many tasks it has still to off-load.
    at: Vec<Option<(usize, usize)>>,
    left: Vec<u32>,
    /// Strands by place, of each host.
    places: Vec<Vec<u32>>,
    /// Tasks that run, with whether their strands' own hosts execute them.
    running: Vec<(Start, bool)>,
    ended: usize,
    live_max: usize,
    now_ns: u64,
    next_task: u64,
}

impl Model {
    /// After each event: who starts, and who looks around.
    fn decided(&mut self, me: usize, own: Option<u32>) {
        for decision in self.lines.decided().collect::<Vec<_>>() {
            let Decision::Start(start) = decision else { continue };
            let mine = self.shared && own == Some(start.strand) && start.master as usize == me;
            if self.shared {
                let leads = &mut self.hosts[start.master as usize];
                assert!(
                    *leads != Doing::Task && (mine || !matches!(leads, Doing::Strand(_))),
                    "{start:?} on {leads:?}"
                );
                *leads = Doing::Task;
            }
            self.running.push((start, mine));
        }
        for host in self.lines.to_ring(me).iter() {
            if self.hosts[host as usize] == Doing::Sleeps {
                self.hosts[host as usize] = Doing::Looks;
            }
        }
    }

    fn go_on(&mut self, host: usize, next: Next) {
        self.hosts[host] = match next {
            Next::Begin(strand) => {
                assert_eq!(self.at[strand as usize], None, "strand {strand} begins once");
                self.at[strand as usize] = Some((host, self.places[host].len()));
                self.places[host].push(strand);
                let begun = self.at.iter().flatten().count();
                assert!(begun - self.ended <= self.live_max, "{begun} have begun");
                Doing::Strand(strand)
            }
            Next::Resume(place) => Doing::Strand(self.places[host][place]),
            Next::Wait | Next::Finished => Doing::Sleeps,
        };
    }

    /// The strand of a host asks for a task, ends, or gives way.
    fn executes(&mut self, host: usize, strand: u32, gives_way: bool, chunks: u32) {
        let place = self.at[strand as usize].unwrap().1;
        if gives_way {
            if let Some(next) = self.lines.give_way(host, place) {
                self.go_on(host, next);
                self.decided(host, None);
            }
            return;
        }
        self.hosts[host] = Doing::Looks;
        if self.left[strand as usize] == 0 {
            self.ended += 1;
            let over = self.lines.end(host);
            assert_eq!(over, self.ended == self.left.len());
            return self.decided(host, None);
        }
        self.left[strand as usize] -= 1;
        let near = self.shared.then_some(host as u32);
        let arrival = Arrival { task: self.next_task, strand, kind: 0, iterations: chunks, near };
        self.next_task += 1;
        self.lines.arrive(arrival);
        self.decided(host, Some(strand));
    }

    fn departs(&mut self, running: usize, span_ns: u64) {
        let (start, mine) = self.running.swap_remove(running);
        let (host, place) = self.at[start.strand as usize].unwrap();
        let departure = Departure { task: start.task, span_ns, busy_ns: span_ns };
        if self.shared {
            self.hosts[start.master as usize] = Doing::Looks;
        }
        if !mine {
            self.lines.depart(departure, host, place);
            self.decided(usize::MAX, None);
            // Its strand's host is rung in any case.
            if self.hosts[host] == Doing::Sleeps {
                self.hosts[host] = Doing::Looks;
            }
            return;
        }
        if self.lines.depart_and_go_on(departure, host, place) {
            self.hosts[host] = Doing::Strand(start.strand);
        }
        self.decided(host, None);
    }
}

proptest! {
    #[test]
    fn every_strand_comes_to_its_end(
        policy in prop::sample::select(vec!["static", "edtlp", "llp:1", "llp:2", "hybrid:2", "mgps", "marginal"]),
        workers in 2..5_u32,
        own_hosts in prop::option::of(1..4_u32),
        lefts in prop::collection::vec(0..6_u32, 0..8),
        strands_max in prop::option::of(1..6_usize),
        throttle: bool,
        events in prop::collection::vec((0..1000_usize, 0..8_u32, 1..5_u32), 2000),
    ) {
        let policy: multigrain_schedule::policy::Policy = policy.parse().unwrap();
        let strands = lefts.len() as u32;
        let options =
            LinesOptions { policy, workers, own_hosts, strands, strands_max, throttle, dispatch: Dispatch::Queue };
        let hosts = own_hosts.unwrap_or(workers) as usize;
        let mut model = Model {
            lines: Lines::new(options).unwrap(),
            shared: own_hosts.is_none(),
            hosts: vec![Doing::Looks; hosts],
            at: vec![None; lefts.len()],
            left: lefts,
            places: vec![Vec::new(); hosts],
            running: Vec::new(),
            ended: 0,
            live_max: strands_max.unwrap_or(policy.strands_max(workers) as usize),
            now_ns: 0,
            next_task: 0,
        };
        for (pick, kind, chunks) in events {
            model.now_ns += 1000 * u64::from(kind);
            model.lines.advance(model.now_ns);
            let awake = |doing: &Doing| matches!(doing, Doing::Looks | Doing::Strand(_));
            let able: Vec<usize> = (0..hosts).filter(|host| awake(&model.hosts[*host])).collect();
            if able.is_empty() && model.running.is_empty() {
                break;
            }
            let pick = pick % (able.len() + model.running.len());
            match able.get(pick) {
                None => model.departs(pick - able.len(), 1 + u64::from(chunks)),
                Some(&host) => match model.hosts[host] {
                    Doing::Strand(strand) => model.executes(host, strand, kind == 0, chunks),
                    _ => {
                        let next = model.lines.next(host);
                        model.go_on(host, next);
                        model.decided(host, None);
                    }
                },
            }
        }
        prop_assert!(model.lines.is_over(), "{} of {} have ended: {:?}", model.ended, strands, model.hosts);
        prop_assert!(model.left.iter().all(|left| *left == 0));
    }
}
