//! The recorded values of Spring Boot as paths and texts.
#![expect(clippy::unwrap_used, reason = "a panic fails the case at hand")]

use serde_json::Value as Json;

/// Adds every value below `value` with its path.
pub(crate) fn flat(path: String, value: &Json, into: &mut Vec<(String, String)>) {
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}/{name}")
        }
    };
    let v = &value["v"];
    match value["t"].as_str().unwrap_or_default() {
        "props" => value["changed"]
            .as_object()
            .unwrap()
            .iter()
            .for_each(|(name, value)| flat(name.clone(), value, into)),
        "object" => {
            for (name, value) in v.as_object().unwrap().iter().filter(|(name, value)| {
                !value.is_null() && (*name, *value) != (&"count".to_owned(), &Json::from(1))
            }) {
                into.push((
                    below(name),
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned),
                ));
            }
        }
        "map" => v
            .as_array()
            .unwrap()
            .iter()
            .for_each(|pair| flat(below(pair[0].as_str().unwrap()), &pair[1], into)),
        "list" => {
            let items: Vec<&str> = v
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["v"].as_str().unwrap_or("?"))
                .collect();
            into.push((path, format!("{items:?}")));
        }
        "duration" => into.push((path, java_duration(v.as_str().unwrap()).to_string())),
        _ => into.push((
            path,
            v.as_str().map_or_else(|| v.to_string(), str::to_owned),
        )),
    }
}

/// Nanoseconds of a duration as Java prints it.
fn java_duration(text: &str) -> i128 {
    let mut nanos = 0;
    let mut number = String::new();
    for c in text.trim_start_matches("PT").chars() {
        let unit = match c {
            'H' => 3_600_000_000_000.0,
            'M' => 60_000_000_000.0,
            'S' => 1_000_000_000.0,
            _ => {
                number.push(c);
                continue;
            }
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        let scale = 10_f64.powi(i32::try_from(fraction.len()).unwrap());
        let sign = if whole.starts_with('-') { -1.0 } else { 1.0 };
        let value = whole.parse::<i64>().unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "fractions of a second fit")]
        let part = (sign * fraction.parse::<f64>().unwrap_or(0.0) / scale * unit) as i128;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a whole number of nanoseconds"
        )]
        let unit = unit as i128;
        nanos += i128::from(value) * unit + part;
        number.clear();
    }
    nanos
}
