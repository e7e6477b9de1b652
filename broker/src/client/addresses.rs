//! Client id → connection, for what is addressed to one client: replies to its requests.
//!
//! ```text
//! heartbeat with a producer group ─▶ add ─┐
//! its last producer group left, 35, end ──┴▶ remove        reply to a client ─▶ find ─▶ one of its connections
//! ```
//! A client may be connected more than once, and each of its connections counts on its own: Apache's broker forgets the
//! client when any of them ends, and its replies are lost until it connects anew.
use std::collections::{BTreeMap, HashMap};

use bindery_remoting::{Connection, ConnectionId};

/// The connections of all clients that produce. A connection has one name: that of its last heartbeat.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    by_client: HashMap<String, BTreeMap<ConnectionId, Connection>>,
    names: HashMap<ConnectionId, String>,
}

impl Addresses {
    /// A client was heard on a connection.
    pub(super) fn add(&mut self, client_id: &str, connection: &Connection) {
        let id = connection.id();
        match self.names.get(&id) {
            Some(known) if known == client_id => return,
            Some(_) => self.remove(id),
            None => {}
        }
        self.names.insert(id, client_id.to_owned());
        self.by_client
            .entry(client_id.to_owned())
            .or_default()
            .insert(id, connection.clone());
    }

    /// Nothing more is sent on a connection.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        let Some(client_id) = self.names.remove(&id) else {
            return;
        };
        if let Some(connections) = self.by_client.get_mut(&client_id) {
            connections.remove(&id);
            if connections.is_empty() {
                self.by_client.remove(&client_id);
            }
        }
    }

    /// The newest open connection of a client.
    pub(super) fn find(&self, client_id: &str) -> Option<&Connection> {
        self.by_client
            .get(client_id)?
            .values()
            .rev()
            .find(|connection| !connection.is_closed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_reached_until_its_last_connection_ends() {
        let mut addresses = Addresses::default();
        let (old, new) = (Connection::for_test(), Connection::for_test());
        addresses.add("c", &old);
        addresses.add("c", &new);
        addresses.add("c", &old);
        let found = |addresses: &Addresses| addresses.find("c").map(Connection::id);
        assert_eq!(found(&addresses), Some(new.id()));
        new.close();
        assert_eq!(
            found(&addresses),
            Some(old.id()),
            "closed, but not yet reported"
        );
        addresses.remove(new.id());
        addresses.remove(new.id());
        assert_eq!(found(&addresses), Some(old.id()));
        addresses.remove(old.id());
        assert_eq!(found(&addresses), None);
        assert!(addresses.by_client.is_empty() && addresses.names.is_empty());
    }

    #[test]
    fn a_connection_answers_to_its_last_name_alone() {
        let mut addresses = Addresses::default();
        let connection = Connection::for_test();
        addresses.add("before", &connection);
        addresses.add("after", &connection);
        assert!(addresses.find("before").is_none());
        assert!(addresses.find("after").is_some());
    }
}
