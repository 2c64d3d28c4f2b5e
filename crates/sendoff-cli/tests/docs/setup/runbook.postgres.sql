CREATE ROLE shop;
CREATE ROLE relay;
SELECT pg_create_physical_replication_slot('old_standby');
CREATE TABLE orders (id text);
BEGIN;
INSERT INTO orders VALUES ('order-7');
PREPARE TRANSACTION 'order-7';
