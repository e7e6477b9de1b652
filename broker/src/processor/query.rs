//! Finding messages: by key (12), by place (33).
use bindery_protocol::{
    codes::ResponseCode,
    frame::{Frame, Reply},
    headers::{QueryMessageHeader, QueryMessageReply, ViewMessageHeader},
    message::PhysicalOffset,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{refusal::Refusal, state::Core};

/// Most messages of one query, whatever is asked for (`maxMsgsNumBatch` of Apache `RocketMQ` 5.3.3).
const MOST: i32 = 64;

/// 12: the messages of a key within a range of store times.
pub(super) fn by_key(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: QueryMessageHeader<'_> = frame.header()?;
    let wanted = match header.unique_key_query {
        Some(true) => core.live().default_query_max_num,
        _ => header.max_num,
    };
    let found = core.store.query(
        &header.topic,
        &header.key,
        usize::try_from(wanted.clamp(0, MOST)).unwrap_or(0),
        header.begin_timestamp,
        header.end_timestamp,
    );
    let header = QueryMessageReply {
        index_last_update_timestamp: found.index_last_update_timestamp,
        index_last_update_phyoffset: found.index_last_update_offset.0,
    };
    if found.records.is_empty() {
        let refusal = Refusal::QueryEmpty;
        return Ok(Reply::error(ResponseCode::QUERY_NOT_FOUND, refusal.to_string()).with(&header));
    }
    let mut reply = Reply::ok().with(&header);
    reply.body = found.records;
    Ok(reply)
}

/// 33: the message whose record begins at a physical offset.
pub(super) fn by_offset(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ViewMessageHeader<'_> = frame.header()?;
    let record =
        core.store
            .message_at(PhysicalOffset(header.offset))
            .ok_or(Refusal::MessageNotFound {
                offset: header.offset,
            })?;
    Ok(Reply::ok().body(record))
}
