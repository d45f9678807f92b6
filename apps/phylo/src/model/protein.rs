//! Published amino-acid models: exchangeabilities and frequencies, states in the order A R N D C Q E G H I L K M F P S T
//! W Y V. Each file of numbers names the publication that they are from, and who distributes them.

use std::sync::OnceLock;

/// A published model.
#[derive(Debug)]
pub(crate) struct Matrix {
    pub(crate) name: &'static str,
    /// The upper triangle by rows: s_01, s_02, ..., s_12, ...
    pub(crate) exchangeabilities: Vec<f64>,
    /// With sum 1.
    pub(crate) frequencies: Vec<f64>,
}

/// Names and files: after lines of comments the lower triangle by rows (s_10, s_20, s_21, s_30, ...), and the frequencies.
const FILES: [(&str, &str); 18] = [
    ("LG", include_str!("matrices/lg.txt")),
    ("WAG", include_str!("matrices/wag.txt")),
    ("JTT", include_str!("matrices/jtt.txt")),
    ("JTTDCMut", include_str!("matrices/jttdcmut.txt")),
    ("Dayhoff", include_str!("matrices/dayhoff.txt")),
    ("DCMut", include_str!("matrices/dcmut.txt")),
    ("Blosum62", include_str!("matrices/blosum62.txt")),
    ("cpREV", include_str!("matrices/cprev.txt")),
    ("rtREV", include_str!("matrices/rtrev.txt")),
    ("HIVb", include_str!("matrices/hivb.txt")),
    ("HIVw", include_str!("matrices/hivw.txt")),
    ("mtREV", include_str!("matrices/mtrev.txt")),
    ("mtMAM", include_str!("matrices/mtmam.txt")),
    ("mtART", include_str!("matrices/mtart.txt")),
    ("mtZOA", include_str!("matrices/mtzoa.txt")),
    ("mtMet", include_str!("matrices/mtmet.txt")),
    ("mtVer", include_str!("matrices/mtver.txt")),
    ("mtInv", include_str!("matrices/mtinv.txt")),
];

impl Matrix {
    /// All of them.
    pub(crate) fn all() -> &'static [Matrix] {
        static ALL: OnceLock<Vec<Matrix>> = OnceLock::new();
        ALL.get_or_init(|| FILES.iter().map(|(name, text)| Matrix::parse(name, text)).collect())
    }

    /// The model of this name, in upper or lower case. RAxML-NG writes some names with a hyphen.
    pub(crate) fn named(name: &str) -> Option<&'static Matrix> {
        let name = name.replace('-', "");
        Matrix::all().iter().find(|m| m.name.eq_ignore_ascii_case(&name))
    }

    /// A file of this program: a test reads all of them.
    fn parse(name: &'static str, text: &str) -> Matrix {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let numbers: Vec<f64> = lines.flat_map(str::split_whitespace).filter_map(|word| word.parse().ok()).collect();
        let (lower, frequencies) = numbers.split_at(190.min(numbers.len()));
        let lower = |i: usize, j: usize| lower[i * (i - 1) / 2 + j];
        let total: f64 = frequencies.iter().sum();
        Matrix {
            name,
            exchangeabilities: (0..20).flat_map(|i| (i + 1..20).map(move |j| lower(j, i))).collect(),
            frequencies: frequencies.iter().map(|f| f / total).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_whole() {
        for ((name, text), matrix) in FILES.iter().zip(Matrix::all()) {
            assert!(text.starts_with(&format!("# {name}: ")), "{name}");
            let words = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
            let numbers: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
            assert_eq!(numbers.len(), 210, "{name}");
            assert!((numbers[190..].iter().sum::<f64>() - 1.0).abs() < 2e-6, "{name}");
            assert!(matrix.exchangeabilities.iter().all(|&s| s >= 0.0), "{name}");
            assert!(matrix.frequencies.iter().all(|&f| f > 0.0), "{name}");
        }
    }
}
