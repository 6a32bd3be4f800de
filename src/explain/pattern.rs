//! What happened to a value, in one of few ways.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How values changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pattern {
    /// The row is only in production.
    OnlyProduction,
    /// The row is only in the candidate.
    OnlyCandidate,
    /// A value became null.
    BecameNull,
    /// A null became a value.
    WasNull,
    /// One value became another one.
    Replaced {
        /// Production's value.
        from: String,
        /// The candidate's.
        to: String,
    },
    /// Different values became one.
    Became {
        /// The candidate's value.
        value: String,
    },
    /// One value became different ones.
    Was {
        /// Production's value.
        value: String,
    },
    /// The sign turned.
    SignTurned,
    /// A number was added; of times, a span.
    Shifted {
        /// How much, with its sign.
        by: String,
    },
    /// Multiplied by a number, and rounded to the column's places.
    Scaled {
        /// By how much.
        by: String,
    },
    /// Only upper and lower case differ.
    Case,
    /// Only white space at the ends differs.
    Trimmed,
    /// Something was put before.
    Prefixed {
        /// What.
        with: String,
    },
    /// Something was taken from the beginning.
    PrefixLost {
        /// What.
        with: String,
    },
    /// Something was put behind.
    Suffixed {
        /// What.
        with: String,
    },
    /// Something was taken from the end.
    SuffixLost {
        /// What.
        with: String,
    },
    /// Rounded to so many places after the point.
    Rounded {
        /// How many.
        places: u8,
    },
    /// A number became no number.
    BecameNan,
    /// A number became infinite.
    BecameInfinite,
    /// Zero with the other sign.
    ZeroSign,
    /// By a millionth at most.
    Noise,
    /// None of these often enough.
    Unclassified,
}

impl Pattern {
    /// Whether production's value decides what became of it, and could be had back from that; else
    /// other rows with other values may follow the same pattern.
    pub fn decides(&self) -> bool {
        !matches!(
            self,
            Self::OnlyProduction
                | Self::OnlyCandidate
                | Self::WasNull
                | Self::BecameNull
                | Self::BecameNan
                | Self::BecameInfinite
                | Self::Became { .. }
                | Self::Was { .. }
                | Self::Case
                | Self::Trimmed
                | Self::Rounded { .. }
                | Self::Noise
                | Self::Unclassified
        )
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyProduction => f.write_str("row only in production"),
            Self::OnlyCandidate => f.write_str("row only in the candidate"),
            Self::BecameNull => f.write_str("value → null"),
            Self::WasNull => f.write_str("null → value"),
            Self::Replaced { from, to } => write!(f, "{from:?} → {to:?}"),
            Self::Became { value } => write!(f, "various → {value:?}"),
            Self::Was { value } => write!(f, "{value:?} → various"),
            Self::SignTurned => f.write_str("sign turned"),
            Self::Shifted { by } => write!(f, "{by}"),
            Self::Scaled { by } => write!(f, "× {by}"),
            Self::Case => f.write_str("upper and lower case"),
            Self::Trimmed => f.write_str("white space at the ends"),
            Self::Prefixed { with } => write!(f, "{with:?} put before"),
            Self::PrefixLost { with } => write!(f, "{with:?} taken from the beginning"),
            Self::Suffixed { with } => write!(f, "{with:?} put behind"),
            Self::SuffixLost { with } => write!(f, "{with:?} taken from the end"),
            Self::Rounded { places } => write!(f, "rounded to {places} places"),
            Self::BecameNan => f.write_str("number → NaN"),
            Self::BecameInfinite => f.write_str("number → infinity"),
            Self::ZeroSign => f.write_str("zero with the other sign"),
            Self::Noise => f.write_str("by a millionth at most"),
            Self::Unclassified => f.write_str("unclassified"),
        }
    }
}
