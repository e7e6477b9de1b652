//! Headers and facts of the delivery as handler arguments.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::{FromMessage, Rejection};
use crate::handler::MessageContext;
use crate::headers::Headers;

/// The message's tag; empty when it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(pub String);

/// The message's keys; empty when it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys(pub Vec<String>);

/// The id the sending client gave the message; constant over redeliveries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageId(pub String);

/// The queue the message was read from, within its topic and broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub i32);

/// The message's position in its queue, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueOffset(pub i64);

/// When the sender made the message, by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BornTime(pub SystemTime);

/// When the broker stored the message, by its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreTime(pub SystemTime);

/// The topic the message was sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic(pub String);

/// The consumer group that received the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group(pub String);

/// The input binding that received the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingName(pub String);

/// How often this message has been tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redelivery {
    /// The attempt within this delivery, counted from 1.
    pub in_process: u32,
    /// The broker's redeliveries, 0 at first.
    pub broker: u32,
    /// After how many redeliveries the message becomes a dead letter; `None` without a limit.
    pub max: Option<u32>,
}

macro_rules! extractors {
    ($($name:ident = |$cx:ident| $value:expr;)*) => {$(
        impl FromMessage for $name {
            async fn from_message($cx: &MessageContext<'_>) -> Result<Self, Rejection> {
                Ok($value)
            }
        }
    )*};
}

extractors! {
    Headers = |cx| cx.message.headers().clone();
    Tags = |cx| Tags(cx.message.headers().tags().unwrap_or_default().to_owned());
    Keys = |cx| Keys(cx.message.headers().keys().map(str::to_owned).collect());
    MessageId = |cx| MessageId(fact(&cx.info.message_id, "message id")?);
    QueueId = |cx| QueueId(cx.info.queue_id);
    QueueOffset = |cx| QueueOffset(cx.info.queue_offset);
    BornTime = |cx| BornTime(time(cx.info.born_millis, "time of sending")?);
    StoreTime = |cx| StoreTime(time(cx.info.store_millis, "time of storing")?);
    Topic = |cx| Topic(fact(&cx.info.topic, "topic")?);
    Group = |cx| Group(fact(&cx.info.group, "group")?);
    BindingName = |cx| BindingName(fact(&cx.info.binding, "binding")?);
    Redelivery = |cx| Redelivery {
        in_process: cx.info.attempt.max(1),
        broker: cx.info.reconsume_times,
        max: cx.info.max_reconsume_times,
    };
}

fn fact(text: &str, what: &'static str) -> Result<String, Rejection> {
    if text.is_empty() {
        Err(Rejection::MissingFact { what })
    } else {
        Ok(text.to_owned())
    }
}

fn time(millis: i64, what: &'static str) -> Result<SystemTime, Rejection> {
    // A binder that doesn't know leaves 0; times before 1970 don't exist in a broker.
    match u64::try_from(millis) {
        Ok(millis) if millis > 0 => Ok(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)),
        _ => Err(Rejection::MissingFact { what }),
    }
}

macro_rules! display {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
display!(Tags MessageId QueueId QueueOffset Topic Group BindingName);
