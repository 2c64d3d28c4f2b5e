{insert_if_new} {lane} (target, lane) VALUES {:rows} {or_leave}
