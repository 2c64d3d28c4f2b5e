//! Brokers for somebody else: `cargo xtask bench sinks` measures what each of them takes.

use std::any::Any;
use std::io::{Read as _, Write as _};

use crate::{aws, http, inbox, kafka, mqtt, nats, rabbitmq, redis};

/// Asks for the brokers, whatever its value.
const ASKED: &str = "SENDOFF_TEST_SERVE_BROKERS";

/// What the events of the benchmark have as their topic.
pub(crate) const TOPIC: &str = "bench";

/// A broker that runs for as long as this is there.
struct Served {
    name: &'static str,
    /// Of the sink, as `sendoff run --sink` takes it.
    url: String,
    /// What it needs in its environment.
    environment: Vec<(&'static str, String)>,
    _broker: Box<dyn Any>,
}

/// Starts every broker, prints a line for each, `NAME URL [VARIABLE=VALUE …]`, and ends with its standard input, if that is what this process was started for.
pub(crate) fn run_if_asked() {
    if std::env::var_os(ASKED).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let served = runtime.block_on(all());
    for one in &served {
        let variables = one.environment.iter().map(|(name, value)| format!(" {name}={value}"));
        println!("{} {}{}", one.name, one.url, variables.collect::<String>());
    }
    println!("ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(served);
    std::process::exit(0);
}

async fn all() -> Vec<Served> {
    let one = |name, url: String, broker| Served { name, url, environment: Vec::new(), _broker: broker };
    let redis = redis::Redis::start(None).await;
    let nats = nats::Nats::start().await;
    let rabbitmq = rabbitmq::RabbitMq::start().await;
    let mqtt = mqtt::Mqtt::start(mqtt::FIVE).await;
    let kafka = kafka::Kafka::start().await;
    let http = http::Receiver::start().await;
    let inbox = inbox::Database::open(inbox::POSTGRES).await;
    let mut served = vec![
        one("redis", redis.url(), Box::new(redis)),
        one("nats", nats.url(), Box::new(nats)),
        one("rabbitmq", rabbitmq.url(), Box::new(rabbitmq)),
        one("mqtt", mqtt.url(), Box::new(mqtt)),
        one("kafka", kafka.url(), Box::new(kafka)),
        one("http", http.url(), Box::new(http)),
        one("inbox", inbox.url(), Box::new(inbox)),
    ];
    for (name, kind) in
        [("sqs", aws::SQS), ("sqs_fifo", aws::SQS_FIFO), ("sns", aws::SNS), ("sns_fifo", aws::SNS_FIFO)]
    {
        let aws = aws::Aws::start(kind).await;
        let (url, environment) = (aws.url(), aws.environment());
        served.push(Served { name, url, environment, _broker: Box::new(aws) });
    }
    served
}
