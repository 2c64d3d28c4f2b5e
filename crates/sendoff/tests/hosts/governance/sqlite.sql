CREATE TABLE {table} (
    "OutboxEntryId" TEXT NOT NULL PRIMARY KEY,
    "EnvelopeId" TEXT NOT NULL,
    "CorrelationId" TEXT,
    "EventType" TEXT NOT NULL,
    "EnvelopeJson" TEXT NOT NULL,
    "Status" TEXT NOT NULL,
    "AttemptCount" INTEGER NOT NULL DEFAULT 0,
    "LastError" TEXT,
    "CreatedUtc" TEXT NOT NULL,
    "NextAttemptUtc" TEXT,
    "DeliveredUtc" TEXT,
    "ClaimedBy" TEXT,
    "ClaimedUtc" TEXT,
    "ClaimExpiresUtc" TEXT,
    "ConcurrencyStamp" TEXT NOT NULL
);
CREATE INDEX "{table}_status" ON {table} ("Status", "CreatedUtc");
