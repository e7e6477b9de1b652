//! Messages: stored form, properties, ids, batches (spec/protocol.md §7, spec/store.md §2).
