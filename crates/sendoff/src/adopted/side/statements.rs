//! Filling the statements of a side table.

use crate::claim::{Direction, Ident, Key, TableName, Value};
use crate::error::StoreError;
use crate::stores::sql::{Bind, Dialect, Statement};

use super::super::mapping::Mapping;

/// What a hole `{:name}` is filled with.
pub(super) type Args<'a> = &'a [(&'static str, Bind)];

/// Fills statements for one host's table and the one beside it.
#[derive(Debug, Clone)]
pub(super) struct Statements {
    pub(super) dialect: Dialect,
    words: Vec<(&'static str, String)>,
    wanted: Vec<(String, Bind)>,
}

impl Statements {
    pub(super) fn new(dialect: Dialect, side: &TableName, mapping: &Mapping) -> Result<Self, StoreError> {
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
        let words = vec![
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
        Ok(Self { dialect, words, wanted })
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
            _ => {
                let own = self.words.iter().find(|(known, _)| *known == hole).map(|(_, word)| word);
                let word =
                    own.or_else(|| more.iter().find(|(known, _)| *known == hole).map(|(_, word)| word));
                let Some(word) = word else { unreachable!("statement file has an unknown hole {{{hole}}}") };
                // Words may have holes of their own: assignments bind values.
                match hole {
                    "set" | "write" => self.nested(to, word, more, args, ids),
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
