//! What a broker can carry beside a payload, and what it calls the attributes of a CloudEvent.

use std::borrow::Cow;

/// What the attributes of a CloudEvent are called, each with its prefix: put together once, not for each event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttributeNames {
    pub(crate) prefix: &'static str,
    pub(super) specversion: &'static str,
    pub(super) id: &'static str,
    pub(super) source: &'static str,
    pub(super) kind: &'static str,
    pub(super) time: &'static str,
    pub(super) subject: &'static str,
    pub(super) partitionkey: &'static str,
    pub(super) position: &'static str,
    pub(super) epoch: &'static str,
}

macro_rules! attribute_names {
    ($prefix:literal) => {
        AttributeNames {
            prefix: $prefix,
            specversion: concat!($prefix, "specversion"),
            id: concat!($prefix, "id"),
            source: concat!($prefix, "source"),
            kind: concat!($prefix, "type"),
            time: concat!($prefix, "time"),
            subject: concat!($prefix, "subject"),
            partitionkey: concat!($prefix, "partitionkey"),
            position: concat!($prefix, "sendoffposition"),
            epoch: concat!($prefix, "sendoffepoch"),
        }
    };
}

#[cfg(test)]
pub(super) use attribute_names;

/// As they are in a structured event.
pub(super) const BARE: AttributeNames = attribute_names!("");

/// What a broker's headers can hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carrier {
    /// What it calls the attributes of a CloudEvent.
    pub(crate) attributes: AttributeNames,
    /// Names are of letters, digits and marks, as in HTTP, and upper and lower case are the same.
    pub(crate) names_are_tokens: bool,
    /// What the attributes say is printable ASCII; anything else is written as %XX. The event's own headers go as they are.
    pub(crate) attributes_are_ascii: bool,
    /// A name may have so many bytes.
    pub(crate) name_max: usize,
}

impl Carrier {
    /// HTTP headers, as the HTTP binding of CloudEvents has them.
    #[cfg(feature = "http")]
    pub(crate) const HTTP: Self = Self {
        attributes: attribute_names!("ce-"),
        names_are_tokens: true,
        attributes_are_ascii: true,
        name_max: 8_192,
    };

    /// No headers: names are checked, no more.
    #[cfg(feature = "_aws")]
    pub(super) const AWS: Self = Self {
        attributes: attribute_names!(""),
        names_are_tokens: false,
        attributes_are_ascii: false,
        name_max: usize::MAX,
    };

    /// AMQP headers, whose names are short strings.
    #[cfg(feature = "rabbitmq")]
    pub(crate) const RABBITMQ: Self = Self {
        attributes: attribute_names!("cloudEvents:"),
        names_are_tokens: false,
        attributes_are_ascii: false,
        name_max: 255,
    };

    /// A JSON object.
    #[cfg(feature = "inbox")]
    pub(crate) const INBOX: Self = Self {
        attributes: attribute_names!("ce-"),
        names_are_tokens: false,
        attributes_are_ascii: false,
        name_max: usize::MAX,
    };

    /// Kafka headers, as the Kafka binding of CloudEvents has them.
    #[cfg(feature = "kafka")]
    pub(crate) const KAFKA: Self = Self {
        attributes: attribute_names!("ce_"),
        names_are_tokens: false,
        attributes_are_ascii: false,
        name_max: usize::MAX,
    };

    /// User properties of MQTT 5, which the MQTT binding of CloudEvents gives no prefix.
    #[cfg(feature = "mqtt")]
    pub(crate) const MQTT: Self = Self {
        attributes: attribute_names!(""),
        names_are_tokens: false,
        attributes_are_ascii: false,
        name_max: 65_535,
    };

    #[cfg(feature = "nats")]
    pub(crate) const NATS: Self = Self {
        attributes: attribute_names!("ce-"),
        names_are_tokens: true,
        attributes_are_ascii: true,
        name_max: usize::MAX,
    };
    #[cfg(feature = "redis")]
    pub(crate) const REDIS: Self = Self {
        attributes: attribute_names!("ce-"),
        names_are_tokens: false,
        attributes_are_ascii: false,
        name_max: usize::MAX,
    };
}

impl Carrier {
    /// Makes an attribute's value one that this carrier can hold.
    pub(super) fn fit(&self, name: &str, value: &mut Cow<'_, str>) -> Result<(), String> {
        whole(name.strip_prefix(self.attributes.prefix).unwrap_or(name), value)?;
        // As the HTTP binding of CloudEvents has it.
        let is_plain = |letter: char| matches!(letter, '!'..='~') && !matches!(letter, '"' | '%');
        if !self.attributes_are_ascii || value.chars().all(is_plain) {
            return Ok(());
        }
        let mut encoded = String::with_capacity(value.len() * 3);
        for letter in value.chars() {
            if is_plain(letter) {
                encoded.push(letter);
            } else {
                let mut buffer = [0; 4];
                for byte in letter.encode_utf8(&mut buffer).bytes() {
                    encoded.push_str(&format!("%{byte:02X}"));
                }
            }
        }
        *value = Cow::Owned(encoded);
        Ok(())
    }

    pub(super) fn check_name(&self, name: &str) -> Result<(), String> {
        let shown = name.escape_debug();
        if name.is_empty() {
            return Err("it has a header without a name".to_owned());
        }
        if let Some(wrong) = name.chars().find(|letter| matches!(letter, '\r' | '\n' | '\0')) {
            return Err(format!("its header name `{shown}` has a {}", called(wrong)));
        }
        if name.len() > self.name_max {
            return Err(format!("its header name `{shown}` has more than {} bytes", self.name_max));
        }
        let is_token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
        if self.names_are_tokens && !name.chars().all(is_token) {
            return Err(format!("its header name `{shown}` has letters that this broker does not take"));
        }
        Ok(())
    }

    pub(super) fn is_same(&self, one: &str, other: &str) -> bool {
        if self.names_are_tokens { one.eq_ignore_ascii_case(other) } else { one == other }
    }
}

/// A value that does not end before it ends.
pub(super) fn whole<'v>(name: &str, value: &'v str) -> Result<&'v str, String> {
    match value.bytes().find(|letter| matches!(letter, b'\r' | b'\n' | b'\0')) {
        Some(wrong) => Err(format!("its header `{}` has a {}", name.escape_debug(), called(wrong.into()))),
        None => Ok(value),
    }
}

fn called(letter: char) -> &'static str {
    if letter == '\0' { "NUL" } else { "line break" }
}
