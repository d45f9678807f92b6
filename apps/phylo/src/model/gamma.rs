//! The gamma distribution: regularised incomplete gamma function, its inverse, and mean rates of equal parts.

/// P(a, x), the regularised lower incomplete gamma function, for a > 0 and x >= 0: by its series (DLMF 8.11.4) where
/// that converges fast, and by the continued fraction of Q (DLMF 8.9.2, evaluated after Lentz) elsewhere.
pub fn incomplete_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x.is_infinite() {
        return 1.0;
    }
    let front = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        let mut k = a;
        while term > sum * 1e-17 {
            k += 1.0;
            term *= x / k;
            sum += term;
        }
        front * sum
    } else {
        let tiny = f64::MIN_POSITIVE / f64::EPSILON;
        let mut b = x + 1.0 - a;
        let mut c = 1.0 / tiny;
        let mut d = 1.0 / b;
        let mut h = d;
        for i in 1..10_000 {
            let an = -f64::from(i) * (f64::from(i) - a);
            b += 2.0;
            d = an * d + b;
            d = 1.0 / if d.abs() < tiny { tiny } else { d };
            c = b + an / c;
            c = if c.abs() < tiny { tiny } else { c };
            h *= d * c;
            if (d * c - 1.0).abs() < 1e-16 {
                break;
            }
        }
        1.0 - front * h
    }
}

/// The x with P(a, x) = p, for a > 0 and 0 < p < 1: Newton's method on the logarithm of x (in which P is smooth also
/// for small a), kept within a bracket.
pub fn gamma_quantile(a: f64, p: f64) -> f64 {
    // Near zero, P(a, x) = x^a / Gamma(a + 1): a lower bound of the quantile everywhere, since P is below that.
    let small = (p.ln() + libm::lgamma(a + 1.0)) / a;
    let mut low = small.max(-700.0);
    if low == -700.0 {
        return small.exp();
    }
    let mut high = low.max((a + 1.0).ln());
    while incomplete_gamma(a, high.exp()) < p {
        high += 1.0;
    }
    let mut u = if a < 1.0 { low } else { a.ln().clamp(low, high) };
    for _ in 0..200 {
        let x = u.exp();
        let value = incomplete_gamma(a, x);
        if value < p {
            low = u;
        } else {
            high = u;
        }
        // dP/du = x^a e^-x / Gamma(a)
        let slope = (a * u - x - libm::lgamma(a)).exp();
        let next = u - (value - p) / slope;
        let next = if next > low && next < high { next } else { 0.5 * (low + high) };
        if (next - u).abs() <= 1e-15 * u.abs().max(1.0) {
            return next.exp();
        }
        u = next;
    }
    u.exp()
}

/// Mean rates of `categories` parts of equal probability of the gamma distribution with mean 1 and shape `alpha`
/// (Yang 1994, equation 10): rate_i = k (P(alpha + 1, y_i) - P(alpha + 1, y_(i-1))), y_i the quantile i / k of
/// Gamma(alpha, 1).
pub fn mean_rates(alpha: f64, categories: usize) -> Vec<f64> {
    let k = categories as f64;
    let mut below = 0.0;
    let mut rates = Vec::with_capacity(categories);
    for i in 1..=categories {
        let upto = match i == categories {
            true => 1.0,
            false => incomplete_gamma(alpha + 1.0, gamma_quantile(alpha, i as f64 / k)),
        };
        rates.push(k * (upto - below));
        below = upto;
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        // P(1, x) = 1 - exp(-x); P(1/2, x) = erf(sqrt(x)).
        for x in [1e-6f64, 0.1, 1.0, 3.7, 20.0] {
            assert!((incomplete_gamma(1.0, x) + (-x).exp_m1()).abs() < 1e-15);
            assert!((incomplete_gamma(0.5, x) - libm::erf(x.sqrt())).abs() < 2e-15, "{x}");
        }
        // P(3, x) = 1 - exp(-x) (1 + x + x^2/2)
        assert!((incomplete_gamma(3.0, 2.5) - (1.0 - (-2.5f64).exp() * (1.0 + 2.5 + 3.125))).abs() < 1e-15);
        // Chi-squared with two degrees of freedom, median 2 ln 2.
        assert!((gamma_quantile(1.0, 0.5) - std::f64::consts::LN_2).abs() < 1e-15);
    }

    /// The mean rates published with the reference log-likelihoods.
    #[test]
    fn mean_rates_of_known_shapes() {
        let cases: [(f64, [f64; 4]); 4] = [
            (0.148, [4.686080990154772e-05, 0.01011551224438856, 0.2357853548496285, 3.7540522720960814]),
            (0.444, [0.023539871229591523, 0.21379553727543574, 0.7748200432157124, 2.98784454827926]),
            (0.467, [0.02744677380257446, 0.22982740880160793, 0.7946876276244388, 2.9480381897713785]),
            (0.6, [0.053108064264094895, 0.3122721781176623, 0.8813189296598818, 2.753300827958361]),
        ];
        for (alpha, expected) in cases {
            for (rate, expected) in mean_rates(alpha, 4).iter().zip(expected) {
                assert!((rate - expected).abs() < 1e-12, "{alpha}: {rate} {expected}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_inverse(log_a in -3.9f64..6.9, p in 0.001f64..0.999) {
            let a = log_a.exp();
            let x = gamma_quantile(a, p);
            prop_assert!((incomplete_gamma(a, x) - p).abs() < 1e-10, "a {a} p {p} x {x}");
        }

        #[test]
        fn rates_rise_and_have_mean_one(log_a in -3.9f64..6.9, k in 1usize..17) {
            let rates = mean_rates(log_a.exp(), k);
            prop_assert!((rates.iter().sum::<f64>() / k as f64 - 1.0).abs() < 1e-12);
            prop_assert!(rates.windows(2).all(|w| w[0] <= w[1]) && rates[0] >= 0.0, "{rates:?}");
        }
    }
}
