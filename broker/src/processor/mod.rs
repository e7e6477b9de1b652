//! What each request code does: one request family a file, all of the same shape.
//!
//! ```text
//! frame ─▶ dispatch ─▶ routes! table ─┬─ quick:  answered on the connection's task, from memory
//!                                     ├─ worker: may wait for the disk, on a blocking thread, bounded
//!                                     └─ owned:  keeps the right to answer (send, pull, relay)
//! Result<Reply, Refusal> ─▶ Responder
//! ```
mod absent;
mod ack;
mod assignment;
mod batch;
mod clean;
pub(crate) mod client;
mod config;
mod copy;
pub(crate) mod deposit;
mod end_transaction;
mod group;
mod lock;
pub(crate) mod notification;
mod offset;
mod peek;
pub(crate) mod pop;
mod progress;
mod properties;
pub(crate) mod pull;
mod query;
mod queue;
mod recall;
mod relay;
mod replication;
mod reply;
mod reset;
mod runtime;
mod send;
mod send_back;
mod stats;
mod status;
mod timer;
mod topic;

use std::sync::Arc;

use bindery_protocol::{
    codes::RequestCode,
    frame::{Frame, Reply},
};
use bindery_remoting::{Connection, Responder};

use crate::{refusal::Refusal, state::Core};

/// A request and the right to answer it.
pub(crate) struct Exchange {
    pub(crate) connection: Connection,
    pub(crate) frame: Frame,
    pub(crate) responder: Responder,
}

/// Remark of answers that Apache's broker forgets to give one: it is the text its frames are made with.
const NO_REMARK: &str = "not set any response code";

type Answer = Result<Reply, Refusal>;

/// How a request is served.
#[derive(Clone, Copy)]
enum Handler {
    /// From memory, on the connection's own task.
    Quick(fn(&Core, &Connection, &Frame) -> Answer),
    /// It may wait for the disk.
    Worker(fn(&Core, &Connection, &Frame) -> Answer),
    /// It answers by itself, perhaps later.
    Owned(fn(&Arc<Core>, Exchange)),
}

/// Who may ask.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Every client.
    Anyone,
    /// Operators: what changes the broker or tells its configuration.
    Operator,
}

macro_rules! routes {
    ($($code:ident => $access:ident $kind:ident $handler:path;)*) => {
        /// Who may ask for a code, and what serves it.
        fn route(code: RequestCode) -> Option<(Access, Handler)> {
            match code {
                $(RequestCode::$code => Some((Access::$access, Handler::$kind($handler))),)*
                _ => None,
            }
        }
    };
}

routes! {
    SEND_MESSAGE => Anyone Owned send::send;
    SEND_MESSAGE_V2 => Anyone Owned send::send;
    SEND_BATCH_MESSAGE => Anyone Owned send::send;
    SEND_REPLY_MESSAGE => Anyone Owned reply::reply;
    SEND_REPLY_MESSAGE_V2 => Anyone Owned reply::reply;
    PULL_MESSAGE => Anyone Owned pull::pull;
    LITE_PULL_MESSAGE => Anyone Owned pull::pull;
    HEART_BEAT => Anyone Quick client::heartbeat;
    UNREGISTER_CLIENT => Anyone Quick client::unregister;
    CHECK_CLIENT_CONFIG => Anyone Quick client::check_config;
    GET_CONSUMER_LIST_BY_GROUP => Anyone Quick client::consumer_list;
    QUERY_CONSUMER_OFFSET => Anyone Quick offset::query;
    UPDATE_CONSUMER_OFFSET => Anyone Quick offset::update;
    GET_MAX_OFFSET => Anyone Quick offset::max;
    GET_MIN_OFFSET => Anyone Quick offset::min;
    SEARCH_OFFSET_BY_TIMESTAMP => Anyone Worker offset::search;
    GET_EARLIEST_MSG_STORETIME => Anyone Worker offset::earliest;
    LOCK_BATCH_MQ => Anyone Quick lock::lock;
    UNLOCK_BATCH_MQ => Anyone Quick lock::unlock;
    CONSUMER_SEND_MSG_BACK => Anyone Owned send_back::send_back;
    END_TRANSACTION => Anyone Owned end_transaction::end;
    RECALL_MESSAGE => Anyone Owned recall::recall;
    GET_TIMER_CHECK_POINT => Anyone Quick timer::check_point;
    GET_TIMER_METRICS => Anyone Quick timer::metrics;
    QUERY_MESSAGE => Anyone Worker query::by_key;
    VIEW_MESSAGE_BY_ID => Anyone Worker query::by_offset;
    UPDATE_AND_CREATE_TOPIC => Operator Quick topic::create;
    DELETE_TOPIC_IN_BROKER => Operator Worker topic::delete;
    GET_TOPIC_CONFIG => Anyone Quick topic::config;
    GET_ALL_TOPIC_CONFIG => Anyone Worker topic::all;
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER => Anyone Quick topic::system;
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP => Operator Quick group::create;
    DELETE_SUBSCRIPTIONGROUP => Operator Worker group::delete;
    GET_SUBSCRIPTIONGROUP_CONFIG => Anyone Quick group::config;
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG => Anyone Worker group::all;
    GET_TOPIC_STATS_INFO => Anyone Worker stats::topic;
    GET_CONSUME_STATS => Anyone Worker progress::consumption;
    GET_CONSUMER_CONNECTION_LIST => Anyone Quick stats::consumer_connections;
    GET_PRODUCER_CONNECTION_LIST => Anyone Quick stats::producer_connections;
    GET_ALL_PRODUCER_INFO => Anyone Quick stats::all_producers;
    QUERY_TOPIC_CONSUME_BY_WHO => Anyone Quick stats::groups_of_topic;
    QUERY_TOPICS_BY_CONSUMER => Anyone Quick stats::topics_of_group;
    GET_ALL_CONSUMER_OFFSET => Anyone Worker offset::all;
    UPDATE_BROKER_CONFIG => Operator Worker config::change;
    GET_BROKER_CONFIG => Operator Quick config::all;
    GET_BROKER_RUNTIME_INFO => Anyone Worker runtime::info;
    INVOKE_BROKER_TO_RESET_OFFSET => Operator Worker reset::reset;
    UPDATE_AND_CREATE_TOPIC_LIST => Operator Quick topic::create_all;
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST => Operator Quick group::create_all;
    UPDATE_AND_GET_GROUP_FORBIDDEN => Operator Worker group::forbidden;
    GET_BROKER_CONSUME_STATS => Anyone Worker progress::all_consumption;
    QUERY_CONSUME_TIME_SPAN => Anyone Worker progress::time_span;
    QUERY_CORRECTION_OFFSET => Anyone Quick progress::correction;
    QUERY_SUBSCRIPTION_BY_CONSUMER => Anyone Quick stats::subscription;
    QUERY_CONSUME_QUEUE => Anyone Worker queue::entries;
    VIEW_BROKER_STATS_DATA => Anyone Quick stats::figure;
    CLONE_GROUP_OFFSET => Operator Quick copy::offsets;
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS => Anyone Owned status::consumer_status;
    RESUME_CHECK_HALF_MESSAGE => Operator Worker end_transaction::check_again;
    CLEAN_EXPIRED_CONSUMEQUEUE => Operator Worker clean::drained_queues;
    DELETE_EXPIRED_COMMITLOG => Operator Quick clean::expired_log;
    CLEAN_UNUSED_TOPIC => Operator Worker clean::unused_topics;
    GET_ALL_DELAY_OFFSET => Anyone Quick offset::delays;
    EXCHANGE_BROKER_HA_INFO => Anyone Quick replication::exchange;
    GET_BROKER_HA_STATUS => Anyone Quick replication::status;
    RESET_MASTER_FLUSH_OFFSET => Operator Quick replication::flush_offset;
    GET_BROKER_EPOCH_CACHE => Anyone Quick replication::epochs;
    GET_COLD_DATA_FLOW_CTR_INFO => Anyone Quick absent::cold_reads;
    UPDATE_COLD_DATA_FLOW_CTR_CONFIG => Operator Quick absent::refuse;
    REMOVE_COLD_DATA_FLOW_CTR_CONFIG => Operator Quick absent::refuse;
    SET_COMMITLOG_READ_MODE => Operator Quick absent::refuse;
    CHECK_ROCKSDB_CQ_WRITE_PROGRESS => Anyone Quick absent::refuse;
    EXPORT_ROCKSDB_CONFIG_TO_JSON => Operator Quick absent::refuse;
    UPDATE_AND_CREATE_STATIC_TOPIC => Operator Quick absent::refuse;
    ADD_BROKER => Operator Quick absent::refuse;
    REMOVE_BROKER => Operator Quick absent::refuse;
    NOTIFY_MIN_BROKER_ID_CHANGE => Anyone Quick absent::refuse;
    NOTIFY_BROKER_ROLE_CHANGED => Anyone Quick absent::refuse;
    AUTH_CREATE_USER => Operator Quick absent::refuse;
    AUTH_UPDATE_USER => Operator Quick absent::refuse;
    AUTH_DELETE_USER => Operator Quick absent::refuse;
    AUTH_GET_USER => Operator Quick absent::refuse;
    AUTH_LIST_USER => Operator Quick absent::refuse;
    AUTH_CREATE_ACL => Operator Quick absent::refuse;
    AUTH_UPDATE_ACL => Operator Quick absent::refuse;
    AUTH_DELETE_ACL => Operator Quick absent::refuse;
    AUTH_GET_ACL => Operator Quick absent::refuse;
    AUTH_LIST_ACL => Operator Quick absent::refuse;
    GET_CONSUMER_RUNNING_INFO => Anyone Owned relay::running_info;
    POP_MESSAGE => Anyone Owned pop::pop;
    ACK_MESSAGE => Anyone Owned ack::ack;
    BATCH_ACK_MESSAGE => Anyone Owned ack::batch_ack;
    CHANGE_MESSAGE_INVISIBLETIME => Anyone Owned ack::change;
    NOTIFICATION => Anyone Owned notification::notify;
    POLLING_INFO => Anyone Quick notification::polling;
    PEEK_MESSAGE => Anyone Quick peek::peek;
    QUERY_ASSIGNMENT => Anyone Owned assignment::query;
    SET_MESSAGE_REQUEST_MODE => Operator Worker assignment::set;
    GET_ALL_MESSAGE_REQUEST_MODE => Anyone Quick assignment::all;
    CONSUME_MESSAGE_DIRECTLY => Operator Owned relay::consume_directly;
}

/// Serves one request.
pub(crate) fn dispatch(core: &Arc<Core>, exchange: Exchange) {
    let asked = exchange.frame.request_code();
    let served = match route(asked) {
        None => Err(Refusal::NotSupported { code: asked }),
        Some((Access::Operator, _)) if !may_administer(core, &exchange.connection) => {
            Err(Refusal::AdminFromAfar {
                peer: exchange.connection.origin(),
            })
        }
        Some((_, Handler::Quick(handler))) => handler(core, &exchange.connection, &exchange.frame),
        Some((_, Handler::Worker(handler))) => return on_worker(core, handler, exchange),
        Some((_, Handler::Owned(handler))) => return handler(core, exchange),
    };
    answer(exchange.responder, asked, served);
}

/// Runs a request on a blocking thread, unless too many are.
fn on_worker(
    core: &Arc<Core>,
    handler: fn(&Core, &Connection, &Frame) -> Answer,
    exchange: Exchange,
) {
    let Exchange {
        connection,
        frame,
        responder,
    } = exchange;
    let asked = frame.request_code();
    match core.workers.clone().try_acquire_owned() {
        Err(_) => answer(responder, asked, Err(Refusal::Overload)),
        Ok(slot) => {
            let core = core.clone();
            core.tasks.clone().spawn_blocking(move || {
                answer(responder, asked, handler(&core, &connection, &frame));
                drop(slot);
            });
        }
    }
}

/// Sends an answer or a refusal.
pub(crate) fn answer(responder: Responder, code: RequestCode, served: Answer) {
    match served {
        Ok(reply) => responder.send(reply),
        Err(refusal) => {
            tracing::debug!(code = code.0, peer = %responder.connection().peer(), %refusal, "request refused");
            responder.send(refusal.reply());
        }
    }
}

/// Whether the peer is this host, or administration was opened to others.
fn may_administer(core: &Core, connection: &Connection) -> bool {
    core.config.admin_from_other_hosts || connection.is_from_this_host()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_broker_is_for_operators() {
        for code in [
            RequestCode::UPDATE_AND_CREATE_TOPIC,
            RequestCode::DELETE_TOPIC_IN_BROKER,
            RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            RequestCode::DELETE_SUBSCRIPTIONGROUP,
            RequestCode::INVOKE_BROKER_TO_RESET_OFFSET,
            RequestCode::GET_BROKER_CONFIG,
        ] {
            assert!(
                matches!(route(code), Some((Access::Operator, _))),
                "{code:?}"
            );
        }
    }
}
