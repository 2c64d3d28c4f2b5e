//! Filling the statements of a side table.

use crate::claim::{Direction, Ident, Key, Value};
use crate::error::StoreError;
use crate::stores::sql::{Bind, Dialect, Statement};

use super::super::mapping::Mapping;
use super::{Beside, bundles};

/// What a hole `{:name}` is filled with.
pub(super) type Args<'a> = &'a [(&'static str, Bind)];

/// Fills statements for one host's table and the one beside it.
#[derive(Debug, Clone)]
pub(super) struct Statements {
    pub(super) dialect: Dialect,
    words: Vec<(&'static str, String)>,
    wanted: Vec<(String, Bind)>,
    /// Values are written out instead of bound.
    writes_values: bool,
}

impl Statements {
    pub(super) fn new(dialect: Dialect, beside: &Beside, mapping: &Mapping) -> Result<Self, StoreError> {
        let side = &beside.table;
        let refuse = |error: crate::claim::IdentError| {
            StoreError::rejected("adopt table", mapping.table().to_string(), error.to_string())
        };
        let quote = |name: &str| Ident::new(name).map(|name| dialect.quote(&name)).map_err(refuse);
        let index = |of: &str| {
            let name: String = side.name().as_str().chars().take(40).collect();
            quote(&format!("{name}_{of}"))
        };
        let text = if dialect == Dialect::Mysql { "CHAR" } else { "TEXT" };
        let key = match mapping.key.as_deref().filter(|_| mapping.is_ordered_by_key) {
            Some(column) => format!("CAST(h.{} AS {text})", quote(column)?),
            None => "NULL".to_owned(),
        };
        let mut order = Vec::new();
        for (column, direction) in &mapping.order {
            let way = if *direction == Direction::Descending { " DESC" } else { "" };
            order.push(format!("h.{}{way}", quote(column)?));
        }
        let order_by =
            if order.is_empty() { String::new() } else { format!("ORDER BY {}", order.join(", ")) };
        let (bundle, and_in_no_bundle) = match bundles::are_used(dialect, beside) {
            true => {
                let bundle = dialect.quote_table(&bundles::table_of(side)?);
                let ids = format!("SELECT unnest(b.ids) FROM {bundle} AS b");
                let outside = format!(" AND h.{} NOT IN ({ids})", quote(&mapping.id)?);
                (bundle, outside)
            }
            false => Default::default(),
        };
        let words = vec![
            ("bundle", bundle),
            ("and_in_no_bundle", and_in_no_bundle),
            ("side", dialect.quote_table(side)),
            ("host", dialect.quote_table(mapping.table())),
            ("id", quote(&mapping.id)?),
            ("key", key),
            ("order_by", order_by),
            ("by_place", index("by_place")?),
            ("by_key", index("by_key")?),
            ("for_update", if dialect == Dialect::Sqlite { "" } else { "FOR UPDATE" }.to_owned()),
        ];
        let mut wanted = Vec::new();
        for (column, value) in &mapping.filter {
            wanted.push((format!("h.{}", quote(column)?), bind(value)));
        }
        Ok(Self { dialect, words, wanted, writes_values: false })
    }

    /// Fills one statement; `more` are words of its own.
    pub(super) fn fill(
        &self,
        template: &str,
        more: &[(&str, String)],
        args: Args<'_>,
        ids: &[Key],
    ) -> Statement {
        let mut to = Statement { sql: String::new(), binds: Vec::new() };
        for line in template.lines().filter(|line| !line.trim_start().starts_with("--")) {
            let mut rest = line;
            while let Some((before, after)) = rest.split_once('{') {
                let Some((hole, tail)) = after.split_once('}') else { break };
                to.sql.push_str(before);
                self.hole(&mut to, hole, more, args, ids);
                rest = tail;
            }
            to.sql.push_str(rest);
            to.sql.push('\n');
        }
        to.sql.truncate(to.sql.trim_end().len());
        to
    }

    /// Fills statements that are sent as one text, which can have no bound values: they are written out. PostgreSQL's.
    ///
    /// # Errors
    /// `Rejected` for a value that a text cannot have.
    pub(super) fn written_out(
        &self,
        template: &str,
        more: &[(&str, String)],
        args: Args<'_>,
    ) -> Result<String, StoreError> {
        let binds = args.iter().map(|(_, value)| value).chain(self.wanted.iter().map(|(_, value)| value));
        for value in binds {
            written(value)?;
        }
        let writing = Self { writes_values: true, ..self.clone() };
        Ok(writing.fill(template, more, args, &[]).sql)
    }

    /// A schema's text, for people and for the server. Its comments stay.
    pub(super) fn script(&self, template: &str, more: &[(&str, String)]) -> String {
        let words = self
            .words
            .iter()
            .map(|(name, word)| (*name, word))
            .chain(more.iter().map(|(name, word)| (*name, word)));
        words.fold(template.to_owned(), |text, (name, word)| text.replace(&format!("{{{name}}}"), word))
    }

    fn hole(&self, to: &mut Statement, hole: &str, more: &[(&str, String)], args: Args<'_>, ids: &[Key]) {
        if let Some(name) = hole.strip_prefix(':') {
            let Some((_, value)) = args.iter().find(|(known, _)| *known == name) else {
                unreachable!("no argument for {{:{name}}}")
            };
            self.bind(to, value.clone());
            return;
        }
        match hole {
            "wanted" => self.write_wanted(to),
            "in_ids" => self.in_ids(to, ids),
            "ids" => self.ids(to, ids),
            _ => {
                let own = self.words.iter().find(|(known, _)| *known == hole).map(|(_, word)| word);
                let word =
                    own.or_else(|| more.iter().find(|(known, _)| *known == hole).map(|(_, word)| word));
                let Some(word) = word else { unreachable!("statement file has an unknown hole {{{hole}}}") };
                // Words may have holes of their own: assignments bind values.
                match hole {
                    "set" | "write" | "leave" | "named" => self.nested(to, word, more, args, ids),
                    _ => to.sql.push_str(word),
                }
            }
        }
    }

    fn nested(
        &self,
        to: &mut Statement,
        template: &str,
        more: &[(&str, String)],
        args: Args<'_>,
        ids: &[Key],
    ) {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((hole, tail)) = after.split_once('}') else { break };
            to.sql.push_str(before);
            self.hole(to, hole, more, args, ids);
            rest = tail;
        }
        to.sql.push_str(rest);
    }

    fn write_wanted(&self, to: &mut Statement) {
        to.sql.push_str("1 = 1");
        for (column, value) in &self.wanted {
            to.sql.push_str(&format!(" AND {column} = "));
            self.bind(to, value.clone());
        }
    }

    /// The ids as rows. PostgreSQL's.
    fn ids(&self, to: &mut Statement, ids: &[Key]) {
        let values: Vec<Bind> = ids.iter().filter_map(|id| id.0.first()).map(bind).collect();
        if let Some(array) = array(&values) {
            to.sql.push_str("SELECT unnest(");
            self.bind(to, array);
            to.sql.push(')');
            return;
        }
        to.sql.push_str("VALUES ");
        for (index, value) in values.into_iter().enumerate() {
            to.sql.push_str(if index > 0 { ", (" } else { "(" });
            self.bind(to, value);
            to.sql.push(')');
        }
    }

    fn in_ids(&self, to: &mut Statement, ids: &[Key]) {
        let values: Vec<Bind> = ids.iter().filter_map(|id| id.0.first()).map(bind).collect();
        if self.dialect == Dialect::Postgres
            && let Some(array) = array(&values)
        {
            to.sql.push_str("= ANY (");
            self.bind(to, array);
            to.sql.push(')');
            return;
        }
        to.sql.push_str("IN (");
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                to.sql.push_str(", ");
            }
            self.bind(to, value);
        }
        to.sql.push(')');
    }

    fn bind(&self, to: &mut Statement, value: Bind) {
        if self.writes_values {
            to.sql.push_str(&literal(&value).unwrap_or_else(|| unreachable!("it was looked at before")));
            return;
        }
        to.binds.push(value);
        to.sql.push_str(&self.dialect.placeholder(to.binds.len()));
    }
}

/// A value in the form in which it was read.
pub(super) fn bind(value: &Value) -> Bind {
    match value {
        Value::Bool(flag) => Bind::Bool(*flag),
        Value::Int(number) => Bind::Int(*number),
        Value::Float(number) => Bind::Float(*number),
        Value::Bytes(bytes) => Bind::Bytes(bytes.clone()),
        Value::Uuid(id) => Bind::Uuid(*id),
        Value::Text(text) => Bind::Text(text.clone()),
        other => Bind::Text(other.kind().to_owned()),
    }
}

/// A value as it stands in a statement's text.
///
/// # Errors
/// `Rejected` for one that no text can have.
pub(super) fn written(value: &Bind) -> Result<String, StoreError> {
    literal(value).ok_or_else(|| {
        let detail = format!("{value:?} cannot be written into a statement; claim by another value");
        StoreError::rejected("adopt table", "value", detail)
    })
}

/// A value as PostgreSQL reads it in a statement's text, whatever its settings. None: it cannot be in one.
fn literal(value: &Bind) -> Option<String> {
    Some(match value {
        Bind::Bool(flag) => flag.to_string(),
        // In brackets: a sign is an operator.
        Bind::Int(number) => format!("('{number}'::bigint)"),
        Bind::Float(number) => format!("('{number}'::double precision)"),
        Bind::Uuid(id) => format!("('{}'::uuid)", id.hyphenated()),
        Bind::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("decode('{digits}', 'hex')")
        }
        // With E a backslash is what it is said to be, whatever `standard_conforming_strings` says.
        Bind::Text(text) if !text.contains('\0') => {
            format!("(E'{}'::text)", text.replace('\\', "\\\\").replace('\'', "''"))
        }
        _ => return None,
    })
}

fn array(values: &[Bind]) -> Option<Bind> {
    macro_rules! all {
        ($kind:ident, $array:ident) => {
            values
                .iter()
                .map(|value| match value {
                    Bind::$kind(value) => Some(value.clone()),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>()
                .map(Bind::$array)
        };
    }
    all!(Int, Ints).or_else(|| all!(Text, Texts)).or_else(|| all!(Uuid, Uuids))
}
