-- Unique indexes that hold for every row at once: not partial, not on expressions, not deferred.
SELECT i.indexrelid::regclass::text AS index,
       (SELECT array_agg(a.attname::text)
        FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS part(attnum, place)
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = part.attnum
        WHERE part.place <= i.indnkeyatts) AS columns
FROM pg_index AS i
WHERE i.indrelid = to_regclass($1)
  AND i.indisunique
  AND i.indisvalid
  AND i.indimmediate
  AND i.indpred IS NULL
  AND i.indexprs IS NULL
