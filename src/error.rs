//! The one error type.
//!
//! An [`Error`] means "cannot" or "do not know". Outcomes that a careful caller plans for (a
//! conflict, a failed check, nothing to do) are values of the operation's own type, never errors.
//! The [`ErrorKind`] says what the caller should do; everything else is for people.

use std::fmt;

/// What a caller can do about an error.
///
/// A new kind needs an answer to "what would the caller do differently?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The spec, the SQL, the data's declaration or the arguments are wrong: change them.
    Invalid,
    /// A check failed inside a run, so the partition has no candidate: look at the evidence.
    Failed,
    /// Production is not what was expected: somebody else wrote it.
    Conflict,
    /// A store or the network did not answer, or the outcome is unknown: try again, it is safe.
    Unavailable,
    /// Stored bytes or history are wrong: stop, a person must look.
    Corrupt,
    /// An input or an approval no longer matches what was planned: plan again.
    Stale,
    /// Stopped on purpose (pause, window, limit): run again later, it resumes.
    Stopped,
    /// A newer format, or a store without what is needed: upgrade, or use another store.
    Unsupported,
    /// Out of memory, disk or another resource: change the limits.
    Exhausted,
    /// Interrupted by a signal; the state is clean.
    Interrupted,
    /// A defect in this program: report it.
    Internal,
}

impl ErrorKind {
    /// The word used in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Failed => "failed",
            Self::Conflict => "conflict",
            Self::Unavailable => "unavailable",
            Self::Corrupt => "corrupt",
            Self::Stale => "stale",
            Self::Stopped => "stopped",
            Self::Unsupported => "unsupported",
            Self::Exhausted => "exhausted",
            Self::Interrupted => "interrupted",
            Self::Internal => "internal",
        }
    }

    /// Whether trying the same call again can succeed without anybody changing anything.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Unavailable | Self::Stopped | Self::Interrupted => true,
            Self::Invalid
            | Self::Failed
            | Self::Conflict
            | Self::Corrupt
            | Self::Stale
            | Self::Unsupported
            | Self::Exhausted
            | Self::Internal => false,
        }
    }
}

type Cause = Box<dyn std::error::Error + Send + Sync + 'static>;

/// An error with its kind, what was observed, where, and what to do next.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    context: Vec<(&'static str, String)>,
    hints: Vec<String>,
    source: Option<Cause>,
}

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`; the message is lower case, without a final stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            context: Vec::new(),
            hints: Vec::new(),
            source: None,
        }))
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Stored bytes or history are wrong.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// An input no longer matches what was planned.
    pub fn stale(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Stale, message)
    }

    /// A store did not answer, or the outcome is unknown.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// A defect in this program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Adds where or about what: `path`, `partition`, `line`, …
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((name, value.to_string()));
        self
    }

    /// Says what to do instead of what was said before.
    #[must_use]
    pub(crate) fn only_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints = vec![hint.into()];
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    /// Keeps the error underneath.
    #[must_use]
    pub fn because(mut self, source: impl Into<Cause>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What the caller should do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The statement without its context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it happened: pairs of name and value.
    pub fn context(&self) -> &[(&'static str, String)] {
        &self.0.context
    }

    /// What to do next, most useful first.
    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// The whole chain of causes, one line each, without this error itself.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        let mut next = std::error::Error::source(self);
        while let Some(cause) = next {
            let text = cause.to_string();
            // Many errors repeat what is underneath them.
            if !causes.last().is_some_and(|above: &String| above.contains(&text)) {
                causes.push(text);
            }
            next = cause.source();
        }
        causes
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if !self.0.context.is_empty() {
            let pairs: Vec<String> =
                self.0.context.iter().map(|(name, value)| format!("{name} {value}")).collect();
            write!(f, " ({})", pairs.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|cause| cause.as_ref() as &(dyn std::error::Error + 'static))
    }
}

/// Reads an error of the engine: our own errors travel through it unchanged, memory and disk
/// limits are [`ErrorKind::Exhausted`], anything else gets `kind`.
pub fn from_engine(
    kind: ErrorKind,
    message: &str,
    error: datafusion::error::DataFusionError,
) -> Error {
    use datafusion::error::DataFusionError;
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => Error::new(kind, message).because(other),
        },
        DataFusionError::ArrowError(inner, _) => from_arrow(kind, message, *inner),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_engine(kind, message, *inner)
        }
        DataFusionError::Shared(inner) => match shared_error(&inner) {
            Some(ours) => ours,
            None if matches!(inner.find_root(), DataFusionError::ResourcesExhausted(_)) => {
                exhausted(&inner.to_string())
            }
            None => Error::new(kind, message).because(inner.to_string()),
        },
        DataFusionError::ResourcesExhausted(text) => exhausted(&text),
        other => {
            let text = other.strip_backtrace();
            if text.contains("used disk space") || text.contains("No space left") {
                return exhausted(&text);
            }
            Error::new(kind, message).because(text)
        }
    }
}

fn shared_error(inner: &datafusion::error::DataFusionError) -> Option<Error> {
    use datafusion::error::DataFusionError;
    let DataFusionError::External(cause) = inner.find_root() else { return None };
    cause.downcast_ref::<Error>().map(Error::copy)
}

fn exhausted(text: &str) -> Error {
    Error::new(ErrorKind::Exhausted, "the query needs more memory or spill space than its limit")
        .because(text.to_owned())
        .hint("raise limits.memory in the spec, or run fewer partitions at once (limits.source_queries)")
}

/// Reads an Arrow error: our own errors travel through it unchanged.
pub fn from_arrow(kind: ErrorKind, message: &str, error: arrow::error::ArrowError) -> Error {
    match error {
        arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => match other.downcast::<datafusion::error::DataFusionError>() {
                Ok(engine) => from_engine(kind, message, *engine),
                Err(other) => Error::new(kind, message).because(other),
            },
        },
        other => Error::new(kind, message).because(other.to_string()),
    }
}

impl Error {
    /// A copy whose causes are kept as text; for errors the engine shares between streams.
    pub(crate) fn copy(&self) -> Self {
        let mut copy = Self::new(self.kind(), self.message());
        copy.0.context.clone_from(&self.0.context);
        copy.0.hints.clone_from(&self.0.hints);
        if let Some(cause) = self.causes().into_iter().next() {
            copy = copy.because(cause);
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_error_passes_through_the_engine_unchanged() {
        let ours = Error::stale("input changed").with("path", "a.parquet");
        let engine = datafusion::error::DataFusionError::External(Box::new(ours));
        let back = from_engine(ErrorKind::Internal, "run the query", engine);
        assert_eq!(back.kind(), ErrorKind::Stale);
        assert_eq!(back.to_string(), "input changed (path a.parquet)");
    }

    #[test]
    fn memory_limits_are_exhausted_not_bad_data() {
        let engine = datafusion::error::DataFusionError::ResourcesExhausted("sort".into());
        let error = from_engine(ErrorKind::Invalid, "run the query", engine);
        assert_eq!(error.kind(), ErrorKind::Exhausted);
    }
}
