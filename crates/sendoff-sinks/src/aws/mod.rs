//! Amazon SQS and SNS: up to ten events in a request, several requests on their way, and an answer for each event.

mod answer;
mod connection;
mod message;
mod publisher;
#[cfg(feature = "sns")]
mod sns;
#[cfg(feature = "sqs")]
mod sqs;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

#[cfg(all(feature = "sns", not(feature = "sqs")))]
use aws_sdk_sns as sdk;
/// Both have the same types for what they share.
#[cfg(feature = "sqs")]
use aws_sdk_sqs as sdk;

#[cfg(feature = "sns")]
pub use self::sns::{Sns, SnsConfig};
#[cfg(feature = "sqs")]
pub use self::sqs::{Sqs, SqsConfig};
