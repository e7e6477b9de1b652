//! The table as a JSON schema, so that editors complete and check `application.yaml`.

use serde_json::{Map, Value, json};

use super::{
    Place, RowId, Schema,
    row::{Kind, State},
};

/// The schema of a whole file, draft 2020-12. Placeholders are text, so every key also takes a text that holds `${`.
pub(crate) fn json_schema(schema: &Schema) -> Value {
    let mut root = place(schema, schema.root());
    if let Value::Object(object) = &mut root {
        object.insert(
            "$schema".to_owned(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        object.insert("title".to_owned(), json!("Bindery application"));
    }
    root
}

fn place(schema: &Schema, at: &Place) -> Value {
    let value = at.leaf().map(|id| leaf(schema, id));
    if !at.is_section() {
        return value.unwrap_or_else(|| json!({}));
    }
    let mut properties = Map::new();
    for (_, kebab, child) in at.children() {
        properties.insert(kebab.to_owned(), place(schema, child));
    }
    let more = match (at.any(), at.rest()) {
        (Some(any), _) => place(schema, any),
        (None, Some(rest)) => json!({"anyOf": [leaf(schema, rest), {"type": "object"}]}),
        (None, None) => json!(true),
    };
    let section =
        json!({"type": ["object", "null"], "properties": properties, "additionalProperties": more});
    match value {
        Some(value) => json!({"anyOf": [value, section]}),
        None => section,
    }
}

fn leaf(schema: &Schema, id: RowId) -> Value {
    let row = schema.row(id);
    let mut value = kind(&row.kind);
    if let Value::Object(object) = &mut value {
        object.insert("description".to_owned(), json!(row.doc));
        if !row.default.is_empty() {
            object.insert("default".to_owned(), json!(row.default));
        }
        if row.state != State::Live {
            object.insert("deprecated".to_owned(), json!(true));
        }
    }
    value
}

fn kind(kind: &Kind) -> Value {
    let placeholder = json!({"type": "string", "pattern": "\\$\\{"});
    match kind {
        Kind::Bool => {
            json!({"anyOf": [{"type": "boolean"}, {"enum": ["on", "off", "yes", "no"]}, placeholder]})
        }
        Kind::Int { min, max } => {
            json!({"anyOf": [{"type": "integer", "minimum": min, "maximum": max}, placeholder]})
        }
        Kind::Float { min } => json!({"anyOf": [{"type": "number", "minimum": min}, placeholder]}),
        Kind::Duration { .. } | Kind::Size { .. } => json!({"type": ["integer", "string"]}),
        Kind::Text(_) => json!({"type": ["string", "number", "boolean", "null"]}),
        Kind::List { .. } => json!({"type": ["array", "string", "null"]}),
        Kind::Choice(choices) => {
            let names: Vec<&str> = choices
                .iter()
                .filter(|choice| !choice.later)
                .map(|choice| choice.name)
                .collect();
            json!({"anyOf": [{"enum": names}, {"type": "string"}]})
        }
    }
}
