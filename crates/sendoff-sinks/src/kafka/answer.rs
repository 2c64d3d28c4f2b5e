//! What an error means, for an event and for people.

use rdkafka::error::RDKafkaErrorCode as Code;
use sendoff::Delivery;

/// The brokers refuse a batch as a whole, though it may be one record of it that they do not take.
pub(super) fn is_of_a_batch(code: Code) -> bool {
    matches!(
        code,
        Code::MessageSizeTooLarge
            | Code::MessageBatchTooLarge
            | Code::InvalidMessage
            | Code::InvalidMessageSize
            | Code::InvalidRecord
            | Code::InvalidTimestamp
    )
}

/// The topic is not there, or not for us.
pub(super) fn is_of_a_topic(code: Code) -> bool {
    matches!(
        code,
        Code::UnknownTopic
            | Code::UnknownPartition
            | Code::UnknownTopicOrPartition
            | Code::TopicAuthorizationFailed
    )
}

/// It may be the cluster's fault, and the record may have arrived.
pub(super) fn is_in_doubt(code: Code) -> bool {
    matches!(
        code,
        Code::MessageTimedOut | Code::OperationTimedOut | Code::RequestTimedOut | Code::TimedOutQueue
    )
}

/// No record is at fault.
fn is_of_the_cluster(code: Code) -> bool {
    matches!(
        code,
        Code::AllBrokersDown
            | Code::BrokerTransportFailure
            | Code::NetworkException
            | Code::Resolve
            | Code::SSL
            | Code::Authentication
            | Code::SaslAuthenticationFailed
            | Code::UnsupportedSASLMechanism
            | Code::IllegalSASLState
            | Code::ClusterAuthorizationFailed
            | Code::Fatal
            | Code::ProducerFenced
            | Code::InvalidProducerEpoch
            | Code::UnknownProducerId
            | Code::PurgeQueue
            | Code::PurgeInflight
    )
}

/// What an error means for the event it is about. `topic`: that of the event, and whether it is that of every event; `down`: why the cluster does not answer, if it does not.
pub(super) fn classify(code: Code, topic: (&str, bool), down: Option<&str>) -> Delivery {
    match (code, down) {
        (code, Some(down)) if is_in_doubt(code) => Delivery::down(down),
        (code, _) if is_of_a_topic(code) => {
            let error = topic_advice(code, topic.0);
            // As long as every event goes there, no event is at fault.
            if topic.1 { Delivery::down(error) } else { Delivery::retry(error) }
        }
        (code, _) if is_of_the_cluster(code) => Delivery::down(explain(code, &text(code))),
        (Code::MessageSizeTooLarge | Code::MessageBatchTooLarge | Code::InvalidMessageSize, _) => {
            Delivery::reject(format!(
                "{}; `max_message_bytes` of the sink, `message.max.bytes` of the brokers and `max.message.bytes` of the topic say how much they take",
                text(code)
            ))
        }
        (Code::InvalidTimestamp, _) => Delivery::reject(format!(
            "{}; `message.timestamp.before.max.ms` and `after` of the topic say how old an event may be",
            text(code)
        )),
        (Code::InvalidMessage | Code::InvalidRecord, _) => Delivery::reject(format!(
            "{}; a topic that is compacted takes no event without a key",
            text(code)
        )),
        (Code::InvalidTopic | Code::UnsupportedForMessageFormat, _) => Delivery::reject(text(code)),
        (Code::MessageTimedOut, _) => Delivery::retry("no broker acknowledged it in time"),
        _ => Delivery::retry(text(code)),
    }
}

/// What to do about a topic that cannot be had.
pub(super) fn topic_advice(code: Code, topic: &str) -> String {
    match code {
        Code::TopicAuthorizationFailed => {
            format!(
                "it may not write to the topic `{topic}`: allow its user to (the ACL operations Write and Describe)"
            )
        }
        Code::UnknownTopic | Code::UnknownPartition | Code::UnknownTopicOrPartition => {
            format!("there is no topic `{topic}`: create it")
        }
        _ => format!("the topic `{topic}` cannot be had: {}", text(code)),
    }
}

/// No broker can be reached, for nothing that is wrong here as far as can be told.
pub(super) fn is_away(code: Code, reason: &str) -> bool {
    let is_of_security = is_of_tls(reason) || reason.contains("security.protocol");
    match code {
        Code::BrokerTransportFailure => !is_of_security,
        Code::Resolve | Code::NetworkException | Code::AllBrokersDown => true,
        code => is_in_doubt(code),
    }
}

fn is_of_tls(reason: &str) -> bool {
    reason.contains("SSL routines") || reason.contains("SSL handshake")
}

/// What the client says, and what to do.
pub(super) fn explain(code: Code, reason: &str) -> String {
    // Without how long it took: that differs each time.
    let reason = reason.split(" (after ").next().unwrap_or(reason);
    let is_tls = is_of_tls(reason);
    let hint = match code {
        Code::Authentication | Code::SaslAuthenticationFailed => "; are user, password and mechanism right?",
        Code::UnsupportedSASLMechanism | Code::IllegalSASLState => "; does it take this mechanism?",
        Code::BrokerTransportFailure | Code::SSL if is_tls || code == Code::SSL => {
            "; is the CA file right, and is it TLS that is spoken at this port?"
        }
        Code::Resolve => "; is its name right?",
        Code::ClusterAuthorizationFailed => "; allow its user to (the ACL operation IdempotentWrite)",
        Code::BrokerTransportFailure if !reason.contains("security.protocol") => {
            "; is it running, and can it be reached from here?"
        }
        _ => "",
    };
    let said = match code {
        Code::Authentication | Code::SaslAuthenticationFailed if !reason.contains("uthentication") => {
            "authentication failed: "
        }
        _ => "",
    };
    format!("{said}{reason}{hint}")
}

fn text(code: Code) -> String {
    code.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_stops_the_sink_or_the_event() {
        let of = |code, is_fixed, down| classify(code, ("orders", is_fixed), down);
        for code in
            [Code::MessageTimedOut, Code::OperationTimedOut, Code::RequestTimedOut, Code::TimedOutQueue]
        {
            let down = of(code, false, Some("gone"));
            assert!(matches!(&down, Delivery::Down { error } if error == "gone"), "{code:?}: {down:?}");
            assert!(matches!(of(code, true, None), Delivery::Retry { .. }), "{code:?}");
        }
        for code in [
            Code::AllBrokersDown,
            Code::BrokerTransportFailure,
            Code::NetworkException,
            Code::Resolve,
            Code::SSL,
            Code::Authentication,
            Code::SaslAuthenticationFailed,
            Code::ClusterAuthorizationFailed,
            Code::Fatal,
            Code::ProducerFenced,
            Code::InvalidProducerEpoch,
            Code::UnknownProducerId,
            Code::PurgeQueue,
            Code::PurgeInflight,
        ] {
            assert!(matches!(of(code, false, None), Delivery::Down { .. }), "{code:?}");
        }
        for code in [
            Code::MessageSizeTooLarge,
            Code::MessageBatchTooLarge,
            Code::InvalidRecord,
            Code::InvalidTimestamp,
            Code::InvalidTopic,
        ] {
            assert!(matches!(of(code, true, Some("gone")), Delivery::Reject { .. }), "{code:?}");
        }
        for code in [
            Code::QueueFull,
            Code::NotLeaderForPartition,
            Code::NotEnoughReplicas,
            Code::NotEnoughReplicasAfterAppend,
            Code::KafkaStorageError,
            Code::ThrottlingQuotaExceeded,
            Code::Unknown,
        ] {
            assert!(matches!(of(code, true, Some("gone")), Delivery::Retry { .. }), "{code:?}");
        }
    }

    #[test]
    fn a_topic_that_is_not_there_stops_the_sink_if_every_event_goes_there() {
        for (code, advice) in [
            (Code::UnknownTopic, "there is no topic `orders`: create it"),
            (Code::UnknownTopicOrPartition, "there is no topic `orders`: create it"),
            (Code::TopicAuthorizationFailed, "may not write to the topic `orders`"),
        ] {
            let fixed = classify(code, ("orders", true), None);
            assert!(matches!(&fixed, Delivery::Down { error } if error.contains(advice)), "{fixed:?}");
            let own = classify(code, ("orders", false), None);
            assert!(matches!(&own, Delivery::Retry { error, .. } if error.contains(advice)), "{own:?}");
        }
    }

    #[test]
    fn what_the_client_says_comes_with_advice() {
        let reason =
            "h:1/bootstrap: Connect to ipv4#h:1 failed: Connection refused (after 0ms in state CONNECT)";
        let expected = "h:1/bootstrap: Connect to ipv4#h:1 failed: Connection refused; is it running, and can it be reached from here?";
        assert_eq!(explain(Code::BrokerTransportFailure, reason), expected);
        assert!(
            explain(Code::Authentication, "h:1: SASL PLAIN failed").starts_with("authentication failed: h:1")
        );
        assert!(
            explain(Code::Authentication, "Authentication failed").starts_with("Authentication failed; are")
        );
    }
}
