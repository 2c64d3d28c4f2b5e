
-- Settles a flush that is more than published events, in one trip. The lanes are locked and checked first; each statement then sees what the
-- ones before it did. The number in its name is the protocol's: programs of two versions find each their own.
CREATE OR REPLACE FUNCTION {schema}.settle_1(
    in_target text,
    in_worker uuid,
    in_lanes smallint[],
    in_epochs bigint[],
    in_calm smallint[],
    in_history boolean,
    in_ids bigint[],
    in_id_lanes smallint[],
    in_keys text[],
    in_hot boolean[],
    in_changes text[],
    in_reasons text[],
    in_due_in bigint[],
    in_due_at timestamptz[],
    in_failures integer[],
    in_crashes integer[],
    in_causes text[],
    in_errors text[]
) RETURNS TABLE (current_lanes smallint[], settled_ids bigint[])
LANGUAGE plpgsql
AS $settle$
#variable_conflict use_column
DECLARE
    now_is timestamptz := clock_timestamp();
    from_hot bigint[];
    from_parked bigint[];
    parked_again bigint[];
BEGIN
    SELECT coalesce(array_agg(fence.lane), ARRAY[]::smallint[]) INTO current_lanes
    FROM (
        SELECT l.lane
        FROM {lane} AS l
        JOIN unnest(in_lanes, in_epochs) AS token (lane, epoch) ON token.lane = l.lane AND token.epoch = l.epoch
        WHERE l.target = in_target AND l.owner = in_worker
        ORDER BY l.lane
        FOR NO KEY UPDATE OF l
    ) AS fence;

    WITH asked AS (
        SELECT *
        FROM unnest(
            in_ids, in_id_lanes, in_hot, in_changes, in_reasons, in_due_in, in_due_at, in_failures, in_crashes, in_causes,
            in_errors
        ) AS r (id, lane, hot, change, reason, due_in, due_at, failures, crashes, cause, error)
        WHERE r.hot AND r.lane = ANY (current_lanes)
    ), taken AS (
        DELETE FROM {event} AS e
        USING asked AS r
        WHERE e.target = in_target AND e.lane = r.lane AND e.id = r.id
        RETURNING
            e.lane, e.id, e.topic, e.key, e.payload, e.content_type, e.headers, e.event_id, e.created_at,
            r.change, r.reason, coalesce(r.due_at, now_is + r.due_in * interval '1 microsecond') AS due_at,
            r.failures, r.crashes, r.cause, r.error
    ), parked AS (
        INSERT INTO {parked} (
            target, lane, id, topic, key, payload, content_type, headers, event_id, created_at,
            reason, due_at, failures, crashes, cause, error, parked_at
        )
        SELECT
            in_target, t.lane, t.id, t.topic, t.key, t.payload, t.content_type, t.headers, t.event_id, t.created_at,
            t.reason, t.due_at, t.failures, t.crashes, t.cause, t.error, now_is
        FROM taken AS t
        WHERE t.change = 'park'
    ), buried AS (
        INSERT INTO {dead} (
            target, lane, id, topic, key, payload, content_type, headers, event_id, created_at,
            failures, crashes, cause, error, died_at
        )
        SELECT
            in_target, t.lane, t.id, t.topic, t.key, t.payload, t.content_type, t.headers, t.event_id, t.created_at,
            t.failures, t.crashes, t.cause, t.error, now_is
        FROM taken AS t
        WHERE t.change IN ('bury', 'divert')
    ), kept AS (
        INSERT INTO {published} (
            target, lane, id, topic, key, payload, content_type, headers, event_id, created_at, published_at
        )
        SELECT
            in_target, t.lane, t.id, t.topic, t.key, t.payload, t.content_type, t.headers, t.event_id, t.created_at, now_is
        FROM taken AS t
        WHERE t.change = 'publish' AND in_history
    )
    SELECT coalesce(array_agg(t.id), ARRAY[]::bigint[]) INTO from_hot FROM taken AS t;

    WITH asked AS (
        SELECT *
        FROM unnest(in_ids, in_id_lanes, in_hot, in_changes, in_failures, in_crashes, in_causes, in_errors)
            AS r (id, lane, hot, change, failures, crashes, cause, error)
        WHERE NOT r.hot AND r.change <> 'park' AND r.lane = ANY (current_lanes)
    ), taken AS (
        DELETE FROM {parked} AS p
        USING asked AS r
        WHERE p.target = in_target AND p.lane = r.lane AND p.id = r.id
        RETURNING
            p.lane, p.id, p.topic, p.key, p.payload, p.content_type, p.headers, p.event_id, p.created_at,
            r.change, r.failures, r.crashes, r.cause, r.error
    ), buried AS (
        INSERT INTO {dead} (
            target, lane, id, topic, key, payload, content_type, headers, event_id, created_at,
            failures, crashes, cause, error, died_at
        )
        SELECT
            in_target, t.lane, t.id, t.topic, t.key, t.payload, t.content_type, t.headers, t.event_id, t.created_at,
            t.failures, t.crashes, t.cause, t.error, now_is
        FROM taken AS t
        WHERE t.change IN ('bury', 'divert')
    ), kept AS (
        INSERT INTO {published} (
            target, lane, id, topic, key, payload, content_type, headers, event_id, created_at, published_at
        )
        SELECT
            in_target, t.lane, t.id, t.topic, t.key, t.payload, t.content_type, t.headers, t.event_id, t.created_at, now_is
        FROM taken AS t
        WHERE t.change = 'publish' AND in_history
    )
    SELECT coalesce(array_agg(t.id), ARRAY[]::bigint[]) INTO from_parked FROM taken AS t;

    WITH again AS (
        UPDATE {parked} AS p
        SET
            reason = r.reason,
            due_at = coalesce(r.due_at, now_is + r.due_in * interval '1 microsecond'),
            failures = r.failures,
            crashes = r.crashes,
            cause = coalesce(r.cause, p.cause),
            error = coalesce(r.error, p.error),
            parked_at = now_is
        FROM unnest(
            in_ids, in_id_lanes, in_hot, in_changes, in_reasons, in_due_in, in_due_at, in_failures, in_crashes, in_causes,
            in_errors
        ) AS r (id, lane, hot, change, reason, due_in, due_at, failures, crashes, cause, error)
        WHERE NOT r.hot AND r.change = 'park' AND r.lane = ANY (current_lanes)
            AND p.target = in_target AND p.lane = r.lane AND p.id = r.id
        RETURNING p.id
    )
    SELECT coalesce(array_agg(again.id), ARRAY[]::bigint[]) INTO parked_again FROM again;

    settled_ids := from_hot || from_parked || parked_again;

    -- A dead event whose key goes the same way leaves a marker, without its content.
    INSERT INTO {parked} (
        target, lane, id, topic, key, payload, created_at, event_id,
        reason, due_at, failures, crashes, cause, error, parked_at
    )
    SELECT
        d.target, d.lane, d.id, d.topic, d.key, ''::bytea, d.created_at, d.event_id,
        'diverted', now_is, d.failures, d.crashes, d.cause, d.error, now_is
    FROM {dead} AS d
    JOIN unnest(in_ids, in_changes) AS r (id, change) ON r.id = d.id
    WHERE d.target = in_target AND r.change = 'divert' AND d.id = ANY (settled_ids);

    -- What only waited for its turn is due where its turn has come.
    UPDATE {parked} AS p
    SET due_at = now_is
    FROM (
        SELECT DISTINCT r.lane, r.key
        FROM unnest(in_id_lanes, in_keys) AS r (lane, key)
        WHERE r.key IS NOT NULL AND r.lane = ANY (current_lanes)
    ) AS touched
    CROSS JOIN LATERAL (
        SELECT q.id
        FROM {parked} AS q
        WHERE q.target = in_target AND q.lane = touched.lane AND q.key = touched.key AND q.reason <> 'delayed'
        ORDER BY q.id
        LIMIT 1
    ) AS first
    WHERE p.target = in_target AND p.lane = touched.lane AND p.id = first.id AND p.reason = 'behind' AND p.due_at IS NULL;

    IF cardinality(in_calm) > 0 THEN
        UPDATE {lane} AS l
        SET crashes = 0, named = NULL
        WHERE l.target = in_target AND l.owner = in_worker AND l.lane = ANY (in_calm) AND l.lane = ANY (current_lanes);
    END IF;

    RETURN NEXT;
END
$settle$;
