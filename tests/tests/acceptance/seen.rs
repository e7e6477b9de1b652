//! What handlers have seen, to be waited for.

use std::ops::Sub;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindery::Message;
use bindery::prelude::*;
use bindery::testing::TestApp;
use tokio::sync::watch;

/// A time of the broker under test, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At(pub(crate) i64);

impl Sub for At {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

/// One call of a handler.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) text: String,
    pub(crate) headers: Headers,
    pub(crate) id: String,
    pub(crate) queue: i32,
    pub(crate) redelivery: u32,
    pub(crate) at: At,
}

impl Call {
    pub(crate) fn of(message: &Message, at: At) -> Self {
        let headers = message.headers().clone();
        let delivery = headers
            .delivery()
            .expect("a handler's message was delivered");
        Self {
            text: String::from_utf8_lossy(message.payload()).into_owned(),
            id: delivery.message_id.to_string(),
            queue: delivery.queue_id,
            redelivery: delivery.reconsume_times,
            at,
            headers,
        }
    }

    /// The field `id` of an order.
    pub(crate) fn order(&self) -> i64 {
        let order: serde_json::Value = serde_json::from_str(&self.text).unwrap();
        order["id"].as_i64().unwrap()
    }

    /// The field `desc` of an order.
    pub(crate) fn desc(&self) -> String {
        let order: serde_json::Value = serde_json::from_str(&self.text).unwrap();
        order["desc"].as_str().unwrap().to_owned()
    }
}

/// Calls, in the order in which they began. Cheap to clone; clones are the same list.
#[derive(Clone)]
pub(crate) struct Seen {
    host: Arc<TestApp>,
    /// Time moves only while somebody waits.
    is_virtual: bool,
    calls: Arc<Mutex<Vec<Call>>>,
    count: watch::Sender<usize>,
}

impl Seen {
    pub(crate) fn new(host: Arc<TestApp>, is_virtual: bool) -> Self {
        Self {
            host,
            is_virtual,
            calls: Arc::default(),
            count: watch::channel(0).0,
        }
    }

    /// Notes a call that begins now.
    pub(crate) fn note(&self, message: &Message) -> Call {
        let call = Call::of(message, At(self.host.clock().now_millis()));
        self.add(call.clone());
        call
    }

    fn add(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
        self.count.send_modify(|count| *count += 1);
    }

    pub(crate) fn all(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.all().into_iter().map(|call| call.text).collect()
    }

    /// Waits until at least so many were seen; the row's deadline is its limit.
    pub(crate) async fn wait(&self, count: usize) -> Vec<Call> {
        let mut counted = self.count.subscribe();
        if self.is_virtual {
            while *counted.borrow_and_update() < count {
                self.host.settle().await;
                tokio::task::yield_now().await;
            }
        } else {
            counted.wait_for(|seen| *seen >= count).await.unwrap();
        }
        self.all()
    }
}

/// A handler of `binding` that notes its calls.
pub(crate) fn noting(binding: &'static str, seen: &Seen) -> bindery::registry::Handler {
    let seen = seen.clone();
    bindery::registry::Handler::listen(binding).to(move |message: Message| {
        let seen = seen.clone();
        async move { drop(seen.note(&message)) }
    })
}

/// A handler of `binding` that notes its calls and fails those for which `fails` is true.
pub(crate) fn failing(
    binding: &'static str,
    seen: &Seen,
    fails: impl Fn(&Call) -> bool + Clone + Send + Sync + 'static,
) -> bindery::registry::Handler {
    let seen = seen.clone();
    bindery::registry::Handler::listen(binding).to(move |message: Message| {
        let (seen, fails) = (seen.clone(), fails.clone());
        async move {
            if fails(&seen.note(&message)) {
                Outcome::Retry
            } else {
                Outcome::Ack
            }
        }
    })
}
