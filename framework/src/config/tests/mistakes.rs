//! Mistakes: each is found, at its place, with what was probably meant, and all of them at once.

use super::{super::*, *};

const THREE: &str = "\
spring:
  application:
    name: orders
  cloud:
    stream:
      bindings:
        orders-in:
          destination: orders
          group: billing
        orders-out:
          destination: orders
          producer:
            partition-key-expresion: payload['id']
      rocketmq:
        bindings:
          orders-in:
            consumer:
              max-reconsume-times: 2
              consumeFromWhere: CONSUME_FROM_FIRST
  cloud.stream.default.consumer.max-attempts: 1
---
spring:
  config.activate.on-profile: test
  cloud.stream.bindings:
    ordres-in:
      group: other
";

#[test]
fn three_mistakes_in_two_documents_are_one_report_of_three() {
    let usage = program(&["orders-in"], &["orders-out"]);
    let told = told(LoadOptions::from_text(THREE), Some(&usage));
    assert_eq!(
        told,
        [
            "error unknown-key 13:13 unknown key `partition-key-expresion` -> partition-key-expression",
            "error wrong-value 19:33 `CONSUME_FROM_FIRST` is not a value for `consumeFromWhere` -> CONSUME_FROM_FIRST_OFFSET",
            "error unused-binding 25:5 binding `ordres-in` is configured but no handler, source struct or bridge uses it -> orders-in",
        ]
    );
}

#[test]
fn what_a_mistyped_key_would_have_said_is_not_missed_again() {
    let usage = program(&["in", "in2"], &["out"]);
    let yaml = "\
spring.cloud.stream:
  default.consumer.max-attempts: 1
  bindings:
    in: { destination: t, gruop: g }
    in2: { destinaton: t, consumer.group: g }
    out: { destination: t, producer.partition-key-expresion: payload.id }
  rocketmq.bindings.out.producer.producer-type: Orderly
";
    assert_eq!(
        told(LoadOptions::from_text(yaml), Some(&usage)),
        [
            "error unknown-key 4:27 unknown key `gruop` -> group",
            "error unknown-key 5:12 unknown key `destinaton` -> destination",
            "error unknown-key 5:36 unknown key `group` -> spring.cloud.stream.bindings.in2.group",
            "error unknown-key 6:37 unknown key `partition-key-expresion` -> partition-key-expression",
        ]
    );
    let lost = "spring.cloud.stream:\n  bindngs:\n    in: { destination: t, group: g }\n  rocketmq.bindings.in.consumer.orderly: true\n";
    assert_eq!(
        told(LoadOptions::from_text(lost), Some(&usage)),
        ["error unknown-key 2:3 unknown key `bindngs` -> bindings"]
    );
}

#[test]
fn the_report_shows_line_caret_and_suggestion() {
    let errors = Config::load_for(
        LoadOptions::from_text(THREE),
        &program(&["orders-in"], &["orders-out"]),
    )
    .unwrap_err();
    let text = errors.to_string();
    let first = "\
error[config]: unknown key `partition-key-expresion`
  --> application.yaml:13:13
   |
13 |             partition-key-expresion: payload['id']
   |             ^^^^^^^^^^^^^^^^^^^^^^^ did you mean `partition-key-expression`?
   = in spring.cloud.stream.bindings.orders-out.producer
   = accepted here: partition-key-expression, ";
    assert!(text.starts_with(first), "{text}");
    assert!(text.ends_with("3 configuration errors"), "{text}");
    assert!(
        text.contains("   = `orders-in` is used by handler `on_orders-in`: src/main.rs:10:1"),
        "{text}"
    );
}

#[test]
fn the_json_report_has_every_field() {
    let errors = Config::load_for(
        LoadOptions::from_text(THREE),
        &program(&["orders-in"], &["orders-out"]),
    )
    .unwrap_err();
    let json = errors.to_json();
    assert_eq!(json.as_array().unwrap().len(), 3);
    assert_eq!(
        json[0],
        serde_json::json!({
            "severity": "error",
            "kind": "unknown-key",
            "file": "application.yaml",
            "line": 13,
            "column": 13,
            "key": "spring.cloud.stream.bindings.orders-out.producer.partition-key-expresion",
            "message": "unknown key `partition-key-expresion`",
            "suggestion": "partition-key-expression",
        })
    );
}

#[test]
fn a_misplaced_key_is_told_where_it_belongs() {
    let yaml = "\
spring.cloud.stream:
  bindings:
    in:
      destination: t
      consumer:
        group: g
        orderly: true
    out:
      destination: t
      concurrency: 2
  rocketmq.bindings:
    out.producer.partition-key-expression: payload.id
";
    assert_eq!(
        told_of(yaml),
        [
            "error unknown-key 6:9 unknown key `group` -> spring.cloud.stream.bindings.in.group",
            "error unknown-key 7:9 unknown key `orderly` -> spring.cloud.stream.rocketmq.bindings.in.consumer.orderly",
            "error unknown-key 10:7 unknown key `concurrency` -> spring.cloud.stream.bindings.out.consumer.concurrency",
            "error unknown-key 12:18 unknown key `partition-key-expression` -> spring.cloud.stream.bindings.out.producer.partition-key-expression",
        ]
    );
}

#[test]
fn mistyped_roots_are_errors_and_other_peoples_are_left_alone() {
    let yaml = "\
sprng.cloud.stream.bindings: {}
spring.cloud.strem: {}
bindry.embedded: true
spring.datasource.url: jdbc:x
server.prot: 80
myapp.limit: 3
";
    assert_eq!(
        told_of(yaml),
        [
            "error unknown-key 1:1 unknown key `sprng` -> spring",
            "error unknown-key 2:14 unknown key `strem` -> stream",
            "error unknown-key 3:1 unknown key `bindry` -> bindery",
            "error unknown-key 5:8 unknown key `prot` -> port",
            "info ignored not Bindery's, left alone: myapp, spring.datasource",
        ]
    );
}

#[test]
fn one_key_twice_is_an_error_that_names_both_places() {
    let yaml = "\
spring.cloud.stream:
  rocketmq.bindings.in.consumer:
    consumeFromWhere: CONSUME_FROM_LAST_OFFSET
    consume-from-where: CONSUME_FROM_FIRST_OFFSET
    orderly: true
    push: { orderly: true }
  bindings.in.destination: t
  bindings:
    in: { destination: t, destination: u }
";
    let errors = load(yaml).unwrap_err();
    let shown: Vec<String> = errors.diagnostics().iter().map(line).collect();
    assert_eq!(
        shown,
        [
            "error duplicate 4:5 `consume-from-where` and `consumeFromWhere` are the same key, given twice",
            "error duplicate 6:13 `orderly` is given twice",
            "error duplicate 9:11 `destination` is given twice",
            "error duplicate 9:27 `destination` is given twice",
        ]
    );
    assert_eq!(
        errors.diagnostics()[0].related[0].0.to_string(),
        "application.yaml:3:5"
    );
}

#[test]
fn a_repeated_section_is_told_once() {
    assert_eq!(
        told_of("server:\n  port: 1\nserver:\n  port: 2\n"),
        ["error duplicate 3:1 `server` is given twice"]
    );
}

#[test]
fn sections_and_values_are_not_mixed_up() {
    assert_eq!(
        told_of(
            "server: 8080\nspring.application.name: {a: b}\nserver.port: [1, 2]\nbindery.config: []\n"
        ),
        [
            "error wrong-type 1:9 `server` is a section of keys, not a value",
            "error wrong-type 2:26 `name` takes text, not a section",
            "error wrong-type 3:15 `1` is not a value for `port`",
            "error wrong-type 4:17 `config` is a section of keys, not a value",
        ]
    );
    assert_eq!(
        told_of("server:\nbindery:\n  topics:\n"),
        Vec::<String>::new()
    );
}

#[test]
fn keys_without_a_run_time_are_not_silently_accepted() {
    let yaml = "\
spring.cloud.stream:
  default.consumer: { batch-mode: false, header-mode: headers }
  bindings.in: { destination: t, group: g, consumer: { batch-mode: true, max-attempts: 1 } }
  rocketmq.bindings.in:
    producer: { message-queue-selector: x, send-failure-channel: y }
    consumer: { trusted-packages: a.b }
  kafka.binder.brokers: x
";
    assert_eq!(
        told_of(yaml),
        [
            "error unsupported 3:56 `batch-mode` is not supported yet",
            "error unsupported 5:17 `message-queue-selector` is not supported yet",
            "error unsupported 5:44 `send-failure-channel` is not supported: it never had an effect; use error-handler-definition",
            "info ignored 6:17 `trusted-packages` is accepted and has no effect here: Java only.",
            "warning ignored 7:3 settings of the `kafka` binder, which is not part of this program",
        ]
    );
}

#[test]
fn syntax_errors_leave_the_documents_before_them_checked() {
    let told = told_of("server.prot: 1\n---\nspring: [\n");
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], "error unknown-key 1:8 unknown key `prot` -> port");
    assert!(told[1].starts_with("error syntax "), "{told:?}");
}

#[test]
fn placeholders_without_value_are_told_at_their_place() {
    let yaml = "\
spring.application.name: app-${REGION}
server.port: ${PORT:80x}
spring.cloud.stream.default-binder: \"${a}\"
a: ${b}
b: ${a}
";
    assert_eq!(
        told_of(yaml),
        [
            "error placeholder 1:30 `${REGION}` has no value -> ${REGION:default}",
            "error wrong-type 2:14 `80x` is not a value for `port`",
            "error placeholder 3:37 placeholders need each other: a → b → a",
            "info ignored not Bindery's, left alone: a, b",
        ]
    );
}

#[test]
fn names_with_special_characters_need_brackets() {
    let yaml = "spring.cloud.stream.bindings: { 'a|b-in-0': { destination: t }, '[a|c-in-0]': { destination: t } }\n";
    assert_eq!(
        told_of(yaml),
        ["error wrong-value 1:34 the name `a|b-in-0` needs brackets: \"[a|b-in-0]\" -> [a|b-in-0]"]
    );
}

#[test]
fn lenient_turns_unknown_keys_into_warnings() {
    let yaml = "bindery.config.compat: lenient\nspring.cloud.stream.nonsense: 3\n";
    assert!(told_of(yaml)[0].starts_with("warning unknown-key 2:21 unknown key `nonsense`"));
    assert!(load(yaml).is_ok());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_loader_panic(text in "[ -~\\n\\t\u{e9}\u{1F600}]{0,200}") {
        let result = Config::load_for(LoadOptions::from_text(text.as_str()), &program(&["in"], &["out"]));
        if let Err(errors) = result {
            proptest::prop_assert!(!errors.to_string().is_empty());
        }
    }

    #[test]
    fn no_arrangement_of_yaml_tokens_makes_the_loader_panic(parts in proptest::collection::vec(0usize..TOKENS.len(), 0..60)) {
        let text: String = parts.iter().map(|part| TOKENS[*part]).collect();
        if let Err(errors) = Config::load(LoadOptions::from_text(text.as_str())) {
            proptest::prop_assert!(!errors.to_json().to_string().is_empty());
        }
    }
}

const TOKENS: [&str; 40] = [
    "spring",
    ":",
    " ",
    "\n",
    "  ",
    "cloud",
    ".",
    "stream",
    "bindings",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "'",
    "\"",
    "&a ",
    "*a",
    "<<",
    "---\n",
    "|\n",
    ">",
    "#",
    "!x ",
    "${",
    "}",
    ":d",
    "\\",
    "bindery:",
    "server: ",
    "port: ",
    "0123",
    "true",
    "~",
    "\t",
    "on-profile: ",
    "[0]",
    "é",
    "?",
];

#[test]
fn a_binding_mistyped_in_one_of_its_two_sections_is_told_once() {
    let yaml = "\
spring.cloud.stream:
  bindings:
    inptu: { destination: t, group: g, consumer.max-attempts: 1 }
  rocketmq.bindings.input.consumer.orderly: true
";
    assert_eq!(
        told(
            LoadOptions::from_text(yaml),
            Some(&program(&["input"], &[]))
        ),
        [
            "error unused-binding 3:5 input `inptu` is configured but no handler, source struct or bridge uses it -> input"
        ]
    );
}

#[test]
fn a_binding_of_an_inactive_profile_may_be_unused() {
    let yaml = "\
spring.cloud.stream.bindings.out.destination: t
---
spring.config.activate.on-profile: audit
spring.cloud.stream.bindings.audit-log: { destination: audit, group: g }
";
    assert_eq!(
        told(LoadOptions::from_text(yaml), Some(&program(&[], &["out"]))),
        Vec::<String>::new()
    );
}

#[test]
fn a_declared_binding_without_any_key_takes_its_name_as_topic_when_that_is_wanted() {
    let yaml = "\
bindery.config.destination-from-name: true
spring.cloud.stream.default.consumer.max-attempts: 2
spring.cloud.stream.bindings.orders-in.group: g
";
    let loaded = Config::load_for(
        LoadOptions::from_text(yaml),
        &program(&["orders-in"], &["orders-out"]),
    )
    .unwrap();
    let of = |name: &str| &loaded.config.bindings[name];
    assert_eq!(of("orders-out").destination, "orders-out");
    assert_eq!(of("orders-in").destination, "orders-in");
    assert_eq!(of("orders-out").consumer.max_attempts, 2);
    let ungrouped = "bindery.config.destination-from-name: true\n";
    let told = told(
        LoadOptions::from_text(ungrouped),
        Some(&program(&["orders-in"], &[])),
    );
    assert!(
        told.iter()
            .any(|line| line.contains("input `orders-in` has no group")),
        "{told:?}"
    );
}
