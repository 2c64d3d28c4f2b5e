-- Name, whether every row is told apart by it, its columns. A whole number that is the primary key has no index of its own.
SELECT 'the primary key',
       'yes',
       (SELECT group_concat(c.name, char(10)) FROM pragma_table_info(?1, COALESCE(?2, 'main')) AS c WHERE c.pk > 0)
UNION ALL
SELECT l.name,
       CASE WHEN l."unique" = 1 AND l.partial = 0 THEN 'yes' ELSE 'no' END,
       (SELECT group_concat(i.name, char(10)) FROM pragma_index_info(l.name, COALESCE(?2, 'main')) AS i)
FROM pragma_index_list(?1, COALESCE(?2, 'main')) AS l
WHERE l.origin <> 'pk'
