//! Rules between keys, and between the configuration and the program.

use super::*;

/// The report for one input `in` and one output `out` with more YAML below `spring.cloud.stream`.
fn with(more: &str) -> Vec<String> {
    let yaml = format!(
        "spring.cloud.stream:\n  default.consumer.max-attempts: 1\n  bindings:\n    in: {{ destination: t, group: g }}\n    out: {{ destination: t }}\n{more}"
    );
    told(
        LoadOptions::from_text(yaml),
        Some(&program(&["in"], &["out"])),
    )
}

#[test]
fn a_plain_configuration_has_nothing_to_tell() {
    assert_eq!(with(""), Vec::<String>::new());
}

#[test]
fn orderly_outputs_need_a_key_and_synchronous_sends() {
    assert_eq!(
        with("  rocketmq.bindings.out.producer: { producer-type: Orderly }\n"),
        ["error conflict 6:52 Orderly output `out` has nothing that decides the queue",]
    );
    assert_eq!(
        with(
            "    out2: { destination: u, producer.partition-count: 4 }\n  output-bindings: out2\n"
        ),
        ["error conflict 6:55 `partition-count: 4` needs a partition-key-expression",]
    );
    let key = "  default.producer.partition-key-expression: payload.id\n";
    assert_eq!(
        with(&format!(
            "{key}  rocketmq.bindings.out.producer: {{ sync: false }}\n"
        )),
        [
            "error conflict 7:43 a partitioned output keeps its order only with synchronous sends -> Sync",
        ]
    );
    assert_eq!(
        with(&format!(
            "{key}  rocketmq.bindings.out.producer: {{ producer-type: Orderly, sync: true }}\n"
        )),
        Vec::<String>::new()
    );
}

#[test]
fn two_names_of_one_setting_may_agree_and_must_not_contradict() {
    assert_eq!(
        with(
            "  rocketmq.bindings.in.consumer: { broadcasting: true, message-model: BROADCASTING, tags: A }\n"
        ),
        Vec::<String>::new()
    );
    assert_eq!(
        with(
            "  rocketmq.bindings.in.consumer: { broadcasting: true, message-model: CLUSTERING }\n"
        ),
        [
            "error conflict 6:71 `broadcasting` and `message-model` are one setting and contradict each other; keep one",
        ]
    );
    assert_eq!(
        with("  rocketmq.default.producer: { sync: true, send-type: Async }\n"),
        [
            "error conflict 6:55 `sync` and `send-type` are one setting and contradict each other; keep one",
        ]
    );
    let overridden = "  rocketmq.default.consumer: { message-model: BROADCASTING }\n  rocketmq.bindings.in.consumer: { broadcasting: false }\n";
    assert_eq!(with(overridden), Vec::<String>::new());
}

#[test]
fn broadcast_messages_are_neither_ordered_nor_redelivered() {
    assert_eq!(
        with(
            "  rocketmq.bindings.in.consumer: { broadcasting: true, orderly: true, max-reconsume-times: 3 }\n"
        ),
        [
            "error conflict 6:65 messages are ordered only within a group that shares them, not when broadcast",
            "warning conflict 6:92 failed broadcast messages are dropped: `max-reconsume-times` has no effect",
        ]
    );
}

#[test]
fn subscriptions_are_tags_or_conditions() {
    assert_eq!(
        with("  rocketmq.bindings.in.consumer.subscription: \"sql:a > 3 AND b IN ('x')\"\n"),
        Vec::<String>::new()
    );
    assert_eq!(
        with("  rocketmq.bindings.in.consumer.subscription: \"A || B\"\n"),
        Vec::<String>::new()
    );
    for (text, kind) in [
        ("color = 'red'", "wrong-value"),
        ("sql:a >", "wrong-value"),
        ("A B", "wrong-value"),
        ("A ||", "wrong-value"),
    ] {
        let told = with(&format!(
            "  rocketmq.bindings.in.consumer.subscription: \"{text}\"\n"
        ));
        assert!(
            told[0].starts_with(&format!("error {kind} 6:47 ")),
            "{text}: {told:?}"
        );
    }
}

#[test]
fn inputs_of_one_group_must_be_alike() {
    let told = with("    in2: { destination: u, group: g }\n  output-bindings: in2\n");
    assert_eq!(
        told,
        [
            "error conflict 6:35 inputs `in` and `in2` share group `g` and want different things; members of a group must be alike",
            "error conflict 6:35 `in2` is an output and has no consumer group -> spring.cloud.stream.rocketmq.bindings.in2.producer.group"
        ]
    );
    let told = with("    in2: { destination: 't,u', group: g }\n  output-bindings: in2\n");
    assert!(
        told.iter()
            .any(|line| line.contains("inputs `in` and `in2` both consume `t` in group `g`")),
        "{told:?}"
    );
}

#[test]
fn back_off_bounds_and_total_executions_are_checked() {
    assert_eq!(
        with("  default.consumer.back-off-max-interval: 10ms\n"),
        [
            "error conflict 6:43 `back-off-max-interval` (10ms) is below `back-off-initial-interval` (1s)",
        ]
    );
    let told = with("  rocketmq.default.consumer.max-reconsume-times: 40\n");
    assert_eq!(
        told,
        [
            "warning surprise 2:34 a message that always fails is handled 41 times by `in`: 1 attempts × (1 + 40 redeliveries)"
        ]
    );
}

#[test]
fn the_program_and_the_file_must_name_the_same_bindings() {
    let yaml = "\
spring.cloud.stream:
  default.consumer.max-attempts: 1
  bindings:
    inptu: { destination: t, group: g }
    unused: { destination: t }
    out: { destination: t, group: g2, consumer.concurrency: 2 }
    in2: { destination: u, producer.partition-count: 1 }
    out2: { group: x }
  rocketmq.bindings.ou.producer.sync: true
";
    let usage = program(&["input", "in2", "nowhere"], &["out"]);
    assert_eq!(
        told(LoadOptions::from_text(yaml), Some(&usage)),
        [
            "error unused-binding 4:5 input `inptu` is configured but no handler, source struct or bridge uses it -> input",
            "error unused-binding 5:5 binding `unused` is configured but no handler, source struct or bridge uses it",
            "error conflict 6:35 `out` is an output and has no consumer group -> spring.cloud.stream.rocketmq.bindings.out.producer.group",
            "error conflict 6:61 `out` is an output only; `consumer.concurrency` has no effect",
            "error missing 7:5 input `in2` has no group",
            "error conflict 7:54 `in2` is an input only; `producer.partition-count` has no effect",
            "error unused-binding 8:5 input `out2` is configured but no handler, source struct or bridge uses it -> out",
            "error unknown-name 9:21 `ou` is not a binding: spring.cloud.stream.bindings doesn't have it -> out",
            "error missing src/main.rs:12:1 input `nowhere` of handler `on_nowhere` is not configured",
        ]
    );
    let allowed = format!("{yaml}bindery.config.allow-unused: true\n");
    assert!(
        !told(LoadOptions::from_text(allowed), Some(&usage))
            .iter()
            .any(|line| line.contains("`unused`"))
    );
}

#[test]
fn a_binding_takes_its_name_as_topic_only_when_that_is_asked_for() {
    let usage = program(&["in"], &["out"]);
    let yaml = "spring.cloud.stream.bindings.in: { group: g, consumer.max-attempts: 1 }\n";
    assert_eq!(
        told(LoadOptions::from_text(yaml), Some(&usage)),
        [
            "error missing 1:30 binding `in` has no destination",
            "error missing src/main.rs:10:1 output `out` of handler `on_out` is not configured",
        ]
    );
    let yaml = format!("{yaml}bindery.config.destination-from-name: true\n");
    let loaded = Config::load_for(LoadOptions::from_text(yaml), &usage).unwrap();
    assert_eq!(loaded.config.bindings["in"].destination, "in");
}

#[test]
fn expressions_are_parsed_and_their_errors_point_into_the_text() {
    let told = with("  default.producer.partition-key-expression: payload['id'\n");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("error expression 6:5"), "{told:?}");
}

#[test]
fn binders_must_exist() {
    assert_eq!(
        with("  default-binder: rockmq\n  default.binder: memory\n"),
        ["error unknown-name there is no binder `rockmq` -> rocketmq",]
    );
}

#[test]
fn l22_the_group_of_the_binding_is_the_one_that_counts_and_one_without_is_refused() {
    let loaded = loaded(
        "\
spring:
  application.name: shop
  cloud.stream:
    default.consumer.max-attempts: 1
    bindings.in: { destination: t, group: own }
    rocketmq.binder.group: other
",
    );
    assert_eq!(loaded.config.bindings["in"].group.as_deref(), Some("own"));
    let yaml = "spring.cloud.stream.bindings.in.destination: t\nspring.cloud.stream.rocketmq.binder.group: other\n";
    assert_eq!(
        told(LoadOptions::from_text(yaml), Some(&program(&["in"], &[]))),
        ["error missing 1:30 input `in` has no group"]
    );
}

#[test]
fn l23_placeholders_are_resolved_in_every_text_and_a_missing_one_stops_the_start() {
    let yaml = |tags: &str| {
        format!(
            "\
spring.cloud.stream:
  default.consumer.max-attempts: 1
  bindings.in: {{ destination: \"${{TOPIC:orders}}\", group: g }}
  rocketmq.bindings.in.consumer.subscription: \"{tags}\"
"
        )
    };
    let loaded = loaded(&yaml("${TAGS:paid} || sent"));
    assert_eq!(loaded.config.bindings["in"].destination, "orders");
    let consumer = &loaded.config.rocketmq.binding("in").consumer;
    assert_eq!(
        consumer.subscription,
        crate::config::Subscription::Tags("paid || sent".to_owned())
    );
    let told = told_of(&yaml("${TAGS} || sent"));
    assert!(told.len() == 1 && told[0].contains("TAGS"), "{told:?}");
}
