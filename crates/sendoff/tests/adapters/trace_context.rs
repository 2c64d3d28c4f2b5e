//! An event carries the span that it was written in, as a real tracer numbers it.

use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_sdk::trace::SdkTracerProvider;
use sendoff::NewEvent;
use tracing::Instrument as _;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::outboxes::{Host, TestOutbox};

#[tokio::test]
async fn the_headers_name_the_span_that_the_event_was_written_in() {
    let outbox = TestOutbox::sqlite().await;
    let Host::Sqlite(pool, _) = &outbox.host else { unreachable!() };
    let provider = SdkTracerProvider::builder().build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    let writer = outbox.outbox();
    let enqueue = async |event: NewEvent| {
        let mut transaction = pool.begin().await.unwrap();
        writer.enqueue(&mut transaction, event).await.unwrap();
        transaction.commit().await.unwrap();
    };

    let span = tracing::info_span!("place order");
    let context = span.context();
    let expected = context.span().span_context().clone();
    assert!(expected.is_valid());
    enqueue(NewEvent::new("in a span")).instrument(span.clone()).await;
    enqueue(NewEvent::new("with its own").header("traceparent", "mine")).instrument(span).await;
    enqueue(NewEvent::new("in none")).await;

    let found = outbox.drain("default").await;
    let parent = |topic: &str| {
        let event = found.iter().find(|event| event.topic == topic).unwrap();
        event.headers.get("traceparent").cloned()
    };
    let written = parent("in a span").unwrap();
    let parts: Vec<&str> = written.split('-').collect();
    assert_eq!(parts, ["00", &expected.trace_id().to_string(), &expected.span_id().to_string(), "01"]);
    assert_eq!(parent("with its own").unwrap(), "mine");
    assert_eq!(parent("in none"), None);
}
