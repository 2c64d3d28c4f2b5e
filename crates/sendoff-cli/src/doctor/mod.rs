//! `sendoff doctor`: looks at the server, the tables and the outbox, says what is wrong, why it matters and what to do. It changes nothing.
//!
//! A file for each dialect asks its server; `outbox` asks what every outbox can be asked.

mod finding;
mod mysql;
mod outbox;
mod postgres;
mod ranges;
mod report;
mod scale_out;
mod schema;
mod sqlite;
mod tables;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use sendoff::DEFAULT_TARGET;
use sendoff::outbox::Inspect;
use sendoff::stores::{Plan, SchemaState};

use self::finding::{
    CLOCK_DIFFERENCE, FETCH_NOT_BY_INDEX, Finding, SCHEMA_DAMAGED, SCHEMA_MISSING, SCHEMA_NEWER, SCHEMA_STALE,
};
pub(crate) use self::report::Report;
use crate::args::DoctorArgs;
use crate::commands::own_tables;
use crate::exit::Answer;
use crate::output::span;
use crate::site::{Host, Site};

/// Clocks may differ by so much.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(5);

/// Examines it; no, if there is a problem or a warning.
pub(crate) async fn run(args: &DoctorArgs) -> Result<Answer> {
    own_tables(&args.store, "doctor")?;
    let site = Site::untouched(&args.store).await?;
    let mut report = Report::default();
    match &site.host {
        Host::Postgres(pool) => postgres::examine(&site, pool, args, &mut report).await?,
        Host::Mysql(pool) => mysql::examine(&site, pool, args, &mut report).await?,
        Host::Sqlite(pool) => sqlite::examine(&site, pool, args, &mut report).await?,
    }
    let answer = if report.is_healthy() { Answer::Yes } else { Answer::No };
    report.show(args.json)?;
    Ok(answer)
}

/// What is to be said of how the tables stand to this program. None of it: they can be worked with.
fn schema(state: &SchemaState) -> Vec<Finding> {
    let migrate = "`sendoff migrate` does it; `sendoff migrate --print` prints it for your own migrations.";
    let versions = |found: i64, spoken: i64| {
        format!("The outbox's protocol version is {found}, and this program speaks {spoken}.")
    };
    vec![match state {
        SchemaState::Current => return Vec::new(),
        SchemaState::Missing => SCHEMA_MISSING.found(
            "The outbox's tables are not there, or this role may not read them.",
            format!("{migrate} If they are there under another name, give it with --names."),
        ),
        SchemaState::Stale { found, spoken } => {
            SCHEMA_STALE.found(versions(*found, *spoken), format!("Bring the tables up to date: {migrate}"))
        }
        SchemaState::Newer { found, spoken } => {
            SCHEMA_NEWER.found(versions(*found, *spoken), "Update this program, and every relay.")
        }
        other => SCHEMA_DAMAGED.found(
            format!("What the table meta says of the outbox's version cannot be read: {other:?}."),
            "Restore the row protocol_version of the table meta from a backup.",
        ),
    }]
}

/// The outbox, once its tables are known to be there. Said as a finding if it cannot be opened all the same.
fn opened(report: &mut Report, outbox: Result<Arc<dyn Inspect>>) -> Result<Option<Arc<dyn Inspect>>> {
    match outbox {
        Ok(outbox) => Ok(Some(outbox)),
        Err(error) if crate::exit::code(&error) == 4 => {
            let todo = "`sendoff migrate --print` prints how the tables are made; its statements leave alone what is there.";
            report.take(
                "open",
                Ok(vec![SCHEMA_DAMAGED.found(format!("The outbox cannot be opened: {error:#}."), todo)]),
            )?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The targets to look at.
async fn targets(args: &DoctorArgs, inspect: &dyn Inspect) -> Result<Vec<String>> {
    if let Some(target) = &args.target {
        return Ok(vec![target.clone()]);
    }
    let counts = inspect.counts().await?;
    let names: Vec<String> = counts.targets.into_iter().map(|counts| counts.target).collect();
    Ok(if names.is_empty() { vec![DEFAULT_TARGET.to_owned()] } else { names })
}

/// What is to be said of how a fetch is planned.
fn fetch_plan(target: &str, plan: &Plan, todo: &str) -> Option<Finding> {
    if plan.is_served_by_index() {
        return None;
    }
    let how = if plan.sorts { "sorts" } else { "reads all" };
    let plan = plan.text.lines().map(str::trim).collect::<Vec<_>>().join(" | ");
    let what = format!("A fetch of target {target} {how} instead of following an index: {plan}");
    Some(FETCH_NOT_BY_INDEX.found(what, todo))
}

/// This machine's time, in microseconds since 1970.
fn micros_here() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Compares the clocks: `there` was read between the two moments.
fn clock(before: i64, there: i64, after: i64) -> Vec<Finding> {
    let ahead = if there > after { there - after } else { (there - before).min(0) };
    let difference = Duration::from_micros(ahead.unsigned_abs());
    if difference <= CLOCK_DIFFERENCE_MAX {
        return Vec::new();
    }
    let way = if ahead > 0 { "ahead of" } else { "behind" };
    let what = format!("The database's clock is {} {way} this machine's.", span(difference));
    vec![CLOCK_DIFFERENCE.found(what, "Let both machines keep time (chrony, systemd-timesyncd).")]
}

/// How long, from what a database calls seconds.
fn seconds(seconds: f64) -> String {
    span(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_within_what_the_answer_took() {
        let at = |seconds: i64| seconds * 1_000_000;
        assert!(clock(at(100), at(104), at(101)).is_empty());
        assert!(clock(at(100), at(96), at(101)).is_empty());
        assert!(clock(at(100), at(150), at(200)).is_empty(), "a slow answer is no difference");
        assert!(clock(at(100), at(107), at(101))[0].what.contains("6s ahead of"));
        assert!(clock(at(100), at(90), at(101))[0].what.contains("10s behind"));
    }
}
