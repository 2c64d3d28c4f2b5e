UPDATE {host} AS h SET {set} FROM held WHERE h.{id} = held.id
