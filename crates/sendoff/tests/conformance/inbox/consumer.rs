//! This program as a child process: a consumer, which is handed deliveries on its standard input and acknowledges them on its standard output.

use std::process::ExitCode;

use sendoff::inbox::{Inbox, Once};
use sendoff::stores::Names;
use sendoff::{EventId, StoreErrorKind};
use serde::{Deserialize, Serialize};

use super::host::Pool;

const VARIABLE: &str = "SENDOFF_TEST_CONSUMER";

/// Who it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) url: String,
    /// What stands before the name of each table: a schema with its dot, or a prefix.
    pub(crate) prefix: String,
    /// It asks whether an event is new to it.
    pub(crate) asks: bool,
}

/// Where a delivery finds the consumer standing still, to be killed there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stop {
    Nowhere,
    BeforeCommit,
    BeforeAck,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) id: EventText,
    pub(crate) stop: Stop,
}

/// An event's id as it travels.
pub(crate) type EventText = String;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Said {
    /// It can be handed deliveries.
    Ready,
    /// The delivery is handled; so often its transaction was tried again.
    Ack { id: EventText, conflicts: u64 },
    /// It stands still where it was told to.
    Stopped,
}

pub(crate) fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

pub(crate) fn command(orders: &Orders) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command
        .env(VARIABLE, serde_json::to_string(orders).unwrap())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    command
}

pub(crate) fn run() -> ExitCode {
    let orders: Orders = serde_json::from_str(&std::env::var(VARIABLE).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(consume(&orders));
    ExitCode::SUCCESS
}

fn say(said: &Said) {
    println!("{}", serde_json::to_string(said).unwrap());
}

/// Stands still until it is killed, or until nobody is there any more who could.
fn stand_still() -> ! {
    say(&Said::Stopped);
    while std::io::stdin().read_line(&mut String::new()).unwrap_or_default() > 0 {}
    std::process::exit(0);
}

/// Until its standard input ends.
async fn consume(orders: &Orders) {
    let pool = Pool::connect(&orders.url).await;
    let names = match orders.prefix.strip_suffix('.') {
        Some(schema) => Names::schema(schema).unwrap(),
        None => Names::prefix(&orders.prefix).unwrap(),
    };
    let inbox = Inbox::named(names);
    say(&Said::Ready);
    let mut line = String::new();
    // Not locked for good: who stands still reads on.
    while std::io::stdin().read_line(&mut line).unwrap() > 0 {
        let delivery: Delivery = serde_json::from_str(&line).unwrap();
        line.clear();
        let mut conflicts = 0;
        while !handle(&pool, &inbox, orders, &delivery).await {
            conflicts += 1;
        }
        if delivery.stop == Stop::BeforeAck {
            stand_still();
        }
        say(&Said::Ack { id: delivery.id, conflicts });
    }
}

/// One transaction: whether it was not rolled back by the database for another one's sake.
async fn handle(pool: &Pool, inbox: &Inbox, orders: &Orders, delivery: &Delivery) -> bool {
    let id: EventId = delivery.id.parse().unwrap();
    let mut transaction = pool.begin().await;
    if orders.asks {
        match transaction.once(inbox, "consumer", id).await {
            Ok(Once::First) => {}
            Ok(Once::Seen) => {
                if delivery.stop == Stop::BeforeCommit {
                    stand_still();
                }
                transaction.commit().await.unwrap();
                return true;
            }
            Err(error) if error.kind() == StoreErrorKind::Contended => {
                transaction.rollback().await;
                return false;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    let effect = format!("INSERT INTO {}effect (event_id) VALUES ('{id}')", orders.prefix);
    transaction.execute(effect).await.unwrap();
    if delivery.stop == Stop::BeforeCommit {
        stand_still();
    }
    transaction.commit().await.unwrap();
    true
}
