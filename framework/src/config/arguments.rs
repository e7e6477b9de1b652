//! The sources above the environment's variables: `SPRING_APPLICATION_JSON`, the command line, values set in code.
//!
//! ```text
//! --spring.cloud.stream.bindings.orders-in.group=g ──the same walk as a file's key──▶ Layer
//! ```

use std::collections::BTreeSet;

use super::{
    env::APPLICATION_JSON,
    layer::{Collector, Layer},
    node::{Key, Node, NodeValue, Scalar},
    report::{Diagnostic, DiagnosticKind},
    schema::Schema,
    span::{Source, SourceKind, Span},
};

/// `SPRING_APPLICATION_JSON` as a document.
pub(crate) fn application_json(
    variables: &[(String, String)],
    report: &mut Vec<Diagnostic>,
) -> Option<Node> {
    let (name, text) = variables
        .iter()
        .find(|(name, _)| name == APPLICATION_JSON)?;
    let span = Span::whole(Source::named(SourceKind::Environment, name));
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(object)) => {
            Some(json_node(&serde_json::Value::Object(object), &span))
        }
        Ok(_) => {
            let message = format!("{APPLICATION_JSON} must hold an object");
            report.push(Diagnostic::error(DiagnosticKind::Syntax, message).at(Some(&span)));
            None
        }
        Err(error) => {
            let message = format!("{APPLICATION_JSON} is not JSON: {error}");
            report.push(Diagnostic::error(DiagnosticKind::Syntax, message).at(Some(&span)));
            None
        }
    }
}

fn json_node(value: &serde_json::Value, span: &Span) -> Node {
    let value = match value {
        serde_json::Value::Null => NodeValue::Scalar(Scalar {
            text: String::new(),
            plain: true,
            null: true,
        }),
        serde_json::Value::String(text) => NodeValue::Scalar(Scalar::text(text)),
        serde_json::Value::Array(items) => {
            NodeValue::Sequence(items.iter().map(|item| json_node(item, span)).collect())
        }
        serde_json::Value::Object(object) => NodeValue::Mapping(
            object
                .iter()
                .map(|(key, value)| {
                    (
                        Key {
                            text: key.clone(),
                            span: span.clone(),
                            merged: false,
                        },
                        json_node(value, span),
                    )
                })
                .collect(),
        ),
        other => NodeValue::Scalar(Scalar::text(other.to_string())),
    };
    Node {
        span: span.clone(),
        value,
    }
}

/// The layer of `--key=value` arguments. Words without `--` are the program's own, and so are names without a dot,
/// which are kept for placeholders only.
pub(crate) fn command_line(
    schema: &Schema,
    arguments: &[String],
    report: &mut Vec<Diagnostic>,
) -> Layer {
    let mut unowned = BTreeSet::new();
    let mut collector = Collector::new(schema, report, &mut unowned);
    for argument in arguments {
        let Some(text) = argument.strip_prefix("--") else {
            continue;
        };
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        if key.is_empty() || is_flag(key) {
            continue;
        }
        let span = Span::whole(Source::named(SourceKind::CommandLine, format!("--{key}")));
        if key.contains('.') {
            collector.pair(
                &Key {
                    text: key.to_owned(),
                    span: span.clone(),
                    merged: false,
                },
                &Node::text(value, &span),
            );
        } else {
            collector.foreign(key, key, value, &span);
        }
    }
    collector.finish()
}

/// The layer of values set in code.
pub(crate) fn code(
    schema: &Schema,
    values: &[(String, String)],
    report: &mut Vec<Diagnostic>,
) -> Layer {
    let mut unowned = BTreeSet::new();
    let mut collector = Collector::new(schema, report, &mut unowned);
    for (key, value) in values {
        let span = Span::whole(Source::named(SourceKind::Code, key));
        collector.pair(
            &Key {
                text: key.clone(),
                span: span.clone(),
                merged: false,
            },
            &Node::text(value, &span),
        );
    }
    collector.finish()
}

/// Arguments that ask the program for something instead of configuring it.
pub(crate) fn is_flag(key: &str) -> bool {
    let flags = ["config", "check", "schema", "asyncapi", "explain", "json"];
    key.strip_prefix("bindery.")
        .is_some_and(|flag| flags.contains(&flag))
}
