//! Leasing lanes, on the claim primitive and nothing else: the same three claims on every store, on its fast path or on the floor.

use uuid::Uuid;

use super::lane_set::LaneSet;
use super::store::{Leased, Member, Token, WorkerId};
use crate::claim::{
    ClaimSpec, ClaimSpecBuilder, Claimable, Predicate, Record, TableName, Value, col, now, now_plus,
};
use crate::error::StoreError;

/// How many lanes a target has. Fixed when the outbox is made: another number would move keys between lanes.
pub const LANES: u16 = 64;

/// Leases up to `most` of these lanes: those that were released, then those whose lease has ended, then those of owners that are known to be gone. A
/// lane that was not released counts a crash.
pub(crate) async fn take<T>(
    lanes: &T,
    table: &TableName,
    member: &Member,
    gone: &[WorkerId],
    wanted: LaneSet,
    most: u16,
) -> Result<Vec<Leased>, StoreError>
where
    T: Claimable<Row = Record>,
{
    let mut leased = Vec::new();
    let lease = |eligible: Predicate| lease(table, member, wanted, eligible);
    let lost = |eligible: Predicate| lease(eligible).add("crashes", 1);
    let mut claims = vec![
        lease(col("owner").is_null()),
        lost(col("owner").is_not_null().and(col("lease_until").lt(now()))),
    ];
    claims.extend(gone.iter().map(|worker| lost(col("owner").eq(worker.0))));
    for claim in claims {
        let left = u32::from(most) - leased.len() as u32;
        if left == 0 {
            break;
        }
        let spec = claim.limit(left).build()?;
        for row in lanes.claim(&spec).await? {
            leased.push(read(&row, member.worker)?);
        }
    }
    Ok(leased)
}

fn lease(table: &TableName, member: &Member, wanted: LaneSet, eligible: Predicate) -> ClaimSpecBuilder {
    let mut of_target = col("target").eq(member.target.as_str());
    if wanted != LaneSet::ALL {
        of_target = of_target.and(col("lane").is_in(wanted.iter().map(i64::from)));
    }
    ClaimSpec::on_table(table.clone())
        .eligible(of_target.and(eligible))
        .set("owner", member.worker.0)
        .add("epoch", 1)
        .set("lease_until", now_plus(member.lease))
        .order_by("target")
        .order_by("lane")
}

fn read(row: &Record, worker: WorkerId) -> Result<Leased, StoreError> {
    let number = |column: &'static str| match row.get(column) {
        Some(Value::Int(number)) => Ok(*number),
        other => Err(corrupt(column, other)),
    };
    let named = match row.get("named") {
        Some(Value::Null) => None,
        Some(Value::Int(position)) => Some(*position),
        other => return Err(corrupt("named", other)),
    };
    let lane = u16::try_from(number("lane")?).map_err(|_| corrupt("lane", row.get("lane")))?;
    Ok(Leased {
        token: Token { worker, lane, epoch: number("epoch")? },
        floor: number("floor")?,
        crashes: u32::try_from(number("crashes")?).unwrap_or(u32::MAX),
        named,
    })
}

fn corrupt(column: &str, value: Option<&Value>) -> StoreError {
    let kind = value.map_or("missing", Value::kind);
    StoreError::new(
        crate::error::StoreErrorKind::Corrupt,
        "lease",
        "lane",
        format!("column `{column}` is {kind}, not a number"),
    )
}

/// A worker's id as a column holds it: a uuid, its bytes or its text.
pub(crate) fn worker_id(value: &Value) -> Option<WorkerId> {
    let id = match value {
        Value::Uuid(id) => *id,
        Value::Bytes(bytes) => Uuid::from_slice(bytes).ok()?,
        Value::Text(text) => text.parse().ok()?,
        _ => return None,
    };
    Some(WorkerId(id))
}
