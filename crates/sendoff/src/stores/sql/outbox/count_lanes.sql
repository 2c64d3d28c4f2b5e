SELECT COUNT(*) FROM {lane} AS l WHERE l.target = {:target}
