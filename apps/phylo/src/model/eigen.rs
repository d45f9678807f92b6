//! Eigendecomposition of reversible rate matrices.

use super::Model;

/// P(t) = right diag(exp(values t)) left: `P(t)[i][j]` = sum over k of `right[i][k] exp(values[k] t) left[k][j]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Eigen {
    /// Number of states n.
    pub states: usize,
    /// n eigenvalues of the rate matrix, at most 0, the largest (which is 0, exactly) first.
    pub values: Vec<f64>,
    /// n x n by rows: row k belongs to value k.
    pub left: Vec<f64>,
    /// n x n by rows: column k belongs to value k.
    pub right: Vec<f64>,
}

impl Eigen {
    /// Symmetrises the rate matrix with the square roots of the frequencies and decomposes it.
    pub fn new(model: &Model) -> Eigen {
        let n = model.states;
        let q = model.rate_matrix();
        let roots: Vec<f64> = model.frequencies.iter().map(|f| f.sqrt()).collect();
        let mut s = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                // Both halves are equal but for rounding; their mean is symmetric exactly.
                let a = q[i * n + j] * roots[i] / roots[j];
                let b = q[j * n + i] * roots[j] / roots[i];
                s[i * n + j] = 0.5 * (a + b);
                s[j * n + i] = s[i * n + j];
            }
        }
        let vectors = jacobi(&mut s, n);
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| s[b * n + b].total_cmp(&s[a * n + a]));
        let mut eigen = Eigen { states: n, values: vec![], left: vec![0.0; n * n], right: vec![0.0; n * n] };
        for (k, &v) in order.iter().enumerate() {
            eigen.values.push(if k == 0 { 0.0 } else { s[v * n + v].min(0.0) });
            for i in 0..n {
                eigen.right[i * n + k] = vectors[i * n + v] / roots[i];
                eigen.left[k * n + i] = vectors[i * n + v] * roots[i];
            }
        }
        eigen
    }

    /// The same of at least `states` states: those beyond the model's are left and reached by nothing.
    pub fn padded(&self, states: usize) -> Eigen {
        let n = self.states.max(states);
        let own = self.states;
        let square = |of: &[f64]| {
            let entry =
                |i: usize, j: usize| if i < own && j < own { of[i * own + j] } else { f64::from(u8::from(i == j)) };
            (0..n * n).map(|ij| entry(ij / n, ij % n)).collect()
        };
        let mut values = self.values.clone();
        values.resize(n, 0.0);
        Eigen { states: n, values, left: square(&self.left), right: square(&self.right) }
    }

    /// P(t), n x n by rows, for a branch of length `t` times the rate.
    pub fn transition(&self, t: f64) -> Vec<f64> {
        let n = self.states;
        let e: Vec<f64> = self.values.iter().map(|v| (v * t).exp()).collect();
        let entry = |i: usize, j: usize| (0..n).map(|k| self.right[i * n + k] * e[k] * self.left[k * n + j]).sum();
        (0..n * n).map(|ij| entry(ij / n, ij % n)).collect()
    }
}

/// Jacobi's cyclic method (Golub and Van Loan, Matrix Computations, 8.5): leaves the eigenvalues on the diagonal of the
/// symmetric n x n matrix `a` and returns the eigenvectors as columns. Accurate to rounding, also for small eigenvalues.
fn jacobi(a: &mut [f64], n: usize) -> Vec<f64> {
    let mut v = vec![0.0; n * n];
    (0..n).for_each(|i| v[i * n + i] = 1.0);
    // Convergence is quadratic; six to ten sweeps are usual for n = 20.
    for _ in 0..64 {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i * n + j].powi(2)).sum();
        let diagonal: f64 = (0..n).map(|i| a[i * n + i].powi(2)).sum();
        if off <= 1e-34 * diagonal {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[p * n + q];
                if apq == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + (1.0 + theta * theta).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    a[k * n + p] = c * x - s * y;
                    a[k * n + q] = s * x + c * y;
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    a[p * n + k] = c * x - s * y;
                    a[q * n + k] = s * x + c * y;
                }
                a[p * n + q] = 0.0;
                a[q * n + p] = 0.0;
                for k in 0..n {
                    let (x, y) = (v[k * n + p], v[k * n + q]);
                    v[k * n + p] = c * x - s * y;
                    v[k * n + q] = s * x + c * y;
                }
            }
        }
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Free;
    use proptest::prelude::*;

    fn model(states: usize, exchangeabilities: Vec<f64>, weights: Vec<f64>) -> Model {
        let total: f64 = weights.iter().sum();
        let frequencies = weights.iter().map(|w| w / total).collect();
        Model {
            name: "GTR".to_owned(),
            states,
            exchangeabilities,
            frequencies,
            alpha: None,
            free_rates: vec![],
            categories: 1,
            pinv: None,
            speed: None,
            is_ascertained: false,
            free: Free::default(),
        }
    }

    /// exp(Q t) by scaling and squaring of a Taylor series.
    fn exponential(q: &[f64], n: usize, t: f64) -> Vec<f64> {
        let product = |a: &[f64], b: &[f64]| -> Vec<f64> {
            (0..n * n).map(|ij| (0..n).map(|k| a[ij / n * n + k] * b[k * n + ij % n]).sum()).collect()
        };
        let scaled: Vec<f64> = q.iter().map(|x| x * t / 65536.0).collect();
        let identity: Vec<f64> = (0..n * n).map(|ij| f64::from(ij / n == ij % n)).collect();
        let (mut sum, mut term) = (identity.clone(), identity);
        for k in 1..20 {
            term = product(&term, &scaled).iter().map(|x| x / k as f64).collect();
            sum.iter_mut().zip(&term).for_each(|(s, t)| *s += t);
        }
        (0..16).fold(sum, |p, _| product(&p, &p))
    }

    proptest! {
        #[test]
        fn decomposition_gives_the_matrix_exponential(
            four in any::<bool>(),
            r in prop::collection::vec(0.01f64..50.0, 190),
            w in prop::collection::vec(0.02f64..1.0, 20),
            t in 1e-6f64..5.0,
        ) {
            let n = if four { 4 } else { 20 };
            let model = model(n, r[..n * (n - 1) / 2].to_vec(), w[..n].to_vec());
            let eigen = model.eigen();
            let p = eigen.transition(t);
            let expected = exponential(&model.rate_matrix(), n, t);
            for (a, b) in p.iter().zip(&expected) {
                prop_assert!((a - b).abs() < 1e-10, "{a} {b}");
            }
            prop_assert!(eigen.values[0] == 0.0 && eigen.values[1] < 0.0);
        }
    }

    #[test]
    fn equal_exchangeabilities_and_frequencies_have_their_closed_form() {
        let eigen = model(4, vec![1.0; 6], vec![1.0; 4]).eigen();
        let p = eigen.transition(0.3);
        let same = 0.25 + 0.75 * (-0.4f64).exp();
        assert!((p[0] - same).abs() < 1e-15 && (p[1] - (1.0 - same) / 3.0).abs() < 1e-15);
    }
}
