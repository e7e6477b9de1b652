//! The broker's configuration as a properties text: 26.
use bindery_protocol::{
    bodies,
    frame::{Frame, Reply},
    headers::BrokerConfigReply,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::state::Core;

/// 26: every key with its value; `listenPort` and the addresses are those in use.
pub(super) fn all(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let mut config = core.config.clone();
    config.listen.set_port(core.address.port());
    config.broker_ip1 = core.address.ip().to_string();
    config.broker_ip2 = core.ha_address.ip().to_string();
    config.ha_listen_port = core.ha_address.port();
    config.store_path_commit_log = config.commit_log_dir();
    let version = bodies::to_vec(&bodies::DataVersion {
        timestamp: core.stats.started,
        ..Default::default()
    })?;
    let header = BrokerConfigReply {
        version: String::from_utf8_lossy(&version).into_owned().into(),
    };
    Ok(Reply::ok().with(&header).body(config.render().into_bytes()))
}
