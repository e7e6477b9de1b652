//! POP consumption: 200050 to 200055.

use std::borrow::Cow;

header! {
    /// 200050: messages of a topic, hidden from the rest of the group for a while.
    pub struct PopHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Queue of the topic, or −1 for any.
        pub queue_id: i32,
        /// At most so many, 32 the most.
        pub max_msg_nums: i32,
        /// How long they stay hidden, ms.
        pub invisible_time: i64,
        /// How long to wait for messages, ms; counts from `born_time`.
        pub poll_time: i64,
        /// The client's clock when it asked, ms since 1970; 0 and absent mean now.
        pub born_time: i64 = 0,
        /// Where a new group begins: [`PopHeader::FROM_MIN`] or [`PopHeader::FROM_MAX`].
        pub init_mode: i32,
        /// `TAG` (also when absent) or `SQL92`.
        pub exp_type: Option<Cow<'a, str>>,
        /// Filter expression; everything when absent or empty.
        pub exp: Option<Cow<'a, str>>,
        /// Whether a queue stays closed until all that was handed out of it is done.
        pub order: bool = false,
        /// The same for all tries of one ordered pop.
        pub attempt_id: Option<Cow<'a, str>>,
    }
}

impl PopHeader<'_> {
    /// A new group begins at the oldest message.
    pub const FROM_MIN: i32 = 0;
    /// A new group begins at the newest message.
    pub const FROM_MAX: i32 = 1;
}

header! {
    /// Answer to 200050 and 200052. What the texts say, see [`crate::pop`].
    pub struct PopReply<'a> {
        /// When the messages were handed out, the broker's clock, ms since 1970.
        pub pop_time: i64,
        /// How long they stay hidden, ms.
        pub invisible_time: i64,
        /// Where the hand-out is noted.
        pub revive_qid: i32,
        /// How many more the group could have, about.
        pub rest_num: i64,
        /// The first offset of each queue handed out from.
        pub start_offset_info: Option<Cow<'a, str>>,
        /// The offsets of each queue handed out.
        pub msg_offset_info: Option<Cow<'a, str>>,
        /// How often messages were handed out before, in ordered pops.
        pub order_count_info: Option<Cow<'a, str>>,
    }
}

header! {
    /// 200051: a popped message is done.
    pub struct AckHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Topic the message was read from: a retry topic if it came from there.
        pub topic: Cow<'a, str>,
        /// Its queue.
        pub queue_id: i32,
        /// The receipt.
        pub extra_info: Cow<'a, str>,
        /// Its queue offset.
        pub offset: i64,
    }
}

header! {
    /// 200052: messages of a topic, not hidden from anyone.
    pub struct PeekHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Queue of the topic, or −1 for any.
        pub queue_id: i32,
        /// At most so many.
        pub max_msg_nums: i32,
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
    }
}

header! {
    /// 200053: a popped message is to come again at another time.
    pub struct ChangeInvisibleTimeHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Topic the message was read from: a retry topic if it came from there.
        pub topic: Cow<'a, str>,
        /// Its queue.
        pub queue_id: i32,
        /// The receipt.
        pub extra_info: Cow<'a, str>,
        /// Its queue offset.
        pub offset: i64,
        /// From now on, ms.
        pub invisible_time: i64,
    }
}

header! {
    /// Answer to 200053; absent fields where nothing was changed.
    pub struct ChangeInvisibleTimeReply {
        /// The new hand-out's time, ms since 1970.
        pub pop_time: Option<i64>,
        /// How long the message stays hidden from that time on, ms.
        pub invisible_time: Option<i64>,
        /// Where the hand-out is noted.
        pub revive_qid: Option<i32>,
    }
}

header! {
    /// 200054: tell when there is something to pop.
    pub struct NotificationHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Queue of the topic, or −1 for any.
        pub queue_id: i32,
        /// How long to wait, ms; counts from `born_time`.
        pub poll_time: i64,
        /// The client's clock when it asked, ms since 1970; 0 and absent mean now.
        pub born_time: i64 = 0,
        /// As in [`PopHeader`].
        pub order: bool = false,
        /// As in [`PopHeader`].
        pub attempt_id: Option<Cow<'a, str>>,
    }
}

header! {
    /// Answer to 200054.
    pub struct NotificationReply {
        /// Whether there is something to pop.
        pub has_msg: bool,
        /// Whether the answer comes now because too many wait already.
        pub polling_full: bool = false,
    }
}

header! {
    /// 200055: how many pops wait.
    pub struct PollingInfoHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Topic.
        pub topic: Cow<'a, str>,
        /// As the pops that are counted have it: −1 counts those for any queue.
        pub queue_id: i32,
    }
}

header! {
    /// Answer to 200055.
    pub struct PollingInfoReply {
        /// How many wait.
        pub polling_num: i32,
    }
}
