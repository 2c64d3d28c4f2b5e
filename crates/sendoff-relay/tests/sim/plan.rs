//! What one seed does: sizes, settings, and which faults it may meet.

use std::time::Duration;

use fastrand::Rng;
use sendoff::outbox::{LANES, LaneSet, OnExhausted};
use sendoff_relay::{BreakerConfig, RetryPolicy, TargetConfig};

/// How likely things go wrong, in parts of a thousand for each call. Each seed has a choice of them only: where everything fails at once,
/// most faults hide each other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rates {
    pub(crate) store_error: u32,
    pub(crate) store_reply_lost: u32,
    /// The incarnation is gone in the middle of a call, of the store or the sink.
    pub(crate) crash_in_call: u32,
    /// The same, and it goes on later.
    pub(crate) freeze_in_call: u32,
    pub(crate) sink_hangs: u32,
    pub(crate) stray: u32,
    pub(crate) sink_reply_lost: u32,
    pub(crate) sink_slow: u32,
    pub(crate) sink_partial: u32,
    pub(crate) sink_fails: u32,
}

/// How often the nemesis chooses what to do to a relay.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weights {
    pub(crate) crash: u32,
    pub(crate) drop: u32,
    pub(crate) freeze: u32,
    pub(crate) outage: u32,
    pub(crate) sink_down: u32,
    /// No fault: a relay is stopped as it should be.
    pub(crate) stop: u32,
}

/// Who may have which lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Everybody all of them.
    All,
    /// The first relay the lower half, the others all, or the first two a half each.
    Ranges,
    /// One relay at a time.
    Exclusive,
}

/// What one seed does.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) sharing: Sharing,
    pub(crate) relays: u32,
    pub(crate) workers: usize,
    pub(crate) keys: u32,
    pub(crate) transactions: u32,
    pub(crate) producers: u32,
    pub(crate) lease: Duration,
    pub(crate) publish_timeout: Duration,
    pub(crate) attempts: u32,
    pub(crate) policy: OnExhausted,
    pub(crate) keeps_order: bool,
    pub(crate) batch: usize,
    pub(crate) window: u32,
    pub(crate) concurrency: usize,
    pub(crate) call_events: usize,
    /// A call of the store takes up to so long each way, in milliseconds.
    pub(crate) store_delay: u64,
    pub(crate) killers: u32,
    /// In parts of a thousand.
    pub(crate) poison: u32,
    pub(crate) flaky: u32,
    pub(crate) keyless: u32,
    pub(crate) delayed: u32,
    pub(crate) rollback: u32,
    pub(crate) held_open: u32,
    /// For so long things go wrong.
    pub(crate) chaos: Duration,
    pub(crate) rates: Rates,
    pub(crate) weights: Weights,
    /// Nothing goes wrong: nothing may be delivered twice.
    pub(crate) is_faultless: bool,
}

fn millis(rng: &mut Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.u64(range))
}

/// One of the faults is on in about two of three seeds.
fn sometimes(rng: &mut Rng, most: u32) -> u32 {
    if rng.u32(0..3) == 0 { 0 } else { rng.u32(1..=most) }
}

impl Rates {
    fn choose(rng: &mut Rng) -> Self {
        Self {
            store_error: sometimes(rng, 30),
            store_reply_lost: sometimes(rng, 30),
            crash_in_call: sometimes(rng, 4),
            freeze_in_call: sometimes(rng, 5),
            sink_hangs: sometimes(rng, 80),
            stray: sometimes(rng, 120),
            sink_reply_lost: sometimes(rng, 120),
            sink_slow: sometimes(rng, 120),
            sink_partial: sometimes(rng, 160),
            sink_fails: sometimes(rng, 120),
        }
    }
}

impl Weights {
    fn choose(rng: &mut Rng) -> Self {
        Self {
            crash: sometimes(rng, 10),
            drop: sometimes(rng, 5),
            freeze: sometimes(rng, 10),
            outage: sometimes(rng, 8),
            sink_down: sometimes(rng, 6),
            stop: sometimes(rng, 6),
        }
    }
}

impl Plan {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let is_faultless = rng.u32(0..12) == 0;
        let policy = if rng.u32(0..4) == 0 { OnExhausted::Divert } else { OnExhausted::Skip };
        let lease = millis(rng, 300..900);
        // Looked at, not taken: the rest of a seed stays as it was.
        let sharing = match rng.clone().u32(0..6) {
            0 => Sharing::Ranges,
            1 => Sharing::Exclusive,
            _ => Sharing::All,
        };
        Self {
            sharing,
            relays: rng.u32(1..=3),
            workers: if rng.u32(0..5) == 0 { 2 } else { 1 },
            keys: rng.u32(3..=12),
            transactions: rng.u32(12..=48),
            producers: rng.u32(2..=5),
            lease,
            publish_timeout: millis(rng, 60..250),
            attempts: rng.u32(3..=6),
            policy,
            keeps_order: rng.bool(),
            batch: rng.usize(1..=40),
            window: rng.u32(4..=80),
            concurrency: rng.usize(1..=4),
            call_events: rng.usize(1..=20),
            store_delay: rng.u64(0..=8),
            killers: u32::from(!is_faultless && rng.u32(0..6) == 0),
            poison: sometimes(rng, 60),
            flaky: sometimes(rng, 100),
            keyless: sometimes(rng, 200),
            delayed: sometimes(rng, 60),
            rollback: sometimes(rng, 250),
            held_open: sometimes(rng, 250),
            chaos: millis(rng, 600..2_000),
            rates: if is_faultless { Rates::default() } else { Rates::choose(rng) },
            weights: if is_faultless {
                Weights { stop: 1, ..Weights::default() }
            } else {
                Weights::choose(rng)
            },
            is_faultless,
        }
    }

    /// The lanes of a relay. Of every lane there is one that may have it.
    fn lanes(&self, relay: u32) -> LaneSet {
        let (low, high) = (0..LANES / 2, LANES / 2..LANES);
        match (self.sharing, relay) {
            (Sharing::Ranges, 0) if self.relays > 1 => low.collect(),
            (Sharing::Ranges, 1) if self.relays == 2 => high.collect(),
            _ => LaneSet::ALL,
        }
    }

    /// The settings of one of its relays.
    pub(crate) fn config(&self, relay: u32) -> TargetConfig {
        let exclusive = self.sharing == Sharing::Exclusive;
        TargetConfig {
            lease: self.lease,
            lanes: self.lanes(relay),
            exclusive,
            workers: if exclusive { 1 } else { self.workers },
            batch: self.batch,
            window: self.window,
            concurrency: self.concurrency,
            publish_timeout: self.publish_timeout,
            retry: RetryPolicy {
                base: Duration::from_millis(10),
                cap: Duration::from_millis(150),
                attempts: self.attempts,
            },
            on_exhausted: self.policy,
            breaker: BreakerConfig {
                probe: Duration::from_millis(20),
                probe_max: Duration::from_millis(200),
            },
            poll_max: Duration::from_millis(100),
            grace: Duration::from_secs(2),
            ..TargetConfig::default()
        }
    }

    /// Within this time after the last fault everything must be delivered or dead. A killer takes its relay along until it is given up, and each time
    /// its lease has to end first.
    pub(crate) fn drained_within(&self) -> Duration {
        let calm = Duration::from_secs(4) + self.lease * 6;
        let one_kill = self.lease * 4 + self.publish_timeout * 2 + Duration::from_secs(2);
        calm + one_kill * 12 * self.killers
    }
}
