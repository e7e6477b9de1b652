//! How far timer messages are, for slaves (60, 61) and operators (28).
use bindery_protocol::{
    frame::{Frame, Reply},
    names,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{refusal::Refusal, state::Core, timer::Progress};

/// 60: the seven numbers of `timercheck`, 56 bytes.
pub(super) fn check_point(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let timer = core.timer.as_ref().ok_or(Refusal::TimerCheckPoint)?;
    Ok(Reply::ok().body(timer.marks(core.now()).encode().to_vec()))
}

/// 61: messages that wait, by topic.
pub(super) fn metrics(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let timer = core.timer.as_ref().ok_or(Refusal::TimerMetrics)?;
    Ok(Reply::ok().body(timer.metrics_json()))
}

/// How far it is; nothing without a timer.
pub(super) fn progress(core: &Core) -> Option<Progress> {
    let end = core.store.max_offset(names::TIMER_TOPIC, 0).0;
    let timer = core.timer.as_ref()?;
    Some(timer.progress(core.now(), end))
}
