//! The servers that tests use, named by environment variables.

use std::io::Write as _;

/// A server, or a tool that must be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Postgres15,
    Postgres18,
    Pgbouncer,
    Mariadb,
    Galera,
    Faketime,
    Python,
}

impl Server {
    const ALL: [Self; 7] = [
        Self::Postgres15,
        Self::Postgres18,
        Self::Pgbouncer,
        Self::Mariadb,
        Self::Galera,
        Self::Faketime,
        Self::Python,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres15 => "postgres15",
            Self::Postgres18 => "postgres18",
            Self::Pgbouncer => "pgbouncer",
            Self::Mariadb => "mariadb",
            Self::Galera => "galera",
            Self::Faketime => "faketime",
            Self::Python => "python",
        }
    }

    fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Postgres15 => &["SENDOFF_TEST_POSTGRES15"],
            Self::Postgres18 => &["SENDOFF_TEST_POSTGRES18"],
            Self::Pgbouncer => &["SENDOFF_TEST_PGBOUNCER", "SENDOFF_TEST_POSTGRES15"],
            Self::Mariadb => &["SENDOFF_TEST_MARIADB"],
            Self::Galera => &["SENDOFF_TEST_GALERA_1", "SENDOFF_TEST_GALERA_2"],
            Self::Faketime => &["SENDOFF_TEST_FAKETIME"],
            Self::Python => &["SENDOFF_TEST_PYTHON"],
        }
    }

    pub(crate) fn is_missing(self) -> bool {
        self.variables().iter().any(|variable| std::env::var_os(variable).is_none())
    }

    /// Without it the run fails, instead of passing over it.
    pub(crate) fn is_required(self) -> bool {
        let required = std::env::var("SENDOFF_TEST_REQUIRE").unwrap_or_default();
        required.split(',').any(|name| name == self.name() || name == "all")
    }

    /// Its address; of the second kind for a server that has two.
    pub(crate) fn url_of(self, number: usize) -> String {
        let variable = self.variables()[number];
        std::env::var(variable)
            .unwrap_or_else(|_| panic!("{} is required, but {variable} is not set", self.name()))
    }

    pub(crate) fn url(self) -> String {
        self.url_of(0)
    }
}

/// `cargo xtask test`, which says what must be there, and takes its time.
pub(crate) fn is_full_run() -> bool {
    std::env::var_os("SENDOFF_TEST_REQUIRE").is_some_and(|required| !required.is_empty())
}

/// Over so many rows a race goes.
pub(crate) fn race_rows() -> i64 {
    if is_full_run() { 20_000 } else { 4_000 }
}

/// Says what is passed over, past the test runner's capture.
pub(crate) fn report_missing() {
    let skipped: Vec<&str> = Server::ALL
        .into_iter()
        .filter(|server| server.is_missing() && !server.is_required())
        .map(Server::name)
        .collect();
    if !skipped.is_empty() {
        let _ = writeln!(
            std::io::stderr(),
            "skipped, no server: {}; `cargo xtask test` starts them",
            skipped.join(", ")
        );
    }
}
