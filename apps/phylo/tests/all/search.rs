//! Searches: simulated trees are found again, results do not depend on who computes, interrupted ones go on.

use crate::support;

use multigrain::rooms::team::strands::{Policy, Scheduler, SchedulerOptions, Strand};
use multigrain_phylo::alignment::{Alignment, DataType, Format, Patterns, read_alignment};
use multigrain_phylo::kernel::chunk_patterns;
use multigrain_phylo::likelihood::{Host, Offload, OnStrand};
use multigrain_phylo::model::{Model, ModelSpec};
use multigrain_phylo::parsimony::Parsimony;
use multigrain_phylo::partition::Branches;
use multigrain_phylo::random::{Purpose, Random};
use multigrain_phylo::search::{Options, Progress, Search, SearchResult, Signal, Stage, State};
use multigrain_phylo::tree::{HalfEdge, Splits, Tree};
use multigrain_simd::Isa;
use std::ops::ControlFlow;

fn unit(random: &mut Random) -> f64 {
    random.below(1 << 40) as f64 / (1u64 << 40) as f64
}

/// A random tree whose branches all have lengths that can be seen in the data.
fn random_tree(random: &mut Random, taxa: usize) -> Tree {
    let mut tree = Tree::new(taxa, 1);
    let length = |random: &mut Random| [0.03 + 0.1 * unit(random)];
    let mut ring = tree.inner(0);
    for taxon in 0..3 {
        tree.join(ring, tree.tip(taxon), &length(random));
        ring = tree.next(ring);
    }
    for taxon in 3..taxa {
        let branches: Vec<HalfEdge> = tree.branches().collect();
        let at = branches[random.below(branches.len() as u64) as usize];
        let root = tree.inner(taxon - 2);
        tree.join(root, tree.tip(taxon), &length(random));
        tree.regraft(root, [at, tree.back(at)], [&length(random), &length(random)]);
    }
    tree
}

/// Letters that evolve along a tree under a model.
fn simulate(random: &mut Random, tree: &Tree, model: &Model, sites: usize, data: DataType) -> Alignment {
    let n = model.states;
    let (eigen, rates) = (model.eigen(), model.rates());
    let draw = |random: &mut Random, weights: &[f64]| {
        let mut left = unit(random) * weights.iter().sum::<f64>();
        weights
            .iter()
            .position(|w| {
                left -= w;
                left < 0.0
            })
            .unwrap_or(n - 1)
    };
    let mut rows = vec![Vec::new(); tree.taxa()];
    for _ in 0..sites {
        let rate = rates[random.below(rates.len() as u64) as usize];
        let mut states = vec![0; tree.halves()];
        let first = draw(random, &model.frequencies);
        rows[0].push(data.letters()[first]);
        states[tree.back(HalfEdge(0)).index()] = first;
        for half in tree.behind(tree.back(HalfEdge(0))) {
            // The half-edge's node: its state from that at the other end of its branch.
            let before = states[half.index()];
            let p = eigen.transition(tree.length(half, 0) * rate);
            let state = draw(random, &p[before * n..(before + 1) * n]);
            if tree.is_tip(half) {
                rows[half.index()].push(data.letters()[state]);
            } else {
                tree.others(half).into_iter().for_each(|side| states[tree.back(side).index()] = state);
            }
        }
    }
    Alignment { names: (0..tree.taxa()).map(|t| format!("t{t}")).collect(), rows }
}

fn simulated(seed: u64, taxa: usize, sites: usize, model: &str) -> (Tree, Patterns, Model) {
    let mut random = Random::new(seed, Purpose::Resample, 0);
    let spec = ModelSpec::parse(model).unwrap();
    let tree = random_tree(&mut random, taxa);
    let nothing = Alignment { names: vec!["a".into()], rows: vec![vec![]] };
    let truth = spec.model(&Patterns::new(&nothing, 0..0, spec.data_type));
    let alignment = simulate(&mut random, &tree, &truth, sites, spec.data_type);
    let patterns = Patterns::new(&alignment, 0..sites, spec.data_type);
    let free = if spec.data_type == DataType::Dna { "GTR+FO+G4" } else { "LG+G4" };
    let model = ModelSpec::parse(free).unwrap().model(&patterns);
    (tree, patterns, model)
}

/// All stages, but none for long.
fn options() -> Options {
    Options { fast_radius: 5, thorough_radius: 5, shakes: 1, ..Options::default() }
}

fn search<'o>(patterns: &Patterns, model: &Model, number: u64) -> Search<'o> {
    let mut random = Random::new(3, Purpose::Start, number);
    let data = [(patterns, model)];
    Search::new(&data, Branches::Linked, options(), Isa::detect(), &mut random, Box::new(Host))
}

const GTR: &str = "GTR{1/4/0.5/0.7/6/1}+FU{0.3/0.15/0.2/0.35}+G4{0.7}";

#[test]
fn simulated_trees_and_parameters_are_found_again() {
    for (seed, taxa, sites, text) in [(1, 20, 1500, GTR), (2, 9, 2000, GTR), (3, 8, 600, "LG+G4{0.7}")] {
        let (tree, patterns, model) = simulated(seed, taxa, sites, text);
        let found = search(&patterns, &model, seed).run(&mut ()).unwrap();
        assert_eq!(Splits::new(&tree).distance(&Splits::new(&found.tree)), 0, "seed {seed}");
        let alpha = found.models[0].alpha.unwrap();
        assert!((0.5..1.0).contains(&alpha), "alpha {alpha}");
        if taxa == 20 {
            let rates = &found.models[0].exchangeabilities;
            for (rate, truth) in rates.iter().zip([1.0, 4.0, 0.5, 0.7, 6.0, 1.0]) {
                assert!((rate / truth - 1.0).abs() < 0.4, "{rates:?}");
            }
        }
    }
}

#[test]
fn small_trees_need_no_search() {
    for taxa in [3, 4, 5] {
        let (tree, patterns, model) = simulated(9, taxa, 2000, GTR);
        let found = search(&patterns, &model, 0).run(&mut ()).unwrap();
        assert_eq!(Splits::new(&tree).distance(&Splits::new(&found.tree)), 0);
    }
}

/// Of many taxa with few sites the tree of parsimony is one start among several, what they find is fused, and what was
/// interrupted on the way ends with the same bits.
#[test]
fn weak_signals_are_searched_from_several_trees() {
    let (tree, patterns, model) = simulated(6, 100, 60, GTR);
    let data = [(&patterns, &model)];
    assert_eq!(Signal::of(&[&patterns]), Signal::Weak);
    let options = Options { starts: 1, local_shakes: 2, gain: 0.1, ..options() };
    let first = |tree: &Tree| {
        Search::from_tree(&data, Branches::Linked, options.clone(), Isa::detect(), tree.clone(), 5, Box::new(Host))
    };
    let start = Parsimony::new(&[&patterns]).start_tree(&mut Random::new(3, Purpose::Start, 0), 1);
    let mut all = Until(usize::MAX, vec![]);
    let whole = first(&start).run(&mut all).unwrap();
    // No worse than where the truth leads by itself.
    let alone = Options { starts: 0, local_shakes: 0, ..options.clone() };
    let truth = Search::from_tree(&data, Branches::Linked, alone, Isa::detect(), tree, 5, Box::new(Host));
    let truth = truth.run(&mut ()).unwrap().log_likelihood;
    assert!(whole.log_likelihood > truth - 0.5, "{} {truth}", whole.log_likelihood);
    for stage in [Stage::Join, Stage::Fast, Stage::Shake] {
        let state = all.1.iter().rfind(|state| state.stage == stage).unwrap().clone();
        let go_on = Search::from_state(&data, Branches::Linked, options.clone(), Isa::detect(), state, Box::new(Host));
        assert_eq!(go_on.run(&mut ()).as_ref(), Some(&whole), "{stage:?}");
    }
}

/// A fast search of clear data finds the tree, and so do two ways that end at it, without the later stages.
#[test]
fn what_is_clear_is_found_early() {
    let (tree, patterns, model) = simulated(7, 10, 8000, GTR);
    let data = [(&patterns, &model)];
    assert_eq!(Signal::of(&[&patterns]), Signal::Abundant);
    for options in [Options::fast(), Options::default()] {
        let mut random = Random::new(3, Purpose::Start, 0);
        let search = Search::new(&data, Branches::Linked, options, Isa::detect(), &mut random, Box::new(Host));
        let mut all = Until(usize::MAX, vec![]);
        let found = search.run(&mut all).unwrap();
        assert_eq!(Splits::new(&tree).distance(&Splits::new(&found.tree)), 0);
        assert!(all.1.iter().all(|state| ![Stage::Thorough, Stage::Shake].contains(&state.stage)));
    }
}

struct Until(usize, Vec<State>);

impl Progress for Until {
    fn round(&mut self, state: &State) -> ControlFlow<()> {
        self.1.push(state.clone());
        if self.1.len() > self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_search_that_goes_on_ends_with_the_same_bits() {
    let (_, patterns, model) = simulated(4, 14, 300, GTR);
    let mut all = Until(usize::MAX, vec![]);
    let whole = search(&patterns, &model, 1).run(&mut all).unwrap();
    let mut values: Vec<f64> = all.1.iter().map(|s| s.log_likelihood).collect();
    values.dedup_by(|b, a| *b >= *a - 1e-6);
    assert_eq!(values.len(), 1, "the log-likelihood fell: {values:?}");
    assert_eq!(all.1.last().unwrap().stage, Stage::Done);
    for stop in 0..all.1.len() - 1 {
        let mut until = Until(stop, vec![]);
        assert_eq!(search(&patterns, &model, 1).run(&mut until), None);
        let text = until.1[stop].to_text();
        let start = State { stage: Stage::Start, ..all.1[0].clone() };
        let state = State::from_text(&text, &start).unwrap();
        assert_eq!(state, until.1[stop]);
        let data = [(&patterns, &model)];
        let go_on = Search::from_state(&data, Branches::Linked, options(), Isa::detect(), state, Box::new(Host));
        assert_eq!(go_on.run(&mut ()).as_ref(), Some(&whole), "stopped after round {stop}");
        // Damage is refused, wherever it is.
        for end in (0..text.len() - 1).step_by(97) {
            State::from_text(&text[..end], &start).unwrap_err();
        }
    }
}

/// Where a single climb often ends too early, a replicate is climbed until its best end is met again: what it finds is never
/// below the first climb's, and above it now and then. Who goes on from any state ends with the same bits.
#[test]
fn replicates_are_climbed_until_the_best_end_is_met_again() {
    let (mut better, mut again) = (0, 0);
    for seed in 0..6 {
        let (_, patterns, model) = simulated(40 + seed, 24, 80, GTR);
        let data = [(&patterns, &model)];
        let begin = |climbs| {
            let mut random = Random::new(3, Purpose::Replicate, seed);
            let options = Options { climbs, ..Options::replicate() };
            Search::new(&data, Branches::Linked, options, Isa::detect(), &mut random, Box::new(Host))
        };
        let once = begin(0).run(&mut ()).unwrap();
        let mut all = Until(usize::MAX, vec![]);
        let found = begin(4).run(&mut all).unwrap();
        assert!(found.log_likelihood > once.log_likelihood - 0.05, "{} {}", found.log_likelihood, once.log_likelihood);
        better += usize::from(found.log_likelihood > once.log_likelihood + 0.1);
        for state in all.1.iter().filter(|state| state.stage == Stage::Again) {
            again += 1;
            let text = state.to_text();
            let start = State { stage: Stage::Start, ..all.1[0].clone() };
            let state = State::from_text(&text, &start).unwrap();
            let options = Options { climbs: 4, ..Options::replicate() };
            let go_on =
                Search::from_state(&data, Branches::Linked, options.clone(), Isa::detect(), state, Box::new(Host));
            assert_eq!(go_on.run(&mut ()).as_ref(), Some(&found));
        }
    }
    assert!(better > 0 && again > 6, "{better} better, {again} climbs");
}

/// Of proteins the transition matrices are shared out, too.
#[test]
fn results_do_not_depend_on_who_computes() {
    for (sites, model) in [(700, GTR), (60, "LG+G4{0.7}")] {
        let (_, patterns, model) = simulated(5, 6, sites, model);
        assert!(patterns.len() > chunk_patterns(model.states), "several chunks are wanted");
        let alone = search(&patterns, &model, 2).run(&mut ()).unwrap();
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let mut random = Random::new(3, Purpose::Start, 2);
            let data = [(&patterns, &model)];
            let search = Search::new(&data, Branches::Linked, options(), isa, &mut random, Box::new(Host));
            assert_eq!(search.run(&mut ()).unwrap(), alone, "{isa}");
        }
        for policy in ["edtlp", "llp:2"] {
            let on_strand = |strand: &Strand<'_>| -> SearchResult {
                let mut random = Random::new(3, Purpose::Start, 2);
                let data = [(&patterns, &model)];
                let offload = Box::new(OnStrand(strand));
                let search = Search::new(&data, Branches::Linked, options(), Isa::detect(), &mut random, offload);
                search.run(&mut ()).unwrap()
            };
            let policy = policy.parse().unwrap();
            let options = SchedulerOptions { policy, workers: 2, throttle: false, ..Default::default() };
            let outcome = Scheduler::new(options).unwrap().run(vec![on_strand; 2]).unwrap();
            assert!(outcome.results.iter().all(|r| *r == alone), "{policy}");
            let shared = outcome.statistics.on_teams > 0;
            assert_eq!(shared, policy == Policy::Llp { workers_per_loop: 2 }, "{:?}", outcome.statistics);
        }
    }
}

/// The host with room for the fewest vectors.
struct Little;

impl Offload for Little {
    fn chunks(&self, chunks: usize, work: usize, body: &(dyn Fn(usize) + Sync)) {
        Host.chunks(chunks, work, body);
    }

    fn vectors(&self) -> usize {
        0
    }
}

#[test]
fn little_memory_finds_the_same() {
    for sites in [60, 600] {
        let (_, patterns, model) = simulated(8, 30, sites, GTR);
        let found = search(&patterns, &model, 1).run(&mut ()).unwrap();
        let mut random = Random::new(3, Purpose::Start, 1);
        let data = [(&patterns, &model)];
        let little = Search::new(&data, Branches::Linked, options(), Isa::detect(), &mut random, Box::new(Little));
        assert_eq!(little.run(&mut ()).unwrap(), found, "{sites} sites");
    }
}

#[test]
fn a_real_alignment_reaches_what_others_reach() {
    let Some(folder) = support::data() else { return };
    let (a, _) = read_alignment(&folder.join("primates12.phy"), Format::Auto, u64::MAX).unwrap();
    let spec = ModelSpec::parse("GTR+F+G4").unwrap();
    let patterns = Patterns::new(&a, 0..a.sites(), spec.data_type);
    let found = search(&patterns, &spec.model(&patterns), 0).run(&mut ()).unwrap();
    assert!(found.log_likelihood > -5719.3717 - 0.1, "{}", found.log_likelihood);
}
