//! Ctrl-C and SIGTERM: a pause within ten seconds.
//!
//! They are heard on a thread of their own. The runtime's workers may be busy with one partition
//! for a long time, and a signal that waits for them comes too late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::answer::write_err;
use crate::error::{Error, Result};
use crate::run::Stop;

/// Partitions that run get five seconds to finish; what has not ended after this is ended.
const AT_MOST: Duration = Duration::from_secs(8);

/// The signal received, if any.
pub(super) struct Signal(Arc<AtomicU8>);

impl Signal {
    /// The exit code that says so.
    pub(super) fn code(&self) -> Option<u8> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            code => Some(code),
        }
    }
}

/// Listens from now on: the first signal asks the run to stop.
pub(super) fn listen(stop: Stop) -> Result<Signal> {
    let fail = |error: std::io::Error| Error::internal("listen for signals").because(error);
    let received = Arc::new(AtomicU8::new(0));
    let shared = Arc::clone(&received);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fail)?;
    let (ready, listening) = std::sync::mpsc::channel();
    std::thread::spawn(move || runtime.block_on(hear(&shared, &stop, &ready)));
    // ORDER: a signal that comes after this call is heard.
    listening.recv().map_err(|error| Error::internal("listen for signals").because(error))?;
    Ok(Signal(received))
}

async fn hear(received: &AtomicU8, stop: &Stop, ready: &std::sync::mpsc::Sender<()>) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    // Nobody waits when the program is ending already.
    let _ = ready.send(());
    let code = tokio::select! {
        _ = terminate.recv() => 143,
        _ = interrupt.recv() => 130,
    };
    received.store(code, Ordering::SeqCst);
    stop.request();
    write_err("stopping: no new partition begins, what runs has five seconds to finish\n");
    tokio::time::sleep(AT_MOST).await;
    // At every instant what is stored is whole: ending here is as safe as being killed.
    #[expect(clippy::exit, reason = "a partition that does not yield cannot be ended otherwise")]
    std::process::exit(i32::from(code));
}
