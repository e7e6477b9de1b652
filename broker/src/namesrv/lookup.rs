//! Answers derived from the routes. A topic's route is encoded once and kept until it changes: with 10,000 topics and
//! clients that ask every 30 s, encoding is all that a name server would otherwise do.
use std::collections::BTreeSet;

use bindery_protocol::bodies::{
    BodyError, BrokerData, ClusterInfo, MemberGroup, MemberGroupBody, NumericKeys, QueueData,
    RouteData, TopicList,
};
use bytes::Bytes;

use super::route::{MASTER_ID, RouteTable};

/// Bit of a topic's system flag: it belongs to a unit.
const FLAG_UNIT: i32 = 1;
/// Bit of a topic's system flag: it has subscribers in a unit.
const FLAG_UNIT_SUB: i32 = 2;

/// The bodies of a topic's route that were asked for since it last changed.
#[derive(Debug, Default)]
pub(super) struct EncodedRoute {
    quoted: Option<Bytes>,
    bare: Option<Bytes>,
}

/// Which topics 311, 312 and 313 list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitTopics {
    /// 311
    Unit,
    /// 312
    UnitSub,
    /// 313
    UnitSubOnly,
}

impl RouteTable {
    /// The body of a topic's route; `None` when there is no route. `order` is the topic's order configuration: whoever
    /// changes it calls [`RouteTable::forget_encoded`].
    pub(super) fn encoded_route(
        &mut self,
        topic: &str,
        keys: NumericKeys,
        order: impl FnOnce() -> Option<String>,
    ) -> Result<Option<Bytes>, BodyError> {
        if let Some(bytes) = self.encoded.get(topic).and_then(|encoded| encoded.of(keys)) {
            return Ok(Some(bytes.clone()));
        }
        let Some(mut route) = self.route(topic) else {
            return Ok(None);
        };
        route.order_topic_conf = order();
        let bytes = Bytes::from(route.to_vec(keys)?);
        *self.encoded.entry(topic.to_owned()).or_default().slot(keys) = Some(bytes.clone());
        Ok(Some(bytes))
    }

    /// The route of a topic without its order configuration, brokers by name.
    pub(super) fn route(&self, topic: &str) -> Option<RouteData> {
        let by_broker = self.topics.get(topic)?;
        let broker_datas: Vec<BrokerData> = by_broker
            .keys()
            .filter_map(|name| self.brokers.get(name).cloned())
            .collect();
        (!broker_datas.is_empty()).then(|| RouteData {
            broker_datas,
            queue_datas: by_broker.values().cloned().collect(),
            topic_queue_mapping_by_broker: self.mappings.get(topic).cloned(),
            ..RouteData::default()
        })
    }

    /// The encoded routes of a topic, or of all, no longer hold.
    pub(super) fn forget_encoded(&mut self, topic: Option<&str>) {
        match topic {
            Some(topic) => _ = self.encoded.remove(topic),
            None => self.encoded.clear(),
        }
    }

    pub(super) fn cluster_info(&self) -> ClusterInfo {
        ClusterInfo {
            broker_addr_table: self.brokers.clone(),
            cluster_addr_table: self.clusters.clone(),
        }
    }

    /// Master and slaves of a broker name; an unknown one has none.
    pub(super) fn member_group(&self, cluster: &str, broker_name: &str) -> MemberGroupBody {
        let broker_addrs = self
            .brokers
            .get(broker_name)
            .map(|group| group.broker_addrs.clone())
            .unwrap_or_default();
        let group = MemberGroup {
            broker_addrs,
            broker_name: broker_name.to_owned(),
            cluster: cluster.to_owned(),
        };
        MemberGroupBody {
            broker_member_group: Some(group),
        }
    }

    pub(super) fn all_topics(&self) -> TopicList {
        list(self.topics.keys().cloned())
    }

    pub(super) fn cluster_topics(&self, cluster: &str) -> TopicList {
        let Some(names) = self.clusters.get(cluster) else {
            return TopicList::default();
        };
        let in_cluster = self
            .topics
            .iter()
            .filter(|(_, by_broker)| by_broker.keys().any(|name| names.contains(name)));
        list(in_cluster.map(|(topic, _)| topic.clone()))
    }

    /// The names of clusters and brokers, which are topics of each broker, and the address of one broker.
    pub(super) fn system_topics(&self) -> TopicList {
        let names = self.clusters.values().flatten();
        let addrs = self
            .brokers
            .values()
            .flat_map(|group| group.broker_addrs.values());
        TopicList {
            broker_addr: addrs.into_iter().next().cloned(),
            ..list(self.clusters.keys().chain(names).cloned())
        }
    }

    pub(super) fn unit_topics(&self, which: UnitTopics) -> TopicList {
        let chosen = |queues: &QueueData| {
            let (unit, sub) = (
                queues.topic_sys_flag & FLAG_UNIT != 0,
                queues.topic_sys_flag & FLAG_UNIT_SUB != 0,
            );
            match which {
                UnitTopics::Unit => unit,
                UnitTopics::UnitSub => sub,
                UnitTopics::UnitSubOnly => sub && !unit,
            }
        };
        let of_units = self
            .topics
            .iter()
            .filter(|(_, by_broker)| by_broker.values().next().is_some_and(chosen));
        list(of_units.map(|(topic, _)| topic.clone()))
    }
}

/// Keeps the brokers of one zone, and the names that have no master: their slaves serve all zones.
pub(super) fn keep_zone(route: &mut RouteData, zone: &str) {
    route.broker_datas.retain(|group| {
        group.zone_name.as_deref() == Some(zone) || !group.broker_addrs.contains_key(&MASTER_ID)
    });
    let kept: BTreeSet<&str> = route
        .broker_datas
        .iter()
        .map(|group| group.broker_name.as_str())
        .collect();
    route
        .queue_datas
        .retain(|queues| kept.contains(queues.broker_name.as_str()));
}

impl EncodedRoute {
    fn of(&self, keys: NumericKeys) -> Option<&Bytes> {
        match keys {
            NumericKeys::Quoted => self.quoted.as_ref(),
            NumericKeys::Bare => self.bare.as_ref(),
        }
    }

    fn slot(&mut self, keys: NumericKeys) -> &mut Option<Bytes> {
        match keys {
            NumericKeys::Quoted => &mut self.quoted,
            NumericKeys::Bare => &mut self.bare,
        }
    }
}

fn list(topics: impl Iterator<Item = String>) -> TopicList {
    TopicList {
        broker_addr: None,
        topic_list: topics.collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use bindery_protocol::{
        bodies::{TopicConfig, TopicConfigTable},
        headers::RegisterBrokerHeader,
    };
    use bindery_remoting::Connection;

    use super::*;
    use crate::namesrv::route::{Registration, WritePermission};

    fn register(table: &mut RouteTable, name: &'static str, addr: &'static str) {
        let topics = ["T", "U"].map(|topic| (topic.to_owned(), TopicConfig::new(topic, 4, 6)));
        let header = RegisterBrokerHeader {
            broker_name: name.into(),
            broker_addr: addr.into(),
            cluster_name: "c".into(),
            ..RegisterBrokerHeader::default()
        };
        let connection = Connection::for_test();
        let registration = Registration {
            header: &header,
            table: TopicConfigTable {
                topic_config_table: topics.into(),
                ..TopicConfigTable::default()
            },
            connection: &connection,
            delete_missing: false,
            now: 0,
        };
        table.register(&registration).unwrap();
    }

    fn encoded(table: &mut RouteTable, topic: &str) -> Bytes {
        table
            .encoded_route(topic, NumericKeys::Quoted, || None)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn a_route_is_encoded_once_until_it_changes() {
        let mut table = RouteTable::default();
        register(&mut table, "a", "10.0.0.1:1");
        let (t, u) = (encoded(&mut table, "T"), encoded(&mut table, "U"));
        // A registration that brings nothing new leaves the encoded routes alone.
        register(&mut table, "a", "10.0.0.1:1");
        assert_eq!(encoded(&mut table, "T").as_ptr(), t.as_ptr());
        table.delete_topic("U", None);
        assert_eq!(encoded(&mut table, "T").as_ptr(), t.as_ptr());
        assert!(
            table
                .encoded_route("U", NumericKeys::Quoted, || None)
                .unwrap()
                .is_none()
        );
        register(&mut table, "b", "10.0.0.2:1");
        let both = encoded(&mut table, "T");
        assert!(both != t && u != both);
        assert_eq!(table.turn_write("b", WritePermission::Wipe), 2);
        assert_ne!(encoded(&mut table, "T"), both);
    }

    #[test]
    fn old_and_new_requesters_have_an_encoding_of_their_own() {
        let mut table = RouteTable::default();
        register(&mut table, "a", "10.0.0.1:1");
        let bare = table
            .encoded_route("T", NumericKeys::Bare, || None)
            .unwrap()
            .unwrap();
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        assert!(text(&bare).contains(r#"{0:"10.0.0.1:1"}"#));
        assert!(text(&encoded(&mut table, "T")).contains(r#"{"0":"10.0.0.1:1"}"#));
    }
}
