//! Clients coming and going: 34, 35, 38, 46, and connections that end.
//!
//! ```text
//! heartbeat ─▶ group known or made ─▶ %RETRY%group made ─▶ members, subscriptions ─▶ changed? ─▶ 40 to every member
//! ```
use bindery_protocol::{
    bodies::{
        self, CheckClientBody, ConsumerData, ConsumerIds, HeartbeatData, PERM_READ, PERM_WRITE,
    },
    frame::{Frame, Reply},
    headers::{ConsumerGroupHeader, HeartbeatReply, UnregisterClientHeader},
    names,
};
use bindery_remoting::{Connection, ConnectionId};

use super::Answer;
use crate::{
    client::{Filter, Member, is_tag},
    limits,
    refusal::Refusal,
    state::Core,
};

/// 34: registers the producers and consumers of one client.
pub(super) fn heartbeat(core: &Core, connection: &Connection, frame: &Frame) -> Answer {
    let data: HeartbeatData = bodies::from_slice(&frame.body)?;
    check(&data)?;
    let member = Member {
        connection: connection.clone(),
        client_id: data.client_id,
        language: frame.head.language,
        version: frame.head.version,
        last_seen: core.now(),
    };
    let mut resend = data.heartbeat_fingerprint == 0;
    for consumer in &data.consumer_data_set {
        if join(core, consumer, &member, data.without_sub)? {
            let seen = core
                .clients
                .fingerprint(&consumer.group_name, data.heartbeat_fingerprint);
            resend |= seen != Some(data.heartbeat_fingerprint);
        }
    }
    for producer in &data.producer_data_set {
        core.clients.produce(&producer.group_name, member.clone());
        core.transactions.joined(core, &producer.group_name);
    }
    // A connection that ended while its heartbeat was being served would stay registered for ever.
    if connection.is_closed() {
        gone(core, connection.id());
    }
    Ok(Reply::ok().with(&HeartbeatReply {
        supports_v2: Some(true),
        subscriptions_changed: Some(resend),
    }))
}

/// Refuses a heartbeat as a whole, before anything of it is taken in.
fn check(data: &HeartbeatData) -> Result<(), Refusal> {
    if data.client_id.is_empty() {
        return Err(Refusal::BodyField { field: "clientID" });
    }
    for consumer in &data.consumer_data_set {
        limits::group(&consumer.group_name)?;
    }
    for producer in &data.producer_data_set {
        names::check_group(&producer.group_name).map_err(Refusal::GroupName)?;
    }
    Ok(())
}

/// Takes in one consumer group; false when the group is unknown and may not be made.
fn join(
    core: &Core,
    data: &ConsumerData,
    member: &Member,
    without_subscriptions: bool,
) -> Result<bool, Refusal> {
    let Some(group) = core.groups.group(&data.group_name)? else {
        tracing::warn!(
            group = data.group_name,
            client = member.client_id,
            "heartbeat of an unknown group"
        );
        return Ok(false);
    };
    let unit = if data.unit_mode { 2 } else { 0 };
    let retry = names::retry_topic(&data.group_name);
    if group.retry_queue_nums > 0 {
        core.topics
            .derived(&retry, group.retry_queue_nums, PERM_WRITE | PERM_READ, unit)?;
    }
    if core
        .clients
        .consume(data, member.clone(), without_subscriptions)
    {
        notify(core, &data.group_name);
    }
    Ok(true)
}

/// 35: a producer or consumer says good-bye.
pub(super) fn unregister(core: &Core, connection: &Connection, frame: &Frame) -> Answer {
    let header: UnregisterClientHeader<'_> = frame.header()?;
    if let Some(group) = header.producer_group.as_deref() {
        core.clients.leave_producers(group, connection.id());
    }
    if let Some(group) = header.consumer_group.as_deref()
        && core.clients.leave_consumers(group, connection.id())
    {
        notify(core, group);
    }
    Ok(Reply::ok())
}

/// 38: the client ids of a consumer group.
pub(super) fn consumer_list(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ConsumerGroupHeader<'_> = frame.header()?;
    let group: &str = &header.consumer_group;
    let ids = core
        .clients
        .with_consumers(group, |found| {
            found
                .members()
                .map(|member| member.client_id.clone())
                .collect::<Vec<_>>()
        })
        .filter(|ids| !ids.is_empty())
        .ok_or_else(|| Refusal::NoConsumer {
            group: group.to_owned(),
        })?;
    Ok(Reply::ok().body(bodies::to_vec(&ConsumerIds {
        consumer_id_list: ids,
    })?))
}

/// 46: checks a filter expression before it is subscribed to.
pub(super) fn check_config(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let body: CheckClientBody = bodies::from_slice(&frame.body)?;
    let subscription = body.subscription_data;
    if !is_tag(&subscription.expression_type) && !core.live().enable_property_filter {
        return Err(Refusal::FilterUnsupported {
            expression_type: subscription.expression_type,
        });
    }
    Filter::parse(&subscription.expression_type, &subscription.sub_string)?;
    Ok(Reply::ok())
}

/// A connection ended, or its client has been silent for too long.
pub(crate) fn gone(core: &Core, id: ConnectionId) {
    core.holds.forget(id);
    crate::pop::forget_connection(core, id);
    for group in core.clients.disconnected(id) {
        notify(core, &group);
    }
}

/// Tells the members of a group that it changed, unless that is switched off.
fn notify(core: &Core, group: &str) {
    let wanted = core.live().notify_consumer_ids_changed_enable
        && core
            .groups
            .known(group)
            .is_none_or(|group| group.notify_consumer_ids_changed_enable);
    if wanted {
        core.clients.notify(group);
    }
}

/// Closes connections whose clients have been silent for too long, until the broker stops. Sleeps only while somebody
/// is connected.
pub(crate) async fn expire(core: std::sync::Arc<Core>) {
    const SCAN: std::time::Duration = std::time::Duration::from_secs(10);
    loop {
        let idle = core.clients.is_empty();
        tokio::select! {
            biased;
            () = core.stop.cancelled() => return,
            () = core.clients.arrived(), if idle => {}
            () = core.clock.sleep(SCAN), if !idle => {}
        }
        let expiry = i64::try_from(core.live().channel_expired_timeout).unwrap_or(i64::MAX);
        for connection in core.clients.silent(expiry, core.now()) {
            tracing::info!(peer = %connection.peer(), "client silent for too long, connection closed");
            connection.close();
            gone(&core, connection.id());
        }
    }
}
