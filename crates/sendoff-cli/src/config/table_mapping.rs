//! From the keys of `[table]` to a mapping, and what contradicts itself in them.

use sendoff::adopted::{AtEnd, Beside, Mapping, Stamp, Words};
use sendoff::claim::EpochUnit;

use super::table_options::{
    AtEndOption, BesideOptions, ClaimsOptions, Epoch, Preset, StampOptions, TableOptions, beside_name,
};

type Mapped = Result<(Mapping, Option<Beside>), String>;

impl TableOptions {
    /// What its columns mean, and where its claims are kept if not in it.
    pub(super) fn mapped(&self) -> Mapped {
        self.contradictions()?;
        let (mapping, preset_beside) = match self.preset {
            Some(preset) => preset.mapped(&self.name, self.ordered_by_key)?,
            None => (Mapping::new(&self.name, "id").map_err(|error| error.to_string())?, None),
        };
        let mapping = self.ordered(self.content(mapping)?)?;
        let mapping = match &self.claims {
            Some(claims) => claims.added(mapping)?,
            None => mapping,
        };
        let beside = match &self.beside {
            Some(options) => Some(options.made(&self.name, preset_beside)?),
            None => preset_beside,
        };
        Ok((mapping, beside))
    }

    fn contradictions(&self) -> Result<(), String> {
        let has_own = matches!(self.preset, Some(Preset::Framework | Preset::Governance));
        let is_beside =
            matches!(self.preset, Some(Preset::Adr003 | Preset::Debezium)) || self.beside.is_some();
        let preset = self.preset.map_or("", Preset::word);
        let wrong = [
            (
                self.claims.is_some() && self.beside.is_some(),
                "claims are either columns of the table (`claims`) or kept beside it (`beside`): give one of them".to_owned(),
            ),
            (
                self.claims.is_some() && self.preset.is_some(),
                format!("the preset {preset} says where claims are: leave out `claims`, or leave out `preset` and give every column"),
            ),
            (
                has_own && self.beside.is_some(),
                format!("the preset {preset} has columns for claims: leave out `beside`, or leave out `preset` and give every column"),
            ),
            (
                self.claims.is_none() && !is_beside && !has_own,
                "where are claims kept? Give [table.claims] with its columns for them, or [table.beside] for a table of sendoff's own beside it".to_owned(),
            ),
            (
                is_beside && self.target.is_some(),
                "claims beside a table are those of one target: leave out `target`, and give each target a configuration of its own, with `only = { COLUMN = \"TARGET\" }` and another `beside.table`".to_owned(),
            ),
            (
                self.content_type.is_some() && self.content_type_column.is_some(),
                "`content_type` is for every row, `content_type_column` for each: give one of them".to_owned(),
            ),
            (
                self.ordered_by_key && self.key.is_none() && self.preset.is_none(),
                "`ordered_by_key` needs `key`, the column of the ordering key".to_owned(),
            ),
            (
                !self.has_order() && (self.ordered_by_key || !is_beside),
                "`order_by` is missing: rows are taken by a column, such as when they were written".to_owned(),
            ),
        ];
        wrong.into_iter().find(|(is_so, _)| *is_so).map_or(Ok(()), |(_, wrong)| Err(wrong))
    }

    fn has_order(&self) -> bool {
        !self.order_by.is_empty() || self.preset.is_some_and(|preset| preset != Preset::Debezium)
    }

    /// What events are made of.
    fn content(&self, mut mapping: Mapping) -> Result<Mapping, String> {
        macro_rules! given {
            ($($key:ident)*) => {
                $(if let Some(column) = &self.$key {
                    mapping = mapping.$key(column);
                })*
            };
        }
        given!(id target key payload headers content_type_column created position attempts_max_column);
        if let Some(topic) = &self.topic {
            mapping = mapping.topic(topic).map_err(|error| error.to_string())?;
        }
        for (header, column) in &self.header_columns {
            mapping = mapping.header(header, column);
        }
        if let Some(content_type) = &self.content_type {
            mapping = mapping.content_type(Some(content_type.as_str()).filter(|text| !text.is_empty()));
        }
        for (column, word) in &self.only {
            mapping = mapping.only(column, word.clone());
        }
        if let Some(attempts) = self.attempts_max {
            mapping = mapping.attempts_max(attempts.get());
        }
        for (column, epoch) in &self.epochs {
            let unit = match epoch {
                Epoch::Seconds => EpochUnit::Seconds,
                Epoch::Millis => EpochUnit::Millis,
                Epoch::Micros => EpochUnit::Micros,
            };
            mapping = mapping.epoch(column, unit);
        }
        Ok(mapping)
    }

    fn ordered(&self, mut mapping: Mapping) -> Result<Mapping, String> {
        if !self.order_by.is_empty() {
            mapping = mapping.without_order();
        }
        for text in &self.order_by {
            let words: Vec<&str> = text.split_whitespace().collect();
            mapping = match words[..] {
                [column] => mapping.order_by(column),
                [column, way] if way.eq_ignore_ascii_case("asc") => mapping.order_by(column),
                [column, way] if way.eq_ignore_ascii_case("desc") => {
                    if self.ordered_by_key {
                        return Err("`ordered_by_key` needs an `order_by` that only rises: leave out `desc`"
                            .to_owned());
                    }
                    mapping.order_by_desc(column)
                }
                _ => return Err(format!("{text:?} is no order: write \"created_at\" or \"priority desc\"")),
            };
        }
        Ok(if self.ordered_by_key { mapping.ordered_by_key() } else { mapping })
    }
}

impl ClaimsOptions {
    fn added(&self, mapping: Mapping) -> Result<Mapping, String> {
        let words = Words {
            pending: self.words.pending.clone().into(),
            processing: self.words.processing.clone().map(Into::into),
            published: self.words.published.clone().into(),
            failed: self.words.failed.clone().map(Into::into),
            dead: self.words.dead.clone().into(),
        };
        if words.published == words.pending || words.dead == words.pending {
            return Err(
                "`claims.words`: pending, published and dead are to be told apart: give each its own"
                    .to_owned(),
            );
        }
        let mut mapping = mapping.claims(&self.status, words, &self.owner, &self.lease_end, &self.attempts);
        macro_rules! given {
            ($($key:ident)*) => {
                $(if let Some(column) = &self.$key {
                    mapping = mapping.$key(column);
                })*
            };
        }
        if self.error.is_some() && self.error_json.is_some() {
            return Err(
                "`claims.error` is for text, `claims.error_json` for JSON: give one of them".to_owned()
            );
        }
        given!(token claimed_at due error error_json published_at);
        Ok(match &self.stamp {
            Some(StampOptions::Fresh(column)) => mapping.stamp(Stamp::Fresh(column.clone())),
            Some(StampOptions::Counter(column)) => mapping.stamp(Stamp::Counter(column.clone())),
            None => mapping,
        })
    }
}

impl BesideOptions {
    /// A preset has its own, of which this changes what is given.
    fn made(&self, host: &str, preset: Option<Beside>) -> Result<Beside, String> {
        let table = self.table.clone().unwrap_or_else(|| beside_name(host));
        let made = match preset {
            Some(beside) => beside.named(&table),
            None => Beside::new(&table),
        };
        let made = made.map_err(|error| error.to_string())?;
        let given = [
            self.status.is_some(),
            self.published.is_some(),
            self.dead.is_some(),
            self.published_at.is_some(),
            self.failures.is_some(),
        ];
        match self.at_end {
            Some(AtEndOption::Write) => match (&self.status, &self.published, &self.dead) {
                (Some(status), Some(published), Some(dead)) => Ok(made.at_end(AtEnd::Write {
                    status: status.clone(),
                    published: published.clone().into(),
                    dead: dead.clone().into(),
                    published_at: self.published_at.clone(),
                    failures: self.failures.clone(),
                })),
                _ => Err("`beside.at_end = \"write\"` needs `status`, `published` and `dead`".to_owned()),
            },
            _ if given.contains(&true) => Err(
                "`beside`: status, published, dead, published_at and failures are for `at_end = \"write\"`"
                    .to_owned(),
            ),
            Some(AtEndOption::Leave) => Ok(made.at_end(AtEnd::Leave)),
            Some(AtEndOption::Delete) => Ok(made.at_end(AtEnd::Delete)),
            None => Ok(made),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use sendoff::adopted::presets;

    use super::*;

    fn mapped(text: &str) -> Mapped {
        toml::from_str::<TableOptions>(text).map_err(|error| error.message().to_owned())?.mapped()
    }

    #[test]
    fn every_key_comes_to_the_mapping() {
        let text = r#"
            name = "shop.outbox"
            id = "no"
            topic = "orders.{kind}"
            target = "broker"
            key = "order_id"
            payload = "body"
            headers = "meta"
            header_columns = { tenant = "tenant_id" }
            content_type = ""
            created = "at"
            order_by = ["priority desc", "at"]
            position = "no"
            only = { kind = "event", version = 2, live = true }
            attempts_max = 7
            attempts_max_column = "most"
            epochs = { at = "millis" }
            [claims]
            status = "state"
            words = { pending = 0, processing = 1, published = 2, failed = 3, dead = 4 }
            owner = "who"
            lease_end = "until"
            attempts = "tries"
            token = "proof"
            claimed_at = "since"
            due = "due"
            error_json = "fault"
            published_at = "gone"
            stamp = { counter = "version" }
        "#;
        let words = Words {
            pending: 0.into(),
            processing: Some(1.into()),
            published: 2.into(),
            failed: Some(3.into()),
            dead: 4.into(),
        };
        let expected = Mapping::new("shop.outbox", "no").unwrap();
        let expected =
            expected.topic("orders.{kind}").unwrap().target("broker").key("order_id").payload("body");
        let expected =
            expected.headers("meta").header("tenant", "tenant_id").content_type(None).created("at");
        let expected = expected.order_by_desc("priority").order_by("at").position("no");
        let expected = expected.only("kind", "event").only("live", true).only("version", 2);
        let expected = expected.attempts_max(7).attempts_max_column("most").epoch("at", EpochUnit::Millis);
        let expected =
            expected.claims("state", words, "who", "until", "tries").token("proof").claimed_at("since");
        let expected = expected.due("due").error_json("fault").published_at("gone");
        let expected = expected.stamp(Stamp::Counter("version".to_owned()));
        assert_eq!(mapped(text).unwrap(), (expected, None));
    }

    #[test]
    fn a_preset_is_that_of_the_library_and_what_is_given_goes_over_it() {
        let framework = mapped("name = \"o\"\npreset = \"framework\"").unwrap();
        assert_eq!(framework, (presets::framework_rows("o").unwrap(), None));
        let in_order = mapped("name = \"o\"\npreset = \"framework\"\nordered_by_key = true").unwrap();
        assert_eq!(in_order.0, presets::framework_rows_in_order("o").unwrap().ordered_by_key());
        let (mapping, beside) = presets::adr003("s.o").unwrap();
        let given =
            "name = \"s.o\"\npreset = \"adr003\"\ntopic = \"{event_type}\"\n[beside]\ntable = \"own.claims\"";
        let expected = (mapping.topic("{event_type}").unwrap(), Some(beside.named("own.claims").unwrap()));
        assert_eq!(mapped(given).unwrap(), expected, "what a preset does at the end stays");
        let (_, beside) = presets::debezium("o", "o_sendoff").unwrap();
        assert_eq!(mapped("name = \"o\"\npreset = \"debezium\"").unwrap().1, Some(beside));
    }

    #[test]
    fn contradictions_are_named() {
        let own = "[claims]\nstatus = \"s\"\nwords = { pending = 0, published = 1, dead = 2 }\nowner = \"o\"\nlease_end = \"l\"\nattempts = \"a\"\n";
        for (text, word) in [
            ("name = \"o\"".to_owned(), "where are claims kept?"),
            (format!("name = \"o\"\norder_by = [\"a\"]\n{own}[beside]\n"), "give one of them"),
            (format!("name = \"o\"\npreset = \"governance\"\n{own}"), "the preset governance says"),
            ("name = \"o\"\npreset = \"framework\"\n[beside]".to_owned(), "has columns for claims"),
            (format!("name = \"o\"\n{own}"), "`order_by` is missing"),
            (format!("name = \"o\"\nordered_by_key = true\norder_by = [\"a\"]\n{own}"), "needs `key`"),
            (
                "name = \"o\"\nkey = \"k\"\nordered_by_key = true\n[beside]".to_owned(),
                "`order_by` is missing",
            ),
            (
                format!("name = \"o\"\nkey = \"k\"\nordered_by_key = true\norder_by = [\"a desc\"]\n{own}"),
                "only rises",
            ),
            (format!("name = \"o\"\norder_by = [\"a up\"]\n{own}"), "is no order"),
            ("name = \"o\"\ntarget = \"t\"\n[beside]".to_owned(), "those of one target"),
            ("name = \"o\"\n[beside]\nat_end = \"write\"".to_owned(), "needs `status`"),
            ("name = \"o\"\n[beside]\nstatus = \"s\"".to_owned(), "are for `at_end"),
            ("name = \"a.b.c\"\n[beside]".to_owned(), "a.b.c"),
            ("name = \"o\"\ntopic = \"a{b\"\n[beside]".to_owned(), "not closed"),
            (
                format!(
                    "name = \"o\"\norder_by = [\"a\"]\n{}",
                    own.replace("published = 1", "published = 0")
                ),
                "told apart",
            ),
            (
                "name = \"o\"\ncontent_type = \"a\"\ncontent_type_column = \"b\"\n[beside]".to_owned(),
                "give one of them",
            ),
        ] {
            let error = mapped(&text).unwrap_err();
            assert!(error.contains(word), "{text}: no {word:?} in {error}");
        }
    }
}
