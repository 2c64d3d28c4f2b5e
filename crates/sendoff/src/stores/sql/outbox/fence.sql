SELECT l.lane, l.epoch FROM {lane} AS l
WHERE l.target = {:target} AND l.owner = {:worker} AND l.lane IN ({:lanes})
ORDER BY l.target, l.lane
{:lock}
