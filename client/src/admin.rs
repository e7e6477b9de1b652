//! Administration calls: topics, offsets, messages and statistics, asked of the servers that know.
//!
//! ```text
//! Admin ─▶ name server (routes, cluster) ─▶ every master concerned ─▶ answers merged
//! ```
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use bindery_protocol::{
    bodies::{
        ClusterInfo, ConsumeStats, ResetOffsetBody, SubscriptionGroupConfig, TopicList,
        TopicStatsTable,
    },
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Request},
    headers::{
        ConsumeStatsHeader, CreateTopicHeader, DeleteRouteHeader, QueryMessageHeader,
        ResetOffsetHeader, TopicHeader, ViewMessageHeader,
    },
    message::{StoredMessage, id::parse_offset_msg_id, record},
    names,
};
use bytes::Bytes;

use crate::{
    Client, ClientError, MessageExt, MessageQueue, body,
    consumer::Origin,
    instance::{Peer, Shared, refusal, success},
    namespace,
};

/// Time allowed for one administration call (Java's).
const TIMEOUT: Duration = Duration::from_secs(5);
/// First look for the route of a topic that was just created; doubled with each further look.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// Administration calls over a [`Client`](crate::Client)'s connections. A handle.
#[derive(Debug, Clone)]
pub struct Admin {
    client: Client,
}

/// What a topic is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicSettings {
    /// Queues that are read; 8.
    pub read_queues: i32,
    /// Queues that are written; 8.
    pub write_queues: i32,
    /// Permission bits: 4 read, 2 write; 6.
    pub permission: i32,
    /// Whether writing stops rather than moves to other queues when a broker is down; off.
    pub order: bool,
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            read_queues: 8,
            write_queues: 8,
            permission: 6,
            order: false,
        }
    }
}

impl TopicSettings {
    /// So many queues for reading and writing.
    #[must_use]
    pub fn queues(queues: i32) -> Self {
        Self {
            read_queues: queues,
            write_queues: queues,
            ..Self::default()
        }
    }
}

/// One queue's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueBounds {
    /// Offset of the oldest message there is.
    pub min: i64,
    /// Offset the next message will get.
    pub max: i64,
}

/// How far a group is in one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumeProgress {
    /// Offset the next message will get.
    pub broker_offset: i64,
    /// Position of the group; -1 for none.
    pub consumer_offset: i64,
}

impl Admin {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Creates or changes a topic on every master of every cluster known to the name server, and waits until its route is there.
    ///
    /// # Errors
    /// A refusal of any master (29 for an illegal name), [`ClientError::TopicNotFound`] when no route appears within 5 s.
    pub async fn create_topic(
        &self,
        topic: &str,
        settings: TopicSettings,
    ) -> Result<(), ClientError> {
        let topic = self.wrap(topic);
        let header = CreateTopicHeader {
            topic: (&*topic).into(),
            default_topic: names::AUTO_CREATE_TOPIC.into(),
            read_queue_nums: settings.read_queues,
            write_queue_nums: settings.write_queues,
            perm: settings.permission,
            topic_filter_type: "SINGLE_TAG".into(),
            topic_sys_flag: Some(0),
            order: settings.order,
            attributes: None,
            force: false,
        };
        let masters = self.masters().await?;
        for addr in &masters {
            let request = Request::new(RequestCode::UPDATE_AND_CREATE_TOPIC).with(&header);
            self.shared().ask(addr, request, TIMEOUT).await?;
        }
        self.await_route(&topic, masters.len()).await
    }

    /// Brokers tell the name servers about new topics in their own time.
    async fn await_route(&self, topic: &str, masters: usize) -> Result<(), ClientError> {
        let deadline = Instant::now() + TIMEOUT;
        let mut pause = FIRST_LOOK;
        loop {
            let entry = self.shared().routes.entry(topic);
            self.shared().refresh(topic, &entry, None).await?;
            if self
                .shared()
                .routes
                .existing(topic)
                .is_some_and(|route| route.brokers.len() >= masters)
            {
                return Ok(());
            }
            if Instant::now() + pause > deadline {
                return Err(ClientError::TopicNotFound {
                    topic: topic.to_owned(),
                });
            }
            // In real time, like the call itself.
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// Deletes a topic on every master and at every name server.
    ///
    /// # Errors
    /// A refusal or failure of any of them; the others may have deleted it.
    pub async fn delete_topic(&self, topic: &str) -> Result<(), ClientError> {
        let topic = self.wrap(topic);
        for addr in self.masters().await? {
            let header = TopicHeader {
                topic: (&*topic).into(),
            };
            let request = Request::new(RequestCode::DELETE_TOPIC_IN_BROKER).with(&header);
            self.shared().ask(&addr, request, TIMEOUT).await?;
        }
        for addr in self.shared().name_servers() {
            let header = DeleteRouteHeader {
                topic: (&*topic).into(),
                ..DeleteRouteHeader::default()
            };
            let request = Request::new(RequestCode::DELETE_TOPIC_IN_NAMESRV).with(&header);
            let answer = self
                .shared()
                .call(Peer::NameServer, addr, request, TIMEOUT)
                .await?;
            success(addr, answer)?;
        }
        self.shared().routes.forget(&topic);
        Ok(())
    }

    /// Whether the name servers know a route of the topic.
    ///
    /// # Errors
    /// The name servers' failures.
    pub async fn topic_exists(&self, topic: &str) -> Result<bool, ClientError> {
        Ok(self.shared().ask_route(&self.wrap(topic)).await?.is_some())
    }

    /// All topics the name server knows, system topics included.
    ///
    /// # Errors
    /// The name servers' failures.
    pub async fn topics(&self) -> Result<Vec<String>, ClientError> {
        let answer = self
            .ask_name_server(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
            .await?;
        let list: TopicList = body::decode("the list of topics", &answer.body)?;
        Ok(list.topic_list.into_iter().collect())
    }

    /// Clusters, broker names and addresses.
    ///
    /// # Errors
    /// The name servers' failures.
    pub async fn cluster_info(&self) -> Result<ClusterInfo, ClientError> {
        let answer = self
            .ask_name_server(RequestCode::GET_BROKER_CLUSTER_INFO)
            .await?;
        body::decode("the cluster's brokers", &answer.body)
    }

    /// The queues that can be read, in order.
    ///
    /// # Errors
    /// [`ClientError::TopicNotFound`]; the name servers' failures.
    pub async fn queues(&self, topic: &str) -> Result<Vec<MessageQueue>, ClientError> {
        let wrapped = self.wrap(topic);
        let entry = self.shared().routes.entry(&wrapped);
        self.shared().refresh(&wrapped, &entry, None).await?;
        let route = self.shared().routes.existing(&wrapped);
        let route = route.ok_or_else(|| ClientError::TopicNotFound {
            topic: topic.to_owned(),
        })?;
        let plain = |queue: &MessageQueue| {
            MessageQueue::new(topic, queue.broker_name.clone(), queue.queue_id)
        };
        Ok(route.subscribe.iter().map(plain).collect())
    }

    /// Bounds of a queue.
    ///
    /// # Errors
    /// The broker's failures.
    pub async fn bounds(&self, queue: &MessageQueue) -> Result<QueueBounds, ClientError> {
        let (addr, queue) = self.place(queue).await?;
        let min = self.shared().min_offset(&addr, &queue).await?;
        let max = self.shared().max_offset(&addr, &queue).await?;
        Ok(QueueBounds { min, max })
    }

    /// Bounds and last change of every queue of a topic.
    ///
    /// # Errors
    /// [`ClientError::TopicNotFound`]; the brokers' failures.
    pub async fn topic_stats(&self, topic: &str) -> Result<TopicStatsTable, ClientError> {
        let mut merged = TopicStatsTable::default();
        for addr in self.topic_masters(topic).await? {
            let header = TopicHeader {
                topic: self.wrap(topic).into(),
            };
            let request = Request::new(RequestCode::GET_TOPIC_STATS_INFO).with(&header);
            let answer = self.shared().ask(&addr, request, TIMEOUT).await?;
            let stats: TopicStatsTable = body::decode("the state of a topic", &answer.body)?;
            merged.offset_table.0.extend(stats.offset_table);
            merged.topic_put_tps += stats.topic_put_tps;
        }
        Ok(merged)
    }

    /// Offset of the first message stored at or after a time (ms since 1970); the end when there is none.
    ///
    /// # Errors
    /// The broker's failures.
    pub async fn search_offset(
        &self,
        queue: &MessageQueue,
        timestamp: i64,
    ) -> Result<i64, ClientError> {
        let (addr, queue) = self.place(queue).await?;
        self.shared().search_offset(&addr, &queue, timestamp).await
    }

    /// A message by the id the broker gave it.
    ///
    /// # Errors
    /// [`ClientError::Decode`] for what is no such id; code 1 of the broker when nothing is there.
    pub async fn view_message(
        &self,
        topic: &str,
        offset_msg_id: &str,
    ) -> Result<MessageExt, ClientError> {
        let (host, offset) =
            parse_offset_msg_id(offset_msg_id).map_err(|source| ClientError::Decode {
                what: "a message id".to_owned(),
                source: Box::new(source),
            })?;
        let header = ViewMessageHeader {
            topic: Some(self.wrap(topic).into()),
            offset: offset.0,
        };
        let request = Request::new(RequestCode::VIEW_MESSAGE_BY_ID).with(&header);
        let addr = host.to_string();
        let answer = self.shared().ask(&addr, request, TIMEOUT).await?;
        let (stored, _) = record::decode(&answer.body).map_err(|source| ClientError::Decode {
            what: format!("a message from {addr}"),
            source: Box::new(source),
        })?;
        self.received(stored, "")
    }

    /// Messages that carry this key, from all brokers of the topic, at most `max` of each, stored between two times (ms since 1970).
    ///
    /// # Errors
    /// [`ClientError::TopicNotFound`]; the brokers' failures.
    pub async fn query_by_key(
        &self,
        topic: &str,
        key: &str,
        max: i32,
        begin: i64,
        end: i64,
    ) -> Result<Vec<MessageExt>, ClientError> {
        let mut found = Vec::new();
        for addr in self.topic_masters(topic).await? {
            let header = QueryMessageHeader {
                topic: self.wrap(topic).into(),
                key: key.into(),
                max_num: max,
                begin_timestamp: begin,
                end_timestamp: end,
                unique_key_query: None,
            };
            let request = Request::new(RequestCode::QUERY_MESSAGE).with(&header);
            let answer = self
                .shared()
                .call(Peer::Broker, &addr, request, TIMEOUT)
                .await?;
            match answer.response_code() {
                ResponseCode::SUCCESS => found.extend(self.with_key(&answer.body, key)?),
                // Two codes for "nothing found".
                ResponseCode::QUERY_NOT_FOUND | ResponseCode::NO_MESSAGE => {}
                _ => return Err(refusal(&addr, &answer)),
            }
        }
        Ok(found)
    }

    /// The index knows hashes only: what really has the key is found by looking.
    fn with_key(&self, records: &Bytes, key: &str) -> Result<Vec<MessageExt>, ClientError> {
        let has = |stored: &StoredMessage| {
            stored
                .keys()
                .is_some_and(|keys| keys.split(' ').any(|one| one == key))
        };
        let stored = record::decode_all(records.clone()).into_iter();
        stored
            .filter(|stored| has(stored) || stored.uniq_key() == Some(key))
            .map(|stored| self.received(stored, ""))
            .collect()
    }

    /// Position of a group in a queue, `None` when it has none.
    ///
    /// # Errors
    /// The broker's failures.
    pub async fn consumer_offset(
        &self,
        group: &str,
        queue: &MessageQueue,
    ) -> Result<Option<i64>, ClientError> {
        let (addr, queue) = self.place(queue).await?;
        self.shared()
            .query_offset(&addr, &self.wrap(group), &queue, false)
            .await
    }

    /// Sets the position of a group in a queue. For a group with running members use [`Admin::reset_offset`].
    ///
    /// # Errors
    /// Code 26 for a group the broker has never met; the broker's failures.
    pub async fn update_consumer_offset(
        &self,
        group: &str,
        queue: &MessageQueue,
        offset: i64,
    ) -> Result<(), ClientError> {
        let (addr, queue) = self.place(queue).await?;
        self.shared()
            .update_offset(&addr, &self.wrap(group), &queue, offset)
            .await
    }

    /// How far a group is, by queue: of one topic, or of all it has positions in.
    ///
    /// # Errors
    /// The brokers' failures.
    pub async fn progress(
        &self,
        group: &str,
        topic: Option<&str>,
    ) -> Result<BTreeMap<MessageQueue, ConsumeProgress>, ClientError> {
        let masters = match topic {
            Some(topic) => self.topic_masters(topic).await?,
            None => self.masters().await?,
        };
        let mut progress = BTreeMap::new();
        for addr in masters {
            let header = ConsumeStatsHeader {
                consumer_group: self.wrap(group).into(),
                topic: topic.map(|topic| self.wrap(topic).into()),
                topic_list: None,
            };
            let request = Request::new(RequestCode::GET_CONSUME_STATS).with(&header);
            let answer = self.shared().ask(&addr, request, TIMEOUT).await?;
            let stats: ConsumeStats = body::decode("the progress of a group", &answer.body)?;
            for (queue, at) in stats.offset_table {
                let (broker_offset, consumer_offset) = (at.broker_offset, at.consumer_offset);
                progress.insert(
                    self.plain(&queue),
                    ConsumeProgress {
                        broker_offset,
                        consumer_offset,
                    },
                );
            }
        }
        Ok(progress)
    }

    /// Messages of a topic not yet consumed by a group; a queue without a position counts as a whole.
    ///
    /// # Errors
    /// The brokers' failures.
    pub async fn lag(&self, group: &str, topic: &str) -> Result<i64, ClientError> {
        let progress = self.progress(group, Some(topic)).await?;
        Ok(progress
            .values()
            .map(|at| at.broker_offset - at.consumer_offset.max(0))
            .sum())
    }

    /// Client ids of the members of a group, as the first broker of a topic knows them.
    ///
    /// # Errors
    /// [`ClientError::TopicNotFound`]; code 1 when the group has no members.
    pub async fn members(&self, group: &str, topic: &str) -> Result<Vec<String>, ClientError> {
        let masters = self.topic_masters(topic).await?;
        let Some(addr) = masters.first() else {
            return Err(ClientError::NoQueue {
                topic: topic.to_owned(),
                purpose: "read from",
            });
        };
        self.shared().members(addr, &self.wrap(group)).await
    }

    /// Moves a group to the first message stored at or after a time (ms since 1970) in every queue of a topic; -1 is the end. Answers
    /// the new positions. Running members move with their next pull.
    ///
    /// # Errors
    /// The brokers' failures.
    pub async fn reset_offset(
        &self,
        group: &str,
        topic: &str,
        timestamp: i64,
    ) -> Result<BTreeMap<MessageQueue, i64>, ClientError> {
        let mut moved = BTreeMap::new();
        for addr in self.topic_masters(topic).await? {
            let header = ResetOffsetHeader {
                group: self.wrap(group).into(),
                topic: self.wrap(topic).into(),
                queue_id: -1,
                offset: None,
                timestamp,
                is_force: true,
            };
            let request = Request::new(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET).with(&header);
            let answer = self.shared().ask(&addr, request, TIMEOUT).await?;
            let reset: ResetOffsetBody = body::decode("the new positions", &answer.body)?;
            moved.extend(
                reset
                    .offset_table
                    .into_iter()
                    .map(|(queue, offset)| (self.plain(&queue), offset)),
            );
        }
        Ok(moved)
    }

    /// Creates or changes a consumer group on every master. `max_retries` is how often a failed message comes again.
    ///
    /// # Errors
    /// A refusal or failure of any master.
    pub async fn create_group(&self, group: &str, max_retries: i32) -> Result<(), ClientError> {
        let config = SubscriptionGroupConfig {
            retry_max_times: max_retries,
            ..SubscriptionGroupConfig::new(self.wrap(group))
        };
        let body = body::encode("a consumer group", &config)?;
        for addr in self.masters().await? {
            let request =
                Request::new(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP).body(body.clone());
            self.shared().ask(&addr, request, TIMEOUT).await?;
        }
        Ok(())
    }

    fn shared(&self) -> &Shared {
        &self.client.shared
    }

    fn namespace(&self) -> Option<&str> {
        self.client.shared.config.namespace.as_deref()
    }

    fn wrap(&self, name: &str) -> String {
        namespace::wrap(self.namespace(), name)
    }

    fn plain(&self, queue: &MessageQueue) -> MessageQueue {
        MessageQueue::new(
            namespace::unwrap(self.namespace(), &queue.topic),
            queue.broker_name.clone(),
            queue.queue_id,
        )
    }

    fn received(
        &self,
        stored: StoredMessage,
        broker_name: &str,
    ) -> Result<MessageExt, ClientError> {
        let origin = Origin {
            broker_name,
            min_offset: 0,
            max_offset: 0,
            namespace: self.namespace(),
        };
        MessageExt::received(stored, &origin).map_err(|source| ClientError::Decode {
            what: "a message".to_owned(),
            source: Box::new(source),
        })
    }

    async fn ask_name_server(&self, code: RequestCode) -> Result<Frame, ClientError> {
        let good = |answer: &Frame| answer.response_code() == ResponseCode::SUCCESS;
        let (addr, answer) = self
            .shared()
            .ask_name_servers(&Request::new(code), good)
            .await?;
        success(&addr, answer)
    }

    /// Addresses of all masters.
    async fn masters(&self) -> Result<Vec<String>, ClientError> {
        let cluster = self.cluster_info().await?;
        let masters = cluster
            .broker_addr_table
            .values()
            .filter_map(|broker| broker.broker_addrs.get(&crate::instance::MASTER));
        Ok(masters.cloned().collect())
    }

    /// Addresses of the masters that have queues of a topic.
    async fn topic_masters(&self, topic: &str) -> Result<Vec<String>, ClientError> {
        let queues = self.queues(topic).await?;
        let brokers: BTreeSet<_> = queues.into_iter().map(|queue| queue.broker_name).collect();
        brokers
            .iter()
            .map(|broker| self.shared().routes.master(broker))
            .collect()
    }

    /// A queue as its broker knows it, and the broker's address.
    async fn place(&self, queue: &MessageQueue) -> Result<(String, MessageQueue), ClientError> {
        if self.shared().routes.master(&queue.broker_name).is_err() {
            self.queues(&queue.topic).await?;
        }
        let addr = self.shared().routes.master(&queue.broker_name)?;
        Ok((
            addr,
            MessageQueue::new(
                self.wrap(&queue.topic),
                queue.broker_name.clone(),
                queue.queue_id,
            ),
        ))
    }
}
