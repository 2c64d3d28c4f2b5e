UPDATE {host} AS h SET {set} FROM held WHERE h.{id} = held.id RETURNING h.{id} AS id
