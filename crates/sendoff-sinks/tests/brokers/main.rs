//! Every sink against its real broker: the suite of the test kit, each case with a broker process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod aws;
mod broker;
mod certificates;
mod http;
mod inbox;
mod kafka;
mod mqtt;
mod nats;
mod rabbitmq;
mod redis;
mod serve;
mod tls;

use std::future::Future;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use sendoff::testkit::{SinkHarness, sink_suite};

fn main() -> ExitCode {
    kafka::run_if_asked();
    serve::run_if_asked();
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(4);
    let mut trials = Vec::new();
    let mut missing: Vec<&str> = Vec::new();
    macro_rules! sink {
        ($module:ident, $($name:literal => $open:expr),*) => {
            let is_missing = $module::is_missing();
            $(suite(&mut trials, $name, is_missing, $open);)*
            trials.extend($module::trials());
            if is_missing {
                missing.push(stringify!($module));
            }
        };
    }
    sink!(redis,
        "redis" => || redis::Redis::start(None),
        "redis_dedupe" => || redis::Redis::start(Some(redis::WINDOW)));
    sink!(nats, "nats" => nats::Nats::start);
    sink!(rabbitmq, "rabbitmq" => rabbitmq::RabbitMq::start);
    sink!(mqtt,
        "mqtt_5" => || mqtt::Mqtt::start(mqtt::FIVE),
        "mqtt_5_qos_2" => || mqtt::Mqtt::start(mqtt::FIVE_QOS_TWO),
        "mqtt_3" => || mqtt::Mqtt::start(mqtt::THREE));
    sink!(kafka, "kafka" => kafka::Kafka::start);
    if kafka::tansu_is_asked_for() {
        suite(&mut trials, "tansu", false, kafka::Tansu::start);
    }
    sink!(aws,
        "sqs" => || aws::Aws::start(aws::SQS),
        "sqs_fifo" => || aws::Aws::start(aws::SQS_FIFO),
        "sns" => || aws::Aws::start(aws::SNS),
        "sns_fifo" => || aws::Aws::start(aws::SNS_FIFO));
    sink!(http, "http" => http::Receiver::start);
    sink!(inbox,
        "inbox_postgres" => || inbox::Database::open(inbox::POSTGRES),
        "inbox_mariadb" => || inbox::Database::open(inbox::MARIADB));
    trials.extend(tls::trials());
    for name in missing {
        let _ = writeln!(std::io::stderr(), "skipped, not there: {name}; `cargo xtask test` installs it");
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn suite<H, Open, Opening>(trials: &mut Vec<Trial>, name: &str, is_missing: bool, open: Open)
where
    H: SinkHarness,
    Open: Fn() -> Opening + Clone + Send + 'static,
    Opening: Future<Output = H> + Send,
{
    for case in sink_suite::<H>() {
        let open = open.clone();
        let name = format!("{name}::{}", case.name);
        let run = move || async move { (case.run)(Arc::new(open().await)).await };
        trials.push(trial(name, is_missing, run));
    }
}

/// One test with a runtime of its own; ignored if its broker is neither there nor required.
fn trial<Run, Running>(name: String, is_missing: bool, run: Run) -> Trial
where
    Run: FnOnce() -> Running + Send + 'static,
    Running: Future<Output = ()> + Send,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(run());
        Ok(())
    })
    .with_ignored_flag(is_missing)
}
