//! Tasks that a service has made, run and failed, by the library.

use std::time::Duration;

use sendoff::tasks::{NewTask, TaskId};
use serde_json::{Value, json};

use crate::every_store::on_every_store;
use crate::host::{Host, places};
use crate::outbox::Outbox;
use crate::service::Service;

const UNKNOWN: &str = "0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001";

fn mail() -> NewTask {
    NewTask::new("mail.send").json(&json!({ "to": "a@example.org", "total": 1.10 })).unwrap()
}

/// How a kind stands.
fn kind(outbox: &Outbox, kind: &str) -> Value {
    let stats = outbox.json(&["tasks", "stats"]);
    stats["kinds"].as_array().unwrap().iter().find(|one| one["kind"] == kind).cloned().unwrap_or(Value::Null)
}

fn status(outbox: &Outbox, task: &str) -> Value {
    outbox.json(&["tasks", "show", task])["task"]["status"].clone()
}

/// What happened, in the words of the table.
fn history(outbox: &Outbox, task: &str) -> Vec<String> {
    let shown = outbox.json(&["tasks", "show", task]);
    let history = shown["history"].as_array().unwrap();
    history.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

fn a_tour(outbox: &Outbox) {
    outbox.ok(&["tasks", "migrate"]);
    let none = "no task is here\n\nno worker is there: the service that has the handlers runs them\n";
    assert_eq!(outbox.ok(&["tasks", "stats"]), none);
    let service = Service::new(outbox);
    let bad = service.submit(NewTask::new("report.make").json("no such customer").unwrap());
    let good = service.submit(NewTask::new("report.make").json(&7).unwrap());
    service.run_all("report.make");
    let waiting = service.submit(mail().priority(5).unique_key("mail-1").run_time(Duration::from_secs(90)));
    let held = service.create(mail());
    let in_an_hour = std::time::SystemTime::now() + Duration::from_secs(3_600);
    service.submit(mail().run_at(in_an_hour));

    let reports = kind(outbox, "report.make");
    assert_eq!((&reports["completed"], &reports["failed"]), (&1.into(), &1.into()), "{reports}");
    let mails = kind(outbox, "mail.send");
    assert_eq!((&mails["not_started"], &mails["ready"]), (&1.into(), &2.into()), "{mails}");
    assert_eq!((&mails["due"], &mails["later"], &mails["taken"]), (&1.into(), &1.into(), &false.into()));
    let text = outbox.ok(&["tasks", "stats"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("KIND         NOT STARTED  READY  DUE  RUNNING"), "{text}");
    assert!(lines[1].starts_with("mail.send") && lines[1].ends_with("no worker takes it"), "{text}");
    assert!(lines[2].starts_with("report.make") && lines[3].starts_with("the oldest has been due"), "{text}");

    let worker = service.worker(&["mail.send"]);
    let stats = outbox.json(&["tasks", "stats"]);
    assert!(stats["oldest_due_seconds"].as_f64().unwrap() < 3_000.0, "{stats:#}");
    assert_eq!(
        (&stats["workers"][0]["name"], &stats["workers"][0]["expired"]),
        (&"clerk".into(), &false.into())
    );
    let text = outbox.ok(&["tasks", "stats"]);
    assert!(text.contains(&worker.id()) && !text.contains("no worker takes it"), "{text}");

    let shown = outbox.json(&["tasks", "show", &bad]);
    assert_eq!(
        (&shown["task"]["status"], &shown["task"]["error"]),
        (&"failed".into(), &"no such customer".into())
    );
    assert_eq!(history(outbox, &bad), ["TaskCreated", "TaskReady", "TaskClaimed", "TaskFailed"]);
    assert_eq!(shown["history"][3]["detail"], "no such customer");
    assert_eq!(status(outbox, &good), "completed");
    let text = outbox.ok(&["tasks", "show", &waiting]);
    for part in
        ["      status  ready\n", "  unique key  mail-1\n", "  time limit  1m 30s", "    attempts  0 of 10"]
    {
        assert!(text.contains(part), "{part:?}: {text}");
    }
    assert!(text.contains("\n\n{\"to\":\"a@example.org\",\"total\":1.1}\n\nWHEN  "), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("  Task")).count(), 2, "{text}");

    let all = outbox.json(&["tasks", "list"]);
    let ids: Vec<&str> =
        all["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 5);
    assert_eq!((ids[0], ids[3], ids[4]), (held.as_str(), good.as_str(), bad.as_str()), "by status");
    assert_eq!((&all["has_more"], &all["next_after"]), (&false.into(), &Value::Null));
    let text = outbox.ok(&["tasks", "list", "--status", "failed"]);
    assert!(text.starts_with("TASK") && text.lines().count() == 2, "{text}");
    assert!(text.contains(&bad) && text.ends_with("no such customer\n"), "{text}");
    assert_eq!(outbox.json(&["tasks", "list", "--kind", "mail.send"])["tasks"].as_array().unwrap().len(), 3);
    assert_eq!(outbox.json(&["tasks", "list", "--kind", "no such"])["tasks"], json!([]));
}

fn what_failed_is_tried_again(outbox: &Outbox) {
    outbox.ok(&["tasks", "migrate"]);
    let service = Service::new(outbox);
    let worker = service.worker(&["mail.send"]);
    let failed = service.submit(mail().attempts_max(1));
    worker.fail(&worker.claim(), "no such address");
    let running = service.submit(mail());
    let claimed = worker.claim();
    let done = service.submit(mail());
    assert!(worker.complete(&worker.claim()));

    let answer = outbox.run(&["tasks", "retry", &failed, &running, &done, UNKNOWN, &failed, "--json"]);
    assert_eq!(answer.code, 1, "{}", answer.errors);
    let said = answer.json();
    let outcome = |number: usize| said["tasks"][number].clone();
    assert_eq!(said["tasks"].as_array().unwrap().len(), 4, "one that was named twice is asked once");
    assert_eq!(outcome(0), json!({ "task": failed, "done": "yes", "status": "ready", "worker": null }));
    assert_eq!(
        outcome(1),
        json!({ "task": running, "done": "not_ended", "status": "running", "worker": worker.id() })
    );
    assert_eq!(
        outcome(2),
        json!({ "task": done, "done": "completed", "status": "completed", "worker": null })
    );
    assert_eq!(
        outcome(3),
        json!({ "task": UNKNOWN, "done": "no_such_task", "status": null, "worker": null })
    );
    for part in [
        &format!("task {running} stays as it is: it is running, worker {} has it", worker.id()),
        &format!("task {done} stays as it is: it is completed"),
        &format!("there is no task {UNKNOWN}"),
    ] {
        assert!(answer.errors.contains(part), "{part}: {}", answer.errors);
    }
    assert_eq!(history(outbox, &running).last().unwrap(), "TaskClaimed", "it is left alone");
    assert!(worker.complete(&claimed), "and its worker's result counts");

    let last = outbox.json(&["tasks", "show", &failed]);
    assert_eq!(last["history"].as_array().unwrap().last().unwrap()["detail"], "sendoff, test");
    let again = worker.claim();
    assert_eq!((again.id.to_string(), again.attempt, again.attempts_max), (failed.clone(), 2, 2));
    worker.fail(&again, "still none");
    let text = format!("task {failed} is ready again\n");
    assert_eq!(outbox.ok(&["tasks", "retry", &failed]), text);
}

fn a_key_that_another_task_has_is_told(outbox: &Outbox) {
    outbox.ok(&["tasks", "migrate"]);
    let service = Service::new(outbox);
    let first = service.submit(mail().unique_key("only"));
    outbox.ok(&["tasks", "cancel", &first]);
    let second = service.submit(mail().unique_key("only"));
    let other = service.submit(mail());
    outbox.ok(&["tasks", "cancel", &other]);
    let answer = outbox.run(&["tasks", "retry", &first, &other, "--json"]);
    assert_eq!(answer.code, 1, "{}", answer.errors);
    assert_eq!(answer.json()["tasks"][0]["done"], "unique_key_taken");
    assert_eq!(answer.json()["tasks"][1]["done"], "yes", "the others are done all the same");
    assert!(answer.errors.contains("cancel that one first, or let it end"), "{}", answer.errors);
    assert_eq!(status(outbox, &first), "cancelled");
    outbox.ok(&["tasks", "cancel", &second]);
    outbox.ok(&["tasks", "retry", &first]);
}

fn what_has_not_ended_is_called_off(outbox: &Outbox) {
    outbox.ok(&["tasks", "migrate"]);
    let service = Service::new(outbox);
    let worker = service.worker(&["mail.send"]);
    let running = service.submit(mail());
    let claimed = worker.claim();
    let done = service.submit(mail());
    assert!(worker.complete(&worker.claim()));
    let waiting = service.submit(mail());

    let text = outbox.ok(&["tasks", "cancel", &running]);
    let expected = format!("task {running} is cancelled; worker {} was running it and is told", worker.id());
    assert!(text.starts_with(&expected) && text.contains("its result will not count"), "{text}");
    assert!(!worker.complete(&claimed), "its worker's result does not count");
    assert_eq!(status(outbox, &running), "cancelled");
    assert_eq!(history(outbox, &running).last().unwrap(), "TaskCancelled");

    let answer = outbox.run(&["tasks", "cancel", &waiting, &done, &running, UNKNOWN, "--json"]);
    assert_eq!(answer.code, 1, "{}", answer.errors);
    let said = answer.json();
    assert_eq!(
        said["tasks"][0],
        json!({ "task": waiting, "done": "yes", "status": "cancelled", "worker": null })
    );
    assert_eq!(
        (&said["tasks"][1]["done"], &said["tasks"][1]["status"]),
        (&"has_ended".into(), &"completed".into())
    );
    assert_eq!(
        (&said["tasks"][2]["done"], &said["tasks"][2]["status"]),
        (&"has_ended".into(), &"cancelled".into())
    );
    assert_eq!(said["tasks"][3]["done"], "no_such_task");
    assert!(answer.errors.contains(&format!("task {done} stays as it is: it has ended, and is completed")));
    assert!(!worker.finds_any(), "nothing is left to claim");
}

fn lists_are_paged(outbox: &Outbox) {
    outbox.ok(&["tasks", "migrate"]);
    let service = Service::new(outbox);
    let names = ["a", "b", "a", "b", "a"];
    let ids = names.map(|kind| service.submit(NewTask::new(kind)));
    let expected = [&ids[0], &ids[2], &ids[4], &ids[1], &ids[3]];
    let mut seen: Vec<String> = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut arguments = vec!["tasks", "list", "--status", "ready", "--limit", "2"];
        if let Some(after) = &after {
            arguments.extend(["--after", after]);
        }
        let page = outbox.json(&arguments);
        let found = page["tasks"].as_array().unwrap();
        seen.extend(found.iter().map(|task| task["id"].as_str().unwrap().to_owned()));
        assert_eq!(page["has_more"], !page["next_after"].is_null());
        match page["next_after"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen.iter().collect::<Vec<_>>(), expected);
    let of_kind = outbox.json(&["tasks", "list", "--status", "ready", "--kind", "b", "--after", &ids[1]]);
    assert_eq!(of_kind["tasks"][0]["id"], *ids[3]);
    assert_eq!(of_kind["tasks"].as_array().unwrap().len(), 1);
    let first = outbox.run(&["tasks", "list", "--status", "ready", "--limit", "2"]);
    assert!(first.errors.contains(&format!("there may be more: --after {}", ids[2])), "{}", first.errors);
    let mixed = outbox.run(&["tasks", "list", "--limit", "2"]);
    assert!(mixed.errors.contains("a larger --limit, or --status for pages"), "{}", mixed.errors);
    assert_eq!(outbox.run(&["tasks", "list", "--limit", "2", "--json"]).json()["has_more"], true);
    let gone = outbox.run(&["tasks", "list", "--status", "ready", "--after", UNKNOWN]);
    assert!(gone.code == 2 && gone.errors.contains("there is no task"), "{}", gone.errors);
}

fn limits_are_set_shown_and_kept(outbox: &Outbox) {
    outbox.ok(&["tasks", "migrate"]);
    assert_eq!(outbox.ok(&["tasks", "limit"]), "no kind has a limit\n");
    assert_eq!(outbox.ok(&["tasks", "limit", "mail.send"]), "mail.send has no limit\n");
    assert_eq!(outbox.ok(&["tasks", "limit", "mail.send", "1"]), "mail.send: one task runs at a time\n");
    let service = Service::new(outbox);
    let worker = service.worker(&["mail.send"]);
    service.submit(mail());
    service.submit(mail());
    let first = worker.claim();
    assert!(!worker.finds_any(), "one at a time");
    assert_eq!(kind(outbox, "mail.send")["limit"], 1);
    assert!(worker.complete(&first));
    assert_eq!(
        outbox.json(&["tasks", "limit", "mail.send", "0"]),
        json!({ "limits": [{ "kind": "mail.send", "most": 0 }] })
    );
    assert!(!worker.finds_any(), "none at all");
    outbox.ok(&["tasks", "limit", "report.make", "12"]);
    let text = outbox.ok(&["tasks", "limit"]);
    assert_eq!(text, "KIND         AT MOST\nmail.send          0\nreport.make       12\n");
    assert_eq!(outbox.ok(&["tasks", "limit", "mail.send", "--remove"]), "mail.send has no limit\n");
    assert_eq!(outbox.json(&["tasks", "limit", "mail.send"])["limits"], json!([]));
    let another = service.worker(&["mail.send"]);
    assert!(another.finds_any());
}

fn what_ended_long_ago_is_purged(outbox: &Outbox) {
    outbox.ok(&["tasks", "migrate"]);
    let service = Service::new(outbox);
    (0..5).for_each(|_| drop(service.submit(NewTask::new("report.make").json(&7).unwrap())));
    let failed = service.submit(NewTask::new("report.make").json("no").unwrap());
    service.run_all("report.make");
    let live = service.submit(mail());
    assert_eq!(outbox.json(&["tasks", "purge", "--older-than", "1h"])["purged"], 0);
    assert_eq!(outbox.ok(&["tasks", "purge", "--older-than", "900y"]), "0 tasks are deleted\n");
    assert_eq!(outbox.ok(&["tasks", "purge", "--older-than", "0s", "--batch", "2"]), "6 tasks are deleted\n");
    assert_eq!(outbox.run(&["tasks", "show", &failed]).code, 1);
    let gone = outbox.run(&["tasks", "show", &failed, "--json"]);
    assert_eq!(gone.json(), json!({ "id": failed, "task": null, "history": [], "history_is_cut": false }));
    assert_eq!(status(outbox, &live), "ready", "what has not ended stays");
    assert_eq!(history(outbox, &live).len(), 2);
}

/// A service whose tasks tell of themselves through the outbox does not miss what an operator does.
fn what_is_done_can_be_published(outbox: &Outbox) {
    outbox.ok(&["tasks", "migrate"]);
    let service = Service::new(outbox);
    let task = service.submit(mail());
    outbox.ok(&["tasks", "cancel", &task, "--publish", "tasks.changed"]);
    outbox.ok(&["tasks", "retry", &task, "--publish", "tasks.changed", "--target", "audit"]);
    let told = |target: &str| outbox.json(&["list", "unprocessed", "--target", target])["events"].clone();
    let (first, second) = (told("default"), told("audit"));
    assert_eq!((&first[0]["topic"], &first[0]["key"]), (&"tasks.changed".into(), &task.as_str().into()));
    assert_eq!(
        (&first[0]["payload"]["event"], &second[0]["payload"]["event"]),
        (&"TaskCancelled".into(), &"TaskReady".into())
    );
    assert_eq!((first.as_array().unwrap().len(), second.as_array().unwrap().len()), (1, 1));
}

on_every_store!(
    a_tour,
    what_failed_is_tried_again,
    a_key_that_another_task_has_is_told,
    what_has_not_ended_is_called_off,
    lists_are_paged,
    limits_are_set_shown_and_kept,
    what_ended_long_ago_is_purged,
    what_is_done_can_be_published,
    tables_are_made_and_checked,
);

fn tables_are_made_and_checked(outbox: &Outbox) {
    let missing = outbox.run(&["tasks", "migrate", "--check", "--json"]);
    assert_eq!((missing.code, missing.json()["tables"].as_str()), (4, Some("missing")));
    let done = outbox.run(&["tasks", "stats"]);
    assert!(done.code == 4 && done.errors.contains("`sendoff tasks migrate`"), "{}", done.errors);
    let script = outbox.ok(&["tasks", "migrate", "--print"]);
    assert_eq!(outbox.run(&["tasks", "migrate", "--check"]).code, 4, "printing makes none");
    outbox.sql(&script);
    let sentence = "the tasks' tables are as this program needs them\n";
    for arguments in [&["tasks", "migrate", "--check"][..], &["tasks", "migrate"], &["tasks", "migrate"]] {
        assert_eq!(outbox.ok(arguments), sentence);
    }
    assert_eq!(outbox.json(&["tasks", "migrate"])["tables"], "current");
    let meta = Service::new(outbox).table("meta");
    outbox.sql(&format!("UPDATE {meta} SET value = '99' WHERE name = 'tasks_protocol_version'"));
    let newer = outbox.run(&["tasks", "migrate", "--json"]);
    assert!(newer.code == 4 && newer.errors.contains("newer than this program"), "{}", newer.errors);
    outbox.ok(&["status"]);
}

/// Neither needs the other's tables, unless what is done is to be published.
#[test]
fn tasks_need_no_outbox() {
    let outbox = Outbox::without_tables();
    assert_eq!(outbox.run(&["tasks", "stats"]).code, 3, "no file is made");
    outbox.ok(&["tasks", "migrate"]);
    assert_eq!(outbox.run(&["status"]).code, 4);
    let task = Service::new(&outbox).submit(mail());
    let refused = outbox.run(&["tasks", "cancel", &task, "--publish", "tasks.changed", "--json"]);
    assert_eq!(refused.code, 4, "{}", refused.errors);
    assert!(refused.errors.contains(&format!("task {task}")), "{}", refused.errors);
    assert_eq!(refused.json()["tasks"], json!([]));
    assert_eq!(status(&outbox, &task), "ready", "it is not cancelled without being told");
    outbox.ok(&["tasks", "cancel", &task]);
}

/// A host with an outbox table of its own may have tasks beside it.
#[test]
fn tasks_stand_beside_an_adopted_table() {
    let host = Host::of(places().remove(0), "governance");
    host.configure_preset();
    let before = host.texts("SELECT journal_mode FROM pragma_journal_mode");
    let missing = host.run(&["tasks", "stats"]);
    assert_eq!(missing.code, 4, "{}", missing.errors);
    host.ok(&["tasks", "migrate"]);
    let task = Service::new(&host.outbox).submit(mail());
    assert!(host.ok(&["tasks", "list"]).contains(&task));
    assert_eq!(host.texts("SELECT journal_mode FROM pragma_journal_mode"), before, "its file stays as it is");
}

#[test]
fn hostile_texts_stay_in_their_place() {
    let outbox = Outbox::new();
    outbox.ok(&["tasks", "migrate"]);
    let service = Service::new(&outbox);
    let worker = service.worker(&["mail.send"]);
    let id = service.submit(mail().payload(b"\x1b[2J\n\x1b]0;owned\x07".to_vec()));
    worker.fail(&worker.claim(), "\u{1b}[2Jwiped\nout");
    outbox.sql("UPDATE sendoff_task SET kind = char(27) || '[31m' || char(10) || 'x'");
    for arguments in [
        &["tasks", "list"][..],
        &["tasks", "show", &id],
        &["tasks", "stats"],
        &["tasks", "limit", "a\u{1b}[2J"],
    ] {
        let done = outbox.run(arguments);
        assert!(
            !done.text.contains('\u{1b}') && !done.text.contains('\u{7}'),
            "{arguments:?}: {:?}",
            done.text
        );
    }
    assert_eq!(outbox.ok(&["tasks", "list"]).lines().count(), 2);
    let shown = outbox.json(&["tasks", "show", &id]);
    assert_eq!(shown["task"]["error"], "\u{1b}[2Jwiped\nout", "JSON has it as it is");
    assert!(shown["task"]["payload_base64"].is_string(), "{shown:#}");
}

#[test]
fn bad_input_is_answered_with_what_would_be_right() {
    let outbox = Outbox::new();
    outbox.ok(&["tasks", "migrate"]);
    let long = "k".repeat(101);
    let task = TaskId::generate().to_string();
    for (arguments, word) in [
        (&["tasks", "list", "--status", "done"][..], "not_started"),
        (&["tasks", "list", "--limit", "0"], "--limit"),
        (&["tasks", "list", "--limit", "100000"], "--limit"),
        (&["tasks", "list", "--after", &task], "--status"),
        (&["tasks", "list", "--status", "ready", "--after", "x"], "--after"),
        (&["tasks", "show", "seven"], "TASK"),
        (&["tasks", "show"], "TASK"),
        (&["tasks", "retry"], "TASK"),
        (&["tasks", "cancel", &task, "x; DROP TABLE sendoff_task"], "TASK"),
        (&["tasks", "cancel", &task, "--target", "audit"], "--publish"),
        (&["tasks", "cancel", &task, "--publish", ""], "topic"),
        (&["tasks", "retry", &task, "--publish", &long.repeat(3)], "topic"),
        (&["tasks", "retry", &task, "--publish", "t", "--target", "a\nb"], "target"),
        (&["tasks", "limit", "mail.send", "-1"], "-1"),
        (&["tasks", "limit", "mail.send", "many"], "N"),
        (&["tasks", "limit", "--remove"], "KIND"),
        (&["tasks", "limit", "mail.send", "3", "--remove"], "--remove"),
        (&["tasks", "limit", &long, "3"], "at most 100"),
        (&["tasks", "limit", "", "3"], "it is empty"),
        (&["tasks", "purge"], "--older-than"),
        (&["tasks", "purge", "--older-than", "soon"], "--older-than"),
        (&["tasks", "purge", "--older-than", "1d", "--batch", "0"], "--batch"),
        (&["tasks", "migrate", "--print", "--json"], "--print"),
        (&["tasks", "lsit"], "list"),
        (&["tasks"], "Usage: sendoff tasks"),
    ] {
        let done = outbox.run(arguments);
        assert_eq!(done.code, 2, "{arguments:?}: {}{}", done.text, done.errors);
        assert!(done.errors.contains(word), "{arguments:?}: no {word:?} in {}", done.errors);
    }
}
