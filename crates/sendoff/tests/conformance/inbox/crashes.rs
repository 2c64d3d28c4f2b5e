//! Consumers that are killed, fed by a broker that delivers at least once: three events in ten twice, and whatever was not acknowledged again.

use std::collections::VecDeque;
use std::process::Stdio;

use sendoff::EventId;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::consumer::{Delivery, Orders, Said, Stop, command};
use super::host::TestInbox;
use crate::servers;

const CONSUMERS: usize = 4;
/// Deliveries that a consumer has in hand at a time.
const IN_HAND_MAX: usize = 8;
/// Consumers are killed so often between effect and commit, as often between commit and acknowledgement, and as often wherever they are.
const KILLS_EACH: usize = 6;

fn events() -> usize {
    if servers::is_full_run() { 2_000 } else { 400 }
}

pub(super) async fn with_once(inbox: TestInbox) {
    let figures = Broker::run(&inbox, true).await;
    println!("{} with once: {figures:?}", inbox.store);
    assert_eq!((figures.lost, figures.doubled), (0, 0), "{figures:?}");
    assert_eq!(figures.killed_before_commit, KILLS_EACH);
    assert_eq!(figures.killed_before_ack, KILLS_EACH);
    assert!(figures.killed_anywhere > 0 && figures.redelivered >= 2 * KILLS_EACH, "{figures:?}");
    assert_eq!(inbox.rows("inbox_seen").await, events() as i64);
}

/// The same consumer, which does not ask: so the case above can fail.
pub(super) async fn without_once(inbox: TestInbox) {
    let figures = Broker::run(&inbox, false).await;
    println!("{} without: {figures:?}", inbox.store);
    assert_eq!(figures.lost, 0, "{figures:?}");
    let least = figures.duplicates + figures.killed_before_ack;
    assert!(figures.doubled >= least as i64, "{figures:?}");
}

#[derive(Debug, Default)]
#[allow(dead_code, reason = "they are printed")]
struct Figures {
    events: usize,
    /// Sent twice by the broker, of its own accord.
    duplicates: usize,
    deliveries: usize,
    killed_before_commit: usize,
    killed_before_ack: usize,
    killed_anywhere: usize,
    /// Sent again because their consumer was killed.
    redelivered: usize,
    /// Transactions that the database rolled back for another one's sake, and that were tried again.
    conflicts: u64,
    effects: i64,
    lost: i64,
    doubled: i64,
}

/// What the broker hears: which consumer it is of, which process of that consumer, and what it says.
type Heard = (usize, u64, Said);

struct Broker {
    orders: Orders,
    queue: VecDeque<Delivery>,
    consumers: Vec<Consumer>,
    hears: mpsc::Receiver<Heard>,
    tell: mpsc::Sender<Heard>,
    processes: u64,
    figures: Figures,
}

struct Consumer {
    process: u64,
    child: Child,
    input: ChildStdin,
    in_hand: Vec<Delivery>,
}

impl Broker {
    async fn run(inbox: &TestInbox, asks: bool) -> Figures {
        let create = format!("CREATE TABLE {}effect (event_id VARCHAR(36) NOT NULL)", inbox.prefix);
        inbox.pool.execute(create).await;
        let orders = Orders { url: inbox.url.clone(), prefix: inbox.prefix.clone(), asks };
        let (tell, hears) = mpsc::channel(100);
        let (queue, duplicates) = queue();
        let figures = Figures { events: events(), duplicates, ..Figures::default() };
        let mut broker = Self { orders, queue, consumers: Vec::new(), hears, tell, processes: 0, figures };
        for number in 0..CONSUMERS {
            let consumer = broker.start(number).await;
            broker.consumers.push(consumer);
        }
        broker.serve().await;
        let mut figures = broker.figures;
        let effects = format!("FROM {}effect", inbox.prefix);
        let distinct = inbox.pool.number(format!("SELECT COUNT(DISTINCT event_id) {effects}")).await;
        figures.effects = inbox.pool.number(format!("SELECT COUNT(*) {effects}")).await;
        figures.lost = events() as i64 - distinct;
        figures.doubled = figures.effects - distinct;
        figures
    }

    async fn start(&mut self, number: usize) -> Consumer {
        let mut child = command(&self.orders).stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(said(&mut lines).await, Some(Said::Ready));
        self.processes += 1;
        let (process, tell) = (self.processes, self.tell.clone());
        tokio::spawn(async move {
            while let Some(said) = said(&mut lines).await {
                if tell.send((number, process, said)).await.is_err() {
                    break;
                }
            }
        });
        Consumer { process, child, input, in_hand: Vec::new() }
    }

    /// Until everything is acknowledged.
    async fn serve(&mut self) {
        // As evenly over the run as the others are.
        let mut acks_to_kill = self.queue.len() / (KILLS_EACH + 1);
        self.hand_out().await;
        while self.consumers.iter().any(|consumer| !consumer.in_hand.is_empty()) {
            let (number, process, said) = self.hears.recv().await.unwrap();
            if self.consumers[number].process != process {
                continue; // Its last words: whatever it acknowledged was not heard.
            }
            match said {
                Said::Ready => unreachable!("it is said once"),
                Said::Ack { id, conflicts } => {
                    self.figures.conflicts += conflicts;
                    let in_hand = &mut self.consumers[number].in_hand;
                    let place = in_hand.iter().position(|delivery| delivery.id == id).unwrap();
                    in_hand.remove(place);
                    acks_to_kill -= 1;
                    if acks_to_kill == 0 {
                        acks_to_kill = events() / (KILLS_EACH + 1);
                        self.figures.killed_anywhere += 1;
                        self.kill(fastrand::usize(..CONSUMERS)).await;
                    }
                }
                Said::Stopped => {
                    // It handles them in their order. The next time it goes on.
                    let stops = |delivery: &&mut Delivery| delivery.stop != Stop::Nowhere;
                    let stopped = self.consumers[number].in_hand.iter_mut().find(stops).unwrap();
                    match std::mem::replace(&mut stopped.stop, Stop::Nowhere) {
                        Stop::BeforeCommit => self.figures.killed_before_commit += 1,
                        _ => self.figures.killed_before_ack += 1,
                    }
                    self.kill(number).await;
                }
            }
            self.hand_out().await;
        }
    }

    /// What it had in hand is delivered again, and another process stands in its place.
    async fn kill(&mut self, number: usize) {
        self.consumers[number].child.kill().await.unwrap();
        let in_hand = std::mem::take(&mut self.consumers[number].in_hand);
        self.consumers[number] = self.start(number).await;
        self.figures.redelivered += in_hand.len();
        // In front, in their order.
        for delivery in in_hand.into_iter().rev() {
            self.queue.push_front(delivery);
        }
    }

    async fn hand_out(&mut self) {
        while let Some(consumer) = self
            .consumers
            .iter_mut()
            .filter(|one| one.in_hand.len() < IN_HAND_MAX)
            .min_by_key(|one| one.in_hand.len())
        {
            let Some(delivery) = self.queue.pop_front() else { return };
            let line = format!("{}\n", serde_json::to_string(&delivery).unwrap());
            consumer.input.write_all(line.as_bytes()).await.unwrap();
            consumer.in_hand.push(delivery);
            self.figures.deliveries += 1;
        }
    }
}

/// Every event; three in ten a second time, near the first or far from it.
fn queue() -> (VecDeque<Delivery>, usize) {
    let mut queue: Vec<Delivery> = (0..events())
        .map(|_| Delivery { id: EventId::generate().to_string(), stop: Stop::Nowhere })
        .collect();
    let apart = queue.len() / (2 * KILLS_EACH + 1);
    for kill in 0..2 * KILLS_EACH {
        let stop = if kill % 2 == 0 { Stop::BeforeCommit } else { Stop::BeforeAck };
        queue[(kill + 1) * apart - 1].stop = stop;
    }
    let duplicates = queue.len() * 3 / 10;
    for number in 0..duplicates {
        let first = fastrand::usize(..queue.len());
        let copy = Delivery { id: queue[first].id.clone(), stop: Stop::Nowhere };
        // Half of them next to the first, so that two consumers have them at once.
        let place = if number % 2 == 0 { first + 1 } else { fastrand::usize(first + 1..=queue.len()) };
        queue.insert(place, copy);
    }
    (queue.into(), duplicates)
}

async fn said(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<Said> {
    let line = lines.next_line().await.unwrap()?;
    // The last line of a process that was killed may be torn.
    serde_json::from_str(&line).ok()
}
