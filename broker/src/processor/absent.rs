//! Requests for parts that this broker does not have. Each is answered with code 3 and says what is missing, so that an
//! operator does not look for the mistake elsewhere.
use bindery_protocol::{
    bodies,
    codes::RequestCode,
    frame::{Frame, Reply},
};
use bindery_remoting::Connection;
use serde::Serialize;

use super::Answer;
use crate::{refusal::Refusal, state::Core};

/// What is missing for a code.
fn what(code: RequestCode) -> &'static str {
    match code {
        RequestCode::CHECK_ROCKSDB_CQ_WRITE_PROGRESS
        | RequestCode::EXPORT_ROCKSDB_CONFIG_TO_JSON
        | RequestCode::POP_ROLLBACK => "this broker keeps nothing in RocksDB",
        RequestCode::UPDATE_AND_CREATE_STATIC_TOPIC => "this broker has no static topics",
        RequestCode::ADD_BROKER | RequestCode::REMOVE_BROKER => {
            "this broker is no container of brokers"
        }
        RequestCode::NOTIFY_MIN_BROKER_ID_CHANGE => "no slave of this broker acts as master",
        RequestCode::NOTIFY_BROKER_ROLE_CHANGED => "this broker has no controller",
        RequestCode::UPDATE_COLD_DATA_FLOW_CTR_CONFIG
        | RequestCode::REMOVE_COLD_DATA_FLOW_CTR_CONFIG => {
            "this broker does not limit how fast old data are read"
        }
        RequestCode::SET_COMMITLOG_READ_MODE => {
            "the kernel decides how far this broker reads ahead"
        }
        RequestCode::AUTH_CREATE_USER
        | RequestCode::AUTH_UPDATE_USER
        | RequestCode::AUTH_DELETE_USER
        | RequestCode::AUTH_GET_USER
        | RequestCode::AUTH_LIST_USER
        | RequestCode::AUTH_CREATE_ACL
        | RequestCode::AUTH_UPDATE_ACL
        | RequestCode::AUTH_DELETE_ACL
        | RequestCode::AUTH_GET_ACL
        | RequestCode::AUTH_LIST_ACL => "this broker has no access control yet",
        _ => "this broker has no such part",
    }
}

/// Refuses.
pub(super) fn refuse(_: &Core, _: &Connection, frame: &Frame) -> Answer {
    let code = frame.request_code();
    Err(Refusal::Absent {
        code,
        what: what(code),
    })
}

/// 2003: nobody is limited, and Apache's defaults say from where on somebody would be.
pub(super) fn cold_reads(_: &Core, _: &Connection, _: &Frame) -> Answer {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct ColdReads {
        runtime_table: Empty,
        config_table: Empty,
        cg_cold_read_threshold: i64,
        global_cold_read_threshold: i64,
        global_acc: i64,
    }
    #[derive(Serialize)]
    struct Empty {}
    let nobody = ColdReads {
        runtime_table: Empty {},
        config_table: Empty {},
        cg_cold_read_threshold: 3 << 20,
        global_cold_read_threshold: 100 << 20,
        global_acc: 0,
    };
    Ok(Reply::ok().body(bodies::to_vec(&nobody)?))
}
