//! Where Bindery answers differently from Spring, and the limits.

use proptest::prelude::*;

use crate::{EvalProblem, ParseProblem, Value, parse};

fn message() -> Value {
    let headers = Value::map([(Value::from("type"), Value::from("dog"))]);
    let order = Value::record(
        "Order",
        [
            ("id".into(), Value::Long(1)),
            ("status".into(), Value::Enum("PAID".into())),
        ],
    );
    Value::record(
        "Message",
        [("payload".into(), order), ("headers".into(), headers)],
    )
}

fn holds(expression: &str) -> bool {
    parse(expression).unwrap().condition(&message()).unwrap()
}

#[test]
fn a_missing_header_is_null_and_a_null_condition_is_false() {
    assert!(holds("headers.missing == null"));
    assert!(!holds("headers.missing"));
    assert!(!holds("''"));
}

#[test]
fn an_enum_equals_its_name() {
    assert!(holds("payload.status == 'PAID'"));
    assert!(!holds("payload.status != 'PAID'"));
}

#[test]
fn a_missing_field_of_a_record_names_the_fields_there_are() {
    let error = parse("payload.ids").unwrap().eval(&message()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`Order` has no field `ids` (fields: id, status), at character 9 of `payload.ids`"
    );
    assert_eq!(error.code(), Some("EL1008E"));
}

#[test]
fn a_mistake_is_shown_with_a_caret() {
    let error = parse("headers['a'] == ").unwrap_err();
    assert_eq!(error.caret(), "headers['a'] == \n             ^");
    assert!(
        matches!(error.problem(), ParseProblem::RightOperand { .. }),
        "{error}"
    );
}

#[test]
fn a_missing_operand_of_elvis_is_an_error() {
    assert_eq!(parse("payload.id ?:").unwrap_err().code(), Some("EL1044E"));
    assert_eq!(parse("?: payload.id").unwrap_err().code(), Some("EL1044E"));
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    assert!(matches!(
        parse(&deep).unwrap_err().problem(),
        ParseProblem::TooDeep { max: 64 }
    ));
    assert!(matches!(
        parse(&"!".repeat(100)).unwrap_err().problem(),
        ParseProblem::TooDeep { max: 64 }
    ));
    assert!(matches!(
        parse(&"1".repeat(5000)).unwrap_err().problem(),
        ParseProblem::TooLong { max: 4096 }
    ));
    let flat = vec!["1"; 2000].join("+");
    assert_eq!(
        parse(&flat).unwrap().eval(&Value::Null).unwrap(),
        Value::Int(2000)
    );
}

#[test]
fn patterns_without_linear_time_are_refused_by_name() {
    for (pattern, construct) in [
        ("a(?=b)b", "look-ahead"),
        ("(a)\\1", "back-reference"),
        ("a++", "possessive"),
    ] {
        let error = parse(&format!("'x' matches '{pattern}'")).unwrap_err();
        assert!(error.to_string().contains(construct), "{error}");
    }
    let error = parse("'x' matches '('").unwrap_err();
    assert_eq!((error.code(), error.position()), (Some("EL1018E"), 12));
}

#[test]
fn null_cannot_be_matched() {
    let error = parse("null matches 'a'")
        .unwrap()
        .eval(&message())
        .unwrap_err();
    assert_eq!(*error.problem(), EvalProblem::MatchesNull);
}

#[test]
fn bytes_have_no_hash() {
    let error = Value::Bytes([1, 2].into()).java_hash().unwrap_err();
    assert!(
        error.to_string().starts_with("bytes has no hash"),
        "{error}"
    );
}

#[test]
fn the_known_hashes_are_java_s() {
    for (text, hash) in [
        ("", 0),
        ("a", 97),
        ("order-1", -1_207_111_310),
        ("订单1", 35_013_278),
        ("polygenelubricants", i32::MIN),
    ] {
        assert_eq!(Value::from(text).java_hash(), Ok(hash), "{text}");
    }
    assert_eq!(Value::Long(-7).java_hash(), Ok(6));
    assert_eq!(Value::Int(-7).java_hash(), Ok(-7));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused_without_a_panic(text in ".{0,60}") {
        if let Ok(expression) = parse(&text) {
            drop(expression.eval(&message()));
        }
    }

    #[test]
    fn any_run_of_tokens_is_evaluated_or_refused_without_a_panic(
        tokens in proptest::collection::vec(prop::sample::select(vec![
            "payload", "headers", ".", "?.", "[", "]", "(", ")", "{", "}", "'a'", "1", "2L", "0.5", "+", "-", "*", "/", "%",
            "==", "<", "and", "or", "not", "!", "?", ":", "?:", "null", "id", "matches", ",", "length()", "substring(1,0)", "#root",
            "hashCode()", "2147483647", "toString()", "charAt(-1)",
        ]), 0..24)
    ) {
        if let Ok(expression) = parse(&tokens.join(" ")) {
            drop(expression.eval(&message()));
        }
    }

    #[test]
    fn arithmetic_of_integers_is_java_s(a in any::<i32>(), b in any::<i32>()) {
        let root = Value::map([(Value::from("a"), Value::Int(a)), (Value::from("b"), Value::Int(b))]);
        let of = |text: &str| parse(text).unwrap().eval(&root).unwrap();
        prop_assert_eq!(of("a + b * a"), Value::Int(a.wrapping_add(b.wrapping_mul(a))));
        prop_assert_eq!(of("a == b"), Value::Bool(a == b));
        if b != 0 {
            prop_assert_eq!(of("a / b"), Value::Int(a.wrapping_div(b)));
            prop_assert_eq!(of("a % b"), Value::Int(a.wrapping_rem(b)));
        }
    }

    #[test]
    fn a_double_s_text_reads_back_as_itself(value in any::<f64>()) {
        let text = Value::Double(value).to_string();
        if value.is_finite() {
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{}", text);
        }
    }
}
