//! Tests: the rules that differ from Java's, and that nothing panics. Java's recorded answers are judged by the workspace's
//! test `oracle`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod differences;
mod roots;
