//! Sinks that are away when a relay begins.

use std::net::TcpListener;

use crate::outbox::{Outbox, Receiver};
use crate::process::{Process, until};

/// Where nobody listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_sink_that_is_away_holds_up_no_other_and_is_used_when_it_comes() {
    let outbox = Outbox::new();
    let port = free_port();
    let good = outbox.directory.path().join("good.jsonl");
    let config = outbox.directory.path().join("sendoff.toml");
    let text = format!(
        "[relay]\nlease = \"2s\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[targets.default]\nsink = \"file:{}\"\n\
         [targets.late]\nsink = \"http://127.0.0.1:{port}/hook\"\n",
        good.display()
    );
    std::fs::write(&config, text).unwrap();
    for _ in 0..5 {
        outbox.enqueue(&["t"]);
        outbox.enqueue(&["t", "--target", "late"]);
    }
    let mut process = Process::start(outbox.command(&["run"]).env("SENDOFF_CONFIG", &config));
    let warning = process.said("the sink is away");
    assert!(warning.contains("WARN") && warning.contains("late"), "{warning}");
    let admin = process.admin();
    let delivered = || std::fs::read_to_string(&good).unwrap_or_default().lines().count();
    until("the other target is served", || (delivered() == 5).then_some(()));
    until("its breaker is open", || (admin.figure("sendoff_breaker_open", "late") == 1.0).then_some(()));
    process.said("the sink is down");
    assert_eq!(admin.get("/readyz").0, 200, "that a sink is away is not this process's fault");
    assert_eq!(admin.figure("sendoff_events_retried_total", "late"), 0.0, "no attempt is spent");
    let _receiver = Receiver::on(TcpListener::bind(("127.0.0.1", port)).unwrap(), "200 OK");
    until("it is used when it is there", || {
        (admin.figure("sendoff_events_published_total", "late") == 5.0).then_some(())
    });
    process.said("the sink is there again");
    assert_eq!(admin.figure("sendoff_breaker_open", "late"), 0.0);
    assert_eq!(admin.figure("sendoff_events_retried_total", "late"), 0.0);
}

/// The sinks of brokers, each at a port where nobody listens.
#[cfg(all(feature = "kafka", feature = "aws"))]
#[test]
fn every_sink_knows_that_it_is_away() {
    let outbox = Outbox::new();
    let at = format!("127.0.0.1:{}", free_port());
    let mut processes: Vec<(String, Process)> = Vec::new();
    for sink in [
        format!("\"http://{at}/hook\""),
        format!("\"nats://u:s3cret@{at}/ORDERS\""),
        format!("\"redis://u:s3cret@{at}/0\""),
        format!("\"amqp://u:s3cret@{at}/%2f?exchange=orders\""),
        format!("\"mqtt://u:s3cret@{at}\""),
        format!("\"kafka://{at}\""),
        format!("\"inbox:postgres://u:s3cret@{at}/shop\""),
        format!("\"inbox:mysql://u:s3cret@{at}/shop\""),
        format!(
            "{{ url = \"sqs:http://{at}/1/q\", endpoint_url = \"http://{at}\", region = \"eu-west-1\", access_key_id = \"k\", secret_access_key = \"s3cret\" }}"
        ),
    ] {
        let config = outbox.directory.path().join(format!("sendoff-{}.toml", processes.len()));
        std::fs::write(&config, format!("[targets.default]\nsink = {sink}\n")).unwrap();
        let mut command = outbox.command(&["run", "--log", "trace"]);
        processes.push((sink, Process::start(command.env("SENDOFF_CONFIG", &config))));
    }
    for (sink, process) in &mut processes {
        let warning = process.said("the sink is away");
        assert!(warning.contains("WARN"), "{sink}: {warning}");
        process.said("relaying target");
        assert!(!process.log().concat().contains("s3cret"), "{sink}: {:#?}", process.log());
    }
}

#[test]
fn credentials_that_are_not_taken_are_refused() {
    let outbox = Outbox::new();
    let receiver = Receiver::start("401 Unauthorized");
    let done = outbox.run(&["run", "--sink", &receiver.url]);
    assert!(done.code == 3 && done.errors.contains("answered 401"), "{}: {}", done.code, done.errors);
    let Ok(server) = std::env::var("SENDOFF_TEST_POSTGRES15") else {
        println!("skipped: SENDOFF_TEST_POSTGRES15 is not set");
        return;
    };
    let host = server.rsplit('@').next().unwrap();
    let sink = format!("inbox:postgres://nobody:s3cret@{host}");
    let done = outbox.run(&["run", "--sink", &sink]);
    assert!(done.code == 3 && done.errors.contains("target \"default\""), "{}: {}", done.code, done.errors);
    assert!(!done.errors.contains("s3cret") && !done.errors.contains("is away"), "{}", done.errors);
}
