DELETE FROM {host} AS h USING held WHERE h.{id} = held.id
