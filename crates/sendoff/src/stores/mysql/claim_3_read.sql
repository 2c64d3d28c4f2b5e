-- The rows as the mark left them: there is no UPDATE … RETURNING here.
SELECT {columns}, {returned_key}
FROM {table} AS t {key_index}
WHERE {key_in}
