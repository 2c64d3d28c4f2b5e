//! What columns and status words are usually called. Compared without case, lines and dots: `Locked_By` is `lockedby`.

/// Names of columns by what they are for, the surest first.
pub(super) const TOPIC: &[&str] = &[
    "topic",
    "eventtype",
    "type",
    "eventname",
    "routingkey",
    "subject",
    "channel",
    "messagetype",
    "kind",
    "name",
];
pub(super) const KEY: &[&str] = &[
    "aggregateid",
    "orderingkey",
    "partitionkey",
    "messagekey",
    "key",
    "streamid",
    "streamname",
    "entityid",
    "aggregaterootid",
];
pub(super) const PAYLOAD: &[&str] = &[
    "payload",
    "data",
    "body",
    "eventdata",
    "eventpayload",
    "content",
    "envelope",
    "envelopejson",
    "message",
    "value",
    "event",
];
pub(super) const HEADERS: &[&str] = &["headers", "metadata", "meta", "attributes"];
pub(super) const CONTENT_TYPE: &[&str] = &["contenttype", "mimetype", "mediatype"];
pub(super) const CREATED: &[&str] = &[
    "createdat",
    "created",
    "createdon",
    "createdutc",
    "createdtime",
    "occurredat",
    "occurredon",
    "insertedat",
    "recordedat",
    "eventtime",
    "timestamp",
];
pub(super) const TARGET: &[&str] = &["target", "targetbroker", "destination", "broker", "sink"];
pub(super) const STATUS: &[&str] = &["status", "state", "processingstatus", "deliverystatus"];
pub(super) const OWNER: &[&str] =
    &["lockedby", "claimedby", "owner", "leasedby", "lockowner", "workerid", "processorid"];
pub(super) const LEASE_END: &[&str] = &[
    "lockeduntil",
    "leaseuntil",
    "leaseend",
    "claimexpiresat",
    "claimexpiresutc",
    "leaseexpiresat",
    "lockexpiresat",
    "claimeduntil",
];
pub(super) const ATTEMPTS: &[&str] =
    &["attempts", "attemptcount", "retrycount", "retries", "tries", "deliveryattempts"];
pub(super) const TOKEN: &[&str] = &["locktoken", "claimtoken", "leasetoken", "token"];
pub(super) const CLAIMED_AT: &[&str] = &["lockedat", "claimedat", "claimedutc", "leasedat"];
pub(super) const DUE: &[&str] = &[
    "nextretryat",
    "nextattemptat",
    "nextattemptutc",
    "retryat",
    "availableat",
    "dueat",
    "scheduledat",
    "notbefore",
];
pub(super) const ERROR: &[&str] =
    &["lasterror", "error", "errormessage", "lasterrormessage", "failurereason"];
pub(super) const PUBLISHED_AT: &[&str] = &[
    "publishedat",
    "publishedon",
    "sentat",
    "senton",
    "processedat",
    "processedon",
    "deliveredat",
    "deliveredutc",
    "dispatchedat",
    "completedat",
];
/// A column that says by yes or no whether a row was delivered.
pub(super) const FLAG: &[&str] =
    &["published", "processed", "sent", "delivered", "dispatched", "ispublished", "isprocessed", "issent"];

/// Status words.
pub(super) const PENDING: &[&str] = &[
    "pending",
    "new",
    "ready",
    "unprocessed",
    "unpublished",
    "queued",
    "waiting",
    "created",
    "open",
    "unsent",
    "notsent",
];
pub(super) const PROCESSING: &[&str] =
    &["processing", "inprogress", "claimed", "locked", "publishing", "sending", "running", "busy"];
pub(super) const PUBLISHED: &[&str] = &[
    "published",
    "sent",
    "delivered",
    "processed",
    "dispatched",
    "completed",
    "complete",
    "done",
    "success",
    "succeeded",
];
pub(super) const DEAD: &[&str] =
    &["dead", "deadlettered", "deadletter", "abandoned", "rejected", "poison", "discarded"];
/// Where there is another word for what is given up, this is what waits for a retry.
pub(super) const FAILED: &[&str] = &["failed", "error", "retry", "retryready", "retrying"];

/// As names are compared.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The first of these that one of the names stands for.
pub(super) fn first<'n>(names: &[&str], found: &'n [String]) -> Option<&'n String> {
    names.iter().find_map(|name| found.iter().find(|found| plain(found) == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case_and_lines() {
        assert_eq!(plain("Locked_By"), "lockedby");
        let found = ["SENT".to_owned(), "In-Progress".to_owned()];
        assert_eq!(first(PROCESSING, &found), Some(&found[1]));
        assert_eq!(first(PUBLISHED, &found), Some(&found[0]));
        assert_eq!(first(PENDING, &found), None);
    }
}
