//! Tests: Java's recorded answers, the rules that differ from Java's, and that nothing panics.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod differences;
mod oracle;
mod roots;
