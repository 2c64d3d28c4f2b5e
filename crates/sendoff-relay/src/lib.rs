//! The pipeline that claims events, publishes them and settles the outcome, to be embedded in a service or run by
//! the `sendoff` program. Nothing is here yet.
