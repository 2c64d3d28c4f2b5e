//! The operator's commands as an operator gives them: what they print, for people and for programs, how they end, and what they say to bad input.

#![allow(clippy::unwrap_used)]

mod adopt;
mod adopted;
mod bad_input;
mod config;
mod enqueue;
mod every_store;
mod explain;
mod host;
mod inbox;
mod lanes;
mod measure;
mod migrate;
mod operate;
mod outbox;
mod program;
mod questions;
mod schema;
mod schemas;
mod service;
mod tasks;
