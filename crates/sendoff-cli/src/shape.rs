//! What the answers for programs are made of. Each command has its answer as a type in its own file; `docs/schemas` is made from these types.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use sendoff::outbox::{Cause, EventState, Failure, Reason, SinkDown};
use serde::{Serialize, Serializer};

use crate::output::moment;

/// A moment, from microseconds since 1970; for programs it is RFC 3339.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(pub(crate) i64);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&moment(self.0))
    }
}

impl JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// What an event or a worker is known by.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Id(String);

impl Id {
    pub(crate) fn of(id: impl ToString) -> Self {
        Self(id.to_string())
    }
}

impl JsonSchema for Id {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uuid" })
    }
}

/// What went wrong with an event.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct FailureShape {
    /// In a word.
    #[schemars(extend("enum" = CAUSES))]
    cause: &'static str,
    /// What the sink or the worker said about it.
    error: String,
}

impl FailureShape {
    pub(crate) fn of(failure: &Failure) -> Self {
        Self { cause: failure.cause.word(), error: failure.error.clone() }
    }
}

/// A sink that is down.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct DownShape {
    /// Since when.
    since: Moment,
    /// What it said.
    error: String,
}

impl DownShape {
    pub(crate) fn of(down: &SinkDown) -> Self {
        Self { since: Moment(down.since), error: down.error.clone() }
    }
}

/// The states of an event.
pub(crate) fn states() -> [&'static str; 6] {
    EventState::ALL.map(EventState::word)
}

/// Why an event is parked.
pub(crate) fn reasons() -> [&'static str; 5] {
    [Reason::Delayed, Reason::Retry, Reason::Behind, Reason::Blocked, Reason::Diverted].map(Reason::word)
}

/// What can go wrong with an event.
const CAUSES: [&str; 5] = [
    Cause::Transient.word(),
    Cause::Rejected.word(),
    Cause::Crash.word(),
    Cause::Corrupt.word(),
    Cause::Diverted.word(),
];
