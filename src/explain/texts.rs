//! Patterns of texts.

use arrow::array::StringViewArray;

use super::numbers::{Test, most, preferred};
use super::pattern::Pattern;

/// Longer values name no cluster.
const LONGEST: usize = 64;

pub(super) fn best(
    before: &StringViewArray,
    after: &StringViewArray,
    is_text: bool,
    places: &[usize],
) -> Option<(Pattern, usize)> {
    let short = |text: &str| (text.len() <= LONGEST).then(|| text.to_owned());
    let pair = |at: &usize| Some((short(before.value(*at))?, short(after.value(*at))?));
    let replaced = most(places.iter().filter_map(pair))
        .map(|((from, to), count)| (Pattern::Replaced { from, to }, count));
    let became = most(places.iter().filter_map(|at| short(after.value(*at))))
        .map(|(value, count)| (Pattern::Became { value }, count));
    let was = most(places.iter().filter_map(|at| short(before.value(*at))))
        .map(|(value, count)| (Pattern::Was { value }, count));
    if !is_text {
        return preferred([replaced, became, was]);
    }
    let counted = |pattern: Pattern| {
        let explains = test(before, after, &pattern);
        let count = places.iter().filter(|at| explains(**at)).count();
        drop(explains);
        (count > 0).then_some((pattern, count))
    };
    let affix = |shorter: &StringViewArray, longer: &StringViewArray, ends: bool| {
        let found = places.iter().filter_map(|at| {
            let (shorter, longer) = (shorter.value(*at), longer.value(*at));
            if shorter.is_empty() {
                return None;
            }
            let rest =
                if ends { longer.strip_prefix(shorter) } else { longer.strip_suffix(shorter) };
            rest.filter(|rest| !rest.is_empty()).and_then(short)
        });
        most(found)
    };
    let named = |found: Option<(String, usize)>, make: fn(String) -> Pattern| {
        found.map(|(with, count)| (make(with), count))
    };
    preferred([
        replaced,
        counted(Pattern::Case),
        counted(Pattern::Trimmed),
        named(affix(before, after, false), |with| Pattern::Prefixed { with }),
        named(affix(after, before, false), |with| Pattern::PrefixLost { with }),
        named(affix(before, after, true), |with| Pattern::Suffixed { with }),
        named(affix(after, before, true), |with| Pattern::SuffixLost { with }),
        became,
        was,
    ])
}

pub(super) fn test<'a>(
    before: &'a StringViewArray,
    after: &'a StringViewArray,
    pattern: &Pattern,
) -> Test<'a> {
    let pair = move |at: usize| (before.value(at), after.value(at));
    match pattern.clone() {
        Pattern::Replaced { from, to } => Box::new(move |at| pair(at) == (&from, &to)),
        Pattern::Became { value } => Box::new(move |at| after.value(at) == value),
        Pattern::Was { value } => Box::new(move |at| before.value(at) == value),
        Pattern::Case => Box::new(move |at| {
            let (before, after) = pair(at);
            before.eq_ignore_ascii_case(after)
                || (!before.is_ascii() && before.to_lowercase() == after.to_lowercase())
        }),
        Pattern::Trimmed => Box::new(move |at| {
            let (before, after) = pair(at);
            before.trim() == after.trim()
        }),
        Pattern::Prefixed { with } => Box::new(move |at| {
            let (before, after) = pair(at);
            after.strip_prefix(with.as_str()) == Some(before)
        }),
        Pattern::PrefixLost { with } => Box::new(move |at| {
            let (before, after) = pair(at);
            before.strip_prefix(with.as_str()) == Some(after)
        }),
        Pattern::Suffixed { with } => Box::new(move |at| {
            let (before, after) = pair(at);
            after.strip_suffix(with.as_str()) == Some(before)
        }),
        Pattern::SuffixLost { with } => Box::new(move |at| {
            let (before, after) = pair(at);
            before.strip_suffix(with.as_str()) == Some(after)
        }),
        _ => Box::new(|_| false),
    }
}
