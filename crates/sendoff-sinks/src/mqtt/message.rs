//! From an event to a packet, with what can never be sent refused before.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use rumqttc::mqttbytes::v4;
use rumqttc::v5::mqttbytes::v5;
use sendoff::outbox::Claimed;

use super::{MqttConfig, MqttQos, MqttVersion};
use crate::envelope::{Carrier, Mode};

/// A text has so many bytes at most: its length goes before it in two bytes.
const TEXT_MAX: usize = 65_535;

/// A packet has so many bytes at most, whoever takes it.
const PACKET_MAX: usize = 268_435_455;

/// An event as it is published.
#[derive(Debug, Clone)]
pub(super) enum Message {
    V5(v5::Publish),
    V3(v4::Publish),
}

impl Message {
    /// # Errors
    /// Why the event cannot be published, ever.
    pub(super) fn new(config: &MqttConfig, event: &Claimed) -> Result<Self, String> {
        let topic = config.topic.fill(&event.event)?;
        check_topic(&topic)?;
        let message = match config.version {
            MqttVersion::V5 => Self::with_properties(config, topic, event)?,
            MqttVersion::V3 => {
                let body = config.envelope.wrap_whole(event)?;
                let qos = match config.qos {
                    MqttQos::One => rumqttc::QoS::AtLeastOnce,
                    MqttQos::Two => rumqttc::QoS::ExactlyOnce,
                };
                Self::V3(v4::Publish::from_bytes(topic, qos, Bytes::from(body)))
            }
        }
        // Any, so that its size is right.
        .with_id(1);
        message.check_size(config.max_packet.map_or(PACKET_MAX, |max| max as usize))?;
        Ok(message)
    }

    fn with_properties(config: &MqttConfig, topic: String, event: &Claimed) -> Result<Self, String> {
        let envelope = config.envelope.wrap(&Carrier::MQTT, event)?;
        for (name, value) in &envelope.headers {
            check_text(&format!("header name `{}`", name.escape_debug()), name)?;
            check_text(&format!("header `{name}`"), value)?;
            // The property for it is another one.
            if *name == "datacontenttype" && config.envelope.mode == Mode::Binary {
                return Err(format!("its header `{name}` has the name of one that says what the event is"));
            }
        }
        let content_type = envelope.content_type.map(Cow::into_owned);
        if let Some(content_type) = &content_type {
            check_text("content type", content_type)?;
        }
        let owned = |(name, value): (&str, Cow<'_, str>)| (name.to_owned(), value.into_owned());
        let properties = v5::PublishProperties {
            user_properties: envelope.headers.into_iter().map(owned).collect(),
            content_type,
            ..v5::PublishProperties::default()
        };
        let qos = match config.qos {
            MqttQos::One => rumqttc::v5::mqttbytes::QoS::AtLeastOnce,
            MqttQos::Two => rumqttc::v5::mqttbytes::QoS::ExactlyOnce,
        };
        Ok(Self::V5(v5::Publish::new(topic, qos, Bytes::from(envelope.body.into_owned()), Some(properties))))
    }

    /// The same, under this number.
    pub(super) fn with_id(mut self, id: u16) -> Self {
        match &mut self {
            Self::V5(publish) => publish.pkid = id,
            Self::V3(publish) => publish.pkid = id,
        }
        self
    }

    pub(super) fn write(&self, buffer: &mut BytesMut) -> Result<(), String> {
        let written = match self {
            Self::V5(publish) => publish.write(buffer).map_err(|error| error.to_string()),
            Self::V3(publish) => publish.write(buffer).map_err(|error| error.to_string()),
        };
        written.map(|_| ())
    }

    /// # Errors
    /// That it is too large for who takes so many bytes.
    pub(super) fn check_size(&self, max: usize) -> Result<(), String> {
        let size = match self {
            Self::V5(publish) => publish.size(),
            Self::V3(publish) => publish.size(),
        };
        if size <= max {
            return Ok(());
        }
        Err(format!("it is too large: a packet of {size} bytes, and the server takes {max}"))
    }
}

/// A name without wildcards: those are for who listens.
fn check_topic(topic: &str) -> Result<(), String> {
    let shown = || topic.chars().take(100).flat_map(char::escape_debug).collect::<String>();
    if topic.is_empty() {
        return Err("its topic is empty".to_owned());
    }
    if topic.contains(['+', '#']) {
        return Err(format!("`{}` is no topic to publish to: `+` and `#` are for who listens", shown()));
    }
    check_text(&format!("topic `{}`", shown()), topic)
}

/// A server may close the connection over a text that has these, and everything else that is on its way would suffer for it.
fn check_text(name: &str, text: &str) -> Result<(), String> {
    if text.len() > TEXT_MAX {
        return Err(format!("its {name} has more than {TEXT_MAX} bytes"));
    }
    let is_wrong = |letter: &char| {
        letter.is_control()
            || matches!(letter, '\u{FDD0}'..='\u{FDEF}')
            || matches!(u32::from(*letter) & 0xFFFF, 0xFFFE | 0xFFFF)
    };
    match text.chars().find(is_wrong) {
        Some(wrong) => {
            Err(format!("its {name} has a character that MQTT does not take: {}", wrong.escape_unicode()))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json_line::tests::claimed;

    fn config(version: MqttVersion) -> MqttConfig {
        MqttConfig { version, topic: "a/{key}".parse().unwrap(), ..MqttConfig::new("mqtt://h") }
    }

    fn refused(config: &MqttConfig, event: &Claimed) -> String {
        Message::new(config, event).err().unwrap_or_default()
    }

    #[test]
    fn what_can_never_be_published_is_refused_with_a_reason() {
        let long = "x".repeat(65_536);
        for version in [MqttVersion::V5, MqttVersion::V3] {
            let config = config(version);
            for (key, reason) in [
                ("+", "is no topic"),
                ("b/#", "is no topic"),
                ("a\0b", "MQTT does not take: \\u{0}"),
                ("a\tb", "MQTT does not take: \\u{9}"),
                ("\u{FFFE}", "MQTT does not take"),
                (&long, "has more than 65535 bytes"),
            ] {
                let got = refused(&config, &claimed(1, Some(key), b"x"));
                assert!(got.contains(reason) && got.len() < 300, "{key:.20?}: {got}");
            }
            assert_eq!(refused(&config, &claimed(1, Some("Zürich.7 ☃"), b"x")), "");
            assert_eq!(refused(&config, &claimed(1, None, b"x")), "it has no key to be named by");
            let config = MqttConfig { topic: "{header:empty}".parse().unwrap(), ..config };
            let mut event = claimed(1, None, b"x");
            event.event.headers.insert("empty".to_owned(), String::new());
            assert_eq!(refused(&config, &event), "its topic is empty");
        }
    }

    #[test]
    fn a_property_is_refused_if_a_server_could_close_the_connection_over_it() {
        let mut event = claimed(1, Some("k"), b"x");
        for (value, reason) in [
            ("x".repeat(65_536), "its header `note` has more than 65535 bytes"),
            ("a\tb".to_owned(), "its header `note` has a character that MQTT does not take: \\u{9}"),
        ] {
            event.event.headers = [("note".to_owned(), value)].into();
            assert_eq!(refused(&config(MqttVersion::V5), &event), reason);
        }
        event.event.headers = [("datacontenttype".to_owned(), "x".to_owned())].into();
        let error = "its header `datacontenttype` has the name of one that says what the event is";
        for version in [MqttVersion::V5, MqttVersion::V3] {
            assert_eq!(refused(&config(version), &event), error);
        }
    }

    #[test]
    fn without_headers_everything_is_in_the_body() {
        let mut event = claimed(1, Some("k"), b"{\"total\":1}");
        event.event.headers = [("tenant".to_owned(), "a\"b".to_owned())].into();
        let Message::V3(publish) = Message::new(&config(MqttVersion::V3), &event).unwrap() else {
            panic!("another version");
        };
        let json: serde_json::Value = serde_json::from_slice(&publish.payload).unwrap();
        assert_eq!((&json["tenant"], &json["data"]["total"]), (&"a\"b".into(), &1.into()));
        for (name, reason) in
            [("X-Tenant", "has nowhere to go"), ("", "nowhere"), ("id", "says what the event is")]
        {
            event.event.headers = [(name.to_owned(), "x".to_owned())].into();
            assert!(refused(&config(MqttVersion::V3), &event).contains(reason), "{name}");
        }
    }

    #[test]
    fn a_packet_that_is_too_large_is_refused() {
        for version in [MqttVersion::V5, MqttVersion::V3] {
            let config = MqttConfig { max_packet: Some(2_000), ..config(version) };
            assert_eq!(refused(&config, &claimed(1, Some("k"), &[0; 500])), "");
            let got = refused(&config, &claimed(1, Some("k"), &[0; 2_000]));
            assert!(got.starts_with("it is too large"), "{got}");
        }
    }
}
