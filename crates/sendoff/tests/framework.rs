//! The framework whose outbox is adopted, as it is on PyPI: its own code makes its table and fills it, and it is drained here.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "conformance/servers.rs"]
mod servers;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use sendoff::adopted::{Adopted, Framework, RowState, presets};
use sendoff::outbox::{Outcome, Source as _, WorkerConfig};
use sendoff::stores::postgres::PostgresDatabase;
use sqlx::{AssertSqlSafe, Executor as _, PgPool};

use self::servers::Server;

/// The package, by its name.
const PACKAGE: &str = "protean[postgresql]==0.18.0";
const ORDERS: usize = 50;

/// A Python with the framework in it, made anew: it is installed by its name.
fn python(directory: &Path) -> std::path::PathBuf {
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(Command::new(Server::Python.url()).args(["-m", "venv"]).arg(directory));
    let python = directory.join("bin/python");
    run(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        PACKAGE,
    ]));
    python
}

#[tokio::test(flavor = "multi_thread")]
async fn the_frameworks_own_outbox_is_drained() {
    let needed = [Server::Postgres15, Server::Python];
    if needed.iter().any(|server| server.is_missing() && !server.is_required()) {
        eprintln!("skipped: postgres15, python");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let python = python(directory.path());
    let server = Server::Postgres15.url();
    let name = format!("framework_{:08x}", fastrand::u32(..));
    let admin = PgPool::connect(&server).await.unwrap();
    admin.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/framework.py");
    let address = url.replacen("postgres://", "postgresql+psycopg://", 1);
    let output = Command::new(&python).arg(script).args([&address, &ORDERS.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap().trim().to_owned();

    let database = PostgresDatabase::connect(&url).await.unwrap();
    let refused = Adopted::open(&database, presets::framework(&table, "default").unwrap()).await.unwrap_err();
    let (_, statement) =
        refused.to_string().split_once("run: ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let host = PgPool::connect(&url).await.unwrap();
    // Its own index makes every claim of it sort: what the error says is done.
    host.execute(AssertSqlSafe(statement)).await.unwrap();
    let adopted = Adopted::open(&database, presets::framework(&table, "default").unwrap()).await.unwrap();
    let worker = adopted.start(WorkerConfig::default()).await.unwrap();
    let (mut seen, began) = (BTreeSet::new(), Instant::now());
    while seen.len() < ORDERS {
        assert!(began.elapsed() < Duration::from_secs(30), "{} of {ORDERS}", seen.len());
        let claimed = worker.claim(20).await.unwrap();
        for one in &claimed {
            let data: serde_json::Value = serde_json::from_slice(&one.event.payload).unwrap();
            assert!(seen.insert(data["total"].as_i64().unwrap()), "handed out twice");
            assert_eq!(one.event.topic, "Shop.OrderPlaced.v1");
            assert!(one.event.key.as_deref().unwrap().ends_with(data["order_id"].as_str().unwrap()));
            assert!(one.event.headers["message-id"].starts_with("shop::order-"));
        }
        let outcomes: Vec<_> = claimed.iter().map(|one| (one.receipt(), Outcome::Published)).collect();
        assert_eq!(worker.settle(&outcomes).await.unwrap().applied, claimed.len());
    }
    worker.stop(Duration::from_secs(1)).await.unwrap();
    let framework = Framework::open(&database, &table).await;
    // For all brokers together it would need another index, and says so.
    assert!(framework.unwrap_err().to_string().contains("run: CREATE INDEX"));
    let published = adopted.list(RowState::Published, 100).await.unwrap();
    assert_eq!(published.len(), ORDERS);
    assert!(adopted.list(RowState::Unprocessed, 100).await.unwrap().is_empty());
    let published: i64 = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT count(*) FROM {table} WHERE status = 'published' AND published_at IS NOT NULL AND locked_by IS NULL AND retry_count = 0"
    )))
    .fetch_one(&host)
    .await
    .unwrap();
    assert_eq!(published, i64::try_from(ORDERS).unwrap());
    drop((worker, database));
    host.close().await;
    admin.execute(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).await.unwrap();
}
