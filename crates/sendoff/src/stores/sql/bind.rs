//! From a value to what the driver binds, as the column it meets wants it.

use sqlx::types::time::{OffsetDateTime, PrimitiveDateTime};
use uuid::Uuid;

use super::dialect::Dialect;
use super::layout::{ColumnInfo, ColumnKind};
use crate::claim::{EpochUnit, Timestamp, Value};

/// A value in the form in which it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bind {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Uuid(Uuid),
    Json(serde_json::Value),
    Moment(OffsetDateTime),
    PlainMoment(PrimitiveDateTime),
    /// Arrays: PostgreSQL has them.
    Ints(Vec<i64>),
    Texts(Vec<String>),
    Uuids(Vec<Uuid>),
}

/// What stands in the SQL for a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Term {
    /// The word NULL.
    Null,
    /// A bound value.
    Bound(Bind),
    /// A bound text, cast to the column's own type.
    Cast(Bind, String),
    /// The database's time as this kind of column holds it, plus a bound offset if there is one.
    Now(ColumnKind, Option<Bind>),
}

/// What to write for `value` where it meets `column`; an error text if it cannot.
///
/// Databases would convert some of what is refused here, and not all in the same way: MariaDB
/// finds `0 = 'abc'` true. A claim that takes the wrong rows is worse than an error.
pub(crate) fn term(
    dialect: Dialect,
    column: &ColumnInfo,
    epoch: EpochUnit,
    value: &Value,
) -> Result<Term, String> {
    use ColumnKind as K;
    let bound = |bind| Ok(Term::Bound(bind));
    match (&column.kind, value) {
        (_, Value::Null) => Ok(Term::Null),
        (K::Any, value) => any(value, epoch),
        (K::Bool, Value::Bool(flag)) => bound(Bind::Bool(*flag)),
        (K::Bool, Value::Int(number)) if dialect != Dialect::Postgres => bound(Bind::Int(*number)),
        (K::Int | K::Float | K::Decimal, Value::Int(number)) => bound(Bind::Int(*number)),
        (K::Float | K::Decimal, Value::Float(number)) => bound(Bind::Float(*number)),
        (K::Text, Value::Text(text)) => {
            if dialect == Dialect::Postgres && text.contains('\0') {
                return Err(format!(
                    "the text for column `{}` has a NUL, which PostgreSQL cannot hold",
                    column.name
                ));
            }
            bound(Bind::Text(text.clone()))
        }
        (K::Bytes, Value::Bytes(bytes)) => bound(Bind::Bytes(bytes.clone())),
        (K::Uuid, Value::Uuid(id)) => bound(match dialect {
            // MariaDB's uuid type is text on the wire.
            Dialect::Mysql => Bind::Text(id.hyphenated().to_string()),
            Dialect::Sqlite => Bind::Bytes(id.as_bytes().to_vec()),
            Dialect::Postgres => Bind::Uuid(*id),
        }),
        // A key that was read back, in the form in which it is stored.
        (K::Uuid, Value::Text(text)) if dialect == Dialect::Mysql => bound(Bind::Text(text.clone())),
        (K::Uuid, Value::Bytes(bytes)) if dialect == Dialect::Sqlite => bound(Bind::Bytes(bytes.clone())),
        (K::Text, Value::Uuid(id)) => bound(Bind::Text(id.hyphenated().to_string())),
        (K::Bytes, Value::Uuid(id)) => bound(Bind::Bytes(id.as_bytes().to_vec())),
        (K::Int, Value::Timestamp(at)) => bound(Bind::Int(at.as_micros().div_euclid(epoch.micros()))),
        (K::Int, Value::Now { offset_micros }) => {
            Ok(Term::Now(K::Epoch(epoch), nonzero(offset_micros.div_euclid(epoch.micros())).map(Bind::Int)))
        }
        (K::Moment | K::PlainMoment, Value::Timestamp(at)) => {
            moment(dialect, &column.kind, *at).map(Term::Bound)
        }
        (K::Moment | K::PlainMoment, Value::Now { offset_micros }) => Ok(Term::Now(
            column.kind.clone(),
            nonzero(*offset_micros).map(|micros| match dialect {
                Dialect::Sqlite => Bind::Text(modifier(micros)),
                _ => Bind::Int(micros),
            }),
        )),
        (K::Moment, Value::Text(text)) if dialect == Dialect::Sqlite => bound(Bind::Text(text.clone())),
        (K::Text, Value::Timestamp(at)) if dialect == Dialect::Sqlite => {
            moment(dialect, &K::Moment, *at).map(Term::Bound)
        }
        (K::Text, Value::Now { offset_micros }) if dialect == Dialect::Sqlite => {
            Ok(Term::Now(K::Moment, nonzero(*offset_micros).map(|micros| Bind::Text(modifier(micros)))))
        }
        (K::Json, Value::Json(json)) => bound(match dialect {
            Dialect::Sqlite => Bind::Text(json.to_string()),
            _ => Bind::Json(json.clone()),
        }),
        (K::Text, Value::Json(json)) => bound(Bind::Text(json.to_string())),
        (K::Decimal, Value::Text(text)) => cast(dialect, text, "numeric"),
        (K::Other(name), Value::Text(text)) => cast(dialect, text, name),
        (kind, value) => Err(format!(
            "column `{}` is {}; it cannot take or be compared with {}",
            column.name,
            kind.describe(),
            value.kind()
        )),
    }
}

/// The values of a list as one array, where the database has arrays and they are of one simple kind.
pub(crate) fn list(
    dialect: Dialect,
    column: &ColumnInfo,
    epoch: EpochUnit,
    values: &[Value],
) -> Option<Bind> {
    if dialect != Dialect::Postgres {
        return None;
    }
    let binds = values.iter().map(|value| match term(dialect, column, epoch, value) {
        Ok(Term::Bound(bind)) => Some(bind),
        _ => None,
    });
    let binds: Vec<Bind> = binds.collect::<Option<_>>()?;
    macro_rules! all {
        ($kind:ident, $array:ident) => {
            binds
                .iter()
                .map(|bind| match bind {
                    Bind::$kind(value) => Some(value.clone()),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>()
                .map(Bind::$array)
        };
    }
    all!(Int, Ints).or_else(|| all!(Text, Texts)).or_else(|| all!(Uuid, Uuids))
}

fn any(value: &Value, epoch: EpochUnit) -> Result<Term, String> {
    Ok(Term::Bound(match value {
        Value::Null => return Ok(Term::Null),
        Value::Bool(flag) => Bind::Bool(*flag),
        Value::Int(number) => Bind::Int(*number),
        Value::Float(number) => Bind::Float(*number),
        Value::Text(text) => Bind::Text(text.clone()),
        Value::Bytes(bytes) => Bind::Bytes(bytes.clone()),
        Value::Uuid(id) => Bind::Bytes(id.as_bytes().to_vec()),
        Value::Timestamp(at) => Bind::Int(at.as_micros().div_euclid(epoch.micros())),
        Value::Json(json) => Bind::Text(json.to_string()),
        Value::Now { offset_micros } => {
            return Ok(Term::Now(
                ColumnKind::Epoch(epoch),
                nonzero(offset_micros.div_euclid(epoch.micros())).map(Bind::Int),
            ));
        }
    }))
}

fn cast(dialect: Dialect, text: &str, to: &str) -> Result<Term, String> {
    let bind = Bind::Text(text.to_owned());
    Ok(match dialect {
        Dialect::Postgres => Term::Cast(bind, to.to_owned()),
        _ => Term::Bound(bind),
    })
}

fn nonzero(number: i64) -> Option<i64> {
    (number != 0).then_some(number)
}

/// SQLite's way to move a moment; it keeps milliseconds.
fn modifier(micros: i64) -> String {
    let sign = if micros < 0 { '-' } else { '+' };
    let millis = micros.unsigned_abs() / 1_000;
    format!("{sign}{}.{:03} seconds", millis / 1_000, millis % 1_000)
}

pub(crate) fn moment(dialect: Dialect, kind: &ColumnKind, at: Timestamp) -> Result<Bind, String> {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.as_micros()) * 1_000)
        .map_err(|_| "a timestamp lies outside the years -9999 to 9999".to_owned())?;
    Ok(match (dialect, kind) {
        (Dialect::Postgres, ColumnKind::Moment) => Bind::Moment(time),
        (Dialect::Sqlite, _) => Bind::Text(format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}",
            time.year(),
            u8::from(time.month()),
            time.day(),
            time.hour(),
            time.minute(),
            time.second(),
            time.microsecond()
        )),
        _ => Bind::PlainMoment(PrimitiveDateTime::new(time.date(), time.time())),
    })
}

/// Microseconds since 1970 of a moment as a driver returns it.
#[cfg_attr(not(any(feature = "postgres", feature = "mysql")), allow(dead_code))]
pub(crate) fn timestamp(time: OffsetDateTime) -> Timestamp {
    Timestamp::from_micros(i64::try_from(time.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Ident;

    fn meet(dialect: Dialect, kind: ColumnKind, value: impl Into<Value>) -> Result<Term, String> {
        let column = ColumnInfo { name: Ident::new("c").unwrap(), kind, nullable: true };
        term(dialect, &column, EpochUnit::Micros, &value.into())
    }

    #[test]
    fn types_that_databases_would_convert_behind_our_back_are_refused() {
        for dialect in [Dialect::Postgres, Dialect::Sqlite, Dialect::Mysql] {
            for (kind, value) in [
                (ColumnKind::Int, Value::from("abc")),
                (ColumnKind::Int, Value::from(1.5)),
                (ColumnKind::Text, Value::from(1)),
                (ColumnKind::Bytes, Value::from("text")),
                (ColumnKind::Json, Value::from("text")),
                (ColumnKind::Uuid, Value::from(7)),
            ] {
                let error = meet(dialect, kind.clone(), value).expect_err("refused");
                assert!(error.contains("cannot take or be compared"), "{error}");
            }
        }
    }

    #[test]
    fn a_uuid_takes_the_form_its_column_holds() {
        let id = Uuid::from_u128(7);
        assert_eq!(meet(Dialect::Postgres, ColumnKind::Uuid, id), Ok(Term::Bound(Bind::Uuid(id))));
        assert_eq!(
            meet(Dialect::Mysql, ColumnKind::Text, id),
            Ok(Term::Bound(Bind::Text("00000000-0000-0000-0000-000000000007".into())))
        );
        assert_eq!(
            meet(Dialect::Mysql, ColumnKind::Bytes, id),
            Ok(Term::Bound(Bind::Bytes(id.as_bytes().to_vec())))
        );
    }

    #[test]
    fn moments_before_1970_round_down_not_towards_it() {
        let column = ColumnInfo { name: Ident::new("c").unwrap(), kind: ColumnKind::Int, nullable: true };
        let at = Value::Timestamp(Timestamp::from_micros(-1));
        assert_eq!(term(Dialect::Sqlite, &column, EpochUnit::Seconds, &at), Ok(Term::Bound(Bind::Int(-1))));
    }

    #[test]
    fn sqlite_text_sorts_as_time() {
        let text = |micros| match moment(Dialect::Sqlite, &ColumnKind::Moment, Timestamp::from_micros(micros))
        {
            Ok(Bind::Text(text)) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(text(1_700_000_000_000_001), "2023-11-14 22:13:20.000001");
        assert!(text(1_700_000_000_000_001) < text(1_700_000_000_000_010));
    }
}
