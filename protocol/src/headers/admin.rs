//! Administration of a broker as a whole, and the fields that any request may carry.

use std::borrow::Cow;

header! {
    /// Answer to 26; the settings are the body.
    pub struct BrokerConfigReply<'a> {
        /// Data version of the settings, as JSON.
        pub version: Cow<'a, str>,
    }
}

header! {
    /// 315: one counter.
    pub struct BrokerStatsHeader<'a> {
        /// Such as `TOPIC_PUT_NUMS`.
        pub stats_name: Cow<'a, str>,
        /// Such as a topic, or `topic@group`.
        pub stats_key: Cow<'a, str>,
    }
}

header! {
    /// What clients of version 5 may add to any request.
    pub struct CommonHeader<'a> {
        /// Name of the broker meant.
        pub bname: Option<Cow<'a, str>>,
        /// Namespace (version 2).
        pub ns: Option<Cow<'a, str>>,
        /// Whether names are already in that namespace.
        pub nsd: Option<bool>,
        /// Whether the request wants no answer.
        pub oway: Option<bool>,
        /// Whether a static topic is meant as a whole.
        pub lo: Option<bool>,
    }
}
