//! What topics and consumer groups may be: bounds that requests and the files of the tables have in common.
//!
//! ```text
//! 17, 200, heartbeat, pull, 36 ─▶ group, queues ─────────────────▶ refused (29), nothing made
//! topics.json, subscriptionGroup.json ─▶ loaded_topic, loaded_group ─▶ left out or lowered, with a warning
//! ```
use bindery_protocol::{
    bodies::{SubscriptionGroupConfig, TopicConfig},
    names,
};

use crate::refusal::Refusal;

/// Most queues a topic may have: each costs files once it is written, and memory whenever it is looked at.
pub(crate) const MOST_QUEUES: i32 = 65_536;
/// Longest topic a record can name, in bytes.
const LONGEST_TOPIC: usize = 255;
/// Longest consumer group, in bytes: its retry topic has to be one.
pub(crate) const LONGEST_GROUP: usize = LONGEST_TOPIC - names::RETRY_PREFIX.len();

/// Checks the name of a consumer group, and that the topics named after it are possible.
///
/// # Errors
/// [`Refusal::GroupName`], [`Refusal::GroupTooLong`].
pub(crate) fn group(name: &str) -> Result<(), Refusal> {
    names::check_group(name).map_err(Refusal::GroupName)?;
    if name.len() > LONGEST_GROUP {
        return Err(Refusal::GroupTooLong {
            length: name.len(),
            most: LONGEST_GROUP,
        });
    }
    Ok(())
}

/// Checks a number of queues, called `what` in the remark.
///
/// # Errors
/// [`Refusal::QueueCount`].
pub(crate) fn queues(what: &'static str, count: i32, least: i32) -> Result<(), Refusal> {
    if (least..=MOST_QUEUES).contains(&count) {
        return Ok(());
    }
    Err(Refusal::QueueCount {
        what,
        count,
        least,
        most: MOST_QUEUES,
    })
}

/// A topic of the file as it may be used; none when no store can hold it.
pub(crate) fn loaded_topic(mut topic: TopicConfig) -> Option<TopicConfig> {
    if !is_storable(&topic.topic_name) {
        tracing::warn!(
            topic = topic.topic_name,
            "topic of an impossible name left out"
        );
        return None;
    }
    for queues in [&mut topic.read_queue_nums, &mut topic.write_queue_nums] {
        lower(queues, &topic.topic_name);
    }
    Some(topic)
}

/// A consumer group of the file as it may be used; none when its retry topic is impossible.
pub(crate) fn loaded_group(mut config: SubscriptionGroupConfig) -> Option<SubscriptionGroupConfig> {
    if let Err(refusal) = group(&config.group_name) {
        tracing::warn!(group = config.group_name, %refusal, "consumer group left out");
        return None;
    }
    lower(&mut config.retry_queue_nums, &config.group_name);
    Some(config)
}

/// Whether the store can keep queues of the topic. Apache's brokers have topics of their own that no client could make,
/// so characters are not looked at beyond that.
fn is_storable(topic: &str) -> bool {
    !topic.is_empty()
        && topic.len() <= LONGEST_TOPIC
        && !matches!(topic, "." | "..")
        && !topic.contains(['/', '\0'])
}

fn lower(queues: &mut i32, name: &str) {
    let possible = (*queues).clamp(0, MOST_QUEUES);
    if possible != *queues {
        tracing::warn!(name, queues, possible, "number of queues is not possible");
        *queues = possible;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_fits_when_its_retry_topic_does() {
        assert!(group(&"g".repeat(248)).is_ok());
        assert_eq!(names::retry_topic(&"g".repeat(248)).len(), LONGEST_TOPIC);
        for (name, remark) in [
            (
                "g".repeat(249),
                "The group name has 249 characters, at most 248 are possible",
            ),
            ("no good".to_owned(), "The group name is not valid"),
            (String::new(), "The group name is not valid"),
        ] {
            let refused = group(&name).err().map(|refusal| refusal.to_string());
            assert!(
                refused
                    .as_ref()
                    .is_some_and(|text| text.starts_with(remark)),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn what_a_file_says_is_left_out_or_lowered() {
        let topic = |name: &str, queues| loaded_topic(TopicConfig::new(name, queues, 6));
        assert_eq!(
            topic("%RETRY%g+T", i32::MAX)
                .map(|topic| (topic.read_queue_nums, topic.write_queue_nums)),
            Some((MOST_QUEUES, MOST_QUEUES))
        );
        assert_eq!(topic("T", -1).map(|topic| topic.write_queue_nums), Some(0));
        for bad in [String::new(), "..".into(), "a/b".into(), "t".repeat(256)] {
            assert!(topic(&bad, 1).is_none(), "{bad}");
        }
        let group = |name: &str| {
            loaded_group(SubscriptionGroupConfig {
                retry_queue_nums: i32::MAX,
                ..SubscriptionGroupConfig::new(name)
            })
        };
        assert_eq!(
            group("g").map(|group| group.retry_queue_nums),
            Some(MOST_QUEUES)
        );
        assert!(group(&"g".repeat(249)).is_none());
    }
}
