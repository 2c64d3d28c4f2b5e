//! The one place where a sink is chosen by its URL.

use std::sync::Arc;

use anyhow::Result;
use sendoff::Sink;
use sendoff_sinks::{File, FileConfig, Null, Stdout};

use crate::config::SinkConfig;
#[cfg(feature = "_brokers")]
use crate::config::sinks;
use crate::config::sinks::{FileSettings, NoSettings};
use crate::exit::{Refused, refuse};

/// A sink that comes with a feature of the program.
struct ByFeature {
    feature: &'static str,
    is_built: bool,
    schemes: &'static [&'static str],
    /// As it is given.
    given: &'static str,
}

macro_rules! by_feature {
    ($($feature:literal $schemes:expr => $given:literal,)*) => {
        [$(ByFeature { feature: $feature, is_built: cfg!(feature = $feature), schemes: &$schemes, given: $given },)*]
    };
}

/// All there are, whatever this program was built with.
const BY_FEATURE: [ByFeature; 9] = by_feature![
    "http" ["http", "https"] => "https://HOST/PATH",
    "inbox" ["inbox"] => "inbox:DATABASE-URL",
    "kafka" ["kafka"] => "kafka://HOST:PORT",
    "mqtt" ["mqtt", "mqtts"] => "mqtt://HOST:PORT",
    "nats" ["nats", "tls"] => "nats://HOST:PORT/STREAM",
    "rabbitmq" ["amqp", "amqps"] => "amqp://HOST:PORT/VHOST?exchange=NAME",
    "redis" ["redis", "rediss"] => "redis://HOST:PORT/0",
    "aws" ["sns"] => "sns:TOPIC-ARN",
    "aws" ["sqs"] => "sqs:QUEUE-URL",
];

/// What is wrong with a scheme that none of this program's sinks has. Only the scheme is shown: the rest may have a password in it.
fn no_sink(scheme: &str) -> String {
    let missing = BY_FEATURE.iter().find(|sink| !sink.is_built && sink.schemes.contains(&scheme));
    if let Some(ByFeature { feature, .. }) = missing {
        return format!(
            "this program was built without the sink of {scheme:?}: build it with `--features {feature}`, or with `--features full`, which has all"
        );
    }
    let built = BY_FEATURE.iter().filter(|sink| sink.is_built).map(|sink| sink.given);
    let known: Vec<&str> = ["stdout:", "null:", "file:PATH"].into_iter().chain(built).collect();
    format!("{scheme:?} is no sink: give {}", known.join(", "))
}

/// The sink of a URL.
pub(crate) fn sink(url: &str) -> Result<Arc<dyn Sink>> {
    configured(&SinkConfig::of_url(url))
}

/// The sink of a URL, with its own settings.
pub(crate) fn configured(config: &SinkConfig) -> Result<Arc<dyn Sink>> {
    let url = config.url.read("url")?;
    let (scheme, rest) = url.split_once(':').unwrap_or((&url, ""));
    macro_rules! with {
        ($settings:ty, $config:expr) => {{
            let mut made = $config;
            own::<$settings>(config, scheme)?.apply(&mut made);
            made
        }};
    }
    Ok(match scheme {
        "null" | "stdout" => {
            own::<NoSettings>(config, scheme)?;
            if scheme == "null" { Arc::new(Null) } else { Arc::new(Stdout) }
        }
        "file" if !rest.is_empty() => Arc::new(File::new(with!(FileSettings, FileConfig::new(rest)))),
        "file" => refuse!("a file sink needs a path: file:/var/log/events.jsonl"),
        #[cfg(feature = "http")]
        "http" | "https" => Arc::new(sendoff_sinks::Http::new(with!(sinks::HttpSettings, http(&url)))?),
        #[cfg(feature = "inbox")]
        "inbox" => Arc::new(sendoff_sinks::Inbox::new(with!(sinks::InboxSettings, inbox(rest)))?),
        #[cfg(feature = "kafka")]
        "kafka" => {
            let kafka = with!(sinks::KafkaSettings, sendoff_sinks::KafkaConfig::new(&url));
            Arc::new(sendoff_sinks::Kafka::new(kafka)?)
        }
        #[cfg(feature = "mqtt")]
        "mqtt" | "mqtts" => Arc::new(sendoff_sinks::Mqtt::new(with!(sinks::MqttSettings, mqtt(&url)?))?),
        #[cfg(feature = "nats")]
        "nats" | "tls" => Arc::new(sendoff_sinks::Nats::new(with!(sinks::NatsSettings, nats(&url)?))?),
        #[cfg(feature = "rabbitmq")]
        "amqp" | "amqps" => {
            Arc::new(sendoff_sinks::RabbitMq::new(with!(sinks::RabbitMqSettings, rabbitmq(&url)?))?)
        }
        #[cfg(feature = "redis")]
        "redis" | "rediss" => {
            let redis = with!(sinks::RedisSettings, sendoff_sinks::RedisConfig::new(&url));
            Arc::new(sendoff_sinks::Redis::new(redis)?)
        }
        #[cfg(feature = "aws")]
        "sns" => {
            let sns = with!(sinks::SnsSettings, sendoff_sinks::SnsConfig::new(rest));
            Arc::new(sendoff_sinks::Sns::new(sns)?)
        }
        #[cfg(feature = "aws")]
        "sqs" => {
            let sqs = with!(sinks::SqsSettings, sendoff_sinks::SqsConfig::new(rest));
            Arc::new(sendoff_sinks::Sqs::new(sqs)?)
        }
        other => refuse!("{}", no_sink(other)),
    })
}

/// The settings of a sink, which are those of its kind and no others.
fn own<T: for<'de> serde::Deserialize<'de>>(config: &SinkConfig, scheme: &str) -> Result<T> {
    config.settings().map_err(|error| Refused(format!("a {scheme}: sink: {error}")).into())
}

/// A webhook that the operator names is trusted to be where it is, on this machine too.
#[cfg(feature = "http")]
fn http(url: &str) -> sendoff_sinks::HttpConfig {
    sendoff_sinks::HttpConfig { allow_private: true, ..sendoff_sinks::HttpConfig::new(url) }
}

/// `inbox:postgres://host/shop#schema.table`: the table is `inbox` unless it is named, and is made if it is not there.
#[cfg(feature = "inbox")]
fn inbox(rest: &str) -> sendoff_sinks::InboxConfig {
    let (url, table) = rest.split_once('#').unwrap_or((rest, "inbox"));
    sendoff_sinks::InboxConfig {
        table: table.to_owned(),
        create: true,
        ..sendoff_sinks::InboxConfig::new(url)
    }
}

/// With `?version=3` by MQTT 3.1.1, for brokers that do not know 5.
#[cfg(feature = "mqtt")]
fn mqtt(url: &str) -> Result<sendoff_sinks::MqttConfig> {
    let (server, query) = url.split_once('?').unwrap_or((url, ""));
    let mut config = sendoff_sinks::MqttConfig::new(server);
    match query {
        "" => {}
        "version=3" => config.version = sendoff_sinks::MqttVersion::V3,
        _ => refuse!("an MQTT sink has only ?version=3"),
    }
    Ok(config)
}

/// The exchange is named behind the virtual host.
#[cfg(feature = "rabbitmq")]
fn rabbitmq(url: &str) -> Result<sendoff_sinks::RabbitMqConfig> {
    let Some((server, exchange)) = url.split_once("?exchange=") else {
        refuse!("a RabbitMQ sink needs the name of its exchange: amqp://HOST:PORT/VHOST?exchange=NAME");
    };
    Ok(sendoff_sinks::RabbitMqConfig::new(server, exchange))
}

/// The path of the URL is the name of the stream; with `?create=SUBJECT,SUBJECT` it is made if it is not there.
#[cfg(feature = "nats")]
fn nats(url: &str) -> Result<sendoff_sinks::NatsConfig> {
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, place) = url.split_once("://").unwrap_or(("nats", url));
    let (server, stream) = place.split_once('/').unwrap_or((place, ""));
    if stream.is_empty() {
        refuse!("a NATS sink needs the name of its stream: nats://HOST:PORT/STREAM");
    }
    let mut config = sendoff_sinks::NatsConfig::new(format!("{scheme}://{server}"), stream);
    if !query.is_empty() {
        let Some(subjects) = query.strip_prefix("create=") else {
            refuse!("a NATS sink has only ?create=SUBJECT,SUBJECT");
        };
        config.stream.create_for = subjects.split(',').map(str::to_owned).collect();
    }
    Ok(config)
}

/// A URL as people may see it: without user and password.
pub(crate) fn without_secret(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, server))) => format!("{scheme}://{server}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(without_secret("redis://user:p@ss@host:1/0"), "redis://host:1/0");
        assert_eq!(without_secret("redis://host:1/0"), "redis://host:1/0");
        assert_eq!(without_secret("file:/var/log/a@b.jsonl"), "file:/var/log/a@b.jsonl");
        assert_eq!(without_secret("stdout:"), "stdout:");
    }

    #[test]
    fn an_unknown_sink_is_refused_without_its_secrets() {
        let error = sink("ftp://user:s3cret@host").unwrap_err().to_string();
        assert!(error.starts_with("\"ftp\" is no sink: give stdout:, null:, file:PATH"), "{error}");
        assert!(!error.contains("s3cret"));
    }

    #[cfg(feature = "nats")]
    #[test]
    fn a_nats_sink_needs_a_stream() {
        let error = |url: &str| sink(url).unwrap_err().to_string();
        assert!(error("nats://host:4222").contains("needs the name of its stream"));
        assert!(error("nats://host:4222/s?make=x").contains("only ?create="));
        let made = format!("{:?}", sink("nats://host:4222/orders?create=orders.>,paid").unwrap());
        assert!(made.contains("orders.>") && made.contains("paid"), "{made}");
    }

    #[cfg(feature = "nats")]
    #[test]
    fn a_nats_sink_is_let_in_by_one_way() {
        let made = |settings: &str| {
            let text = format!("url = \"nats://host:4222/orders\"\n{settings}");
            configured(&toml::from_str(&text).unwrap()).map(|sink| format!("{sink:?}"))
        };
        let by_file = "credentials = { file = \"/run/secrets/nats.creds\" }";
        let shown = made(by_file).unwrap();
        assert!(shown.contains("credentials: Some(Secret(file /run/secrets/nats.creds))"), "{shown}");
        let shown = made("nkey = \"s3cret\"").unwrap();
        assert!(shown.contains("nkey: Some(Secret(..))") && !shown.contains("s3cret"), "{shown}");
        let error = made(&format!("{by_file}\npassword = \"s3cret\"")).unwrap_err().to_string();
        assert!(error.contains("host:4222: ") && error.contains("give one of them"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
