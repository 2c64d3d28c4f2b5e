//! From what a table looks like to what its columns mean: a preset whose columns are all there, or else by names and types. Words that nothing in the table tells are
//! not guessed: then the table is only read.

use sendoff::adopted::{AtEnd, Beside, Mapping};

use super::look::{Column, Family, Looked};
use super::names;
use super::written::Written;
use crate::config::table_options::{Preset, beside_name};

/// What a column was taken for.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) column: String,
    pub(super) role: &'static str,
    pub(super) sure: Sure,
    pub(super) why: String,
}

/// How sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sure {
    /// The database says it, or all of a known shape is there.
    Certain,
    /// By name and type.
    Likely,
    /// Nothing else would do.
    Guess,
}

impl Sure {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Guess => "guess",
        }
    }
}

/// Where claims would be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claims {
    /// In the table itself.
    Table,
    /// Beside it; its rows' status is written at the end.
    BesideWriting,
    /// Beside it; it is only read.
    BesideReading,
}

/// What is proposed for a table.
#[derive(Debug, Default)]
pub(super) struct Proposal {
    pub(super) preset: Option<Preset>,
    pub(super) taken: Vec<Taken>,
    pub(super) claims: Option<Claims>,
    pub(super) written: Written,
    /// What is good to know, and what it cannot do.
    pub(super) notes: Vec<String>,
    /// Why there is nothing to propose.
    pub(super) obstacles: Vec<String>,
    /// The column whose values are the names of targets.
    pub(super) target: Option<String>,
}

/// The column whose words say what became of a row, if there is one: they are looked at before anything is proposed.
pub(super) fn status(looked: &Looked) -> Option<&Column> {
    let is_status = |column: &&Column| matches!(column.family, Family::Text | Family::Int);
    by_name(looked, names::STATUS).filter(is_status)
}

/// `words`: those that the status column has.
pub(super) fn propose(looked: &Looked, words: &[String]) -> Proposal {
    let mut proposal = Proposal::default();
    if !looked.rights.read {
        proposal.obstacles.push(format!("this role may not read it: GRANT SELECT ON {} TO it", looked.name));
        return proposal;
    }
    match recognised(looked, words) {
        Some(preset) => of_preset(looked, preset, words, &mut proposal),
        None => By { looked, words, proposal: &mut proposal }.names(),
    }
    proposal
}

fn by_name<'l>(looked: &'l Looked, names: &[&str]) -> Option<&'l Column> {
    names.iter().find_map(|name| looked.columns.iter().find(|column| names::plain(&column.name) == *name))
}

/// The columns that a preset needs, with what they are for.
fn needed(mapping: &Mapping, beside: Option<&Beside>) -> Vec<(&'static str, String)> {
    let own = mapping.meanings().into_iter();
    let mut needed: Vec<_> = own.map(|(role, column)| (role, column.to_owned())).collect();
    if let Some(AtEnd::Write { status, published_at, failures, .. }) = beside.map(Beside::end) {
        needed.push(("status", status.clone()));
        needed.extend(published_at.iter().map(|column| ("published_at", column.clone())));
        needed.extend(failures.iter().map(|column| ("failures", column.clone())));
    }
    needed
}

/// The preset whose columns are all there; that of the most columns, if there are several.
fn recognised(looked: &Looked, words: &[String]) -> Option<Preset> {
    let fits = |preset: &Preset| {
        let (mapping, beside) = preset.mapped(&looked.name, false).ok()?;
        let needed = needed(&mapping, beside.as_ref());
        let is_there = needed.iter().all(|(_, column)| looked.column(column).is_some());
        let knows = words.iter().all(|word| preset.words().contains(&word.as_str()));
        (is_there && knows).then_some((needed.len(), *preset))
    };
    let fitting = Preset::ALL.iter().filter_map(fits).max_by_key(|(columns, _)| *columns)?.1;
    // Without the right to write it, what a preset would write has to be left.
    let is_read_only = fitting == Preset::Debezium;
    (looked.rights.write || is_read_only).then_some(fitting)
}

fn of_preset(looked: &Looked, preset: Preset, words: &[String], proposal: &mut Proposal) {
    let Ok((mapping, beside)) = preset.mapped(&looked.name, false) else { return };
    proposal.preset = Some(preset);
    proposal.written.set("", "preset", preset.word());
    let why = format!("preset {}", preset.word());
    for (role, column) in needed(&mapping, beside.as_ref()) {
        proposal.taken.push(Taken { column, role, sure: Sure::Certain, why: why.clone() });
    }
    proposal.claims = Some(match beside.as_ref().map(Beside::end) {
        None => Claims::Table,
        Some(AtEnd::Leave) => Claims::BesideReading,
        Some(_) => Claims::BesideWriting,
    });
    match preset {
        Preset::Framework => proposal.target = Some("target_broker".to_owned()),
        Preset::Debezium => {
            By { looked, words, proposal: &mut *proposal }.order("id");
            proposal.notes.push(all_of_it(looked));
        }
        Preset::Governance | Preset::Adr003 => {}
    }
    if preset != Preset::Debezium {
        proposal.notes.push(BY_TIME.to_owned());
    }
}

const BY_TIME: &str = "Rows are taken by the time at which they were written, by several workers at once, and no order of keys is promised. `ordered_by_key = true` hands the rows of a key out one after the other: dearer, and no truer than that time is, which is when a transaction began and not when it committed.";
const NO_ORDER: &str = "It has no column that says in which order its rows were written: they are taken as the database gives them, and `ordered_by_key` is not to be had.";

fn all_of_it(looked: &Looked) -> String {
    format!(
        "Nothing in it says what was delivered before: every row that is in it would be delivered, now {}. Delete what was delivered by others first.",
        counted(looked)
    )
}

fn counted(looked: &Looked) -> String {
    match looked.rows {
        super::look::ROWS_MAX => format!("{} or more", looked.rows),
        rows => rows.to_string(),
    }
}

/// A proposal by names and types.
struct By<'a> {
    looked: &'a Looked,
    words: &'a [String],
    proposal: &'a mut Proposal,
}

impl By<'_> {
    fn names(&mut self) {
        let Some(id) = self.id() else {
            let what = "no column tells its rows apart: a claim needs one that is unique and not null. Add a primary key, or a UNIQUE index on one NOT NULL column";
            self.proposal.obstacles.push(what.to_owned());
            return;
        };
        self.take("id", &id, Sure::Certain, "unique, and never null");
        self.topic();
        self.content(&id);
        self.order(&id);
        if !self.proposal.obstacles.is_empty() {
            return;
        }
        let words = Words::of(self.looked, self.words);
        match self.claim_columns().filter(|_| words.is_whole() && self.looked.rights.write) {
            Some(columns) => self.claims(&words, columns),
            None => self.beside(&words),
        }
    }

    fn find(&self, names: &[&str], fits: impl Fn(&Column) -> bool) -> Option<String> {
        let is_free = |column: &&Column| !self.proposal.taken.iter().any(|taken| taken.column == column.name);
        names.iter().find_map(|name| {
            let named = self.looked.columns.iter().find(|column| names::plain(&column.name) == *name);
            named.filter(is_free).filter(|column| fits(column)).map(|column| column.name.clone())
        })
    }

    fn take(&mut self, role: &'static str, column: &str, sure: Sure, why: &str) {
        let (column, why) = (column.to_owned(), why.to_owned());
        self.proposal.taken.push(Taken { column, role, sure, why });
    }

    /// Takes it, and writes it down.
    fn set(&mut self, section: &str, role: &'static str, column: &str) {
        self.take(role, column, Sure::Likely, "by its name and type");
        self.proposal.written.set(section, role, column);
    }

    fn id(&mut self) -> Option<String> {
        let unique = |column: &&Column| self.looked.is_unique(column);
        let named =
            self.looked.columns.iter().filter(unique).find(|column| names::plain(&column.name) == "id");
        let id = named.or_else(|| self.looked.columns.iter().find(unique))?.name.clone();
        if id != "id" {
            self.proposal.written.set("", "id", &id);
        }
        Some(id)
    }

    fn topic(&mut self) {
        let text = |column: &Column| column.family == Family::Text;
        let Some(topic) = self.find(names::TOPIC, text) else {
            let name = self.looked.name.rsplit('.').next().unwrap_or_default().to_owned();
            self.proposal.written.set("", "topic", &name);
            let note = format!(
                "No column says what an event is about: all of them go to the topic {name:?}. `topic` may have columns in it, such as `orders.{{kind}}`."
            );
            self.proposal.notes.push(note);
            return;
        };
        self.take("topic", &topic, Sure::Likely, "by its name and type");
        let aggregate = self.find(&["aggregatetype"], text).filter(|_| names::plain(&topic) != "topic");
        let template = match &aggregate {
            Some(aggregate) => format!("{{{aggregate}}}.{{{topic}}}"),
            None => format!("{{{topic}}}"),
        };
        if let Some(aggregate) = aggregate {
            self.take("topic", &aggregate, Sure::Likely, "by its name and type");
        }
        self.proposal.written.set("", "topic", &template);
    }

    fn content(&mut self, id: &str) {
        let holds = |column: &Column| {
            matches!(column.family, Family::Json | Family::Text | Family::Bytes | Family::Other)
        };
        let payload =
            self.find(names::PAYLOAD, holds).map(|column| (column, Sure::Likely, "by its name and type"));
        let only = || {
            let mut large = self.looked.columns.iter().filter(|column| column.family == Family::Json);
            let first = large.next().filter(|_| large.next().is_none())?;
            Some((first.name.clone(), Sure::Guess, "the only column of JSON"))
        };
        let Some((payload, sure, why)) = payload.or_else(only) else {
            let what = "no column looks like the content of an event: name it with `payload` in a configuration of your own";
            self.proposal.obstacles.push(what.to_owned());
            return;
        };
        self.take("payload", &payload, sure, why);
        self.proposal.written.set("", "payload", &payload);
        let has_text = |column: &Column| {
            column.name != id && matches!(column.family, Family::Text | Family::Int | Family::Uuid)
        };
        match self.find(names::KEY, has_text) {
            Some(key) => self.set("", "key", &key),
            None => self.proposal.notes.push(
                "No column looks like an ordering key, the id of what an event is about: events go out without one, and nothing can be kept in order by it.".to_owned(),
            ),
        }
        let holds_json = |column: &Column| matches!(column.family, Family::Json | Family::Text);
        if let Some(headers) = self.find(names::HEADERS, holds_json) {
            self.set("", "headers", &headers);
        }
        if let Some(column) = self.find(names::CONTENT_TYPE, |column| column.family == Family::Text) {
            self.set("", "content_type_column", &column);
        }
    }

    fn order(&mut self, id: &str) {
        let looked = self.looked;
        let created = self.find(names::CREATED, |column| looked.holds_moments(column));
        if let Some(created) = &created {
            self.set("", "created", created);
        }
        let rises = looked.column(id).filter(|column| column.rises && column.family == Family::Int);
        match (rises, created) {
            (Some(id), _) => {
                self.proposal.written.list("", "order_by", &[&id.name]);
                self.proposal.notes.push("Rows are taken by a number that rises as they are written, by several workers at once, and no order of keys is promised. `ordered_by_key = true` hands the rows of a key out one after the other, and is dearer.".to_owned());
            }
            (None, Some(created)) => {
                self.proposal.written.list("", "order_by", &[&created]);
                self.proposal.notes.push(BY_TIME.to_owned());
            }
            (None, None) => self.proposal.notes.push(NO_ORDER.to_owned()),
        }
    }

    /// Owner, lease end and attempts, if all of them are there; and an order, which such a claim needs.
    fn claim_columns(&self) -> Option<[String; 3]> {
        let looked = self.looked;
        let owner = self.find(names::OWNER, |column| column.family == Family::Text)?;
        let lease_end = self.find(names::LEASE_END, |column| looked.holds_moments(column))?;
        let attempts = self.find(names::ATTEMPTS, |column| column.family == Family::Int)?;
        self.proposal.written.has("order_by").then_some([owner, lease_end, attempts])
    }

    fn claims(&mut self, words: &Words, [owner, lease_end, attempts]: [String; 3]) {
        let looked = self.looked;
        self.proposal.claims = Some(Claims::Table);
        if let Some(status) = &words.column {
            self.set("claims", "status", status);
        }
        self.proposal.written.words("claims", "words", &words.known());
        self.set("claims", "owner", &owner);
        self.set("claims", "lease_end", &lease_end);
        self.set("claims", "attempts", &attempts);
        let token = |column: &Column| matches!(column.family, Family::Uuid | Family::Text);
        if let Some(column) = self.find(names::TOKEN, token) {
            self.set("claims", "token", &column);
        }
        for (role, names) in
            [("claimed_at", names::CLAIMED_AT), ("due", names::DUE), ("published_at", names::PUBLISHED_AT)]
        {
            if let Some(column) = self.find(names, |column| looked.holds_moments(column)) {
                self.set("claims", role, &column);
            }
        }
        if let Some(column) = self.find(names::ERROR, |column| column.family == Family::Text) {
            self.set("claims", "error", &column);
        } else if let Some(column) = self.find(names::ERROR, |column| column.family == Family::Json) {
            self.set("claims", "error_json", &column);
        }
        if let Some(target) = self.find(names::TARGET, |column| column.family == Family::Text) {
            self.set("", "target", &target);
            self.proposal.target = Some(target);
        }
    }

    fn beside(&mut self, words: &Words) {
        let (looked, name) = (self.looked, beside_name(&self.looked.name));
        self.proposal.written.set("beside", "table", &name);
        if let (Some(status), Some(pending)) = (&words.column, &words.pending) {
            self.take("status", status, Sure::Likely, "only rows that are pending are taken");
            self.proposal.written.only(status, pending, words.is_number);
        }
        let may_write = looked.rights.write;
        if may_write && words.pending.is_some() && words.published.is_some() && words.dead.is_some() {
            self.writing(words);
        } else {
            self.proposal.claims = Some(Claims::BesideReading);
            self.proposal.written.set("beside", "at_end", "leave");
            self.why_only_read(words);
        }
        if !looked.rights.create {
            self.proposal.notes.push(format!("This role may not make {name}: `sendoff migrate --print` prints the statements for who may; it then needs SELECT, INSERT, UPDATE and DELETE on it."));
        }
    }

    fn writing(&mut self, words: &Words) {
        self.proposal.claims = Some(Claims::BesideWriting);
        let (Some(status), Some(published), Some(dead)) = (&words.column, &words.published, &words.dead)
        else {
            return;
        };
        self.proposal.written.set("beside", "at_end", "write");
        self.proposal.written.set("beside", "status", status);
        self.proposal.written.word("beside", "published", published, words.is_number);
        self.proposal.written.word("beside", "dead", dead, words.is_number);
        let looked = self.looked;
        if let Some(column) = self.find(names::PUBLISHED_AT, |column| looked.holds_moments(column)) {
            self.set("beside", "published_at", &column);
        }
        if let Some(column) = self.find(names::ATTEMPTS, |column| column.family == Family::Int) {
            self.set("beside", "failures", &column);
        }
    }

    /// What keeps it from being written.
    fn why_only_read(&mut self, words: &Words) {
        let looked = self.looked;
        let mut note = |text: String| self.proposal.notes.push(text);
        if !looked.rights.write {
            note("This role may not UPDATE it: it is only read, and what was delivered is known beside it alone.".to_owned());
        }
        match (&words.column, &words.pending) {
            (Some(status), Some(pending)) => {
                note(format!("Only rows whose {status} is {pending:?} are delivered."));
                if looked.rights.write {
                    let what = if words.is_number {
                        "numbers, and what they mean only the host's code says"
                    } else {
                        "not all in the table yet"
                    };
                    note(format!(
                        "Its words for delivered and given up are {what}, and are not guessed: it is only read. With them, `at_end = \"write\"` and `status`, `published` and `dead` in [table.beside] mark its rows."
                    ));
                }
            }
            (Some(status), None) => {
                note(format!(
                    "Which of its words in {status} stands for what is to be delivered could not be told: add `only = {{ {status} = \"…\" }}` to [table], or every row is delivered."
                ));
                note(all_of_it(looked));
            }
            (None, _) => {
                let flag = by_name(looked, names::FLAG).filter(|column| column.family == Family::Bool);
                let at = by_name(looked, names::PUBLISHED_AT);
                match (flag, at) {
                    (Some(flag), _) => {
                        self.proposal.written.flag(&flag.name);
                        let text = format!(
                            "Only rows whose {} is false are delivered; it stays so, and what was delivered is known beside it.",
                            flag.name
                        );
                        self.proposal.notes.push(text);
                    }
                    (None, Some(at)) => note(format!(
                        "Rows cannot be chosen by whether {} is set. {}",
                        at.name,
                        all_of_it(looked)
                    )),
                    (None, None) => note(all_of_it(looked)),
                }
            }
        }
    }
}

/// The words of a status column, as far as the table tells them.
#[derive(Debug, Default)]
struct Words {
    column: Option<String>,
    is_number: bool,
    pending: Option<String>,
    processing: Option<String>,
    published: Option<String>,
    failed: Option<String>,
    dead: Option<String>,
}

impl Words {
    fn of(looked: &Looked, seen: &[String]) -> Self {
        let Some(column) = status(looked) else { return Self::default() };
        let mut known: Vec<String> = column.labels.clone();
        known.extend(seen.iter().chain(&column.usual).cloned());
        let is_number = column.family == Family::Int;
        let find = |names: &[&str]| names::first(names, &known).cloned();
        let (dead, failed) = (find(names::DEAD), find(names::FAILED));
        // The only word for a failure is that for the last one.
        let (dead, failed) = if dead.is_none() { (failed, None) } else { (dead, failed) };
        Self {
            column: Some(column.name.clone()),
            is_number,
            pending: find(names::PENDING).or_else(|| column.usual.clone()),
            processing: find(names::PROCESSING),
            published: find(names::PUBLISHED),
            failed,
            dead,
        }
    }

    fn is_whole(&self) -> bool {
        self.pending.is_some() && self.published.is_some() && self.dead.is_some()
    }

    fn known(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("pending", &self.pending),
            ("processing", &self.processing),
            ("published", &self.published),
            ("failed", &self.failed),
            ("dead", &self.dead),
        ];
        all.into_iter().filter_map(|(name, word)| Some((name, word.clone()?))).collect()
    }
}
