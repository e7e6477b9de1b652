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

header! {
    /// 906, request and answer: what a master and its slaves tell each other before replication begins.
    pub struct ReplicationHeader<'a> {
        /// The master's `ip:port` for slaves.
        pub master_ha_address: Option<Cow<'a, str>>,
        /// End of what the master had on disk when it started.
        pub master_flush_offset: Option<i64>,
        /// The master's `ip:port` for clients.
        pub master_address: Option<Cow<'a, str>>,
    }
}

header! {
    /// 908: corrects a slave's idea of the master's log.
    pub struct MasterFlushOffsetHeader {
        /// End of what the master has on disk.
        pub master_flush_offset: i64,
    }
}
