//! Transactional outputs: what they need, and that their listener exists.

use super::*;

/// The report for one output `out` with this producer section; the program has the listeners `books` and `stock`.
fn with(producer: &str) -> Vec<String> {
    with_more(producer, "")
}

fn with_more(producer: &str, more: &str) -> Vec<String> {
    let yaml = format!(
        "spring.cloud.stream:\n  bindings:\n    out: {{ destination: t }}\n    plain: {{ destination: u }}\n  rocketmq.bindings.out.producer: {{ {producer} }}\n{more}"
    );
    let mut usage = program(&[], &["out", "plain"]);
    usage.transaction_listeners = program(&["books", "stock"], &[]).inputs;
    told(LoadOptions::from_text(yaml), Some(&usage))
}

#[test]
fn a_transactional_output_with_listener_and_group_has_nothing_to_tell() {
    for kind in ["producerType: Trans", "transactional: true"] {
        assert_eq!(
            with(&format!("{kind}, group: g, transactionListener: books")),
            Vec::<String>::new()
        );
    }
}

#[test]
fn the_listener_and_the_group_are_missed_at_the_place_that_asks_for_them() {
    assert_eq!(
        with("producerType: Trans"),
        [
            "error missing 5:51 transactional output `out` names no transaction listener",
            "error missing 5:51 transactional output `out` has no producer group of its own",
        ]
    );
}

#[test]
fn an_unknown_listener_is_told_with_the_nearest_that_exists() {
    assert_eq!(
        with("producerType: Trans, group: g, transactionListener: boks"),
        [
            "error unknown-name 5:89 output `out`: the program has no transaction listener `boks` -> books"
        ]
    );
}

#[test]
fn a_listener_needs_a_transactional_output() {
    assert_eq!(
        with("group: g, transactionListener: books"),
        ["error conflict 5:68 `transaction-listener` needs `producer-type: Trans`"]
    );
    assert_eq!(
        with("producerType: Trans, transactional: false, group: g, transactionListener: books")
            .len(),
        1
    );
}

#[test]
fn a_transaction_waits_for_the_broker_and_has_no_partition() {
    let right = "producerType: Trans, group: g, transactionListener: books";
    assert_eq!(
        with(&format!("{right}, sync: false")),
        ["error conflict 5:102 a transactional output waits for the broker -> Sync"]
    );
    assert_eq!(
        with_more(
            right,
            "  bindings.out.producer.partition-key-expression: payload.id\n"
        ),
        [
            "error conflict 6:51 a transactional output takes no partition key: its messages go to any queue"
        ]
    );
}

#[test]
fn a_group_has_one_listener() {
    let right = "producerType: Trans, group: g, transactionListener: books";
    let expected = [
        "error conflict 5:65 outputs `plain` and `out` share producer group `g`, but not the transaction listener that answers for it",
    ];
    assert_eq!(
        with_more(right, "  rocketmq.bindings.plain.producer.group: g\n"),
        expected
    );
    assert_eq!(with_more(right, "  rocketmq.binder.group: g\n"), expected);
    assert_eq!(
        with_more(
            right,
            "  rocketmq.bindings.plain.producer: { transactional: true, group: g, transaction-listener: books }\n"
        ),
        Vec::<String>::new()
    );
}

#[test]
fn two_listeners_of_one_name_are_told() {
    let mut usage = program(&[], &[]);
    usage.transaction_listeners = program(&["books", "books"], &[]).inputs;
    assert_eq!(
        told(LoadOptions::from_text("server.port: 1\n"), Some(&usage)),
        ["error conflict src/main.rs:11:1 two transaction listeners are called `books`"]
    );
}
