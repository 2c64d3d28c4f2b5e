//! The examples, run as a reader would run them.

use libtest_mimic::Trial;

use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("examples::process_manager".to_owned(), None, || async {
            let said = run("process_manager").await;
            assert!(said.contains("200 replies, 200 steps taken, 0 taken twice"), "{said}");
        }),
        trial("examples::projection_rebuild".to_owned(), None, || async {
            let said = run("projection_rebuild").await;
            assert!(said.contains("projected 5000 of 5000 events, 0 twice"), "{said}");
        }),
        trial("examples::inbox".to_owned(), None, || async {
            let said = run("inbox").await;
            assert!(said.contains("6 deliveries, 1 seen before, 4 bookings of 100"), "{said}");
        }),
        trial("examples::tasks".to_owned(), None, || async {
            let said = run("tasks").await;
            assert!(said.contains("given up: nobody is no address"), "{said}");
            assert!(said.contains("2 mails sent, 1 given up, 1 report"), "{said}");
        }),
    ]
}

async fn run(name: &str) -> String {
    // Cargo builds examples next to the folder of this test.
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let program = path.join("examples").join(name);
    let output = tokio::process::Command::new(&program).output().await.unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo test` builds it", program.display());
    });
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}
