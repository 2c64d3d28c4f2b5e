UPDATE "{schema}".outbox_events SET status = 'PUBLISHED', published_at = now() WHERE id = ANY ($1)
