//! Attempts: one request each, as many as the rules and the time allow.
//!
//! ```text
//! deadline = now + timeout
//! attempt ─▶ stored ──────────────────────────────────▶ result
//!    │  ▲ └▶ connect, timeout, lost, code of the list ─┐
//!    │  └──────── other broker, time left ◀────────────┤
//!    └─▶ other code ─▶ error                           └─ no attempt or time left ─▶ SendFailed
//! ```
//! A timed-out attempt may have been stored: a retry can duplicate a message, and the copies have the same id.
use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::{SendHeader, SendReply},
    names,
};

use super::{
    Kind, Outgoing,
    select::{Faults, select},
    settings::Settings,
};
use crate::{
    ClientError, MessageQueue, SendResult, SendStatus,
    instance::{Peer, Shared, TopicEntry, TopicRoute, read_header, refusal},
    namespace,
};

/// Attempts at sending a message to the retry topic, and the time for them (Java's).
const INNER_ATTEMPTS: usize = 3;
const INNER_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends for one producer group.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) client: Arc<Shared>,
    /// With the namespace.
    pub(super) group: String,
    pub(super) settings: Settings,
    pub(super) faults: Faults,
}

/// Failed attempts so far.
pub(super) struct Attempts {
    pub(super) started: Instant,
    pub(super) brokers: Vec<String>,
}

impl Sender {
    /// To any queue, on another broker after a failure, with so many attempts after the first.
    pub(super) async fn send(
        &self,
        message: &Outgoing,
        retries: usize,
    ) -> Result<SendResult, ClientError> {
        let mut attempts = Attempts {
            started: Instant::now(),
            brokers: Vec::new(),
        };
        let deadline = attempts.started + self.settings.timeout;
        let (entry, route) = self.route(message, deadline).await?;
        let mut stored = None;
        loop {
            let Some(queue) =
                self.next_queue(&entry, &route, attempts.brokers.last().map(String::as_str))
            else {
                return Err(ClientError::NoQueue {
                    topic: message.topic.clone(),
                    purpose: "write to",
                });
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let failure = match self.try_once(message, queue, left, &route).await {
                Ok(result)
                    if result.status == SendStatus::Ok
                        || !self.settings.retry_when_not_stored_ok =>
                {
                    return Ok(result);
                }
                Ok(result) => {
                    stored = Some(result);
                    None
                }
                Err(error) => Some(error),
            };
            attempts.brokers.push(queue.broker_name.clone());
            let again = failure
                .as_ref()
                .is_none_or(|error| self.worth_another(error));
            if !again || attempts.brokers.len() > retries || Instant::now() >= deadline {
                return attempts.end(message, stored, failure);
            }
            tracing::debug!(
                topic = message.topic,
                broker = queue.broker_name,
                error = failure.as_ref().map(ToString::to_string),
                "send tried again"
            );
        }
    }

    /// To this queue and no other. Tried again only after failures that leave no doubt that nothing was stored, so that order is kept.
    pub(super) async fn send_to(
        &self,
        message: &Outgoing,
        queue: &MessageQueue,
    ) -> Result<SendResult, ClientError> {
        let mut attempts = Attempts {
            started: Instant::now(),
            brokers: Vec::new(),
        };
        let deadline = attempts.started + self.settings.timeout;
        let (_, route) = self.route(message, deadline).await?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let error = match self.try_once(message, queue, left, &route).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            attempts.brokers.push(queue.broker_name.clone());
            let untouched = matches!(&error, ClientError::Connect { .. })
                || error.is_code(ResponseCode::SYSTEM_BUSY);
            if !untouched
                || attempts.brokers.len() > self.settings.retries
                || Instant::now() >= deadline
            {
                return attempts.end(message, None, Some(error));
            }
        }
    }

    /// Hands the message over and waits for no answer.
    pub(super) async fn oneway(
        &self,
        message: &Outgoing,
        queue: Option<&MessageQueue>,
    ) -> Result<(), ClientError> {
        let deadline = Instant::now() + self.settings.timeout;
        let (entry, route) = self.route(message, deadline).await?;
        let Some(queue) = queue.or_else(|| self.next_queue(&entry, &route, None)) else {
            return Err(ClientError::NoQueue {
                topic: message.topic.clone(),
                purpose: "write to",
            });
        };
        let addr = self.client.routes.master(&queue.broker_name)?;
        let request = request(
            &self.client,
            &self.group,
            message,
            queue,
            self.settings.default_topic_queues,
        );
        let left = deadline.saturating_duration_since(Instant::now());
        self.client.tell(&addr, request, left).await
    }

    /// The message's route; that name servers are slow is part of the send's time.
    async fn route(
        &self,
        message: &Outgoing,
        deadline: Instant,
    ) -> Result<(Arc<TopicEntry>, Arc<TopicRoute>), ClientError> {
        let asking = self
            .client
            .publish_route(&message.topic, self.settings.default_topic_queues);
        tokio::time::timeout_at(deadline.into(), asking)
            .await
            .unwrap_or_else(|_elapsed| {
                Err(ClientError::Timeout {
                    addr: "the name servers".to_owned(),
                    after: self.settings.timeout,
                })
            })
    }

    fn next_queue<'a>(
        &self,
        entry: &TopicEntry,
        route: &'a TopicRoute,
        last: Option<&str>,
    ) -> Option<&'a MessageQueue> {
        let faults = self
            .settings
            .avoid_faulty_brokers
            .then(|| (&self.faults, self.now()));
        select(entry, route, last, faults)
    }

    pub(super) async fn try_once(
        &self,
        message: &Outgoing,
        queue: &MessageQueue,
        left: Duration,
        route: &TopicRoute,
    ) -> Result<SendResult, ClientError> {
        if left.is_zero() {
            return Err(ClientError::Timeout {
                addr: String::new(),
                after: self.settings.timeout,
            });
        }
        let started = Instant::now();
        let sent = send_once(
            &self.client,
            &self.group,
            message,
            queue,
            left,
            self.settings.default_topic_queues,
        )
        .await;
        let outdated = match &sent {
            // The topic is there now: learn what it really looks like.
            Ok(_) => route.provisional,
            Err(ClientError::BrokerUnknown { .. } | ClientError::Connect { .. }) => true,
            Err(error) => error.is_code(ResponseCode::TOPIC_NOT_EXIST),
        };
        if outdated {
            self.client.routes.hurry();
        }
        if self.settings.avoid_faulty_brokers {
            match &sent {
                Ok(_) => self
                    .faults
                    .answered(&queue.broker_name, started.elapsed(), self.now()),
                Err(_) => self.faults.failed(&queue.broker_name, self.now()),
            }
        }
        sent
    }

    pub(super) fn worth_another(&self, error: &ClientError) -> bool {
        match error {
            ClientError::Broker { code, .. } => self.settings.retry_codes.contains(&code.0),
            other => other.is_retryable(),
        }
    }

    fn now(&self) -> i64 {
        self.client.config.clock.now_millis()
    }
}

impl Attempts {
    /// What the caller gets after the last attempt: a result that was stored less safely is better than an error.
    pub(super) fn end(
        self,
        message: &Outgoing,
        stored: Option<SendResult>,
        failure: Option<ClientError>,
    ) -> Result<SendResult, ClientError> {
        match (stored, failure) {
            (Some(result), _) => Ok(result),
            (None, Some(source)) => Err(ClientError::SendFailed {
                topic: message.topic.clone(),
                attempts: self.brokers.len(),
                elapsed: self.started.elapsed(),
                brokers: self.brokers,
                source: Box::new(source),
            }),
            (None, None) => Err(ClientError::NoQueue {
                topic: message.topic.clone(),
                purpose: "write to",
            }),
        }
    }
}

fn request(
    client: &Shared,
    group: &str,
    message: &Outgoing,
    queue: &MessageQueue,
    new_queues: i32,
) -> Request {
    let header = SendHeader {
        producer_group: group.into(),
        topic: (&*message.topic).into(),
        default_topic: names::AUTO_CREATE_TOPIC.into(),
        default_topic_queue_nums: new_queues,
        queue_id: queue.queue_id,
        sys_flag: message.sys_flag,
        born_timestamp: client.config.clock.now_millis(),
        flag: message.flag,
        properties: Some((&*message.properties).into()),
        reconsume_times: Some(message.retried.map_or(0, |(failures, _)| failures)),
        unit_mode: Some(false),
        max_reconsume_times: message.retried.map(|(_, max)| max),
        batch: Some(message.kind == Kind::Batch),
        broker_name: Some((&*queue.broker_name).into()),
    };
    let code = match message.kind {
        Kind::Single => RequestCode::SEND_MESSAGE_V2,
        Kind::Batch => RequestCode::SEND_BATCH_MESSAGE,
        Kind::Reply => RequestCode::SEND_REPLY_MESSAGE_V2,
    };
    Request::new(code).with(&header).body(message.body.clone())
}

async fn send_once(
    client: &Shared,
    group: &str,
    message: &Outgoing,
    queue: &MessageQueue,
    timeout: Duration,
    new_queues: i32,
) -> Result<SendResult, ClientError> {
    let addr = client.routes.master(&queue.broker_name)?;
    let request = request(client, group, message, queue, new_queues);
    let answer = client.call(Peer::Broker, &addr, request, timeout).await?;
    let status = match answer.response_code() {
        ResponseCode::SUCCESS => SendStatus::Ok,
        ResponseCode::FLUSH_DISK_TIMEOUT => SendStatus::FlushDiskTimeout,
        ResponseCode::FLUSH_SLAVE_TIMEOUT => SendStatus::FlushSlaveTimeout,
        ResponseCode::SLAVE_NOT_AVAILABLE => SendStatus::SlaveNotAvailable,
        _ => return Err(refusal(&addr, &answer)),
    };
    let reply: SendReply<'_> = read_header(&addr, &answer)?;
    let topic = namespace::unwrap(client.config.namespace.as_deref(), &message.topic);
    Ok(SendResult {
        status,
        msg_id: message.msg_id.clone(),
        offset_msg_id: reply.msg_id.into_owned(),
        queue: MessageQueue::new(topic, queue.broker_name.clone(), reply.queue_id),
        queue_offset: reply.queue_offset,
        transaction_id: reply.transaction_id.map(Cow::into_owned),
        region: reply
            .region_id
            .map_or_else(|| "DefaultRegion".to_owned(), Cow::into_owned),
        recall_handle: reply.recall_handle.map(Cow::into_owned),
    })
}

impl Shared {
    /// Sends a message on the client's own behalf, as the Java client does with its built-in producer.
    pub(crate) async fn send_inner(&self, message: &Outgoing) -> Result<(), ClientError> {
        let deadline = Instant::now() + INNER_TIMEOUT;
        // A retry topic is created with one queue.
        let (entry, route) = self.publish_route(&message.topic, 1).await?;
        let mut last: Option<String> = None;
        let mut failure = ClientError::NoQueue {
            topic: message.topic.clone(),
            purpose: "write to",
        };
        for _ in 0..INNER_ATTEMPTS {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(queue) =
                select(&entry, &route, last.as_deref(), None).filter(|_| !left.is_zero())
            else {
                break;
            };
            match send_once(self, names::CLIENT_INNER_PRODUCER, message, queue, left, 1).await {
                Ok(_) => return Ok(()),
                Err(error) => failure = error,
            }
            last = Some(queue.broker_name.clone());
        }
        Err(failure)
    }
}
