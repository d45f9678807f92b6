//! The method of Broyden, Fletcher, Goldfarb and Shanno within a box, with gradients by forward differences.

/// Step of differences: near the square root of the precision of a log-likelihood of some thousands.
const DIFFERENCE: f64 = 1e-5;
/// Largest change of a coordinate in one step.
const REACH: f64 = 2.0;

/// A point near which `f` has a maximum within `bounds` (the same for all coordinates), from `x` with its `value`, until a
/// step gains less than `gain`. Nocedal and Wright, Numerical Optimization, chapter 6; coordinates at a bound that pull
/// outwards stay there.
pub(super) fn maximize(
    mut x: Vec<f64>,
    mut value: f64,
    bounds: (f64, f64),
    gain: f64,
    mut f: impl FnMut(&[f64]) -> f64,
) -> Vec<f64> {
    let n = x.len();
    if n == 0 {
        return x;
    }
    let clamp = |x: f64| x.clamp(bounds.0, bounds.1);
    x.iter_mut().for_each(|x| *x = clamp(*x));
    let mut gradient = slope(&x, value, bounds, &mut f);
    // The inverse of the negative Hessian, by rows.
    let mut inverse = identity(n, 1.0 / gradient.iter().map(|g| g.abs()).fold(1.0, f64::max));
    for _ in 0..100 {
        let held = |i: usize| x[i] <= bounds.0 && gradient[i] < 0.0 || x[i] >= bounds.1 && gradient[i] > 0.0;
        let mut step: Vec<f64> = (0..n)
            .map(|i| {
                if held(i) { 0.0 } else { (0..n).filter(|&j| !held(j)).map(|j| inverse[i * n + j] * gradient[j]).sum() }
            })
            .collect();
        let longest = step.iter().map(|s| s.abs()).fold(0.0, f64::max);
        if longest > REACH {
            step.iter_mut().for_each(|s| *s *= REACH / longest);
        }
        let ascent: f64 = step.iter().zip(&gradient).map(|(s, g)| s * g).sum();
        if ascent <= 0.0 {
            break;
        }
        // Backtracking: the step is shortened until it gains at least a little of what the slope promises.
        let mut scale = 1.0;
        let mut next = None;
        for _ in 0..12 {
            let candidate: Vec<f64> = x.iter().zip(&step).map(|(x, s)| clamp(x + scale * s)).collect();
            let there = f(&candidate);
            if there > value + 1e-4 * scale * ascent {
                next = Some((candidate, there));
                break;
            }
            scale *= 0.35;
        }
        let Some((candidate, there)) = next else { break };
        let gained = there - value;
        let moved: Vec<f64> = candidate.iter().zip(&x).map(|(a, b)| a - b).collect();
        (x, value) = (candidate, there);
        if gained < gain {
            break;
        }
        let new = slope(&x, value, bounds, &mut f);
        let turned: Vec<f64> = gradient.iter().zip(&new).map(|(a, b)| a - b).collect();
        gradient = new;
        update(&mut inverse, &moved, &turned);
    }
    x
}

fn identity(n: usize, scale: f64) -> Vec<f64> {
    (0..n * n).map(|ij| if ij / n == ij % n { scale } else { 0.0 }).collect()
}

fn slope(x: &[f64], value: f64, bounds: (f64, f64), f: &mut impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let mut point = x.to_vec();
    let mut gradient = Vec::with_capacity(x.len());
    for i in 0..x.len() {
        let h = if x[i] + DIFFERENCE > bounds.1 { -DIFFERENCE } else { DIFFERENCE };
        point[i] = x[i] + h;
        gradient.push((f(&point) - value) / (point[i] - x[i]));
        point[i] = x[i];
    }
    gradient
}

/// The BFGS update of the inverse for a step `s` along which the gradient fell by `y`.
fn update(inverse: &mut [f64], s: &[f64], y: &[f64]) {
    let n = s.len();
    let sy: f64 = s.iter().zip(y).map(|(a, b)| a * b).sum();
    if sy <= 1e-12 {
        return;
    }
    let hy: Vec<f64> = (0..n).map(|i| (0..n).map(|j| inverse[i * n + j] * y[j]).sum()).collect();
    let yhy: f64 = y.iter().zip(&hy).map(|(a, b)| a * b).sum();
    for i in 0..n {
        for j in 0..n {
            inverse[i * n + j] += (1.0 + yhy / sy) * s[i] * s[j] / sy - (hy[i] * s[j] + s[i] * hy[j]) / sy;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::maximize;

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        // Rosenbrock's function, upside down.
        let f = |x: &[f64]| -(100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2));
        let x = maximize(vec![-1.2, 1.0], f(&[-1.2, 1.0]), (-5.0, 5.0), 1e-12, f);
        assert!((x[0] - 1.0).abs() < 1e-2 && (x[1] - 1.0).abs() < 2e-2, "{x:?}");
    }

    #[test]
    fn bounds_hold() {
        let f = |x: &[f64]| -(x[0] - 3.0).powi(2) - (x[1] - 0.5).powi(2) - x[0] * x[1] * 0.1;
        let x = maximize(vec![0.0, 0.0], f(&[0.0, 0.0]), (-1.0, 1.0), 1e-10, f);
        assert!((x[0] - 1.0).abs() < 1e-9 && (x[1] - 0.45).abs() < 1e-3, "{x:?}");
    }
}
