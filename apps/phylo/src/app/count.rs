//! How many searches, or bootstrap replicates, are wanted.

/// A number of jobs, or as many as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Number(usize),
    /// Until there are enough, but no more than this.
    Auto {
        /// The most.
        most: usize,
        /// What the rule is called that says when there are enough.
        rule: &'static str,
    },
}

/// Until the best tree was found twice.
const TWICE: &str = "auto";

/// Until supports do not change ([`crate::convergence`]).
const MAJORITY_RULE: &str = "autoMRE";

/// The most searches where nothing else is said: RAxML-NG's number, ten from parsimony and ten from random trees.
const SEARCHES_MOST: usize = 20;

/// The most replicates: RAxML's and RAxML-NG's.
const REPLICATES_MOST: usize = 1000;

impl Count {
    /// Searches where nothing else is said.
    pub const SEARCHES: Count = Count::Auto { most: SEARCHES_MOST, rule: TWICE };

    /// The most jobs that there can be.
    pub fn most(self) -> usize {
        match self {
            Count::Number(most) | Count::Auto { most, .. } => most,
        }
    }

    /// The jobs that are done before it is looked whether they are enough.
    pub(crate) fn first(self, step: usize) -> usize {
        match self {
            Count::Number(number) => number,
            Count::Auto { most, .. } => most.min(step),
        }
    }

    /// How many searches are typed.
    pub(crate) fn searches(text: &str) -> Result<Count, String> {
        Count::parse(text, TWICE, SEARCHES_MOST, "searches")
    }

    /// How many replicates are.
    pub(crate) fn replicates(text: &str) -> Result<Count, String> {
        Count::parse(text, MAJORITY_RULE, REPLICATES_MOST, "replicates")
    }

    /// A number, or the rule's name, which the most may follow in braces.
    fn parse(text: &str, rule: &'static str, most: usize, what: &str) -> Result<Count, String> {
        let lower = text.to_ascii_lowercase();
        let Some(rest) = lower.strip_prefix(&rule.to_ascii_lowercase()) else {
            let expected = || format!("a number of {what}, {rule}, or {rule}{{MOST}} was expected");
            return lower.parse().map(Count::Number).map_err(|_| expected());
        };
        if rest.is_empty() {
            return Ok(Count::Auto { most, rule });
        }
        let most = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).and_then(|most| most.parse().ok());
        match most {
            Some(most) if most > 0 => Ok(Count::Auto { most, rule }),
            _ => Err(format!("{text:?}: {rule} may be followed by the most {what}, as {rule}{{500}}")),
        }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Count::Number(number) => write!(f, "{number}"),
            Count::Auto { most, rule } => write!(f, "{rule}{{{most}}}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_as_many_as_it_takes() {
        assert_eq!(Count::replicates("100"), Ok(Count::Number(100)));
        assert_eq!(Count::replicates("autoMRE"), Ok(Count::Auto { most: 1000, rule: MAJORITY_RULE }));
        assert_eq!(Count::replicates("automre{500}"), Ok(Count::Auto { most: 500, rule: MAJORITY_RULE }));
        assert_eq!(Count::searches("auto"), Ok(Count::SEARCHES));
        assert_eq!(Count::searches("7"), Ok(Count::Number(7)));
        for text in ["7", "auto{150}", "auto{1}"] {
            assert_eq!(Count::searches(text).unwrap().to_string(), text);
        }
        for text in ["0", "autoMRE{1000}"] {
            assert_eq!(Count::replicates(text).unwrap().to_string(), text);
        }
        for wrong in ["", "-1", "auto", "autoMRE{0}", "autoMRE{x}", "autoMRE5"] {
            Count::replicates(wrong).unwrap_err();
        }
        for wrong in ["", "-1", "many", "autoMRE", "auto{0}", "auto5"] {
            assert!(Count::searches(wrong).unwrap_err().contains("auto{"));
        }
    }

    #[test]
    fn some_are_done_before_it_is_looked() {
        assert_eq!([Count::Number(7).first(5), Count::SEARCHES.first(5)], [7, 5]);
        assert_eq!(Count::Auto { most: 3, rule: TWICE }.first(5), 3);
    }
}
