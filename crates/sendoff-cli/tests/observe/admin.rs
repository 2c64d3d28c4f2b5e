//! The admin listener of a relay on SQLite.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::outbox::{Outbox, Receiver};
use crate::process::{Admin, Process, until};
use crate::program::{program, run};

const ADMIN: [&str; 2] = ["--admin", "127.0.0.1:0"];

fn relay(outbox: &Outbox, sink: &str) -> (Process, Admin) {
    let arguments = [&["run", "--sink", sink, "--lease", "2"][..], &ADMIN].concat();
    let mut process = Process::start(&mut outbox.command(&arguments));
    let admin = process.admin();
    (process, admin)
}

#[test]
fn figures_move_as_events_are_delivered() {
    let outbox = Outbox::new();
    let (_process, admin) = relay(&outbox, "null:");
    assert_eq!(admin.figure("sendoff_events_published_total", "default"), 0.0);
    for key in ["a", "b", "c"] {
        outbox.enqueue(&["t", "--key", key]);
    }
    until("three are published", || {
        (admin.figure("sendoff_events_published_total", "default") == 3.0).then_some(())
    });
    let figure = |metric: &str| admin.figure(metric, "default");
    assert_eq!(figure("sendoff_events_claimed_total"), 3.0);
    assert_eq!(figure("sendoff_events_in_flight"), 0.0);
    assert_eq!(figure("sendoff_delivery_age_seconds_count"), 3.0);
    let age = figure("sendoff_delivery_age_seconds_sum");
    assert!(age > 0.0 && age < 180.0, "{age} s");
    assert!((1.0..=3.0).contains(&figure("sendoff_publish_duration_seconds_count")));
    assert_eq!(figure("sendoff_breaker_open"), 0.0);
    assert_eq!(figure("sendoff_relay_workers"), 1.0);
    assert!(figure("sendoff_lanes_owned") > 0.0);
    assert_eq!(figure("sendoff_lanes_lost_total"), 0.0);
    // What is read of the outbox is read rarely.
    until("the worker is seen in the outbox", || {
        let name = "sendoff_outbox_workers{store=\"default\",target=\"default\"}";
        (admin.figures().get(name) == Some(&1.0)).then_some(())
    });
}

#[test]
fn what_failed_is_counted_as_that() {
    let outbox = Outbox::new();
    let rejecting = Receiver::start("400 Bad Request");
    outbox.enqueue(&["t", "--key", "k"]);
    let (_process, admin) = relay(&outbox, &rejecting.url);
    until("it is given up", || {
        (admin.figure("sendoff_events_given_up_total", "default") == 1.0).then_some(())
    });
    assert_eq!(admin.figure("sendoff_events_published_total", "default"), 0.0);
    let dead = "sendoff_outbox_events{store=\"default\",target=\"default\",state=\"dead\"}";
    until("it is dead in the outbox", || (admin.figures().get(dead) == Some(&1.0)).then_some(()));
}

/// Frozen with an event in hand, past its lease: another takes over, and what it says when it wakes is refused.
#[test]
fn what_a_frozen_worker_says_too_late_is_counted() {
    let outbox = Outbox::new();
    outbox.enqueue(&["t", "--key", "k"]);
    let silent = Receiver::silent();
    let (frozen, admin) = relay(&outbox, &silent.url);
    let figure = |metric: &str| admin.figure(metric, "default");
    until("it has the event in hand", || (figure("sendoff_events_in_flight") == 1.0).then_some(()));
    assert_eq!(figure("sendoff_settles_stale_total"), 0.0);
    frozen.signal(Signal::STOP);
    let (_second, other) = relay(&outbox, "null:");
    until("another delivers it", || {
        (other.figure("sendoff_events_published_total", "default") == 1.0).then_some(())
    });
    frozen.signal(Signal::CONT);
    until("it is refused", || (figure("sendoff_settles_stale_total") == 1.0).then_some(()));
    assert!(figure("sendoff_lanes_lost_total") > 0.0);
    assert_eq!(figure("sendoff_events_published_total"), 0.0);
    assert_eq!(figure("sendoff_deliveries_stale_total"), 0.0, "its sink has not said that it has it");
}

/// The names of a page, without what a histogram adds.
fn names(page: &str) -> BTreeSet<String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_page_has_every_metric_that_is_documented_and_no_other() {
    let outbox = Outbox::new();
    outbox.enqueue(&["t"]);
    let (_process, admin) = relay(&outbox, "null:");
    let documented: BTreeSet<String> = include_str!("../../../../docs/metrics.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `sendoff_")?.split('`').next())
        .map(|name| format!("sendoff_{name}"))
        .collect();
    assert!(documented.len() > 30, "{documented:?}");
    let page = until("the outbox is counted", || {
        let (_, page) = admin.get("/metrics");
        page.contains("sendoff_outbox_events{").then_some(page)
    });
    assert_eq!(names(&page), documented);
    let Some(promtool) = promtool() else { return };
    let mut check = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let checked = check.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// The tool of Prometheus, where there is one.
fn promtool() -> Option<String> {
    let name = std::env::var("SENDOFF_TEST_PROMTOOL").unwrap_or_else(|_| "promtool".to_owned());
    let is_there = Command::new(&name).arg("--version").stderr(Stdio::null()).output().is_ok();
    if !is_there {
        println!("skipped: there is no promtool");
    }
    is_there.then_some(name)
}

#[test]
fn garbage_does_no_harm() {
    let outbox = Outbox::new();
    let (mut process, admin) = relay(&outbox, "null:");
    assert_eq!(admin.get("/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(admin.get("/readyz").0, 200);
    assert_eq!(admin.get("/").0, 404);
    assert_eq!(admin.get("/../../etc/passwd").0, 404);
    assert_eq!(admin.send(b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").0, 405);
    assert_eq!(admin.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").0, 400, "a TLS handshake");
    assert_eq!(admin.send(&[b"GET /".as_slice(), &[b'a'; 100_000]].concat()).0, 431);
    let (status, head) = admin.send(b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(status == 200 && head.ends_with("\r\n\r\n"), "{head}");
    // More than are let in, none of which says what it wants.
    let silent: Vec<_> = (0..40).map(|_| admin.connect()).collect();
    for (index, mut stream) in silent.iter().enumerate() {
        let _ = stream.write_all(&b"GET /metrics HTTP/1.1\r\nA: "[..index % 26]);
    }
    assert_eq!(admin.get("/healthz").0, 200, "they are sent away");
    let mut rest = Vec::new();
    assert_eq!((&silent[0]).read_to_end(&mut rest).unwrap_or_default(), 0);
    outbox.enqueue(&["t"]);
    until("it is delivered all the same", || {
        (admin.figure("sendoff_events_published_total", "default") == 1.0).then_some(())
    });
    assert!(process.is_running());
}

#[test]
fn it_ends_promptly_with_a_connection_open() {
    let outbox = Outbox::new();
    let (mut process, admin) = relay(&outbox, "null:");
    let mut open = admin.connect();
    open.write_all(b"GET /metrics HTT").unwrap();
    let (status, took) = process.stop();
    assert!(status.success(), "{status}: {:#?}", process.log());
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn other_machines_have_to_show_a_token() {
    let outbox = Outbox::new();
    let arguments = ["run", "--sink", "null:", "--admin", "0.0.0.0:0"];
    let refused = outbox.run(&arguments);
    assert!(refused.code == 2 && refused.errors.contains("`admin.token`"), "{}", refused.errors);
    let config = outbox.directory.path().join("sendoff.toml");
    std::fs::write(
        &config,
        "[admin]\nlisten = \"0.0.0.0:0\"\ntoken = { env = \"ADMIN_TOKEN\" }\n[targets.default]\nsink = \"null:\"\n",
    )
    .unwrap();
    let mut command = outbox.command(&["run"]);
    command.env("SENDOFF_CONFIG", &config).env("ADMIN_TOKEN", "s3cret-token");
    let mut process = Process::start(&mut command);
    let port = process.admin().0.port();
    let admin = Admin(([127, 0, 0, 1], port).into());
    assert_eq!(admin.get("/metrics").0, 401);
    assert_eq!(admin.send(b"GET /metrics HTTP/1.1\r\nAuthorization: Bearer wrong\r\n\r\n").0, 401);
    let (status, page) = admin.send(b"GET /metrics HTTP/1.1\r\nAuthorization: Bearer s3cret-token\r\n\r\n");
    assert!(status == 200 && page.contains("sendoff_build_info"), "{page}");
    assert_eq!(admin.get("/readyz"), (200, "ok\n".to_owned()), "who watches over it needs none");
    assert!(!process.log().concat().contains("s3cret"), "{:#?}", process.log());
    let taken = outbox.run(&["run", "--sink", "null:", "--admin", &admin.0.to_string()]);
    assert!(taken.code == 3 && taken.errors.contains("the admin listener on 127.0.0.1:"), "{}", taken.errors);
}

#[test]
fn a_probe_asks_for_who_has_no_client() {
    let outbox = Outbox::new();
    let (mut process, admin) = relay(&outbox, "null:");
    let address = admin.0.to_string();
    for what in ["healthz", "readyz"] {
        let done = run(&["probe", what, "--admin", &address]);
        assert_eq!((done.code, done.text.as_str()), (0, "ok\n"), "{}", done.errors);
    }
    process.stop();
    let gone = run(&["probe", "--admin", &address]);
    assert!(gone.code == 3 && gone.errors.contains("sendoff run"), "{}", gone.errors);
    let nowhere = run(&["probe"]);
    assert!(nowhere.code == 2 && nowhere.errors.contains("--admin ADDRESS"), "{}", nowhere.errors);
    let config = outbox.directory.path().join("sendoff.toml");
    std::fs::write(&config, format!("[admin]\nlisten = \"{address}\"\n")).unwrap();
    let done = program().args(["probe"]).env("SENDOFF_CONFIG", &config).output().unwrap();
    assert_eq!(done.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&done.stderr).contains(&address));
}
