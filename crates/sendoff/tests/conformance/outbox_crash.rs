//! A PostgreSQL server of our own that loses what it had confirmed, where settlements do not wait for its disk.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::NewEvent;
use sendoff::outbox::{Claimed, Outcome, Worker, WorkerConfig};
use sendoff::stores::postgres::{PostgresDatabase, PostgresOutbox};
use sendoff::stores::{Migration, Outbox};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;

use crate::servers::Server;
use crate::trial;

const PATIENCE: Duration = Duration::from_secs(60);

/// What is confirmed and lost is less than a page of the log, and now and then a page ends just there.
const ROUNDS: usize = 8;

pub(crate) fn trials() -> Vec<Trial> {
    let name = "postgres15::outbox::what_a_crash_of_the_server_takes_back_is_delivered_again".to_owned();
    vec![trial(name, Some(Server::Postgres15), what_a_crash_of_the_server_takes_back_is_delivered_again)]
}

/// A server whose log is not written before somebody waits for it.
struct OwnServer {
    start: Command,
    server: Child,
    url: String,
    _data: TempDir,
}

impl OwnServer {
    async fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let account = account();
        if let Some((uid, gid)) = account {
            std::os::unix::fs::chown(data.path(), Some(uid), Some(gid)).unwrap();
        }
        let command = |program: &str| {
            let mut command = Command::new(PathBuf::from("/usr/lib/postgresql/15/bin").join(program));
            command.current_dir(data.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if let Some((uid, gid)) = account {
                command.uid(uid).gid(gid);
            }
            command.arg("-D").arg(data.path().join("data"));
            command
        };
        let made = command("initdb").args(["-A", "trust", "-U", "sendoff", "--no-sync"]).status().unwrap();
        assert!(made.success());
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut start = command("postgres");
        start.args(["-p", &port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "shared_buffers=16MB",
            "wal_writer_delay=10s",
            "wal_writer_flush_after=1GB",
            "bgwriter_lru_maxpages=0",
            "autovacuum=off",
        ] {
            start.args(["-c", setting]);
        }
        start.arg("-c").arg(format!("unix_socket_directories={}", data.path().display()));
        let server = start.spawn().unwrap();
        let url = format!("postgres://sendoff@127.0.0.1:{port}/postgres");
        let own = Self { start, server, url, _data: data };
        own.answers().await;
        own
    }

    async fn answers(&self) -> PgPool {
        let began = Instant::now();
        loop {
            let pool = PgPoolOptions::new().max_connections(1).connect(&self.url).await;
            match pool {
                Ok(pool) => return pool,
                Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends all of it at once, and starts it again where it was.
    async fn crash(&mut self) {
        let killed = Command::new("kill").args(["-QUIT", &self.server.id().to_string()]).status().unwrap();
        assert!(killed.success());
        self.server.wait().unwrap();
        self.server = self.start.spawn().unwrap();
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-QUIT", &self.server.id().to_string()]).status();
        let _ = self.server.wait();
    }
}

/// Who the server runs as: it will not run as root.
fn account() -> Option<(u32, u32)> {
    let is_root = std::fs::metadata(Path::new("/proc/self")).unwrap().uid() == 0;
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
    let mut fields = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = fields.find(|fields| is_root && fields[0] == "postgres")?;
    Some((found[2].parse().unwrap(), found[3].parse().unwrap()))
}

/// So many events, from a worker whose store may be away for a while.
async fn claim(worker: &Worker, count: usize) -> Vec<Claimed> {
    let began = Instant::now();
    let mut claimed = Vec::new();
    while claimed.len() < count {
        match worker.claim(100).await {
            Ok(more) => claimed.extend(more),
            Err(error) => tracing::debug!(%error, "the store is away"),
        }
        assert!(began.elapsed() < PATIENCE, "{} of {count} have come", claimed.len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    claimed
}

async fn publish(worker: &Worker, claimed: &[Claimed]) {
    let outcomes: Vec<_> = claimed.iter().map(|one| (one.receipt(), Outcome::Published)).collect();
    let settled = worker.settle(&outcomes).await.unwrap();
    assert_eq!((settled.applied, settled.stale, settled.missing), (claimed.len(), 0, 0));
}

async fn number(pool: &PgPool, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}

/// Events whose settlement was confirmed are there again, in lanes that their worker, which lives, has read to the end.
async fn what_a_crash_of_the_server_takes_back_is_delivered_again() {
    let mut own = OwnServer::start().await;
    let database = PostgresDatabase::connect(&own.url).await.unwrap();
    Migration::new(database.clone()).unwrap().run().await.unwrap();
    let store = PostgresOutbox::open(database).await.unwrap().settle_asynchronously(true);
    let worker = Worker::start(std::sync::Arc::new(store), WorkerConfig::default()).await.unwrap();
    for round in 0..ROUNDS {
        let host = own.answers().await;
        let mut transaction = host.begin().await.unwrap();
        let events = (0..20).map(|key| NewEvent::new("t").key(key.to_string()).payload("x")).collect();
        Outbox::new().enqueue_all(&mut transaction, events).await.unwrap();
        transaction.commit().await.unwrap();
        let claimed = claim(&worker, 20).await;
        publish(&worker, &claimed[..10]).await;
        // Until it is known that nothing can turn up any more where these are, and that has been read.
        let last = number(&host, "SELECT max(id) FROM sendoff.event").await;
        let began = Instant::now();
        while number(&host, "SELECT max(floor) FROM sendoff.lane").await < last {
            assert!(began.elapsed() < PATIENCE, "no floor was raised");
            assert_eq!(worker.claim(100).await.unwrap().len(), 0);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(worker.claim(100).await.unwrap().len(), 0);
        publish(&worker, &claimed[10..]).await;
        assert_eq!(number(&host, "SELECT count(*) FROM sendoff.event").await, 0);
        own.crash().await;
        let host = own.answers().await;
        let lost = usize::try_from(number(&host, "SELECT count(*) FROM sendoff.event").await).unwrap();
        println!("round {round}: {lost} settlements were lost with the server");
        let again = claim(&worker, lost).await;
        let settled_last: Vec<_> = claimed[10..].iter().map(|one| one.event.event_id).collect();
        assert!(again.iter().all(|one| settled_last.contains(&one.event.event_id)));
        publish(&worker, &again).await;
        if lost > 0 {
            worker.stop(Duration::ZERO).await.unwrap();
            return;
        }
    }
    panic!("the server lost nothing in {ROUNDS} crashes: this shows nothing");
}
