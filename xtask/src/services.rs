//! `cargo xtask services`: the test servers for a developer's own session.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cli::ServicesArgs;
use crate::fleet::Fleet;
use crate::server::{Durability, Running};
use crate::{install, interrupt, servers};

const POLL: Duration = Duration::from_millis(100);

/// Installs, starts, prints, waits for a signal, stops.
pub(crate) fn run(args: &ServicesArgs) -> Result<()> {
    let servers = servers::select(&args.fleet.only, &args.fleet.with)?;
    if args.check_install {
        return install::check_origin(&servers);
    }
    install::install(&servers)?;
    if args.install_only {
        return Ok(());
    }
    let started_at = Instant::now();
    let fleet = Fleet::start(&servers, args.fleet.keep, Durability::Scratch)?;
    eprintln!("started in {:.1} s", started_at.elapsed().as_secs_f64());
    println!("{}", table(fleet.running()));
    for (name, value) in fleet.environment() {
        println!("export {name}={value}");
    }
    println!("\nCtrl-C stops them all");
    while interrupt::check().is_ok() {
        thread::sleep(POLL);
    }
    drop(fleet);
    eprintln!("stopped");
    Ok(())
}

/// One line for each process, columns aligned.
fn table<'a>(running: impl Iterator<Item = &'a Running>) -> String {
    let mut rows = vec![["server", "version", "port", "pid", "data directory"].map(str::to_owned)];
    for server in running {
        for node in &server.nodes {
            rows.push([
                server.name.to_owned(),
                server.version.clone(),
                node.port.to_string(),
                node.process.id().to_string(),
                node.dir.display().to_string(),
            ]);
        }
    }
    aligned(&rows)
}

fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "bb"], ["ccc", "d"]].map(|row| row.map(str::to_owned));
        assert_eq!(aligned(&rows), "a    bb\nccc  d\n");
    }
}
