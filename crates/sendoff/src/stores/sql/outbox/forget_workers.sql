-- Long gone: nobody asks for their names any more.
DELETE FROM {worker} WHERE target = {:target} AND lease_until < {:long_ago}
