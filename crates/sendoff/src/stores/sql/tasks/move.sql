UPDATE {task} AS t {force_primary}
SET status = {:status}, run_at = {:run_at}, attempts_max = {:attempts_max}, finished_at = {:finished_at}, lease_until = {:lease_until},
    error = {:error}
WHERE t.id IN ({:tasks})
