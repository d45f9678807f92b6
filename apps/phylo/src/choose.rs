//! The choice of a model: candidates are fitted on one tree, and compared by an information criterion.
//!
//! How rates vary over sites and which matrix is best hardly depend on each other, so not every pair of the two is fitted:
//! the ways of rates are tried with one matrix, all matrices with the best of them, the ways of rates with the best three
//! matrices, and so on until nothing new is best. Where all sites vary, none is tried with
//! invariant sites, and of binary data, or where it is asked for, each with and without the correction for sites that were taken
//! because they vary (+ASC). Frequencies that are fitted
//! (+FO) count as many parameters as those that are counted in the data (+F) and never fit worse, so with all candidates they
//! would always be chosen: they are tried, with the best matrices, where they are asked for. Free rates get one category more as long as that pays. ModelFinder
//! (Kalyaanamoorthy and others 2017) fits the same candidates, and all pairs.

use crate::alignment::{DataType, Patterns};
use crate::likelihood::{Likelihood, Offload, Precision};
use crate::model::{Model, ModelSpec};
use crate::partition::Branches;
use crate::tree::Tree;
use multigrain_simd::Isa;

/// What a model is chosen by: the smallest value is best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Criterion {
    /// Bayesian
    Bic,
    /// Akaike's
    Aic,
    /// Akaike's for few sites
    Aicc,
}

impl std::fmt::Display for Criterion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Criterion::Bic => "BIC",
            Criterion::Aic => "AIC",
            Criterion::Aicc => "AICc",
        })
    }
}

impl Criterion {
    /// Its value for a log-likelihood that was reached with so many free parameters on so many sites. AICc is infinite where
    /// there are not more sites than parameters.
    pub fn of(self, log_likelihood: f64, parameters: usize, sites: usize) -> f64 {
        let (k, n) = (parameters as f64, sites as f64);
        let deviance = -2.0 * log_likelihood;
        match self {
            Criterion::Bic => deviance + k * n.ln(),
            Criterion::Aic => deviance + 2.0 * k,
            Criterion::Aicc if n > k + 1.0 => deviance + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0),
            Criterion::Aicc => f64::INFINITY,
        }
    }
}

/// A candidate as it was fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What it is, as a model string.
    pub name: String,
    /// Its log-likelihood.
    pub log_likelihood: f64,
    /// Free parameters, those of branches included.
    pub parameters: usize,
    /// The value of the criterion.
    pub value: f64,
    /// With its fitted values.
    pub model: Model,
}

/// Candidates that are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Besides {
    /// Frequencies that are fitted (+FO), with the best matrices.
    pub fitted: bool,
    /// The correction for sites that were taken because they vary (+ASC), where all do.
    pub ascertained: bool,
}

impl Besides {
    /// Of `auto`, `auto+FO`, `auto+ASC`, `auto+FO+ASC` in any order and case; `None`: nothing is to be chosen.
    pub fn parse(typed: &str) -> Option<Besides> {
        let mut words = typed.split('+');
        let is = |word: &str, name: &str| word.eq_ignore_ascii_case(name);
        words.next().filter(|word| is(word, "auto"))?;
        let mut besides = Besides::default();
        for word in words {
            match word {
                _ if is(word, "FO") => besides.fitted = true,
                _ if is(word, "ASC") => besides.ascertained = true,
                _ => return None,
            }
        }
        Some(besides)
    }
}

impl std::fmt::Display for Besides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = [(self.fitted, "+FO"), (self.ascertained, "+ASC")];
        words.into_iter().filter(|(is_asked, _)| *is_asked).try_for_each(|(_, word)| f.write_str(word))
    }
}

/// What candidates of a partition are fitted to.
pub struct Question<'a> {
    /// The data.
    pub patterns: &'a Patterns,
    /// A tree with one set of lengths.
    pub tree: &'a Tree,
    /// Whether lengths are fitted with each candidate; otherwise they are held, and the speed is fitted if `speed` is set.
    pub lengths: bool,
    /// Candidates have a speed.
    pub speed: bool,
    /// Branches that count as parameters.
    pub branches: usize,
    /// Sites that count.
    pub sites: usize,
    /// What they are compared by.
    pub criterion: Criterion,
    /// What is tried besides.
    pub besides: Besides,
}

/// A fit that would gain less log-likelihood is not gone on with.
const GAIN: f64 = 0.01;
/// The matrices that are tried with all ways of rates.
const MATRICES_AHEAD: usize = 3;
/// No more free rates than this.
pub(crate) const CATEGORIES_MOST: usize = 10;

/// Matrices of a kind of data, with their frequencies.
fn matrices(data_type: DataType) -> Vec<String> {
    let names = ModelSpec::names(data_type);
    match data_type {
        DataType::Dna | DataType::Binary => {
            names.into_iter().map(|(name, equal)| if equal { name.to_owned() } else { format!("{name}+F") }).collect()
        }
        DataType::Protein => names.into_iter().flat_map(|(name, _)| [name.to_owned(), format!("{name}+F")]).collect(),
    }
}

/// The matrix that ways of rates are tried with first.
fn first(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Binary => "BIN+F",
        DataType::Dna => "GTR+F",
        DataType::Protein => "LG",
    }
}

struct Choosing<'a, 'o> {
    question: &'a Question<'a>,
    likelihood: Likelihood<'o>,
    offload: &'a dyn Fn() -> Box<dyn Offload + 'o>,
    /// Every site has more than one letter.
    all_vary: bool,
    tried: Vec<Candidate>,
}

/// All candidates that were fitted, the best first; `offload` is asked for once for each number of categories.
pub fn choose<'o>(question: &Question<'_>, offload: &dyn Fn() -> Box<dyn Offload + 'o>) -> Vec<Candidate> {
    let data_type = question.patterns.data_type;
    let start = spec(question, first(data_type), "+G4").model(question.patterns);
    let likelihood = likelihood(question, &start, question.tree.clone(), offload());
    let all_vary = question.patterns.invariant_masks().iter().all(|&mask| mask == 0);
    let mut choosing = Choosing { question, likelihood, offload, all_vary, tried: vec![] };
    choosing.try_rates(first(data_type));
    loop {
        let before = choosing.tried.len();
        let (_, rates) = parts(&choosing.best().name);
        for matrix in matrices(data_type) {
            choosing.try_pair(&matrix, &rates);
        }
        let mut ahead: Vec<String> = Vec::new();
        choosing.sort();
        for candidate in &choosing.tried {
            let (matrix, _) = parts(&candidate.name);
            if ahead.len() < MATRICES_AHEAD && !ahead.contains(&matrix) {
                ahead.push(matrix);
            }
        }
        if question.besides.fitted {
            let counted = ahead.iter().filter(|matrix| !matrix.ends_with("+FO") && is_free(data_type, matrix));
            let fitted: Vec<String> = counted.map(|matrix| format!("{}+FO", matrix.trim_end_matches("+F"))).collect();
            for matrix in &fitted {
                choosing.try_pair(matrix, &rates);
            }
        }
        ahead.iter().for_each(|matrix| choosing.try_rates(matrix));
        if choosing.tried.len() == before {
            choosing.sort();
            return choosing.tried;
        }
    }
}

/// Whether a matrix may have other frequencies than equal ones.
fn is_free(data_type: DataType, matrix: &str) -> bool {
    let own = matrix.split('+').next().unwrap_or(matrix);
    ModelSpec::names(data_type).into_iter().any(|(name, equal)| name == own && !equal)
}

/// Matrix with frequencies, and the way of rates.
fn parts(name: &str) -> (String, String) {
    let words: Vec<&str> = name.split('+').collect();
    let matrix = if words.get(1).is_some_and(|word| ["F", "FO"].contains(word)) { 2 } else { 1 };
    let rates: String = words[matrix..].iter().map(|word| format!("+{word}")).collect();
    (words[..matrix].join("+"), rates)
}

fn spec(question: &Question<'_>, matrix: &str, rates: &str) -> ModelSpec {
    let speed = if question.speed { "+B" } else { "" };
    ModelSpec::parse(&format!("{matrix}{rates}{speed}")).expect("a candidate is a model")
}

fn likelihood<'o>(
    question: &Question<'_>,
    model: &Model,
    tree: Tree,
    offload: Box<dyn Offload + 'o>,
) -> Likelihood<'o> {
    Likelihood::new(&[(question.patterns, model)], Branches::Linked, tree, Isa::detect(), offload)
}

impl Choosing<'_, '_> {
    fn sort(&mut self) {
        self.tried.sort_by(|a, b| a.value.total_cmp(&b.value));
    }

    fn best(&self) -> &Candidate {
        self.tried.iter().min_by(|a, b| a.value.total_cmp(&b.value)).expect("candidates were tried")
    }

    fn known(&self, name: &str) -> Option<&Candidate> {
        self.tried.iter().find(|candidate| candidate.name == name)
    }

    /// All ways of rates with a matrix.
    fn try_rates(&mut self, matrix: &str) {
        let is_corrected = self.question.besides.ascertained || self.question.patterns.data_type == DataType::Binary;
        let (ways, corrections): (&[&str], &[&str]) = match self.all_vary {
            true if is_corrected => (&["+G4", ""], &["", "+ASC"]),
            true => (&["+G4", ""], &[""]),
            false => (&["+G4", "", "+I", "+I+G4"], &[""]),
        };
        for correction in corrections {
            for rates in ways {
                self.try_pair(matrix, &format!("{rates}{correction}"));
            }
            let mut fewer = f64::INFINITY;
            for categories in 2..=CATEGORIES_MOST {
                let value = self.try_pair(matrix, &format!("+R{categories}{correction}"));
                if value >= fewer {
                    break;
                }
                fewer = value;
            }
        }
    }

    /// Fits a candidate unless that was done; gives its value.
    fn try_pair(&mut self, matrix: &str, rates: &str) -> f64 {
        let name = format!("{matrix}{rates}");
        if let Some(candidate) = self.known(&name) {
            return candidate.value;
        }
        let spec = spec(self.question, matrix, rates);
        let mut best: Option<(f64, Model)> = None;
        for start in self.starts(&spec, matrix) {
            let fitted = self.fit(start);
            if best.as_ref().is_none_or(|best| fitted.0 > best.0) {
                best = Some(fitted);
            }
        }
        let Some((log_likelihood, model)) = best else { return f64::INFINITY };
        let lengths = if self.question.lengths { self.question.branches } else { 0 };
        let parameters = model.free_parameters() + lengths;
        let value = self.question.criterion.of(log_likelihood, parameters, self.question.sites);
        self.tried.push(Candidate { name, log_likelihood, parameters, value, model });
        value
    }

    /// The model with values that were found for others: exchangeabilities and rates. Free rates begin with those of one
    /// category less, of which the most probable is cut, and with those of the gamma distribution.
    fn starts(&self, spec: &ModelSpec, matrix: &str) -> Vec<Model> {
        let mut start = spec.model(self.question.patterns);
        let fitted: Vec<&Model> = self.tried.iter().map(|candidate| &candidate.model).collect();
        let same = self.tried.iter().filter(|candidate| parts(&candidate.name).0 == matrix).map(|c| &c.model);
        if let Some(full) = same.chain(fitted.iter().copied().filter(|m| m.name == "GTR")).next() {
            let classes = start.free.exchangeabilities.clone();
            for (i, class) in classes.iter().enumerate() {
                let of_class = || (0..classes.len()).filter(|&j| classes[j] == *class);
                let logs = of_class().map(|j| full.exchangeabilities[j].max(1e-3).ln());
                start.exchangeabilities[i] = (logs.sum::<f64>() / of_class().count() as f64).exp();
            }
            if let Some(&unit) = start.exchangeabilities.last().filter(|_| !classes.is_empty()) {
                start.exchangeabilities.iter_mut().for_each(|r| *r /= unit);
            }
        }
        if start.free.alpha {
            let alpha = fitted.iter().filter(|m| m.pinv.is_some() == start.pinv.is_some()).find_map(|m| m.alpha);
            start.alpha = alpha.or(start.alpha);
        }
        if !start.free.free_rates {
            return vec![start];
        }
        let correction = if start.is_ascertained { "+ASC" } else { "" };
        let fewer = format!("{matrix}+R{}{correction}", start.categories - 1);
        let equal = fitted.iter().find(|m| m.free_rates.len() == start.categories).map(|m| m.free_rates.clone());
        let mut starts = vec![start.clone()];
        starts.extend(equal.map(|free_rates| Model { free_rates, ..start.clone() }));
        if let Some(candidate) = self.known(&fewer) {
            let mut free = candidate.model.free_rates.clone();
            let most = (0..free.len()).max_by(|&a, &b| free[a][0].total_cmp(&free[b][0])).unwrap_or(0);
            let [weight, rate] = free[most];
            free[most] = [0.5 * weight, 0.5 * rate];
            free.push([0.5 * weight, 1.5 * rate]);
            starts.push(Model { free_rates: free, ..start });
        }
        starts
    }

    fn fit(&mut self, start: Model) -> (f64, Model) {
        // Data are laid out by categories, and with the constant patterns where sites vary.
        let now = &self.likelihood.models()[0];
        if (now.categories, now.is_ascertained) != (start.categories, start.is_ascertained) {
            let tree = self.likelihood.tree().clone();
            self.likelihood = likelihood(self.question, &start, tree, (self.offload)());
        } else {
            self.likelihood.set_model(0, start);
        }
        let value = match self.question.lengths {
            true => {
                self.likelihood.optimize_all(GAIN);
                self.likelihood.smooth(4, GAIN, Precision::COARSE)
            }
            false => self.likelihood.optimize_models(GAIN),
        };
        (value, self.likelihood.models()[0].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matrix_and_rates() {
        assert_eq!(parts("GTR+F+I+G4"), ("GTR+F".to_owned(), "+I+G4".to_owned()));
        assert_eq!(Besides::parse("Auto+asc+FO").unwrap().to_string(), "+FO+ASC");
        assert_eq!((Besides::parse("auto"), Besides::parse("auto+G")), (Some(Besides::default()), None));
        assert_eq!(parts("GTR+FO+R2+ASC"), ("GTR+FO".to_owned(), "+R2+ASC".to_owned()));
        assert!(is_free(DataType::Dna, "GTR+F") && !is_free(DataType::Dna, "JC") && is_free(DataType::Protein, "LG"));
        assert_eq!(parts("JC"), ("JC".to_owned(), String::new()));
        assert_eq!(parts("LG+R5"), ("LG".to_owned(), "+R5".to_owned()));
        for data_type in [DataType::Binary, DataType::Dna, DataType::Protein] {
            for matrix in matrices(data_type) {
                assert_eq!(ModelSpec::parse(&format!("{matrix}+I+G4")).unwrap().data_type, data_type, "{matrix}");
                assert_eq!(parts(&format!("{matrix}+R3")), (matrix, "+R3".to_owned()));
            }
        }
    }

    #[test]
    fn criteria_count_parameters() {
        assert!((Criterion::Bic.of(-100.0, 3, 50) - (200.0 + 3.0 * 50f64.ln())).abs() < 1e-12);
        assert_eq!(Criterion::Aic.of(-100.0, 3, 50), 206.0);
        assert!((Criterion::Aicc.of(-100.0, 3, 50) - (206.0 + 24.0 / 46.0)).abs() < 1e-12);
        assert_eq!(Criterion::Aicc.of(-100.0, 3, 4), f64::INFINITY);
    }
}
