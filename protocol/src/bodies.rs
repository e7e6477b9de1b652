//! JSON bodies (spec/protocol.md §6), serde types in Java's spelling.
