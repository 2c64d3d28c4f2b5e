//! One worker, step by step and at random, beside a model of what it may hand out.
//!
//! Nothing happens at once here, so that the model is exact: of each key the next ones in line, all or some of them, and none while one is under way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Patience, enqueue, event, settle, start, stop, text};
use crate::event::EventId;
use crate::outbox::{Claimed, OnExhausted, Outcome, Redrive, Redriven, Selection, Worker};
use crate::testkit::StoreHarness;

const SEEDS: u64 = 6;
const STEPS: usize = 100;
const KEYS: [&str; 3] = ["a", "b", "c"];

/// What became of an event so far.
#[derive(Debug)]
enum Stage {
    /// It may be handed out when it is the first of its key that is.
    InLine,
    InHand(Claimed),
    /// Published, and not settled yet.
    Delivered(Claimed),
    Dead,
    Done,
}

/// The events of a key, in their order.
type Line = BTreeMap<usize, (EventId, Stage)>;

struct Walk<'h, H> {
    harness: &'h H,
    worker: Worker,
    random: fastrand::Rng,
    run: usize,
    lines: BTreeMap<&'static str, Line>,
}

/// Whatever fails, is given back, dies and is redriven: the next of a key is handed out, and no other, and in the end each was delivered.
pub(crate) async fn the_next_of_a_key_is_handed_out_and_no_other<H: StoreHarness>(harness: Arc<H>) {
    for seed in 0..SEEDS {
        let mut walk = Walk::start(&*harness, seed).await;
        for _ in 0..STEPS {
            walk.step().await;
        }
        walk.finish().await;
        stop(walk.worker).await;
    }
}

impl<'h, H: StoreHarness> Walk<'h, H> {
    async fn start(harness: &'h H, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let run = random.usize(1..=3);
        let window = random.u32(3..=30);
        let worker = start(harness.store(), |config| {
            config.run = u32::try_from(run).unwrap_or(1);
            config.window = window;
            config.on_exhausted = OnExhausted::Skip;
        })
        .await;
        let lines = KEYS.iter().map(|key| (*key, Line::new())).collect();
        Self { harness, worker, random, run, lines }
    }

    async fn step(&mut self) {
        let key = KEYS[self.random.usize(..KEYS.len())];
        match self.random.u8(..10) {
            0 | 1 => self.write(key).await,
            2..=5 => {
                let limit = self.random.usize(1..=12);
                self.claim(limit).await;
            }
            6 | 7 => self.deliver(key),
            8 => self.fail(key).await,
            _ if self.random.bool() => self.redrive(key).await,
            _ => self.settle_delivered(key).await,
        }
    }

    async fn write(&mut self, key: &'static str) {
        let line = self.lines.get_mut(key).expect("all keys have a line");
        let numbers: Vec<usize> = (line.len()..line.len() + self.random.usize(1..=4)).collect();
        let new: Vec<_> = numbers.iter().map(|number| event(key, &number.to_string())).collect();
        let ids = enqueue(self.harness, &new).await;
        line.extend(numbers.into_iter().zip(ids.into_iter().map(|id| (id, Stage::InLine))));
    }

    /// Claims, and holds what is handed out against the model.
    async fn claim(&mut self, limit: usize) -> usize {
        let claimed = self.worker.claim(limit).await.unwrap();
        let count = claimed.len();
        assert!(count <= limit, "{count} of {limit} were handed out");
        let mut of_key: BTreeMap<String, Vec<Claimed>> = BTreeMap::new();
        for claimed in claimed {
            let key = claimed.event.key.clone().expect("they all have keys");
            of_key.entry(key).or_default().push(claimed);
        }
        for (key, claimed) in of_key {
            let line = self.lines.get_mut(key.as_str()).expect("all keys have a line");
            let is_busy = line.values().any(|(_, stage)| matches!(stage, Stage::InHand(_)));
            let in_line = line.iter().filter(|(_, (_, stage))| matches!(stage, Stage::InLine));
            let next: Vec<usize> = in_line.map(|(number, _)| *number).take(claimed.len()).collect();
            let handed: Vec<usize> =
                claimed.iter().map(|claimed| text(&claimed.event).parse().unwrap()).collect();
            assert!(!is_busy, "{handed:?} of {key} were handed out beside {line:?}");
            assert_eq!(handed, next, "of {key}, in this order: {line:?}");
            assert!(handed.len() <= self.run, "{handed:?} of {key} is more than goes along");
            for (number, claimed) in handed.into_iter().zip(claimed) {
                line.get_mut(&number).expect("it is in line").1 = Stage::InHand(claimed);
            }
        }
        count
    }

    /// Some of what is in hand of a key is published, from the first on.
    fn deliver(&mut self, key: &str) {
        let line = self.lines.get_mut(key).expect("all keys have a line");
        let in_hand = line.values_mut().filter(|(_, stage)| matches!(stage, Stage::InHand(_)));
        for (_, stage) in in_hand.take(self.random.usize(1..=3)) {
            *stage = match std::mem::replace(stage, Stage::Done) {
                Stage::InHand(claimed) => {
                    self.worker.delivered([&claimed.receipt()]);
                    Stage::Delivered(claimed)
                }
                other => other,
            };
        }
    }

    async fn settle_delivered(&mut self, key: &str) {
        let line = self.lines.get_mut(key).expect("all keys have a line");
        let mut delivered = Vec::new();
        for (_, stage) in line.values_mut() {
            if matches!(stage, Stage::Delivered(_))
                && let Stage::Delivered(claimed) = std::mem::replace(stage, Stage::Done)
            {
                delivered.push(claimed);
            }
        }
        let summary = settle(&self.worker, &delivered, &Outcome::Published).await;
        assert_eq!((summary.applied, summary.stale, summary.missing), (delivered.len(), 0, 0), "{key}");
    }

    /// The first in hand fails, one way or another; what else is in hand of the key is given back with it.
    async fn fail(&mut self, key: &str) {
        self.settle_delivered(key).await;
        let (outcome, becomes_dead) = match self.random.u8(..4) {
            0 => (Outcome::Release, false),
            1 | 2 => (Outcome::rejected("no"), true),
            _ => (Outcome::retry(Duration::ZERO, "not now"), false),
        };
        let line = self.lines.get_mut(key).expect("all keys have a line");
        let mut outcomes = Vec::new();
        for (_, stage) in line.values_mut() {
            let Stage::InHand(claimed) = stage else { continue };
            let is_first = outcomes.is_empty();
            outcomes.push((claimed.receipt(), if is_first { outcome.clone() } else { Outcome::Release }));
            *stage = if is_first && becomes_dead { Stage::Dead } else { Stage::InLine };
        }
        let summary = self.worker.settle(&outcomes).await.unwrap();
        assert_eq!((summary.applied, summary.stale, summary.missing), (outcomes.len(), 0, 0), "{key}");
    }

    /// An operator brings one of the dead back.
    async fn redrive(&mut self, key: &str) {
        let line = self.lines.get_mut(key).expect("all keys have a line");
        let dead: Vec<&mut (EventId, Stage)> =
            line.values_mut().filter(|(_, stage)| matches!(stage, Stage::Dead)).collect();
        let chosen = self.random.usize(..dead.len().max(1));
        let Some((id, stage)) = dead.into_iter().nth(chosen) else { return };
        let ask =
            Redrive { selection: Selection::Event(*id), limit: 1, dry_run: false, by: "suite".to_owned() };
        let redriven = self.harness.inspect().redrive(&ask).await.unwrap();
        assert_eq!(redriven, Redriven { dead: 1, parked: 0 });
        *stage = Stage::InLine;
    }

    /// Everything is delivered that is not dead, and then that too.
    async fn finish(&mut self) {
        for _ in 0..2 {
            let patience = Patience::new("what is in line is handed out");
            while self.has(|stage| !matches!(stage, Stage::Dead | Stage::Done)) {
                if self.claim(1_000).await == 0 && !self.has(|stage| matches!(stage, Stage::InHand(_))) {
                    patience.wait().await;
                }
                for key in KEYS {
                    self.deliver(key);
                    self.settle_delivered(key).await;
                }
            }
            for key in KEYS {
                while self.lines[key].values().any(|(_, stage)| matches!(stage, Stage::Dead)) {
                    self.redrive(key).await;
                }
            }
        }
    }

    fn has(&self, is_such: impl Fn(&Stage) -> bool) -> bool {
        self.lines.values().flat_map(BTreeMap::values).any(|(_, stage)| is_such(stage))
    }
}
