//! What exclusive workers go by: who has the lowest lane of their range may have the others.

use tokio::time::Instant;

use super::state::State;

impl State {
    /// Without a baton where one is needed.
    pub(super) fn stands_by(&self) -> bool {
        self.baton.is_some_and(|baton| !self.lanes.contains_key(&baton))
    }

    /// Who takes over waits for the baton's lease only: nothing of another lane goes out after it.
    pub(super) fn within_baton(&self, deadline: Instant) -> Instant {
        let baton = self.baton.and_then(|baton| self.lanes.get(&baton));
        baton.map_or(deadline, |baton| baton.deadline.min(deadline))
    }

    /// Somebody else works: what is left is not handed out from.
    pub(super) fn drain_without_baton(&mut self) {
        if self.stands_by() {
            self.lanes.values_mut().for_each(|lane| lane.draining = true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::outbox::{Lane, Leased, Token, WorkerId};

    use super::*;

    fn leased(lane: Lane) -> Leased {
        let token = Token { worker: WorkerId::generate(), lane, epoch: 1 };
        Leased { token, floor: 0, crashes: 0, named: None }
    }

    #[test]
    fn no_lane_is_handed_out_from_after_the_batons_lease() {
        let now = Instant::now();
        let (soon, later) = (now + Duration::from_secs(1), now + Duration::from_secs(2));
        let mut state = State::new(now, Some(3));
        assert!(state.stands_by());
        state.add(&[leased(3)], soon, now);
        assert!(!state.stands_by());
        state.add(&[leased(4)], later, now);
        assert_eq!(state.lanes[&4].deadline, soon);
        let mut shared = State::new(now, None);
        shared.add(&[leased(3)], soon, now);
        shared.add(&[leased(4)], later, now);
        assert_eq!(shared.lanes[&4].deadline, later);
    }

    #[test]
    fn without_its_baton_it_hands_out_from_no_lane() {
        let now = Instant::now();
        let mut state = State::new(now, Some(3));
        let baton = leased(3);
        state.add(&[baton, leased(4)], now + Duration::from_secs(1), now);
        assert!(state.lanes[&4].is_usable(now));
        state.lose([baton.token]);
        assert!(!state.lanes[&4].is_usable(now));
    }
}
