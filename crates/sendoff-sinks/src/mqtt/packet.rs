//! The packets of both versions as one.

use bytes::{BufMut as _, BytesMut};
use rumqttc::mqttbytes::v4;
use rumqttc::v5::mqttbytes::{self, v5};

use super::server::Login;
use super::{MqttConfig, MqttVersion};
use crate::unusable::Unusable;

/// Nothing larger comes to who does not listen.
const INCOMING_MAX: u32 = 1024 * 1024;

/// The same in both versions.
const PINGREQ: [u8; 2] = [0xC0, 0x00];
const DISCONNECT: [u8; 2] = [0xE0, 0x00];

/// What a server of an older version says of a newer one.
const WRONG_VERSION: [u8; 4] = [0x20, 0x02, 0x00, 0x01];

/// What a server has said about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Taken,
    /// And nobody listens.
    NoSubscriber,
    NotAuthorized,
    InvalidTopic,
    InvalidPayload,
    Quota,
    /// The protocol's name for it.
    Other(&'static str),
}

/// What a server takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) packet: Option<u32>,
    pub(super) in_flight: Option<u16>,
    /// In seconds.
    pub(super) keep_alive: Option<u16>,
    pub(super) qos: Option<u8>,
}

/// Why a server lets nobody in, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

impl From<Refusal> for Unusable {
    fn from(refusal: Refusal) -> Self {
        if refusal.0.starts_with(NO_ROOM) { Self::Away(refusal.0) } else { Self::Wrong(refusal.0) }
    }
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Incoming {
    Connected(Limits),
    Refused(Refusal),
    /// The one answer with [`super::MqttQos::One`].
    Acknowledged(u16, Verdict),
    /// The first answer with [`super::MqttQos::Two`].
    Received(u16, Verdict),
    /// The second.
    Completed(u16, Verdict),
    Pong,
    Disconnected {
        reason: String,
        /// It is about something that was sent.
        is_blame: bool,
    },
    Other,
}

/// Asks to be let in.
///
/// A clean start, always: what another connection left behind would be taken for something of this one.
pub(super) fn write_connect(
    config: &MqttConfig,
    login: Option<&Login>,
    client_id: &str,
    buffer: &mut BytesMut,
) -> Result<(), String> {
    let seconds = config.keep_alive.as_millis().div_ceil(1_000);
    let keep_alive = u16::try_from(seconds).unwrap_or(u16::MAX);
    let client_id = client_id.to_owned();
    match config.version {
        MqttVersion::V5 => {
            let login = login.map(|Login { user, password }| v5::Login::new(user, password));
            let connect = v5::Connect { keep_alive, client_id, clean_start: true, properties: None };
            connect.write(&None, &login, buffer).map_err(|error| error.to_string())?;
        }
        MqttVersion::V3 => {
            let login = login.map(|Login { user, password }| v4::Login::new(user, password));
            let connect = v4::Connect { keep_alive, login, ..v4::Connect::new(client_id) };
            connect.write(buffer).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

pub(super) fn write_ping(buffer: &mut BytesMut) {
    buffer.put_slice(&PINGREQ);
}

pub(super) fn write_disconnect(buffer: &mut BytesMut) {
    buffer.put_slice(&DISCONNECT);
}

/// Says that the first answer has come.
pub(super) fn write_release(id: u16, buffer: &mut BytesMut) {
    buffer.put_slice(&[0x62, 0x02]);
    buffer.put_u16(id);
}

/// What a server says first is whether it lets a client in.
///
/// # Errors
/// That it says something else, and so is no server of this protocol.
pub(super) fn check_first(buffer: &BytesMut) -> Result<(), String> {
    match buffer.first() {
        None | Some(0x20) => Ok(()),
        Some(_) => Err("it does not speak MQTT; is it another server?".to_owned()),
    }
}

/// The next packet, if there is a whole one.
///
/// # Errors
/// That it is none.
pub(super) fn read(version: MqttVersion, buffer: &mut BytesMut) -> Result<Option<Incoming>, String> {
    let garbled =
        |error: String| format!("it said what cannot be understood ({error}); is it an MQTT server?");
    if buffer.starts_with(&WRONG_VERSION) {
        let advice = "it does not speak this version of MQTT; try the other one";
        return Ok(Some(Incoming::Refused(Refusal(advice.to_owned()))));
    }
    match v5::check(buffer.iter(), Some(INCOMING_MAX)) {
        Ok(_) => {}
        Err(mqttbytes::Error::InsufficientBytes(_)) => return Ok(None),
        Err(error) => return Err(garbled(error.to_string())),
    }
    let incoming = match version {
        MqttVersion::V5 => v5::Packet::read(buffer, None).map(of_v5).map_err(|error| error.to_string()),
        MqttVersion::V3 => v4::Packet::read(buffer, usize::MAX)
            .map(|packet| of_v3(&packet))
            .map_err(|error| error.to_string()),
    };
    incoming.map(Some).map_err(garbled)
}

fn of_v5(packet: v5::Packet) -> Incoming {
    use v5::PubCompReason;
    match packet {
        v5::Packet::ConnAck(answer) => match refusal_of_v5(answer.code) {
            Some(advice) => {
                let said = answer.properties.and_then(|properties| properties.reason_string);
                let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
                Incoming::Refused(Refusal(format!("{advice}{said}")))
            }
            None => Incoming::Connected(answer.properties.map_or_else(Limits::default, |said| Limits {
                packet: said.max_packet_size,
                in_flight: said.receive_max,
                keep_alive: said.server_keep_alive,
                qos: said.max_qos,
            })),
        },
        v5::Packet::PubAck(answer) => Incoming::Acknowledged(answer.pkid, acknowledged(answer.reason)),
        v5::Packet::PubRec(answer) => Incoming::Received(answer.pkid, received(answer.reason)),
        v5::Packet::PubComp(answer) => Incoming::Completed(
            answer.pkid,
            match answer.reason {
                PubCompReason::Success => Verdict::Taken,
                PubCompReason::PacketIdentifierNotFound => Verdict::Other("packet identifier not found"),
            },
        ),
        v5::Packet::PingResp(_) => Incoming::Pong,
        v5::Packet::Disconnect(said) => {
            use v5::DisconnectReasonCode as Code;
            let text = said.properties.and_then(|properties| properties.reason_string);
            let text = text.map(|text| format!(", {text}")).unwrap_or_default();
            let is_blame = matches!(
                said.reason_code,
                Code::MalformedPacket
                    | Code::ProtocolError
                    | Code::ImplementationSpecificError
                    | Code::TopicNameInvalid
                    | Code::PacketTooLarge
                    | Code::PayloadFormatInvalid
            );
            Incoming::Disconnected { reason: format!("{:?}{text}", said.reason_code), is_blame }
        }
        _ => Incoming::Other,
    }
}

fn of_v3(packet: &v4::Packet) -> Incoming {
    use v4::ConnectReturnCode as Code;
    match packet {
        v4::Packet::ConnAck(answer) => match answer.code {
            Code::Success => Incoming::Connected(Limits::default()),
            code => Incoming::Refused(Refusal(match code {
                Code::BadUserNamePassword | Code::NotAuthorized => NOT_LET_IN.to_owned(),
                Code::BadClientId => BAD_CLIENT_ID.to_owned(),
                Code::ServiceUnavailable => NO_ROOM.to_owned(),
                other => format!("it refused the connection: {other:?}"),
            })),
        },
        v4::Packet::PubAck(answer) => Incoming::Acknowledged(answer.pkid, Verdict::Taken),
        v4::Packet::PubRec(answer) => Incoming::Received(answer.pkid, Verdict::Taken),
        v4::Packet::PubComp(answer) => Incoming::Completed(answer.pkid, Verdict::Taken),
        v4::Packet::PingResp => Incoming::Pong,
        _ => Incoming::Other,
    }
}

const NOT_LET_IN: &str = "it does not let this user in; are user and password right?";
const BAD_CLIENT_ID: &str = "it does not take this client id; configure another `client_id`";
const NO_ROOM: &str = "it takes no more connections now; look at its limits";

fn refusal_of_v5(code: v5::ConnectReturnCode) -> Option<String> {
    use v5::ConnectReturnCode as Code;
    Some(match code {
        Code::Success => return None,
        Code::BadUserNamePassword | Code::NotAuthorized | Code::BadAuthenticationMethod | Code::Banned => {
            NOT_LET_IN.to_owned()
        }
        Code::ClientIdentifierNotValid | Code::BadClientId => BAD_CLIENT_ID.to_owned(),
        Code::ServerUnavailable
        | Code::ServiceUnavailable
        | Code::ServerBusy
        | Code::QuotaExceeded
        | Code::ConnectionRateExceeded => NO_ROOM.to_owned(),
        Code::UnsupportedProtocolVersion | Code::RefusedProtocolVersion => {
            "it does not speak MQTT 5; configure version 3".to_owned()
        }
        Code::UseAnotherServer | Code::ServerMoved => "it says that another server is to be used".to_owned(),
        other => format!("it refused the connection: {other:?}"),
    })
}

/// The same reasons, once in the one answer and once in the first of two.
macro_rules! verdict {
    ($name:ident, $reason:ty) => {
        fn $name(reason: $reason) -> Verdict {
            type Reason = $reason;
            match reason {
                Reason::Success => Verdict::Taken,
                Reason::NoMatchingSubscribers => Verdict::NoSubscriber,
                Reason::NotAuthorized => Verdict::NotAuthorized,
                Reason::TopicNameInvalid => Verdict::InvalidTopic,
                Reason::PayloadFormatInvalid => Verdict::InvalidPayload,
                Reason::QuotaExceeded => Verdict::Quota,
                Reason::UnspecifiedError => Verdict::Other("unspecified error"),
                Reason::ImplementationSpecificError => Verdict::Other("implementation specific error"),
                Reason::PacketIdentifierInUse => Verdict::Other("packet identifier in use"),
            }
        }
    };
}

verdict!(acknowledged, v5::PubAckReason);
verdict!(received, v5::PubRecReason);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read_all(version: MqttVersion, bytes: &[u8]) -> Vec<Incoming> {
        let mut buffer = BytesMut::from(bytes);
        let mut packets = Vec::new();
        while let Some(packet) = read(version, &mut buffer).unwrap() {
            packets.push(packet);
        }
        packets
    }

    #[test]
    fn answers_have_the_number_and_the_reason_of_their_message() {
        let bytes =
            [0x40, 2, 0, 7, 0x40, 3, 0, 8, 0x10, 0x40, 4, 0, 9, 0x87, 0, 0x50, 3, 1, 0, 0x90, 0x70, 2, 0, 5];
        let expected = [
            Incoming::Acknowledged(7, Verdict::Taken),
            Incoming::Acknowledged(8, Verdict::NoSubscriber),
            Incoming::Acknowledged(9, Verdict::NotAuthorized),
            Incoming::Received(256, Verdict::InvalidTopic),
            Incoming::Completed(5, Verdict::Taken),
        ];
        assert_eq!(read_all(MqttVersion::V5, &bytes), expected);
        assert_eq!(read_all(MqttVersion::V5, &bytes[..8]), expected[..1], "the next is not whole");
        let three = read_all(MqttVersion::V3, &[0x40, 2, 0, 7, 0x50, 2, 0, 8, 0xD0, 0]);
        let (first, second) =
            (Incoming::Acknowledged(7, Verdict::Taken), Incoming::Received(8, Verdict::Taken));
        assert_eq!(three, [first, second, Incoming::Pong]);
    }

    #[test]
    fn a_server_says_what_it_takes() {
        let bytes = [0x20, 0x0B, 0, 0, 8, 0x21, 0, 20, 0x27, 0, 0, 4, 0];
        let limits = Limits { packet: Some(1_024), in_flight: Some(20), ..Limits::default() };
        assert_eq!(read_all(MqttVersion::V5, &bytes), [Incoming::Connected(limits)]);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        for (version, bytes, hint) in [
            (MqttVersion::V5, &[0x20, 3, 0, 0x86, 0][..], "user and password"),
            (MqttVersion::V5, &[0x20, 3, 0, 0x87, 0], "user and password"),
            (MqttVersion::V5, &[0x20, 3, 0, 0x85, 0], "client_id"),
            (MqttVersion::V5, &[0x20, 3, 0, 0x9F, 0], "no more connections"),
            (MqttVersion::V5, &[0x20, 2, 0, 1], "this version"),
            (MqttVersion::V3, &[0x20, 2, 0, 4], "user and password"),
            (MqttVersion::V3, &[0x20, 2, 0, 5], "user and password"),
            (MqttVersion::V3, &[0x20, 2, 0, 3], "no more connections"),
        ] {
            let mut buffer = BytesMut::from(bytes);
            let Some(Incoming::Refused(Refusal(advice))) = read(version, &mut buffer).unwrap() else {
                panic!("let in: {bytes:?}");
            };
            assert!(advice.contains(hint), "{advice}");
        }
    }

    #[test]
    fn what_is_no_packet_is_told() {
        let error = check_first(&BytesMut::from(&b"HTTP/1.1 400 Bad Request\r\n"[..])).unwrap_err();
        assert!(error.contains("does not speak MQTT"), "{error}");
        assert_eq!(check_first(&BytesMut::from(&[0x20][..])), Ok(()));
        // A length that never ends.
        let error = read(MqttVersion::V5, &mut BytesMut::from(&[0x40, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF][..]))
            .unwrap_err();
        assert!(error.contains("MQTT"), "{error}");
    }
}
