//! One client instance.
use crate::{Admin, ClientConfig, ClientError};

/// A client instance: one id, one set of connections, one route table, shared by the producers, consumers and admin calls made
/// from it. A handle: clones share everything; when the last one is dropped its rounds stop.
#[derive(Debug, Clone)]
pub struct Client {}

impl Client {
    /// Starts a client. Must be called within a tokio runtime; nothing is connected yet.
    ///
    /// # Errors
    /// [`ClientError::NoNameServer`] for an empty list.
    pub fn start(config: ClientConfig) -> Result<Self, ClientError> {
        todo!()
    }
    /// `ip@instance`, the name brokers know it by.
    #[must_use]
    pub fn id(&self) -> &str {
        todo!()
    }
    /// What it was made from.
    #[must_use]
    pub fn config(&self) -> &ClientConfig {
        todo!()
    }
    /// Administration calls over this client's connections.
    #[must_use]
    pub fn admin(&self) -> Admin {
        todo!()
    }
    /// Stops the rounds and closes the connections. Shut its producers and consumers down first.
    pub async fn shutdown(&self) {
        todo!()
    }
}
