//! Is a candidate right? Pure: metrics in, findings out.
//!
//! Checks that need one partition alone run already while it is computed, and again over the
//! stored bytes; the others need the range.

mod bounds;
mod claims;
mod defaults;
mod expected;
mod partition;
mod range;
mod suggest;
mod values;

use serde::{Deserialize, Serialize};

use crate::spec::Checks;

pub use claims::{ClaimMeter, ClaimTallies, ClaimTally, Claims};
pub use partition::{PartitionFacts, check_partition};
pub use range::{ComparedPartition, RangeFacts, check_range};
pub use suggest::suggest;
pub use values::{DomainMetrics, OutsideMetrics, ValueMeter};

/// What a check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It holds, but a person should look.
    Warn,
    /// It does not hold.
    Fail,
}

/// What an expectation rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// It always holds of what is right.
    #[default]
    Always,
    /// The spec says so.
    Declared,
    /// What production has.
    Production,
    /// What the plan says.
    Plan,
    /// What production had before.
    History,
    /// What the sources have.
    Sources,
    /// What the writer recorded.
    Writer,
}

/// One check's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The check: `unique-key`, `coverage`, …
    pub check: String,
    /// The partition; none: the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The batch, counted from 1, where the check is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// The column, where the check is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What it says.
    pub verdict: Verdict,
    /// What was expected.
    pub expected: String,
    /// What was observed.
    pub observed: String,
    /// The bound alone, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// What the expectation rests on.
    #[serde(default)]
    pub basis: Basis,
}

impl Finding {
    fn new(
        check: &str,
        holds: bool,
        expected: impl Into<String>,
        observed: impl Into<String>,
    ) -> Self {
        Self {
            check: check.to_owned(),
            partition: None,
            batch: None,
            column: None,
            verdict: if holds { Verdict::Pass } else { Verdict::Fail },
            expected: expected.into(),
            observed: observed.into(),
            bound: None,
            basis: Basis::Always,
        }
    }

    fn bounded(self, basis: Basis, bound: impl Into<String>) -> Self {
        Self { basis, bound: Some(bound.into()), ..self }
    }

    fn on(self, basis: Basis) -> Self {
        Self { basis, ..self }
    }

    /// Of a rule that is a query for violating rows.
    pub(crate) fn of_rule(
        rule: &str,
        partition: &str,
        holds: bool,
        only_warns: bool,
        observed: String,
    ) -> Self {
        let finding = Self::new(rule, holds, "no violating row", observed)
            .in_partition(partition)
            .bounded(Basis::Declared, "no violating row");
        if only_warns { finding.warning() } else { finding }
    }

    /// Of a sample that was reconciled with a source.
    pub(crate) fn of_sample(
        partition: &str,
        holds: bool,
        expect: &str,
        source: &str,
        observed: String,
    ) -> Self {
        let expected = format!("of each row and its row of {source}: {expect}");
        Self::new("sample", holds, expected, observed)
            .in_partition(partition)
            .bounded(Basis::Sources, "no row of which it is not true")
    }

    fn in_partition(mut self, name: &str) -> Self {
        self.partition = Some(name.to_owned());
        self
    }

    fn of_column(mut self, name: &str) -> Self {
        self.column = Some(name.to_owned());
        self
    }

    fn in_batch(mut self, number: usize) -> Self {
        self.batch = Some(number);
        self
    }

    fn warning(mut self) -> Self {
        self.verdict = self.verdict.min(Verdict::Warn);
        self
    }

    /// In one line.
    pub fn line(&self) -> String {
        let mut place = self.check.clone();
        if let Some(column) = &self.column {
            place = format!("{place} {column}");
        }
        if let Some(partition) = &self.partition {
            place = format!("{place} in {partition}");
        }
        if let Some(batch) = self.batch {
            place = format!("{place} in batch {batch}");
        }
        format!("{place}: expected {}, observed {}", self.expected, self.observed)
    }
}

impl Checks {
    /// Failures of checks that the spec wants only to be warned of.
    pub(crate) fn soften(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let is_soft = |finding: &Finding| {
            let named = match &finding.column {
                Some(column) => format!("{} {column}", finding.check),
                None => finding.check.clone(),
            };
            self.warn.iter().any(|name| *name == named || *name == finding.check)
        };
        let each = findings.into_iter();
        each.map(|finding| if is_soft(&finding) { finding.warning() } else { finding }).collect()
    }
}

/// The worst of all findings; none at all is a pass.
pub fn verdict(findings: &[Finding]) -> Verdict {
    findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Pass)
}

/// A share as a percentage that never rounds to 0 or 100 when it is neither.
pub fn percent(part: u64, whole: u64) -> String {
    match (part, whole) {
        (_, 0) => "unknown".to_owned(),
        (0, _) => "0 %".to_owned(),
        (part, whole) if part == whole => "100 %".to_owned(),
        (part, whole) => {
            let share = part as f64 * 100.0 / whole as f64;
            format!("{:.2} %", share.clamp(0.01, 99.99))
        }
    }
}

#[cfg(test)]
mod tests;
