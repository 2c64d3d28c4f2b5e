//! Runs the blocks of a document, in their order.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::document::{Block, Document};
use crate::place::{Place, Server, is_required};

/// Sinks that not every build has: how their URLs begin, and whether this one has them.
const BY_FEATURE: [(&[&str], bool); 8] = [
    (&["\"kafka:"], cfg!(feature = "kafka")),
    (&["\"sqs:", "\"sns:"], cfg!(feature = "aws")),
    (&["\"nats:", "\"tls:"], cfg!(feature = "nats")),
    (&["\"amqp:", "\"amqps:"], cfg!(feature = "rabbitmq")),
    (&["\"redis:", "\"rediss:"], cfg!(feature = "redis")),
    (&["\"mqtt:", "\"mqtts:"], cfg!(feature = "mqtt")),
    (&["\"http:", "\"https:"], cfg!(feature = "http")),
    (&["\"inbox:"], cfg!(feature = "inbox")),
];

/// Everything that is for this database.
pub(crate) fn all(document: &Document, server: Server) -> Result<(), String> {
    let place = Place::new(server);
    prepare(document, server, &place)?;
    for block in document.blocks.iter().filter(|block| block.server() == Some(server)) {
        let at = format!("{}:{}", document.path, block.line);
        match block.language.as_str() {
            "sh" => shell(&at, &place, &block.text)?,
            "toml" => configuration(&at, &place, block)?,
            "python" => python(&at, server, &place, &block.text)?,
            _ => sql(&at, server, &place, &block.text)?,
        }
    }
    Ok(())
}

/// What a reader has when he comes to this document: `setup/STEM.SERVER.sql`, then on SQLite `setup/STEM.sh`.
fn prepare(document: &Document, server: Server, place: &Place) -> Result<(), String> {
    let setup = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/docs/setup");
    let read = |name: String| std::fs::read_to_string(setup.join(name)).ok();
    if let Some(script) = read(format!("{}.{}.sql", document.stem(), server.name())) {
        sql("setup", server, place, &script)?;
    }
    if let Some(script) = read(format!("{}.sh", document.stem())).filter(|_| server == Server::Sqlite) {
        shell("setup", place, &script)?;
    }
    Ok(())
}

/// As one script, so that what is exported stays. `$EVENT` and the like are made by the document itself, or by its preparation, in `variables`.
fn shell(at: &str, place: &Place, script: &str) -> Result<(), String> {
    let mut command = place.command("bash");
    command.args(["-eu", "-o", "pipefail", "-c"]);
    command.arg(format!("if [ -f variables ]; then . ./variables; fi\n{script}"));
    succeeded(at, script, &command.output().unwrap())
}

fn configuration(at: &str, place: &Place, block: &Block) -> Result<(), String> {
    let has = |urls: &[&str]| urls.iter().any(|url| block.text.contains(url));
    if BY_FEATURE.iter().any(|(urls, is_built)| has(urls) && !is_built) {
        eprintln!("{at}: not in this build");
        return Ok(());
    }
    // A part of a configuration stands for one with the rest in it.
    let mut text = block.text.clone();
    if !text.lines().any(|line| line.starts_with("[store")) {
        text.push_str("\n[store]\nurl = \"sqlite:shop.db\"\n");
    }
    if !text.lines().any(|line| line.starts_with("[targets.")) {
        text.push_str("\n[targets.default]\nsink = \"null:\"\n");
    }
    std::fs::write(place.file("sendoff.toml"), &text).unwrap();
    let mut command = place.command("sendoff");
    command.args(["config", "check", "sendoff.toml"]);
    succeeded(at, &text, &command.output().unwrap())
}

fn python(at: &str, server: Server, place: &Place, program: &str) -> Result<(), String> {
    // The one that has the drivers of the servers.
    let python = std::env::var("SENDOFF_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let is_there = || Command::new(&python).arg("--version").output().is_ok();
    if server == Server::Sqlite && !is_required("python") && !is_there() {
        eprintln!("{at}: skipped, no python3");
        return Ok(());
    }
    let mut command = place.command(&python);
    succeeded(at, program, &fed(command.arg("-"), program))
}

fn sql(at: &str, server: Server, place: &Place, script: &str) -> Result<(), String> {
    let mut command = match server {
        Server::Sqlite => place.command("sqlite"),
        Server::Postgres => place.command("psql"),
        Server::Mariadb => place.command("mariadb"),
    };
    if server == Server::Postgres {
        command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", &place.store]);
    } else if server == Server::Mariadb {
        // mysql://user:password@host:port/database, in the words of the client.
        let (user, rest) = place.store.trim_start_matches("mysql://").split_once('@').unwrap();
        let ((user, password), (host, database)) =
            (user.split_once(':').unwrap(), rest.split_once('/').unwrap());
        let (host, port) = host.split_once(':').unwrap();
        command
            .args(["--no-defaults", "-h", host, "-P", port, "-u", user, database])
            .env("MYSQL_PWD", password);
    }
    succeeded(at, script, &fed(&mut command, script))
}

fn fed(command: &mut Command, input: &str) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap_or_else(|error| panic!("{piped:?}: {error}"));
    // It may end before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn succeeded(at: &str, text: &str, output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{at}: {}\n{text}\n---\n{said}", output.status))
}
