//! Brent's method: a maximum of a function of one variable without derivatives.

/// The larger root of the golden section, (3 - sqrt 5) / 2.
const GOLDEN: f64 = 0.381_966_011_250_105_1;

/// A maximum of `f` within `bounds`, to about `tolerance` in x, from a point with its value; the interval that is looked
/// at begins as `reach` around it and grows while the maximum lies at its end. Gives the best point and value seen (Brent
/// 1973, chapter 5; the variable names are his).
pub(super) fn maximum(
    bounds: (f64, f64),
    start: (f64, f64),
    reach: f64,
    tolerance: f64,
    mut f: impl FnMut(f64) -> f64,
) -> (f64, f64) {
    let (mut x, mut fx) = (start.0.clamp(bounds.0, bounds.1), start.1);
    if x != start.0 {
        fx = f(x);
    }
    let mut reach = reach;
    for _ in 0..8 {
        let (low, high) = ((x - reach).max(bounds.0), (x + reach).min(bounds.1));
        let center = x;
        (x, fx) = within(low, high, (x, fx), tolerance, &mut f);
        let at_end = |end: f64, bound: f64| end != bound && (x - end).abs() < 4.0 * tolerance;
        if !at_end(low, bounds.0) && !at_end(high, bounds.1) || x == center {
            break;
        }
        reach *= 3.0;
    }
    (x, fx)
}

fn within(mut a: f64, mut b: f64, start: (f64, f64), tolerance: f64, f: &mut impl FnMut(f64) -> f64) -> (f64, f64) {
    let (mut x, mut fx) = (start.0, -start.1);
    let (mut w, mut fw, mut v, mut fv) = (x, fx, x, fx);
    let (mut d, mut e) = (0.0f64, 0.0f64);
    for _ in 0..60 {
        let middle = 0.5 * (a + b);
        if (x - middle).abs() <= 2.0 * tolerance - 0.5 * (b - a) {
            break;
        }
        let mut golden = true;
        if e.abs() > tolerance {
            // A parabola through x, v and w.
            let r = (x - w) * (fx - fv);
            let mut q = (x - v) * (fx - fw);
            let mut p = (x - v) * q - (x - w) * r;
            q = 2.0 * (q - r);
            if q > 0.0 {
                p = -p;
            }
            q = q.abs();
            let before = std::mem::replace(&mut e, d);
            if p.abs() < (0.5 * q * before).abs() && p > q * (a - x) && p < q * (b - x) {
                d = p / q;
                let u = x + d;
                if u - a < 2.0 * tolerance || b - u < 2.0 * tolerance {
                    d = if x < middle { tolerance } else { -tolerance };
                }
                golden = false;
            }
        }
        if golden {
            e = if x < middle { b - x } else { a - x };
            d = GOLDEN * e;
        }
        let u = x + if d.abs() >= tolerance { d } else { tolerance.copysign(d) };
        let fu = -f(u);
        if fu <= fx {
            if u < x {
                b = x
            } else {
                a = x
            }
            (v, fv, w, fw, x, fx) = (w, fw, x, fx, u, fu);
        } else {
            if u < x {
                a = u
            } else {
                b = u
            }
            if fu <= fw || w == x {
                (v, fv, w, fw) = (w, fw, u, fu);
            } else if fu <= fv || v == x || v == w {
                (v, fv) = (u, fu);
            }
        }
    }
    (x, -fx)
}

#[cfg(test)]
mod tests {
    use super::maximum;

    #[test]
    fn maxima_are_found_inside_outside_the_reach_and_at_bounds() {
        for (at, start) in [(0.3, 0.2), (5.0, -3.0), (-9.0, 9.0), (0.0, 0.0)] {
            let f = |x: f64| -(x - at).powi(2) - 0.01 * (x - at).powi(4);
            let (x, value) = maximum((-10.0, 10.0), (start, f(start)), 1.0, 1e-5, f);
            assert!((x - at).abs() < 1e-4 && value > -1e-8, "{at} from {start}: {x}");
        }
        let (x, _) = maximum((-1.0, 2.0), (0.0, 0.0), 0.5, 1e-5, |x| x);
        assert!(x > 2.0 - 1e-3);
        let (x, value) = maximum((0.0, 1.0), (0.5, 7.0), 0.1, 1e-5, |_| 7.0);
        assert!((0.0..=1.0).contains(&x) && value == 7.0);
    }
}
