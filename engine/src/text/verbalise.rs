//! The place of the verbaliser: between guard and sanitizer, where numbers, dates and money are put into words before
//! anything is cut.

use std::collections::VecDeque;

use super::spoken::Spoken;

/// Moves what can be read out from `unread` to `out`, in order.
///
/// A reading gives each of its characters the raw range of all that was read: `12` at 5 becomes `twelve`, six times
/// 5..7. What could still change with more text (`3` before `.14`) may stay in `unread` unless `all` is set. As long as
/// there are no readings every character is read as it stands.
pub(super) fn verbalise(unread: &mut VecDeque<Spoken>, _all: bool, out: &mut Vec<Spoken>) {
    out.extend(unread.drain(..));
}
