CREATE TABLE {table} (
    `OutboxEntryId` CHAR(36) NOT NULL PRIMARY KEY,
    `EnvelopeId` varchar(128) NOT NULL,
    `CorrelationId` varchar(128),
    `EventType` varchar(256) NOT NULL,
    `EnvelopeJson` text NOT NULL,
    `Status` varchar(32) NOT NULL,
    `AttemptCount` integer NOT NULL DEFAULT 0,
    `LastError` text,
    `CreatedUtc` DATETIME(6) NOT NULL,
    `NextAttemptUtc` DATETIME(6),
    `DeliveredUtc` DATETIME(6),
    `ClaimedBy` varchar(200),
    `ClaimedUtc` DATETIME(6),
    `ClaimExpiresUtc` DATETIME(6),
    `ConcurrencyStamp` varchar(64) NOT NULL
);
CREATE INDEX {table}_status ON {table} (`Status`, `CreatedUtc`);
