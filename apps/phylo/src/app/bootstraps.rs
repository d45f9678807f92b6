//! How many bootstrap replicates are wanted.

use std::str::FromStr;

/// A number of replicates, or as many as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bootstraps {
    /// So many.
    Number(usize),
    /// Until they are enough ([`crate::convergence`]), but no more than this.
    Auto {
        /// The most.
        most: usize,
    },
}

/// The most replicates where nothing else is said: RAxML's and RAxML-NG's.
const MOST: usize = 1000;

impl Bootstraps {
    /// The most replicates that there can be.
    pub fn most(self) -> usize {
        match self {
            Bootstraps::Number(most) | Bootstraps::Auto { most } => most,
        }
    }
}

impl std::fmt::Display for Bootstraps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bootstraps::Number(number) => write!(f, "{number}"),
            Bootstraps::Auto { most } => write!(f, "autoMRE{{{most}}}"),
        }
    }
}

impl FromStr for Bootstraps {
    type Err = String;

    fn from_str(text: &str) -> Result<Bootstraps, String> {
        let lower = text.to_ascii_lowercase();
        let Some(rest) = lower.strip_prefix("automre") else {
            return lower
                .parse()
                .map(Bootstraps::Number)
                .map_err(|_| "a number of replicates, autoMRE, or autoMRE{MOST} was expected".to_owned());
        };
        let most = match rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            None if rest.is_empty() => Some(MOST),
            None => None,
            Some(most) => most.parse().ok().filter(|&most| most > 0),
        };
        let most =
            most.ok_or_else(|| format!("{text:?}: autoMRE may be followed by the most replicates, as autoMRE{{500}}"));
        Ok(Bootstraps::Auto { most: most? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_as_many_as_it_takes() {
        assert_eq!("100".parse(), Ok(Bootstraps::Number(100)));
        assert_eq!("autoMRE".parse(), Ok(Bootstraps::Auto { most: 1000 }));
        assert_eq!("automre{500}".parse(), Ok(Bootstraps::Auto { most: 500 }));
        for number in [Bootstraps::Number(7), Bootstraps::Auto { most: 150 }] {
            assert_eq!(number.to_string().parse(), Ok(number));
        }
        for wrong in ["", "-1", "auto", "autoMRE{0}", "autoMRE{x}", "autoMRE5"] {
            wrong.parse::<Bootstraps>().unwrap_err();
        }
    }
}
