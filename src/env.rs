//! The only source of time and randomness.
//!
//! Everything below the command line takes an [`Env`] instead of asking the machine, so that a
//! test can hold both still.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, SubsecRound as _, Utc};

/// Clock and identifiers, passed to whoever needs them.
#[derive(Clone)]
pub struct Env {
    clock: Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>,
    ids: Arc<dyn Fn() -> [u8; 10] + Send + Sync>,
    reached: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}

impl Env {
    /// The machine's clock and random numbers.
    pub fn system() -> Self {
        Self::new(system_now, random_bytes)
    }

    /// A clock and an id source of the caller's.
    pub fn new(
        clock: impl Fn() -> DateTime<Utc> + Send + Sync + 'static,
        ids: impl Fn() -> [u8; 10] + Send + Sync + 'static,
    ) -> Self {
        Self { clock: Arc::new(clock), ids: Arc::new(ids), reached: Arc::new(|_| {}) }
    }

    /// The same, told at every named point between two writes that a crash could separate:
    /// `claim`, `write`, `record`, `recorded`, `intent`, `commit`, `published`.
    #[must_use]
    pub fn watched(self, reached: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { reached: Arc::new(reached), ..self }
    }

    /// Says that a point is reached.
    pub(crate) fn reach(&self, point: &str) {
        (self.reached)(point);
    }

    /// The present instant, in whole microseconds.
    pub fn now(&self) -> DateTime<Utc> {
        (self.clock)().trunc_subsecs(6)
    }

    /// A new random id: 20 lower-case hexadecimal digits.
    pub fn id(&self) -> String {
        hex::encode((self.ids)())
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
fn system_now() -> DateTime<Utc> {
    Utc::now()
}

fn random_bytes() -> [u8; 10] {
    let mut bytes = [0; 10];
    // Without randomness no two processes could be told apart: stopping is the only safe answer.
    #[expect(clippy::expect_used, reason = "no safe way on without randomness")]
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
