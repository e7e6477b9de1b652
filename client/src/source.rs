//! Which client a producer or consumer uses: one that is shared, or one made for it alone.
use crate::{Client, ClientConfig, ClientError};

#[derive(Debug, Clone)]
pub(crate) enum Source {
    Own(Box<ClientConfig>),
    Shared(Client),
}

impl Default for Source {
    fn default() -> Self {
        Self::Own(Box::default())
    }
}

impl Source {
    /// The client, and whether it was made for the caller alone.
    pub(crate) fn client(self) -> Result<(Client, bool), ClientError> {
        match self {
            Self::Own(config) => Ok((Client::start(*config)?, true)),
            Self::Shared(client) => Ok((client, false)),
        }
    }
}
