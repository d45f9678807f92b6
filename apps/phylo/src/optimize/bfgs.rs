//! The method of Broyden, Fletcher, Goldfarb and Shanno within a box, with gradients by differences.

/// Step of differences: near the square root of the precision of a log-likelihood of some thousands.
pub(super) const DIFFERENCE: f64 = 1e-5;
/// Step of the differences that give the first curvatures.
pub(super) const WIDE_DIFFERENCE: f64 = 1e-2;
/// Largest change of a coordinate in one step.
const REACH: f64 = 2.0;
/// At most so many steps in a row that gain nothing worth while.
const SLOW: usize = 4;
/// At most so many steps.
const STEPS: usize = 100;

/// What has a maximum somewhere.
pub(super) trait Surface {
    /// Its height at a point.
    fn value(&mut self, x: &[f64]) -> f64;
    /// For each coordinate the change of the height when it alone is moved by `by[i]` from `x`, the point that
    /// [`Surface::value`] was asked for last.
    fn changes(&mut self, x: &[f64], by: &[f64]) -> Vec<f64>;
}

/// The inverse of the negative Hessian, by rows, as far as it is known. It may be kept for a later search nearby.
#[derive(Debug, Clone, Default)]
pub(super) struct Curvature(Vec<f64>);

/// A point near which a surface has a maximum within `bounds`, from `x` with its `value`, until steps promise and gain less
/// than `gain`, and its height, which is never less than `value`. Nocedal and Wright, Numerical Optimization, chapter 6;
/// coordinates at a bound that pull outwards stay there. The first inverse is that of the curvatures along the
/// coordinates.
pub(super) fn maximize(
    mut x: Vec<f64>,
    mut value: f64,
    bounds: &[(f64, f64)],
    gain: f64,
    surface: &mut impl Surface,
    curvature: &mut Curvature,
) -> (Vec<f64>, f64) {
    let n = x.len();
    if n == 0 {
        return (x, value);
    }
    let mut is_new = curvature.0.len() != n * n;
    let mut gradient = match is_new {
        true => curvatures(&x, bounds, surface, curvature),
        false => slope(&x, bounds, surface),
    };
    let mut slow = 0;
    for _ in 0..STEPS {
        let inverse = &curvature.0;
        let held = |i: usize| x[i] <= bounds[i].0 && gradient[i] < 0.0 || x[i] >= bounds[i].1 && gradient[i] > 0.0;
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
        let next = if ascent > 0.0 { backtrack(&x, value, &step, ascent, bounds, surface) } else { None };
        let Some((candidate, there)) = next else {
            // What was learnt elsewhere may mislead here.
            if is_new || ascent == 0.0 {
                break;
            }
            surface.value(&x);
            gradient = curvatures(&x, bounds, surface, curvature);
            is_new = true;
            continue;
        };
        let gained = there - value;
        let moved: Vec<f64> = candidate.iter().zip(&x).map(|(a, b)| a - b).collect();
        (x, value) = (candidate, there);
        // A step that had to be shortened says little: only what it promised tells that nothing is left.
        slow = if gained < gain { slow + 1 } else { 0 };
        if slow > 0 && (ascent < 4.0 * gain || slow > SLOW) {
            break;
        }
        let new = slope(&x, bounds, surface);
        let turned: Vec<f64> = gradient.iter().zip(&new).map(|(a, b)| a - b).collect();
        gradient = new;
        update(&mut curvature.0, &moved, &turned);
        is_new = false;
    }
    (x, value)
}

/// The step is shortened until it gains at least a little of what the slope promises.
fn backtrack(
    x: &[f64],
    value: f64,
    step: &[f64],
    ascent: f64,
    bounds: &[(f64, f64)],
    surface: &mut impl Surface,
) -> Option<(Vec<f64>, f64)> {
    let mut scale = 1.0;
    for _ in 0..12 {
        let along = x.iter().zip(step).zip(bounds);
        let candidate: Vec<f64> = along.map(|((x, s), b)| (x + scale * s).clamp(b.0, b.1)).collect();
        let there = surface.value(&candidate);
        if there > value + 1e-4 * scale * ascent {
            return Some((candidate, there));
        }
        scale *= 0.35;
    }
    None
}

/// Steps of a length, inwards where a bound is near.
fn inwards(x: &[f64], bounds: &[(f64, f64)], by: f64) -> Vec<f64> {
    x.iter().zip(bounds).map(|(x, b)| if x + by > b.1 { -by } else { by }).collect()
}

fn slope(x: &[f64], bounds: &[(f64, f64)], surface: &mut impl Surface) -> Vec<f64> {
    let by = inwards(x, bounds, DIFFERENCE);
    surface.changes(x, &by).iter().zip(&by).map(|(change, by)| change / by).collect()
}

/// Slopes, and the diagonal inverse of the curvatures, from steps to either side. Where the surface is flat or bends
/// upwards, the slope decides how far a step goes.
fn curvatures(x: &[f64], bounds: &[(f64, f64)], surface: &mut impl Surface, found: &mut Curvature) -> Vec<f64> {
    let n = x.len();
    let by = inwards(x, bounds, WIDE_DIFFERENCE);
    let ahead = surface.changes(x, &by);
    // Behind a bound there is nothing to be seen: half a step ahead says as much.
    let other: Vec<f64> = (0..n)
        .map(|i| if x[i] - by[i] < bounds[i].0 || x[i] - by[i] > bounds[i].1 { 0.5 * by[i] } else { -by[i] })
        .collect();
    let behind = surface.changes(x, &other);
    found.0 = vec![0.0; n * n];
    let mut gradient = Vec::with_capacity(n);
    for i in 0..n {
        // The parabola through the three points.
        let [a, b] = [by[i], other[i]];
        let [fa, fb] = [ahead[i] / a, behind[i] / b];
        let second = 2.0 * (fa - fb) / (a - b);
        let first = fa - 0.5 * second * a;
        gradient.push(first);
        found.0[i * n + i] = 1.0 / (-second).max(first.abs() / REACH).max(1e-2);
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
    use super::{Curvature, Surface, maximize};

    struct Plain<F>(F);

    impl<F: Fn(&[f64]) -> f64> Surface for Plain<F> {
        fn value(&mut self, x: &[f64]) -> f64 {
            (self.0)(x)
        }

        fn changes(&mut self, x: &[f64], by: &[f64]) -> Vec<f64> {
            let moved = |i: usize| (0..x.len()).map(|j| if i == j { x[j] + by[j] } else { x[j] }).collect::<Vec<_>>();
            (0..x.len()).map(|i| (self.0)(&moved(i)) - (self.0)(x)).collect()
        }
    }

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        // Rosenbrock's function, upside down.
        let f = |x: &[f64]| -(100.0 * (x[1] - x[0] * x[0]).powi(2) + (1.0 - x[0]).powi(2));
        let start = vec![-1.2, 1.0];
        let bounds = [(-5.0, 5.0); 2];
        let (x, _) = maximize(start.clone(), f(&start), &bounds, 1e-12, &mut Plain(f), &mut Curvature::default());
        assert!((x[0] - 1.0).abs() < 1e-2 && (x[1] - 1.0).abs() < 2e-2, "{x:?}");
    }

    #[test]
    fn bounds_hold() {
        let f = |x: &[f64]| -(x[0] - 3.0).powi(2) - (x[1] - 0.5).powi(2) - x[0] * x[1] * 0.1;
        let bounds = [(-1.0, 1.0), (-2.0, 2.0)];
        for start in [vec![0.0, 0.0], vec![1.0, 2.0], vec![-1.0, -2.0]] {
            let (x, value) =
                maximize(start.clone(), f(&start), &bounds, 1e-10, &mut Plain(f), &mut Curvature::default());
            assert!((x[0] - 1.0).abs() < 1e-9 && (x[1] - 0.45).abs() < 1e-3, "{x:?}");
            assert_eq!(value, f(&x));
        }
    }

    /// Steep along one coordinate, flat along another: what is learnt in a first search helps a second one.
    #[test]
    fn scales_may_differ_by_much() {
        let f = |x: &[f64]| -1e6 * (x[0] - 0.1).powi(2) - 1e-1 * (x[1] + 0.7).powi(2) - (x[2] - x[1]).powi(2);
        let bounds = [(-5.0, 5.0); 3];
        let mut curvature = Curvature::default();
        let (x, _) = maximize(vec![0.0; 3], f(&[0.0; 3]), &bounds, 1e-9, &mut Plain(f), &mut curvature);
        assert!((x[1] + 0.7).abs() < 1e-2, "{x:?}");
        let again = maximize(vec![0.3, 1.0, 1.0], f(&[0.3, 1.0, 1.0]), &bounds, 1e-9, &mut Plain(f), &mut curvature);
        // Differences ahead see the maximum half of their step too early.
        assert!(again.1 > -1e-4, "{again:?}");
    }
}
