//! Administration of topics.

use std::borrow::Cow;

header! {
    /// 17: create or change a topic.
    pub struct CreateTopicHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// `TBW102`; unused.
        pub default_topic: Cow<'a, str>,
        /// Queues that consumers see.
        pub read_queue_nums: i32,
        /// Queues that producers see.
        pub write_queue_nums: i32,
        /// Bits: 4 read, 2 write, 1 inherit.
        pub perm: i32,
        /// `SINGLE_TAG` or `MULTI_TAG`.
        pub topic_filter_type: Cow<'a, str>,
        /// Bits: 1 unit, 2 unit subscribers.
        pub topic_sys_flag: Option<i32>,
        /// Whether the topic is ordered.
        pub order: bool,
        /// `+key=value` and `-key`, separated by commas.
        pub attributes: Option<Cow<'a, str>>,
        /// Skip checks.
        pub force: bool = false,
    }
}

header! {
    /// 202, 215, 217, 300, 351: a topic and nothing else.
    pub struct TopicHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
    }
}
