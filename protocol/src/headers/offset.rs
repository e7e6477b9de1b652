//! Offsets of groups and queues: asking, committing, searching, resetting.

use std::borrow::Cow;

header! {
    /// 14: a group's committed offset.
    pub struct QueryOffsetHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Queue of the topic.
        pub queue_id: i32,
        /// Whether a new group may be sent to offset 0 on a young topic; absent means yes.
        pub set_zero_if_not_found: Option<bool>,
    }
}

header! {
    /// Answer to 14, 29, 30 and 31.
    pub struct OffsetReply {
        /// Queue offset: counts messages.
        pub offset: i64,
    }
}

header! {
    /// 15: commit an offset.
    pub struct UpdateOffsetHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Queue of the topic.
        pub queue_id: i32,
        /// Everything before it is consumed.
        pub commit_offset: i64,
    }
}

header! {
    /// 29: the offset of a store time.
    pub struct SearchOffsetHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Queue of the topic.
        pub queue_id: i32,
        /// Ms since 1970.
        pub timestamp: i64,
        /// `LOWER` (first message not before; also when absent) or `UPPER` (last not after), in any case.
        pub boundary_type: Option<Cow<'a, str>>,
    }
}

header! {
    /// 30: the end of a queue.
    pub struct MaxOffsetHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Queue of the topic.
        pub queue_id: i32,
        /// Only what consumers can see.
        pub committed: bool = true,
    }
}

header! {
    /// 31, 32: the start of a queue, the store time of its first message.
    pub struct QueueHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Queue of the topic.
        pub queue_id: i32,
    }
}

header! {
    /// Answer to 32.
    pub struct StoreTimeReply {
        /// Ms since 1970; −1 when the queue is empty.
        pub timestamp: i64,
    }
}

header! {
    /// 220 and 222: move a group's offsets.
    pub struct ResetOffsetHeader<'a> {
        /// Consumer group.
        pub group: Cow<'a, str>,
        /// Topic.
        pub topic: Cow<'a, str>,
        /// One queue, or −1 for all.
        pub queue_id: i32 = -1,
        /// Target offset; with one queue only.
        pub offset: Option<i64>,
        /// Target store time, ms since 1970; −1 the end.
        pub timestamp: i64,
        /// Also forward.
        pub is_force: bool,
    }
}

header! {
    /// 221 and 223: the offsets in memory of consumers.
    pub struct ConsumerStatusHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Consumer group.
        pub group: Cow<'a, str>,
        /// Client id of one consumer; all when absent.
        pub client_addr: Option<Cow<'a, str>>,
    }
}

header! {
    /// 308: the least offsets among groups.
    pub struct CorrectionOffsetHeader<'a> {
        /// Groups to look at, separated by commas.
        pub filter_groups: Option<Cow<'a, str>>,
        /// Group to compare with.
        pub compare_group: Cow<'a, str>,
        /// Topic.
        pub topic: Cow<'a, str>,
    }
}

header! {
    /// 314: copy a group's offsets.
    pub struct CloneOffsetHeader<'a> {
        /// From this group.
        pub src_group: Cow<'a, str>,
        /// To this group.
        pub dest_group: Cow<'a, str>,
        /// Of one topic; of all when absent.
        pub topic: Option<Cow<'a, str>>,
        /// Even while the group is connected.
        pub offline: bool = false,
    }
}
