//! Administration of consumer and producer groups, and what groups are doing.

use std::borrow::Cow;

header! {
    /// 343, 352: a group and nothing else.
    pub struct GroupHeader<'a> {
        /// Consumer group.
        pub group: Cow<'a, str>,
    }
}

header! {
    /// 207: delete a group.
    pub struct DeleteGroupHeader<'a> {
        /// Consumer group.
        pub group_name: Cow<'a, str>,
        /// Its offsets too.
        pub clean_offset: bool = false,
    }
}

header! {
    /// 204: the connections of a producer group.
    pub struct ProducerConnectionHeader<'a> {
        /// Producer group.
        pub producer_group: Cow<'a, str>,
    }
}

header! {
    /// 208: how far a group has come.
    pub struct ConsumeStatsHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// On one topic; on all when absent or empty.
        pub topic: Option<Cow<'a, str>>,
        /// On these topics, separated by semicolons.
        pub topic_list: Option<Cow<'a, str>>,
    }
}

header! {
    /// 317: how far all groups have come.
    pub struct BrokerConsumeStatsHeader {
        /// Only groups that consume in order.
        pub is_order: bool,
    }
}

header! {
    /// 345: a group's subscription to a topic.
    pub struct SubscriptionHeader<'a> {
        /// Consumer group.
        pub group: Cow<'a, str>,
        /// Topic.
        pub topic: Option<Cow<'a, str>>,
    }
}

header! {
    /// 303: the store times between which a group works.
    pub struct ConsumeTimeSpanHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Consumer group.
        pub group: Cow<'a, str>,
    }
}

header! {
    /// 353: whether a group may read a topic.
    pub struct GroupForbiddenHeader<'a> {
        /// Consumer group.
        pub group: Cow<'a, str>,
        /// Topic.
        pub topic: Cow<'a, str>,
        /// What it shall be from now on; only asked when absent.
        pub readable: Option<bool>,
    }
}
