//! The store: commit log, consume queues, index.
