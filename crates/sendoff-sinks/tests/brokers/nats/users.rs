//! Users whom a server knows by their keys: those in its configuration, and those of an operator's accounts.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use sendoff::testkit::{SinkHarness, claimed};
use sendoff::{Delivery, Sink};
use sendoff_sinks::{NatsConfig, Secret};
use serde_json::{Value, json};

use super::Nats;

/// For a server to come back, for credentials to expire, and for a sink to be let in again.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long credentials are good for that expire while they are used.
const SHORT: Duration = Duration::from_secs(4);

/// In seconds since 1970, this long from now.
fn in_time(from_now: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (now + from_now).as_secs()
}

/// What somebody says of a key, signed.
fn jwt(signer: &KeyPair, key: &KeyPair, expires: Option<u64>, says: &Value) -> String {
    let mut claims = json!({
        "iss": signer.public_key(), "sub": key.public_key(), "name": "suite", "iat": in_time(Duration::ZERO),
        // A server does not look whether it is the digest that it should be.
        "jti": key.public_key(), "nats": says,
    });
    if let Some(expires) = expires {
        claims["exp"] = json!(expires);
    }
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let signed = format!("{}.{}", part(&json!({ "typ": "JWT", "alg": "ed25519-nkey" })), part(&claims));
    let signature = URL_SAFE_NO_PAD.encode(signer.sign(signed.as_bytes()).unwrap());
    format!("{signed}.{signature}")
}

/// As `nsc` writes a .creds file.
fn credentials(jwt: &str, user: &KeyPair) -> String {
    let seed = user.seed().unwrap();
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         ************************* IMPORTANT *************************\n\
         NKEY Seed printed below can be used to sign and prove identity.\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

/// Who trusts one account with streams, and its servers trust nobody else.
struct Operator {
    own: KeyPair,
    system: KeyPair,
    account: KeyPair,
}

impl Operator {
    fn new() -> Self {
        Self { own: KeyPair::new_operator(), system: KeyPair::new_account(), account: KeyPair::new_account() }
    }

    /// Of a server; `revoked`: whoever has this key is not let in any more.
    fn configuration(&self, revoked: Option<&KeyPair>) -> String {
        let says = json!({ "type": "operator", "version": 2, "system_account": self.system.public_key() });
        let operator = jwt(&self.own, &self.own, None, &says);
        let mut limits = json!({ "wildcards": true });
        for name in ["subs", "data", "payload", "imports", "exports", "conn", "leaf"] {
            limits[name] = json!(-1);
        }
        let says = json!({ "type": "account", "version": 2, "limits": limits });
        let system = jwt(&self.own, &self.system, None, &says);
        for name in ["mem_storage", "disk_storage", "streams", "consumer"] {
            limits[name] = json!(-1);
        }
        let mut says = json!({ "type": "account", "version": 2, "limits": limits });
        if let Some(revoked) = revoked {
            let mut revocations = json!({});
            revocations[revoked.public_key()] = json!(in_time(Duration::ZERO));
            says["revocations"] = revocations;
        }
        let account = jwt(&self.own, &self.account, None, &says);
        format!(
            "operator: {operator}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n  {}: {system}\n  {}: {account}\n}}\n",
            self.system.public_key(),
            self.system.public_key(),
            self.account.public_key(),
        )
    }

    /// A user who may do what a sink needs, and no more.
    fn user(&self, user: &KeyPair, expires: Option<u64>) -> String {
        let publish = ["suite.>", "$JS.API.STREAM.INFO.suite", "$JS.API.STREAM.CREATE.suite"];
        let says = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1,
            "pub": { "allow": publish }, "sub": { "allow": ["_INBOX.>"] },
        });
        jwt(&self.account, user, expires, &says)
    }

    /// The reader cannot sign: its JWT is good by itself.
    fn reader(&self) -> Value {
        let says = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "bearer_token": true,
        });
        json!({ "jwt": jwt(&self.account, &KeyPair::new_user(), None, &says) })
    }

    fn credentials(&self, user: &KeyPair, expires: Option<u64>) -> String {
        credentials(&self.user(user, expires), user)
    }

    async fn start(&self) -> Nats {
        Nats::start_configured(&self.configuration(None), &[], self.reader()).await
    }
}

fn plain(text: impl Into<String>) -> Option<Secret> {
    Some(Secret::Plain(text.into()))
}

fn sink(config: NatsConfig) -> sendoff_sinks::Nats {
    // Nobody is so slow but a machine that has more to do.
    sendoff_sinks::Nats::new(NatsConfig { timeout: Duration::from_secs(5), ..config }).unwrap()
}

/// A sink that reads what it asks with from this file.
fn reading(nats: &Nats, file: &Path) -> sendoff_sinks::Nats {
    sink(NatsConfig { credentials: Some(Secret::File(file.to_owned())), ..nats.config() })
}

/// Both the check and an event say so, and show nothing of what the sink asks with.
async fn assert_down(nats: &Nats, sink: &dyn Sink, words: &[&str], hidden: &[&str]) {
    let error = sink.check().await.unwrap_err().to_string();
    let delivery = sink.publish(&[claimed(1, None, "x")]).await.remove(0);
    let Delivery::Down { error: down } = &delivery else { panic!("{delivery:?}") };
    for said in [&error, down] {
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(said.contains(&nats.address().to_string()), "{said}");
    }
    let shown = format!("{error} {down} {sink:?}");
    assert!(hidden.iter().all(|hidden| !shown.contains(hidden)), "{shown}");
}

/// Until an event is answered for in this way.
pub(super) async fn until(sink: &dyn Sink, is_it: impl Fn(&Delivery) -> bool) {
    let began = Instant::now();
    loop {
        let delivery = sink.publish(&[claimed(1, None, "x")]).await.remove(0);
        if is_it(&delivery) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{delivery:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(super) fn is_down(delivery: &Delivery, words: &str) -> bool {
    matches!(delivery, Delivery::Down { error } if error.contains(words))
}

async fn assert_delivers(nats: &Nats, sink: &dyn Sink) {
    sink.check().await.unwrap();
    let events: Vec<_> = (0..200).map(|number| claimed(number, None, number.to_string())).collect();
    assert_eq!(sink.publish(&events).await, vec![Delivery::Delivered; 200]);
    let received = nats.received().await;
    assert_eq!(received.len(), 200);
    for event in &events {
        let id = event.event.event_id.to_string();
        assert!(received.iter().any(|one| one.id == id && one.payload == event.event.payload), "{id}");
    }
}

pub(super) async fn a_user_is_known_by_its_nkey() {
    let (user, stranger) = (KeyPair::new_user(), KeyPair::new_user());
    let text = format!(
        "authorization {{ users: [ {{ nkey: {} }}, {{ user: reader, password: reader }} ] }}\n",
        user.public_key()
    );
    let nats = Nats::start_configured(&text, &[], json!({ "user": "reader", "pass": "reader" })).await;
    let seed = stranger.seed().unwrap();
    let refused = sink(NatsConfig { nkey: plain(&seed), ..nats.config() });
    let key = stranger.public_key();
    assert_down(&nats, &refused, &["authorization violation", &key, "one of its users?"], &[&seed]).await;
    let seed = KeyPair::new_account().seed().unwrap();
    let refused = sink(NatsConfig { nkey: plain(&seed), ..nats.config() });
    assert_down(&nats, &refused, &["`nkey`: the seed is that of an account"], &[&seed]).await;
    let taken = sink(NatsConfig { nkey: plain(user.seed().unwrap()), ..nats.config() });
    assert_delivers(&nats, &taken).await;
}

pub(super) async fn a_user_of_an_operator_is_known_by_its_credentials() {
    let (operator, other) = (Operator::new(), Operator::new());
    let nats = operator.start().await;
    let user = KeyPair::new_user();
    let seed = user.seed().unwrap();
    let stranger = other.credentials(&user, None);
    let of_two = credentials(&operator.user(&KeyPair::new_user(), None), &user);
    for (text, words) in
        [(stranger, "does it know the account of `credentials`"), (of_two, "is not that of its JWT")]
    {
        let refused = sink(NatsConfig { credentials: plain(&text), ..nats.config() });
        let jwt = text.lines().nth(1).unwrap();
        assert_down(&nats, &refused, &["authorization violation", words], &[&seed, jwt]).await;
    }
    let refused = sink(nats.config());
    assert_down(&nats, &refused, &["authorization violation", "are user and password"], &[]).await;
    let taken = sink(NatsConfig { credentials: plain(operator.credentials(&user, None)), ..nats.config() });
    assert_delivers(&nats, &taken).await;
}

pub(super) async fn credentials_that_are_revoked_are_read_again() {
    let operator = Operator::new();
    let nats = operator.start().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("relay.creds");
    let (first, second) = (KeyPair::new_user(), KeyPair::new_user());
    std::fs::write(&file, operator.credentials(&first, None)).unwrap();
    let sink = reading(&nats, &file);
    assert_eq!(sink.publish(&[claimed(1, None, "x")]).await, [Delivery::Delivered]);
    nats.configure(&operator.configuration(Some(&first)));
    nats.kill().await;
    nats.restart().await;
    until(&sink, |delivery| {
        assert_ne!(delivery, &Delivery::Delivered);
        is_down(delivery, &format!("was {} not revoked?", first.public_key()))
    })
    .await;
    assert_down(&nats, &sink, &["authorization violation", "revoked"], &[&first.seed().unwrap()]).await;
    std::fs::write(&file, operator.credentials(&second, None).replace('\n', "\r\n")).unwrap();
    until(&sink, |delivery| *delivery == Delivery::Delivered).await;
    sink.check().await.unwrap();
}

pub(super) async fn credentials_that_expire_are_said_and_read_again() {
    let operator = Operator::new();
    let nats = operator.start().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("relay.creds");
    let user = KeyPair::new_user();
    let write = |expires| std::fs::write(&file, operator.credentials(&user, Some(expires))).unwrap();
    write(in_time(Duration::ZERO) - 60);
    let sink = reading(&nats, &file);
    let words = ["authorization violation", "has expired: give new credentials"];
    assert_down(&nats, &sink, &words, &[&user.seed().unwrap()]).await;
    // Then while it is connected. They may expire before they are used, on a machine that has more to do.
    until(&sink, |delivery| {
        let is_delivered = *delivery == Delivery::Delivered;
        if !is_delivered {
            write(in_time(SHORT));
        }
        is_delivered
    })
    .await;
    until(&sink, |delivery| is_down(delivery, words[1])).await;
    assert_down(&nats, &sink, &words, &[&user.seed().unwrap()]).await;
    write(in_time(PATIENCE * 10));
    until(&sink, |delivery| *delivery == Delivery::Delivered).await;
    sink.check().await.unwrap();
}

pub(super) async fn credentials_that_are_none_are_said() {
    let operator = Operator::new();
    let nats = operator.start().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("relay.creds");
    let sink = reading(&nats, &file);
    let named = format!("`credentials`: the file {} cannot be read", file.display());
    assert_down(&nats, &sink, &[&named], &[]).await;
    let user = KeyPair::new_user();
    let (seed, whole) = (user.seed().unwrap(), operator.credentials(&user, None));
    let (without_seed, without_jwt) = whole.split_once("\n\n").unwrap();
    for (text, words) in [
        (without_seed, "there is no seed of a user in it"),
        (without_jwt, "there is no JWT of a user in it"),
        (&seed, "there is no JWT of a user in it"),
    ] {
        std::fs::write(&file, text).unwrap();
        assert_down(&nats, &sink, &[words, "give all that a .creds file has"], &[&seed]).await;
    }
    std::fs::write(&file, whole).unwrap();
    until(&sink, |delivery| *delivery == Delivery::Delivered).await;
}
