CREATE TABLE {table} (
    "OutboxEntryId" uuid NOT NULL PRIMARY KEY,
    "EnvelopeId" varchar(128) NOT NULL,
    "CorrelationId" varchar(128),
    "EventType" varchar(256) NOT NULL,
    "EnvelopeJson" text NOT NULL,
    "Status" varchar(32) NOT NULL,
    "AttemptCount" integer NOT NULL DEFAULT 0,
    "LastError" text,
    "CreatedUtc" timestamptz NOT NULL,
    "NextAttemptUtc" timestamptz,
    "DeliveredUtc" timestamptz,
    "ClaimedBy" varchar(200),
    "ClaimedUtc" timestamptz,
    "ClaimExpiresUtc" timestamptz,
    "ConcurrencyStamp" varchar(64) NOT NULL
);
CREATE INDEX "{table}_status" ON {table} ("Status", "CreatedUtc");
