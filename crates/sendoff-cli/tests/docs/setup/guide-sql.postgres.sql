CREATE TABLE orders (id text PRIMARY KEY, state text NOT NULL);
INSERT INTO orders VALUES ('order-7', 'placed');
