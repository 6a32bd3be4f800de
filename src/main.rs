//! The command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    reissue::cli::main()
}
