//! How a YAML 1.1 reader understands plain scalars, which Spring Boot's is: `0123` is 83, `yes` is true.

/// What a YAML 1.1 reader (Spring Boot's) makes of a plain scalar that is bound to text, if that differs from the text.
pub(crate) fn reading(text: &str) -> Option<String> {
    let read = match text {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "True" | "TRUE" => Some("true".to_owned()),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" | "False" | "FALSE" => Some("false".to_owned()),
        _ => yaml_1_1_int(text)
            .map(|value| value.to_string())
            .or_else(|| yaml_1_1_float(text).map(|value| format!("{value:?}"))),
    };
    read.filter(|read| read != text)
}

fn yaml_1_1_int(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let plain = digits.replace('_', "");
    let value = if let Some(binary) = plain.strip_prefix("0b") {
        i128::from_str_radix(binary, 2).ok()
    } else if let Some(hex) = plain.strip_prefix("0x") {
        i128::from_str_radix(hex, 16).ok()
    } else if plain.contains(':') {
        base_60(&plain)
    } else if plain.len() > 1 && plain.starts_with('0') {
        i128::from_str_radix(&plain, 8).ok()
    } else {
        plain.parse().ok()
    };
    value.map(|value| if negative { -value } else { value })
}

/// `12:30:45`
fn base_60(text: &str) -> Option<i128> {
    let mut parts = text.split(':');
    let first = parts.next().filter(|first| !first.starts_with('0'))?;
    parts.try_fold(first.parse::<i128>().ok()?, |sum, part| {
        let part: i128 = part.parse().ok().filter(|part| (0..60).contains(part))?;
        sum.checked_mul(60)?.checked_add(part)
    })
}

fn yaml_1_1_float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let looks = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.contains(['.', 'e', 'E'])
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+' | '_'));
    if looks {
        text.replace('_', "").parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_yaml_1_1_reads_otherwise_are_noticed() {
        for (text, read) in [
            ("0123", "83"),
            ("1.10", "1.1"),
            ("12:30:45", "45045"),
            ("1_000", "1000"),
            ("yes", "true"),
            ("1e3", "1000.0"),
            ("+42", "42"),
        ] {
            assert_eq!(reading(text).as_deref(), Some(read), "{text}");
        }
        for text in [
            "20220117110148",
            "true",
            "orders",
            "2024-01-02",
            "1.5",
            "42",
            "0",
            "08",
            "a:b",
            "127.0.0.1:9876",
        ] {
            assert_eq!(reading(text), None, "{text}");
        }
    }
}
