//! Real data where they are, and a plain reference for log-likelihoods: Felsenstein's pruning, one site pattern at a
//! time, with no scaling but per node, in double precision.

#![allow(dead_code)]

pub(crate) mod program;

use multigrain_phylo::alignment::Patterns;
use multigrain_phylo::model::Model;
use std::path::PathBuf;

/// The folder of real alignments, or `None` (said on the way) where there is none.
pub(crate) fn data() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/phylo");
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return None;
    }
    Some(folder)
}

/// A node of a rooted or unrooted tree as Newick writes it.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) length: f64,
    pub(crate) children: Vec<Node>,
}

/// Reads Newick that is known to be right.
pub(crate) fn newick(text: &str) -> Node {
    fn node(text: &[u8], at: &mut usize) -> Node {
        let mut children = Vec::new();
        if text[*at] == b'(' {
            while text[*at] != b')' {
                *at += 1;
                children.push(node(text, at));
            }
            *at += 1;
        }
        let mut word = |stop: &[u8]| {
            let start = *at;
            while !stop.contains(&text[*at]) {
                *at += 1;
            }
            String::from_utf8(text[start..*at].to_vec()).unwrap()
        };
        let name = word(b":,();");
        let length = word(b",();").trim_start_matches(':').parse().unwrap_or(0.0);
        Node { name, length, children }
    }
    let text: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    node(&text, &mut 0)
}

/// The log-likelihood of the tree.
pub(crate) fn log_likelihood(tree: &Node, names: &[String], patterns: &Patterns, model: &Model) -> f64 {
    let n = model.states;
    let eigen = model.eigen();
    let rates = model.rates();
    // partial[pattern][category][state] with the logarithm of what was divided out of it
    type Partial = Vec<(Vec<f64>, f64)>;
    fn visit(
        node: &Node,
        names: &[String],
        patterns: &Patterns,
        n: usize,
        rates: &[f64],
        p: &dyn Fn(f64) -> Vec<f64>,
    ) -> Partial {
        if node.children.is_empty() {
            let taxon = names.iter().position(|x| *x == node.name).unwrap_or_else(|| panic!("no taxon {}", node.name));
            let masks = patterns.data_type.masks();
            let one = |code: u8| (0..n * rates.len()).map(|i| f64::from(masks[code as usize] >> (i % n) & 1)).collect();
            return patterns.tips[taxon].iter().map(|&c| (one(c), 0.0)).collect();
        }
        let mut product: Partial = vec![(vec![1.0; n * rates.len()], 0.0); patterns.len()];
        for child in &node.children {
            let below = visit(child, names, patterns, n, rates, p);
            for (c, rate) in rates.iter().enumerate() {
                let matrix = p(child.length * rate);
                for (own, below) in product.iter_mut().zip(&below) {
                    for i in 0..n {
                        own.0[c * n + i] *= (0..n).map(|j| matrix[i * n + j] * below.0[c * n + j]).sum::<f64>();
                    }
                }
            }
            for (own, below) in product.iter_mut().zip(&below) {
                let most = own.0.iter().copied().fold(0.0, f64::max);
                own.0.iter_mut().for_each(|x| *x /= most);
                own.1 += below.1 + most.ln();
            }
        }
        product
    }
    let root = visit(tree, names, patterns, n, &rates, &|t| eigen.transition(t));
    let invariant = patterns.invariant_masks();
    let weights = model.category_weights();
    let mut sum = 0.0;
    for (p, (partial, scale)) in root.iter().enumerate() {
        let weight = |i: usize| model.frequencies[i % n] * weights[i / n];
        let variable: f64 = (0..partial.len()).map(|i| partial[i] * weight(i)).sum();
        let fixed: f64 = (0..n).filter(|s| invariant[p] >> s & 1 == 1).map(|s| model.frequencies[s]).sum();
        let fixed = fixed * model.pinv.unwrap_or(0.0);
        let log = match fixed == 0.0 {
            true => variable.ln() + scale,
            false => (variable * scale.exp() + fixed).ln(),
        };
        sum += f64::from(patterns.weights[p]) * log;
    }
    sum
}

/// The number after `"key":` in JSON.
pub(crate) fn number(json: &str, key: &str) -> f64 {
    let at = json.find(&format!("\"{key}\"")).unwrap_or_else(|| panic!("no {key}"));
    let rest = json[at..].split_once(':').unwrap().1.trim_start();
    rest[..rest.find([',', '\n', '}']).unwrap()].trim().parse().unwrap()
}

/// The string after `"key":` in JSON.
pub(crate) fn string<'a>(json: &'a str, key: &str) -> &'a str {
    let at = json.find(&format!("\"{key}\"")).unwrap_or_else(|| panic!("no {key}"));
    json[at..].split_once(':').unwrap().1.split('"').nth(1).unwrap()
}
