//! Looking at messages without taking them (200052).
use bindery_protocol::{
    codes::ResponseCode,
    frame::{Frame, Reply},
    headers::{PeekHeader, PopReply},
    message::QueueOffset,
    pop::MOST_MESSAGES,
};
use bindery_remoting::Connection;
use bytes::Bytes;

use super::{Answer, notification::admit_peek};
use crate::{
    pop::{position, retry_topics, take::from},
    state::Core,
    store::{Everything, ReadLimits, ReadStatus},
};

/// One time in so many the retry topics come first.
const RETRIES_FIRST: i32 = 5;

/// 200052: the messages that the group's next pop would get, filters aside.
pub(super) fn peek(core: &Core, connection: &Connection, frame: &Frame) -> Answer {
    let header: PeekHeader<'_> = frame.header()?;
    let (topic, group) = (&*header.topic, &*header.consumer_group);
    admit_peek(core, connection, topic, group, header.queue_id)?;
    let most = header.max_msg_nums.clamp(1, MOST_MESSAGES);
    let mut peeking = Peeking {
        core,
        group,
        most: usize::try_from(most).unwrap_or(1),
        messages: Vec::new(),
        rest: 0,
    };
    let luck: i32 = rand::random_range(0..100);
    let retries = retry_topics(core, group, topic);
    let retries_first = luck % RETRIES_FIRST == 0;
    if retries_first {
        for topic in &retries {
            peeking.topic(topic, luck);
        }
    }
    if header.queue_id < 0 {
        peeking.topic(topic, luck);
    } else {
        peeking.queue(topic, header.queue_id);
    }
    if !retries_first && peeking.messages.len() < peeking.most {
        for topic in &retries {
            peeking.topic(topic, luck);
        }
    }
    Ok(peeking.reply())
}

struct Peeking<'a> {
    core: &'a Core,
    group: &'a str,
    most: usize,
    messages: Vec<Bytes>,
    rest: i64,
}

impl Peeking<'_> {
    fn topic(&mut self, topic: &str, luck: i32) {
        let queues = self
            .core
            .topics
            .topic(topic)
            .map_or(0, |topic| topic.read_queue_nums);
        for queue_id in from(luck, 0..queues) {
            self.queue(topic, queue_id);
        }
    }

    fn queue(&mut self, topic: &str, queue_id: i32) {
        let start = position(self.core, topic, self.group, queue_id);
        self.rest += self.core.store.max_offset(topic, queue_id).0 - start;
        let Some(wanted) = self
            .most
            .checked_sub(self.messages.len())
            .filter(|left| *left > 0)
        else {
            return;
        };
        let limits = ReadLimits::messages(wanted);
        let store = &self.core.store;
        let mut read = store.read(topic, queue_id, QueueOffset(start), limits, &Everything);
        if matches!(
            read.status,
            ReadStatus::OffsetTooSmall | ReadStatus::OffsetOverflowBadly
        ) {
            read = store.read(topic, queue_id, read.next, limits, &Everything);
        }
        self.messages.extend(read.messages);
    }

    fn reply(self) -> Reply {
        let (code, remark) = if self.messages.is_empty() {
            (ResponseCode::PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE")
        } else {
            (ResponseCode::SUCCESS, "FOUND")
        };
        let mut reply = Reply::code(code).with(&PopReply {
            rest_num: self.rest,
            ..PopReply::default()
        });
        reply.remark = Some(remark.into());
        reply.body = self.messages;
        reply
    }
}
