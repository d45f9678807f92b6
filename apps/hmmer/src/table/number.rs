//! Numbers as C's `printf` writes them.

/// `%.2g`: two significant digits, without trailing zeros, with an exponent below 10^-4 and from 100 on.
pub(super) fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let scientific = format!("{value:.1e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..2).contains(&exponent) {
        let fixed = format!("{value:.*}", (1 - exponent) as usize);
        return if fixed.contains('.') { fixed.trim_end_matches('0').trim_end_matches('.').to_owned() } else { fixed };
    }
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn as_printf_writes() {
        for (value, text) in [
            (8.71e-67, "8.7e-67"),
            (2.0e-61, "2e-61"),
            (1.0e-300, "1e-300"),
            (0.0123, "0.012"),
            (0.00012, "0.00012"),
            (0.000012, "1.2e-05"),
            (0.0996, "0.1"),
            (0.99, "0.99"),
            (0.999, "1"),
            (2.94, "2.9"),
            (5.0, "5"),
            (9.96, "10"),
            (16.3, "16"),
            (99.6, "1e+02"),
            (100.0, "1e+02"),
            (1234.0, "1.2e+03"),
            (0.0, "0"),
        ] {
            assert_eq!(general(value), text, "{value}");
        }
    }
}
