//! Packed keys without the bits that all of them share, beside their places, in 64 bits.
//!
//! The keys of one partition mostly differ in few bits. What is left is sorted byte by byte, which
//! takes a fixed number of passes and compares nothing.

/// More separate groups of bits are slower to take out than a longer key is to sort.
const MOST_GROUPS: usize = 6;

/// How to shorten keys.
pub(super) struct Short {
    /// For each group of neighbouring bits in which keys differ: its mask, and how far right it
    /// moves. The most significant group stays the most significant.
    groups: Vec<(u128, u32)>,
    /// Bits of a place, below the key's.
    place_bits: u32,
    key_bits: u32,
}

impl Short {
    /// None when the keys that differ and their places need more than 64 bits.
    pub(super) fn of(keys: &[&[u128]], rows: usize) -> Option<Self> {
        let first = *keys.iter().find_map(|keys| keys.first())?;
        let differing = keys.iter().copied().flatten().fold(0, |bits, key| bits | (key ^ first));
        let place_bits = usize::BITS - rows.leading_zeros();
        if differing.count_ones() + place_bits > u64::BITS {
            return None;
        }
        let mut groups = Vec::new();
        let (mut rest, mut taken) = (differing, 0);
        while rest != 0 {
            let start = rest.trailing_zeros();
            let length = (rest >> start).trailing_ones();
            let mask = (u128::MAX >> (u128::BITS - length)) << start;
            groups.push((mask, start - taken));
            taken += length;
            rest &= !mask;
        }
        let key_bits = taken;
        (groups.len() <= MOST_GROUPS).then_some(Self { groups, place_bits, key_bits })
    }

    /// The places of keys in their order; equal keys keep theirs.
    pub(super) fn order(&self, keys: &[&[u128]]) -> Vec<u32> {
        let mut sorted = self.with_places(keys);
        let mut spare = vec![0; sorted.len()];
        let end = self.place_bits + self.key_bits;
        // From the least significant byte to the most: each pass keeps the order of the ones before.
        for shift in (self.place_bits..end).step_by(8) {
            if sort_by_byte(&sorted, &mut spare, shift) {
                std::mem::swap(&mut sorted, &mut spare);
            }
        }
        sorted.into_iter().map(|key| self.place(key)).collect()
    }

    /// The shortened keys, each with its place.
    fn with_places(&self, keys: &[&[u128]]) -> Vec<u64> {
        let keys = keys.iter().copied().flatten().zip(0_u64..);
        keys.map(|(key, place)| self.bits(*key) << self.place_bits | place).collect()
    }

    fn bits(&self, key: u128) -> u64 {
        let groups = self.groups.iter().map(|(mask, by)| (key & mask) >> by);
        low(groups.fold(0, |bits, group| bits | group))
    }

    /// The place in what [`Short::with_places`] gave.
    fn place(&self, key: u64) -> u32 {
        let place = key & ((1 << self.place_bits) - 1);
        u32::try_from(place).unwrap_or(u32::MAX)
    }
}

/// Puts keys into the order of one byte of them; false when they have all the same.
fn sort_by_byte(keys: &[u64], sorted: &mut [u64], shift: u32) -> bool {
    let byte = |key: u64| (key >> shift & 0xff) as usize;
    let mut next = [0_usize; 256];
    for key in keys {
        next[byte(*key)] += 1;
    }
    if next.contains(&keys.len()) {
        return false;
    }
    let mut start = 0;
    for count in &mut next {
        (start, *count) = (start + *count, start);
    }
    for key in keys {
        let place = &mut next[byte(*key)];
        sorted[*place] = *key;
        *place += 1;
    }
    true
}

#[expect(clippy::cast_possible_truncation, reason = "the bits above are zero, as counted before")]
fn low(bits: u128) -> u64 {
    bits as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Keys that differ in some bits only.
    fn keys() -> impl Strategy<Value = Vec<u128>> {
        let masks = prop_oneof![
            any::<u128>(),
            (0_u32..120, 0_u32..60).prop_map(|(at, length)| ((1_u128 << length) - 1) << at.min(67)),
            Just(0),
            (0_u32..40).prop_map(|at| 0xff << 80 | 0xf << at),
        ];
        (any::<u128>(), masks).prop_flat_map(|(base, mask)| {
            prop::collection::vec(any::<u128>().prop_map(move |key| base ^ (key & mask)), 1..60)
        })
    }

    proptest! {
        #[test]
        fn keys_come_in_their_order_and_equal_ones_in_that_of_their_places(keys in keys(), cut in 0_usize..60) {
            let cut = cut.min(keys.len());
            let parts = [&keys[..cut], &keys[cut..]];
            let differing = keys.iter().fold(0, |bits, key| bits | (key ^ keys[0]));
            let short = Short::of(&parts, keys.len());
            let place_bits = usize::BITS - keys.len().leading_zeros();
            if differing.count_ones() + place_bits > 64 {
                prop_assert!(short.is_none());
            }
            if let Some(short) = short {
                let ours = short.order(&parts);
                let mut expected: Vec<u32> = (0..).take(keys.len()).collect();
                expected.sort_by_key(|place| keys[*place as usize]);
                prop_assert_eq!(ours, expected);
            }
        }
    }
}
