-- Its crashes stay: the next owner has to get past the same events.
UPDATE {lane} SET owner = NULL, lease_until = NULL, named = NULL
WHERE target = {:target} AND lane = {:lane} AND owner = {:worker} AND epoch = {:epoch}
