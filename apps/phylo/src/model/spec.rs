//! Model strings in RAxML-NG's syntax.
//!
//! ```text
//! GTR+F+G4                            empirical frequencies, gamma with four categories
//! GTR{AC/AG/AT/CG/CT/GT}+FU{A/C/G/T}+G4m{alpha}    everything given
//! HKY{1/4.2}+FO+IU{0.2}+G4            classes of exchangeabilities in their order; frequencies fitted
//! HKY+F+R3{0.1/0.9/2.5}{0.5/0.3/0.2}  free rates and their probabilities; +R3: fitted
//! GTR+F+G4+B{1.7}                     of a partition: its speed relative to the branch lengths; +B: fitted
//! LG+G4, WAG+F+I+G8{0.5}
//! BIN+F+G4+ASC                        binary data; sites that were taken because they vary (Lewis 2001)
//! ```
//!
//! Values may be separated by `/` or `,`. What is given is held; what is not is fitted. Frequencies: `+F`, `+FC`
//! counted in the data; `+FO` fitted; `+FE` equal; `+FU{...}` or `+F{...}` given. Without any of these, models of
//! nucleotides with unequal frequencies have them fitted, protein models have their published ones.

use super::protein::Matrix;
use super::{Free, Model, bounds, mean_rates};
use crate::alignment::{DataType, Patterns};
use crate::error::Error;

/// Where the frequencies come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Frequencies {
    /// All equal.
    Equal,
    /// Published with the exchangeabilities.
    Published,
    /// Counted in the data.
    Empirical,
    /// Fitted.
    Fitted,
    /// Given, sum 1.
    Given(Vec<f64>),
}

/// How the share of invariant sites is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Invariant {
    /// Fitted.
    Fitted,
    /// The share of sites that could be invariant.
    Empirical,
    /// Given.
    Given(f64),
}

/// What a model string says. With data it becomes a [`Model`].
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// Name of the matrix, such as `GTR`.
    pub name: String,
    /// Of which data.
    pub data_type: DataType,
    /// Class of each exchangeability of a nucleotide model; empty for protein models.
    classes: Vec<u8>,
    /// Given exchangeabilities, upper triangle by rows, the last 1.
    exchangeabilities: Option<Vec<f64>>,
    /// Where the frequencies come from.
    pub frequencies: Frequencies,
    /// Whether there are invariant sites.
    pub invariant: Option<Invariant>,
    /// Number of gamma categories and the shape if it is given.
    pub gamma: Option<(usize, Option<f64>)>,
    /// Number of categories of free rates, and their probabilities and rates if they are given.
    pub free_rates: Option<(usize, Option<Vec<[f64; 2]>>)>,
    /// Whether there is a speed relative to the branch lengths, and its value if it is given.
    pub speed: Option<Option<f64>>,
    /// Whether sites were taken because they vary.
    pub is_ascertained: bool,
}

/// Models of binary data: name, another name (IQ-TREE's), whether frequencies are equal.
const BINARY_MODELS: [(&str, &str, bool); 2] = [("JC2", "MK2", true), ("BIN", "GTR2", false)];

/// Nucleotide models: name, other names, classes of AC AG AT CG CT GT, whether frequencies are equal.
const NUCLEOTIDE_MODELS: [(&str, &[&str], &str, bool); 22] = [
    ("JC", &["JC69"], "000000", true),
    ("F81", &[], "000000", false),
    ("K80", &["K2P"], "010010", true),
    ("HKY", &["HKY85"], "010010", false),
    ("TN93ef", &["TNEF", "TNe"], "010020", true),
    ("TN93", &["TN"], "010020", false),
    ("K81", &["K3P"], "012210", true),
    ("K81uf", &["K3PU", "K81u", "K3Pu"], "012210", false),
    ("TPM2", &[], "010212", true),
    ("TPM2uf", &["TPM2u"], "010212", false),
    ("TPM3", &[], "012012", true),
    ("TPM3uf", &["TPM3u"], "012012", false),
    ("TIM1", &["TIMe", "TIM1e", "TIM1ef"], "012230", true),
    ("TIM1uf", &["TIM", "TIM1u"], "012230", false),
    ("TIM2", &["TIM2e", "TIM2ef"], "010232", true),
    ("TIM2uf", &["TIM2u"], "010232", false),
    ("TIM3", &["TIM3e", "TIM3ef"], "012032", true),
    ("TIM3uf", &["TIM3u"], "012032", false),
    ("TVMef", &["TVMe"], "012314", true),
    ("TVM", &[], "012314", false),
    ("SYM", &[], "012345", true),
    ("GTR", &["REV"], "012345", false),
];

/// More categories than this gain nothing.
const CATEGORIES_MAX: usize = 64;
/// More free rates cannot be told apart.
const FREE_RATES_MAX: usize = 20;
/// Free rates begin as those of a gamma distribution of this shape.
const FIRST_SHAPE: f64 = 0.5;

/// A part of a model string: its letters, and the numbers in braces behind them.
struct Part<'a> {
    word: &'a str,
    values: Option<Vec<f64>>,
    /// Those of a second pair of braces.
    more: Option<Vec<f64>>,
}

impl ModelSpec {
    /// Parses a model string. The error does not name a file: who read the string from one adds the place.
    pub fn parse(text: &str) -> Result<ModelSpec, Error> {
        let fail = |what: String| Error::request(format!("model {text:?}: {what}"));
        let mut parts = split(text).map_err(fail)?.into_iter();
        let first = parts.next().ok_or_else(|| fail("the name is missing".to_owned()))?;
        let mut spec = ModelSpec::named(first.word).ok_or_else(|| {
            let known: Vec<&str> =
                NUCLEOTIDE_MODELS.iter().map(|m| m.0).chain(Matrix::all().iter().map(|m| m.name)).collect();
            fail(format!("{:?} is none of {}", first.word, known.join(", ")))
        })?;
        if first.more.is_some() {
            return Err(fail(format!("{} has two pairs of braces", first.word)));
        }
        if let Some(values) = first.values {
            spec.give_exchangeabilities(values).map_err(fail)?;
        }
        let mut seen = Vec::new();
        for part in parts {
            let kind = spec.extend(&part).map_err(fail)?;
            if seen.contains(&kind) {
                return Err(fail(format!("a second +{kind}")));
            }
            seen.push(kind);
        }
        if spec.is_ascertained && spec.invariant.is_some() {
            return Err(fail("+ASC and +I: where all sites vary, none is invariant".to_owned()));
        }
        Ok(spec)
    }

    /// Names of all matrices of a kind of data, and whether their frequencies are all equal.
    pub fn names(data_type: DataType) -> Vec<(&'static str, bool)> {
        match data_type {
            DataType::Binary => BINARY_MODELS.iter().map(|(name, _, equal)| (*name, *equal)).collect(),
            DataType::Dna => NUCLEOTIDE_MODELS.iter().map(|(name, _, _, equal)| (*name, *equal)).collect(),
            DataType::Protein => Matrix::all().iter().map(|matrix| (matrix.name, false)).collect(),
        }
    }

    fn named(name: &str) -> Option<ModelSpec> {
        let same = |other: &&str| other.eq_ignore_ascii_case(name);
        let spec = |name: &str, data_type, classes, frequencies| ModelSpec {
            name: name.to_owned(),
            data_type,
            classes,
            exchangeabilities: None,
            frequencies,
            invariant: None,
            gamma: None,
            free_rates: None,
            speed: None,
            is_ascertained: false,
        };
        let binary = BINARY_MODELS.iter().find(|(n, other, _)| [n, other].into_iter().any(same));
        if let Some((name, _, equal)) = binary {
            let frequencies = if *equal { Frequencies::Equal } else { Frequencies::Fitted };
            return Some(spec(name, DataType::Binary, vec![], frequencies));
        }
        if let Some(matrix) = Matrix::named(name) {
            return Some(spec(matrix.name, DataType::Protein, vec![], Frequencies::Published));
        }
        let found = NUCLEOTIDE_MODELS.iter().find(|(n, others, _, _)| same(n) || others.iter().any(same));
        found.map(|(name, _, classes, equal)| {
            let classes = classes.bytes().map(|c| c - b'0').collect();
            let frequencies = if *equal { Frequencies::Equal } else { Frequencies::Fitted };
            spec(name, DataType::Dna, classes, frequencies)
        })
    }

    /// Values for classes, in the order of the classes; or for all six; or the one that is not the unit.
    fn give_exchangeabilities(&mut self, values: Vec<f64>) -> Result<(), String> {
        if self.classes.is_empty() {
            return Err(format!("{} has no exchangeabilities to be given: leave out the braces", self.name));
        }
        if let Some(bad) = values.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            return Err(format!("the exchangeability {bad} is not positive"));
        }
        let classes = usize::from(*self.classes.iter().max().unwrap_or(&0)) + 1;
        let all: Vec<f64> = match values.len() {
            6 => values,
            n if n == classes => self.classes.iter().map(|&c| values[c as usize]).collect(),
            1 if classes == 2 => self.classes.iter().map(|&c| if c == 1 { values[0] } else { 1.0 }).collect(),
            n => return Err(format!("{n} exchangeabilities for {}, which has {classes} classes of six", self.name)),
        };
        let unit = all[5];
        self.exchangeabilities = Some(all.iter().map(|v| v / unit).collect());
        Ok(())
    }

    /// Takes one part after the name and returns its kind.
    fn extend(&mut self, part: &Part) -> Result<&'static str, String> {
        let one = |what: &str| match part.values.as_deref() {
            None => Ok(None),
            Some([value]) => Ok(Some(*value)),
            Some(values) => Err(format!("{} values for {what}, which is one number", values.len())),
        };
        let word = part.word;
        if part.more.is_some() && !word.starts_with('R') {
            return Err(format!("+{word} has two pairs of braces"));
        }
        let valueless = |kind| match &part.values {
            None => Ok(kind),
            Some(_) => Err(format!("+{word} takes no values")),
        };
        match word.as_bytes() {
            b"F" | b"FC" | b"FU" => {
                self.frequencies = match (word, &part.values) {
                    ("F" | "FU", Some(values)) => Frequencies::Given(self.given_frequencies(values)?),
                    ("FU", None) => return Err("+FU needs frequencies in braces".to_owned()),
                    (_, None) => Frequencies::Empirical,
                    _ => return valueless("F"),
                };
                Ok("F")
            }
            b"FO" => {
                self.frequencies = Frequencies::Fitted;
                valueless("F")
            }
            b"FE" | b"FQ" => {
                self.frequencies = Frequencies::Equal;
                valueless("F")
            }
            [b'G', rest @ ..] => {
                let rest = std::str::from_utf8(rest).unwrap_or("");
                let digits = rest.trim_end_matches('m');
                let categories = if digits.is_empty() { Some(4) } else { digits.parse().ok() };
                let categories = categories.filter(|_| rest.len() - digits.len() <= 1).ok_or_else(|| {
                    format!("+{word}: gamma is +G, +G and a number of categories, or that and m (the mean of each)")
                })?;
                if !(1..=CATEGORIES_MAX).contains(&categories) {
                    return Err(format!("{categories} gamma categories: 1 to {CATEGORIES_MAX} are possible"));
                }
                let alpha = one("alpha")?;
                let (low, high) = (bounds::ALPHA.0, 1000.0);
                if let Some(alpha) = alpha.filter(|a| !(low..=high).contains(a)) {
                    return Err(format!("alpha {alpha} is not between {low} and {high}"));
                }
                self.gamma = Some((categories, alpha));
                self.one_distribution("G")
            }
            [b'R', rest @ ..] => {
                let digits = std::str::from_utf8(rest).unwrap_or("");
                let categories = if digits.is_empty() { Some(4) } else { digits.parse().ok() };
                let categories = categories.filter(|c| (2..=FREE_RATES_MAX).contains(c));
                let categories =
                    categories.ok_or_else(|| format!("+{word}: free rates are +R2 to +R{FREE_RATES_MAX}"))?;
                self.free_rates = Some((categories, given_rates(part, categories)?));
                self.one_distribution("R")
            }
            b"I" | b"IO" | b"IC" | b"IU" => {
                let share = one("the share of invariant sites")?;
                self.invariant = Some(match (word, share) {
                    ("I" | "IU", Some(p)) if (0.0..1.0).contains(&p) => Invariant::Given(p),
                    ("I" | "IU", Some(p)) => return Err(format!("a share of {p} invariant sites is not in [0, 1)")),
                    ("IU", None) => return Err("+IU needs the share in braces".to_owned()),
                    ("IC", None) => Invariant::Empirical,
                    (_, None) => Invariant::Fitted,
                    _ => return valueless("I"),
                });
                Ok("I")
            }
            b"B" => {
                let speed = one("the speed")?;
                let (low, high) = bounds::SPEED;
                if let Some(speed) = speed.filter(|s| !(low..=high).contains(s)) {
                    return Err(format!("a speed of {speed} is not between {low} and {high}"));
                }
                self.speed = Some(speed);
                Ok("B")
            }
            b"ASC" | b"ASC_LEWIS" => {
                self.is_ascertained = true;
                valueless("ASC")
            }
            _ => Err(format!("+{word} is not known: there are +F, +FC, +FO, +FE, +FU{{...}}, +I, +G, +R, +ASC and +B")),
        }
    }

    fn one_distribution(&self, kind: &'static str) -> Result<&'static str, String> {
        match self.gamma.is_some() && self.free_rates.is_some() {
            true => Err("+G and +R: rates follow a gamma distribution or none".to_owned()),
            false => Ok(kind),
        }
    }

    fn given_frequencies(&self, values: &[f64]) -> Result<Vec<f64>, String> {
        let states = self.data_type.states();
        if values.len() != states {
            return Err(format!("{} frequencies for {states} states of {}", values.len(), self.data_type));
        }
        if let Some(bad) = values.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            return Err(format!("the frequency {bad} is not positive"));
        }
        let total: f64 = values.iter().sum();
        if (total - 1.0).abs() > 0.01 {
            return Err(format!("the frequencies sum to {total}, not to 1"));
        }
        // Frequencies that sum to 1 stay as they were written, to the last bit.
        let exact = (total - 1.0).abs() < 1e-12;
        Ok(if exact { values.to_vec() } else { values.iter().map(|v| v / total).collect() })
    }

    /// What is to be fitted because no value was given: for `--fixed`, which allows nothing of that.
    pub fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if self.classes.iter().any(|&c| c > 0) && self.exchangeabilities.is_none() {
            missing.push("exchangeabilities ({...} after the name)");
        }
        if self.frequencies == Frequencies::Fitted {
            missing.push("frequencies (+FU{...}, or +F for empirical ones)");
        }
        if matches!(self.gamma, Some((_, None))) {
            missing.push("alpha (+G4{...})");
        }
        if matches!(self.free_rates, Some((_, None))) {
            missing.push("free rates (+R4{rates}{probabilities})");
        }
        if self.invariant == Some(Invariant::Fitted) {
            missing.push("the share of invariant sites (+IU{...})");
        }
        if self.speed == Some(None) {
            missing.push("speed (+B{...})");
        }
        missing
    }

    /// The model for these data, with values to start from where parameters are fitted.
    ///
    /// # Panics
    /// If the patterns are of another data type.
    pub fn model(&self, patterns: &Patterns) -> Model {
        assert_eq!(patterns.data_type, self.data_type, "model {} for other data", self.name);
        let states = self.data_type.states();
        let matrix = Matrix::named(&self.name);
        let unit = || matrix.map_or_else(|| vec![1.0; states * (states - 1) / 2], |m| m.exchangeabilities.clone());
        let frequencies = match &self.frequencies {
            Frequencies::Equal => vec![1.0 / states as f64; states],
            Frequencies::Published => matrix.map_or_else(|| patterns.frequencies(), |m| m.frequencies.clone()),
            Frequencies::Given(given) => given.clone(),
            Frequencies::Empirical => lifted(patterns.frequencies(), EMPIRICAL_MIN),
            Frequencies::Fitted => lifted(patterns.frequencies(), bounds::FREQUENCY.0),
        };
        let possible = || {
            let masks = patterns.invariant_masks();
            let sites: u64 =
                masks.iter().zip(&patterns.weights).filter(|(m, _)| **m != 0).map(|(_, &w)| u64::from(w)).sum();
            sites as f64 / patterns.sites().max(1) as f64
        };
        Model {
            name: self.name.clone(),
            states,
            exchangeabilities: self.exchangeabilities.clone().unwrap_or_else(unit),
            frequencies,
            alpha: self.gamma.map(|(_, alpha)| alpha.unwrap_or(1.0)),
            free_rates: self.free_rates.as_ref().map_or_else(Vec::new, |(categories, given)| {
                given.clone().unwrap_or_else(|| {
                    let rates = mean_rates(FIRST_SHAPE, *categories);
                    rates.into_iter().map(|rate| [1.0 / *categories as f64, rate]).collect()
                })
            }),
            categories: match &self.free_rates {
                Some((categories, _)) => *categories,
                None => self.gamma.map_or(1, |(categories, _)| categories),
            },
            pinv: self.invariant.map(|i| match i {
                Invariant::Given(share) => share,
                Invariant::Empirical => possible().min(bounds::PINV.1),
                Invariant::Fitted => 0.5 * possible().min(bounds::PINV.1),
            }),
            speed: self.speed.map(|speed| speed.unwrap_or(1.0)),
            is_ascertained: self.is_ascertained,
            free: Free {
                exchangeabilities: match self.exchangeabilities.is_none() && self.classes.iter().any(|&c| c > 0) {
                    true => self.classes.clone(),
                    false => vec![],
                },
                frequencies: self.frequencies == Frequencies::Fitted,
                counted_frequencies: self.frequencies == Frequencies::Empirical,
                alpha: matches!(self.gamma, Some((_, None))),
                free_rates: matches!(self.free_rates, Some((_, None))),
                pinv: self.invariant == Some(Invariant::Fitted),
                counted_pinv: self.invariant == Some(Invariant::Empirical),
                speed: self.speed == Some(None),
            },
        }
    }
}

/// Rates and their probabilities from two pairs of braces, as in RAxML-NG; the mean rate is made 1.
fn given_rates(part: &Part, categories: usize) -> Result<Option<Vec<[f64; 2]>>, String> {
    let word = part.word;
    let (rates, weights) = match (&part.values, &part.more) {
        (None, _) => return Ok(None),
        (Some(rates), Some(weights)) => (rates, weights),
        (Some(_), None) => return Err(format!("+{word} takes rates and their probabilities: +{word}{{...}}{{...}}")),
    };
    for (what, values) in [("rates", rates), ("probabilities", weights)] {
        if values.len() != categories || values.iter().any(|v| !(v.is_finite() && *v > 0.0)) {
            return Err(format!("+{word} takes {categories} positive {what}"));
        }
    }
    let total: f64 = weights.iter().sum();
    if (total - 1.0).abs() > 0.01 {
        return Err(format!("the probabilities of +{word} sum to {total}, not to 1"));
    }
    let mean: f64 = rates.iter().zip(weights).map(|(r, w)| r * w / total).sum();
    // What sums to 1 stays as it was written, to the last bit.
    let exact = |sum: f64| if (sum - 1.0).abs() < 1e-12 { 1.0 } else { sum };
    let (total, mean) = (exact(total), exact(mean));
    Ok(Some(rates.iter().zip(weights).map(|(r, w)| [w / total, r / mean]).collect()))
}

/// Frequencies of states that hardly occur are lifted to this, since with 0 a state could never be left or reached.
const EMPIRICAL_MIN: f64 = 1e-6;

fn lifted(mut frequencies: Vec<f64>, least: f64) -> Vec<f64> {
    if frequencies.iter().all(|&f| f >= least) {
        return frequencies;
    }
    frequencies.iter_mut().for_each(|f| *f = f.max(least));
    let total: f64 = frequencies.iter().sum();
    frequencies.iter().map(|f| f / total).collect()
}

/// The parts between `+`, each with its numbers.
fn split(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let end = rest.find(['+', '{']).unwrap_or(rest.len());
        let word = rest[..end].trim();
        if word.is_empty() {
            return Err(format!("a name is missing at {:?}", if rest.is_empty() { "the end" } else { rest }));
        }
        rest = &rest[end..];
        let mut braces = [None, None];
        for values in &mut braces {
            let Some(inner) = rest.strip_prefix('{') else { break };
            let close = inner.find('}').ok_or_else(|| format!("the brace after {word} is not closed"))?;
            let numbers = inner[..close].split(['/', ',']).map(|v| {
                v.trim().parse::<f64>().map_err(|_| format!("{:?} in the braces after {word} is no number", v.trim()))
            });
            *values = Some(numbers.collect::<Result<Vec<_>, _>>()?);
            rest = inner[close + 1..].trim_start();
        }
        let [values, more] = braces;
        parts.push(Part { word, values, more });
        match rest.strip_prefix('+') {
            Some(more) => rest = more,
            None if rest.is_empty() => return Ok(parts),
            None => return Err(format!("{rest:?} is not understood: parts are joined by +")),
        }
    }
}

impl std::fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let joined = |v: &[f64]| v.iter().map(|x| x.to_string()).collect::<Vec<_>>().join("/");
        f.write_str(&self.name)?;
        if let Some(given) = &self.exchangeabilities {
            write!(f, "{{{}}}", joined(given))?;
        }
        match &self.frequencies {
            own if ModelSpec::named(&self.name)
                .is_some_and(|m| m.frequencies == *own && *own != Frequencies::Fitted) => {}
            Frequencies::Equal => f.write_str("+FE")?,
            Frequencies::Published => {}
            Frequencies::Empirical => f.write_str("+FC")?,
            Frequencies::Fitted => f.write_str("+FO")?,
            Frequencies::Given(given) => write!(f, "+FU{{{}}}", joined(given))?,
        }
        match self.invariant {
            None => {}
            Some(Invariant::Fitted) => f.write_str("+I")?,
            Some(Invariant::Empirical) => f.write_str("+IC")?,
            Some(Invariant::Given(share)) => write!(f, "+IU{{{share}}}")?,
        }
        match self.gamma {
            None => {}
            Some((categories, None)) => write!(f, "+G{categories}m")?,
            Some((categories, Some(alpha))) => write!(f, "+G{categories}m{{{alpha}}}")?,
        }
        match &self.free_rates {
            None => {}
            Some((categories, None)) => write!(f, "+R{categories}")?,
            Some((categories, Some(given))) => write!(f, "+R{categories}{}", free_text(given))?,
        }
        if self.is_ascertained {
            f.write_str("+ASC")?;
        }
        match self.speed {
            None => Ok(()),
            Some(None) => f.write_str("+B"),
            Some(Some(speed)) => write!(f, "+B{{{speed}}}"),
        }
    }
}

/// Rates and probabilities in two pairs of braces.
fn free_text(free: &[[f64; 2]]) -> String {
    let of = |k: usize| free.iter().map(|values| values[k].to_string()).collect::<Vec<_>>().join("/");
    format!("{{{}}}{{{}}}", of(1), of(0))
}

/// The model with all its values, as a model string that gives it again.
impl std::fmt::Display for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let joined = |v: &[f64]| v.iter().map(|x| x.to_string()).collect::<Vec<_>>().join("/");
        let published = Matrix::named(&self.name);
        let own = ModelSpec::named(&self.name);
        let equal = || self.frequencies.iter().all(|&f| f == self.frequencies[0]);
        f.write_str(&self.name)?;
        if own.as_ref().is_none_or(|m| m.classes.iter().any(|&c| c > 0)) {
            write!(f, "{{{}}}", joined(&self.exchangeabilities))?;
        }
        let own_frequencies = match own.map(|m| m.frequencies) {
            Some(Frequencies::Equal) => equal(),
            _ => published.is_some_and(|m| m.frequencies == self.frequencies),
        };
        if !own_frequencies {
            write!(f, "+FU{{{}}}", joined(&self.frequencies))?;
        }
        if let Some(share) = self.pinv {
            write!(f, "+IU{{{share}}}")?;
        }
        if let Some(alpha) = self.alpha {
            write!(f, "+G{}m{{{alpha}}}", self.categories)?;
        }
        if !self.free_rates.is_empty() {
            write!(f, "+R{}{}", self.categories, free_text(&self.free_rates))?;
        }
        if self.is_ascertained {
            f.write_str("+ASC")?;
        }
        if let Some(speed) = self.speed {
            write!(f, "+B{{{speed}}}")?;
        }
        Ok(())
    }
}
