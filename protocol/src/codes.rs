//! Request and response codes: one table each, from which the constants, their names and who answers are made.
//!
//! ```text
//! frame head ─▶ RequestCode ─┬─ name()         for logs and errors
//!                            └─ answered_by()  dispatch: anything else gets REQUEST_CODE_NOT_SUPPORTED
//! ```
//!
//! Numbers and names are those of `RequestCode` and `ResponseCode` of Apache RocketMQ 5.3.3, the original's spelling included.

use std::fmt;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestCode(pub i32);

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResponseCode(pub i32);

/// Who can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// A name server.
    NameServer,
    /// A broker, or the container of several.
    Broker,
    /// A producer or consumer, over the connection that it opened.
    Client,
    /// The controller that elects masters.
    Controller,
}

/// `number NAME (who answers) "what it asks for";`
macro_rules! commands {
    ($($code:literal $name:ident ($($side:ident),*) $about:literal;)*) => {
        impl RequestCode {
            $(#[doc = concat!("`", $code, "`: ", $about, ".")]
            pub const $name: Self = Self($code);)*

            /// Every code of the table, by number.
            pub const ALL: &'static [Self] = &[$(Self($code)),*];

            /// The original's name of the code; nothing for numbers that are not in the table.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// Who answers the code; nobody for unknown and for reserved ones.
            #[must_use]
            pub fn sides(self) -> &'static [Side] {
                match self.0 {
                    $($code => &[$(Side::$side),*],)*
                    _ => &[],
                }
            }
        }
    };
}

/// `number NAME "when it is answered";`
macro_rules! outcomes {
    ($($code:literal $name:ident $about:literal;)*) => {
        impl ResponseCode {
            $(#[doc = concat!("`", $code, "`: ", $about, ".")]
            pub const $name: Self = Self($code);)*

            /// Every code of the table, by number.
            pub const ALL: &'static [Self] = &[$(Self($code)),*];

            /// The original's name of the code; nothing for numbers that are not in the table.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

commands! {
    10 SEND_MESSAGE (Broker) "stores one message, header fields spelled out";
    11 PULL_MESSAGE (Broker) "reads messages of a queue, waiting for some if there are none";
    12 QUERY_MESSAGE (Broker) "finds messages by key";
    13 QUERY_BROKER_OFFSET () "reserved";
    14 QUERY_CONSUMER_OFFSET (Broker) "a group's committed offset of a queue";
    15 UPDATE_CONSUMER_OFFSET (Broker) "commits a group's offset of a queue";
    17 UPDATE_AND_CREATE_TOPIC (Broker) "creates or changes a topic";
    18 UPDATE_AND_CREATE_TOPIC_LIST (Broker) "creates or changes several topics";
    21 GET_ALL_TOPIC_CONFIG (Broker) "the configuration of all topics";
    22 GET_TOPIC_CONFIG_LIST () "reserved";
    23 GET_TOPIC_NAME_LIST () "reserved";
    25 UPDATE_BROKER_CONFIG (Broker) "changes settings of a broker, as properties text";
    26 GET_BROKER_CONFIG (Broker) "the settings of a broker, as properties text";
    27 TRIGGER_DELETE_FILES () "reserved";
    28 GET_BROKER_RUNTIME_INFO (Broker) "what a broker says about its load and store";
    29 SEARCH_OFFSET_BY_TIMESTAMP (Broker) "the offset that belongs to a store time";
    30 GET_MAX_OFFSET (Broker) "the end of a queue";
    31 GET_MIN_OFFSET (Broker) "the start of a queue";
    32 GET_EARLIEST_MSG_STORETIME (Broker) "the store time of a queue's first message";
    33 VIEW_MESSAGE_BY_ID (Broker) "the message at a physical offset";
    34 HEART_BEAT (Broker) "registers a client's producers and consumers";
    35 UNREGISTER_CLIENT (Broker) "takes a producer or consumer off the register";
    36 CONSUMER_SEND_MSG_BACK (Broker) "asks for another delivery of a message later, or its burial";
    37 END_TRANSACTION (Broker) "commits or rolls back a half message";
    38 GET_CONSUMER_LIST_BY_GROUP (Broker) "the client ids of a consumer group";
    39 CHECK_TRANSACTION_STATE (Client) "asks a producer for the fate of a half message";
    40 NOTIFY_CONSUMER_IDS_CHANGED (Client) "tells a consumer that its group has changed";
    41 LOCK_BATCH_MQ (Broker) "locks queues for orderly consumption";
    42 UNLOCK_BATCH_MQ (Broker) "releases such locks";
    43 GET_ALL_CONSUMER_OFFSET (Broker) "all committed offsets, for slaves";
    45 GET_ALL_DELAY_OFFSET (Broker) "the offsets of the delay levels, for slaves";
    46 CHECK_CLIENT_CONFIG (Broker) "checks a filter expression before it is subscribed to";
    47 GET_CLIENT_CONFIG () "reserved";
    60 GET_TIMER_CHECK_POINT (Broker) "the timer's checkpoint, for slaves";
    61 GET_TIMER_METRICS (Broker) "the timer's counts by topic, for slaves";
    100 PUT_KV_CONFIG (NameServer) "stores a value under a namespace and key";
    101 GET_KV_CONFIG (NameServer) "reads such a value";
    102 DELETE_KV_CONFIG (NameServer) "deletes such a value";
    103 REGISTER_BROKER (NameServer) "a broker announces itself and its topics";
    104 UNREGISTER_BROKER (NameServer) "a broker takes its leave";
    105 GET_ROUTEINFO_BY_TOPIC (NameServer) "the brokers and queues of a topic";
    106 GET_BROKER_CLUSTER_INFO (NameServer) "clusters and their brokers";
    200 UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (Broker) "creates or changes a consumer group";
    201 GET_ALL_SUBSCRIPTIONGROUP_CONFIG (Broker) "the configuration of all consumer groups";
    202 GET_TOPIC_STATS_INFO (Broker) "ends and last store times of a topic's queues";
    203 GET_CONSUMER_CONNECTION_LIST (Broker) "the connections of a consumer group";
    204 GET_PRODUCER_CONNECTION_LIST (Broker) "the connections of a producer group";
    205 WIPE_WRITE_PERM_OF_BROKER (NameServer) "takes write permission from a broker's topics";
    206 GET_ALL_TOPIC_LIST_FROM_NAMESERVER (NameServer) "the names of all topics";
    207 DELETE_SUBSCRIPTIONGROUP (Broker) "deletes a consumer group";
    208 GET_CONSUME_STATS (Broker) "how far a group has come";
    209 SUSPEND_CONSUMER () "reserved";
    210 RESUME_CONSUMER () "reserved";
    211 RESET_CONSUMER_OFFSET_IN_CONSUMER () "reserved";
    212 RESET_CONSUMER_OFFSET_IN_BROKER () "reserved";
    213 ADJUST_CONSUMER_THREAD_POOL () "reserved";
    214 WHO_CONSUME_THE_MESSAGE () "reserved";
    215 DELETE_TOPIC_IN_BROKER (Broker) "deletes a topic on one broker";
    216 DELETE_TOPIC_IN_NAMESRV (NameServer) "deletes a topic's routes";
    217 REGISTER_TOPIC_IN_NAMESRV (NameServer) "registers a topic's routes by hand";
    219 GET_KVLIST_BY_NAMESPACE (NameServer) "all keys and values of a namespace";
    220 RESET_CONSUMER_CLIENT_OFFSET (Client) "tells a consumer to go on from other offsets";
    221 GET_CONSUMER_STATUS_FROM_CLIENT (Client) "asks a consumer for its offsets in memory";
    222 INVOKE_BROKER_TO_RESET_OFFSET (Broker) "moves a group's offsets to a time or place";
    223 INVOKE_BROKER_TO_GET_CONSUMER_STATUS (Broker) "the offsets in memory of a group's consumers";
    224 GET_TOPICS_BY_CLUSTER (NameServer) "the topics of a cluster";
    225 UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (Broker) "creates or changes several consumer groups";
    300 QUERY_TOPIC_CONSUME_BY_WHO (Broker) "the groups that consume a topic";
    301 REGISTER_FILTER_SERVER () "obsolete";
    302 REGISTER_MESSAGE_FILTER_CLASS () "obsolete";
    303 QUERY_CONSUME_TIME_SPAN (Broker) "the store times between which a group works, by queue";
    304 GET_SYSTEM_TOPIC_LIST_FROM_NS (NameServer) "the names of clusters and brokers, which are topics too";
    305 GET_SYSTEM_TOPIC_LIST_FROM_BROKER (Broker) "the names of a broker's own topics";
    306 CLEAN_EXPIRED_CONSUMEQUEUE (Broker) "deletes consume queues behind the commit log";
    307 GET_CONSUMER_RUNNING_INFO (Broker, Client) "what a consumer says about itself";
    308 QUERY_CORRECTION_OFFSET (Broker) "the least offsets among groups";
    309 CONSUME_MESSAGE_DIRECTLY (Broker, Client) "has one consumer handle one message now";
    310 SEND_MESSAGE_V2 (Broker) "stores one message, header fields as letters";
    311 GET_UNIT_TOPIC_LIST (NameServer) "topics with the unit flag";
    312 GET_HAS_UNIT_SUB_TOPIC_LIST (NameServer) "topics with unit subscribers";
    313 GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST (NameServer) "topics with unit subscribers but without the unit flag";
    314 CLONE_GROUP_OFFSET (Broker) "copies a group's offsets to another group";
    315 VIEW_BROKER_STATS_DATA (Broker) "one of a broker's counters over minute, hour and day";
    316 CLEAN_UNUSED_TOPIC (Broker) "deletes consume queues of topics that are gone";
    317 GET_BROKER_CONSUME_STATS (Broker) "how far all groups of a broker have come";
    318 UPDATE_NAMESRV_CONFIG (NameServer) "changes settings of a name server, as properties text";
    319 GET_NAMESRV_CONFIG (NameServer) "the settings of a name server, as properties text";
    320 SEND_BATCH_MESSAGE (Broker) "stores several messages on one queue, header fields as letters";
    321 QUERY_CONSUME_QUEUE (Broker) "entries of a consume queue";
    322 QUERY_DATA_VERSION (NameServer) "whether a broker's topics differ from those known";
    323 RESUME_CHECK_HALF_MESSAGE (Broker) "checks a buried half message again";
    324 SEND_REPLY_MESSAGE (Broker) "relays a reply to its requester, header fields spelled out";
    325 SEND_REPLY_MESSAGE_V2 (Broker) "relays a reply to its requester, header fields as letters";
    326 PUSH_REPLY_MESSAGE_TO_CLIENT (Client) "hands a reply to its requester";
    327 ADD_WRITE_PERM_OF_BROKER (NameServer) "gives a broker's topics read and write permission";
    328 GET_ALL_PRODUCER_INFO (Broker) "all producers of a broker";
    329 DELETE_EXPIRED_COMMITLOG (Broker) "deletes expired commit-log files now";
    343 QUERY_TOPICS_BY_CONSUMER (Broker) "the topics that a group consumes";
    345 QUERY_SUBSCRIPTION_BY_CONSUMER (Broker) "a group's subscription to a topic";
    351 GET_TOPIC_CONFIG (Broker) "the configuration of a topic";
    352 GET_SUBSCRIPTIONGROUP_CONFIG (Broker) "the configuration of a consumer group";
    353 UPDATE_AND_GET_GROUP_FORBIDDEN (Broker) "whether a group may read a topic";
    354 CHECK_ROCKSDB_CQ_WRITE_PROGRESS (Broker) "compares consume queues of two kinds of store";
    355 EXPORT_ROCKSDB_CONFIG_TO_JSON (Broker) "writes configuration tables as JSON files";
    361 LITE_PULL_MESSAGE (Broker) "as pulling, by consumers that assign queues to themselves";
    370 RECALL_MESSAGE (Broker) "takes back a timed message";
    400 QUERY_ASSIGNMENT (Broker) "has the broker assign queues to a consumer";
    401 SET_MESSAGE_REQUEST_MODE (Broker) "makes a group pull or pop a topic";
    402 GET_ALL_MESSAGE_REQUEST_MODE (Broker) "all such modes, for slaves";
    513 UPDATE_AND_CREATE_STATIC_TOPIC (Broker) "creates or changes a topic whose queues are spread over brokers";
    901 GET_BROKER_MEMBER_GROUP (NameServer) "master and slaves of a broker name";
    902 ADD_BROKER (Broker) "starts another broker in a container";
    903 REMOVE_BROKER (Broker) "stops a broker of a container";
    904 BROKER_HEARTBEAT (NameServer) "a broker says that it lives";
    905 NOTIFY_MIN_BROKER_ID_CHANGE (Broker) "tells brokers which of them acts as master";
    906 EXCHANGE_BROKER_HA_INFO (Broker) "master and slave compare addresses and offsets";
    907 GET_BROKER_HA_STATUS (Broker) "the state of a broker's replication";
    908 RESET_MASTER_FLUSH_OFFSET (Broker) "corrects a slave's idea of the master's log";
    1001 CONTROLLER_ALTER_SYNC_STATE_SET (Controller) "a master reports which slaves are in step";
    1002 CONTROLLER_ELECT_MASTER (Controller) "elects a master";
    1003 CONTROLLER_REGISTER_BROKER (Controller) "a broker announces itself";
    1004 CONTROLLER_GET_REPLICA_INFO (Controller) "master and slaves of a broker name";
    1005 CONTROLLER_GET_METADATA_INFO (Controller) "the controllers and their leader";
    1006 CONTROLLER_GET_SYNC_STATE_DATA (Controller) "which slaves are in step";
    1007 GET_BROKER_EPOCH_CACHE (Broker) "the epochs of a broker's log";
    1008 NOTIFY_BROKER_ROLE_CHANGED (Broker) "tells a broker its role";
    1009 UPDATE_CONTROLLER_CONFIG (Controller) "changes settings of a controller, as properties text";
    1010 GET_CONTROLLER_CONFIG (Controller) "the settings of a controller, as properties text";
    1011 CLEAN_BROKER_DATA (Controller) "forgets a broker";
    1012 CONTROLLER_GET_NEXT_BROKER_ID (Controller) "the next free broker id";
    1013 CONTROLLER_APPLY_BROKER_ID (Controller) "takes a broker id";
    2001 UPDATE_COLD_DATA_FLOW_CTR_CONFIG (Broker) "limits how fast groups may read old data";
    2002 REMOVE_COLD_DATA_FLOW_CTR_CONFIG (Broker) "lifts such a limit";
    2003 GET_COLD_DATA_FLOW_CTR_INFO (Broker) "such limits and their use";
    2004 SET_COMMITLOG_READ_MODE (Broker) "reading ahead in the commit log, or not";
    3001 AUTH_CREATE_USER (Broker) "creates a user";
    3002 AUTH_UPDATE_USER (Broker) "changes a user";
    3003 AUTH_DELETE_USER (Broker) "deletes a user";
    3004 AUTH_GET_USER (Broker) "one user";
    3005 AUTH_LIST_USER (Broker) "all users";
    3006 AUTH_CREATE_ACL (Broker) "creates a user's policies";
    3007 AUTH_UPDATE_ACL (Broker) "changes a user's policies";
    3008 AUTH_DELETE_ACL (Broker) "deletes a user's policies";
    3009 AUTH_GET_ACL (Broker) "a user's policies";
    3010 AUTH_LIST_ACL (Broker) "all policies";
    200_050 POP_MESSAGE (Broker) "takes messages of a topic for a limited time";
    200_051 ACK_MESSAGE (Broker) "acknowledges a popped message";
    200_052 PEEK_MESSAGE (Broker) "reads messages without taking them";
    200_053 CHANGE_MESSAGE_INVISIBLETIME (Broker) "keeps a popped message for longer or shorter";
    200_054 NOTIFICATION (Broker) "waits until there is something to pop";
    200_055 POLLING_INFO (Broker) "how many pops are waiting";
    200_056 POP_ROLLBACK (Broker) "moves pop state back to the file store";
    200_151 BATCH_ACK_MESSAGE (Broker) "acknowledges popped messages";
}

outcomes! {
    0 SUCCESS "done";
    1 SYSTEM_ERROR "failed, the remark says why";
    2 SYSTEM_BUSY "overloaded; sends are tried again";
    3 REQUEST_CODE_NOT_SUPPORTED "the request code is unknown here";
    4 TRANSACTION_FAILED "a transaction failed";
    10 FLUSH_DISK_TIMEOUT "stored, but not known to be on disk";
    11 SLAVE_NOT_AVAILABLE "stored, but there is no slave to replicate to; or a slave was asked for what only a master does";
    12 FLUSH_SLAVE_TIMEOUT "stored, but not known to be on a slave";
    13 MESSAGE_ILLEGAL "the message is too large or breaks a rule";
    14 SERVICE_NOT_AVAILABLE "the store is full or closed";
    15 VERSION_NOT_SUPPORTED "the requester is too old";
    16 NO_PERMISSION "refused by a topic's, group's or broker's permission, or by access control";
    17 TOPIC_NOT_EXIST "unknown topic, or no route to it";
    18 TOPIC_EXIST_ALREADY "reserved";
    19 PULL_NOT_FOUND "nothing to pull";
    20 PULL_RETRY_IMMEDIATELY "nothing matched so far; pull again at the next offset";
    21 PULL_OFFSET_MOVED "the offset lies outside the queue; go on at the next offset";
    22 QUERY_NOT_FOUND "nothing found";
    23 SUBSCRIPTION_PARSE_FAILED "the filter expression does not parse";
    24 SUBSCRIPTION_NOT_EXIST "the group does not subscribe to the topic";
    25 SUBSCRIPTION_NOT_LATEST "the broker knows an older subscription; it will come with a heartbeat";
    26 SUBSCRIPTION_GROUP_NOT_EXIST "unknown consumer group";
    27 FILTER_DATA_NOT_EXIST "the filter has not come yet";
    28 FILTER_DATA_NOT_LATEST "the broker knows an older filter";
    29 INVALID_PARAMETER "a value is out of range";
    200 TRANSACTION_SHOULD_COMMIT "legacy";
    201 TRANSACTION_SHOULD_ROLLBACK "legacy";
    202 TRANSACTION_STATE_UNKNOW "legacy";
    203 TRANSACTION_STATE_GROUP_WRONG "legacy";
    204 NO_BUYER_ID "legacy; sends are tried again";
    205 NOT_IN_CURRENT_UNIT "the topic belongs to another unit; sends are tried again";
    206 CONSUMER_NOT_ONLINE "no consumer of the group is connected";
    207 CONSUME_MSG_TIMEOUT "a client did not answer what was relayed to it";
    208 NO_MESSAGE "nothing to acknowledge";
    209 POLLING_FULL "too many pops are waiting";
    210 POLLING_TIMEOUT "nothing to pop";
    211 BROKER_NOT_EXIST "unknown broker";
    212 BROKER_DISPATCH_NOT_COMPLETE "the consume queues are behind the commit log";
    213 BROADCAST_CONSUMPTION "a broadcasting group has no progress here";
    215 FLOW_CONTROL "slow down";
    501 NOT_LEADER_FOR_QUEUE "another broker leads the queue of a static topic";
    604 ILLEGAL_OPERATION "a transaction was ended too late";
    1500 GO_AWAY "the server is about to stop: connect again and repeat";
    2000 CONTROLLER_FENCED_MASTER_EPOCH "the master's epoch is out of date";
    2001 CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH "the set's epoch is out of date";
    2002 CONTROLLER_INVALID_MASTER "not the master";
    2003 CONTROLLER_INVALID_REPLICAS "unknown replicas";
    2004 CONTROLLER_MASTER_NOT_AVAILABLE "no master";
    2005 CONTROLLER_INVALID_REQUEST "bad request";
    2006 CONTROLLER_BROKER_NOT_ALIVE "the broker is not alive";
    2007 CONTROLLER_NOT_LEADER "another controller leads";
    2008 CONTROLLER_BROKER_METADATA_NOT_EXIST "the broker's data is unknown";
    2009 CONTROLLER_INVALID_CLEAN_BROKER_METADATA "the broker's data can't be deleted";
    2010 CONTROLLER_BROKER_NEED_TO_BE_REGISTERED "the broker must register first";
    2011 CONTROLLER_MASTER_STILL_EXIST "there is a master already";
    2012 CONTROLLER_ELECT_MASTER_FAILED "no master could be elected";
    2013 CONTROLLER_ALTER_SYNC_STATE_SET_FAILED "the set could not be changed";
    2014 CONTROLLER_BROKER_ID_INVALID "the broker id is taken";
    2015 CONTROLLER_JRAFT_INTERNAL_ERROR "the controllers' own replication failed";
    2016 CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS "nothing is known of the broker's life";
    3001 USER_NOT_EXIST "unknown user";
    3002 POLICY_NOT_EXIST "unknown policy";
    10_001 CONNECT_BROKER_EXCEPTION "client side only: no connection to a broker";
    10_002 ACCESS_BROKER_TIMEOUT "client side only: a broker did not answer";
    10_003 BROKER_NOT_EXIST_EXCEPTION "client side only: no address for a broker name";
    10_004 NO_NAME_SERVER_EXCEPTION "client side only: no name server is configured";
    10_005 NOT_FOUND_TOPIC_EXCEPTION "client side only: no route to a topic";
}

impl RequestCode {
    /// Whether `side` answers the code.
    #[must_use]
    pub fn answered_by(self, side: Side) -> bool {
        self.sides().contains(&side)
    }
}

impl ResponseCode {
    /// Whether a producer tries another broker when a send is answered so (Apache's set of 5.3.3).
    #[must_use]
    pub fn send_may_be_retried(self) -> bool {
        matches!(self.0, 1 | 2 | 14 | 16 | 17 | 204 | 205 | 1500)
    }
}

impl fmt::Display for RequestCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, self.0, self.name())
    }
}

impl fmt::Display for ResponseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, self.0, self.name())
    }
}

/// `SEND_MESSAGE (10)`, or the bare number.
fn display(f: &mut fmt::Formatter<'_>, code: i32, name: Option<&str>) -> fmt::Result {
    match name {
        Some(name) => write!(f, "{name} ({code})"),
        None => write!(f, "{code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_free_of_duplicates() {
        assert!(RequestCode::ALL.is_sorted_by(|a, b| a < b));
        assert!(ResponseCode::ALL.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn codes_know_their_names_and_who_answers() {
        assert_eq!(RequestCode(310), RequestCode::SEND_MESSAGE_V2);
        assert_eq!(RequestCode(310).to_string(), "SEND_MESSAGE_V2 (310)");
        assert_eq!(RequestCode(9999).to_string(), "9999");
        assert!(RequestCode::GET_CONSUMER_RUNNING_INFO.answered_by(Side::Client));
        assert!(RequestCode::GET_CONSUMER_RUNNING_INFO.answered_by(Side::Broker));
        assert!(!RequestCode::QUERY_BROKER_OFFSET.answered_by(Side::Broker));
        assert_eq!(ResponseCode(0).name(), Some("SUCCESS"));
    }
}
