//! Which lanes a worker may have, and beside whom.

use std::fmt;

use serde::Serialize;
use uuid::Uuid;

use super::lane_set::LaneSet;
use super::store::{Lane, WorkerId};

/// Which lanes a worker may have, and beside whom. A store keeps it for as long as the worker is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Scope {
    /// It has no others.
    #[serde(rename = "range")]
    pub lanes: LaneSet,
    /// It has lanes only while no other exclusive worker has the lowest of them.
    pub exclusive: bool,
    /// The relay that it is part of, if that has several workers.
    pub relay: Option<Uuid>,
}

const EXCLUSIVE: &str = "exclusive";

impl Scope {
    /// Nothing that others need to know.
    pub fn is_usual(&self) -> bool {
        self.lanes == LaneSet::ALL && !self.exclusive
    }

    /// The lane that the others of an exclusive worker's range go by: who has it may have the rest.
    pub fn baton(&self) -> Option<Lane> {
        self.lanes.first().filter(|_| self.exclusive)
    }

    /// From what was kept. What a later version may have written is taken for the usual: such a worker is shared with, and claims decide.
    #[cfg_attr(not(feature = "_sql"), allow(dead_code))]
    pub(crate) fn read(text: &str) -> Self {
        let mut words = text.split(' ');
        let Some(lanes) = words.next().and_then(|lanes| lanes.parse().ok()) else { return Self::default() };
        let mut scope = Self { lanes, ..Self::default() };
        for word in words {
            match word.strip_prefix("relay=") {
                Some(relay) => scope.relay = relay.parse().ok(),
                None => scope.exclusive |= word == EXCLUSIVE,
            }
        }
        scope
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lanes.fmt(f)?;
        if self.exclusive {
            write!(f, " {EXCLUSIVE}")?;
        }
        self.relay.map_or(Ok(()), |relay| write!(f, " relay={}", relay.simple()))
    }
}

/// A worker that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Who.
    pub worker: WorkerId,
    /// Which lanes it may have.
    pub scope: Scope,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_as_it_was_written() {
        let lanes = "0..7,12".parse().unwrap();
        for exclusive in [false, true] {
            for relay in [None, Some(Uuid::new_v4())] {
                let scope = Scope { lanes, exclusive, relay };
                assert_eq!(Scope::read(&scope.to_string()), scope);
            }
        }
        assert_eq!(Scope::read("0..15 exclusive").baton(), Some(0));
        assert_eq!(Scope::read("0..15").baton(), None);
    }

    #[test]
    fn what_a_later_version_wrote_breaks_nothing() {
        assert_eq!(Scope::read("every other"), Scope::default());
        assert_eq!(Scope::read("0..3 exclusive lazily"), Scope::read("0..3 exclusive"));
    }
}
