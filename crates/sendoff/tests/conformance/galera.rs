//! Claimers on two nodes of a cluster at once. Nobody should deploy that; it must be safe all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::claim::{ClaimSpec, Claimable, Record, Value, col};
use sendoff::stores::mysql::{MysqlDatabase, MysqlTable, Topology};
use sendoff::testkit::{Claimer, Floor, Shape, drain, verify_claims};
use sqlx::Executor as _;
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};

use crate::harness;
use crate::jobs::ids;
use crate::servers::Server;
use crate::trial;

const ROWS: i64 = 2_000;
const ROUNDS: usize = 4;
/// Longer than any round takes on a slow machine; only a store that lost rows gets here.
const STALLED: Duration = Duration::from_secs(120);

pub(crate) fn trials() -> Vec<Trial> {
    let server = Some(Server::Galera);
    vec![
        trial("galera::the_cluster_is_recognised".to_owned(), server, the_cluster_is_recognised),
        trial("galera::fast::claimers_on_both_nodes_share_nothing".to_owned(), server, || {
            race(|table| table)
        }),
        trial("galera::floor::claimers_on_both_nodes_share_nothing".to_owned(), server, || race(Floor)),
        trial("galera::fast::removals_on_both_nodes_share_nothing".to_owned(), server, || {
            removal_race(|table| table)
        }),
        trial("galera::floor::removals_on_both_nodes_share_nothing".to_owned(), server, || {
            removal_race(Floor)
        }),
    ]
}

async fn the_cluster_is_recognised() {
    for node in 0..2 {
        let database = MysqlDatabase::connect(&Server::Galera.url_of(node)).await.unwrap();
        assert_eq!(database.server().topology(), &Topology::Galera { nodes: 2 });
        let warning = database.server().topology().warning().unwrap();
        assert!(warning.contains("one writer node"), "{warning}");
    }
}

/// A host's connections that wait until the node has caught up with the other.
async fn host(node: usize) -> MySqlPool {
    MySqlPoolOptions::new()
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute("SET SESSION wsrep_sync_wait = 1").await.map(drop) })
        })
        .connect(&Server::Galera.url_of(node))
        .await
        .unwrap()
}

async fn race<T, Wrap>(wrap: Wrap)
where
    T: Claimable<Row = Record> + Clone + 'static,
    Wrap: Fn(MysqlTable<Record>) -> T,
{
    for _ in 0..ROUNDS {
        race_once(&wrap).await;
    }
}

/// A table of ready jobs that both nodes have, and a host's connections to each of them.
async fn jobs_on_both() -> (Shape, [MySqlPool; 2]) {
    let shape = Shape::jobs("galera");
    let hosts = [host(0).await, host(1).await];
    harness::mysql::create(&hosts[0], &shape).await;
    let rows: Vec<Vec<Value>> = (1..=ROWS).map(|id| Shape::job(id, id)).collect();
    harness::mysql::fill(&hosts[0], &shape, &rows).await;
    // The other node has the rows too before the race begins.
    assert_eq!(harness::mysql::rows(&hosts[1], &shape).await.len(), rows.len());
    (shape, hosts)
}

/// What is deleted on one node must not be handed out on the other.
async fn removal_race<T, Wrap>(wrap: Wrap)
where
    T: Claimable<Row = Record> + Clone + 'static,
    Wrap: Fn(MysqlTable<Record>) -> T,
{
    for _ in 0..ROUNDS {
        let (shape, hosts) = jobs_on_both().await;
        let left = Arc::new(AtomicUsize::new(usize::try_from(ROWS).unwrap()));
        let mut running = Vec::new();
        for number in 0..6 {
            let url = Server::Galera.url_of(number % 2);
            let database = MysqlDatabase::connect(&url).await.unwrap().patience(Duration::from_secs(60));
            let table = wrap(database.table::<Record>(shape.description()).await.unwrap());
            let spec = ClaimSpec::on_table(shape.table.clone()).eligible(col("status").eq("ready"));
            let spec = spec.remove().order_by("rank").limit(20).build().unwrap();
            let left = Arc::clone(&left);
            running.push(tokio::spawn(async move {
                let (mut got, began) = (Vec::new(), Instant::now());
                while left.load(Ordering::SeqCst) > 0 {
                    assert!(began.elapsed() < STALLED, "{} rows were lost", left.load(Ordering::SeqCst));
                    let removed = ids(&table.claim(&spec).await.unwrap());
                    left.fetch_sub(removed.len(), Ordering::SeqCst);
                    got.extend(removed);
                }
                got
            }));
        }
        let mut all = Vec::new();
        for claimer in running {
            all.extend(claimer.await.unwrap());
        }
        all.sort_unstable();
        assert_eq!(all, (1..=ROWS).collect::<Vec<i64>>(), "each is handed out once");
        for host in &hosts {
            assert!(harness::mysql::rows(host, &shape).await.is_empty());
        }
    }
}

async fn race_once<T, Wrap>(wrap: &Wrap)
where
    T: Claimable<Row = Record> + Clone + 'static,
    Wrap: Fn(MysqlTable<Record>) -> T,
{
    let (shape, hosts) = jobs_on_both().await;
    let total = Arc::new(AtomicUsize::new(0));
    let mut running = Vec::new();
    for node in 0..2 {
        let database = MysqlDatabase::connect(&Server::Galera.url_of(node))
            .await
            .unwrap()
            .patience(Duration::from_secs(60));
        for number in 0..3 {
            let table = wrap(database.table::<Record>(shape.description()).await.unwrap());
            let (name, total) = (shape.table.clone(), Arc::clone(&total));
            running.push(tokio::spawn(async move {
                let claimer = Claimer { owner: format!("node{node}-{number}"), batch: 20 };
                let goal = usize::try_from(ROWS).unwrap();
                let ids = drain(&table, &name, &claimer, |got| {
                    total.fetch_add(got, Ordering::SeqCst) + got >= goal
                })
                .await;
                (claimer.owner, ids)
            }));
        }
    }
    let mut claims = Vec::new();
    for claimer in running {
        claims.push(claimer.await.unwrap());
    }
    for host in &hosts {
        verify_claims(&shape, &harness::mysql::rows(host, &shape).await, &claims);
    }
    let on_node = |node: &str| {
        claims.iter().filter(|(owner, _)| owner.starts_with(node)).map(|(_, ids)| ids.len()).sum::<usize>()
    };
    let (first, second) = (on_node("node0"), on_node("node1"));
    let conflicts: i64 = conflicts(&hosts[0]).await + conflicts(&hosts[1]).await;
    println!("{first} rows on one node, {second} on the other, {conflicts} certification conflicts so far");
}

/// Transactions that lost against another node since the servers started.
async fn conflicts(host: &MySqlPool) -> i64 {
    let sql = "SELECT CAST(SUM(VARIABLE_VALUE) AS SIGNED) FROM information_schema.GLOBAL_STATUS \
               WHERE VARIABLE_NAME IN ('WSREP_LOCAL_CERT_FAILURES', 'WSREP_LOCAL_BF_ABORTS')";
    sqlx::query_scalar(sql).fetch_one(host).await.unwrap()
}
