//! The files of the original application, unchanged, as far as their run time exists.

use super::*;

/// The warnings about `yaml`, with infos.
fn original(yaml: &str, inputs: &[&str], outputs: &[&str]) -> (Config, Vec<String>) {
    let loaded = Config::load_for(LoadOptions::from_text(yaml), &program(inputs, outputs))
        .unwrap_or_else(|errors| panic!("{errors}"));
    let warnings = loaded.warnings.iter().map(line).collect();
    (loaded.config, warnings)
}

#[test]
fn the_first_example_loads_with_two_remarks_and_a_warning_about_repetitions() {
    let yaml = "\
spring:
  mvc:
    throw-exception-if-no-handler-found: true
  resources:
    add-mappings: false
  application:
    name: mq-example
  cloud:
    stream:
      bindings:
        input:
          content-type: application/json
          destination: test-topic
          group: test-group
        output:
          content-type: application/json
          destination: test-topic
      rocketmq:
        binder:
          name-server: 127.0.0.1:9876
";
    let (config, warnings) = original(yaml, &["input"], &["output"]);
    assert_eq!(config.application_name, "mq-example");
    assert_eq!(
        config.bindings["input"].group.as_deref(),
        Some("test-group")
    );
    assert_eq!(
        warnings,
        [
            "info ignored 3:5 `throw-exception-if-no-handler-found` is accepted and has no effect here: An unknown path is always answered with JSON.",
            "info ignored 5:5 `add-mappings` is accepted and has no effect here: No static files are served.",
            "warning surprise 11:9 a message that always fails is handled 51 times by `input`: 3 attempts × (1 + 16 redeliveries)",
        ]
    );
}

#[test]
fn the_ordered_example_means_what_its_keys_say() {
    let yaml = "\
spring:
  cloud:
    stream:
      bindings:
        input:
          content-type: application/json
          destination: test-topic
          group: consumer-group
        output-order:
          content-type: application/json
          destination: test-topic
          producer:
            partition-key-expression: payload['id']
      rocketmq:
        binder:
          name-server: 127.0.0.1:9876
        bindings:
          output-order:
            producer:
              group: producer-group
              sync: true
          input:
            consumer:
              enabled: true
              broadcasting: false
              orderly: true
";
    let (config, warnings) = original(yaml, &["input"], &["output-order"]);
    assert_eq!(warnings, Vec::<String>::new());
    assert!(config.rocketmq.binding("input").consumer.orderly);
    assert_eq!(
        config.rocketmq.binding("output-order").producer.send_type,
        SendType::Sync
    );
    assert_eq!(
        config
            .rocketmq
            .binding("output-order")
            .producer
            .group
            .as_deref(),
        Some("producer-group")
    );
}

#[test]
fn the_transactional_example_needs_its_listener() {
    let yaml = "\
spring.cloud.stream:
  bindings:
    input: { destination: TransactionTopic, group: g, consumer.max-attempts: 1 }
    output: { destination: TransactionTopic }
  rocketmq.bindings:
    output:
      producer:
        producerType: Trans
        group: transaction-producer-group
        transactionListener: myTransactionListener
    input:
      consumer:
        consumeFromWhere: CONSUME_FROM_TIMESTAMP
        consumeTimestamp: 20220117110148
";
    assert_eq!(
        told(
            LoadOptions::from_text(yaml),
            Some(&program(&["input"], &["output"]))
        ),
        [
            "error unknown-name 10:30 output `output`: the program has no transaction listener `myTransactionListener`",
        ]
    );
}

/// A file with one input that begins where `start` says.
fn beginning(start: &str) -> String {
    format!(
        "\
spring.cloud.stream:
  bindings:
    input: {{ destination: test-topic3, group: backtracking-consumer-group, consumer.max-attempts: 1 }}
  rocketmq:
    binder.name-server: 127.0.0.1:9876
    bindings.input.consumer: {{ {start} }}
"
    )
}

#[test]
fn the_example_that_goes_back_in_time_begins_at_that_time() {
    let yaml =
        beginning("consumeFromWhere: CONSUME_FROM_TIMESTAMP, consumeTimestamp: 20220117110148");
    let (config, warnings) = original(&yaml, &["input"], &[]);
    assert_eq!(warnings, Vec::<String>::new());
    let time = consume_timestamp("20220117110148", None).unwrap();
    assert_eq!(
        config.rocketmq.binding("input").consumer.consume_from,
        ConsumeFrom::Timestamp(time)
    );
}

#[test]
fn a_time_that_is_none_or_that_nothing_asks_for_is_an_error() {
    let told = |start: &str| told_of(&beginning(start)).join("\n");
    let nothing =
        told("consumeFromWhere: CONSUME_FROM_TIMESTAMP, consumeTimestamp: 20221301000000");
    assert!(nothing.starts_with("error wrong-value"), "{nothing}");
    let unasked = told("consumeTimestamp: 20220117110148");
    assert!(unasked.starts_with("error conflict"), "{unasked}");
    let future =
        told("consumeFromWhere: CONSUME_FROM_TIMESTAMP, consumeTimestamp: 2099-01-01T00:00:00Z");
    assert!(future.starts_with("warning surprise"), "{future}");
}
