//! Servers that encrypt and want to know who asks: whom a sink trusts, who it is, and secrets that change while it runs.

mod mariadb;
mod postgres;
mod servers;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::testkit::claimed;
use sendoff::{Delivery, Sink, SinkError};
use sendoff_sinks::Secret;

use crate::certificates::{Authority, Pair};
use crate::{mqtt, nats, rabbitmq, redis, trial};

/// The password that a server is started with, and the one that it gets later.
const FIRST: &str = "right";
const SECOND: &str = "rotated";

/// For a server to come back, and for a sink to be let in again.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a sink goes to a server with.
#[derive(Default, Clone)]
struct Access {
    ca_file: Option<PathBuf>,
    client: Option<Pair>,
    password: Option<Secret>,
}

impl Access {
    fn client_files(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        self.client.clone().map(|pair| (pair.certificate, pair.key)).unzip()
    }
}

/// How a server is started.
struct Setting<'a> {
    authority: &'a Authority,
    own: Pair,
    /// Only who has a certificate of the same authority is let in.
    is_mutual: bool,
}

/// A server that encrypts, and lets in who knows the password.
trait Secured: Sized + Send + Sync {
    fn start(setting: &Setting<'_>) -> impl Future<Output = Self> + Send;

    fn address(&self) -> SocketAddr;

    fn sink(&self, access: Access) -> Result<Arc<dyn Sink>, SinkError>;

    /// The password is the second one from now on, and nobody stays connected.
    fn change_password(&self) -> impl Future<Output = ()> + Send;
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    macro_rules! cases {
        ($($name:literal, $server:ty, $is_missing:expr);* $(;)?) => {$(
            cases!(@each $name, $server, $is_missing,
                a_server_is_trusted_only_if_its_authority_is,
                a_password_that_changes_is_read_again,
                a_wrong_password_is_said_and_not_shown,
                who_asks_can_be_known_by_a_certificate);
        )*};
        (@each $name:literal, $server:ty, $is_missing:expr, $($case:ident),*) => {$(
            let name = format!("tls_{}::{}", $name, stringify!($case));
            trials.push(trial(name, $is_missing, $case::<$server>));
        )*};
    }
    cases![
        "redis", servers::Redis, redis::is_missing();
        "nats", servers::Nats, nats::is_missing();
        "rabbitmq", servers::RabbitMq, rabbitmq::is_missing();
        "mqtt", servers::Mqtt, mqtt::is_missing();
        "inbox_postgres", postgres::Postgres, postgres::is_missing();
        "inbox_mariadb", mariadb::MariaDb, mariadb::is_missing();
    ];
    trials
}

async fn start<S: Secured>(authority: &Authority, is_mutual: bool) -> S {
    S::start(&Setting { authority, own: authority.sign("server"), is_mutual }).await
}

fn right(authority: &Authority) -> Access {
    let password = Some(Secret::Plain(FIRST.to_owned()));
    Access { ca_file: Some(authority.file()), password, client: None }
}

/// Both the check and an event say so.
async fn assert_down(sink: &dyn Sink, address: SocketAddr, words: &str) {
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains(words) && error.contains(&address.to_string()), "{error}");
    let delivery = sink.publish(&[claimed(1, None, "x")]).await.remove(0);
    let Delivery::Down { error: down } = &delivery else { panic!("{delivery:?}") };
    assert!(down.contains(words) && down.contains(&address.to_string()), "{down}");
    assert!(!format!("{error}{down}{sink:?}").contains("wr0ng"), "{error} {down}");
}

/// A server that ends a connection without having read all of it may take back why: the next try tells.
async fn until_said(sink: &dyn Sink, words: &str) {
    let began = Instant::now();
    loop {
        let checked = sink.check().await.unwrap_err().to_string();
        let delivery = sink.publish(&[claimed(1, None, "x")]).await.remove(0);
        let Delivery::Down { error } = &delivery else { panic!("{delivery:?}") };
        if checked.contains(words) && error.contains(words) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{checked} {error}");
    }
}

async fn a_server_is_trusted_only_if_its_authority_is<S: Secured>() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server: S = start(&authority, false).await;
    for ca_file in [None, Some(other.file())] {
        let sink = server.sink(Access { ca_file, ..right(&authority) }).unwrap();
        assert_down(&*sink, server.address(), "who signed its certificate can be given as `ca_file`").await;
    }
    let sink = server.sink(right(&authority)).unwrap();
    sink.check().await.unwrap();
    let events: Vec<_> = (0..200).map(|number| claimed(number, None, vec![7; 10_000])).collect();
    assert_eq!(sink.publish(&events).await, vec![Delivery::Delivered; 200]);
    sink.close().await.unwrap();
    assert_eq!(sink.publish(&events[..1]).await, [Delivery::Delivered]);
}

async fn a_password_that_changes_is_read_again<S: Secured>() {
    let authority = Authority::new();
    let server: S = start(&authority, false).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    std::fs::write(&file, format!("{FIRST}\n")).unwrap();
    let password = Some(Secret::File(file.clone()));
    let sink = server.sink(Access { password, ..right(&authority) }).unwrap();
    let publish = async || sink.publish(&[claimed(1, None, "x")]).await.remove(0);
    assert_eq!(publish().await, Delivery::Delivered);
    server.change_password().await;
    let began = Instant::now();
    // Until it has noticed that its connection is gone, and has tried to get another one.
    loop {
        let delivery = publish().await;
        assert_ne!(delivery, Delivery::Delivered);
        if matches!(&delivery, Delivery::Down { error } if error.contains("password")) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{delivery:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_down(&*sink, server.address(), "password").await;
    std::fs::write(&file, SECOND).unwrap();
    let began = Instant::now();
    while publish().await != Delivery::Delivered {
        assert!(began.elapsed() < PATIENCE, "the new password is not used: {:?}", publish().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    sink.check().await.unwrap();
}

async fn a_wrong_password_is_said_and_not_shown<S: Secured>() {
    let authority = Authority::new();
    let server: S = start(&authority, false).await;
    let password = Some(Secret::Plain("wr0ng".to_owned()));
    let sink = server.sink(Access { password, ..right(&authority) }).unwrap();
    assert_down(&*sink, server.address(), "password").await;
    // Not a variable that some other test would have to set.
    let password = Some(Secret::Env("SENDOFF_NO_SUCH_VARIABLE".to_owned()));
    let sink = server.sink(Access { password, ..right(&authority) }).unwrap();
    assert_down(&*sink, server.address(), "the environment variable SENDOFF_NO_SUCH_VARIABLE is not set")
        .await;
}

async fn who_asks_can_be_known_by_a_certificate<S: Secured>() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server: S = start(&authority, true).await;
    let client = |authority: &Authority| Some(authority.sign("client"));
    for stranger in [None, client(&other)] {
        let sink = server.sink(Access { client: stranger, ..right(&authority) }).unwrap();
        until_said(&*sink, "client_cert_file").await;
    }
    let sink = server.sink(Access { client: client(&authority), ..right(&authority) }).unwrap();
    sink.check().await.unwrap();
    assert_eq!(sink.publish(&[claimed(1, None, "x")]).await, [Delivery::Delivered]);
}
