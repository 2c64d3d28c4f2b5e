//! What is in `deploy/` fits the program: its metrics, its configuration, its probes.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sendoff_relay::metrics::{ALL, Kind, Metric};
use serde::Deserialize as _;
use serde_yaml_ng::Value;

fn deploy(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(deploy(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every document of a file.
fn yaml(path: &str) -> Vec<Value> {
    let text = read(path);
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    documents
        .map(|document| Value::deserialize(document).unwrap_or_else(|error| panic!("{path}: {error}")))
        .collect()
}

/// What the strings of a document say under this key, however deep.
fn strings(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Mapping(mapping) => {
            for (name, value) in mapping {
                if let (Some(name), Some(text)) = (name.as_str(), value.as_str())
                    && name == key
                {
                    found.push(text.to_owned());
                }
                strings(value, key, found);
            }
        }
        Value::Sequence(values) => values.iter().for_each(|value| strings(value, key, found)),
        _ => {}
    }
}

/// The metrics that an expression names, each with how it goes on.
fn metrics(expression: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find("sendoff_") {
        let end = rest[at..].find(|letter: char| !(letter.is_ascii_lowercase() || letter == '_'));
        let end = end.map_or(rest.len(), |end| at + end);
        found.push((rest[at..end].to_owned(), rest[end..].to_owned()));
        rest = &rest[end..];
    }
    found
}

/// The metric of a name: that of a histogram has a word more.
fn known(name: &str) -> &'static Metric {
    let parts = ["_bucket", "_sum", "_count"];
    let found = ALL.iter().find(|metric| match metric.kind {
        Kind::Histogram => parts.iter().any(|part| name.strip_suffix(part) == Some(metric.name)),
        _ => metric.name == name,
    });
    found.unwrap_or_else(|| panic!("there is no metric {name}"))
}

/// The names and labels of an expression are those of the list in code.
fn check(expression: &str) -> BTreeSet<&'static str> {
    let mut used = BTreeSet::new();
    for (name, rest) in metrics(expression) {
        let metric = known(&name);
        used.insert(metric.name);
        let Some((matchers, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            continue;
        };
        for matcher in matchers.split(',') {
            let label = matcher.split(['=', '!']).next().unwrap();
            assert!(metric.labels.contains(&label), "{name} has no label {label}: {expression}");
        }
    }
    assert!(!used.is_empty(), "no metric in {expression}");
    used
}

#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    let dashboard: Value = serde_yaml_ng::to_value(
        serde_json::from_str::<serde_json::Value>(&read("grafana/sendoff.json")).unwrap(),
    )
    .unwrap();
    let mut expressions = Vec::new();
    strings(&dashboard, "expr", &mut expressions);
    strings(&dashboard["templating"], "query", &mut expressions);
    expressions.retain(|expression| expression != "prometheus");
    assert!(expressions.len() > 20, "{expressions:#?}");
    let used: BTreeSet<&str> = expressions.iter().flat_map(|expression| check(expression)).collect();
    assert!(used.len() > 15, "{used:?}");
    let ids: Vec<i64> = dashboard["panels"]
        .as_sequence()
        .unwrap()
        .iter()
        .map(|panel| panel["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "a panel's id is there twice");
}

#[test]
fn alerts_are_about_metrics_that_there_are() {
    let rules = yaml("prometheus/alerts.yaml");
    let runbook = include_str!("../../../docs/runbook.md");
    let mut names = BTreeSet::new();
    for group in rules[0]["groups"].as_sequence().unwrap() {
        for rule in group["rules"].as_sequence().unwrap() {
            let name = rule["alert"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            check(rule["expr"].as_str().unwrap());
            let description = rule["annotations"]["description"].as_str().unwrap();
            assert!(
                rule["labels"]["severity"].is_string() && rule["annotations"]["summary"].is_string(),
                "{name}"
            );
            if let Some(code) = description.split("Runbook: ").nth(1) {
                let heading = format!("## {}\n", code.trim_end_matches('.'));
                assert!(runbook.contains(&heading), "{name}: the runbook has no {heading}");
            }
        }
    }
    assert!(names.len() > 10, "{names:?}");
    let promtool = std::env::var("SENDOFF_TEST_PROMTOOL").unwrap_or_else(|_| "promtool".to_owned());
    let checked =
        Command::new(promtool).args(["check", "rules"]).arg(deploy("prometheus/alerts.yaml")).output();
    match checked {
        Ok(checked) => assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout)),
        Err(_) => println!("skipped: there is no promtool"),
    }
}

#[test]
fn an_expression_with_a_metric_that_is_none_would_be_found() {
    for wrong in [
        "sum(sendoff_events_lost_total)",
        "sendoff_publish_duration_seconds",
        "sendoff_store_up{target=\"x\"}",
        "up",
    ] {
        assert!(std::panic::catch_unwind(|| check(wrong)).is_err(), "{wrong}");
    }
    assert_eq!(
        metrics("a(sendoff_x_total{b=\"c\"}[5m]) > sendoff_y"),
        [
            ("sendoff_x_total".to_owned(), "{b=\"c\"}[5m]) > sendoff_y".to_owned()),
            ("sendoff_y".to_owned(), String::new())
        ]
    );
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sendoff"));
    command
        .args(arguments)
        .env_remove("SENDOFF_STORE")
        .env_remove("SENDOFF_CONFIG")
        .env_remove("SENDOFF_ADMIN");
    command
}

/// The objects of the manifest by their kind.
fn manifest() -> BTreeMap<String, Value> {
    let documents = yaml("kubernetes/sendoff.yaml").into_iter();
    documents.map(|object| (object["kind"].as_str().unwrap().to_owned(), object)).collect()
}

/// What the manifest's configuration says, and the file of it.
fn configuration(objects: &BTreeMap<String, Value>) -> (toml::Table, tempfile::TempDir, PathBuf) {
    let text = objects["ConfigMap"]["data"]["sendoff.toml"].as_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sendoff.toml");
    std::fs::write(&file, text).unwrap();
    (text.parse().unwrap(), directory, file)
}

#[test]
fn the_configuration_of_the_manifest_is_right() {
    let objects = manifest();
    let (_, _directory, file) = configuration(&objects);
    let mut check = program(&["config", "check"]);
    check.arg(&file);
    let container = &objects["Deployment"]["spec"]["template"]["spec"]["containers"][0];
    for variable in container["env"].as_sequence().unwrap() {
        let reference = &variable["valueFrom"]["secretKeyRef"];
        let key = reference["key"].as_str().unwrap();
        assert_eq!(reference["name"], objects["Secret"]["metadata"]["name"]);
        let value = objects["Secret"]["stringData"][key].as_str();
        check.env(
            variable["name"].as_str().unwrap(),
            value.unwrap_or_else(|| panic!("the secret has no {key}")),
        );
    }
    let checked = check.output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let without = program(&["config", "check"]).arg(&file).env_remove("DATABASE_URL").output().unwrap();
    assert_eq!(without.status.code(), Some(2), "the secrets are looked at");
}

#[test]
fn the_manifest_probes_what_there_is_and_waits_for_what_is_in_flight() {
    let objects = manifest();
    let (config, _directory, _) = configuration(&objects);
    let pod = &objects["Deployment"]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let admin = config["admin"]["listen"].as_str().unwrap().rsplit_once(':').unwrap().1;
    assert_eq!(container["ports"][0]["containerPort"].as_u64().unwrap().to_string(), admin);
    for (probe, path) in
        [("livenessProbe", "/healthz"), ("startupProbe", "/healthz"), ("readinessProbe", "/readyz")]
    {
        assert_eq!(container[probe]["httpGet"]["path"], path);
        assert_eq!(container[probe]["httpGet"]["port"], container["ports"][0]["name"]);
    }
    let seconds = |text: &str| humantime::parse_duration(text).unwrap().as_secs();
    let grace = seconds(config["relay"]["grace"].as_str().unwrap());
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > grace);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    let labels = &objects["Deployment"]["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&objects["Deployment"]["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(&objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"], labels);
    let mount = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
    let arguments: Vec<&str> =
        container["args"].as_sequence().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(arguments, ["run", "--config", &format!("{mount}/sendoff.toml")]);
}

/// The words of an instruction of the last stage that is written as a list.
fn instruction(dockerfile: &str, before: &str) -> Vec<String> {
    let stage = dockerfile.rsplit_once("\nFROM ").unwrap().1;
    let line = stage
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(before))
        .unwrap_or_else(|| panic!("no {before}"));
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{before}{line}: {error}"))
}

#[test]
fn the_image_runs_what_the_program_understands_and_not_as_root() {
    let dockerfile = read("docker/Dockerfile");
    assert_eq!(instruction(&dockerfile, "ENTRYPOINT "), ["sendoff"]);
    let last = dockerfile.rsplit_once("\nFROM ").unwrap().1;
    let user = last.lines().find_map(|line| line.strip_prefix("USER ")).unwrap();
    assert!(user.split(':').all(|number| number.parse::<u32>().unwrap() > 0), "{user}");
    assert!(
        last.lines().position(|line| line.starts_with("USER "))
            < last.lines().position(|line| line.starts_with("ENTRYPOINT"))
    );
    assert!(last.contains("HEALTHCHECK "));
    // Two lines have it: this one is of the health check, and indented.
    let health = last.lines().find_map(|line| line.strip_prefix("    CMD ")).unwrap();
    let health: Vec<String> = serde_json::from_str(health).unwrap();
    let words: Vec<&str> = health.iter().skip(1).map(String::as_str).collect();
    let code = program(&words).output().unwrap().status.code();
    assert!(matches!(code, Some(0 | 1 | 3)), "{words:?} is not understood: {code:?}");
    let run: Vec<String> =
        serde_json::from_str(last.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap()).unwrap();
    let words: Vec<&str> = run.iter().map(String::as_str).collect();
    let output = program(&words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("which outbox?"), "{words:?}: {errors}");
    let ignored = std::fs::read_to_string(deploy("../.dockerignore")).unwrap();
    for secret in [".git", "**/target", "**/*.env", "**/*.key"] {
        assert!(ignored.lines().any(|line| line == secret), "{secret}");
    }
}

#[test]
fn the_unit_is_one() {
    let unit = read("systemd/sendoff.service");
    assert!(unit.contains("\nRestartPreventExitStatus=2\n") && unit.contains("\nDynamicUser=yes\n"));
    let stop = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    assert!(stop.parse::<u64>().unwrap() > sendoff_relay::TargetConfig::default().grace.as_secs());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sendoff.service");
    // Where the program is here.
    std::fs::write(&file, unit.replace("/usr/local/bin/sendoff", env!("CARGO_BIN_EXE_sendoff"))).unwrap();
    let analyze = |arguments: &[&str]| {
        Command::new("systemd-analyze").args(arguments).arg(&file).stdin(Stdio::null()).output()
    };
    let Ok(verified) = analyze(&["verify", "--man=no"]) else {
        println!("skipped: there is no systemd-analyze");
        return;
    };
    let errors = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !errors.contains("sendoff.service:"), "{errors}");
    // 0 is closed, 10 is open; times ten.
    let secure = analyze(&["security", "--offline=yes", "--threshold=25"]).unwrap();
    let table = String::from_utf8_lossy(&secure.stdout);
    assert!(secure.status.success(), "{}{}", table, String::from_utf8_lossy(&secure.stderr));
}
