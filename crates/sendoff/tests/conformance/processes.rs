//! Races between processes of the operating system, and processes whose clock is wrong.

use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use libtest_mimic::Trial;
use sendoff::claim::{Record, Timestamp, Value};
use sendoff::testkit::{Shape, verify_claims};
use sqlx::{MySqlPool, PgPool, SqlitePool};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::claimer::{Orders, Report, Work, command};
use crate::servers::{Server, race_rows};
use crate::{harness, trial};

const PROCESSES: usize = 4;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (path, floor) in [("fast", false), ("floor", true)] {
        for batch in [7, 100] {
            let name = |store| format!("processes::{store}::{path}::four_processes_take_batches_of_{batch}");
            trials.push(trial(name("sqlite"), None, move || sqlite_race(batch, floor)));
            for server in [Server::Postgres15, Server::Mariadb] {
                let run = move || server_race(server, batch, floor);
                trials.push(trial(name(server.name()), Some(server), run));
            }
        }
    }
    trials.push(trial(
        "processes::mariadb::claims_beside_inserting_hosts_deadlock_nobody".to_owned(),
        Some(Server::Mariadb),
        mariadb_mixed,
    ));
    for server in [Server::Postgres15, Server::Mariadb] {
        let name = format!("processes::{}::a_wrong_clock_changes_nothing", server.name());
        let needed = if Server::Faketime.is_missing() { Server::Faketime } else { server };
        trials.push(trial(name, Some(needed), move || wrong_clock(server)));
    }
    trials
}

/// Starts the children, lets them begin together, and returns what they report.
pub(crate) async fn run_together(children: Vec<tokio::process::Command>) -> Vec<Report> {
    let mut running = Vec::new();
    for mut command in children {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
        running.push((child, lines));
    }
    for (child, _) in &mut running {
        child.stdin.as_mut().unwrap().write_all(b"go\n").await.unwrap();
    }
    let mut reports = Vec::new();
    for (mut child, mut lines) in running {
        let line = lines.next_line().await.unwrap().expect("the child reports before it ends");
        assert!(child.wait().await.unwrap().success());
        reports.push(serde_json::from_str(&line).unwrap());
    }
    reports
}

fn claimers(url: &str, shape: &Shape, batch: u32, floor: bool) -> Vec<tokio::process::Command> {
    (0..PROCESSES)
        .map(|number| {
            command(&Orders {
                url: url.to_owned(),
                table: shape.table.to_string(),
                owner: format!("process-{number}"),
                work: Work::Drain { batch, floor },
            })
        })
        .collect()
}

fn ready_rows() -> Vec<Vec<Value>> {
    (1..=race_rows()).map(|id| Shape::job(id, id)).collect()
}

fn verify(shape: &Shape, rows: &[Record], reports: Vec<Report>) {
    let claims: Vec<(String, Vec<i64>)> =
        reports.into_iter().map(|report| (report.owner, report.ids)).collect();
    verify_claims(shape, rows, &claims);
}

async fn sqlite_race(batch: u32, floor: bool) {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", directory.path().join("race.db").display());
    let host = SqlitePool::connect(&url).await.unwrap();
    let shape = Shape::jobs("race");
    harness::sqlite::create(&host, &shape).await;
    harness::sqlite::fill(&host, &shape, &ready_rows()).await;
    let reports = run_together(claimers(&url, &shape, batch, floor)).await;
    verify(&shape, &harness::sqlite::rows(&host, &shape).await, reports);
}

async fn server_race(server: Server, batch: u32, floor: bool) {
    let stored = Stored::fill(server, Shape::jobs("race"), &ready_rows()).await;
    let reports = run_together(claimers(&server.url(), &stored.shape, batch, floor)).await;
    verify(&stored.shape, &stored.rows().await, reports);
}

/// 100,000 rows come and go: three hosts insert at the server's default isolation, five processes claim and settle.
async fn mariadb_mixed() {
    const TOTAL: i64 = 100_000;
    const INSERTERS: i64 = 3;
    let url = Server::Mariadb.url();
    let host = MySqlPool::connect(&url).await.unwrap();
    let isolation: String =
        sqlx::query_scalar("SELECT @@GLOBAL.tx_isolation").fetch_one(&host).await.unwrap();
    assert_eq!(isolation, "REPEATABLE-READ", "the hosts insert at the server's default");
    let shape = Shape::jobs("mixed");
    harness::mysql::create(&host, &shape).await;

    let orders =
        |owner: String, work: Work| Orders { url: url.clone(), table: shape.table.to_string(), owner, work };
    let inserters = (0..INSERTERS).map(|number| {
        let bound = |n: i64| 1 + n * TOTAL / INSERTERS;
        command(&orders(
            format!("host-{number}"),
            Work::Insert { from: bound(number), to: bound(number + 1) },
        ))
    });
    let takers =
        (0..5).map(|number| command(&orders(format!("taker-{number}"), Work::DrainAndDelete { batch: 100 })));

    let started = Instant::now();
    let hosts = tokio::spawn(run_together(inserters.collect()));
    let takers = tokio::spawn(run_together(takers.collect()));
    let hosts = hosts.await.unwrap();
    harness::mysql::fill(&host, &shape, &[end_mark()]).await;
    let takers = takers.await.unwrap();

    let conflicts: u64 = hosts.iter().map(|report| report.host_conflicts).sum();
    assert_eq!(conflicts, 0, "deadlocks and lock timeouts in the hosts' inserts");
    let mut ids: Vec<i64> = takers.iter().flat_map(|report| report.ids.iter().copied()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=TOTAL).collect::<Vec<i64>>(), "every row taken by one");
    println!(
        "{TOTAL} rows inserted, claimed and settled in {:.1} s, 0 conflicts",
        started.elapsed().as_secs_f64()
    );
}

/// The row that says: no more will come. It is never ready.
fn end_mark() -> Vec<Value> {
    vec![0.into(), "end".into(), Value::Null, Value::Null, 0.into(), 0.into()]
}

/// Two processes whose clocks are five hours off take what is free by the database's clock, and no more.
async fn wrong_clock(server: Server) {
    let library = Server::Faketime.url();
    let url = server.url();
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap();
    let hour = 3_600_000_000;
    let row = |id: i64, until: Option<i64>| {
        let until = until.map(Timestamp::from_micros);
        vec![id.into(), "ready".into(), Value::Null, until.into(), 0.into(), id.into()]
    };
    for (offset, seconds) in [("+5h", 5 * 3_600_i64), ("-5h", -5 * 3_600)] {
        let rows =
            [row(1, Some(now + hour)), row(2, Some(now - hour)), row(3, None), row(4, Some(now + 2 * hour))];
        let stored = Stored::fill(server, Shape::jobs("clock"), &rows).await;
        let orders = Orders {
            url: url.clone(),
            table: stored.shape.table.to_string(),
            owner: "late".to_owned(),
            work: Work::Lease { seconds: 30 },
        };
        let mut child = command(&orders);
        child.env("LD_PRELOAD", &library).env("FAKETIME", offset).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let report = run_together(vec![child]).await.pop().unwrap();
        let off = i64::try_from(report.clock).unwrap() - now / 1_000_000;
        assert!((off - seconds).abs() < 600, "the child's clock was to be {seconds} s off, and was {off}");
        assert_eq!(report.ids, [2, 3], "{offset}: free by the database's clock");

        let rows = stored.rows().await;
        for row in rows.iter().map(|row| stored.shape.normalise(row)) {
            let Some(Value::Timestamp(until)) = row.get("lease_until") else { panic!("{row:?}") };
            let left = until.as_micros() - now;
            match row.get("owner") {
                Some(Value::Text(_)) => {
                    let length =
                        Duration::from_micros(u64::try_from(left).expect("a lease that ends in the future"));
                    assert!(
                        length < Duration::from_secs(120),
                        "{offset}: a lease of 30 s ends in {length:?}"
                    );
                }
                _ => assert!(left >= hour, "{offset}: an active lease was touched"),
            }
        }
    }
}

/// A table on one of two servers.
struct Stored {
    server: Server,
    shape: Shape,
}

impl Stored {
    async fn fill(server: Server, shape: Shape, rows: &[Vec<Value>]) -> Self {
        if server == Server::Mariadb {
            let host = MySqlPool::connect(&server.url()).await.unwrap();
            harness::mysql::create(&host, &shape).await;
            harness::mysql::fill(&host, &shape, rows).await;
        } else {
            let host = PgPool::connect(&server.url()).await.unwrap();
            harness::postgres::create(&host, &shape).await;
            harness::postgres::fill(&host, &shape, rows).await;
        }
        Self { server, shape }
    }

    async fn rows(&self) -> Vec<Record> {
        if self.server == Server::Mariadb {
            harness::mysql::rows(&MySqlPool::connect(&self.server.url()).await.unwrap(), &self.shape).await
        } else {
            harness::postgres::rows(&PgPool::connect(&self.server.url()).await.unwrap(), &self.shape).await
        }
    }
}
