//! The configuration file.

use std::path::PathBuf;

use crate::outbox::Outbox;
use crate::program::{Done, program, run};

/// A configuration in a directory of its own.
struct Configured {
    directory: tempfile::TempDir,
    file: PathBuf,
}

impl Configured {
    /// `DIR` stands for the directory.
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sendoff.toml");
        std::fs::write(&file, text.replace("DIR", directory.path().to_str().unwrap())).unwrap();
        Self { directory, file }
    }

    fn run(&self, arguments: &[&str]) -> Done {
        Done::of(program().args(arguments).env("SENDOFF_CONFIG", &self.file))
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {}{}", done.text, done.errors);
        done.text
    }

    fn lines(&self, name: &str) -> usize {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap_or_default().lines().count()
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !is_so() {
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn the_starter_is_right_and_can_be_run() {
    let starter = run(&["config", "init"]).text;
    let config = Configured::new(&starter.replace("sqlite:sendoff.db", "sqlite:DIR/shop.db"));
    assert_eq!(config.ok(&["config", "check"]), "right: 1 store, 1 target\n");
    let connected = config.run(&["config", "check", "--connect"]);
    assert_eq!(connected.code, 3, "{}", connected.errors);
    assert!(connected.errors.contains("sendoff migrate"), "{}", connected.errors);
    config.ok(&["migrate"]);
    assert_eq!(
        config.ok(&["config", "check", "--connect"]),
        "right: 1 store, 1 target, and all of them answer\n"
    );
    let checked = config.run(&["config", "check", "--connect", "--json"]).json();
    assert_eq!(checked, serde_json::json!({ "stores": 1, "targets": 1, "connected": true }));
    config.ok(&["enqueue", "t"]);
    assert!(config.ok(&["status"]).contains("default"));
}

#[test]
fn two_targets_of_two_stores_are_served_by_one_process() {
    let config = Configured::new(
        "[stores.eu]\nurl = \"sqlite:DIR/eu.db\"\n[stores.us]\nurl = { env = \"US_DATABASE\" }\n\
         [relay]\nlease = \"2s\"\n\
         [targets.default]\nsink = \"file:DIR/default.jsonl\"\n\
         [targets.billing]\nworkers = 2\nsink = { url = \"file:DIR/billing.jsonl\", rotate_bytes = 1000000 }\n",
    );
    let us = format!("sqlite:{}", config.directory.path().join("us.db").display());
    let given = |arguments: &[&str]| {
        let mut command = program();
        command.args(arguments).env("SENDOFF_CONFIG", &config.file).env("US_DATABASE", &us);
        command
    };
    let unset = config.run(&["status", "--store", "us"]);
    assert_eq!(unset.code, 2);
    assert!(
        unset.errors.contains("`stores.us.url`: the environment variable US_DATABASE"),
        "{}",
        unset.errors
    );
    for store in ["eu", "us"] {
        let ok = |arguments: &[&str]| {
            let done = Done::of(&mut given(&[arguments, &["--store", store]].concat()));
            assert_eq!(done.code, 0, "{}", done.errors);
        };
        ok(&["migrate"]);
        ok(&["enqueue", "t"]);
        ok(&["enqueue", "t", "--target", "billing"]);
    }
    let several = Done::of(&mut given(&["status"]));
    assert_eq!(several.code, 2);
    assert!(several.errors.contains("--store eu, --store us"), "{}", several.errors);
    let unknown = Done::of(&mut given(&["status", "--store", "asia"]));
    assert!(unknown.code == 2 && unknown.errors.contains("it has eu, us"), "{}", unknown.errors);
    let mut relay = given(&["run"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    until("all four are delivered", || {
        config.lines("default.jsonl") == 2 && config.lines("billing.jsonl") == 2
    });
    relay.kill().unwrap();
    relay.wait().unwrap();
}

#[test]
fn the_command_line_goes_over_the_file() {
    let config = Configured::new(
        "[store]\nurl = \"sqlite:DIR/shop.db\"\n[targets.default]\nsink = \"file:DIR/a.jsonl\"\n[targets.other]\nsink = \"file:DIR/b.jsonl\"\n",
    );
    config.ok(&["migrate"]);
    config.ok(&["enqueue", "t"]);
    config.ok(&["enqueue", "t", "--target", "other"]);
    let missing = config.run(&["run", "--target", "thrid"]);
    assert!(missing.code == 2 && missing.errors.contains("no target \"thrid\""), "{}", missing.errors);
    let mut command = program();
    let mut relay = command.args(["run", "--target", "other"]).env("SENDOFF_CONFIG", &config.file);
    relay = relay.stderr(std::process::Stdio::null());
    let mut relay = relay.spawn().unwrap();
    until("the one target is served", || config.lines("b.jsonl") == 1);
    relay.kill().unwrap();
    relay.wait().unwrap();
    assert_eq!(config.lines("a.jsonl"), 0, "and no other");
}

#[test]
fn what_was_delivered_is_kept_for_a_while() {
    let config = Configured::new(
        "[store]\nurl = \"sqlite:DIR/shop.db\"\n[targets.default]\nsink = \"null:\"\n[retention]\npublished = \"3s\"\n",
    );
    config.ok(&["migrate"]);
    let id = config.ok(&["enqueue", "t"]).trim().to_owned();
    let mut relay = program();
    let mut relay = relay
        .arg("run")
        .env("SENDOFF_CONFIG", &config.file)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("it is history", || config.run(&["explain", &id]).text.starts_with("It was delivered at"));
    until("it is gone", || config.run(&["explain", &id]).code == 1);
    relay.kill().unwrap();
    relay.wait().unwrap();
}

#[test]
fn what_is_wrong_is_named() {
    for (text, words) in [
        (
            "[store]\nurl = \"sqlite:x\"\nnmaes = \"y\"\n",
            &["line 3", "unknown field `nmaes`", "did you mean `names`?"][..],
        ),
        ("[store]\nurl = \"sqlite:x\"\n", &["no target", "[targets.default]"]),
        ("[targets.default]\nsink = \"null:\"\n", &["no `store`"]),
        (
            "[store]\nurl = \"sqlite:x\"\n[targets.default]\nsink = \"ftp://u:s3cret@h\"\n",
            &["target \"default\"", "\"ftp\" is no sink"],
        ),
        (
            "[store]\nurl = \"sqlite:x\"\n[targets.default]\nsink = { url = \"null:\", stream = \"s3cret\" }\n",
            &["target \"default\"", "unknown field `stream`"],
        ),
        (
            "[store]\nurl = \"sqlite:x\"\n[targets.default]\nsink = { url = \"file:x\", kepe = 3 }\n",
            &["unknown field `kepe`", "keep"],
        ),
        (
            "[store]\nurl = \"sqlite:x\"\n[targets.default]\nsink = \"null:\"\nlease = \"soon\"\n",
            &["line 5", "is no time"],
        ),
        (
            "[store]\nurl = \"sqlite:x\"\n[targets.default]\nsink = \"null:\"\non_exhausted = \"stop\"\n",
            &["line 5", "block"],
        ),
        (
            "[store]\nurl = \"sqlite:x\"\n[stores.a]\nurl = \"sqlite:y\"\n[targets.default]\nsink = \"null:\"\n",
            &["not both"],
        ),
        (
            "[store]\nurl = \"sqlite:x\"\nsettle_asynchronously = true\n[targets.default]\nsink = \"null:\"\n",
            &["settle_asynchronously", "for PostgreSQL alone"],
        ),
        ("not toml", &["line 1"]),
    ] {
        let config = Configured::new(text);
        let done = config.run(&["config", "check"]);
        assert_eq!(done.code, 2, "{text}: {}{}", done.text, done.errors);
        for word in words {
            assert!(done.errors.contains(word), "{text}: no {word:?} in {}", done.errors);
        }
    }
    what_is_wrong_of_a_table_is_named();
    let missing = run(&["config", "check", "/does/not/exist.toml"]);
    assert!(missing.code == 2 && missing.errors.contains("config init"), "{}", missing.errors);
}

fn what_is_wrong_of_a_table_is_named() {
    let own = "[table]\nname = \"o\"\npreset = \"governance\"\n";
    for (text, words) in [
        (
            "[table]\nname = \"o\"\npaylaod = \"x\"\n".to_owned(),
            &["line 7", "unknown field `paylaod`", "did you mean `payload`?"][..],
        ),
        ("[table]\npreset = \"governance\"\n".to_owned(), &["line 5", "`name`"]),
        ("[table]\nname = \"o\"\npreset = \"govrnance\"\n".to_owned(), &["line 7", "governance"]),
        ("[table]\nname = \"o\"\n".to_owned(), &["line 5", "where are claims kept?"]),
        (
            "[table]\nname = \"o\"\n[table.beside]\nat_ende = \"leave\"\n".to_owned(),
            &["line 8", "did you mean `at_end`?"],
        ),
        (format!("{own}[table.beside]\n"), &["line 5", "leave out `beside`"]),
        (format!("{own}[retention]\ndead = \"1d\"\n"), &["[retention]", "the host's"]),
        (format!("{own}[targets.other]\nsink = \"null:\"\n"), &["which target a row is for", "`target`"]),
        (
            format!("{own}[targets.default.retry]\nattempts = 3\n[relay]\nworkers = 2\n")
                .replace("preset", "epochs = { at = \"days\" }\npreset"),
            &["millis"],
        ),
    ] {
        let head = "[store]\nurl = \"sqlite:x\"\n[targets.default]\nsink = \"null:\"\n";
        let done = Configured::new(&format!("{head}{text}")).run(&["config", "check"]);
        assert_eq!(done.code, 2, "{text}: {}{}", done.text, done.errors);
        for word in words {
            assert!(done.errors.contains(word), "{text}: no {word:?} in {}", done.errors);
        }
    }
    for (key, word) in [("listen = true", "listen"), ("names = \"x\"", "names")] {
        let text = format!("[store]\nurl = \"sqlite:x\"\n{key}\n[targets.default]\nsink = \"null:\"\n{own}");
        let done = Configured::new(&text).run(&["config", "check"]);
        assert!(done.code == 2 && done.errors.contains(word), "{}", done.errors);
    }
    for key in ["lanes = \"0..3\"", "exclusive = true", "on_exhausted = \"block\""] {
        let text = format!("[store]\nurl = \"sqlite:x\"\n[targets.default]\nsink = \"null:\"\n{key}\n{own}");
        let done = Configured::new(&text).run(&["config", "check"]);
        assert!(done.code == 2 && done.errors.contains("claimed by rows"), "{key}: {}", done.errors);
    }
}

#[test]
fn a_server_that_does_not_answer_is_named_without_its_password() {
    let config = Configured::new(
        "[store]\nurl = \"postgres://u:s3cret@127.0.0.1:1/x\"\n[targets.default]\nsink = \"null:\"\n",
    );
    config.ok(&["config", "check"]);
    let done = config.run(&["config", "check", "--connect"]);
    assert_eq!(done.code, 3, "{}", done.errors);
    assert!(done.errors.contains("store"), "{}", done.errors);
}

#[test]
fn the_schema_is_one() {
    let schema = run(&["config", "schema"]).json();
    assert_eq!(schema["properties"]["targets"]["type"], "object");
    assert_eq!(schema["additionalProperties"], false);
    assert!(schema["$defs"]["TargetOptions"]["properties"]["concurrency"]["description"].is_string());
}

/// Without a configuration everything can be said on the command line.
#[test]
fn nothing_is_asked_of_somebody_who_only_tries() {
    let outbox = Outbox::new();
    let done = outbox.run(&["run"]);
    assert!(done.code == 2 && done.errors.contains("--sink URL"), "{}", done.errors);
}
