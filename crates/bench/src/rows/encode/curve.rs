//! Bits over quality, and how many more of them at equal quality.

/// Bits and PSNR at each quantiser.
pub(super) type Curve = [(f64, f64); 4];

/// How many more bits at equal quality: cubics through the logarithm of bits over PSNR, their means over what both have
/// (Bjontegaard, VCEG-M33).
///
/// # Errors
/// There is no quality that both have.
pub(super) fn more_bits(of: &Curve, than: &Curve) -> Result<f64, String> {
    let range = |points: &Curve| {
        let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        (least, points.iter().map(|point| point.1).fold(0.0, f64::max))
    };
    let (a, b) = (range(of), range(than));
    let (least, most) = (a.0.max(b.0), a.1.min(b.1));
    if least >= most {
        return Err(format!(
            "one has {:.2} to {:.2} dB, the other {:.2} to {:.2} dB: nothing to compare",
            a.0, a.1, b.0, b.1
        ));
    }
    // Lagrange's form, and Simpson's rule, which is exact for cubics.
    let at = |points: &Curve, x: f64| -> f64 {
        let term = |i: usize| {
            let others = (0..4).filter(|j| *j != i);
            points[i].0.ln() * others.map(|j| (x - points[j].1) / (points[i].1 - points[j].1)).product::<f64>()
        };
        (0..4).map(term).sum()
    };
    let mean = |points| (at(points, least) + 4.0 * at(points, (least + most) / 2.0) + at(points, most)) / 6.0;
    Ok((mean(of) - mean(than)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_bits_are_twice_the_bits() {
        let curve = [30.0, 34.0, 38.0, 42.0].map(|psnr: f64| ((psnr / 5.0 + 0.3 * (psnr / 4.0).sin()).exp(), psnr));
        assert!((more_bits(&curve.map(|(bits, psnr)| (2.0 * bits, psnr)), &curve).unwrap() - 2.0).abs() < 1e-9);
        assert!(more_bits(&curve.map(|(bits, psnr)| (bits, psnr + 20.0)), &curve).is_err());
    }
}
