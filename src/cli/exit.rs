//! Exit codes, and what a scheduler should do about each.
//!
//! | code | meaning | scheduler |
//! |---|---|---|
//! | 0 | done, or nothing to do | go on |
//! | 1 | a defect of this program | fail |
//! | 2 | the request is wrong | fail |
//! | 3 | checks failed, not approved, or the approval is used up | fail |
//! | 4 | conflict: production moved | fail |
//! | 5 | unavailable, or the outcome is unknown | retry, it is safe |
//! | 6 | stored bytes or history are wrong | fail, a person must look |
//! | 7 | stale: an input or approval no longer matches | fail, plan again |
//! | 8 | stopped on purpose | retry later, it resumes |
//! | 9 | not supported here | fail |
//! | 10 | out of memory, disk or another resource | fail, change the limits |
//! | 130, 143 | interrupted by Ctrl-C or SIGTERM | retry, the state is clean |

use crate::error::ErrorKind;

/// Done, or nothing to do.
pub const DONE: u8 = 0;
/// The request is wrong.
pub const INVALID: u8 = 2;
/// Checks failed, not approved, or used up.
pub const FAILED: u8 = 3;
/// Production moved.
pub const CONFLICT: u8 = 4;
/// Stored bytes or history are wrong.
pub const CORRUPT: u8 = 6;
/// Stopped on purpose.
pub const STOPPED: u8 = 8;

/// The exit code of an error.
pub fn code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Internal => 1,
        ErrorKind::Invalid => INVALID,
        ErrorKind::Failed => FAILED,
        ErrorKind::Conflict => CONFLICT,
        ErrorKind::Unavailable => 5,
        ErrorKind::Corrupt => CORRUPT,
        ErrorKind::Stale => 7,
        ErrorKind::Stopped => STOPPED,
        ErrorKind::Unsupported => 9,
        ErrorKind::Exhausted => 10,
        ErrorKind::Interrupted => 130,
    }
}
