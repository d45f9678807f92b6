//! Quantities with their unit in the text: `256 KiB`, `25.6 GB/s`, `160 ns`, `100 GFLOP/s`.
//!
//! Parsing is exact: the decimal text, shifted by its unit, is rounded once. The `format_*` functions give a text that
//! parses back to the very same number; the `approximate_*` functions give a short one for people.

use thiserror::Error;

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The text does not begin with a decimal number.
    #[error("\"{text}\" does not begin with a number; write a {quantity} such as \"{example}\"")]
    NoNumber {
        /// The whole text.
        text: String,
        /// What was asked for.
        quantity: &'static str,
        /// A right text.
        example: &'static str,
    },
    /// A number without a unit.
    #[error("\"{text}\" has no unit; write a {quantity} such as \"{example}\" (units: {known})")]
    NoUnit {
        /// The whole text.
        text: String,
        /// What was asked for.
        quantity: &'static str,
        /// A right text.
        example: &'static str,
        /// The units that are known.
        known: String,
    },
    /// A unit that this quantity does not have.
    #[error("\"{unit}\" in \"{text}\" is not a unit of a {quantity}{}; units: {known}", suggest(.nearest))]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The unit as it was written.
        unit: String,
        /// What was asked for.
        quantity: &'static str,
        /// The unit that differs only in upper and lower case, if there is one.
        nearest: Option<&'static str>,
        /// The units that are known.
        known: String,
    },
    /// A fraction of one byte.
    #[error("\"{text}\" is not a whole number of bytes")]
    NotWhole {
        /// The whole text.
        text: String,
    },
    /// More than the number type holds.
    #[error("\"{text}\" is too large for a {quantity}")]
    TooLarge {
        /// The whole text.
        text: String,
        /// What was asked for.
        quantity: &'static str,
    },
}

fn suggest(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |unit| format!(" (did you mean \"{unit}\"?)"))
}

/// One unit: its name and its size as `10^tens * 2^twos` of the base unit.
struct Unit {
    name: &'static str,
    tens: i32,
    twos: u32,
}

const fn ten(name: &'static str, tens: i32) -> Unit {
    Unit { name, tens, twos: 0 }
}

const fn two(name: &'static str, twos: u32) -> Unit {
    Unit { name, tens: 0, twos }
}

/// A quantity: its name for messages, a right text, and its units. The first unit is the base unit.
struct Quantity {
    name: &'static str,
    example: &'static str,
    units: &'static [Unit],
}

const BYTES: Quantity = Quantity {
    name: "size",
    example: "256 MiB",
    units: &[
        ten("B", 0),
        two("KiB", 10),
        two("MiB", 20),
        two("GiB", 30),
        two("TiB", 40),
        two("PiB", 50),
        ten("kB", 3),
        ten("KB", 3),
        ten("MB", 6),
        ten("GB", 9),
        ten("TB", 12),
        ten("PB", 15),
    ],
};

const BANDWIDTH: Quantity = Quantity {
    name: "bandwidth",
    example: "25.6 GB/s",
    units: &[
        ten("B/s", 0),
        ten("KB/s", 3),
        ten("kB/s", 3),
        ten("MB/s", 6),
        ten("GB/s", 9),
        ten("TB/s", 12),
        two("KiB/s", 10),
        two("MiB/s", 20),
        two("GiB/s", 30),
        two("TiB/s", 40),
    ],
};

const TIME: Quantity = Quantity {
    name: "time",
    example: "160 ns",
    units: &[ten("ns", 0), ten("µs", 3), ten("us", 3), ten("ms", 6), ten("s", 9)],
};

const FLOPS: Quantity = Quantity {
    name: "rate",
    example: "100 GFLOP/s",
    units: &[
        ten("FLOP/s", 0),
        ten("kFLOP/s", 3),
        ten("MFLOP/s", 6),
        ten("GFLOP/s", 9),
        ten("TFLOP/s", 12),
        ten("PFLOP/s", 15),
    ],
};

impl Quantity {
    fn known(&self) -> String {
        let names: Vec<&str> = self.units.iter().map(|unit| unit.name).collect();
        names.join(", ")
    }

    /// Splits `text` into its decimal number and its unit.
    fn split<'t>(&self, text: &'t str) -> Result<(&'t str, &'static Unit), UnitError> {
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let unit = unit.trim();
        let digits_first = number.starts_with(|c: char| c.is_ascii_digit());
        if !digits_first || number.ends_with('.') || number.matches('.').count() > 1 {
            return Err(UnitError::NoNumber { text: text.into(), quantity: self.name, example: self.example });
        }
        if unit.is_empty() {
            return Err(UnitError::NoUnit {
                text: text.into(),
                quantity: self.name,
                example: self.example,
                known: self.known(),
            });
        }
        match self.units.iter().find(|known| known.name == unit) {
            Some(found) => Ok((number, found)),
            None => Err(UnitError::UnknownUnit {
                text: text.into(),
                unit: unit.into(),
                quantity: self.name,
                nearest: self.units.iter().map(|known| known.name).find(|known| known.eq_ignore_ascii_case(unit)),
                known: self.known(),
            }),
        }
    }

    /// The value of `text` in the base unit, rounded once.
    fn parse(&self, text: &str) -> Result<f64, UnitError> {
        let (number, unit) = self.split(text)?;
        let too_large = || UnitError::TooLarge { text: text.into(), quantity: self.name };
        // The decimal exponent goes into the text, so that the conversion rounds only once; a power of two is exact.
        let decimal: f64 = format!("{number}e{}", unit.tens).parse().map_err(|_| too_large())?;
        let value = decimal * (1u64 << unit.twos) as f64;
        if value.is_finite() { Ok(value) } else { Err(too_large()) }
    }

    /// A text that parses back to exactly `value`, in the largest decimal unit that keeps it exact and short.
    fn format(&self, value: f64) -> String {
        let decimal = self.units.iter().filter(|unit| unit.twos == 0);
        for unit in decimal.clone().rev() {
            let scaled = value / 10f64.powi(unit.tens);
            let text = format!("{scaled} {}", unit.name);
            if scaled >= 1.0 && self.parse(&text) == Ok(value) {
                return text;
            }
        }
        format!("{value} {}", self.units[0].name)
    }

    /// About `value`, with three significant digits.
    fn approximate(&self, value: f64) -> String {
        let decimal = self.units.iter().filter(|unit| unit.twos == 0);
        // 0.9995 would be rounded up to the next unit's 1.00.
        let unit = decimal.rev().find(|unit| value >= 0.9995 * 10f64.powi(unit.tens)).unwrap_or(&self.units[0]);
        three_digits(value / 10f64.powi(unit.tens), unit.name)
    }
}

fn three_digits(scaled: f64, unit: &str) -> String {
    let digits = match scaled {
        _ if scaled == scaled.trunc() && scaled < 1000.0 => 0,
        _ if scaled < 9.995 => 2,
        _ if scaled < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$} {unit}")
}

/// Bytes in a text such as `256 KiB`, `256MiB` or `1.5 GB`. A fraction of a byte that a larger unit leaves over is
/// dropped.
///
/// # Errors
/// No number, no unit, an unknown unit, a fraction of `B`, or more than `u64` holds.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = BYTES.split(text)?;
    let too_large = || UnitError::TooLarge { text: text.into(), quantity: BYTES.name };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scale = u128::from(10u64.pow(unit.tens as u32)) << unit.twos;
    let whole: u128 = whole.parse().map_err(|_| too_large())?;
    // Digits beyond the eighteenth are below one byte of every unit here.
    let fraction = &fraction[..fraction.len().min(18)];
    if scale == 1 && fraction.bytes().any(|digit| digit != b'0') {
        return Err(UnitError::NotWhole { text: text.into() });
    }
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| too_large())? };
    let part = part * scale / 10u128.pow(fraction.len() as u32);
    let bytes = whole.checked_mul(scale).and_then(|bytes| bytes.checked_add(part)).ok_or_else(too_large)?;
    u64::try_from(bytes).map_err(|_| too_large())
}

/// Bytes per second in a text such as `25.6 GB/s`.
///
/// # Errors
/// No number, no unit, an unknown unit, or not finite.
pub fn parse_bandwidth(text: &str) -> Result<f64, UnitError> {
    BANDWIDTH.parse(text)
}

/// Nanoseconds in a text such as `160 ns` or `100 us`.
///
/// # Errors
/// No number, no unit, an unknown unit, or not finite.
pub fn parse_time(text: &str) -> Result<f64, UnitError> {
    TIME.parse(text)
}

/// Floating-point operations per second in a text such as `100 GFLOP/s`.
///
/// # Errors
/// No number, no unit, an unknown unit, or not finite.
pub fn parse_flops(text: &str) -> Result<f64, UnitError> {
    FLOPS.parse(text)
}

/// The shortest text that [`parse_bytes`] reads back as exactly `bytes`: `256 KiB`, `1.5 GB`, `1000003 B`.
pub fn format_bytes(bytes: u64) -> String {
    let texts = BYTES.units.iter().map(|unit| {
        let size = 10u64.pow(unit.tens as u32) << unit.twos;
        format!("{} {}", bytes as f64 / size as f64, unit.name)
    });
    let exact = texts.filter(|text| parse_bytes(text) == Ok(bytes));
    exact.min_by_key(String::len).unwrap_or_else(|| format!("{bytes} B"))
}

/// A text that [`parse_bandwidth`] reads back as exactly this number.
pub fn format_bandwidth(bytes_per_second: f64) -> String {
    BANDWIDTH.format(bytes_per_second)
}

/// A text that [`parse_time`] reads back as exactly this number.
pub fn format_time(time_ns: f64) -> String {
    TIME.format(time_ns)
}

/// A text that [`parse_flops`] reads back as exactly this number.
pub fn format_flops(flops_per_second: f64) -> String {
    FLOPS.format(flops_per_second)
}

/// This many bytes, for people: as [`format_bytes`] where that is short (`1.5 GiB`), else about as many, and in brackets
/// all digits, which [`parse_bytes`] reads: `507 MiB (531365760 B)`. The short number is rounded up, so that who is told to
/// give that much and gives the short number gives enough.
pub fn readable_bytes(bytes: u64) -> String {
    /// Digits that are taken in at one look.
    const DIGITS_MAX: usize = 5;
    let exact = format_bytes(bytes);
    match exact.find(' ') {
        Some(digits) if digits > DIGITS_MAX => format!("{} ({bytes} B)", bytes_rounded(bytes, f64::ceil)),
        _ => exact,
    }
}

/// About this many bytes, for people, in binary units: `23.1 GiB`.
pub fn approximate_bytes(bytes: u64) -> String {
    bytes_rounded(bytes, f64::round)
}

/// With three digits, by `round`.
fn bytes_rounded(bytes: u64, round: fn(f64) -> f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut scaled = bytes as f64;
    let mut unit = 0;
    while scaled >= 1023.5 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let tens = match scaled {
        _ if scaled < 9.995 => 100.0,
        _ if scaled < 99.95 => 10.0,
        _ => 1.0,
    };
    three_digits(round(scaled * tens) / tens, units[unit])
}

/// About this bandwidth, for people: `25.6 GB/s`.
pub fn approximate_bandwidth(bytes_per_second: f64) -> String {
    BANDWIDTH.approximate(bytes_per_second)
}

/// About this time, for people: `160 ns`.
pub fn approximate_time(time_ns: f64) -> String {
    TIME.approximate(time_ns)
}

/// About this rate, for people: `100 GFLOP/s`.
pub fn approximate_flops(flops_per_second: f64) -> String {
    FLOPS.approximate(flops_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_documented_texts() {
        assert_eq!(parse_bytes("256 KiB"), Ok(256 << 10));
        assert_eq!(parse_bytes("256MiB"), Ok(256 << 20));
        assert_eq!(parse_bytes(" 1.5 GB "), Ok(1_500_000_000));
        assert_eq!(parse_bytes("0 B"), Ok(0));
        assert_eq!(parse_bytes("0.1 KiB"), Ok(102));
        assert_eq!(parse_bandwidth("25.6 GB/s"), Ok(25.6e9));
        assert_eq!(parse_bandwidth("1 GiB/s"), Ok(1073741824.0));
        assert_eq!(parse_time("160 ns"), Ok(160.0));
        assert_eq!(parse_time("100 us"), Ok(100e3));
        assert_eq!(parse_time("100 µs"), Ok(100e3));
        assert_eq!(parse_time("1.5 s"), Ok(1.5e9));
        assert_eq!(parse_flops("100 GFLOP/s"), Ok(1e11));
    }

    #[test]
    fn says_what_is_wrong_and_what_would_be_right() {
        let cases: [(String, &[&str]); 8] = [
            (parse_bytes("256 Mib").unwrap_err().to_string(), &["\"Mib\"", "did you mean \"MiB\"?"]),
            (parse_bytes("256").unwrap_err().to_string(), &["no unit", "256 MiB"]),
            (parse_bytes("MiB").unwrap_err().to_string(), &["number", "256 MiB"]),
            (parse_bytes("1.5 B").unwrap_err().to_string(), &["whole"]),
            (parse_bytes("99999999999 PiB").unwrap_err().to_string(), &["too large"]),
            (parse_bandwidth("25.6 GB").unwrap_err().to_string(), &["\"GB\"", "bandwidth", "GB/s"]),
            (parse_time("3 minutes").unwrap_err().to_string(), &["\"minutes\"", "time", "ms"]),
            (parse_flops("-1 GFLOP/s").unwrap_err().to_string(), &["number", "100 GFLOP/s"]),
        ];
        for (message, parts) in cases {
            for part in parts {
                assert!(message.contains(part), "{message:?} lacks {part:?}");
            }
        }
    }

    #[test]
    fn writes_short_exact_texts() {
        assert_eq!(format_bytes(256 << 10), "256 KiB");
        assert_eq!(format_bytes(3 << 29), "1.5 GiB");
        assert_eq!(format_bytes(1_500_000_000), "1.5 GB");
        assert_eq!(format_bytes(1_000_003), "1000003 B");
        assert_eq!(format_bandwidth(25.6e9), "25.6 GB/s");
        assert_eq!(format_time(100e3), "100 us");
        assert_eq!(format_time(0.5), "0.5 ns");
        assert_eq!(format_flops(25.6e9), "25.6 GFLOP/s");
    }

    #[test]
    fn writes_sizes_for_people_with_all_their_digits() {
        assert_eq!(readable_bytes(256 << 10), "256 KiB");
        assert_eq!(readable_bytes(3 << 29), "1.5 GiB");
        assert_eq!(readable_bytes(2050), "2050 B");
        assert_eq!(readable_bytes(531_365_760), "507 MiB (531365760 B)");
        assert_eq!(readable_bytes(278_784), "273 KiB (278784 B)");
        for bytes in (1..2000).map(|i: u64| i * i * i * 77 + i) {
            let text = readable_bytes(bytes);
            assert!(parse_bytes(text.split(" (").next().unwrap()).unwrap() >= bytes, "{text}");
        }
        assert_eq!(readable_bytes(u64::MAX), "16 EiB (18446744073709551615 B)");
    }

    #[test]
    fn writes_three_digits_for_people() {
        assert_eq!(approximate_bytes(24_800_000_000), "23.1 GiB");
        assert_eq!(approximate_bytes((1 << 30) - 1), "1 GiB");
        assert_eq!(approximate_bandwidth(25.6e9), "25.6 GB/s");
        assert_eq!(approximate_bandwidth(999.9e6), "1.00 GB/s");
        assert_eq!(approximate_time(90.61), "90.6 ns");
        assert_eq!(approximate_time(160.0), "160 ns");
        assert_eq!(approximate_flops(0.0), "0 FLOP/s");
    }

    proptest! {
        #[test]
        fn bytes_read_back(bytes: u64) {
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn round_bytes_read_back(number in 1u64..5000, shift in 0u32..50) {
            let bytes = number << shift;
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn numbers_read_back(value in prop_oneof![0f64..1e3, 1e3..1e15, proptest::num::f64::POSITIVE]) {
            prop_assert_eq!(parse_bandwidth(&format_bandwidth(value)), Ok(value));
            prop_assert_eq!(parse_time(&format_time(value)), Ok(value));
            prop_assert_eq!(parse_flops(&format_flops(value)), Ok(value));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = (parse_bytes(&text), parse_bandwidth(&text), parse_time(&text), parse_flops(&text));
        }
    }
}
