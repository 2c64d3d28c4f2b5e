//! What the sink makes of a server's words, some of which no real server can be made to say when they are wanted.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::json_line::tests::claimed;

#[test]
fn a_word_of_the_server_is_about_the_event_or_the_sink() {
    let event = claimed(1, None, b"x");
    let of = |verdict, need_subscriber| {
        classify(verdict, &MqttConfig { need_subscriber, ..MqttConfig::new("mqtt://h") }, &event)
    };
    assert_eq!(of(Verdict::Taken, true), Delivery::Delivered);
    assert_eq!(of(Verdict::NoSubscriber, false), Delivery::Delivered);
    for verdict in [Verdict::NoSubscriber, Verdict::Quota, Verdict::Other("unspecified error")] {
        assert!(matches!(of(verdict, true), Delivery::Retry { .. }), "{verdict:?}");
    }
    for verdict in [Verdict::InvalidTopic, Verdict::InvalidPayload] {
        assert!(matches!(of(verdict, false), Delivery::Reject { .. }), "{verdict:?}");
    }
    let refused = of(Verdict::NotAuthorized, false);
    assert!(matches!(&refused, Delivery::Down { error } if error.contains("`orders`")), "{refused:?}");
}

#[test]
fn a_client_id_is_one_that_every_server_takes() {
    let (one, other) = (unique(), unique());
    assert!(one != other && one.len() == 23, "{one} {other}");
}

#[tokio::test]
async fn a_password_is_shown_nowhere() {
    let sink = Mqtt::new(MqttConfig::new("mqtt://user:s3cret@127.0.0.1:1")).unwrap();
    let error = sink.check().await.unwrap_err();
    assert!(error.to_string().contains("127.0.0.1:1: "), "{error}");
    let shown = format!("{sink:?} {:?} {error} {error:?}", sink.config);
    assert!(!shown.contains("s3cret"), "{shown}");
    let error = Mqtt::new(MqttConfig::new("http://user:s3cret@localhost")).unwrap_err();
    assert!(!error.to_string().contains("s3cret"), "{error}");
    let password = Some(Secret::Plain("s3cret".to_owned()));
    let sink = Mqtt::new(MqttConfig { password, ..MqttConfig::new("mqtt://user@127.0.0.1:1") }).unwrap();
    let shown = format!("{sink:?} {:?}", sink.check().await);
    assert!(shown.contains("Secret(..)") && !shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn a_password_that_is_not_there_is_said() {
    let password = Some(Secret::File("/nowhere/password".into()));
    let sink = Mqtt::new(MqttConfig { password, ..MqttConfig::new("mqtt://user@127.0.0.1:1") }).unwrap();
    let named = "127.0.0.1:1: `password`: the file /nowhere/password cannot be read";
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains(named), "{error}");
    let delivery = sink.publish(&events(1)).await.remove(0);
    assert!(matches!(&delivery, Delivery::Down { error } if error.contains(named)), "{delivery:?}");
}

#[test]
fn files_for_encryption_are_not_left_unused() {
    let config = MqttConfig { ca_file: Some("/ca.pem".into()), ..MqttConfig::new("mqtt://h") };
    assert!(Mqtt::new(config).unwrap_err().to_string().contains("give mqtts://"));
}

/// A server that says what a test wants.
struct Scripted {
    listener: TcpListener,
}

impl Scripted {
    async fn start() -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Self { listener }, address)
    }

    /// Lets a client in, with this MQTT 5 answer.
    async fn accept(&self, answer: &[u8]) -> TcpStream {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        assert_eq!(packet(&mut stream).await.unwrap().0, 0x10);
        stream.write_all(answer).await.unwrap();
        stream
    }
}

const WELCOME: [u8; 5] = [0x20, 3, 0, 0, 0];

/// The next packet: what it is, and the rest.
async fn packet(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let kind = stream.read_u8().await.ok()?;
    let (mut length, mut shift) = (0, 0);
    loop {
        let byte = stream.read_u8().await.ok()?;
        length |= usize::from(byte & 0x7F) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((kind, body))
}

/// The number and the payload, of one byte, of a message to `orders`.
async fn message(stream: &mut TcpStream) -> Option<([u8; 2], u8)> {
    let (kind, body) = packet(stream).await?;
    assert_eq!(kind & 0xF0, 0x30);
    Some(([body[8], body[9]], *body.last()?))
}

fn sink(address: SocketAddr, qos: MqttQos) -> Mqtt {
    let timeout = Duration::from_millis(500);
    Mqtt::new(MqttConfig { qos, timeout, ..MqttConfig::new(format!("mqtt://{address}")) }).unwrap()
}

fn events(count: u8) -> Vec<Claimed> {
    (0..count).map(|number| claimed(number.into(), None, &[number])).collect()
}

#[tokio::test]
async fn answers_in_any_order_are_for_their_events() {
    let (server, address) = Scripted::start().await;
    tokio::spawn(async move {
        let mut stream = server.accept(&WELCOME).await;
        let mut sent = Vec::new();
        for _ in 0..10 {
            sent.push(message(&mut stream).await.unwrap());
        }
        for ([high, low], number) in sent.into_iter().rev() {
            // Each third is refused.
            let reason = if number % 3 == 0 { 0x97 } else { 0 };
            stream.write_all(&[0x40, 4, high, low, reason, 0]).await.unwrap();
        }
        packet(&mut stream).await
    });
    let deliveries = sink(address, MqttQos::One).publish(&events(10)).await;
    for (index, delivery) in deliveries.iter().enumerate() {
        assert_eq!(matches!(delivery, Delivery::Retry { .. }), index % 3 == 0, "{index}: {delivery:?}");
        assert_eq!(*delivery == Delivery::Delivered, index % 3 != 0, "{index}: {delivery:?}");
    }
}

#[tokio::test]
async fn two_is_delivered_with_the_last_answer() {
    let (server, address) = Scripted::start().await;
    let answering = tokio::spawn(async move {
        let mut stream = server.accept(&WELCOME).await;
        let (id, _) = message(&mut stream).await.unwrap();
        stream.write_all(&[0x50, 2, id[0], id[1]]).await.unwrap();
        assert_eq!(packet(&mut stream).await, Some((0x62, id.to_vec())));
        // The second answer never comes.
        drop(stream);
        let mut stream = server.accept(&WELCOME).await;
        let (id, _) = message(&mut stream).await.unwrap();
        stream.write_all(&[0x50, 2, id[0], id[1]]).await.unwrap();
        assert_eq!(packet(&mut stream).await, Some((0x62, id.to_vec())));
        stream.write_all(&[0x70, 2, id[0], id[1]]).await.unwrap();
        packet(&mut stream).await
    });
    let sink = sink(address, MqttQos::Two);
    let deliveries = sink.publish(&events(1)).await;
    assert!(matches!(deliveries[0], Delivery::Down { .. }), "{deliveries:?}");
    assert_eq!(sink.publish(&events(1)).await, [Delivery::Delivered]);
    drop(sink);
    assert_eq!(answering.await.unwrap(), Some((0xE0, Vec::new())), "it ends politely with the sink");
}

/// What was lost with a connection is not sent on the next one, unless somebody says so.
#[tokio::test]
async fn nothing_is_sent_again_by_itself() {
    let (server, address) = Scripted::start().await;
    let answering = tokio::spawn(async move {
        // One at a time.
        let mut stream = server.accept(&[0x20, 6, 0, 0, 3, 0x21, 0, 1]).await;
        assert_eq!(message(&mut stream).await.unwrap().1, 0);
        drop(stream);
        let mut stream = server.accept(&WELCOME).await;
        let (id, number) = message(&mut stream).await.unwrap();
        stream.write_all(&[0x40, 2, id[0], id[1]]).await.unwrap();
        (number, packet(&mut stream).await)
    });
    let sink = sink(address, MqttQos::One);
    let deliveries = sink.publish(&events(5)).await;
    assert!(deliveries.iter().all(|delivery| matches!(delivery, Delivery::Down { .. })), "{deliveries:?}");
    assert_eq!(sink.publish(&[claimed(9, None, &[9])]).await, [Delivery::Delivered]);
    sink.close().await.unwrap();
    assert_eq!(answering.await.unwrap(), (9, Some((0xE0, Vec::new()))));
}

/// A dropped call's messages that were not sent yet are not sent at all.
#[tokio::test]
async fn what_nobody_waits_for_is_not_sent() {
    let (server, address) = Scripted::start().await;
    let (asked, answer) = tokio::sync::oneshot::channel::<()>();
    let answering = tokio::spawn(async move {
        let mut stream = server.accept(&[0x20, 6, 0, 0, 3, 0x21, 0, 1]).await;
        let (id, _) = message(&mut stream).await.unwrap();
        answer.await.unwrap();
        stream.write_all(&[0x40, 2, id[0], id[1]]).await.unwrap();
        let (id, number) = message(&mut stream).await.unwrap();
        stream.write_all(&[0x40, 2, id[0], id[1]]).await.unwrap();
        (number, packet(&mut stream).await.map(|(kind, _)| kind))
    });
    let sink = sink(address, MqttQos::One);
    let dropped = events(5);
    assert!(tokio::time::timeout(Duration::from_millis(50), sink.publish(&dropped)).await.is_err());
    asked.send(()).unwrap();
    assert_eq!(sink.publish(&[claimed(9, None, &[9])]).await, [Delivery::Delivered]);
    sink.close().await.unwrap();
    assert_eq!(answering.await.unwrap(), (9, Some(0xE0)));
}

#[tokio::test]
async fn a_server_that_answers_but_does_not_acknowledge_is_not_down() {
    let (server, address) = Scripted::start().await;
    tokio::spawn(async move {
        loop {
            let mut stream = server.accept(&WELCOME).await;
            while let Some((kind, _)) = packet(&mut stream).await {
                if kind == 0xC0 {
                    stream.write_all(&[0xD0, 0]).await.unwrap();
                }
            }
        }
    });
    let sink = sink(address, MqttQos::One);
    let deliveries = sink.publish(&events(2)).await;
    assert!(deliveries.iter().all(|delivery| matches!(delivery, Delivery::Retry { .. })), "{deliveries:?}");
    sink.check().await.unwrap();
}

#[tokio::test]
async fn a_server_that_says_nothing_is_down_in_time() {
    let (server, address) = Scripted::start().await;
    tokio::spawn(async move {
        let mut streams = Vec::new();
        loop {
            streams.push(server.accept(&WELCOME).await);
        }
    });
    let sink = sink(address, MqttQos::One);
    let began = Instant::now();
    // More than a connection takes by itself.
    let deliveries = sink.publish(&[claimed(1, None, &vec![0; 20_000_000])]).await;
    assert!(matches!(&deliveries[0], Delivery::Down { error } if error.contains("answer")), "{deliveries:?}");
    assert!(sink.check().await.is_err());
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// It cannot be told which one of those on their way; the relay tries them again, each in its own time.
#[tokio::test]
async fn a_server_that_closes_over_a_message_is_not_down() {
    let (server, address) = Scripted::start().await;
    tokio::spawn(async move {
        for reason in [0x81, 0x8B] {
            let mut stream = server.accept(&WELCOME).await;
            message(&mut stream).await.unwrap();
            stream.write_all(&[0xE0, 2, reason, 0]).await.unwrap();
        }
    });
    let sink = sink(address, MqttQos::One);
    let delivery = sink.publish(&events(1)).await.remove(0);
    assert!(
        matches!(&delivery, Delivery::Retry { error, .. } if error.contains("Malformed")),
        "{delivery:?}"
    );
    let delivery = sink.publish(&events(1)).await.remove(0);
    assert!(matches!(&delivery, Delivery::Down { error } if error.contains("ShuttingDown")), "{delivery:?}");
}

#[tokio::test]
async fn a_server_that_acknowledges_what_was_not_sent_is_not_believed() {
    let (server, address) = Scripted::start().await;
    tokio::spawn(async move {
        let mut stream = server.accept(&WELCOME).await;
        let (id, _) = message(&mut stream).await.unwrap();
        stream.write_all(&[0x40, 2, id[0] + 1, id[1]]).await.unwrap();
        packet(&mut stream).await
    });
    let delivery = sink(address, MqttQos::One).publish(&events(1)).await.remove(0);
    assert!(matches!(&delivery, Delivery::Down { error } if error.contains("not sent")), "{delivery:?}");
}

#[tokio::test]
async fn a_server_that_cannot_do_what_is_wanted_is_told_apart() {
    for (max, qos, is_good) in [(0, MqttQos::One, false), (1, MqttQos::One, true), (1, MqttQos::Two, false)] {
        let (server, address) = Scripted::start().await;
        tokio::spawn(async move {
            let mut stream = server.accept(&[0x20, 5, 0, 0, 2, 0x24, max]).await;
            let _ = packet(&mut stream).await;
            let _ = stream.write_all(&[0xD0, 0]).await;
            packet(&mut stream).await
        });
        let checked = sink(address, qos).check().await;
        assert_eq!(checked.is_ok(), is_good, "{max} {qos:?} {checked:?}");
    }
}

#[tokio::test]
async fn many_calls_wait_for_a_server_that_says_nothing_once() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let sink = Arc::new(sink(silent.local_addr().unwrap(), MqttQos::One));
    let began = Instant::now();
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let sink = Arc::clone(&sink);
            tokio::spawn(async move { sink.publish(&events(1)).await })
        })
        .collect();
    for call in calls {
        let deliveries = call.await.unwrap();
        assert!(matches!(deliveries[0], Delivery::Down { .. }), "{deliveries:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}
