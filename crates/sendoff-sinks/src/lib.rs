//! Where events go: one module and one feature for each sink (Kafka, NATS, RabbitMQ, Redis, MQTT, HTTP, SQS, files,
//! other databases), and the envelope they share. Nothing is here yet.
