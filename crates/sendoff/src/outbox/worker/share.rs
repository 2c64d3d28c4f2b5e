//! How the lanes are shared: from who is there to how many lanes of which the asking worker may have. Every worker comes to the same answer.
//!
//! Lanes that the same workers may have are of one kind, and it does not matter which of them a worker has: shares are numbers of a kind. Every lane that
//! somebody may have is in exactly one share. Kinds that few may have are shared first, and each lane goes to who has fewest so far.

use std::collections::BTreeMap;

use crate::outbox::{LANES, LaneSet, Peer, WorkerId};

/// So many of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) lanes: LaneSet,
    pub(super) count: usize,
}

/// Who counts as one: a worker, or the exclusive workers of a range, of which one works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Party {
    worker: WorkerId,
    lanes: LaneSet,
    exclusive: bool,
}

/// What a worker may have if these are there, itself among them; an exclusive one: if it has its baton.
pub(super) fn shares(peers: &[Peer], worker: WorkerId) -> Vec<Share> {
    let parties = parties(peers);
    let Some(own) = peers.iter().find(|peer| peer.worker == worker) else { return Vec::new() };
    let is_own = |party: &Party| match own.scope.exclusive {
        true => party.exclusive && party.lanes == own.scope.lanes,
        false => party.worker == worker,
    };
    let Some(own) = parties.iter().position(is_own) else { return Vec::new() };
    let mut kinds: Vec<(Vec<usize>, LaneSet)> = kinds(&parties).into_iter().collect();
    kinds.sort_by_key(|(takers, _)| takers.len());
    let mut held = vec![0; parties.len()];
    let mut shares = Vec::new();
    for (takers, lanes) in kinds {
        let takes = |index: &usize| !parties[*index].exclusive;
        let exclusive = takers.iter().copied().find(|index| parties[*index].exclusive);
        // Exclusive workers of several ranges that overlap: who comes first has it, so the lanes are shared out once.
        let sharing: Vec<usize> = takers.iter().copied().filter(takes).chain(exclusive).collect();
        let counter = if parties[own].exclusive { exclusive } else { Some(own) };
        let mut count = 0;
        for _ in 0..lanes.len() {
            let Some(next) = sharing.iter().copied().min_by_key(|index| (held[*index], *index)) else {
                break;
            };
            held[next] += 1;
            count += usize::from(counter == Some(next));
        }
        if takers.contains(&own) {
            shares.push(Share { lanes, count });
        }
    }
    shares
}

/// In the order of their ids, or of the first of them.
fn parties(peers: &[Peer]) -> Vec<Party> {
    let mut parties: Vec<Party> = Vec::new();
    for Peer { worker, scope } in peers {
        let party = Party { worker: *worker, lanes: scope.lanes, exclusive: scope.exclusive };
        let is_same = |known: &Party| known.exclusive && known.lanes == party.lanes;
        if !(party.exclusive && parties.iter().any(is_same)) {
            parties.push(party);
        }
    }
    parties
}

/// Lanes by who may have them. What exclusive workers go by is theirs alone, or none of them could ever work.
fn kinds(parties: &[Party]) -> BTreeMap<Vec<usize>, LaneSet> {
    let exclusive = parties.iter().filter(|party| party.exclusive);
    let batons: LaneSet = exclusive.filter_map(|party| party.lanes.first()).collect();
    let mut kinds: BTreeMap<Vec<usize>, LaneSet> = BTreeMap::new();
    for lane in 0..LANES {
        let may = |party: &Party| party.lanes.contains(lane) && (party.exclusive || !batons.contains(lane));
        let takers: Vec<usize> = (0..parties.len()).filter(|index| may(&parties[*index])).collect();
        let known = kinds.entry(takers).or_insert(LaneSet::NONE);
        *known = known.with(LaneSet::one(lane));
    }
    kinds
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::outbox::Scope;

    fn peers(scopes: &[&str]) -> Vec<Peer> {
        let worker = |number: usize| WorkerId(Uuid::from_u128(number as u128));
        scopes
            .iter()
            .enumerate()
            .map(|(number, scope)| Peer { worker: worker(number), scope: Scope::read(scope) })
            .collect()
    }

    /// How many lanes each has in all.
    fn counts(scopes: &[&str]) -> Vec<usize> {
        let peers = peers(scopes);
        let count = |peer: &Peer| shares(&peers, peer.worker).iter().map(|share| share.count).sum();
        peers.iter().map(count).collect()
    }

    #[test]
    fn shares_add_up_to_all_lanes_and_differ_by_one_at_most() {
        for workers in 1..=70 {
            let shares = counts(&vec!["0..63"; workers]);
            assert_eq!(shares.iter().sum::<usize>(), 64);
            assert!(shares[0] - shares[workers - 1] <= 1);
        }
    }

    #[test]
    fn a_worker_alone_in_its_range_has_all_of_it() {
        assert_eq!(counts(&["0..15", "16..63"]), [16, 48]);
        assert_eq!(counts(&["0..15", "0..15", "16..63"]), [8, 8, 48]);
        assert_eq!(counts(&["0,2,4"]), [3]);
    }

    #[test]
    fn workers_without_a_range_leave_those_with_one_what_only_these_want() {
        assert_eq!(counts(&["0..15", "0..63", "0..63"]), [16, 24, 24]);
        assert_eq!(counts(&["0..31", "0..63"]), [32, 32]);
        assert_eq!(counts(&["0..47", "0..63", "0..63", "0..63"]), [16, 16, 16, 16]);
        assert_eq!(counts(&["0..31", "16..63"]), [32, 32]);
    }

    #[test]
    fn exclusive_workers_of_a_range_count_as_one() {
        let all = "0..63 exclusive";
        assert_eq!(counts(&[all, all]), [64, 64], "whoever has the baton has all");
        assert_eq!(counts(&["0..15 exclusive", "0..15 exclusive", "16..63 exclusive"]), [16, 16, 48]);
        assert_eq!(counts(&[all, all, "0..63"]), [32, 32, 32]);
    }

    #[test]
    fn the_baton_is_no_share_of_others() {
        for scopes in [["0..63", "0..63 exclusive"], ["0..31", "0..15 exclusive"]] {
            let peers = peers(&scopes);
            let shared = shares(&peers, peers[0].worker);
            assert!(shared.iter().all(|share| !share.lanes.contains(0)), "{shared:?}");
            let exclusive = shares(&peers, peers[1].worker);
            let has = exclusive.iter().find(|share| share.lanes.contains(0)).unwrap();
            assert_eq!(has.count, has.lanes.len(), "{exclusive:?}");
        }
    }

    /// Whatever the ranges: every lane that somebody may have is in the shares of those who may have it, once.
    #[test]
    fn every_lane_is_shared_out_once() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let range = |random: &mut fastrand::Rng| {
                let (one, other) = (random.u16(0..LANES), random.u16(0..LANES));
                let exclusive = if random.u8(0..4) == 0 { " exclusive" } else { "" };
                format!("{}..{}{exclusive}", one.min(other), one.max(other))
            };
            let scopes: Vec<String> = (0..random.usize(1..6)).map(|_| range(&mut random)).collect();
            let texts: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let peers = peers(&texts);
            let mut of_kind: BTreeMap<LaneSet, usize> = BTreeMap::new();
            let mut seen = Vec::new();
            for peer in &peers {
                let is_counted = |known: &Scope| known.exclusive && known.lanes == peer.scope.lanes;
                if peer.scope.exclusive && seen.iter().any(is_counted) {
                    continue;
                }
                seen.push(peer.scope);
                for share in shares(&peers, peer.worker) {
                    assert!(share.lanes.without(peer.scope.lanes).is_empty(), "{scopes:?}");
                    assert!(share.count <= share.lanes.len(), "{scopes:?}");
                    *of_kind.entry(share.lanes).or_default() += share.count;
                }
            }
            let exclusives = seen.iter().filter(|scope| scope.exclusive).count();
            for (lanes, count) in &of_kind {
                assert!(*count >= lanes.len(), "{lanes} have no owner: {scopes:?}");
                assert!(*count == lanes.len() || exclusives > 1, "{lanes} are shared out twice: {scopes:?}");
            }
            let covered = peers.iter().fold(LaneSet::NONE, |all, peer| all.with(peer.scope.lanes));
            let shared = of_kind.keys().fold(LaneSet::NONE, |all, lanes| all.with(*lanes));
            assert_eq!(shared, covered, "{scopes:?}");
        }
    }
}
