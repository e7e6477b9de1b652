//! Finding messages by key, by place, and looking into a consume queue.

use std::borrow::Cow;

header! {
    /// 12: messages by key.
    pub struct QueryMessageHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// One of the message's keys, or its unique key.
        pub key: Cow<'a, str>,
        /// At most so many.
        pub max_num: i32,
        /// Stored at this time or later, ms since 1970.
        pub begin_timestamp: i64,
        /// Stored at this time or earlier, ms since 1970.
        pub end_timestamp: i64,
        /// Whether `key` is a unique key.
        #[wire("_UNIQUE_KEY_QUERY")]
        pub unique_key_query: Option<bool>,
    }
}

header! {
    /// Answer to 12, also when nothing was found.
    pub struct QueryMessageReply {
        /// Store time of the last message in the index, ms since 1970.
        pub index_last_update_timestamp: i64,
        /// Its physical offset.
        pub index_last_update_phyoffset: i64,
    }
}

header! {
    /// 33: the message at a physical offset.
    pub struct ViewMessageHeader<'a> {
        /// Topic; clients up to 4.9 don't send it.
        pub topic: Option<Cow<'a, str>>,
        /// Bytes from the start of the commit log.
        pub offset: i64,
    }
}

header! {
    /// 321: entries of a consume queue.
    pub struct ConsumeQueueHeader<'a> {
        /// Topic.
        pub topic: Option<Cow<'a, str>>,
        /// Queue of the topic.
        pub queue_id: i32 = 0,
        /// First entry wanted.
        pub index: i64 = 0,
        /// At most so many.
        pub count: i32 = 0,
        /// Show what this group's filter makes of them.
        pub consumer_group: Option<Cow<'a, str>>,
    }
}
