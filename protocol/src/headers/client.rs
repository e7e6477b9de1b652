//! Clients of a broker: coming, going, sending back, and what is asked of them.

use std::borrow::Cow;

header! {
    /// Answer to 34.
    pub struct HeartbeatReply {
        /// Whether the second version of heartbeats is understood.
        #[wire("IS_SUPPORT_HEART_BEAT_V2")]
        pub supports_v2: Option<bool>,
        /// Whether the client must send its subscriptions again.
        #[wire("IS_SUB_CHANGE")]
        pub subscriptions_changed: Option<bool>,
    }
}

header! {
    /// 35: a producer or consumer goes.
    pub struct UnregisterClientHeader<'a> {
        /// Client id.
        #[wire("clientID")]
        pub client_id: Cow<'a, str>,
        /// Its producer group.
        pub producer_group: Option<Cow<'a, str>>,
        /// Its consumer group.
        pub consumer_group: Option<Cow<'a, str>>,
    }
}

header! {
    /// 38, 40, 203: a consumer group and nothing else.
    pub struct ConsumerGroupHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
    }
}

header! {
    /// 36: deliver a message again later, or bury it.
    pub struct SendBackHeader<'a> {
        /// Physical offset of the message on this broker.
        pub offset: i64,
        /// Consumer group.
        pub group: Cow<'a, str>,
        /// 0 lets the broker choose by the number of retries, negative buries at once.
        pub delay_level: i32,
        /// Id of the message.
        pub origin_msg_id: Option<Cow<'a, str>>,
        /// Its topic.
        pub origin_topic: Option<Cow<'a, str>>,
        /// Sent by a client in unit mode.
        pub unit_mode: bool = false,
        /// How often it may be retried; −1 or absent lets the group's setting decide.
        pub max_reconsume_times: Option<i32>,
    }
}

header! {
    /// 307: what a consumer says about itself; relayed unchanged.
    pub struct RunningInfoHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Client id.
        pub client_id: Cow<'a, str>,
        /// With the stacks of its threads.
        pub jstack_enable: bool = false,
    }
}

header! {
    /// 309: have one consumer handle one message now.
    pub struct ConsumeDirectlyHeader<'a> {
        /// Consumer group.
        pub consumer_group: Cow<'a, str>,
        /// Client id.
        pub client_id: Option<Cow<'a, str>>,
        /// Store address and physical offset of the message in hex.
        pub msg_id: Option<Cow<'a, str>>,
        /// Filled in by the broker.
        pub broker_name: Option<Cow<'a, str>>,
        /// Topic of the message.
        pub topic: Option<Cow<'a, str>>,
        /// Filled in by the broker.
        pub topic_sys_flag: Option<i32>,
        /// Filled in by the broker.
        pub group_sys_flag: Option<i32>,
    }
}
