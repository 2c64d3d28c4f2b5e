//! A test on SQLite, and on the servers that are there.

macro_rules! on_every_store {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $test() { super::$test(&crate::outbox::Outbox::new()); })*
        }
        mod postgres {
            $(#[test] fn $test() {
                let there = crate::outbox::Outbox::on_server("SENDOFF_TEST_POSTGRES15");
                if let Some(outbox) = there { super::$test(&outbox); }
            })*
        }
        mod mariadb {
            $(#[test] fn $test() {
                let there = crate::outbox::Outbox::on_server("SENDOFF_TEST_MARIADB");
                if let Some(outbox) = there { super::$test(&outbox); }
            })*
        }
    };
}
pub(crate) use on_every_store;
