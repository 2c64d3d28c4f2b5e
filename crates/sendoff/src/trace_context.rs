//! Trace context: an event carries the span that it was written in, by the headers of the W3C's Trace Context.

use opentelemetry::trace::{SpanContext, TraceContextExt as _, TraceFlags};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::event::{HEADERS_BYTES_MAX, NewEvent};

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// The headers that say which span an event comes from.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TraceContext {
    parent: Option<String>,
    state: Option<String>,
}

impl TraceContext {
    /// Of the current span; empty where no tracer looks on.
    pub(crate) fn current() -> Self {
        let context = tracing::Span::current().context();
        Self::of(context.span().span_context())
    }

    fn of(span: &SpanContext) -> Self {
        if !span.is_valid() {
            return Self::default();
        }
        let flags = span.trace_flags() & TraceFlags::SAMPLED;
        let parent = format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), flags.to_u8());
        // It came in with a request, as somebody else wrote it.
        let is_clean = |state: &String| !state.is_empty() && !state.contains(|c: char| c.is_control());
        Self { parent: Some(parent), state: Some(span.trace_state().header()).filter(is_clean) }
    }

    /// Adds the headers, unless the event has its own. The event was checked before: what has no room is left out,
    /// since tracing must not be the reason that an event is refused.
    pub(crate) fn add_to(&self, event: &mut NewEvent) {
        let Some(parent) = &self.parent else { return };
        if event.headers.keys().any(|name| name.eq_ignore_ascii_case(PARENT)) {
            return;
        }
        let taken: usize = event.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let mut room = HEADERS_BYTES_MAX.saturating_sub(taken);
        for (name, value) in [(PARENT, Some(parent)), (STATE, self.state.as_ref())] {
            let Some(value) = value else { return };
            let Some(left) = room.checked_sub(name.len() + value.len()) else { return };
            event.headers.insert(name.to_owned(), value.clone());
            room = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanId, TraceId, TraceState};

    use super::*;

    fn span(state: &str) -> SpanContext {
        SpanContext::new(
            TraceId::from_hex("0af7651916cd43dd8448eb211c80319c").unwrap(),
            SpanId::from_hex("b7ad6b7169203331").unwrap(),
            TraceFlags::SAMPLED,
            true,
            state.parse::<TraceState>().unwrap(),
        )
    }

    #[test]
    fn headers_are_those_of_the_standard() {
        let mut event = NewEvent::new("t");
        TraceContext::of(&span("vendor=1")).add_to(&mut event);
        assert_eq!(event.headers[PARENT], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(event.headers[STATE], "vendor=1");
    }

    #[test]
    fn an_empty_state_and_no_span_add_nothing() {
        let mut event = NewEvent::new("t");
        TraceContext::of(&SpanContext::NONE).add_to(&mut event);
        assert!(event.headers.is_empty());
        TraceContext::of(&span("")).add_to(&mut event);
        assert_eq!(event.headers.keys().collect::<Vec<_>>(), [PARENT]);
    }

    #[test]
    fn an_events_own_context_is_left_alone() {
        let mut event = NewEvent::new("t").header("Traceparent", "mine");
        TraceContext::of(&span("vendor=1")).add_to(&mut event);
        assert_eq!(event.headers.len(), 1);
    }

    #[test]
    fn a_full_event_is_taken_without_it() {
        let mut event = NewEvent::new("t").header("h", "v".repeat(HEADERS_BYTES_MAX - 1));
        TraceContext::of(&span("")).add_to(&mut event);
        assert_eq!(event.headers.len(), 1);
    }
}
