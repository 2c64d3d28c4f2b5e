//! Somebody who listens.

use std::collections::BTreeMap;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sendoff::testkit::Received;
use serde_json::Value;

use super::{MARKER, TOPIC};

/// MQTT 5 as it is written down, without any client's code. It reads when it is asked what has come; until then the server keeps it.
pub(super) struct Listener {
    reader: BufReader<TcpStream>,
    pub(super) received: Vec<Received>,
    /// Of the last one, as a property.
    pub(super) content_type: Option<String>,
    markers: u64,
}

impl Listener {
    /// A session that outlives its connection, and the server if that keeps it.
    pub(super) fn connect(port: u16, name: &str) -> Option<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        let (reader, received) = (BufReader::new(stream), Vec::new());
        let mut listener = Self { reader, received, content_type: None, markers: 0 };
        // Version 5, no clean start, no keep-alive; the session never expires.
        let mut body = text("MQTT");
        body.extend([5, 0, 0, 0, 5, 0x11, 0xFF, 0xFF, 0xFF, 0xFF]);
        body.extend(text(name));
        listener.write(0x10, &body)?;
        // A server that wants a password is there as well.
        listener.read().filter(|(kind, _)| *kind == 0x20).map(|_| listener)
    }

    pub(super) fn subscribe(&mut self) {
        let mut body = vec![0, 1, 0];
        for topic in [TOPIC, MARKER] {
            body.extend(text(topic));
            body.push(1);
        }
        self.write(0x82, &body).unwrap();
        while self.hear().expect("it answers").0 != 0x90 {}
    }

    /// Everything that was acknowledged before: what comes after it is behind this marker.
    pub(super) fn so_far(&mut self) -> Vec<Received> {
        self.markers += 1;
        let marker = self.markers.to_string();
        let mut body = text(MARKER);
        body.extend([0, 2, 0]);
        body.extend(marker.as_bytes());
        self.write(0x32, &body).unwrap();
        while self.hear().expect("it answers").1.as_deref() != Some(marker.as_bytes()) {}
        self.received.clone()
    }

    /// What came before the connection ended.
    pub(super) fn rest(mut self) -> Vec<Received> {
        while self.hear().is_some() {}
        self.received
    }

    /// Takes the next packet in: its kind, and what it says if it is a marker.
    fn hear(&mut self) -> Option<(u8, Option<Vec<u8>>)> {
        let (kind, body) = self.read()?;
        if kind & 0xF0 != 0x30 {
            return Some((kind, None));
        }
        let mut rest = body.as_slice();
        let topic = take_text(&mut rest);
        let id = take(&mut rest, 2).to_vec();
        let (headers, content_type) = properties(&mut rest);
        // The server may be gone already.
        let _ = self.write(0x40, &id);
        if topic == MARKER {
            return Some((kind, Some(rest.to_vec())));
        }
        self.content_type = content_type;
        let is_structured = !headers.contains_key("specversion");
        self.received.push(if is_structured { of_body(rest) } else { of_properties(headers, rest) });
        Some((kind, None))
    }

    fn write(&mut self, kind: u8, body: &[u8]) -> Option<()> {
        let mut packet = vec![kind];
        let mut length = body.len();
        loop {
            let (low, high) = (u8::try_from(length % 128).unwrap(), length / 128);
            packet.push(if high > 0 { low | 0x80 } else { low });
            length = high;
            if length == 0 {
                break;
            }
        }
        packet.extend(body);
        self.reader.get_mut().write_all(&packet).ok()
    }

    fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte).ok()?;
        let kind = byte[0];
        let (mut length, mut shift) = (0, 0);
        loop {
            self.reader.read_exact(&mut byte).ok()?;
            length |= usize::from(byte[0] & 0x7F) << shift;
            shift += 7;
            if byte[0] & 0x80 == 0 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).ok()?;
        Some((kind, body))
    }
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = u16::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, left) = rest.split_at(count);
    *rest = left;
    taken
}

fn take_text(rest: &mut &[u8]) -> String {
    let length = u16::from_be_bytes(take(rest, 2).try_into().unwrap());
    String::from_utf8(take(rest, length.into()).to_vec()).unwrap()
}

/// User properties, and beside them the content type.
fn properties(rest: &mut &[u8]) -> (BTreeMap<String, String>, Option<String>) {
    let (mut length, mut shift) = (0, 0);
    loop {
        let byte = take(rest, 1)[0];
        length |= usize::from(byte & 0x7F) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    let mut bytes = take(rest, length);
    let (mut properties, mut content_type) = (BTreeMap::new(), None);
    while !bytes.is_empty() {
        match take(&mut bytes, 1)[0] {
            0x03 => content_type = Some(take_text(&mut bytes)),
            0x26 => {
                let (name, value) = (take_text(&mut bytes), take_text(&mut bytes));
                assert_eq!(properties.insert(name, value), None, "each once");
            }
            other => panic!("a property that nobody sent: {other}"),
        }
    }
    (properties, content_type)
}

/// Binary mode.
fn of_properties(headers: BTreeMap<String, String>, payload: &[u8]) -> Received {
    Received {
        id: headers["id"].clone(),
        key: headers.get("partitionkey").cloned(),
        payload: payload.to_vec(),
        headers,
    }
}

/// Structured mode.
fn of_body(body: &[u8]) -> Received {
    let json: BTreeMap<String, Value> = serde_json::from_slice(body).unwrap();
    let payload = match json.get("data") {
        Some(data) => data.to_string().into_bytes(),
        None => STANDARD.decode(json["data_base64"].as_str().unwrap()).unwrap(),
    };
    let texts = json.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
    let mut headers: BTreeMap<String, String> = texts.collect();
    assert!(headers.remove("datacontenttype").is_none_or(|name| name == "application/octet-stream"));
    of_properties(headers, &payload)
}
