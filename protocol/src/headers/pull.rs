//! Pulling: 11 and 361.

use std::borrow::Cow;

header! {
    /// 11 and 361: messages of one queue from an offset on.
    pub struct PullHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Queue of the topic.
        pub queue_id: i32,
        /// First message wanted; counts messages, not bytes.
        pub queue_offset: i64,
        /// At most so many.
        pub max_msg_nums: i32,
        /// Bits: 1 commit `commit_offset` first, 2 wait for messages, 4 `subscription` is given here, 8 class filter,
        /// 16 lite pull.
        pub sys_flag: i32,
        /// Offset to commit when bit 1 is set.
        pub commit_offset: i64,
        /// How long to wait for messages, ms.
        pub suspend_timeout_millis: i64,
        /// Filter expression, when bit 4 is set.
        pub subscription: Option<Cow<'a, str>>,
        /// Version of the subscription this pull relies on.
        pub sub_version: i64,
        /// `TAG` (also when absent) or `SQL92`.
        pub expression_type: Option<Cow<'a, str>>,
        /// Hint: about so many bytes.
        pub max_msg_bytes: Option<i32>,
        /// Which kind of program asks; set by proxies.
        pub request_source: Option<i32>,
        /// Client behind a proxy. The wire name is misspelled in the original.
        #[wire("proxyFrowardClientId")]
        pub proxy_forward_client_id: Option<Cow<'a, str>>,
    }
}

header! {
    /// Answer to 11 and 361, whatever its status.
    pub struct PullReply {
        /// Id of the broker to ask next time, 0 the master.
        pub suggest_which_broker_id: i64,
        /// Where to go on.
        pub next_begin_offset: i64,
        /// First offset of the queue.
        pub min_offset: i64,
        /// End of the queue.
        pub max_offset: i64,
        /// Shift between the queue's own offsets and those of a static topic.
        pub offset_delta: Option<i64>,
        /// System flag of the topic.
        pub topic_sys_flag: Option<i32>,
        /// System flag of the group.
        pub group_sys_flag: Option<i32>,
        /// Who refuses, with code 16: 1 broker, 2 group, 3 topic, 4 broadcasting, 5 subscription.
        pub forbidden_type: Option<i32>,
    }
}
