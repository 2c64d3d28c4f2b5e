//! What the service says, and what it means for an event.

use std::error::Error;

use sendoff::Delivery;

use super::publisher::Service;
use super::sdk::config::http::HttpResponse;
use super::sdk::error::{BuildError, ProvideErrorMetadata, SdkError};
use crate::unusable::{REACHED, Unusable};

/// What became of one message of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    Taken,
    Failed { said: Said, is_ours: bool },
}

impl Entry {
    /// `is_ours`: the service says that it is not its own fault.
    pub(super) fn failed(code: &str, text: Option<&str>, is_ours: bool) -> Self {
        Self::Failed { said: Said::new(code, text, 0), is_ours }
    }

    /// What it means for its event.
    pub(super) fn delivery<S: Service>(&self, target: &str, is_fixed: bool) -> Delivery {
        match self {
            Self::Taken => Delivery::Delivered,
            Self::Failed { said, is_ours } => match said.meaning() {
                Meaning::Unknown if *is_ours => Delivery::reject(said.text::<S>(target)),
                _ => said.delivery::<S>(target, is_fixed),
            },
        }
    }
}

/// The entries of an answer, each in the place of its message.
pub(super) fn in_order<'a>(
    count: usize,
    entries: impl Iterator<Item = (&'a str, Entry)>,
) -> Vec<Option<Entry>> {
    let mut places = vec![None; count];
    for (id, entry) in entries {
        if let Some(place) = id.parse::<usize>().ok().and_then(|index| places.get_mut(index)) {
            *place = Some(entry);
        }
    }
    places
}

/// What the client says if it has found no credentials, however it begins.
const NO_CREDENTIALS: &str = "redential";

/// Why a request failed as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The service refused it.
    Refused(Said),
    /// It never got there, or its connection was lost.
    Unreachable(String),
    /// No answer, or none that can be read: the service may be at fault, or only this request.
    Silence(String),
}

impl Failure {
    pub(super) fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let chain = chain(error);
        match error {
            SdkError::ServiceError(refused) => {
                let (error, status) = (refused.err(), refused.raw().status().as_u16());
                Self::Refused(Said::new(error.code().unwrap_or("no code"), error.message(), status))
            }
            SdkError::TimeoutError(_) => Self::Silence("it does not answer".to_owned()),
            SdkError::DispatchFailure(failed) if failed.is_timeout() => Self::Silence(chain),
            SdkError::ResponseError(_) => Self::Silence(chain),
            _ => Self::Unreachable(chain),
        }
    }

    /// A request that cannot be put together.
    pub(super) fn of_request(error: BuildError) -> Self {
        Self::Refused(Said::new("InvalidParameterValue", Some(&error.to_string()), 400))
    }

    /// The service cannot be used, whatever is sent: there is no use in more requests now.
    pub(super) fn is_final(&self, is_fixed: bool) -> bool {
        match self {
            Self::Unreachable(_) | Self::Silence(_) => true,
            Self::Refused(said) => match said.meaning() {
                Meaning::Credentials => true,
                Meaning::Missing | Meaning::Denied => is_fixed,
                _ => false,
            },
        }
    }

    pub(super) fn is_of_credentials(&self) -> bool {
        matches!(self, Self::Refused(said) if said.meaning() == Meaning::Credentials)
    }

    /// It may be about one message of the request, and the others have nothing to do with it.
    pub(super) fn is_of_one(&self) -> bool {
        matches!(self, Self::Refused(said) if matches!(said.meaning(), Meaning::Contents | Meaning::Unknown))
    }

    /// The same as its text, and whether it may pass by itself.
    pub(super) fn unusable<S: Service>(&self, target: &str) -> Unusable {
        let text = self.text::<S>(target);
        let is_for_now = match self {
            Self::Refused(said) => said.meaning() == Meaning::Later,
            Self::Unreachable(text) => !text.contains(NO_CREDENTIALS),
            Self::Silence(_) => true,
        };
        if is_for_now { Unusable::Away(text) } else { Unusable::Wrong(text) }
    }

    /// What is wrong, and what to do.
    pub(super) fn text<S: Service>(&self, target: &str) -> String {
        match self {
            Self::Refused(said) => said.text::<S>(target),
            Self::Unreachable(text) if text.contains(NO_CREDENTIALS) => {
                format!(
                    "no credentials ({text}): give `access_key_id` and `secret_access_key`, or set up those of the environment"
                )
            }
            Self::Unreachable(text) | Self::Silence(text) => {
                format!("{text}{REACHED}")
            }
        }
    }
}

/// An error in the service's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    code: String,
    message: String,
    /// Of the HTTP answer; 0: it was about one message only.
    status: u16,
}

/// What an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The queue or topic is not there.
    Missing,
    /// The user may not write to it, or not with its key.
    Denied,
    /// The credentials are not taken at all.
    Credentials,
    /// The service is busy, or has a fault of its own.
    Later,
    /// What is in the message.
    Contents,
    Unknown,
}

impl Said {
    pub(super) fn new(code: &str, message: Option<&str>, status: u16) -> Self {
        // SQS writes some with its name in front.
        let code = code.rsplit('#').next().unwrap_or(code).trim_start_matches("AWS.SimpleQueueService.");
        // Of a signature that is wrong AWS writes all that was signed, the session's token among it, in further lines.
        let message = message.and_then(|message| message.lines().next()).unwrap_or_default();
        Self { code: code.to_owned(), message: message.to_owned(), status }
    }

    pub(super) fn is_denied(&self) -> bool {
        self.meaning() == Meaning::Denied
    }

    fn meaning(&self) -> Meaning {
        let code = self.code.strip_suffix("Exception").unwrap_or(&self.code);
        if code.contains("Throttl") {
            return Meaning::Later;
        }
        match code {
            "QueueDoesNotExist"
            | "NonExistentQueue"
            | "QueueDeletedRecently"
            | "NotFound"
            | "ResourceNotFound"
            | "InvalidAddress" => Meaning::Missing,
            // A message has no say in these: the queue's URL or the topic's ARN is none.
            "InvalidParameter" | "InvalidParameterValue"
                if self.message.contains("TopicArn") || self.message.contains("QueueUrl") =>
            {
                Meaning::Missing
            }
            "AccessDenied" | "AuthorizationError" | "InvalidSecurity" | "OptInRequired"
            | "EndpointDisabled" => Meaning::Denied,
            "InvalidClientTokenId"
            | "UnrecognizedClient"
            | "InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "InvalidSignature"
            | "IncompleteSignature"
            | "ExpiredToken"
            | "InvalidToken"
            | "RequestExpired"
            | "MissingAuthenticationToken"
            | "AuthFailure"
            | "NotAuthorized" => Meaning::Credentials,
            "RequestLimitExceeded"
            | "TooManyRequests"
            | "LimitExceeded"
            | "SlowDown"
            | "RequestTimeout"
            | "InternalError"
            | "InternalFailure"
            | "InternalServerError"
            | "ServiceUnavailable" => Meaning::Later,
            "InvalidMessageContents"
            | "InvalidParameter"
            | "InvalidParameterValue"
            | "ParameterValueInvalid"
            | "MissingParameter"
            | "BatchRequestTooLong"
            | "MessageTooLong"
            | "InvalidAttributeValue" => Meaning::Contents,
            kms if kms.to_ascii_uppercase().starts_with("KMS") => Meaning::Denied,
            _ if self.status == 429 || self.status >= 500 => Meaning::Later,
            _ if self.status == 401 || self.status == 403 => Meaning::Denied,
            _ => Meaning::Unknown,
        }
    }

    /// What it means for the event it is about. `is_fixed`: all events go to the same target, so none is to blame if it is missing.
    pub(super) fn delivery<S: Service>(&self, target: &str, is_fixed: bool) -> Delivery {
        let text = self.text::<S>(target);
        match self.meaning() {
            Meaning::Credentials => Delivery::down(text),
            Meaning::Missing | Meaning::Denied if is_fixed => Delivery::down(text),
            Meaning::Contents => Delivery::reject(text),
            _ => Delivery::retry(text),
        }
    }

    /// What is wrong, and what to do.
    fn text<S: Service>(&self, target: &str) -> String {
        let hint = match self.meaning() {
            Meaning::Missing => S::MISSING,
            Meaning::Denied => S::DENIED,
            Meaning::Credentials => "are key id and secret right, and still valid? Is the clock?",
            Meaning::Later => "it is busy, or has a fault of its own",
            Meaning::Contents => "it does not take this message",
            Meaning::Unknown => "it does not say more",
        };
        format!("{} `{target}`: {}: {}; {hint}", S::TARGET, self.code, self.message.trim_end_matches('.'))
    }
}

/// An error with all that is behind it.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = error.source();
    }
    text
}
