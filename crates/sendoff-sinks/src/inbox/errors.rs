//! What a database's error means for the events of a statement.

use crate::tls;
use crate::unusable::REACHED;

/// Whose fault it is, and what was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// One of the rows is none that the table takes.
    Refused(String),
    /// Not this time.
    Retry(String),
    /// The database cannot be written to now, whatever it is.
    Down(String),
    /// Nor later, before somebody has mended it: the table, the user, the configuration.
    Wrong(String),
}

/// By SQLSTATE, or by SQLite's own number where there is none.
pub(super) fn classify(error: &sqlx::Error) -> Fault {
    let text = error.to_string();
    let sqlx::Error::Database(database) = error else {
        return match error {
            sqlx::Error::Encode(_) => Fault::Refused(text),
            sqlx::Error::Tls(_) => {
                Fault::Wrong(format!("{text}{}", tls::hint(error).unwrap_or("; does it speak TLS there?")))
            }
            // A connection that ends while it is made is a breach of the protocol to the driver.
            _ => match tls::hint(error) {
                Some(hint) => Fault::Wrong(format!("{text}{hint}")),
                None => Fault::Down(format!("{text}{REACHED}")),
            },
        };
    };
    let code = database.code().unwrap_or_default();
    if let Some(mysql) = database.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return by_mysql(mysql.number(), text);
    }
    if database.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() {
        return by_sqlite(code.parse().unwrap_or_default(), text);
    }
    by_sqlstate(&code, text)
}

fn by_sqlstate(code: &str, text: String) -> Fault {
    match code {
        "42P01" => Fault::Wrong(format!("{text}; make it, or let it be made with `create`")),
        "42703" => Fault::Wrong(format!("{text}; the table was not made for this")),
        "28000" if text.contains("client certificate") => {
            Fault::Wrong(format!("{text}; give `client_cert_file` and `client_key_file`"))
        }
        "28P01" | "28000" => Fault::Wrong(format!("{text}; user or password are wrong")),
        "42501" => Fault::Wrong(format!("{text}; the user needs INSERT and SELECT on the table")),
        "55P03" | "57014" => Fault::Retry(text),
        _ => match code.get(..2) {
            // What a value is, or what a constraint says about it.
            Some("22" | "23") => Fault::Refused(text),
            Some("40") => Fault::Retry(text),
            // Connections, resources, an operator, the configuration.
            _ => Fault::Down(text),
        },
    }
}

fn by_mysql(number: u16, text: String) -> Fault {
    match number {
        1146 => Fault::Wrong(format!("{text}; make it, or let it be made with `create`")),
        1054 => Fault::Wrong(format!("{text}; the table was not made for this")),
        // It says the same of a user who has to have a certificate and shows none.
        1045 => Fault::Wrong(format!(
            "{text}; user or password are wrong, or the user is known by a certificate: give `client_cert_file` and `client_key_file`"
        )),
        1044 | 1698 => Fault::Wrong(format!("{text}; user or password are wrong")),
        1142 | 1143 => Fault::Wrong(format!("{text}; the user needs INSERT and SELECT on the table")),
        // A deadlock, a lock that was not to be had, a statement that was stopped.
        1205 | 1213 | 1317 | 3024 | 1969 => Fault::Retry(text),
        // What does not fit, or is larger than a packet, or breaks a constraint.
        1048 | 1062 | 1153 | 1264 | 1292 | 1366 | 1406 | 1452 | 3819 | 4025 => Fault::Refused(text),
        _ => Fault::Down(text),
    }
}

fn by_sqlite(code: u32, text: String) -> Fault {
    match code & 0xff {
        // BUSY, LOCKED
        5 | 6 => Fault::Retry(text),
        // TOOBIG, CONSTRAINT, MISMATCH
        18..=20 => Fault::Refused(text),
        // ERROR: a table or a column that is not there.
        1 => Fault::Wrong(format!("{text}; make the table, or let it be made with `create`")),
        _ => Fault::Down(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(fault: &Fault) -> &'static str {
        match fault {
            Fault::Refused(_) => "refused",
            Fault::Retry(_) => "retry",
            Fault::Down(_) => "down",
            Fault::Wrong(_) => "wrong",
        }
    }

    #[test]
    fn a_connection_that_ends_is_nobodys_fault_here() {
        let ended = sqlx::Error::Protocol("unexpected response from SSLRequest: 0x00".to_owned());
        assert_eq!(word(&classify(&ended)), "down");
        assert_eq!(word(&classify(&sqlx::Error::PoolTimedOut)), "down");
        assert_eq!(word(&classify(&sqlx::Error::Encode("too long".into()))), "refused");
    }

    #[test]
    fn each_code_means_one_thing() {
        for (code, expected) in [
            ("22021", "refused"),
            ("22P05", "refused"),
            ("23514", "refused"),
            ("40001", "retry"),
            ("40P01", "retry"),
            ("55P03", "retry"),
            ("57014", "retry"),
            ("42P01", "wrong"),
            ("42501", "wrong"),
            ("28P01", "wrong"),
            ("53300", "down"),
            ("57P01", "down"),
            ("08006", "down"),
            ("25006", "down"),
        ] {
            assert_eq!(word(&by_sqlstate(code, String::new())), expected, "{code}");
        }
        for (number, expected) in [
            (1406, "refused"),
            (1366, "refused"),
            (1153, "refused"),
            (1213, "retry"),
            (1205, "retry"),
            (1146, "wrong"),
            (1045, "wrong"),
            (1142, "wrong"),
            (1040, "down"),
            (1290, "down"),
        ] {
            assert_eq!(word(&by_mysql(number, String::new())), expected, "{number}");
        }
        for (code, expected) in [
            (5, "retry"),
            (261, "retry"),
            (6, "retry"),
            (18, "refused"),
            (1299, "refused"),
            (1, "wrong"),
            (8, "down"),
            (13, "down"),
        ] {
            assert_eq!(word(&by_sqlite(code, String::new())), expected, "{code}");
        }
    }
}
