//! Weights by name: what `--kernel gaussian:9` means.
//!
//! | name | weights | sum |
//! |---|---|---|
//! | `gaussian:N` | N x N, sigma `0.3 * ((N - 1) / 2 - 1) + 0.8` | 1 |
//! | `gaussian:N:SIGMA` | N x N, the given standard deviation in elements | 1 |
//! | `box:N` | N x N, all equal | 1 |
//! | `sharpen:N` | twice the middle element less `gaussian:N`; N may be left out and is then 3 | 1 |
//! | `edge:N` | the middle element less the mean of the others; N may be left out and is then 3 | 0 |
//!
//! N is odd. The weights are computed and normalised in double precision and rounded once.

use std::str::FromStr;

/// Rows and columns that a named kernel may have at most.
pub const SIZE_MAX: usize = 1001;

/// A name that stands for no weights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// The name before the colon is not one of those known.
    #[error("there is no kernel \"{0}\"; there are gaussian:N[:SIGMA], box:N, sharpen[:N], edge[:N]")]
    Name(String),
    /// The size is missing, not a number, even, or out of range.
    #[error("kernel \"{text}\": the size must be an odd number from {min} to {SIZE_MAX}, as in \"{example}\"")]
    Size {
        /// The whole text.
        text: String,
        /// The least size for this kernel.
        min: usize,
        /// A text that would do.
        example: &'static str,
    },
    /// Sigma is not a positive number, or something follows that does not belong.
    #[error("kernel \"{text}\": \"{part}\" is not understood; {wanted}")]
    Part {
        /// The whole text.
        text: String,
        /// What is wrong in it.
        part: String,
        /// What may stand there.
        wanted: &'static str,
    },
}

/// A square of weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// Rows, and columns; odd.
    pub size: usize,
    /// The weights, row by row.
    pub values: Vec<f32>,
}

impl Weights {
    /// A Gaussian of `size` x `size` elements with the standard deviation `sigma`, sum 1.
    #[must_use]
    pub fn gaussian(size: usize, sigma: f64) -> Weights {
        Weights::of(size, gaussian(size, sigma))
    }

    /// Of the weights at each row and column, in double precision: all of these at once would take twice the memory.
    fn of(size: usize, weight: impl Fn(usize, usize) -> f64) -> Weights {
        let weight = &weight;
        Weights { size, values: (0..size).flat_map(|i| (0..size).map(move |j| weight(i, j) as f32)).collect() }
    }
}

/// The width that OpenCV takes for a Gaussian of a given size (`getGaussianKernel`).
fn default_sigma(size: usize) -> f64 {
    0.3 * ((size as f64 - 1.0) * 0.5 - 1.0) + 0.8
}

/// The weight at a row and a column.
fn gaussian(size: usize, sigma: f64) -> impl Fn(usize, usize) -> f64 {
    let half = (size / 2) as f64;
    let line: Vec<f64> = (0..size).map(|i| (-0.5 * ((i as f64 - half) / sigma).powi(2)).exp()).collect();
    let sum: f64 = line.iter().sum();
    move |i, j| line[i] * line[j] / (sum * sum)
}

impl FromStr for Weights {
    type Err = WeightsError;

    fn from_str(text: &str) -> Result<Weights, WeightsError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let (min, default, example) = match name {
            "gaussian" => (1, None, "gaussian:9"),
            "box" => (1, None, "box:5"),
            "sharpen" => (3, Some(3), "sharpen:3"),
            "edge" => (3, Some(3), "edge:3"),
            _ => return Err(WeightsError::Name(name.to_owned())),
        };
        let size = match parts.next() {
            Some(size) => size.parse().ok(),
            None => default,
        };
        let size = size
            .filter(|size| (min..=SIZE_MAX).contains(size) && size % 2 == 1)
            .ok_or_else(|| WeightsError::Size { text: text.to_owned(), min, example })?;
        let wrong = |part: &str, wanted| WeightsError::Part { text: text.to_owned(), part: part.to_owned(), wanted };
        let mut sigma = default_sigma(size);
        if name == "gaussian"
            && let Some(part) = parts.next()
        {
            // The square of sigma and its inverse must be normal numbers for the sum to be one.
            sigma = part
                .parse()
                .ok()
                .filter(|s| (1e-3..=1e6).contains(s))
                .ok_or_else(|| wrong(part, "sigma is a number from 0.001 to 1000000, as in \"gaussian:9:1.5\""))?;
        }
        if let Some(part) = parts.next() {
            return Err(wrong(part, "nothing may follow there"));
        }
        let count = (size * size) as f64;
        let is_middle = |i: usize, j: usize| i == size / 2 && j == size / 2;
        Ok(match name {
            "gaussian" => Weights::gaussian(size, sigma),
            "box" => Weights::of(size, |_, _| 1.0 / count),
            "sharpen" => {
                let smooth = gaussian(size, sigma);
                Weights::of(size, |i, j| if is_middle(i, j) { 2.0 - smooth(i, j) } else { -smooth(i, j) })
            }
            _ => Weights::of(size, |i, j| if is_middle(i, j) { 1.0 } else { -1.0 / (count - 1.0) }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Weights, WeightsError};

    fn sum(weights: &Weights) -> f64 {
        weights.values.iter().map(|&v| f64::from(v)).sum()
    }

    #[test]
    fn every_kernel_has_its_size_and_its_sum() {
        for (text, size, wanted) in [
            ("gaussian:9", 9, 1.0),
            ("gaussian:1", 1, 1.0),
            ("gaussian:31:0.001", 31, 1.0),
            ("gaussian:5:1000000", 5, 1.0),
            ("box:5", 5, 1.0),
            ("sharpen", 3, 1.0),
            ("sharpen:7", 7, 1.0),
            ("edge", 3, 0.0),
            ("edge:5", 5, 0.0),
        ] {
            let weights: Weights = text.parse().unwrap();
            assert_eq!((weights.size, weights.values.len()), (size, size * size), "{text}");
            assert!((sum(&weights) - wanted).abs() < 1e-6, "{text}: {}", sum(&weights));
        }
    }

    #[test]
    fn a_gaussian_is_symmetric_and_falls_off_as_its_sigma_says() {
        let weights = Weights::gaussian(7, 1.5);
        let at = |i: usize, j: usize| weights.values[i * 7 + j];
        for i in 0..7 {
            for j in 0..7 {
                assert_eq!(at(i, j), at(j, i));
                assert_eq!(at(i, j), at(6 - i, j));
            }
        }
        let ratio = f64::from(at(3, 4)) / f64::from(at(3, 3));
        assert!((ratio - (-0.5_f64 / 2.25).exp()).abs() < 1e-6);
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        for text in ["gaussian", "gaussian:8", "gaussian:", "box:-3", "box:0", "edge:1", "box:1003"] {
            let error = text.parse::<Weights>().unwrap_err();
            assert!(matches!(error, WeightsError::Size { .. }), "{text}: {error}");
        }
        for text in ["gaussian:3:0", "gaussian:3:nan", "gaussian:3:x", "box:3:1", "gaussian:3:1:1"] {
            let error = text.parse::<Weights>().unwrap_err();
            assert!(matches!(error, WeightsError::Part { .. }), "{text}: {error}");
        }
        assert_eq!("blur:3".parse::<Weights>(), Err(WeightsError::Name("blur".to_owned())));
    }
}
