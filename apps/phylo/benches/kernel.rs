//! How fast conditional likelihood vectors are computed with each instruction set: nanoseconds for a pattern and node
//! with four rate categories, one thread.
//!
//! `cargo bench -p multigrain-phylo --bench kernel`

use multigrain_phylo::alignment::{Alignment, DataType, Patterns};
use multigrain_phylo::likelihood::{Host, Likelihood};
use multigrain_phylo::model::ModelSpec;
use multigrain_phylo::partition::Branches;
use multigrain_phylo::random::{Purpose, Random};
use multigrain_phylo::tree::{Newick, Tree};
use multigrain_simd::Isa;
use std::time::Instant;

/// Taxa of the balanced tree: half of its inner nodes join two tips, the others two inner nodes.
const TAXA: usize = 64;
/// Many short turns: the best of them was not interrupted.
const TURNS: usize = 200;
const TRAVERSALS: usize = 1;

fn balanced(from: usize, count: usize) -> String {
    if count == 1 {
        return format!("t{from}:0.1");
    }
    let half = count / 2;
    format!("({},{}):0.1", balanced(from, half), balanced(from + half, half))
}

fn main() {
    for (text, sites) in
        [("GTR{1/4/1/1/4/1}+FE+G4{0.5}", 256), ("GTR{1/4/1/1/4/1}+FE+G4{0.5}", 1130), ("LG+G4{0.5}", 292)]
    {
        let spec = ModelSpec::parse(text).expect("a model");
        let data = spec.data_type;
        let mut random = Random::new(1, Purpose::Resample, 0);
        let letter = |random: &mut Random| data.letters()[random.below(data.states() as u64) as usize];
        let rows = (0..TAXA).map(|_| (0..sites).map(|_| letter(&mut random)).collect()).collect();
        let alignment = Alignment { names: (0..TAXA).map(|t| format!("t{t}")).collect(), rows };
        let patterns = Patterns::new(&alignment, 0..sites, data);
        let model = spec.model(&patterns);
        let newick = Newick::parse(&format!("{};", balanced(0, TAXA).trim_end_matches(":0.1"))).expect("a tree");
        let tree = Tree::from_newick(&newick, &alignment.names, None).expect("all taxa");
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
            let place = Box::new(Host);
            let mut likelihood = Likelihood::new(&[(&patterns, &model)], Branches::Linked, tree.clone(), isa, place);
            let mut seconds: Vec<f64> = (0..TURNS)
                .map(|_| {
                    let begin = Instant::now();
                    for _ in 0..TRAVERSALS {
                        likelihood.invalidate();
                        std::hint::black_box(likelihood.log_likelihood());
                    }
                    begin.elapsed().as_secs_f64() / TRAVERSALS as f64
                })
                .collect();
            seconds.sort_by(f64::total_cmp);
            let each = (TAXA - 2) * patterns.len();
            let kind = if data == DataType::Dna { "DNA" } else { "protein" };
            let ns = |s: f64| s * 1e9 / each as f64;
            println!(
                "{kind:7} {:5} patterns, {isa:7}: {:8.2} ns at best, {:8.2} ns median (whole traversal, matrices and sum included)",
                patterns.len(),
                ns(seconds[0]),
                ns(seconds[TURNS / 2])
            );
        }
    }
}
