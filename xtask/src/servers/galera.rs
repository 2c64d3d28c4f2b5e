//! Two MariaDB nodes that replicate to each other with Galera: the one distributed database to be had here.
//!
//! Row locks are local to a node, so two claimers on two nodes meet only when they commit. That is what the
//! tests want to see.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::mariadb_node;
use crate::account::Account;
use crate::port;
use crate::process::Process;
use crate::requirement::{Need, Requirement};
use crate::server::{Node, Running, Server, Site};

/// `galera`, at `SENDOFF_TEST_GALERA_1` and `SENDOFF_TEST_GALERA_2`.
pub(crate) struct Galera;

const PROVIDER: Need = Need::File("/usr/lib/galera/libgalera_smm.so");
const READY_LIMIT: Duration = Duration::from_secs(90);
/// Two nodes on one busy machine are easily late; with the defaults (5 s, 15 s) they would declare each
/// other dead in the middle of a test.
const PATIENCE: &str = "evs.suspect_timeout=PT30S;evs.inactive_timeout=PT60S;evs.install_timeout=PT60S";

impl Server for Galera {
    fn name(&self) -> &'static str {
        "galera"
    }

    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = mariadb_node::REQUIREMENTS.to_vec();
        // The second node gets its data from the first through a script, `wsrep_sst_rsync`; the rest is
        // what that script calls.
        requirements.extend([
            Requirement::new(PROVIDER, "galera-4"),
            Requirement::new(Need::Program("wsrep_sst_rsync"), "mariadb-server"),
            Requirement::new(Need::Program("my_print_defaults"), "mariadb-server"),
            Requirement::new(Need::Program("rsync"), "rsync"),
            Requirement::new(Need::Program("ss"), "iproute2"),
            Requirement::new(Need::Program("ps"), "procps"),
        ]);
        requirements
    }

    fn start(&self, site: &Site<'_>) -> Result<Running> {
        let account = Account::for_server(mariadb_node::ACCOUNT)?;
        let provider = PROVIDER.locate()?;
        let first_dir = node_dir(site, "node1")?;
        let second_dir = node_dir(site, "node2")?;
        let first_data = mariadb_node::create_data(&account, &first_dir)?;
        // The second node starts empty and is sent everything by the first.
        let second_data = second_dir.join("data");
        fs::create_dir(&second_data).with_context(|| format!("cannot create {}", second_data.display()))?;
        account.own(&second_dir)?;
        account.own(&second_data)?;

        let launch = Launch { account, provider, site };
        let first_ports = Ports::free()?;
        let mut first = launch.node(first_dir, &first_data, &first_ports, None)?;
        launch.await_synced(&mut first, 1)?;
        let mut second = launch.node(second_dir, &second_data, &Ports::free()?, Some(first_ports.group))?;
        launch.await_synced(&mut second, 2)?;
        launch.await_synced(&mut first, 2)?;
        Ok(Running {
            name: self.name(),
            version: mariadb_node::version(first.port)?,
            env: vec![
                ("SENDOFF_TEST_GALERA_1", mariadb_node::url(first.port)),
                ("SENDOFF_TEST_GALERA_2", mariadb_node::url(second.port)),
            ],
            nodes: vec![first, second],
        })
    }
}

fn node_dir(site: &Site<'_>, name: &str) -> Result<PathBuf> {
    let dir = site.dir.join(name);
    fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    Ok(dir)
}

/// A node listens on four ports, and each has a default that a second node would find taken.
struct Ports {
    /// Clients.
    sql: u16,
    /// Replication between the nodes.
    group: u16,
    /// Catching up after a short absence.
    incremental: u16,
    /// The first copy of everything.
    snapshot: u16,
}

impl Ports {
    fn free() -> Result<Ports> {
        Ok(Ports {
            sql: port::free()?,
            group: port::free()?,
            incremental: port::free()?,
            snapshot: port::free()?,
        })
    }
}

struct Launch<'a> {
    account: Account,
    provider: PathBuf,
    site: &'a Site<'a>,
}

impl Launch<'_> {
    /// Starts a node: a new cluster, or a member of the one whose first node replicates at `join`.
    fn node(&self, dir: PathBuf, data: &Path, ports: &Ports, join: Option<u16>) -> Result<Node> {
        let Ports { sql, group, incremental, snapshot } = ports;
        let mut command = mariadb_node::server(&self.account, &dir, data, *sql, self.site.durability)?;
        command
            .args(["--wsrep-on=ON", "--wsrep-cluster-name=sendoff", "--wsrep-node-address=127.0.0.1"])
            .args(["--wsrep-sst-method=rsync", "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2"])
            .arg(format!("--wsrep-provider={}", self.provider.display()))
            .arg(format!("--wsrep-sst-receive-address=127.0.0.1:{snapshot}"))
            .arg(format!(
                "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};base_port={group};\
                 ist.recv_addr=127.0.0.1:{incremental};gcache.size=64M;{PATIENCE}"
            ));
        match join {
            None => command.args(["--wsrep-new-cluster", "--wsrep-cluster-address=gcomm://"]),
            Some(group) => command.arg(format!("--wsrep-cluster-address=gcomm://127.0.0.1:{group}")),
        };
        let process = Process::spawn(&mut command, dir.join("server.log"), Signal::SIGTERM)?;
        Ok(Node { process, port: *sql, dir })
    }

    /// Waits until a node has all data and sees this many members.
    fn await_synced(&self, node: &mut Node, members: u32) -> Result<()> {
        let port = node.port;
        let state = || {
            let status = mariadb_node::query(
                port,
                "SELECT GROUP_CONCAT(VARIABLE_VALUE ORDER BY VARIABLE_NAME) FROM information_schema.GLOBAL_STATUS \
                 WHERE VARIABLE_NAME IN ('WSREP_CLUSTER_SIZE', 'WSREP_LOCAL_STATE_COMMENT')",
            )?;
            let wanted = format!("{members},Synced");
            ensure!(status == wanted, "cluster size and state are {status}, not {wanted}");
            Ok(())
        };
        let name = node.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.site
            .await_ready(&mut node.process, READY_LIMIT, state)
            .with_context(|| format!("the cluster's {name}"))
    }
}
