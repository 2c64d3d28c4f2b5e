//! The checker is judged first: histories made by hand, good and bad.

use libtest_mimic::Failed;
use sendoff::outbox::Cause;

use super::{Figures, Rules, Violation, check};
use crate::history::{self, Effect, FaultKind, Micros, Nature, Proof, Record, Settling, What};

type Case = (&'static str, fn() -> Result<(), Failed>);

/// The cases.
pub(crate) fn all() -> Vec<Case> {
    vec![
        ("a_good_history_is_good", good),
        ("a_lost_event_is_found", lost),
        ("an_event_that_is_left_is_found", left),
        ("published_without_a_delivery_is_found", not_delivered),
        ("a_rolled_back_delivery_is_found", rolled_back),
        ("a_dirty_read_is_found", dirty),
        ("an_early_takeover_is_found", early_takeover),
        ("an_epoch_used_twice_is_found", same_epoch),
        ("a_renewal_by_another_is_found", foreign_renewal),
        ("the_dead_send_nothing", sent_by_the_dead),
        ("events_out_of_order_are_found", out_of_order),
        ("dead_and_delayed_events_have_no_order", no_order),
        ("a_late_delivery_needs_a_reason", late),
        ("who_works_beside_an_exclusive_one_is_found", beside),
        ("a_double_needs_a_reason", doubled),
        ("a_settlement_under_an_old_token_is_found", stale_settlement),
        ("an_attempt_without_a_try_is_found", charged_for_nothing),
        ("an_outage_that_is_charged_is_found", charged_for_outage),
        ("too_many_attempts_are_found", too_many_attempts),
        ("a_crash_that_was_not_seen_is_found", crash_not_seen),
        ("a_wrong_death_is_found", wrong_death),
        ("a_killer_that_goes_on_is_found", killer_goes_on),
        ("what_is_not_done_in_time_is_found", not_in_time),
        ("a_lane_left_behind_is_found", lane_left_behind),
    ]
}

const RULES: Rules = Rules { attempts: 3, crashes: 5, lease: 100_000, diverts: false, exclusive: false };

/// A history in the making: each record a millisecond after the last.
#[derive(Default)]
struct Story {
    records: Vec<Record>,
    at: Micros,
    calls: u32,
}

fn owner(epoch: i64) -> Proof {
    Proof { worker: u32::try_from(epoch).unwrap_or_default(), lane: 0, epoch }
}

impl Story {
    fn and(mut self, what: What) -> Self {
        self.at += 1_000;
        self.records.push(Record { at: self.at, what });
        self
    }

    fn wait(mut self, micros: Micros) -> Self {
        self.at += micros;
        self
    }

    fn written(self, position: i64, nature: Nature) -> Self {
        let tx = u32::try_from(position).unwrap_or_default();
        self.and(What::Enqueue { tx, position, key: Some(1), nature, is_delayed: false })
            .and(What::Commit { tx })
    }

    fn taken(self, epoch: i64) -> Self {
        let incarnation = owner(epoch).worker;
        let (lease, crashes, named) = (RULES.lease, 0, None);
        self.and(What::Take { incarnation, proof: owner(epoch), lease, crashes, named })
    }

    fn tried(mut self, epoch: i64, position: i64) -> Self {
        self.calls += 1;
        let (incarnation, call) = (owner(epoch).worker, self.calls);
        self.and(What::Try { incarnation, proof: owner(epoch), position, call })
    }

    fn delivered(self, epoch: i64, position: i64) -> Self {
        let story = self.tried(epoch, position);
        let (incarnation, call, invoked) = (owner(epoch).worker, story.calls, story.at);
        story
            .and(What::Deliver { incarnation, proof: owner(epoch), position, call, invoked })
            .and(What::Answer { call })
    }

    fn failed(self, epoch: i64, position: i64, how: history::Failed) -> Self {
        let story = self.tried(epoch, position);
        let call = story.calls;
        story.and(What::Fail { position, call, how }).and(What::Answer { call })
    }

    fn settled(self, epoch: i64, position: i64, settling: Settling) -> Self {
        let (incarnation, effect) = (owner(epoch).worker, Effect::Applied);
        self.and(What::Settle { incarnation, proof: owner(epoch), position, settling, effect })
    }

    fn published(self, epoch: i64, position: i64) -> Self {
        self.delivered(epoch, position).settled(epoch, position, Settling::Published)
    }

    fn parked(self, epoch: i64, position: i64, failures: u32, crashes: u32) -> Self {
        self.settled(epoch, position, Settling::Parked { failures, crashes })
    }

    fn dead(self, position: i64, cause: Cause, failures: u32, crashes: u32) -> Self {
        self.and(What::Dead { position, cause, failures, crashes })
    }

    fn fault(self, kind: FaultKind, epoch: i64, lasts: Micros) -> Self {
        let until = self.at + 1_000 + lasts;
        self.and(What::Fault { kind, incarnation: Some(owner(epoch).worker), until })
    }

    fn given(self, epoch: i64) -> Self {
        self.and(What::Give { proof: owner(epoch) })
    }

    fn ended(self) -> Self {
        self.and(What::FaultsOff).and(What::Drained { after: Some(0) })
    }

    fn check(&self) -> Result<Figures, Violation> {
        check(&RULES, &self.records)
    }

    fn is_good(&self) -> Result<Figures, Failed> {
        self.check().map_err(|violation| violation.to_string().into())
    }

    fn breaks(&self, letter: char) -> Result<(), Failed> {
        match self.check() {
            Err(violation) if violation.letter == letter => Ok(()),
            other => Err(format!("({letter}) was expected: {other:?}").into()),
        }
    }
}

/// An event, and who has its lane.
fn begun() -> Story {
    Story::default().written(1, Nature::Plain).taken(1)
}

fn good() -> Result<(), Failed> {
    let story = begun().written(2, Nature::Poison).published(1, 1);
    let story = story.failed(1, 2, history::Failed::Rejected).given(1).ended();
    let figures = story.dead(2, Cause::Rejected, 1, 0).is_good()?;
    if (figures.events, figures.deliveries, figures.dead, figures.duplicates) != (2, 1, 1, 0) {
        return Err(format!("{figures:?}").into());
    }
    Ok(())
}

fn lost() -> Result<(), Failed> {
    begun().given(1).ended().breaks('a')
}

fn left() -> Result<(), Failed> {
    begun().delivered(1, 1).given(1).ended().and(What::Left { position: 1 }).breaks('a')
}

fn not_delivered() -> Result<(), Failed> {
    begun().settled(1, 1, Settling::Published).given(1).ended().breaks('a')
}

fn enqueued() -> What {
    What::Enqueue { tx: 1, position: 1, key: Some(1), nature: Nature::Plain, is_delayed: false }
}

fn rolled_back() -> Result<(), Failed> {
    let story = Story::default().and(enqueued()).and(What::Rollback { tx: 1 });
    story.taken(1).delivered(1, 1).given(1).ended().breaks('b')
}

fn dirty() -> Result<(), Failed> {
    let story = Story::default().and(enqueued()).taken(1).published(1, 1);
    story.and(What::Commit { tx: 1 }).given(1).ended().breaks('b')
}

fn early_takeover() -> Result<(), Failed> {
    begun().taken(2).breaks('c')?;
    begun().published(1, 1).wait(RULES.lease).taken(2).given(2).ended().is_good()?;
    begun().published(1, 1).given(1).taken(2).given(2).ended().is_good()?;
    Ok(())
}

fn same_epoch() -> Result<(), Failed> {
    begun().given(1).taken(1).breaks('c')
}

fn foreign_renewal() -> Result<(), Failed> {
    let renewal = |epoch, kept| What::Renew { proof: owner(epoch), kept, lease: RULES.lease };
    begun().given(1).taken(2).and(renewal(1, true)).breaks('c')?;
    begun().and(renewal(1, false)).breaks('c')
}

fn sent_by_the_dead() -> Result<(), Failed> {
    begun().fault(FaultKind::Drop, 1, 0).published(1, 1).ended().breaks('c')
}

fn out_of_order() -> Result<(), Failed> {
    let story = begun().written(2, Nature::Plain).published(1, 2).published(1, 1);
    story.given(1).ended().breaks('d')
}

/// With a lane of its own, while another has what exclusive ones go by.
fn beside() -> Result<(), Failed> {
    let (incarnation, call, position) = (7, 1, 1);
    let proof = Proof { worker: incarnation, lane: 5, epoch: 1 };
    let story = begun()
        .and(What::Take { incarnation, proof, lease: RULES.lease, crashes: 0, named: None })
        .and(What::Try { incarnation, proof, position, call });
    let invoked = story.at;
    let (settling, effect) = (Settling::Published, Effect::Applied);
    let story = story
        .and(What::Deliver { incarnation, proof, position, call, invoked })
        .and(What::Answer { call })
        .and(What::Settle { incarnation, proof, position, settling, effect })
        .and(What::Give { proof })
        .given(1)
        .ended();
    story.is_good()?;
    match check(&Rules { exclusive: true, ..RULES }, &story.records) {
        Err(violation) if violation.letter == 'd' => Ok(()),
        other => Err(format!("(d) was expected: {other:?}").into()),
    }
}

fn no_order() -> Result<(), Failed> {
    let story = begun().written(2, Nature::Plain).failed(1, 1, history::Failed::Transient);
    let story = story.failed(1, 1, history::Failed::Transient).failed(1, 1, history::Failed::Transient);
    let story = story.fault(FaultKind::Stray, 1, 50_000).published(1, 2).delivered(1, 1);
    story.given(1).ended().dead(1, Cause::Transient, 3, 0).is_good()?;
    let delayed = What::Enqueue { tx: 9, position: 1, key: Some(1), nature: Nature::Plain, is_delayed: true };
    let story = Story::default().and(delayed).and(What::Commit { tx: 9 }).written(2, Nature::Plain);
    story.taken(1).published(1, 2).published(1, 1).given(1).ended().is_good()?;
    Ok(())
}

fn late() -> Result<(), Failed> {
    let zombie = |story: Story| story.delivered(1, 1).published(2, 1).given(2).ended();
    zombie(begun().given(1).taken(2)).breaks('d')?;
    // A freeze that was over when the call began is no reason.
    let thawed = begun().fault(FaultKind::Freeze, 1, 200_000).wait(250_000).taken(2);
    zombie(thawed).breaks('d')?;
    let frozen = begun().fault(FaultKind::Freeze, 1, 500_000).wait(250_000).taken(2);
    let figures = zombie(frozen).is_good()?;
    if figures.late == 1 { Ok(()) } else { Err(format!("{figures:?}").into()) }
}

fn doubled() -> Result<(), Failed> {
    begun().delivered(1, 1).published(1, 1).given(1).ended().breaks('e')?;
    let story = begun().delivered(1, 1).fault(FaultKind::StoreReplyLost, 1, 0).published(1, 1);
    story.given(1).ended().is_good()?;
    // What happened to another is no reason.
    let story = begun().delivered(1, 1).fault(FaultKind::StoreReplyLost, 2, 0).published(1, 1);
    story.given(1).ended().breaks('e')
}

fn stale_settlement() -> Result<(), Failed> {
    begun().delivered(1, 1).given(1).taken(2).settled(1, 1, Settling::Published).breaks('f')?;
    let refused = What::Settle {
        incarnation: 1,
        proof: owner(1),
        position: 1,
        settling: Settling::Published,
        effect: Effect::Stale,
    };
    begun().delivered(1, 1).and(refused).breaks('f')
}

fn charged_for_nothing() -> Result<(), Failed> {
    begun().parked(1, 1, 1, 0).published(1, 1).given(1).ended().breaks('g')
}

fn charged_for_outage() -> Result<(), Failed> {
    let story = |how| begun().failed(1, 1, how).parked(1, 1, 1, 0).published(1, 1).given(1).ended();
    story(history::Failed::Down).breaks('g')?;
    story(history::Failed::Transient).is_good().map(drop)
}

fn too_many_attempts() -> Result<(), Failed> {
    let fails = |story: Story| story.failed(1, 1, history::Failed::Transient);
    let story = fails(fails(fails(fails(begun())))).parked(1, 1, 4, 0);
    story.published(1, 1).given(1).ended().breaks('g')
}

fn crash_not_seen() -> Result<(), Failed> {
    begun().parked(1, 1, 0, 1).published(1, 1).given(1).ended().breaks('g')?;
    let named = begun().and(What::Name { proof: owner(1), position: 1 });
    named.parked(1, 1, 0, 1).published(1, 1).given(1).ended().is_good().map(drop)
}

fn wrong_death() -> Result<(), Failed> {
    begun().given(1).ended().dead(1, Cause::Rejected, 1, 0).breaks('g')?;
    begun().given(1).ended().dead(1, Cause::Transient, 2, 0).breaks('g')?;
    begun().given(1).ended().dead(1, Cause::Crash, 0, 4).breaks('g')?;
    begun().given(1).ended().dead(1, Cause::Diverted, 0, 0).breaks('g')
}

fn killer_goes_on() -> Result<(), Failed> {
    let mut story = Story::default().written(1, Nature::Killer).and(What::FaultsOff);
    for _ in 0..10 {
        story = story.fault(FaultKind::Killed, 1, 0);
    }
    story.dead(1, Cause::Crash, 0, 5).and(What::Drained { after: Some(0) }).breaks('g')
}

fn not_in_time() -> Result<(), Failed> {
    begun().published(1, 1).given(1).and(What::Drained { after: None }).breaks('l')?;
    begun().published(1, 1).given(1).ended().and(What::Hung { relay: 0 }).breaks('l')
}

fn lane_left_behind() -> Result<(), Failed> {
    begun().published(1, 1).ended().breaks('l')?;
    begun().published(1, 1).fault(FaultKind::Crash, 1, 0).ended().is_good().map(drop)
}
