//! Events from the command line and from standard input.

use crate::outbox::Outbox;

fn lines(count: usize) -> Vec<u8> {
    let line = |number: usize| {
        format!("{{\"topic\": \"t\", \"key\": \"k{}\", \"payload\": {number}}}\n", number % 7)
    };
    (1..=count).map(line).collect::<String>().into_bytes()
}

fn unprocessed(outbox: &Outbox) -> u64 {
    outbox.counts("default")["unprocessed"].as_u64().unwrap_or_default()
}

#[test]
fn one_event_is_all_that_it_is_said_to_be() {
    let outbox = Outbox::new();
    let path = outbox.directory.path().join("payload");
    std::fs::write(&path, [0xff, 0]).unwrap();
    let id = "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001";
    let at = "2126-01-31T12:00:00Z";
    let file = format!("@{}", path.display());
    let arguments =
        ["enqueue", "t", "--id", id, "--payload", &file, "--content-type", "x/y", "--deliver-at", at];
    assert_eq!(outbox.json(&arguments)["id"], id);
    let shown = outbox.json(&["show", id]);
    assert_eq!((&shown["payload_base64"], &shown["content_type"]), (&"/wA=".into(), &"x/y".into()));
    assert!(outbox.ok(&["show", id]).ends_with("base64: /wA=\n"));
    // It comes into the park, where its time is known, with the first worker that meets it.
    let _relay = outbox.relay("null:");
    outbox.until("it is known when", || outbox.ok(&["explain", id]).contains("2126-01-31T12:00:00"));
}

#[test]
fn lines_are_written_in_batches() {
    let outbox = Outbox::new();
    let done = outbox.enqueue_lines(&lines(2_500), &[]);
    assert_eq!((done.code, done.text.as_str()), (0, "2500 events are written\n"), "{}", done.errors);
    assert_eq!(unprocessed(&outbox), 2_500);
    let done = outbox
        .enqueue_lines(b"\n{\"topic\": \"t\", \"target\": \"other\"}\r\n\n{\"topic\": \"t\"}", &["--json"]);
    assert_eq!(done.json(), serde_json::json!({ "written": 2, "lines": 4 }));
    assert_eq!(outbox.counts("other")["unprocessed"], 1);
}

#[test]
fn a_wrong_line_is_named_and_the_rest_can_follow() {
    let outbox = Outbox::new();
    let mut input = lines(1_500);
    input.extend(b"{\"topic\": \"t\", \"kye\": \"k\"}\n");
    input.extend(lines(10));
    let done = outbox.enqueue_lines(&input, &[]);
    assert_eq!(done.code, 2);
    assert!(done.errors.contains("line 1501: unknown field `kye`"), "{}", done.errors);
    assert!(
        done.errors.contains("all up to line 1000 is written") && done.errors.contains("--skip 1000"),
        "{}",
        done.errors
    );
    assert_eq!(unprocessed(&outbox), 1_000, "its batch is not");
    let mended = String::from_utf8(input).unwrap().replace("kye", "key");
    let done = outbox.enqueue_lines(mended.as_bytes(), &["--skip", "1000"]);
    assert_eq!(done.text, "511 events are written\n", "{}", done.errors);
    assert_eq!(unprocessed(&outbox), 1_511);
}

/// Many batches, and the wrong line in the middle of one.
fn many_lines(outbox: &Outbox) {
    let mut input = lines(9_999);
    input.extend(b"{\"topic\": \"t\", \"payload\": {\"open\": }\n");
    input.extend(lines(10_000));
    let done = outbox.enqueue_lines(&input, &["--batch", "700"]);
    assert_eq!(done.code, 2);
    assert!(done.errors.starts_with("error: line 10000: "), "{}", done.errors);
    assert!(done.errors.contains("all up to line 9800 is written"), "{}", done.errors);
    assert!(done.errors.contains("--skip 9800"), "{}", done.errors);
    assert_eq!(unprocessed(outbox), 9_800, "its batch is not");
    let mended = String::from_utf8(input).unwrap().replace("{\"open\": }", "{\"open\": 1}}");
    let done = outbox.enqueue_lines(mended.as_bytes(), &["--skip", "9800", "--json"]);
    assert_eq!(done.json(), serde_json::json!({ "written": 10_200, "lines": 20_000 }), "{}", done.errors);
    assert_eq!(unprocessed(outbox), 20_000, "each line once");
    let done = outbox.enqueue_lines(&lines(3), &["--skip", "4"]);
    assert!(done.code == 2 && done.errors.contains("there are only 3 lines"), "{}", done.errors);
}

#[test]
fn many_lines_on_sqlite() {
    many_lines(&Outbox::new());
}

#[test]
fn many_lines_on_postgres() {
    if let Some(outbox) = Outbox::on_server("SENDOFF_TEST_POSTGRES15") {
        many_lines(&outbox);
    }
}

#[test]
fn what_is_too_large_is_refused_by_name() {
    let outbox = Outbox::new();
    let long = format!("{{\"topic\": \"t\", \"payload_text\": \"{}\"}}\n", "x".repeat(2_000_000));
    let done = outbox.enqueue_lines(long.as_bytes(), &[]);
    assert_eq!(done.code, 2);
    assert!(done.errors.contains("line 1:") && done.errors.contains("payload"), "{}", done.errors);
    let endless = vec![b'x'; 5_000_000];
    let done = outbox.enqueue_lines(&endless, &[]);
    assert!(done.code == 2 && done.errors.contains("more than 4194304 bytes"), "{}", done.errors);
    assert_eq!(unprocessed(&outbox), 0);
}

#[test]
fn what_the_file_sink_writes_can_be_written_again() {
    let outbox = Outbox::new();
    outbox.enqueue(&["t", "--key", "k", "--payload", "{\"a\": 1}"]);
    let path = outbox.directory.path().join("out.jsonl");
    let relay = outbox.relay(&format!("file:{}", path.display()));
    let written = || std::fs::read(&path).unwrap_or_default();
    outbox.until("it is delivered", || written().ends_with(b"\n"));
    let waits = || outbox.counts("default")["oldest_seconds"].is_number();
    outbox.until("it is settled", || !waits());
    drop(relay);
    let done = outbox.enqueue_lines(&written(), &[]);
    assert_eq!(done.text, "1 events are written\n", "{}", done.errors);
}
