-- The rows as the mark left them: there is no UPDATE … RETURNING here.
SELECT {columns}, {is_ours} AS sendoff_ours, {returned_key}
FROM {table} AS t {key_index}
WHERE {key_in}
