CREATE TABLE orders (id VARCHAR(40) PRIMARY KEY, state VARCHAR(20) NOT NULL);
INSERT INTO orders VALUES ('order-7', 'placed');
