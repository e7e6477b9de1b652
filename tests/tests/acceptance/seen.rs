//! What handlers have seen, to be waited for.

use std::sync::{Arc, Mutex};

use bindery::Message;
use bindery::prelude::*;
use tokio::sync::watch;
use tokio::time::Instant;

/// One call of a handler.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) text: String,
    pub(crate) headers: Headers,
    pub(crate) id: String,
    pub(crate) queue: i32,
    pub(crate) redelivery: u32,
    pub(crate) at: Instant,
}

impl Call {
    pub(crate) fn of(message: &Message) -> Self {
        let headers = message.headers().clone();
        let delivery = headers
            .delivery()
            .expect("a handler's message was delivered");
        Self {
            text: String::from_utf8_lossy(message.payload()).into_owned(),
            id: delivery.message_id.to_string(),
            queue: delivery.queue_id,
            redelivery: delivery.reconsume_times,
            at: Instant::now(),
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
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    calls: Arc<Mutex<Vec<Call>>>,
    count: watch::Sender<usize>,
}

impl Seen {
    pub(crate) fn new() -> Self {
        Self {
            calls: Arc::default(),
            count: watch::channel(0).0,
        }
    }

    pub(crate) fn add(&self, call: Call) {
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
        counted.wait_for(|seen| *seen >= count).await.unwrap();
        self.all()
    }
}

/// A handler of `binding` that notes its calls.
pub(crate) fn noting(binding: &'static str, seen: &Seen) -> bindery::registry::Handler {
    let seen = seen.clone();
    bindery::registry::Handler::listen(binding).to(move |message: Message| {
        let seen = seen.clone();
        async move { seen.add(Call::of(&message)) }
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
            let call = Call::of(&message);
            let fail = fails(&call);
            seen.add(call);
            if fail { Outcome::Retry } else { Outcome::Ack }
        }
    })
}
