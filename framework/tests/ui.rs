//! The attribute macros: what their expansions do, and what wrong uses are told.
//!
//! `ui/fail/*.rs` must not compile, each with exactly the messages beside it (`TRYBUILD=overwrite` writes them anew; read
//! the difference before committing it). `ui/expansion.rs` runs what compiles.

#[path = "ui/expansion.rs"]
mod expansion;

#[test]
fn l28_wrong_uses_are_told_at_their_place() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
