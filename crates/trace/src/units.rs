//! Numbers for people.

fn significant(value: f64, unit: &str) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {unit}")
}

/// A duration in seconds with three significant digits: `1.25 ms`.
pub(crate) fn time(seconds: f64) -> String {
    let size = seconds.abs();
    match size {
        _ if size >= 0.9995 => significant(seconds, "s"),
        _ if size >= 0.9995e-3 => significant(seconds * 1e3, "ms"),
        _ if size >= 0.9995e-6 => significant(seconds * 1e6, "us"),
        _ => format!("{:.0} ns", seconds * 1e9),
    }
}

/// Bytes with three significant digits: `4.00 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let size = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => significant(size / 1024.0, "KiB"),
        0x10_0000..0x4000_0000 => significant(size / f64::from(1 << 20), "MiB"),
        _ => significant(size / f64::from(1 << 30), "GiB"),
    }
}

/// Bytes a second: `2.50 GB/s`.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    match bytes_per_second {
        r if r >= 1e9 => significant(r / 1e9, "GB/s"),
        r if r >= 1e6 => significant(r / 1e6, "MB/s"),
        r => significant(r / 1e3, "kB/s"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn three_digits() {
        assert_eq!(super::time(0.001_25), "1.25 ms");
        assert_eq!(super::time(0.999_9e-3), "1.00 ms");
        assert_eq!(super::time(123.4), "123 s");
        assert_eq!(super::bytes(4 << 20), "4.00 MiB");
        assert_eq!(super::bytes(17), "17 B");
        assert_eq!(super::rate(2.5e9), "2.50 GB/s");
    }
}
