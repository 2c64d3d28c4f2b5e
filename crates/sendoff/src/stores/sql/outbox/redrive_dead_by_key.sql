-- One lane of the key, which only the database can name.
SELECT d.target, d.lane, d.id, d.{key}
FROM {dead} AS d {force_by_key}
WHERE d.target = {:target} AND d.lane = {:lane} AND d.{key} = {:key}
ORDER BY d.id
LIMIT {:limit}
