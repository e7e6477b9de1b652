//! Transactions: the verdict on a half message, and the question for it.

use std::borrow::Cow;

header! {
    /// 37: commit or roll back a half message.
    pub struct EndTransactionHeader<'a> {
        /// Topic of the message.
        pub topic: Option<Cow<'a, str>>,
        /// Producer group.
        pub producer_group: Cow<'a, str>,
        /// Offset of the half message in its queue.
        pub tran_state_table_offset: i64,
        /// Its physical offset.
        pub commit_log_offset: i64,
        /// 0 unknown, 8 commit, 12 roll back: the transaction bits of a message's system flag.
        pub commit_or_rollback: i32,
        /// Whether this answers a check (39).
        pub from_transaction_check: bool = false,
        /// Unique key of the message.
        pub msg_id: Cow<'a, str>,
        /// The same for messages sent by a transaction producer.
        pub transaction_id: Option<Cow<'a, str>>,
    }
}

header! {
    /// 39: what has become of a half message, which is the body.
    pub struct CheckTransactionHeader<'a> {
        /// Topic of the message.
        pub topic: Option<Cow<'a, str>>,
        /// Offset of the half message in its queue.
        pub tran_state_table_offset: i64,
        /// Its physical offset.
        pub commit_log_offset: i64,
        /// Unique key of the message.
        pub msg_id: Option<Cow<'a, str>>,
        /// The same for messages sent by a transaction producer.
        pub transaction_id: Option<Cow<'a, str>>,
        /// Store address and physical offset in hex.
        pub offset_msg_id: Option<Cow<'a, str>>,
    }
}

header! {
    /// 323: check a half message again that was given up.
    pub struct ResumeCheckHeader<'a> {
        /// Topic of the message.
        pub topic: Option<Cow<'a, str>>,
        /// Store address and physical offset of the half message in hex.
        pub msg_id: Option<Cow<'a, str>>,
    }
}
