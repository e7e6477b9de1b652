//! POP over the wire: what is handed out, what comes again, and what never does.
mod assignment;
mod model;
mod order;
mod polling;
mod taking;

use std::time::Duration;

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Request},
    headers::{AckHeader, ChangeInvisibleTimeHeader, PopHeader, PopReply},
    message::{property, record::StoredMessage},
    pop::{Receipt, RetryMark},
};

use crate::support::{Fixture, Peer, Pulled, until};

/// How long messages stay hidden in these tests, ms.
const HIDDEN: i64 = 10_000;

/// A pop's answer, taken apart.
#[derive(Debug)]
struct Popped {
    code: ResponseCode,
    remark: String,
    reply: PopReply<'static>,
    messages: Vec<StoredMessage>,
}

impl Popped {
    fn of(answer: &Frame) -> Self {
        let pulled = Pulled::of(answer);
        Self {
            code: pulled.code,
            remark: pulled.status,
            reply: answer.header::<PopReply<'_>>().unwrap().into_owned(),
            messages: pulled.messages,
        }
    }

    fn bodies(&self) -> Vec<String> {
        let bodies = self.messages.iter();
        bodies
            .map(|message| String::from_utf8_lossy(&message.body).into_owned())
            .collect()
    }

    /// What a client shows for the message of that body: its own receipt if it came back, else one made of the answer.
    fn handle(&self, body: &str) -> Handle {
        let message = self
            .messages
            .iter()
            .find(|message| message.body.as_ref() == body.as_bytes())
            .unwrap();
        if let Some(receipt) = message.properties.get(property::POP_CK) {
            return Handle::of(receipt.to_owned());
        }
        let starts = self.reply.start_offset_info.as_deref().unwrap();
        let start = starts.split(';').find_map(|entry| {
            let mut parts = entry.split(' ');
            let queue = (parts.next()?, parts.next()?.parse().ok()?);
            (queue == ("0", message.queue_id)).then(|| parts.next()?.parse().ok())?
        });
        let receipt = Receipt {
            start_offset: start.unwrap(),
            pop_time: self.reply.pop_time,
            invisible_time: self.reply.invisible_time,
            revive_queue: self.reply.revive_qid,
            retry: RetryMark::Normal,
            broker_name: "broker-t".into(),
            queue_id: message.queue_id,
            queue_offset: message.queue_offset.0,
        };
        Handle::of(receipt.to_string())
    }
}

/// A receipt, and what requests say beside it.
#[derive(Debug, Clone)]
struct Handle {
    receipt: String,
    queue_id: i32,
    offset: i64,
    retry: RetryMark,
}

impl Handle {
    fn of(receipt: String) -> Self {
        let read = Receipt::parse(&receipt).unwrap();
        let (queue_id, offset, retry) = (read.queue_id, read.queue_offset, read.retry);
        Self {
            receipt,
            queue_id,
            offset,
            retry,
        }
    }
}

fn pop_header(topic: &str, now: i64) -> PopHeader<'static> {
    PopHeader {
        consumer_group: "g".into(),
        topic: topic.to_owned().into(),
        queue_id: -1,
        max_msg_nums: 32,
        invisible_time: HIDDEN,
        poll_time: 0,
        born_time: now,
        init_mode: PopHeader::FROM_MIN,
        exp_type: Some("TAG".into()),
        exp: Some("*".into()),
        order: false,
        attempt_id: None,
    }
}

fn pop_request(header: &PopHeader<'_>) -> Request {
    Request::new(RequestCode::POP_MESSAGE).with(header)
}

async fn pop_with(peer: &Peer, change: impl FnOnce(&mut PopHeader<'static>)) -> Popped {
    let mut header = pop_header("T", 0);
    change(&mut header);
    Popped::of(&peer.call(pop_request(&header)).await)
}

async fn pop(peer: &Peer) -> Popped {
    pop_with(peer, |_| {}).await
}

fn ack_request(handle: &Handle) -> Request {
    Request::new(RequestCode::ACK_MESSAGE).with(&AckHeader {
        consumer_group: "g".into(),
        topic: handle.retry.topic("g", "T").into(),
        queue_id: handle.queue_id,
        extra_info: handle.receipt.as_str().into(),
        offset: handle.offset,
    })
}

async fn ack(peer: &Peer, handle: &Handle) {
    peer.ok(ack_request(handle)).await;
}

fn change_request(handle: &Handle, invisible_time: i64) -> Request {
    Request::new(RequestCode::CHANGE_MESSAGE_INVISIBLETIME).with(&ChangeInvisibleTimeHeader {
        consumer_group: "g".into(),
        topic: handle.retry.topic("g", "T").into(),
        queue_id: handle.queue_id,
        extra_info: handle.receipt.as_str().into(),
        offset: handle.offset,
        invisible_time,
    })
}

/// Moves the clock behind the time at which what was popped comes again.
async fn time_passes(fixture: &Fixture) {
    // In steps, as the timer and the revive service take them.
    for _ in 0..7 {
        fixture.clock.advance(Duration::from_secs(2));
        tokio::task::yield_now().await;
    }
}

/// Pops until so many messages came; what came.
async fn pop_all(fixture: &Fixture, peer: &Peer, count: usize) -> Vec<(StoredMessage, Handle)> {
    let mut all: Vec<(StoredMessage, Handle)> = Vec::new();
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while all.len() < count {
        assert!(
            std::time::Instant::now() < deadline,
            "only {} of {count} came",
            all.len()
        );
        let popped = pop(peer).await;
        let handles = popped.bodies().into_iter().map(|body| popped.handle(&body));
        let handles: Vec<Handle> = handles.collect();
        all.extend(popped.messages.into_iter().zip(handles));
        // The timer and the revive service look again when time goes on.
        fixture.clock.advance(Duration::from_millis(50));
        tokio::task::yield_now().await;
    }
    all
}

fn body(message: &StoredMessage) -> String {
    String::from_utf8_lossy(&message.body).into_owned()
}
