//! How fast each store claims, on its fast path and on the floor, and in how many trips to the server.
//!
//! `cargo xtask bench claim` runs it against servers whose commits wait for the disk. Rates are compared within one
//! run only: rounds of fast path and floor alternate, and the medians are what is printed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../tests/conformance/harness/mod.rs"]
#[allow(dead_code)]
mod harness;
mod proxy;
#[path = "../../tests/conformance/servers.rs"]
#[allow(dead_code)]
mod servers;

use std::io::Write as _;
use std::time::Instant;

use sendoff::claim::{ClaimSpec, Claimable, Table, Value, col};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::testkit::{ClaimHarness, Floor, Shape};

use self::harness::{memory, mysql, postgres, sqlite};
use self::proxy::Proxy;
use self::servers::Server;

const BATCH: u32 = 100;
const ROUNDS: usize = 5;
/// Rows a round: enough to time, few enough for a floor that waits for the disk at every row.
const ROWS: i64 = 5_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run());
}

async fn run() {
    println!("rows/s of one claimer, batch {BATCH}: median [least-most] of {ROUNDS} rounds\n");
    println!(
        "{:<11} {:>26} {:>26} {:>7} {:>12} {:>12}",
        "store", "fast path", "floor", "ratio", "trips fast", "trips floor"
    );
    let store = memory::Memory::new();
    measure("memory", &store, |table| std::future::ready(store.opened(table.name())), None).await;
    let store = sqlite::open().await;
    let open = |table| async { store.database.table::<Job>(table).await.unwrap() };
    measure("sqlite", &store, open, None).await;
    sqlite_one_statement(&store).await;
    for server in [Server::Postgres15, Server::Postgres18] {
        if server.is_missing() {
            println!("{:<11} skipped: {} is not set", server.name(), server.name());
            continue;
        }
        let store = postgres::open(server).await;
        let trips = postgres_trips(server, &store).await;
        let open = |table: Table| async {
            // As autovacuum does sooner or later: without statistics a claim is planned by guess.
            let analyze = format!("ANALYZE {}", table.name());
            sqlx::query(sqlx::AssertSqlSafe(analyze)).execute(&store.host).await.unwrap();
            store.database.table::<Job>(table).await.unwrap()
        };
        measure(server.name(), &store, open, Some(trips)).await;
    }
    if Server::Mariadb.is_missing() {
        println!("{:<11} skipped", "mariadb");
        return;
    }
    let store = mysql::open(Server::Mariadb).await;
    let trips = mariadb_trips(&store).await;
    let open = |table| async { store.database.table::<Job>(table).await.unwrap() };
    measure("mariadb", &store, open, Some(trips)).await;
}

/// What a worker wants of a row.
#[derive(sqlx::FromRow)]
#[allow(dead_code)]
struct Job {
    id: i64,
    status: String,
    attempts: i64,
}

fn spec(shape: &Shape) -> ClaimSpec {
    ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("ready"))
        .set("status", "running")
        .set("owner", "bench")
        .add("attempts", 1)
        .order_by("rank")
        .limit(BATCH)
        .build()
        .unwrap()
}

async fn filled<H: ClaimHarness>(store: &H, rows: i64) -> (Shape, H::Table) {
    let shape = Shape::jobs("bench");
    let table = store.create(&shape).await;
    let rows: Vec<Vec<Value>> = (1..=rows).map(|id| Shape::job(id, id)).collect();
    store.insert(&shape, &rows).await;
    (shape, table)
}

/// Claims all there is; rows a second. Counts what it got: a benchmark that loses rows measures nothing.
async fn rate<T: Claimable>(table: &T, shape: &Shape) -> f64 {
    let spec = spec(shape);
    let started = Instant::now();
    let mut taken = 0;
    loop {
        let claimed = table.claim(&spec).await.unwrap().len();
        if claimed == 0 {
            break;
        }
        taken += claimed;
    }
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(taken, usize::try_from(ROWS).unwrap(), "rows claimed");
    #[allow(clippy::cast_precision_loss)]
    let rate = ROWS as f64 / seconds;
    rate
}

/// `open` opens a table for rows of a type, as programs do that know their table.
async fn measure<H, T, Open, Opening>(name: &str, store: &H, open: Open, trips: Option<(f64, f64)>)
where
    H: ClaimHarness,
    T: Claimable,
    Open: Fn(Table) -> Opening,
    Opening: Future<Output = T>,
{
    let (mut fast, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (shape, _) = filled(store, ROWS).await;
        fast.push(rate(&open(shape.description()).await, &shape).await);
        let (shape, _) = filled(store, ROWS).await;
        floor.push(rate(&Floor(open(shape.description()).await), &shape).await);
    }
    let ((fast, fast_text), (floor, floor_text)) = (summary(fast), summary(floor));
    let trips_text = trips.map_or(["in process".to_owned(), "in process".to_owned()], |(fast, floor)| {
        [format!("{fast:.1}"), format!("{floor:.1}")]
    });
    let ratio = fast / floor;
    println!(
        "{name:<11} {fast_text:>26} {floor_text:>26} {ratio:>6.1}x {:>12} {:>12}",
        trips_text[0], trips_text[1]
    );
    std::io::stdout().flush().unwrap();
}

/// What the shortest SQLite claim would do, which cannot keep its rows in order: the price of ours.
async fn sqlite_one_statement(store: &sqlite::Sqlite) {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let (shape, _) = filled(store, ROWS).await;
        let sql = format!(
            "UPDATE {0} SET status = ?, owner = ?, attempts = attempts + 1 WHERE id IN \
             (SELECT id FROM {0} WHERE status = ? ORDER BY \"rank\" LIMIT ?) RETURNING *",
            shape.table
        );
        let started = Instant::now();
        loop {
            let query = sqlx::query_as(sqlx::AssertSqlSafe(sql.clone()));
            let query = query.bind("running").bind("bench").bind("ready").bind(i64::from(BATCH));
            let rows: Vec<Job> = query.fetch_all(&store.host).await.unwrap();
            if rows.is_empty() {
                break;
            }
        }
        #[allow(clippy::cast_precision_loss)]
        rates.push(ROWS as f64 / started.elapsed().as_secs_f64());
    }
    println!("{:<11} {:>26} (one bare UPDATE … IN (SELECT …) RETURNING, no order)", "", summary(rates).1);
}

fn summary(mut rates: Vec<f64>) -> (f64, String) {
    rates.sort_by(f64::total_cmp);
    let median = rates[rates.len() / 2];
    (median, format!("{median:.0} [{:.0}-{:.0}]", rates[0], rates[rates.len() - 1]))
}

/// Trips of one claim of a hundred rows, counted on the wire once the statements are prepared.
async fn trips<T: Claimable>(proxy: &Proxy, table: &T, shape: &Shape) -> f64 {
    const CLAIMS: u32 = 5;
    let spec = spec(shape);
    assert_eq!(table.claim(&spec).await.unwrap().len(), BATCH as usize, "prepares");
    proxy.quiet().await;
    let before = proxy.trips();
    for _ in 0..CLAIMS {
        assert_eq!(table.claim(&spec).await.unwrap().len(), BATCH as usize);
        // The driver looks after a connection when it is given back: let that be counted with its claim.
        proxy.quiet().await;
    }
    f64::from(proxy.trips() - before) / f64::from(CLAIMS)
}

async fn postgres_trips(server: Server, store: &postgres::Postgres) -> (f64, f64) {
    let (proxy, url) = Proxy::before(&server.url()).await;
    let database = PostgresDatabase::connect(&url).await.unwrap();
    let (shape, _) = filled(store, 2_000).await;
    let table = database.table::<sendoff::claim::Record>(shape.description()).await.unwrap();
    (trips(&proxy, &table, &shape).await, trips(&proxy, &Floor(table), &shape).await)
}

async fn mariadb_trips(store: &mysql::Mysql) -> (f64, f64) {
    let (proxy, url) = Proxy::before(&Server::Mariadb.url()).await;
    let database = MysqlDatabase::connect(&url).await.unwrap();
    let (shape, _) = filled(store, 2_000).await;
    let table = database.table::<sendoff::claim::Record>(shape.description()).await.unwrap();
    (trips(&proxy, &table, &shape).await, trips(&proxy, &Floor(table), &shape).await)
}
