//! Some of a target's lanes.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::leases::LANES;
use super::store::Lane;

/// Some of a target's lanes, as people write them: `0..15`, `7`, `0..7,12`. Both ends of a range belong to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneSet(u64);

/// A bit for each lane.
const _: () = assert!(LANES as u32 == u64::BITS);

impl LaneSet {
    /// Every lane.
    pub const ALL: Self = Self(u64::MAX);

    /// No lane.
    pub const NONE: Self = Self(0);

    /// One lane; a number that is no lane's is none.
    pub fn one(lane: Lane) -> Self {
        Self(1_u64.checked_shl(lane.into()).unwrap_or_default())
    }

    /// Whether the lane is among them.
    pub fn contains(self, lane: Lane) -> bool {
        self.overlaps(Self::one(lane))
    }

    /// Whether a lane is in both.
    pub fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These and the others.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without the others.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// How many they are.
    pub fn len(self) -> usize {
        self.iter().count()
    }

    /// There are none.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// The lowest of them.
    pub fn first(self) -> Option<Lane> {
        self.iter().next()
    }

    /// One after the other, the lowest first.
    pub fn iter(self) -> impl Iterator<Item = Lane> {
        (0..LANES).filter(move |lane| self.contains(*lane))
    }
}

impl Default for LaneSet {
    /// Every lane.
    fn default() -> Self {
        Self::ALL
    }
}

impl FromIterator<Lane> for LaneSet {
    fn from_iter<I: IntoIterator<Item = Lane>>(lanes: I) -> Self {
        lanes.into_iter().fold(Self::NONE, |all, lane| all.with(Self::one(lane)))
    }
}

impl fmt::Display for LaneSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = *self;
        let mut comma = "";
        while let Some(first) = rest.first() {
            let last = (first..LANES).take_while(|lane| rest.contains(*lane)).last().unwrap_or(first);
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}..{last}")?,
            }
            rest = rest.without((first..=last).collect());
            comma = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for LaneSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaneSet({self})")
    }
}

impl Serialize for LaneSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What is wrong with a text that was to name lanes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaneSetError {
    /// It cannot be read.
    #[error("{0:?} names no lanes: write 0..15 (both belong to it), 7 or 0..7,12")]
    Unreadable(String),
    /// There is no such lane.
    #[error("there is no lane {0}: a target has the lanes 0..{last}", last = LANES - 1)]
    NoSuchLane(String),
    /// Its end comes before its beginning.
    #[error("{0}..{1} ends before it begins: write {1}..{0}")]
    Backwards(Lane, Lane),
}

impl FromStr for LaneSet {
    type Err = LaneSetError;

    fn from_str(text: &str) -> Result<Self, LaneSetError> {
        let unreadable = || LaneSetError::Unreadable(text.to_owned());
        let lane = |number: &str| {
            let number = number.trim();
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number {
                return Err(unreadable());
            }
            let known = number.parse().ok().filter(|lane: &Lane| *lane < LANES);
            known.ok_or_else(|| LaneSetError::NoSuchLane(number.to_owned()))
        };
        let mut all = Self::NONE;
        for part in text.split(',') {
            let (first, last) = part.split_once("..").unwrap_or((part, part));
            let (first, last) = (lane(first)?, lane(last)?);
            if last < first {
                return Err(LaneSetError::Backwards(first, last));
            }
            all = all.with((first..=last).collect());
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> LaneSet {
        text.parse().unwrap()
    }

    #[test]
    fn both_ends_of_a_range_belong_to_it() {
        assert_eq!(read("0..15").iter().collect::<Vec<_>>(), (0..=15).collect::<Vec<_>>());
        assert_eq!(read("0..63"), LaneSet::ALL);
        assert_eq!(read("7").iter().collect::<Vec<_>>(), [7]);
        assert_eq!(read(" 0..3, 12 ").len(), 5);
        assert_eq!(read("63").first(), Some(63));
    }

    #[test]
    fn lanes_are_shown_as_they_are_written() {
        for text in ["0..15", "7", "0..7,12", "1,3..63", "0..63"] {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!(read("4,0..3,2").to_string(), "0..4");
        assert_eq!(LaneSet::NONE.to_string(), "");
        assert_eq!(serde_json::to_string(&read("0..15")).unwrap(), "\"0..15\"");
    }

    #[test]
    fn what_names_no_lanes_is_refused() {
        let error = |text: &str| text.parse::<LaneSet>().unwrap_err().to_string();
        assert_eq!(error("0..64"), "there is no lane 64: a target has the lanes 0..63");
        assert_eq!(error("99999999999"), "there is no lane 99999999999: a target has the lanes 0..63");
        assert_eq!(error("9..3"), "9..3 ends before it begins: write 3..9");
        for text in ["", "a", "0..", "..3", "0..=3", "0-3", "1,,2", "-1", "+1", "1..2..3"] {
            assert!(error(text).contains("names no lanes: write 0..15"), "{}", error(text));
        }
    }

    #[test]
    fn there_is_no_lane_beyond_the_last() {
        assert!(LaneSet::one(LANES).is_empty());
        assert!(!LaneSet::ALL.contains(LANES));
        assert!(!LaneSet::ALL.contains(Lane::MAX));
    }
}
