//! The broker as one incarnation meets it. What it takes is written down when it takes it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sendoff::outbox::{Claimed, Token};
use sendoff::{Capabilities, Delivery, Sink, SinkError};
use tokio::time::Instant;

use crate::history::{Failed, FaultKind, Micros, Nature, Proof, What};
use crate::incarnation::Incarnation;
use crate::recording_store::proof;
use crate::world::World;

/// The broker as one incarnation meets it.
#[derive(Debug, Clone)]
pub(crate) struct SimSink {
    pub(crate) world: Arc<World>,
    pub(crate) incarnation: Arc<Incarnation>,
}

/// How a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Well,
    Hangs,
    Slow,
    Stray,
    /// The process stands still between its last look at the clock and the sending.
    FrozenBeforeSending,
    ReplyLost,
}

/// One call.
#[derive(Debug, Clone, Copy)]
struct Call {
    number: u32,
    invoked: Micros,
    /// So many events are tried.
    most: usize,
    /// It has left the relay: whatever becomes of that, it goes on.
    has_left: bool,
}

impl SimSink {
    fn manner(&self, events: &[Claimed]) -> Manner {
        let (world, rates) = (&self.world, &self.world.plan.rates);
        let is_deadly = events.iter().any(|event| world.nature(event.event.position) == Nature::Killer);
        if is_deadly {
            Manner::Well
        } else if world.strikes(rates.sink_hangs) {
            Manner::Hangs
        } else if world.strikes(rates.sink_slow) {
            Manner::Slow
        } else if world.strikes(rates.stray) {
            Manner::Stray
        } else if world.strikes(rates.freeze_in_call * 3) {
            Manner::FrozenBeforeSending
        } else if world.strikes(rates.sink_reply_lost) {
            Manner::ReplyLost
        } else {
            Manner::Well
        }
    }

    fn fault(&self, kind: FaultKind, lasts: Duration) {
        self.world.fault(kind, Some(&self.incarnation), Instant::now() + lasts);
    }

    fn proof(&self, token: Token) -> Proof {
        // Every worker that publishes has leased before, so the world has met it.
        let worker = self.incarnation.known_as(token.worker, || token.worker);
        proof(Token { worker, ..token })
    }

    fn begin(&self, events: &[Claimed]) -> Call {
        let world = &self.world;
        let number = world.next_call();
        for event in events {
            world.note(What::Try {
                incarnation: self.incarnation.number,
                proof: self.proof(event.token),
                position: event.event.position,
                call: number,
            });
        }
        let mut most = events.len();
        if world.strikes(world.plan.rates.sink_partial) {
            most = world.index(events.len());
            self.fault(FaultKind::SinkPartial, Duration::ZERO);
        }
        Call { number, invoked: world.now(), most, has_left: false }
    }

    /// Goes through the events, one by one.
    async fn deliver(self, call: Call, events: Vec<Claimed>) -> Vec<Delivery> {
        let mut answer = Vec::with_capacity(events.len());
        for event in events.iter().take(call.most) {
            self.world.pause(2).await;
            if !call.has_left {
                self.incarnation.pass().await;
            }
            let delivery = self.deliver_one(call, event).await;
            let is_delivered = delivery == Delivery::Delivered;
            answer.push(delivery);
            if self.world.plan.keeps_order && !is_delivered {
                break;
            }
        }
        answer
    }

    async fn deliver_one(&self, call: Call, event: &Claimed) -> Delivery {
        let (world, position) = (&self.world, event.event.position);
        let fail = |how: Failed| world.note(What::Fail { position, call: call.number, how });
        if world.sink_is_down() {
            fail(Failed::Down);
            return Delivery::down("down");
        }
        match world.nature(position) {
            Nature::Killer => {
                self.fault(FaultKind::Killed, Duration::ZERO);
                self.incarnation.kill();
                std::future::pending::<()>().await;
            }
            Nature::Poison => {
                fail(Failed::Rejected);
                return Delivery::reject("poison");
            }
            Nature::Flaky(times) if world.count_try(position) < times => {
                fail(Failed::Transient);
                return Delivery::retry("flaky");
            }
            _ if world.strikes(world.plan.rates.sink_fails) => {
                self.fault(FaultKind::SinkFails, Duration::ZERO);
                fail(Failed::Transient);
                return Delivery::retry("not now");
            }
            _ => {}
        }
        world.note(What::Deliver {
            incarnation: self.incarnation.number,
            proof: self.proof(event.token),
            position,
            call: call.number,
            invoked: call.invoked,
        });
        Delivery::Delivered
    }

    /// What the call has sent arrives after some time, or when its process goes on; however long the relay waits.
    async fn arrives_later(&self, call: Call, events: &[Claimed], manner: Manner) -> Vec<Delivery> {
        let (sink, events, call) = (self.clone(), events.to_vec(), Call { has_left: true, ..call });
        let lease = u64::try_from(self.world.plan.lease.as_millis()).unwrap_or(u64::MAX);
        let wait = if manner == Manner::Stray {
            let wait = self.world.millis(1..=lease * 2);
            self.fault(FaultKind::Stray, wait);
            wait
        } else {
            self.world.freeze(&self.incarnation);
            self.incarnation.frozen_until().map_or(Duration::ZERO, |until| until - Instant::now())
        };
        let arrives = tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            sink.deliver(call, events).await
        });
        match arrives.await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Sink for SimSink {
    fn capabilities(&self) -> Capabilities {
        let plan = &self.world.plan;
        Capabilities { events: plan.call_events, keeps_order: plan.keeps_order, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let world = &self.world;
        let call = self.begin(events);
        let manner = self.manner(events);
        world.pause(10).await;
        world.pass(&self.incarnation).await;
        let timeout = world.plan.publish_timeout;
        if manner == Manner::Hangs {
            self.fault(FaultKind::SinkHangs, timeout);
            std::future::pending::<()>().await;
        }
        if manner == Manner::Slow {
            let wait = timeout.mul_f64(0.1 * f64::from(u32::try_from(world.number(1..=20)).unwrap_or(1)));
            self.fault(FaultKind::SinkSlow, wait);
            tokio::time::sleep(wait).await;
        }
        let answer = if matches!(manner, Manner::Stray | Manner::FrozenBeforeSending) {
            self.arrives_later(call, events, manner).await
        } else {
            self.clone().deliver(call, events.to_vec()).await
        };
        world.pause(10).await;
        world.pass(&self.incarnation).await;
        if manner == Manner::ReplyLost {
            self.fault(FaultKind::SinkReplyLost, timeout);
            std::future::pending::<()>().await;
        }
        world.note(What::Answer { call: call.number });
        answer
    }

    async fn check(&self) -> Result<(), SinkError> {
        self.incarnation.pass().await;
        self.world.pause(5).await;
        self.incarnation.pass().await;
        if self.world.sink_is_down() { Err(SinkError::new("broker", "down")) } else { Ok(()) }
    }
}
