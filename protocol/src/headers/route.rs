//! What a name server is asked: registration, routes, keys and values, write permission.

use std::borrow::Cow;

header! {
    /// 103: a broker announces itself; its topics are in the body.
    pub struct RegisterBrokerHeader<'a> {
        /// Name shared by a master and its slaves.
        pub broker_name: Cow<'a, str>,
        /// `ip:port` for clients.
        pub broker_addr: Cow<'a, str>,
        /// Cluster.
        pub cluster_name: Cow<'a, str>,
        /// `ip:port` for slaves.
        pub ha_server_addr: Cow<'a, str>,
        /// 0 the master.
        pub broker_id: i64,
        /// Forget the broker after so long without a sign of life, ms; absent: 120,000.
        pub heartbeat_timeout_millis: Option<i64>,
        /// Whether a slave may act as master.
        pub enable_acting_master: Option<bool>,
        /// Whether the body is compressed.
        pub compressed: bool = false,
        /// CRC-32 of the body without its top bit; 0 unchecked.
        pub body_crc32: i32 = 0,
        /// Zone of the broker.
        #[wire("__ZONE_NAME")]
        pub zone_name: Option<Cow<'a, str>>,
    }
}

header! {
    /// Answer to 103: both present for slaves only.
    pub struct RegisterBrokerReply<'a> {
        /// The master's `ip:port` for slaves.
        pub ha_server_addr: Option<Cow<'a, str>>,
        /// The master's `ip:port` for clients.
        pub master_addr: Option<Cow<'a, str>>,
    }
}

header! {
    /// 104: a broker takes its leave.
    pub struct UnregisterBrokerHeader<'a> {
        /// Name shared by a master and its slaves.
        pub broker_name: Cow<'a, str>,
        /// `ip:port` for clients.
        pub broker_addr: Cow<'a, str>,
        /// Cluster.
        pub cluster_name: Cow<'a, str>,
        /// 0 the master.
        pub broker_id: i64,
    }
}

header! {
    /// 105: the route of a topic.
    pub struct RouteHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Asks for quoted numeric keys whatever the requester's version.
        pub accept_standard_json_only: Option<bool>,
    }
}

header! {
    /// 100: store a value.
    pub struct PutKvHeader<'a> {
        /// Namespace, such as `ORDER_TOPIC_CONFIG`.
        pub namespace: Cow<'a, str>,
        /// Key.
        pub key: Cow<'a, str>,
        /// Value.
        pub value: Cow<'a, str>,
    }
}

header! {
    /// 101 and 102: read or delete a value.
    pub struct KvHeader<'a> {
        /// Namespace.
        pub namespace: Cow<'a, str>,
        /// Key.
        pub key: Cow<'a, str>,
    }
}

header! {
    /// Answer to 101.
    pub struct KvReply<'a> {
        /// The value, absent when there is none.
        pub value: Option<Cow<'a, str>>,
    }
}

header! {
    /// 219: all keys and values of a namespace.
    pub struct KvListHeader<'a> {
        /// Namespace.
        pub namespace: Cow<'a, str>,
    }
}

header! {
    /// 205 and 327: take or give write permission on all topics of a broker.
    pub struct WritePermHeader<'a> {
        /// Name shared by a master and its slaves.
        pub broker_name: Cow<'a, str>,
    }
}

header! {
    /// Answer to 205.
    pub struct WipeWritePermReply {
        /// How many topics were changed.
        pub wipe_topic_count: i32,
    }
}

header! {
    /// Answer to 327.
    pub struct AddWritePermReply {
        /// How many topics were changed.
        pub add_topic_count: i32,
    }
}

header! {
    /// 216: delete a topic's routes.
    pub struct DeleteRouteHeader<'a> {
        /// Topic.
        pub topic: Cow<'a, str>,
        /// Only on the brokers of this cluster.
        pub cluster_name: Option<Cow<'a, str>>,
    }
}

header! {
    /// 224: the topics of a cluster.
    pub struct ClusterTopicsHeader<'a> {
        /// Cluster.
        pub cluster: Cow<'a, str>,
    }
}

header! {
    /// 322: whether a broker's topics differ from those known; its data version is in the body.
    pub struct DataVersionHeader<'a> {
        /// Name shared by a master and its slaves.
        pub broker_name: Cow<'a, str>,
        /// `ip:port` for clients.
        pub broker_addr: Cow<'a, str>,
        /// Cluster.
        pub cluster_name: Cow<'a, str>,
        /// 0 the master.
        pub broker_id: i64,
    }
}

header! {
    /// Answer to 322.
    pub struct DataVersionReply {
        /// Whether the broker must register again.
        pub changed: bool,
    }
}

header! {
    /// 901: master and slaves of a broker name.
    pub struct MemberGroupHeader<'a> {
        /// Cluster.
        pub cluster_name: Cow<'a, str>,
        /// Name shared by a master and its slaves.
        pub broker_name: Cow<'a, str>,
    }
}

header! {
    /// 904: a broker says that it lives.
    pub struct BrokerHeartbeatHeader<'a> {
        /// Cluster.
        pub cluster_name: Cow<'a, str>,
        /// `ip:port` for clients.
        pub broker_addr: Cow<'a, str>,
        /// Name shared by a master and its slaves.
        pub broker_name: Cow<'a, str>,
        /// 0 the master.
        pub broker_id: Option<i64>,
        /// Controller mode: epoch of the master.
        pub epoch: Option<i32>,
        /// Controller mode: end of the broker's log.
        pub max_offset: Option<i64>,
        /// Controller mode: end of what is replicated.
        pub confirm_offset: Option<i64>,
        /// Forget the broker after so long without a sign of life, ms.
        #[wire("heartbeatTimeoutMills")]
        pub heartbeat_timeout_millis: Option<i64>,
        /// Controller mode: who is elected first.
        pub election_priority: Option<i32>,
    }
}

header! {
    /// 905: a name server tells brokers which of them acts as master.
    pub struct MinBrokerIdHeader<'a> {
        /// Smallest id alive.
        pub min_broker_id: Option<i64>,
        /// Name shared by a master and its slaves.
        pub broker_name: Option<Cow<'a, str>>,
        /// Its `ip:port` for clients.
        pub min_broker_addr: Option<Cow<'a, str>>,
        /// The one that went away.
        pub offline_broker_addr: Option<Cow<'a, str>>,
        /// `ip:port` for slaves.
        pub ha_broker_addr: Option<Cow<'a, str>>,
    }
}
