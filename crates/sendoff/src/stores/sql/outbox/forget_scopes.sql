-- What workers left behind that were forgotten.
{delete_from_meta}
WHERE m.name LIKE 'scope:%' AND NOT EXISTS (SELECT 1 FROM {worker} AS w WHERE m.name = {scope_name})
