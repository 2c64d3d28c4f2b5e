//! What the server says, and what it means for an event.

use std::collections::HashSet;

use lapin::message::BasicReturnMessage;
use lapin::{Confirmation, Error, ErrorKind};
use sendoff::Delivery;

use super::message::Message;
use crate::tls;
use crate::unusable::{REACHED, Unusable};

/// Reply codes of the protocol.
const CONNECTION_FORCED: u16 = 320;
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const NOT_ALLOWED: u16 = 530;

/// What became of one message.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Confirmed; `returned`: the id of a message that came back, not always of this one.
    Taken {
        returned: Option<String>,
    },
    /// Refused, otherwise the same.
    Refused {
        returned: Option<String>,
    },
    Failed(Error),
    Unanswered,
    /// It was not sent, and why.
    TooLong(String),
}

impl Outcome {
    pub(super) fn of(confirmed: lapin::Result<Confirmation>) -> Self {
        let id = |message: BasicReturnMessage| message.delivery.properties.message_id().clone();
        let id = |message: Option<BasicReturnMessage>| {
            message.map(|message| id(message).map_or_else(String::new, String::from))
        };
        match confirmed {
            Ok(Confirmation::Ack(message)) => Self::Taken { returned: id(message) },
            Ok(Confirmation::Nack(message)) => Self::Refused { returned: id(message) },
            Ok(Confirmation::NotRequested) => Self::Unanswered,
            Err(error) => Self::Failed(error),
        }
    }

    fn is_answer(&self) -> bool {
        matches!(self, Self::Taken { .. } | Self::Refused { .. } | Self::TooLong(_))
    }

    fn returned(&self) -> Option<&str> {
        match self {
            Self::Taken { returned } | Self::Refused { returned } => returned.as_deref(),
            _ => None,
        }
    }
}

/// Why messages were not confirmed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The server, or how it is configured: no event is to blame.
    Server(String),
    /// One of the messages: the server closed the channel, or the connection, over it.
    Message { code: u16, text: String },
}

impl Fault {
    /// `exchange`: the one of all events, if it is the same for all.
    pub(super) fn of(error: &Error, exchange: Option<&str>) -> Self {
        let ErrorKind::ProtocolError(error) = error.kind() else {
            return Self::Server(unreachable(error).into());
        };
        let (code, text) = (error.get_id(), error.get_message().to_string());
        match (code, exchange) {
            (CONNECTION_FORCED, _) => Self::Server(text),
            (NOT_FOUND, Some(exchange)) => Self::Server(missing(exchange, &text)),
            // A user may be kept from some of the routing keys only.
            (ACCESS_REFUSED, Some(exchange)) if !text.contains("topic") => Self::Server(format!(
                "{text}: give the user the right to write to the exchange `{exchange}` (`rabbitmqctl set_permissions`)"
            )),
            _ => Self::Message { code, text },
        }
    }
}

fn missing(exchange: &str, text: &str) -> String {
    format!("there is no exchange `{exchange}` ({text}): declare it, or name another one")
}

/// What the server's refusal of a single message means for it.
pub(super) fn single(code: u16, text: &str) -> Delivery {
    // In the server's words: the client's own errors may have the same code.
    if text.starts_with("PRECONDITION_FAILED") || text.starts_with("CONTENT_TOO_LARGE") {
        return Delivery::reject(format!(
            "the server does not take it: {text}; its `max_message_size` says how much it takes"
        ));
    }
    let hint = match code {
        NOT_FOUND => ": declare the exchange",
        ACCESS_REFUSED => ": the user may not publish there (`rabbitmqctl set_topic_permissions`)",
        _ => "",
    };
    Delivery::retry(format!("the server does not take it: {text}{hint}"))
}

/// An answer for each message that has one.
///
/// A message that no queue gets is confirmed, and comes back before that. The client hands it over with whichever confirmation comes next: it is told
/// by its id. As long as confirmations are missing it may not have been handed over yet, so no confirmation is trusted then if anything came back.
pub(super) fn answers(messages: &[&Message<'_>], outcomes: &[Outcome]) -> Vec<Option<Delivery>> {
    let returned: HashSet<&str> = outcomes.iter().filter_map(Outcome::returned).collect();
    let is_settled = returned.is_empty() || outcomes.iter().all(Outcome::is_answer);
    let answer = |(message, outcome): (&&Message<'_>, &Outcome)| match outcome {
        Outcome::TooLong(reason) => Some(Delivery::reject(reason.clone())),
        Outcome::Failed(_) | Outcome::Unanswered => None,
        _ if returned.contains(message.id.as_str()) => Some(unroutable(message)),
        _ if !is_settled => None,
        Outcome::Taken { .. } => Some(Delivery::Delivered),
        Outcome::Refused { .. } => {
            Some(Delivery::retry("the server refused it (nack): a queue is full, or could not store it"))
        }
    };
    messages.iter().zip(outcomes).map(answer).collect()
}

fn unroutable(message: &Message<'_>) -> Delivery {
    let Message { exchange, routing_key, .. } = message;
    Delivery::reject(match exchange.as_str() {
        "" => format!("there is no queue `{routing_key}`: declare it, or have the event go elsewhere"),
        exchange => format!(
            "no queue gets it: bind one to the exchange `{exchange}` for the routing key `{routing_key}`"
        ),
    })
}

/// The first error that says more than that the channel is closed.
pub(super) fn cause(outcomes: &[Outcome]) -> Option<&Error> {
    let errors = || {
        outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Failed(error) => Some(error),
            _ => None,
        })
    };
    let says_why = |error: &&Error| !matches!(error.kind(), ErrorKind::InvalidChannelState(..));
    errors()
        .find(|error| matches!(error.kind(), ErrorKind::ProtocolError(_)))
        .or_else(|| errors().find(says_why))
        .or_else(|| errors().next())
}

/// The server has said no, and has not only gone.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(said) if said.get_id() != CONNECTION_FORCED)
}

/// Why there is no connection, and what to do.
pub(super) fn unreachable(error: &Error) -> Unusable {
    match error.kind() {
        ErrorKind::ProtocolError(refused) => {
            let hint = match refused.get_id() {
                ACCESS_REFUSED => ": are user and password right?",
                NOT_ALLOWED => ": is the virtual host in its URL right, and may the user use it?",
                _ => "",
            };
            let text = format!("{}{hint}", refused.get_message());
            if is_refusal(error) { Unusable::Wrong(text) } else { Unusable::Away(text) }
        }
        ErrorKind::IOError(error) => match tls::hint(&**error) {
            Some(hint) => Unusable::Wrong(format!("{error}{hint}")),
            None => Unusable::Away(format!("{error}{REACHED}")),
        },
        _ => Unusable::Away(format!("the connection is lost ({error})")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use lapin::protocol::{AMQPError, AMQPErrorKind, AMQPHardError, AMQPSoftError};
    use lapin::{ChannelState, ConnectionState};
    use sendoff::outbox::Claimed;

    use super::*;
    use crate::RabbitMqConfig;
    use crate::json_line::tests::claimed;

    fn refused(kind: impl Into<AMQPErrorKind>, text: &str) -> Error {
        ErrorKind::ProtocolError(AMQPError::new(kind.into(), text.into())).into()
    }

    fn io(kind: std::io::ErrorKind) -> Error {
        ErrorKind::IOError(Arc::new(kind.into())).into()
    }

    fn outcome(returned: Option<&str>) -> Outcome {
        Outcome::Taken { returned: returned.map(str::to_owned) }
    }

    #[test]
    fn an_error_is_the_servers_or_a_messages() {
        let missing = refused(AMQPSoftError::NOTFOUND, "NOT_FOUND - no exchange 'e'");
        let closed = refused(AMQPSoftError::ACCESSREFUSED, "ACCESS_REFUSED - access to exchange 'e' refused");
        let topic = refused(AMQPSoftError::ACCESSREFUSED, "ACCESS_REFUSED - access to topic 't' refused");
        let large = refused(AMQPSoftError::PRECONDITIONFAILED, "PRECONDITION_FAILED - message size 2");
        let stopped = refused(AMQPHardError::CONNECTIONFORCED, "CONNECTION_FORCED - shutdown");
        let odd = refused(AMQPHardError::INTERNALERROR, "INTERNAL_ERROR");
        let lost = ErrorKind::InvalidConnectionState(ConnectionState::Closed).into();
        for (error, exchange, is_server) in [
            (&missing, Some("e"), true),
            (&missing, None, false),
            (&closed, Some("e"), true),
            (&closed, None, false),
            (&topic, Some("e"), false),
            (&large, Some("e"), false),
            (&odd, Some("e"), false),
            (&stopped, None, true),
            (&lost, None, true),
            (&io(std::io::ErrorKind::ConnectionReset), None, true),
            (&ErrorKind::MissingHeartbeatError.into(), None, true),
        ] {
            let fault = Fault::of(error, exchange);
            assert_eq!(matches!(fault, Fault::Server(_)), is_server, "{fault:?}");
        }
    }

    #[test]
    fn a_refusal_of_one_message_is_final_if_it_is_about_what_it_is() {
        for text in ["PRECONDITION_FAILED - message size 2", "CONTENT_TOO_LARGE"] {
            assert!(
                matches!(single(406, text), Delivery::Reject { error } if error.contains(text)),
                "{text}"
            );
        }
        let hinted = [(404, "declare the exchange"), (403, "may not publish there"), (541, "INTERNAL_ERROR")];
        for (code, hint) in hinted {
            let delivery = single(code, "INTERNAL_ERROR");
            assert!(
                matches!(&delivery, Delivery::Retry { error, .. } if error.contains(hint)),
                "{delivery:?}"
            );
        }
        assert!(matches!(single(406, "invalid ack received"), Delivery::Retry { .. }), "the client's own");
    }

    #[test]
    fn the_cause_is_the_error_that_says_most() {
        let state = || ErrorKind::InvalidChannelState(ChannelState::Closing, "basic.publish").into();
        let (lost, missing) =
            (|| io(std::io::ErrorKind::ConnectionReset), || refused(AMQPSoftError::NOTFOUND, "x"));
        let of = |errors: Vec<Error>| {
            let outcomes: Vec<_> = errors.into_iter().map(Outcome::Failed).collect();
            cause(&outcomes).unwrap().kind().clone()
        };
        assert!(matches!(of(vec![state(), lost(), missing()]), ErrorKind::ProtocolError(_)));
        assert!(matches!(of(vec![state(), lost()]), ErrorKind::IOError(_)));
        assert!(matches!(of(vec![state()]), ErrorKind::InvalidChannelState(..)));
        assert!(cause(&[Outcome::Unanswered, outcome(None)]).is_none());
    }

    /// As the client hands it over: with another message's confirmation.
    #[test]
    fn what_came_back_is_told_by_its_id() {
        let events: Vec<Claimed> = (0..3).map(|number| claimed(number, None, b"x")).collect();
        let config = RabbitMqConfig::new("amqp://localhost", "e");
        let messages: Vec<_> = events.iter().map(|event| Message::new(&config, event).unwrap()).collect();
        let messages: Vec<&Message<'_>> = messages.iter().collect();
        let last = messages[2].id.as_str();
        let answered = answers(&messages, &[outcome(Some(last)), outcome(None), outcome(None)]);
        assert_eq!(answered[..2], [Some(Delivery::Delivered), Some(Delivery::Delivered)]);
        let Some(Delivery::Reject { error }) = &answered[2] else { panic!("{answered:?}") };
        assert_eq!(error, "no queue gets it: bind one to the exchange `e` for the routing key `orders`");
        let answered = answers(&messages, &[outcome(Some(last)), outcome(None), Outcome::Unanswered]);
        assert_eq!(answered, [None, None, None], "the second may have come back as well");
        let answered = answers(&messages, &[outcome(None), Outcome::Unanswered, outcome(None)]);
        assert_eq!(answered, [Some(Delivery::Delivered), None, Some(Delivery::Delivered)]);
        let refused = Outcome::Refused { returned: None };
        let answered = answers(&messages, &[refused, outcome(None), Outcome::TooLong("long".to_owned())]);
        assert!(matches!(&answered[0], Some(Delivery::Retry { .. })), "{answered:?}");
        assert_eq!(answered[1..], [Some(Delivery::Delivered), Some(Delivery::reject("long"))]);
    }
}
