//! What was said of discrepancies, in order: each word names the one that was the last when it was
//! said. So no clock decides, and two people who speak at once are both heard.

use std::collections::{BTreeMap, BTreeSet};

use super::{Disposition, State};
use crate::approval::person;
use crate::dataset::Policy;
use crate::error::Result;
use crate::identity::Digest;

/// All words, by discrepancy and digest.
pub(super) struct Words<'a> {
    by_discrepancy: BTreeMap<&'a str, BTreeMap<Digest, &'a Disposition>>,
}

impl<'a> Words<'a> {
    /// Those that count: a word that its author may not say is none.
    pub(super) fn of(dispositions: &'a [Disposition], policy: &Policy) -> Result<Self> {
        let mut by_discrepancy: BTreeMap<&str, BTreeMap<Digest, &Disposition>> = BTreeMap::new();
        for one in dispositions {
            by_discrepancy.entry(&one.discrepancy).or_default().insert(Digest::of_json(one)?, one);
        }
        for words in by_discrepancy.values_mut() {
            let all = words.clone();
            words.retain(|_, word| {
                may_say(policy, &fixers(&all, &word.after), word.state, &word.actor)
            });
        }
        Ok(Self { by_discrepancy })
    }

    /// The words that nobody has answered yet.
    pub(super) fn heads(&self, discrepancy: &str) -> BTreeSet<Digest> {
        let Some(words) = self.by_discrepancy.get(discrepancy) else { return BTreeSet::new() };
        let answered: BTreeSet<&Digest> = words.values().flat_map(|word| &word.after).collect();
        words.keys().filter(|digest| !answered.contains(digest)).cloned().collect()
    }

    /// Everybody who said last that it must be fixed.
    pub(super) fn fixers(&self, discrepancy: &str) -> BTreeSet<String> {
        let Some(words) = self.by_discrepancy.get(discrepancy) else { return BTreeSet::new() };
        fixers(words, &self.heads(discrepancy))
    }

    /// The last word. Of several that did not know of each other, the strictest.
    pub(super) fn last(&self, discrepancy: &str) -> Option<&'a Disposition> {
        let words = self.by_discrepancy.get(discrepancy)?;
        let heads = self.heads(discrepancy);
        let last = heads.iter().filter_map(|digest| Some((digest, *words.get(digest)?)));
        let strictest = last.max_by_key(|(digest, word)| {
            let rank = match word.state {
                State::Expected | State::Accepted => 0,
                State::Open => 1,
                State::ToFix => 2,
            };
            (rank, word.at, *digest)
        });
        strictest.map(|(_, word)| word)
    }

    /// The last words and those before them, the latest first, back to ones that settle nothing.
    pub(super) fn since(&self, discrepancy: &str) -> Vec<&'a Disposition> {
        let mut found = Vec::new();
        let Some(words) = self.by_discrepancy.get(discrepancy) else { return found };
        let mut next: Vec<Digest> = self.heads(discrepancy).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(digest) = next.pop() {
            let word = words.get(&digest).filter(|word| word.state.settles());
            if let Some(word) = word.filter(|_| seen.insert(digest)) {
                found.push(*word);
                // What was contested when this was said stays so.
                let settled =
                    |digest: &Digest| words.get(digest).is_some_and(|word| word.state.settles());
                if word.after.iter().all(settled) {
                    next.extend(word.after.iter().cloned());
                }
            }
        }
        found.sort_by_key(|word| std::cmp::Reverse(word.at));
        found
    }
}

/// Everybody who said, in these words or in those that they answer, that something must be fixed.
fn fixers(words: &BTreeMap<Digest, &Disposition>, from: &BTreeSet<Digest>) -> BTreeSet<String> {
    let mut people = BTreeSet::new();
    let mut next: Vec<&Digest> = from.iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(digest) = next.pop() {
        let word = words.get(digest).filter(|word| word.state == State::ToFix);
        if let Some(word) = word.filter(|_| seen.insert(digest)) {
            people.insert(person(&word.actor));
            next.extend(&word.after);
        }
    }
    people
}

/// Whether somebody may say something after the last words. What lets a publish go ahead is for the
/// dataset's owners, and so is taking back that something must be fixed, unless nobody else said it.
pub(super) fn may_say(
    policy: &Policy,
    fixers: &BTreeSet<String>,
    state: State,
    actor: &str,
) -> bool {
    let is_owner = policy.owners.iter().any(|owner| person(owner) == person(actor));
    let takes_back = state != State::ToFix && fixers.iter().any(|fixer| *fixer != person(actor));
    is_owner || !(state.settles() || takes_back)
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;
    use crate::ledger::{FORMAT, Seen};

    fn word(state: State, actor: &str, second: i64, after: &[&Disposition]) -> Disposition {
        Disposition {
            format: FORMAT,
            change: Digest::of_json(&"change").unwrap(),
            discrepancy: "d".to_owned(),
            state,
            reason: "because".to_owned(),
            actor: actor.to_owned(),
            at: DateTime::<Utc>::from_timestamp(second, 0).unwrap(),
            plan: Digest::of_json(&"plan").unwrap(),
            after: after.iter().map(|one| Digest::of_json(one).unwrap()).collect(),
            seen: Seen {
                values: 1,
                partitions: BTreeSet::new(),
                segment: BTreeMap::new(),
                net_change: None,
                largest_change: None,
                rows: None,
            },
        }
    }

    fn last(words: &[&Disposition]) -> State {
        let policy = Policy { owners: BTreeSet::from(["owner".to_owned()]), ..Policy::default() };
        let words: Vec<Disposition> = words.iter().map(|word| (*word).clone()).collect();
        Words::of(&words, &policy).unwrap().last("d").unwrap().state
    }

    #[test]
    fn the_last_word_is_the_one_that_answers_the_others_whatever_the_clocks_say() {
        let first = word(State::ToFix, "owner", 100, &[]);
        let answer = word(State::Accepted, "owner", 1, &[&first]);
        assert_eq!(last(&[&first, &answer]), State::Accepted);
        assert_eq!(last(&[&answer, &first]), State::Accepted);
    }

    #[test]
    fn of_words_that_did_not_know_of_each_other_the_strictest_holds_until_both_are_answered() {
        let one = word(State::Accepted, "owner", 1, &[]);
        let two = word(State::ToFix, "somebody", 0, &[]);
        assert_eq!(last(&[&one, &two]), State::ToFix);
        let answer = word(State::Accepted, "owner", 2, &[&one, &two]);
        assert_eq!(last(&[&one, &two, &answer]), State::Accepted);
        // The acceptance that was contested covers nothing any more.
        let words = [one, two, answer.clone()];
        let policy = Policy { owners: BTreeSet::from(["owner".to_owned()]), ..Policy::default() };
        let since =
            Words::of(&words, &policy).unwrap().since("d").into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(since, [answer]);
    }

    #[test]
    fn only_its_author_or_an_owner_takes_back_that_something_must_be_fixed() {
        let fix = word(State::ToFix, "somebody", 0, &[]);
        for (actor, state) in
            [("other", State::ToFix), ("somebody", State::Open), ("owner", State::Open)]
        {
            let open = word(State::Open, actor, 1, &[&fix]);
            assert_eq!(last(&[&fix, &open]), state, "{actor}");
        }
        let owners = word(State::ToFix, "owner", 0, &[]);
        let repeated = word(State::ToFix, "somebody", 1, &[&owners]);
        let open = word(State::Open, "somebody", 2, &[&repeated]);
        assert_eq!(last(&[&owners, &repeated, &open]), State::ToFix);
        let accepted = word(State::Accepted, "somebody", 1, &[&fix]);
        assert_eq!(last(&[&fix, &accepted]), State::ToFix);
    }
}
