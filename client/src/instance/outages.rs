//! Which servers are away, so that an outage is told once and not by every queue every second.
//!
//! ```text
//! failed call ─▶ is_news ─┬─ first since the last answer ─▶ warn
//!                         └─ again ───────────────────────▶ debug
//! answer ─────▶ answered ─── was away ────────────────────▶ info, once
//! ```
use std::{collections::HashSet, sync::RwLock};

use super::{MASTER, Peer, Shared};
use crate::{
    ClientError,
    sync::{read, write},
};

/// Logs at warn what is news, and the rest at debug.
macro_rules! warn_once {
    ($news:expr, $($event:tt)+) => {
        if $news {
            tracing::warn!($($event)+);
        } else {
            tracing::debug!($($event)+);
        }
    };
}
pub(crate) use warn_once;

/// Whom a failure is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Server<'a> {
    NameServers,
    /// The master of this name.
    Broker(&'a str),
    /// The broker at this address.
    At(&'a str),
}

/// A master goes by its name: it stays the same broker when its address changes or is forgotten.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    NameServers,
    Master(String),
    Address(String),
}

/// The servers that failed and have not answered since.
#[derive(Debug, Default)]
pub(super) struct Outages {
    away: RwLock<HashSet<Key>>,
}

impl Outages {
    fn begins(&self, key: Key) -> bool {
        if read(&self.away).contains(&key) {
            return false;
        }
        write(&self.away).insert(key)
    }

    /// Most calls find nobody away, so they only look.
    fn none(&self) -> bool {
        read(&self.away).is_empty()
    }

    fn end(&self, keys: impl IntoIterator<Item = Key>) -> bool {
        let mut away = write(&self.away);
        let before = away.len();
        for key in keys {
            away.remove(&key);
        }
        away.len() < before
    }
}

impl Shared {
    /// Whether a failure tells anything new: it is the first one of an outage, or none at all because the server did answer.
    pub(crate) fn is_news(&self, server: Server<'_>, error: &ClientError) -> bool {
        if !error.is_outage() {
            return true;
        }
        self.outages.begins(match server {
            Server::NameServers => Key::NameServers,
            Server::Broker(name) => Key::Master(name.to_owned()),
            Server::At(addr) => match self.masters_at(addr).into_iter().next() {
                Some(name) => Key::Master(name),
                None => Key::Address(addr.to_owned()),
            },
        })
    }

    /// A server answered, whatever it said.
    pub(super) fn answered(&self, peer: Peer, addr: &str) {
        if self.outages.none() {
            return;
        }
        if peer == Peer::NameServer {
            if self.outages.end([Key::NameServers]) {
                tracing::info!(addr, "name servers answer again");
            }
            return;
        }
        let masters = self.masters_at(addr).into_iter().map(Key::Master);
        if self
            .outages
            .end(masters.chain([Key::Address(addr.to_owned())]))
        {
            tracing::info!(addr, "broker answers again");
        }
    }

    fn masters_at(&self, addr: &str) -> Vec<String> {
        let mut names = self.routes.brokers_at(addr);
        names.retain(|name| self.routes.address(name, MASTER, true).as_deref() == Some(addr));
        names
    }
}
