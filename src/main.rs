//! The command line.

use std::process::ExitCode;

/// Batches of some hundred kilobytes come and go all the time. The C library gives each back to the
/// operating system, which clears the pages of the next one: up to a sixth of a comparison's time.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    reissue::cli::main()
}
