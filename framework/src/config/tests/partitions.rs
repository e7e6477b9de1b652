//! Partitioned outputs: expressions and code for key and selector.

use super::*;

/// The report for one output `out` with this producer section; the program has the extractor `byRegion` and the
/// selector `vipFirst`.
fn with(producer: &str) -> Vec<String> {
    let yaml = format!(
        "spring.cloud.stream.bindings:\n  out: {{ destination: t, producer: {{ {producer} }} }}\n"
    );
    let mut usage = program(&[], &["out"]);
    usage.key_extractors = program(&["byRegion"], &[]).inputs;
    usage.partition_selectors = program(&["vipFirst"], &[]).inputs;
    told(LoadOptions::from_text(yaml), Some(&usage))
}

#[test]
fn key_and_selector_are_an_expression_or_the_name_of_code() {
    for key in [
        "partition-key-expression: payload.id",
        "partitionKeyExtractorName: byRegion",
    ] {
        for selector in [
            "partition-selector-expression: hashCode() % 4",
            "partitionSelectorName: vipFirst",
        ] {
            assert_eq!(with(&format!("{key}, {selector}")), Vec::<String>::new());
        }
    }
}

#[test]
fn unknown_code_is_told_with_the_nearest_that_exists() {
    assert_eq!(
        with("partition-key-extractor-name: byRegio, partition-selector-name: other"),
        [
            "error unknown-name 2:68 the program has no partition key extractor `byRegio` -> byRegion",
            "error unknown-name 2:102 the program has no partition selector `other`",
        ]
    );
}

#[test]
fn an_expression_beside_code_and_a_selector_without_key_are_conflicts() {
    assert_eq!(
        with("partition-key-expression: payload.id, partition-key-extractor-name: byRegion"),
        [
            "error conflict 2:106 `partition-key-expression` and `partition-key-extractor-name` exclude each other; keep one"
        ]
    );
    assert_eq!(
        with("partition-selector-expression: hashCode()"),
        ["error conflict 2:69 `partition-selector-expression` needs a partition key to choose by"]
    );
}

#[test]
fn a_selector_that_does_not_parse_is_told_at_its_character() {
    let told =
        with("partition-key-expression: payload.id, partition-selector-expression: hashCode( % 4");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("error expression 2:117 "), "{told:?}");
}

#[test]
fn orderly_is_satisfied_by_an_extractor() {
    let yaml = "spring.cloud.stream:
  bindings.out: { destination: t, producer.partition-key-extractor-name: byRegion }
  rocketmq.bindings.out.producer.producer-type: Orderly
";
    let mut usage = program(&[], &["out"]);
    usage.key_extractors = program(&["byRegion"], &[]).inputs;
    assert_eq!(
        told(LoadOptions::from_text(yaml), Some(&usage)),
        Vec::<String>::new()
    );
}
