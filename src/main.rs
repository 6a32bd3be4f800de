//! The command line.

use std::process::ExitCode;

/// Columns are large and short-lived: the system's allocator gives their pages back and asks for them
/// again with every batch.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    reissue::cli::main()
}
