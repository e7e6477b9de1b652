//! The broker's configuration as a properties text: 25, 26.
use bindery_protocol::{
    bodies,
    frame::{Frame, Reply},
    headers::BrokerConfigReply,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{open, properties::Properties, refusal::Refusal, state::Core};

/// 25: changes keys; all of the request, or nothing.
pub(super) fn change(core: &Core, connection: &Connection, frame: &Frame) -> Answer {
    let text = std::str::from_utf8(&frame.body).map_err(Refusal::Encoding)?;
    let properties = Properties::parse(text).map_err(Refusal::Properties)?;
    let effects = core.changes.change(&properties, core.now())?;
    for key in &effects.now {
        apply(core, key)?;
    }
    tracing::info!(
        peer = %connection.peer(),
        now = ?effects.now,
        from_next_start = ?effects.later,
        kept = effects.kept,
        "configuration changed by request"
    );
    if effects.later.is_empty() {
        return Ok(Reply::ok());
    }
    // A success all the same: the value is stored and given back.
    let mut remark = format!(
        "in force from the next start on: {}",
        effects.later.join(", ")
    );
    if !effects.kept {
        remark.push_str("; but this broker has no configuration file in which to keep it");
    }
    Ok(Reply {
        remark: Some(remark.into()),
        ..Reply::ok()
    })
}

/// Tells those who keep a copy of a key.
fn apply(core: &Core, key: &str) -> Result<(), Refusal> {
    let live = core.live();
    match key {
        "autoCreateTopicEnable" => core
            .topics
            .auto_create(live.auto_create_topic_enable, live.default_topic_queue_nums)?,
        "autoCreateSubscriptionGroup" => {
            core.groups.auto_create(live.auto_create_subscription_group);
        }
        "brokerPermission" => core.topics.announce_all(),
        "cleanFileForciblyEnable"
        | "deleteCommitLogFilesInterval"
        | "deleteFileBatchMax"
        | "deleteWhen"
        | "diskMaxUsedSpaceRatio"
        | "diskSpaceCleanForciblyRatio"
        | "diskSpaceWarningLevelRatio"
        | "fileReservedTime"
        | "redeleteHangedFileInterval" => core.store.set_expiry(open::expiry(&live)),
        _ => {}
    }
    Ok(())
}

/// 26: every key with its value; `listenPort` and the addresses are those in use.
pub(super) fn all(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let mut config = core.live().as_ref().clone();
    config.listen.set_port(core.address.port());
    config.broker_ip1 = core.address.ip().to_string();
    config.broker_ip2 = core.ha_address.ip().to_string();
    config.ha_listen_port = core.ha_address.port();
    config.store_path_commit_log = config.commit_log_dir();
    let version = bodies::to_vec(&core.changes.version())?;
    let header = BrokerConfigReply {
        version: String::from_utf8_lossy(&version).into_owned().into(),
    };
    Ok(Reply::ok().with(&header).body(config.render().into_bytes()))
}
