//! The free parameters of a model as numbers that a maximiser may move: logarithms, so that steps are in proportion.

use crate::model::{Model, bounds};

/// The free parameters of one model as coordinates.
#[derive(Debug, Clone)]
pub(super) struct Coordinates {
    start: Model,
    /// The classes of exchangeabilities that are coordinates, by the logarithm of their ratio to that of `unit`.
    classes: Vec<u8>,
    /// The class that was largest at the start. The customary unit, that of G and T, may be next to nothing: then all
    /// others would lie at their bounds, and their ratios would be lost.
    unit: u8,
    /// The frequency that was largest at the start: the others are coordinates by the logarithm of their ratio to it.
    common: usize,
}

/// A parameter that is one number.
struct Scalar {
    is_free: fn(&Model) -> bool,
    of: fn(&mut Model) -> &mut Option<f64>,
    bounds: (f64, f64),
    is_log: bool,
}

const SCALARS: [Scalar; 3] = [
    Scalar { is_free: |m| m.free.alpha, of: |m| &mut m.alpha, bounds: bounds::ALPHA, is_log: true },
    Scalar { is_free: |m| m.free.pinv, of: |m| &mut m.pinv, bounds: bounds::PINV, is_log: false },
    Scalar { is_free: |m| m.free.speed, of: |m| &mut m.speed, bounds: bounds::SPEED, is_log: true },
];

impl Scalar {
    fn scaled(&self, x: f64) -> f64 {
        if self.is_log { x.ln() } else { x }
    }

    fn unscaled(&self, x: f64) -> f64 {
        let x = if self.is_log { x.exp() } else { x };
        x.clamp(self.bounds.0, self.bounds.1)
    }
}

impl Coordinates {
    /// The coordinates of a model's free parameters; which ones are the units is decided by the values that it has.
    pub(super) fn new(model: &Model) -> Coordinates {
        let largest = |values: &[f64]| (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0);
        let unit = model.free.exchangeabilities.get(largest(&model.exchangeabilities)).copied().unwrap_or(0);
        let mut classes = model.free.exchangeabilities.clone();
        classes.retain(|&class| class != unit);
        classes.sort_unstable();
        classes.dedup();
        Coordinates { start: model.clone(), classes, unit, common: largest(&model.frequencies) }
    }

    /// What decides the meaning of the coordinates: two with equal units may share what is known of curvatures.
    pub(super) fn units(&self) -> (u8, usize) {
        (self.unit, self.common)
    }

    fn scalars(&self) -> impl Iterator<Item = &'static Scalar> {
        SCALARS.iter().filter(|scalar| (scalar.is_free)(&self.start))
    }

    /// The positions of the frequencies that are coordinates.
    fn frequencies(&self) -> impl Iterator<Item = usize> + use<> {
        let count = if self.start.free.frequencies { self.start.states } else { 0 };
        let common = self.common;
        (0..count).filter(move |&i| i != common)
    }

    /// The free categories that are coordinates, by the logarithms of the ratios of their probability and rate to those of
    /// the first.
    fn free_rates(&self) -> impl Iterator<Item = usize> + use<> {
        1..if self.start.free.free_rates { self.start.categories } else { 1 }
    }

    /// The coordinates of another model of the same kind.
    pub(super) fn of(&self, model: &Model) -> Vec<f64> {
        let first = |class: u8| {
            let at = self.start.free.exchangeabilities.iter().position(|&c| c == class);
            at.map_or(1.0, |i| model.exchangeabilities[i])
        };
        let rates = self.classes.iter().map(|&class| (first(class) / first(self.unit)).ln());
        let frequencies = self.frequencies().map(|i| (model.frequencies[i] / model.frequencies[self.common]).ln());
        let mut model = model.clone();
        let free = model.free_rates.clone();
        let scalars = self.scalars().map(|scalar| scalar.scaled((scalar.of)(&mut model).unwrap_or(1.0)));
        let scalars: Vec<f64> = scalars.collect();
        let free = self.free_rates().flat_map(|i| [0, 1].map(|k| (free[i][k] / free[0][k]).ln()));
        let all: Vec<f64> = rates.chain(frequencies).chain(free).chain(scalars).collect();
        all.iter().zip(self.bounds()).map(|(x, (low, high))| x.clamp(low, high)).collect()
    }

    /// Their bounds.
    pub(super) fn bounds(&self) -> Vec<(f64, f64)> {
        let of = |b: (f64, f64)| (b.0.ln(), b.1.ln());
        let reach = (bounds::FREQUENCY.1 / bounds::FREQUENCY.0).ln();
        let rates = self.classes.iter().map(|_| of(bounds::EXCHANGEABILITY));
        let frequencies = self.frequencies().map(|_| (-reach, reach));
        let scalars = self.scalars().map(|s| (s.scaled(s.bounds.0), s.scaled(s.bounds.1)));
        let free = self.free_rates().flat_map(|_| [of(bounds::FREE_WEIGHT), of(bounds::FREE_RATE)]);
        rates.chain(frequencies).chain(free).chain(scalars).collect()
    }

    /// The model with these coordinates.
    pub(super) fn model(&self, x: &[f64]) -> Model {
        let mut model = self.start.clone();
        let (rates, rest) = x.split_at(self.classes.len());
        if !rates.is_empty() {
            let rate = |class: u8| self.classes.iter().position(|&c| c == class).map_or(1.0, |i| rates[i].exp());
            let classes = &self.start.free.exchangeabilities;
            let last = classes.last().map_or(1.0, |&class| rate(class));
            model.exchangeabilities.iter_mut().zip(classes).for_each(|(r, &class)| *r = rate(class) / last);
        }
        let (ratios, scalars) = rest.split_at(self.frequencies().count());
        if !ratios.is_empty() {
            let mut weights = vec![1.0; self.start.states];
            self.frequencies().zip(ratios).for_each(|(i, x)| weights[i] = x.exp());
            let total: f64 = weights.iter().sum();
            let raised: Vec<f64> = weights.iter().map(|w| (w / total).max(bounds::FREQUENCY.0)).collect();
            let total: f64 = raised.iter().sum();
            model.frequencies = raised.iter().map(|f| f / total).collect();
        }
        let (free, scalars) = scalars.split_at(2 * self.free_rates().count());
        if !free.is_empty() {
            let ratios = free.chunks_exact(2).map(|x| [x[0].exp(), x[1].exp()]);
            let all: Vec<[f64; 2]> = std::iter::once([1.0, 1.0]).chain(ratios).collect();
            let total: f64 = all.iter().map(|[weight, _]| weight).sum();
            let mean = all.iter().map(|[weight, rate]| weight * rate).sum::<f64>() / total;
            model.free_rates = all.iter().map(|[weight, rate]| [weight / total, rate / mean]).collect();
        }
        for (scalar, &x) in self.scalars().zip(scalars) {
            *(scalar.of)(&mut model) = Some(scalar.unscaled(x));
        }
        model
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::{Alignment, DataType, Patterns};
    use crate::model::ModelSpec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn models_and_coordinates_are_the_same(
            text in prop::sample::select(vec!["JC", "K80+I", "GTR+FO+I+G4+B", "TN93+F+G4", "SYM+G4", "GTR+F", "HKY+R3", "K80+I+R2"]),
            moves in prop::collection::vec(-3.0f64..3.0, 12),
        ) {
            let letters = Alignment { names: vec!["a".into()], rows: vec![b"AACCCGGGGTTTTTT".to_vec()] };
            let start = ModelSpec::parse(text).unwrap().model(&Patterns::new(&letters, 0..15, DataType::Dna));
            let coordinates = Coordinates::new(&start);
            let mut x = coordinates.of(&start);
            prop_assert_eq!(x.len(), coordinates.bounds().len());
            for ((x, (low, high)), by) in x.iter_mut().zip(coordinates.bounds()).zip(moves) {
                *x = (*x + 0.9 * by).clamp(low, high);
            }
            let model = coordinates.model(&x);
            let back = coordinates.of(&model);
            prop_assert!(x.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-9), "{:?} {:?}", x, back);
            // Other units make no other model.
            let others = Coordinates::new(&model);
            let again = others.model(&others.of(&model));
            let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-9);
            prop_assert!(near(&again.exchangeabilities, &model.exchangeabilities));
            prop_assert!(near(&again.frequencies, &model.frequencies));
            prop_assert!(near(again.free_rates.as_flattened(), model.free_rates.as_flattened()));
            prop_assert!((model.rates().iter().zip(model.category_weights()).map(|(r, w)| r * w).sum::<f64>() - 1.0).abs() < 1e-9
                || text.contains("+B"));
        }
    }
}
