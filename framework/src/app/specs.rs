//! From configured bindings to what a binder is asked for.
//!
//! ```text
//! bindings.<name>, rocketmq.bindings.<name> ─▶ ConsumerSpec · ProducerSpec        bindery.topics ─▶ Destination
//! ```

use std::collections::BTreeMap;

use crate::binder::{
    Access, Audience, ConsumerSpec, Destination, Order, ProducerSpec, Redelivery, Resume,
    Selection, StartAt, TransactionSpec,
};
use crate::config::{
    AutoCreate, BindingConfig, Config, ConsumeFrom, MessageModel, ProducerType, RocketmqConsumer,
    Subscription,
};
use crate::transaction::ListenerHandle;

/// What the input `binding` asks of its binder. `None` without a group, which the configuration's check has reported.
pub(super) fn consumer_spec(config: &Config, binding: &BindingConfig) -> Option<ConsumerSpec> {
    let settings = &config.rocketmq.binding(&binding.name).consumer;
    Some(ConsumerSpec {
        binding: binding.name.clone(),
        destinations: binding.destinations().map(str::to_owned).collect(),
        group: binding.group.clone()?,
        concurrency: binding.consumer.concurrency,
        order: if settings.orderly {
            Order::PerQueue
        } else {
            Order::Concurrent
        },
        audience: match settings.message_model {
            MessageModel::Clustering => Audience::Shared,
            MessageModel::Broadcasting => Audience::Everyone,
        },
        selection: match &settings.subscription {
            Subscription::All => Selection::All,
            Subscription::Tags(tags) => Selection::Tags(tags.clone()),
            Subscription::Sql(condition) => Selection::Sql(condition.clone()),
        },
        start: match settings.consume_from {
            ConsumeFrom::LastOffset => StartAt::Last,
            ConsumeFrom::FirstOffset => StartAt::First,
            ConsumeFrom::Timestamp(millis) => {
                StartAt::Timestamp(i64::try_from(millis).unwrap_or(i64::MAX))
            }
        },
        resume: if config.bindery.reset_offsets_on_start {
            Resume::Start
        } else {
            Resume::Positions
        },
        redelivery: redelivery(settings),
        grace: config.bindery.shutdown_grace,
    })
}

fn redelivery(settings: &RocketmqConsumer) -> Redelivery {
    Redelivery {
        // -1 is the only negative value the configuration lets through: the broker's own rule.
        limit: u32::try_from(settings.max_reconsume_times).ok(),
        delay_level: settings.delay_level_when_next_consume,
        suspend: settings.suspend_current_queue_time,
    }
}

/// What the output `binding` asks of its binder; `listener` makes it transactional.
pub(super) fn producer_spec(
    config: &Config,
    binding: &BindingConfig,
    listener: Option<ListenerHandle>,
) -> ProducerSpec {
    let settings = &config.rocketmq.binding(&binding.name).producer;
    ProducerSpec {
        binding: binding.name.clone(),
        destination: binding.destination.clone(),
        ordered: settings.producer_type == ProducerType::Orderly,
        transaction: listener.map(|listener| TransactionSpec {
            listener,
            grace: config.bindery.shutdown_grace,
        }),
    }
}

/// The destinations to create if they are absent: those of the given bindings, and those under `bindery.topics`, which
/// also say how many queues they get. Nothing when `bindery.topics.auto-create` is `never`.
pub(super) fn destinations<'a>(
    config: &Config,
    used: impl Iterator<Item = &'a BindingConfig>,
) -> Vec<Destination> {
    if config.bindery.auto_create == AutoCreate::Never {
        return Vec::new();
    }
    let mut all: BTreeMap<&str, Destination> = BTreeMap::new();
    for name in used.flat_map(BindingConfig::destinations) {
        let plain = Destination {
            name: name.to_owned(),
            queues: None,
            access: Access::Both,
            ordered: false,
        };
        all.entry(name).or_insert(plain);
    }
    for (name, topic) in &config.bindery.topics {
        let access = match topic.perm {
            2 => Access::Write,
            4 => Access::Read,
            _ => Access::Both,
        };
        let configured = Destination {
            name: name.clone(),
            queues: Some(topic.queues),
            access,
            ordered: topic.order,
        };
        all.insert(name, configured);
    }
    all.into_values().collect()
}
