//! Every statement as it is sent, for one claim: so that a review sees real SQL. After a change on purpose,
//! `SENDOFF_UPDATE_SNAPSHOTS=1 cargo test -p sendoff snapshots` writes the files anew.

use std::path::Path;
use std::time::Duration;

use super::dialect::Dialect;
use super::inbox::{follow_script, once_script};
use super::layout::{ColumnInfo, ColumnKind, Layout, UniqueKey};
use super::outbox::Arg;
use super::render::Renderer;
use super::{Bind, Names, Templates};
use crate::claim::{ClaimSpec, Ident, Key, Table, col, now, now_minus, now_plus};
use crate::event::EventId;
use crate::inbox::Arrival;

fn layout(dialect: Dialect) -> Layout {
    let moment = if dialect == Dialect::Sqlite { ColumnKind::Int } else { ColumnKind::Moment };
    let columns = [
        ("tenant", ColumnKind::Text, false),
        ("id", ColumnKind::Int, false),
        ("status", ColumnKind::Text, true),
        ("lease until", moment, true),
        ("attempts", ColumnKind::Int, true),
    ];
    let columns = columns
        .into_iter()
        .map(|(name, kind, nullable)| ColumnInfo { name: Ident::new(name).unwrap(), kind, nullable })
        .collect();
    let unique =
        [UniqueKey { index: "PRIMARY".to_owned(), columns: vec!["tenant".to_owned(), "id".to_owned()] }];
    let table = Table::new("shop.jobs", ["tenant", "id"]).unwrap();
    Layout::check(table, columns, &unique, dialect).unwrap()
}

fn spec() -> ClaimSpec {
    let free = col("lease until").is_null().or(col("lease until").lt(now()));
    ClaimSpec::on("shop.jobs")
        .eligible(col("status").is_in(["ready", "failed"]).and(free))
        .set("status", "running")
        .set("lease until", now_plus(Duration::from_secs(30)))
        .add("attempts", 1)
        .order_by("id")
        .limit(100)
        .build()
        .unwrap()
}

/// What is old enough to be forgotten.
fn removal() -> ClaimSpec {
    ClaimSpec::on("shop.jobs")
        .eligible(col("status").eq("done").and(col("lease until").lt(now_minus(Duration::from_secs(30)))))
        .remove()
        .order_by("lease until")
        .limit(100)
        .build()
        .unwrap()
}

fn check(dialect: Dialect, file: &str, statements: &[(&str, &'static str)]) {
    let layout = layout(dialect);
    let keys = [Key(vec!["a".into(), 1.into()]), Key(vec!["b".into(), 2.into()])];
    let mut shown = String::new();
    for (name, template) in statements {
        let spec = if name.starts_with("claim_remove") { removal() } else { spec() };
        let filled = Renderer::new(dialect, &layout, &spec)
            .keys(&keys)
            .scan_index(Some("ready"))
            .fill(template)
            .unwrap();
        shown.push_str(&format!("-- {name}\n{}\n-- binds {:?}\n\n", filled.sql, filled.binds));
    }
    compare(file, &shown);
}

fn compare(file: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/stores/sql/snapshots").join(file);
    if std::env::var_os("SENDOFF_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == expected, "{file} is not what is sent any more; it would be:\n{shown}");
}

#[test]
fn postgres() {
    let statements = [
        ("claim.sql", include_str!("../postgres/claim.sql")),
        ("find.sql", include_str!("../postgres/find.sql")),
        ("claim_one.sql", include_str!("../postgres/claim_one.sql")),
        ("claim_remove.sql", include_str!("../postgres/claim_remove.sql")),
        ("claim_remove_one.sql", include_str!("../postgres/claim_remove_one.sql")),
    ];
    check(Dialect::Postgres, "postgres.txt", &statements);
}

#[test]
fn sqlite() {
    let statements = [
        ("claim_1_pick.sql", include_str!("../sqlite/claim_1_pick.sql")),
        ("claim_2_mark.sql", include_str!("../sqlite/claim_2_mark.sql")),
        ("find.sql", include_str!("../sqlite/find.sql")),
        ("claim_one.sql", include_str!("../sqlite/claim_one.sql")),
        ("claim_remove.sql", include_str!("../sqlite/claim_remove.sql")),
        ("claim_remove_one.sql", include_str!("../sqlite/claim_remove_one.sql")),
    ];
    check(Dialect::Sqlite, "sqlite.txt", &statements);
}

#[test]
fn mysql() {
    let statements = [
        ("claim_1_lock.sql", include_str!("../mysql/claim_1_lock.sql")),
        ("claim_2_mark.sql", include_str!("../mysql/claim_2_mark.sql")),
        ("claim_3_read.sql", include_str!("../mysql/claim_3_read.sql")),
        ("find.sql", include_str!("../mysql/find.sql")),
        ("claim_one.sql", include_str!("../mysql/claim_one.sql")),
        ("claim_remove_1_lock.sql", include_str!("../mysql/claim_remove_1_lock.sql")),
        ("claim_remove_2_delete.sql", include_str!("../mysql/claim_remove_2_delete.sql")),
        ("claim_remove_2_delete_if.sql", include_str!("../mysql/claim_remove_2_delete_if.sql")),
        ("claim_remove_one_1_lock.sql", include_str!("../mysql/claim_remove_one_1_lock.sql")),
    ];
    check(Dialect::Mysql, "mysql.txt", &statements);
}

#[test]
fn inbox() {
    for (dialect, file) in [
        (Dialect::Postgres, "inbox_postgres.txt"),
        (Dialect::Sqlite, "inbox_sqlite.txt"),
        (Dialect::Mysql, "inbox_mysql.txt"),
    ] {
        let templates = Templates { dialect, names: Names::default_for(dialect).unwrap() };
        let ids = [EventId::generate(), EventId::generate()];
        let arrival = Arrival { epoch: Some(7), ..Arrival::new(ids[0]) };
        let mut shown = String::new();
        for (name, script) in [
            ("once_many, of two", once_script(&templates, "billing", &ids, false).unwrap()),
            ("follow", follow_script(&templates, ["billing", "/sendoff", "k"], &arrival, 42).unwrap()),
        ] {
            for statement in script.before.iter().chain([&script.last]) {
                shown.push_str(&format!("-- {name}\n{}\n\n", statement.sql));
            }
        }
        compare(file, &shown);
    }
}

/// A claim of tasks, statement by statement.
fn check_tasks(dialect: Dialect, file: &str, statements: &[(&str, &'static str)]) {
    let templates = Templates { dialect, names: Names::default_for(dialect).unwrap() };
    let worker = templates.worker(crate::outbox::WorkerId(uuid::Uuid::from_u128(1)));
    let lock = if dialect == Dialect::Sqlite { "" } else { "FOR UPDATE SKIP LOCKED" };
    let wanted = vec![
        ("kinds", Arg::Bound(Bind::Texts(vec!["a".to_owned(), "b".to_owned()]))),
        ("limit", Arg::from(100_u32)),
        ("worker", worker.clone()),
    ];
    let which =
        [2, 3].map(|id| vec![("task", Arg::Bound(templates.uuid(uuid::Uuid::from_u128(id))))]).to_vec();
    let args = [
        ("worker", worker),
        ("kind", Arg::from("a")),
        ("limit", Arg::from(100_u32)),
        ("lock", Arg::Sql(lock)),
        (
            "tasks",
            Arg::List(vec![
                templates.uuid(uuid::Uuid::from_u128(2)),
                templates.uuid(uuid::Uuid::from_u128(3)),
            ]),
        ),
        ("now", Arg::Now(0)),
        ("which", Arg::Union(include_str!("../mysql/tasks/which.sql"), which)),
        ("wanted", Arg::Union(include_str!("../postgres/tasks/claim_wanted_many.sql"), vec![wanted])),
    ];
    let mut shown = String::new();
    for (name, template) in statements {
        let filled = templates.fill(template, &args).unwrap();
        shown.push_str(&format!("-- {name}\n{}\n-- binds {:?}\n\n", filled.sql, filled.binds));
    }
    compare(file, &shown);
}

/// The claim that every dialect has.
const FLOOR: [(&str, &str); 7] = [
    ("claim_1_may.sql", include_str!("tasks/claim_1_may.sql")),
    ("claim_2_limit.sql", include_str!("tasks/claim_2_limit.sql")),
    ("claim_3_running.sql", include_str!("tasks/claim_3_running.sql")),
    ("claim_4_pick.sql", include_str!("tasks/claim_4_pick.sql")),
    ("drop_entries.sql", include_str!("tasks/drop_entries.sql")),
    ("claim_5_read.sql", include_str!("tasks/claim_5_read.sql")),
    ("claim_6_mark.sql", include_str!("tasks/claim_6_mark.sql")),
];

#[test]
fn tasks_on_postgres() {
    let fast = [("claim.sql", include_str!("../postgres/tasks/claim.sql"))];
    check_tasks(Dialect::Postgres, "tasks_postgres.txt", &fast);
}

#[test]
fn tasks_on_sqlite() {
    check_tasks(Dialect::Sqlite, "tasks_sqlite.txt", &FLOOR);
}

#[test]
fn tasks_on_mysql() {
    let mut statements = FLOOR;
    statements[4] = ("drop_entries.sql", include_str!("../mysql/tasks/drop_entries.sql"));
    check_tasks(Dialect::Mysql, "tasks_mysql.txt", &statements);
}
