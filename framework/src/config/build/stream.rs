//! `spring.cloud.stream.bindings.*` with `spring.cloud.stream.default.*` below them.

use crate::config::{
    typed::{BindingConfig, Config, ConsumerConfig, Positions},
    typing::Values,
};

use super::{Named, Reader, active_names};

const STREAM: &str = "spring.cloud.stream";
pub(super) const BINDINGS: &str = "spring.cloud.stream.bindings";
const DEFAULT: &str = "spring.cloud.stream.default";

pub(super) fn read(values: &Values, names: &[Named], config: &mut Config) {
    let mut positions = Positions::default();
    let mut stream = Reader::new(values, &mut positions).below(STREAM, None, "");
    stream.list("output-bindings", &mut config.output_bindings);
    stream.duration("binding-retry-interval", &mut config.binding_retry_interval);
    config.default_binder = stream.optional_text("default-binder");
    binding(values, None, &mut config.binding_defaults);
    for (name, span) in active_names(names, BINDINGS) {
        let mut read = BindingConfig::new(name, "");
        read.positions.set_section(span.clone());
        binding(values, Some(name), &mut read);
        if read.destination.is_empty() && config.bindery.destination_from_name {
            name.clone_into(&mut read.destination);
        }
        config.bindings.insert(name.to_owned(), read);
    }
}

/// Reads one binding, or the defaults when `name` is none.
fn binding(values: &Values, name: Option<&str>, into: &mut BindingConfig) {
    let BindingConfig {
        destination,
        group,
        content_type,
        binder,
        error_handler,
        consumer,
        producer,
        positions,
        ..
    } = into;
    let mut own = reader(values, positions, name, "");
    own.text("destination", destination);
    *group = own.optional_text("group");
    own.text("content-type", content_type);
    *binder = own.optional_text("binder");
    *error_handler = own.optional_text("error-handler-definition");
    self::consumer(
        &mut reader(values, positions, name, "consumer").prefixed("consumer."),
        consumer,
    );
    let mut produces = reader(values, positions, name, "producer").prefixed("producer.");
    producer.partition_key_expression = produces.optional_text("partition-key-expression");
    producer.partition_key_extractor = produces.optional_text("partition-key-extractor-name");
    producer.partition_selector_expression =
        produces.optional_text("partition-selector-expression");
    producer.partition_selector = produces.optional_text("partition-selector-name");
    produces.bool("error-channel-enabled", &mut producer.error_channel_enabled);
    producer.partition_count = produces.optional_number("partition-count");
}

fn reader<'a>(
    values: &'a Values,
    positions: &'a mut Positions,
    name: Option<&str>,
    below: &str,
) -> Reader<'a> {
    let reader = Reader::new(values, positions);
    let reader = if name.is_some() {
        reader.below(BINDINGS, name, below)
    } else {
        reader
    };
    reader.below(DEFAULT, None, below)
}

fn consumer(read: &mut Reader<'_>, into: &mut ConsumerConfig) {
    read.bool("auto-startup", &mut into.auto_startup);
    read.number("concurrency", &mut into.concurrency);
    read.bool("partitioned", &mut into.partitioned);
    read.number("max-attempts", &mut into.max_attempts);
    read.duration("back-off-initial-interval", &mut into.back_off.initial);
    read.float("back-off-multiplier", &mut into.back_off.multiplier);
    read.duration("back-off-max-interval", &mut into.back_off.max);
    read.bool("default-retryable", &mut into.default_retryable);
}
