//! A store that goes away, and comes back.

use crate::private;
use crate::process::{Process, until};
use crate::program::run;

#[test]
fn a_process_is_not_ready_while_its_store_is_away() {
    let Some(mut server) = private::postgres("SENDOFF_TEST_POSTGRES15") else { return };
    let config = server.outbox.directory.path().join("sendoff.toml");
    let text = "[relay]\nlease = \"3s\"\n[admin]\nlisten = \"127.0.0.1:0\"\nready_within = \"1s\"\n\
                [targets.default]\nsink = \"null:\"\n";
    std::fs::write(&config, text).unwrap();
    server.outbox.enqueue(&["t"]);
    let mut process = Process::start(server.outbox.command(&["run"]).env("SENDOFF_CONFIG", &config));
    let admin = process.admin();
    until("it is delivered", || {
        (admin.figure("sendoff_events_published_total", "default") == 1.0).then_some(())
    });
    assert_eq!(admin.get("/readyz").0, 200);
    server.stop();
    let body = until("it is not ready", || {
        let (status, body) = admin.get("/readyz");
        (status == 503).then_some(body)
    });
    assert!(body.contains("store \"default\" has not answered for"), "{body}");
    assert_eq!(admin.get("/healthz"), (200, "ok\n".to_owned()), "a restart would not bring the store back");
    until("its figures say so", || {
        (admin.figures().get("sendoff_store_up{store=\"default\"}") == Some(&0.0)).then_some(())
    });
    let probed = run(&["probe", "readyz", "--admin", &admin.0.to_string()]);
    assert!(probed.code == 1 && probed.text.contains("has not answered"), "{}{}", probed.text, probed.errors);
    assert!(process.said("trying again").contains("WARN"));
    server.start_again();
    until("it is ready again", || (admin.get("/readyz").0 == 200).then_some(()));
    until("an event can be written", || (server.outbox.run(&["enqueue", "t"]).code == 0).then_some(()));
    until("and is delivered", || {
        (admin.figure("sendoff_events_published_total", "default") == 2.0).then_some(())
    });
    let (status, _) = process.stop();
    assert!(status.success(), "{:#?}", process.log());
}
