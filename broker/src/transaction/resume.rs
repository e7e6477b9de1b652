//! Checking a half message again that was given up: 323.
use bindery_protocol::{
    message::{PhysicalOffset, RecordView, property},
    names,
};

use super::{
    QUEUE,
    half::{HalfMessage, immunity_millis, with, without},
};
use crate::{refusal::Refusal, state::Core};

/// Writes the message that was given up once more as a half message, with all its checks before it.
///
/// # Errors
/// [`Refusal::MessageNotFound`]; [`Refusal::NotGivenUp`] for any other message: one that was decided would be decided
/// again; and what an append can fail with.
pub(crate) fn resume(core: &Core, offset: PhysicalOffset) -> Result<(), Refusal> {
    let bytes = core
        .store
        .message_at(offset)
        .ok_or(Refusal::MessageNotFound { offset: offset.0 })?;
    let record = RecordView::parse(&bytes)?;
    let given_up = record.topic_text() == names::TRANS_CHECK_MAX_TIME_TOPIC;
    let half = HalfMessage::of(record, &core.live())
        .filter(|_| given_up)
        .ok_or(Refusal::NotGivenUp { offset: offset.0 })?;
    // The place of its first form means nothing for a life that begins now.
    let properties = without(
        half.properties().as_bytes(),
        property::TRAN_PREPARED_QUEUE_OFFSET,
    );
    let properties = with(&properties, property::TRANSACTION_CHECK_TIMES, "0");
    let message = half.again(names::TRANS_HALF_TOPIC, QUEUE, core.address, &properties);
    let appended = core
        .store
        .append(&message)
        .map_err(|error| Refusal::append(&error, &core.store))?;
    let immunity = half
        .immunity
        .unwrap_or_else(|| immunity_millis(None, &core.live()));
    core.transactions.opened(core, &appended, immunity);
    tracing::info!(
        key = half.key,
        group = half.group,
        topic = half.topic,
        "transaction given up is checked again"
    );
    Ok(())
}
