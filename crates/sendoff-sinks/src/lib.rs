//! Where events go: one module for each sink. Those that need no client library are here: in-process handlers, standard output, files, and nowhere.

mod file;
mod handler;
mod in_turn;
mod json_line;
mod null;
mod stdout;

pub use file::{File, FileConfig};
pub use handler::Handler;
pub use json_line::json_line;
pub use null::Null;
pub use stdout::Stdout;
