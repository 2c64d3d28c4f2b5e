//! The first stage: claims events while there is room for them, and the sink is there.

use std::time::Duration;

use sendoff::outbox::Claimed;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::breaker::Permit;
use crate::mode::Mode;
use crate::pause::Pause;
use crate::poll::Poll;
use crate::target::Loop;

/// Claims until the target stops.
pub(crate) async fn run(stages: &Loop, claims: mpsc::Sender<Vec<Claimed>>) {
    let target = &stages.target;
    let mut poll = Poll::new(target.config.poll_max, Instant::now());
    let mut pause = Pause::default();
    let mut lanes = Lanes::default();
    while permitted(stages).await {
        lanes.tell(stages);
        let Some(limit) = take_room(stages).await else { continue };
        poll.claims(Instant::now());
        // As it is before: what is given back meanwhile was not to be claimed, and is not gone.
        let had_none = stages.worker.in_flight() == 0;
        let claimed = stages.worker.claim(limit).await;
        let now = Instant::now();
        let count = claimed.as_ref().map_or(0, Vec::len);
        if let Some(rate) = target.rate().as_mut() {
            rate.give_back(limit - count);
        }
        if claimed.is_ok() {
            target.store_answered();
        }
        // What is sent next may wait for what comes with the next claim.
        let is_full = count == limit;
        if is_full {
            expect_more(stages, true);
        }
        match claimed {
            Ok(events) if events.is_empty() => {
                expect_more(stages, false);
                if had_none {
                    // Whatever it was down for is gone.
                    note_sink(stages, None).await;
                }
                look_out(stages, &mut poll).await;
            }
            Ok(events) => {
                pause = Pause::default();
                poll.wake(now);
                note(stages, &events);
                if claims.send(events).await.is_err() {
                    return;
                }
                if !is_full {
                    expect_more(stages, false);
                }
            }
            Err(error) => {
                target.store_failed("events could not be claimed", &error);
                or_stop(stages, pause.wait()).await;
            }
        }
    }
}

/// The lanes that came and went, as they were when they were last told of.
#[derive(Default)]
struct Lanes {
    taken: u64,
    lost: u64,
}

impl Lanes {
    /// Says so if lanes have come, or others have taken some.
    fn tell(&mut self, stages: &Loop) {
        let stats = stages.worker.stats();
        let target_name = &stages.target.config.target;
        let worker = stages.worker.id();
        if stats.taken > self.taken {
            let lanes = stats.taken - self.taken;
            tracing::info!(target_name, %worker, lanes, "lanes taken");
        }
        if stats.lost > self.lost {
            let lanes = stats.lost - self.lost;
            tracing::info!(target_name, %worker, lanes, "lanes have gone to another worker, which took this one for lost");
        }
        *self = Self { taken: stats.taken, lost: stats.lost };
    }
}

fn note(stages: &Loop, events: &[Claimed]) {
    let counters = &stages.target.counters;
    counters.claimed.add(events.len() as u64);
    counters.in_flight.add(events.len() as u64);
    counters.bytes_in_flight.add(events.iter().map(Loop::bytes_of).sum());
}

/// Says whether the next claim comes soon and will be a full one, as far as can be known.
fn expect_more(stages: &Loop, is_expected: bool) {
    stages.more_to_come.send_if_modified(|known| std::mem::replace(known, is_expected) != is_expected);
}

/// Waits while the target is paused or its sink is down. False: it is to stop.
async fn permitted(stages: &Loop) -> bool {
    let target = &stages.target;
    loop {
        stages.beat();
        if target.mode.wait_for(|mode| mode != Mode::Pause).await == Mode::Stop {
            return false;
        }
        let (permit, error) = {
            let mut breaker = target.breaker();
            (breaker.permit(Instant::now()), breaker.error().map(str::to_owned))
        };
        match permit {
            Permit::Send => {
                if error.is_none() {
                    note_sink(stages, None).await;
                }
                return true;
            }
            Permit::Wait(until) => {
                note_sink(stages, error.as_deref()).await;
                or_stop(stages, tokio::time::sleep_until(until)).await;
            }
            Permit::Probe => {
                let timeout = target.config.publish_timeout;
                let checked = tokio::time::timeout(timeout, target.sink.check()).await;
                let is_there = matches!(checked, Ok(Ok(())));
                let target_name = &target.config.target;
                match checked {
                    Ok(Err(error)) => tracing::debug!(target_name, %error, "the sink is still down"),
                    Ok(Ok(())) => tracing::info!(target_name, "the sink is there again"),
                    Err(_) => tracing::debug!(target_name, ?timeout, "the sink does not answer"),
                }
                target.breaker().probed(is_there, Instant::now());
            }
        }
    }
}

/// Lets people know that the sink went down, or that it is back: who looks into the outbox sees no breaker.
async fn note_sink(stages: &Loop, error: Option<&str>) {
    let is_down = error.is_some();
    if *stages.noted_down() == Some(is_down) {
        return;
    }
    // Until there is an answer: it may be written although none comes.
    *stages.noted_down() = None;
    or_stop(stages, async {
        match stages.worker.note_sink(error).await {
            Ok(()) => *stages.noted_down() = Some(is_down),
            // Tried again with the next turn.
            Err(error) => tracing::debug!(%error, "the state of the sink could not be noted"),
        }
    })
    .await;
}

/// Whether to claim now rather than after something is settled.
fn has_room(stages: &Loop) -> bool {
    let (config, counters) = (&stages.target.config, &stages.target.counters);
    let in_flight = stages.worker.in_flight();
    if in_flight == 0 {
        return true;
    }
    // Half of the bytes is for what is read next.
    let held = counters.bytes_in_flight.get();
    let bytes_fit = held < config.bytes.saturating_mul(config.workers as u64) / 2;
    // Few at a time cost as much as many.
    let window = config.window as usize;
    let is_worth_it = window.saturating_sub(in_flight) >= config.batch.min(window).div_ceil(2);
    // To read further ahead than one batch is no use while it is the store that is slow: what is in flight keeps its keys from being handed out.
    let store_follows = stages.unsettled.get() <= config.batch as u64;
    bytes_fit && is_worth_it && store_follows
}

/// How many may be claimed now. None: ask again.
async fn take_room(stages: &Loop) -> Option<usize> {
    let target = &stages.target;
    let config = &target.config;
    if !has_room(stages) {
        or_stop(stages, stages.settled.notified()).await;
        return None;
    }
    let limit = stages.pace_limit(config.batch);
    let taken = target.rate().as_mut().map_or(Ok(limit), |rate| rate.take(limit, Instant::now()));
    match taken {
        Ok(limit) => Some(limit),
        Err(wait) => {
            or_stop(stages, tokio::time::sleep(wait)).await;
            None
        }
    }
}

/// There was nothing to claim: waits until there may be.
async fn look_out(stages: &Loop, poll: &mut Poll) {
    let target = &stages.target;
    loop {
        stages.beat();
        let wait = poll.wait(Instant::now());
        tokio::select! {
            biased;
            _ = target.mode.wait_for(|mode| mode != Mode::Run) => return,
            () = target.bell.notified() => {
                poll.wake(Instant::now());
                return;
            }
            // What had to wait for its key may be claimed now.
            () = stages.settled.notified() => return,
            () = tokio::time::sleep(wait) => {}
        }
        let newest = stages.source.newest().await.unwrap_or_else(|error| {
            tracing::debug!(%error, "the newest position could not be read");
            None
        });
        if poll.saw(newest, Instant::now()) {
            return;
        }
    }
}

/// Waits for it, or for the target to stop. Nothing is claimed meanwhile.
async fn or_stop(stages: &Loop, wait: impl Future<Output = ()>) {
    expect_more(stages, false);
    tokio::select! {
        biased;
        _ = stages.target.mode.wait_for(|mode| mode == Mode::Stop) => {}
        () = wait => {}
        // Never for ever: whatever is waited for may have been missed.
        () = tokio::time::sleep(Duration::from_secs(1)) => {}
    }
}
