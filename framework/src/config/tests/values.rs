//! Values: types, defaults, and what is merged from where.

use std::time::Duration;

use super::{
    super::{schema::SCHEMA, *},
    *,
};

#[test]
fn every_default_of_the_table_is_the_default_of_the_struct() {
    let mut yaml = String::from(
        "spring.cloud.stream.bindings.x: { destination: t, group: g }\nspring.cloud.stream.rocketmq.bindings.x:\n",
    );
    for placed in SCHEMA
        .rows()
        .filter(|placed| placed.row.state == schema::State::Live && !placed.row.default.is_empty())
    {
        let path = placed.pattern.join(".").replace('*', "x");
        let line = format!("{path}: \"{}\"\n", placed.row.default);
        yaml.push_str(&line);
    }
    let plain = "spring.cloud.stream.bindings.x: { destination: t, group: g }\n";
    let (written, plain) = (loaded(&yaml).config, loaded(plain).config);
    assert_eq!(
        stripped(&written),
        stripped(&plain)
            .replace("port: None", "port: Some(8080)")
            .replace(
                "topics: {}",
                "topics: {\"x\": TopicConfig { queues: 8, perm: 6, order: false }}"
            )
    );
}

/// The configuration's debug text without positions.
fn stripped(config: &Config) -> String {
    let text = format!("{config:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(", positions: ") {
        out += before;
        let mut depth = 0;
        let end = after.find(|c| {
            match c {
                '{' | '(' => depth += 1,
                '}' | ')' => depth -= 1,
                _ => {}
            }
            depth < 0 || (depth == 0 && c == '}')
        });
        let end = end.unwrap_or(after.len() - 1);
        rest = if after[..end].contains('{') {
            &after[end + 1..]
        } else {
            &after[end..]
        };
    }
    out + rest
}

#[test]
fn defaults_are_merged_into_each_binding_and_the_binders_group_into_producers() {
    let yaml = "\
spring:
  application.name: shop
  cloud.stream:
    default: { content-type: text/plain, consumer: { max-attempts: 2, backOffInitialInterval: 5 } }
    bindings:
      in: { destination: 'a, b', group: g, consumer: { max-attempts: 1 } }
      out: { destination: c, content-type: application/json, producer: { partition-key-expression: \"payload['id']\" } }
    rocketmq:
      binder: { name-server: 'a:1;b:2', group: shop-producers }
      default: { consumer: { orderly: true }, producer: { sendMsgTimeout: 5000 } }
      bindings:
        in: { consumer: { push: { suspendCurrentQueueTimeMillis: 2s }, maxReconsumeTimes: 3 } }
        out: { producer: { producerType: orderly, retryAnotherBrokerWhenNotStoreOK: true } }
server: { port: 0, servlet.context-path: /shop/ }
management.endpoints.web.exposure.include: health,bindings
logging.level: { root: warn, my_shop.handlers: DEBUG }
bindery: { shutdown.grace: 5, topics: { a: { queues: 3 }, auto-create: never } }
";
    let config = loaded(yaml).config;
    assert_eq!(config.application_name, "shop");
    let (input, output) = (&config.bindings["in"], &config.bindings["out"]);
    assert_eq!(input.destinations().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        (input.consumer.max_attempts, input.consumer.back_off.initial),
        (1, Duration::from_millis(5))
    );
    assert_eq!(
        (input.content_type.as_str(), output.content_type.as_str()),
        ("text/plain", "application/json")
    );
    assert_eq!(
        output.producer.partition_key_expression.as_deref(),
        Some("payload['id']")
    );
    let rocketmq = config.rocketmq.binding("in");
    assert!(rocketmq.consumer.orderly);
    assert_eq!(
        (
            rocketmq.consumer.max_reconsume_times,
            rocketmq.consumer.suspend_current_queue_time
        ),
        (3, Duration::from_secs(2))
    );
    let rocketmq = config.rocketmq.binding("out");
    assert_eq!(
        (
            rocketmq.producer.producer_type,
            rocketmq.producer.retry_another_broker
        ),
        (ProducerType::Orderly, true)
    );
    assert_eq!(
        (
            rocketmq.producer.group.as_deref(),
            rocketmq.producer.send_msg_timeout
        ),
        (Some("shop-producers"), Duration::from_secs(5))
    );
    assert_eq!(
        config
            .rocketmq
            .binding("made-at-run-time")
            .producer
            .send_msg_timeout,
        Duration::from_secs(5)
    );
    assert_eq!(
        (config.server.port, config.server.context_path.as_str()),
        (Some(0), "/shop")
    );
    assert!(config.management.exposes("bindings") && !config.management.exposes("metrics"));
    assert_eq!(config.logging.directives(), "warn,my_shop::handlers=debug");
    assert_eq!(
        (config.bindery.shutdown_grace, config.bindery.auto_create),
        (Duration::from_secs(5), AutoCreate::Never)
    );
    assert_eq!(config.bindery.topics["a"].queues, 3);
    assert_eq!(
        input
            .positions
            .of("consumer.max-attempts")
            .map(ToString::to_string)
            .as_deref(),
        Some("application.yaml:6:70")
    );
    assert!(
        input.positions.own("content-type").is_none()
            && input.positions.of("content-type").is_some()
    );
}

#[test]
fn a_group_keeps_its_source_text_with_a_warning() {
    let yaml = "spring.cloud.stream.bindings.in:\n  destination: t\n  group: 0123\n  consumer.max-attempts: 1\n";
    let loaded = loaded(yaml);
    assert_eq!(loaded.config.bindings["in"].group.as_deref(), Some("0123"));
    assert_eq!(
        loaded.warnings.iter().map(line).collect::<Vec<_>>(),
        [
            "warning surprise 3:10 `0123` for `group` is taken as it is written; Java would read `83` -> '0123'",
        ]
    );
}

#[test]
fn wrong_values_are_told_with_what_is_accepted() {
    let yaml = "\
server.port: 70000
bindery.shutdown.grace: soon
spring.cloud.stream.default.consumer: { concurrency: 0, max-attempts: 1.5, auto-startup: maybe }
spring.cloud.stream.rocketmq.default.consumer: { suspend-current-queue-time-millis: 5, delay-level-when-next-consume: 19 }
spring.cloud.stream.rocketmq.default.producer: { send-type: asinc, max-message-size: 4kb }
spring.cloud.stream.rocketmq.binder.name-server: [a:1, b]
spring.cloud.stream.bindings.x: { destination: a/b, group: 'a b', content-type: json }
server.servlet.context-path: shop
";
    let told = told_of(yaml);
    let places: Vec<&str> = told
        .iter()
        .map(|line| line.split(' ').nth(2).unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "1:14", "2:25", "3:54", "3:71", "3:90", "4:85", "4:119", "5:61", "5:86", "6:56",
            "7:48", "7:60", "7:81", "8:30"
        ],
        "{told:#?}"
    );
    assert_eq!(
        told[7],
        "error wrong-value 5:61 `asinc` is not a value for `send-type` -> Async"
    );
}

#[test]
fn the_json_schema_describes_every_fixed_key() {
    let schema = json_schema();
    let binding = &schema["properties"]["spring"]["properties"]["cloud"]["properties"]["stream"]["properties"]
        ["bindings"]["additionalProperties"];
    assert_eq!(
        binding["properties"]["group"]["description"],
        "The consumer group of an input; its members share the messages."
    );
    assert_eq!(
        schema["properties"]["server"]["properties"]["port"]["default"],
        "8080"
    );
}
