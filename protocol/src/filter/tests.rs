//! The filter against answers recorded from Apache RocketMQ 5.3.3 (`tests/golden/oracle/sqlfilter.jsonl`), against a model,
//! and against texts made to break it.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use proptest::prelude::*;
use serde_json::Value;

use super::number::{self, Number};
use super::*;
use crate::message::Properties;

/// Cases in which Bindery differs on purpose: all of them have text behind a complete expression, which Java ignores. The
/// filter would let through nothing, or everything, that its writer had in mind.
const TRAILING_TEXT: &[u64] = &[
    146, 206, 215, 1021, 1186, 1189, 1190, 1193, 1194, 1198, 1199, 1200, 1201, 1203, 1209, 1211,
    1212, 1219, 1220, 1231, 1280, 1366,
];

fn cases() -> (Value, Vec<Value>) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/oracle/sqlfilter.jsonl"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    (lines.next().unwrap(), lines.collect())
}

fn property_set(header: &Value, name: &Value) -> Properties {
    let set = header["propertySets"][name.as_str().unwrap()].clone();
    let pair = |(name, value): (&String, &Value)| (name.clone(), value.as_str().unwrap().into());
    set.as_object()
        .unwrap()
        .iter()
        .map(pair)
        .collect::<Vec<(String, String)>>()
        .into_iter()
        .collect()
}

fn assert_refused(error: &SqlError, expected: &Value, case: &Value) {
    let kind = match error.kind() {
        SqlErrorKind::Syntax => "syntax",
        SqlErrorKind::Semantic => "semantic",
    };
    assert_eq!(expected["compile"], kind, "{error}: {case}");
    if let Some(line) = expected.get("line") {
        assert_eq!(
            (line.as_u64(), expected["column"].as_u64()),
            (Some(error.line as u64), Some(error.column as u64)),
            "{error}: {case}"
        );
    }
}

#[test]
fn every_recorded_answer_is_ours() {
    let (header, cases) = cases();
    let mut trailing = Vec::new();
    for case in &cases {
        let (input, expected) = (&case["in"], &case["out"]);
        let filter = match SqlFilter::parse(input["expr"].as_str().unwrap()) {
            Ok(filter) => filter,
            Err(error) if expected.get("compile").is_none() => {
                assert!(
                    matches!(error.problem, SqlProblem::Trailing { .. }),
                    "{error}: {case}"
                );
                trailing.push(case["id"].as_u64().unwrap());
                continue;
            }
            Err(error) => {
                assert_refused(&error, expected, case);
                continue;
            }
        };
        let properties = property_set(&header, &input["props"]);
        let value = match filter.evaluate(&properties) {
            Ok(Truth::True) => "TRUE",
            Ok(Truth::False) => "FALSE",
            Ok(Truth::Unknown) => "NULL",
            Err(_) => "an error",
        };
        let wanted = expected
            .get("value")
            .map_or("an error", |value| value.as_str().unwrap());
        assert!(expected.get("compile").is_none(), "accepted: {case}");
        assert_eq!(value, wanted, "{case}");
        assert_eq!(filter.matches(&properties), expected["delivered"], "{case}");
        assert_stored_text_answers_alike(&filter, properties, case);
    }
    assert_eq!(trailing, TRAILING_TEXT);
}

/// A stored text holds no empty values, so they are left out on both sides.
fn assert_stored_text_answers_alike(filter: &SqlFilter, mut properties: Properties, case: &Value) {
    properties.remove("e");
    let text = properties.encode();
    assert_eq!(
        filter.evaluate(&StoredProperties(text.as_bytes())),
        filter.evaluate(&properties),
        "{case}"
    );
}

#[test]
fn mistakes_are_explained_with_their_place() {
    for (text, message) in [
        ("", "found the end, expected a value, at line 0, column 0"),
        (
            "a LIKE 'x%'",
            "found `LIKE` behind a complete expression (there is no LIKE and no arithmetic), at line 1, column 3",
        ),
        ("a != 1", "'!' has no meaning here, at line 1, column 3"),
        (
            "a = 1\r\nAND b >\n 'x'",
            "the text 'x' has no order, only numbers and properties have one, at line 3, column 2",
        ),
        (
            "a IN ('x' 'y')",
            "found `'y'`, expected , or ), at line 1, column 11",
        ),
        (
            "(a = 1) AND 5",
            "5 is not a condition, at line 1, column 13",
        ),
        (
            "a = NULL",
            "NULL can't be compared, write IS NULL or IS NOT NULL, at line 1, column 5",
        ),
        (
            "a NOT LIKE 'x'",
            "found `NOT`, expected an operator, AND or OR, at line 1, column 3",
        ),
    ] {
        assert_eq!(SqlFilter::parse(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_comment_may_end_the_text() {
    for text in ["a = 1 -- it's one", "a = 1--1", "a = 1 /* one */"] {
        let filter = SqlFilter::parse(text).unwrap();
        assert!(
            filter.matches(&Properties::from_iter([("a", "1")])),
            "{text}"
        );
        assert_eq!(filter.to_string(), text);
    }
}

#[test]
fn a_stored_text_that_is_not_utf8_is_read_as_java_does() {
    let filter = SqlFilter::parse("a CONTAINS '\u{fffd}' AND b = 1").unwrap();
    assert!(filter.matches(&StoredProperties(b"b\x011\x02a\x01x\xff")));
}

#[test]
fn failures_name_what_could_not_be_compared() {
    let properties = Properties::from_iter([("a", "2.5"), ("ts", "1700000000000")]);
    for (text, message) in [
        ("a > 2", "the text \"2.5\" is not a 32-bit integer"),
        (
            "ts > 0",
            "the text \"1700000000000\" is not a 32-bit integer",
        ),
        ("a > 2147483648", "the text \"2.5\" is not a 64-bit integer"),
        (
            "TRUE = a",
            "a truth value can't be compared with the text \"2.5\"",
        ),
    ] {
        let filter = SqlFilter::parse(text).unwrap();
        assert_eq!(
            filter.evaluate(&properties).unwrap_err().to_string(),
            message
        );
        assert!(!filter.matches(&properties));
    }
}

/// Runs on a stack smaller than any thread of the broker has.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    thread.spawn(run).unwrap().join().unwrap();
}

#[test]
fn no_nesting_overflows_the_stack() {
    on_a_small_stack(|| {
        let times = 10_000;
        let nested = [
            "(".repeat(times),
            "NOT ".repeat(times) + "a",
            "- ".repeat(times) + "a = 1",
            format!("a{}", " IS NULL".repeat(times)),
            format!("a{}", " = a".repeat(times)),
            format!("a{}", " NOT CONTAINS 'a'".repeat(times)),
            format!("{}a = 1{}", "(".repeat(times), ")".repeat(times)),
            format!("{}a{}", "(".repeat(300), " = b = c)".repeat(300)),
            format!("{}a = 1{}", "NOT (b OR ".repeat(300), ")".repeat(300)),
        ];
        for text in &nested {
            let error = SqlFilter::parse(text).unwrap_err();
            let long = text.get(..40).unwrap_or(text);
            assert_eq!(
                error.problem,
                SqlProblem::TooDeep { max: MAX_DEPTH },
                "{long}"
            );
        }
    });
}

#[test]
fn the_deepest_allowed_nesting_is_evaluated() {
    on_a_small_stack(|| {
        let properties = Properties::from_iter([("a", "1"), ("b", "2"), ("c", "y")]);
        let opened = |open: &str, inner: &str, times| {
            format!("{}{inner}{}", open.repeat(times), ")".repeat(times))
        };
        // Three conditions a level: OR, AND, equality.
        let deepest = [
            opened("(", "a = 1", MAX_DEPTH),
            opened("(", "a = 1 OR b = 2", MAX_DEPTH),
            opened("(b = 3 OR b = 2 AND TRUE = ", "(a = 1)", MAX_DEPTH / 3),
            opened("(NOT ", "(a = 1)", (MAX_DEPTH - 1) / 2 * 2),
            "NOT ".repeat(MAX_DEPTH / 2 * 2 - 2) + "(a = 1)",
            format!("a = 1{}", " = TRUE".repeat(MAX_DEPTH - 1)),
        ];
        for text in &deepest {
            let filter = SqlFilter::parse(text).unwrap();
            assert!(filter.matches(&properties), "{text}");
        }
        let last = SqlFilter::parse(&format!("{} = TRUE", deepest[5])).unwrap_err();
        assert_eq!(last.problem, SqlProblem::TooDeep { max: MAX_DEPTH });
    });
}

#[test]
fn long_rows_are_not_deep() {
    let properties = Properties::from_iter([("a", "1")]);
    let plain = vec!["a = 2"; 10_000].join(" OR ") + " OR a = 1";
    let from_the_left = format!(
        "{}a = 2{} OR a = 1",
        "(".repeat(400),
        " OR a = 2)".repeat(400)
    );
    let signs = "+ ".repeat(10_000) + "1 = a";
    for text in [plain, from_the_left, signs] {
        assert!(SqlFilter::parse(&text).unwrap().matches(&properties));
    }
}

#[test]
fn a_text_beyond_the_limit_is_not_even_looked_at() {
    let name = "é".repeat(MAX_LENGTH / 2);
    let text = format!("a = '{name}'");
    let error = SqlFilter::parse(&text).unwrap_err();
    assert_eq!(
        error.problem,
        SqlProblem::TooLong {
            length: text.len(),
            max: MAX_LENGTH
        }
    );
    let longest = format!("a = {}1", " ".repeat(MAX_LENGTH - 5));
    assert!(
        SqlFilter::parse(&longest)
            .unwrap()
            .matches(&Properties::from_iter([("a", "1")]))
    );
    // Each sign could begin a comment.
    let signs = "-".repeat(MAX_LENGTH - 1) + "\t";
    assert!(SqlFilter::parse(&signs).is_err());
}

#[test]
fn texts_are_read_as_java_reads_numbers() {
    for (text, value) in [
        ("0", Some(0)),
        ("+7", Some(7)),
        ("-0012", Some(-12)),
        ("٣٤", Some(34)),
        ("９", Some(9)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("", None),
        ("-", None),
        ("+-1", None),
        (" 1", None),
        ("1L", None),
        ("𝟙", None),
    ] {
        assert_eq!(number::integer(text), value, "{text}");
    }
    for (text, value) in [
        (" 5 ", Some(5.0)),
        ("5d", Some(5.0)),
        ("-.5F", Some(-0.5)),
        ("5.", Some(5.0)),
        ("1e3", Some(1000.0)),
        ("1E+400", Some(f64::INFINITY)),
        ("-Infinity", Some(f64::NEG_INFINITY)),
        ("infinity", None),
        ("inf", None),
        ("nan", None),
        ("--1", None),
        ("1e", None),
        (".", None),
        ("d", None),
        ("5dd", None),
        ("", None),
        ("0x10", None),
        ("٣", None),
    ] {
        assert_eq!(number::double(text), value, "{text}");
    }
    assert!(number::double("NaN").is_some_and(f64::is_nan));
}

#[test]
fn doubles_are_in_javas_order() {
    let order = [
        f64::NEG_INFINITY,
        -1.0,
        -0.0,
        0.0,
        1.0,
        f64::INFINITY,
        f64::NAN,
    ];
    for (at, left) in order.iter().enumerate() {
        for (other, right) in order.iter().enumerate() {
            assert_eq!(number::compare_doubles(*left, *right), at.cmp(&other));
        }
    }
    assert!(number::compare_doubles(-f64::NAN, f64::NAN).is_eq());
}

/// A condition whose meaning is spelled out once more, as simply as it goes.
#[derive(Debug, Clone)]
enum Model {
    Compare(usize, usize, i32),
    Between(usize, i32, i32),
    Within(usize, Vec<i32>),
    IsNull(usize),
    Not(Box<Model>),
    And(Box<Model>, Box<Model>),
    Or(Box<Model>, Box<Model>),
}

/// A property that had to be a number and is none.
struct Failed;

const NAMES: [&str; 4] = ["a", "B", "_c", "$d"];
const OPERATORS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

impl Model {
    fn text(&self) -> String {
        match self {
            Self::Compare(name, operator, value) => {
                format!("{} {} {value}", NAMES[*name], OPERATORS[*operator])
            }
            Self::Between(name, low, high) => {
                format!("{} between {low} /* to */ and {high}", NAMES[*name])
            }
            Self::Within(name, values) => {
                let values: Vec<_> = values.iter().map(|value| format!("'{value}'")).collect();
                format!("{} In ({})", NAMES[*name], values.join(" ,"))
            }
            Self::IsNull(name) => format!("{}\nIS NULL", NAMES[*name]),
            Self::Not(inner) => format!("NOT({})", inner.text()),
            Self::And(left, right) => format!("({}) AND ({})", left.text(), right.text()),
            Self::Or(left, right) => format!("({}) or ({})", left.text(), right.text()),
        }
    }

    fn value(&self, values: &[Option<String>]) -> Result<Option<bool>, Failed> {
        let number = |name: usize| match &values[name] {
            None => Ok(None),
            Some(text) => text.parse::<i32>().map(Some).or(Err(Failed)),
        };
        Ok(match self {
            Self::Compare(name, operator, right) => number(*name)?.map(|left| {
                let ordering = left.cmp(right);
                match OPERATORS[*operator] {
                    "=" => ordering.is_eq(),
                    "<>" => ordering.is_ne(),
                    "<" => ordering.is_lt(),
                    "<=" => ordering.is_le(),
                    ">" => ordering.is_gt(),
                    _ => ordering.is_ge(),
                }
            }),
            Self::Between(name, low, high) => {
                number(*name)?.map(|value| (*low..=*high).contains(&value))
            }
            Self::Within(name, texts) => values[*name]
                .as_ref()
                .map(|value| texts.iter().any(|text| text.to_string() == *value)),
            Self::IsNull(name) => Some(values[*name].is_none()),
            Self::Not(inner) => inner.value(values)?.map(|value| !value),
            Self::And(left, right) => match left.value(values)? {
                Some(false) => Some(false),
                left => match (left, right.value(values)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                },
            },
            Self::Or(left, right) => match left.value(values)? {
                Some(true) => Some(true),
                left => match (left, right.value(values)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                },
            },
        })
    }
}

fn model() -> impl Strategy<Value = Model> {
    let value = -3..4_i32;
    let name = 0..NAMES.len();
    let leaf = prop_oneof![
        4 => (name.clone(), 0..OPERATORS.len(), value.clone())
            .prop_map(|(name, operator, value)| Model::Compare(name, operator, value)),
        1 => (name.clone(), value.clone(), 0..4_i32)
            .prop_map(|(name, low, more)| Model::Between(name, low, low + more)),
        1 => (name.clone(), prop::collection::vec(value, 1..4))
            .prop_map(|(name, values)| Model::Within(name, values)),
        1 => name.prop_map(Model::IsNull),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let inner = inner.prop_map(Box::new);
        prop_oneof![
            inner.clone().prop_map(Model::Not),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| Model::And(left, right)),
            (inner.clone(), inner).prop_map(|(left, right)| Model::Or(left, right)),
        ]
    })
}

fn property_values() -> impl Strategy<Value = Vec<Option<String>>> {
    let value = prop_oneof![
        6 => (-3..4_i32).prop_map(|value| Some(value.to_string())),
        1 => Just(Some("x".to_owned())),
        2 => Just(None),
    ];
    prop::collection::vec(value, NAMES.len())
}

/// Texts of what the grammar knows, in any order.
fn token_soup() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a",
        "b",
        "'x'",
        "''",
        "'it''s'",
        "'",
        "1",
        "0",
        "2147483648L",
        "1.5",
        ".5",
        "1e3",
        "0.0",
        "TRUE",
        "FALSE",
        "NULL",
        "NOT",
        "AND",
        "OR",
        "IS",
        "IN",
        "(",
        ")",
        ",",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "+",
        "-",
        "--",
        "/*",
        "*/",
        "\n",
        "BETWEEN",
        "CONTAINS",
        "STARTSWITH",
        "ENDSWITH",
        "!",
        ".",
        "é",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.join(" "))
}

proptest! {
    #[test]
    fn conditions_mean_what_the_model_says(model in model(), values in property_values()) {
        let properties: Properties = NAMES
            .iter()
            .zip(&values)
            .filter_map(|(name, value)| Some((*name, value.clone()?)))
            .collect();
        let text = model.text();
        let filter = SqlFilter::parse(&text).unwrap();
        let expected = model.value(&values).ok().map(|value| value.map_or(Truth::Unknown, Truth::from));
        let stored = properties.encode();
        prop_assert_eq!(filter.evaluate(&properties).ok(), expected, "{}", text);
        prop_assert_eq!(filter.evaluate(&StoredProperties(stored.as_bytes())).ok(), expected, "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_place_of_its_own(text in prop_oneof![token_soup(), any::<String>()]) {
        let properties = Properties::from_iter([("a", "1"), ("b", "x")]);
        match SqlFilter::parse(&text) {
            Ok(filter) => prop_assert!(filter.evaluate(&properties).is_ok() || !filter.matches(&properties)),
            Err(error) => {
                prop_assert!(error.line <= text.matches(['\n', '\r']).count() + 1);
                prop_assert!(error.column <= text.chars().count() + 1);
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn any_stored_text_can_be_asked(text in any::<Vec<u8>>()) {
        let filter = SqlFilter::parse("a = 1 OR b CONTAINS 'x' OR c > d OR e BETWEEN 0.5 AND 2").unwrap();
        prop_assert!(filter.evaluate(&StoredProperties(&text)).is_ok() || !filter.matches(&StoredProperties(&text)));
    }

    #[test]
    fn integers_read_back(value in any::<i64>()) {
        prop_assert_eq!(number::integer(&value.to_string()), Some(value));
        let number = Number::integer(value);
        prop_assert_eq!(matches!(number, Number::Int32(_)), i32::try_from(value).is_ok());
        prop_assert_eq!(number.read_alike(&value.to_string()), Ok(number));
    }

    #[test]
    fn doubles_read_back(value in any::<f64>().prop_filter("a number", |value| value.is_finite()), end in "[ \t]*|[fFdD]") {
        prop_assert_eq!(number::double(&format!("{value:?}{end}")), Some(value));
        prop_assert_eq!(number::double(&format!("\n{value:e}{end}")), Some(value));
    }
}
