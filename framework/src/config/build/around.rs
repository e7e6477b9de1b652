//! The sections beside the bindings.

use std::path::PathBuf;

use crate::config::{
    typed::{
        AutoCreate, BinderyConfig, Compat, Config, EmbeddedConfig, LogLevel, Positions,
        ShowDetails, TopicConfig,
    },
    typing::Values,
    value::Value,
};

use super::{Named, Reader, active_names};

const TOPICS: &str = "bindery.topics";

pub(super) fn read(values: &Values, names: &[Named], config: &mut Config) {
    let mut positions = Positions::default();
    Reader::new(values, &mut positions)
        .below("spring.application", None, "")
        .text("name", &mut config.application_name);
    server(values, config);
    management(values, config);
    logging(values, config);
    bindery(values, names, &mut config.bindery);
    config.embedded = embedded(values);
}

fn server(values: &Values, config: &mut Config) {
    let server = &mut config.server;
    let mut read = Reader::new(values, &mut server.positions).below("server", None, "");
    server.port = read.optional_number("port");
    server.address = read
        .optional_text("address")
        .and_then(|text| text.parse().ok());
    if let Some(path) = read.optional_text("servlet.context-path") {
        path.trim_end_matches('/')
            .clone_into(&mut server.context_path);
    }
}

fn management(values: &Values, config: &mut Config) {
    let into = &mut config.management;
    let mut positions = Positions::default();
    let mut read = Reader::new(values, &mut positions).below("management", None, "");
    read.text("endpoints.web.base-path", &mut into.base_path);
    read.list("endpoints.web.exposure.include", &mut into.include);
    read.list("endpoints.web.exposure.exclude", &mut into.exclude);
    let words = [
        ("never", ShowDetails::Never),
        ("when-authorized", ShowDetails::WhenAuthorized),
        ("always", ShowDetails::Always),
    ];
    read.choice(
        "endpoint.health.show-details",
        &words,
        &mut into.show_details,
    );
}

fn logging(values: &Values, config: &mut Config) {
    for (path, typed) in values {
        if let ([first, second, target], Value::Choice(word)) = (path.as_slice(), &typed.value)
            && first == "logging"
            && second == "level"
        {
            config.logging.levels.insert(target.clone(), level(word));
        }
    }
}

fn level(word: &str) -> LogLevel {
    match word {
        "OFF" => LogLevel::Off,
        "FATAL" | "ERROR" => LogLevel::Error,
        "WARN" => LogLevel::Warn,
        "DEBUG" => LogLevel::Debug,
        "TRACE" => LogLevel::Trace,
        _ => LogLevel::Info,
    }
}

fn bindery(values: &Values, names: &[Named], into: &mut BinderyConfig) {
    let mut positions = Positions::default();
    let mut read = Reader::new(values, &mut positions).below("bindery", None, "");
    read.bool("config.allow-unused", &mut into.allow_unused);
    read.bool(
        "config.destination-from-name",
        &mut into.destination_from_name,
    );
    read.choice(
        "config.compat",
        &[("strict", Compat::Strict), ("lenient", Compat::Lenient)],
        &mut into.compat,
    );
    read.choice(
        "topics.auto-create",
        &[
            ("declared", AutoCreate::Declared),
            ("never", AutoCreate::Never),
        ],
        &mut into.auto_create,
    );
    read.duration("shutdown.grace", &mut into.shutdown_grace);
    read.bool("consumer.start-like-java", &mut into.start_like_java);
    read.bool(
        "consumer.reset-offsets-on-start",
        &mut into.reset_offsets_on_start,
    );
    for (name, span) in active_names(names, TOPICS) {
        let mut topic = TopicConfig::default();
        topic.positions.set_section(span.clone());
        let mut read = Reader::new(values, &mut topic.positions).below(TOPICS, Some(name), "");
        read.number("queues", &mut topic.queues);
        read.number("perm", &mut topic.perm);
        read.bool("order", &mut topic.order);
        into.topics.insert(name.to_owned(), topic);
    }
}

/// Present when it is switched on; a section of settings alone switches nothing on.
fn embedded(values: &Values) -> Option<EmbeddedConfig> {
    let EmbeddedConfig {
        mut namesrv_port,
        mut broker_port,
        mut host,
        store_dir,
        mut broker,
        mut positions,
    } = EmbeddedConfig::default();
    let mut read = Reader::new(values, &mut positions).below("bindery.embedded", None, "");
    let mut enabled = false;
    read.bool("enabled", &mut enabled);
    read.number("namesrv-port", &mut namesrv_port);
    read.number("broker-port", &mut broker_port);
    read.text("host", &mut host);
    let store_dir = read
        .optional_text("store-dir")
        .map_or(store_dir, PathBuf::from);
    for (path, typed) in values {
        if let ([first, second, third, key], Value::Text(text)) = (path.as_slice(), &typed.value)
            && [first, second, third].map(String::as_str) == ["bindery", "embedded", "broker"]
        {
            broker.insert(key.clone(), text.clone());
        }
    }
    enabled.then_some(EmbeddedConfig {
        namesrv_port,
        broker_port,
        host,
        store_dir,
        broker,
        positions,
    })
}
