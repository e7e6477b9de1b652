//! The key-value table: small settings kept for all, in namespaces, such as the order configuration of topics.
//!
//! ```text
//! PUT / DELETE (100, 102) ─▶ KvStore ─▶ Files {"configTable":{NAMESPACE:{KEY:VALUE}}}
//! GET (101), list (219), registrations, routes ◀─ KvStore
//! ```
use std::collections::BTreeMap;

use bindery_protocol::bodies::KvTable;
use serde::{Deserialize, Serialize};

/// The namespace that holds, by topic, `broker-a:4;broker-b:4`: from which queues strictly ordered producers choose.
pub(super) const ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";

/// The table, in the form of its file (`KVConfigSerializeWrapper` in Apache's name server).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KvStore {
    #[serde(rename = "configTable", default)]
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
}

impl KvStore {
    pub(super) fn value(&self, namespace: &str, key: &str) -> Option<&str> {
        self.namespaces.get(namespace)?.get(key).map(String::as_str)
    }

    pub(super) fn put(&mut self, namespace: &str, key: &str, value: &str) {
        let keys = self.namespaces.entry(namespace.to_owned()).or_default();
        keys.insert(key.to_owned(), value.to_owned());
    }

    /// An emptied namespace stays, as in Apache's name server: it is then listed as empty, not refused as unknown.
    pub(super) fn delete(&mut self, namespace: &str, key: &str) {
        if let Some(keys) = self.namespaces.get_mut(namespace) {
            keys.remove(key);
        }
    }

    pub(super) fn namespace(&self, namespace: &str) -> Option<KvTable> {
        self.namespaces.get(namespace).map(|table| KvTable {
            table: table.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_key_is_gone_and_its_namespace_stays() {
        let mut table = KvStore::default();
        table.put("N", "k", "v");
        table.delete("N", "k");
        table.delete("other", "k");
        assert_eq!(table.value("N", "k"), None);
        assert_eq!(table.namespace("N"), Some(KvTable::default()));
        assert_eq!(table.namespace("other"), None);
    }
}
