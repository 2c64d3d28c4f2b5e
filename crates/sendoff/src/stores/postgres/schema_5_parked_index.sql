
-- What holds a key up, without the delayed events of that key, of which there may be any number.
CREATE INDEX IF NOT EXISTS {parked_by_hold} ON {parked} (target, lane, key, id) WHERE reason <> 'delayed';
-- With the id, so that events that are due at the same moment need not be sorted.
CREATE INDEX IF NOT EXISTS {parked_by_turn} ON {parked} (target, lane, due_at, id) WHERE due_at IS NOT NULL;
-- Replaced by these two. Left in place, the planner could choose them.
DROP INDEX IF EXISTS {schema}.{parked_by_key};
DROP INDEX IF EXISTS {schema}.{parked_by_due};
