//! Which queues a consumer reads and how: 400 asks, 401 sets how, 402 lists what was set.
//!
//! ```text
//! 400 ─▶ mode of (topic, group) ─┬─ PULL ─▶ the strategy's share of the topic's queues on all brokers
//!                                └─ POP ─▶ every queue of every broker (id −1), or shares that overlap
//! ```
use std::sync::Arc;

use bindery_protocol::{
    allocate::AllocateStrategy,
    bodies::{
        self, AssignmentBody, MessageModel, MessageQueue, QueryAssignmentBody, QueueAssignment,
        RequestMode, RequestModeBody,
    },
    codes::RequestCode,
    frame::{Frame, Reply},
    names,
};
use bindery_remoting::Connection;

use super::{Answer, Exchange, answer};
use crate::{refusal::Refusal, routes, state::Core};

/// 400: the queues of a consumer. Routes may have to be asked for.
pub(super) fn query(core: &Arc<Core>, exchange: Exchange) {
    let core = core.clone();
    core.tasks.clone().spawn(async move {
        let assigned = assigned(&core, &exchange.frame).await;
        answer(exchange.responder, RequestCode::QUERY_ASSIGNMENT, assigned);
    });
}

async fn assigned(core: &Core, frame: &Frame) -> Answer {
    let body: QueryAssignmentBody = bodies::from_slice(&frame.body)?;
    let mode = mode(core, &body);
    let queues = routes::queues(core, &body.topic).await;
    let queues = queues.and_then(|queues| share(core, &body, &mode, queues));
    let message_queue_assignments = queues.map(|queues| {
        queues
            .into_iter()
            .map(|message_queue| QueueAssignment {
                message_queue,
                mode: mode.mode,
            })
            .collect()
    });
    let body = AssignmentBody {
        message_queue_assignments,
    };
    Ok(Reply::ok().body(bodies::to_vec(&body)?))
}

/// What was set, or the broker's default. A retry topic is pulled.
fn mode(core: &Core, body: &QueryAssignmentBody) -> RequestModeBody {
    if let Some(set) = core.pop.modes.mode(&body.topic, &body.consumer_group) {
        return set;
    }
    let mode = if names::is_retry_topic(&body.topic) {
        RequestMode::Pull
    } else {
        core.config.default_message_request_mode
    };
    RequestModeBody {
        consumer_group: body.consumer_group.clone(),
        mode,
        pop_share_queue_num: core.config.default_pop_share_queue_num,
        topic: body.topic.clone(),
    }
}

/// The caller's part of the topic's queues; none when the broker can't tell.
fn share(
    core: &Core,
    body: &QueryAssignmentBody,
    mode: &RequestModeBody,
    mut queues: Vec<MessageQueue>,
) -> Option<Vec<MessageQueue>> {
    if body.message_model == MessageModel::Broadcasting || !core.config.server_load_balancer_enable
    {
        return Some(queues);
    }
    let members = core.clients.with_consumers(&body.consumer_group, |group| {
        let mut ids: Vec<String> = group
            .members()
            .map(|member| member.client_id.clone())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    })?;
    let Some(strategy) = AllocateStrategy::from_name(&body.strategy_name) else {
        tracing::warn!(
            strategy = body.strategy_name,
            group = body.consumer_group,
            "consumer asks for a strategy that is not known here"
        );
        return None;
    };
    queues.sort_unstable();
    let shared = match mode.mode {
        RequestMode::Pull => strategy.allocate(&queues, &members, &body.client_id),
        RequestMode::Pop => {
            let others = usize::try_from(mode.pop_share_queue_num).unwrap_or(0);
            share_for_pop(strategy, &queues, &members, &body.client_id, others)
        }
    };
    Some(shared)
}

/// Popping members share: each reads its own part and those of the `others` that follow it, or everything.
fn share_for_pop(
    strategy: AllocateStrategy,
    queues: &[MessageQueue],
    members: &[String],
    me: &str,
    others: usize,
) -> Vec<MessageQueue> {
    if others == 0 || others + 1 >= members.len() {
        let whole = queues
            .iter()
            .map(|queue| MessageQueue::new(&queue.topic, &queue.broker_name, -1));
        let mut whole: Vec<MessageQueue> = whole.collect();
        whole.dedup();
        return whole;
    }
    let Some(index) = members.iter().position(|member| member == me) else {
        return Vec::new();
    };
    if members.len() > queues.len() {
        return queues
            .get(index % queues.len().max(1))
            .cloned()
            .into_iter()
            .collect();
    }
    let mut shared: Vec<MessageQueue> = (index..=index + others)
        .flat_map(|at| strategy.allocate(queues, members, &members[at % members.len()]))
        .collect();
    shared.sort_unstable();
    shared.dedup();
    shared
}

/// 401: how a group gets the messages of a topic.
pub(super) fn set(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let body: RequestModeBody = bodies::from_slice(&frame.body)?;
    if names::is_retry_topic(&body.topic) {
        return Err(Refusal::RetryTopicMode);
    }
    if core.topics.topic(&body.topic).is_none() {
        return Err(Refusal::ModeTopicUnknown { topic: body.topic });
    }
    if core.groups.group(&body.consumer_group)?.is_none() {
        return Err(Refusal::ModeGroupUnknown);
    }
    core.pop.modes.set(body)?;
    Ok(Reply::ok())
}

/// 402: all that was set.
pub(super) fn all(core: &Core, _: &Connection, _: &Frame) -> Answer {
    Ok(Reply::ok().body(bodies::to_vec(&core.pop.modes.all())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(queues: &[MessageQueue]) -> Vec<i32> {
        queues.iter().map(|queue| queue.queue_id).collect()
    }

    #[test]
    fn popping_members_share_with_those_that_follow_them() {
        let queues: Vec<MessageQueue> = (0..6).map(|id| MessageQueue::new("T", "b", id)).collect();
        let members: Vec<String> = (0..6).map(|id| format!("c{id}")).collect();
        let share = |members: &[String], me: &str, others| {
            ids(&share_for_pop(
                AllocateStrategy::Averagely,
                &queues,
                members,
                me,
                others,
            ))
        };
        assert_eq!(share(&members, "c1", 2), [1, 2, 3]);
        assert_eq!(share(&members, "c5", 2), [0, 1, 5]);
        assert_eq!(share(&members, "c1", 0), [-1]);
        assert_eq!(share(&members, "c1", 5), [-1]);
        assert!(share(&members, "stranger", 2).is_empty());
        let many: Vec<String> = (0..9).map(|id| format!("c{id}")).collect();
        assert_eq!(share(&many, "c7", 2), [1]);
    }
}
