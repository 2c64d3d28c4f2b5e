CREATE TABLE orders (id text PRIMARY KEY, total integer NOT NULL);
