//! Payloads as roots: types kept, and only the path read.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::{SerdeRoot, Value, parse, to_value};

#[derive(Serialize)]
struct Customer {
    name: &'static str,
    id: Option<i32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Order<'a> {
    id: i64,
    line_count: u8,
    customer: Option<Customer>,
    tags: BTreeMap<&'static str, i32>,
    large: Counted<'a>,
}

/// Counts how often it is written.
struct Counted<'a>(&'a Cell<u32>);

impl Serialize for Counted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.set(self.0.get() + 1);
        serializer.serialize_str("large")
    }
}

fn order(written: &Cell<u32>) -> Order<'_> {
    Order {
        id: -7,
        line_count: 2,
        customer: Some(Customer {
            name: "Ann",
            id: Some(-3),
        }),
        tags: BTreeMap::from([("a", 1)]),
        large: Counted(written),
    }
}

fn of(expression: &str) -> Value {
    parse(expression)
        .unwrap()
        .eval(&SerdeRoot(&order(&Cell::new(0))))
        .unwrap()
}

#[test]
fn rust_s_integer_types_are_java_s() {
    assert_eq!(of("id"), Value::Long(-7));
    assert_eq!(of("lineCount"), Value::Int(2));
    assert_eq!(of("customer.id"), Value::Int(-3));
    assert_eq!(of("#root['customer']['name']"), Value::from("Ann"));
    assert_eq!(of("tags['a']"), Value::Int(1));
    assert_eq!(of("tags.missing"), Value::Null);
    assert_eq!(
        to_value(&(1_u64 << 63)).unwrap().to_string(),
        "9223372036854775808"
    );
}

#[test]
fn a_path_reads_nothing_beside_it() {
    let written = Cell::new(0);
    let order = order(&written);
    parse("customer.name")
        .unwrap()
        .eval(&SerdeRoot(&order))
        .unwrap();
    assert_eq!(written.get(), 0);
    parse("large").unwrap().eval(&SerdeRoot(&order)).unwrap();
    assert_eq!(written.get(), 1);
}

#[test]
fn a_missing_field_names_what_there_is() {
    let error = parse("customer.nmae")
        .unwrap()
        .eval(&SerdeRoot(&order(&Cell::new(0))))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`Customer` has no field `nmae` (fields: name, id), at character 10 of `customer.nmae`"
    );
}

#[test]
fn none_is_null() {
    let written = Cell::new(0);
    let order = Order {
        customer: None,
        ..order(&written)
    };
    let value = |text: &str| parse(text).unwrap().eval(&SerdeRoot(&order));
    assert_eq!(value("customer?.name").unwrap(), Value::Null);
    assert_eq!(value("customer.name").unwrap_err().code(), Some("EL1007E"));
}

#[test]
fn json_text_has_fields_and_other_text_has_none() {
    let root = Value::map([(
        Value::from("payload"),
        Value::from(r#"{"id": 42, "deep": {"n": 1.5}}"#),
    )]);
    let of = |text: &str| parse(text).unwrap().eval(&root);
    assert_eq!(of("payload.id").unwrap(), Value::Int(42));
    assert_eq!(of("payload.deep.n").unwrap(), Value::Double(1.5));
    assert_eq!(of("payload.missing").unwrap(), Value::Null);
    assert_eq!(of("'plain'.id").unwrap_err().code(), Some("EL1008E"));
}
