//! From the text of a value to the type its row names.
//!
//! The readings are Spring Boot's where nothing is lost by them; where Boot silently changes a value (`1.5` for a whole
//! number, `4 2` for 42, an enum by its ordinal, `010` as octal) this is an error.

use super::{
    node::Scalar,
    relaxed::squash,
    schema::{Choice, Kind, TextRule, Unit},
    timestamp::consume_timestamp,
};

/// A value of the type its row names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Milliseconds, and nanoseconds beyond them.
    Duration(i64, u32),
    /// Bytes.
    Size(i64),
    Text(String),
    List(Vec<String>),
    Choice(&'static str),
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wrong {
    /// Not of this type at all.
    Type,
    /// Out of bounds, or not a word of the list.
    Value,
    /// Could be read in two ways; holds what to write instead.
    Ambiguous(String),
    /// A word whose run time does not exist yet.
    Later,
}

/// Reads one scalar. `None`: nothing is written, the default holds.
pub(crate) fn read(kind: &Kind, scalar: &Scalar) -> Result<Option<Value>, Wrong> {
    let text = scalar.text.as_str();
    let trimmed = text.trim();
    if trimmed.is_empty() && !matches!(kind, Kind::Text(TextRule::Any) | Kind::List { .. }) {
        return Ok(None);
    }
    if scalar.null && !matches!(kind, Kind::List { .. }) {
        return Ok(None);
    }
    Ok(Some(match kind {
        Kind::Bool => Value::Bool(bool(trimmed).ok_or(Wrong::Type)?),
        Kind::Int { min, max } => Value::Int(within(int(trimmed, scalar.plain)?, *min, *max)?),
        Kind::Float { min } => float(trimmed, *min)?,
        Kind::Duration { unit, min, max } => {
            let (millis, nanos) = duration(text, *unit).ok_or(Wrong::Type)?;
            Value::Duration(within(millis, *min, *max)?, nanos)
        }
        Kind::Size { bare, min, max } => Value::Size(within(
            size(trimmed, *bare).ok_or(Wrong::Type)?,
            *min,
            *max,
        )?),
        Kind::Text(rule) => Value::Text(checked(text, *rule)?),
        Kind::List { separators, rule } => list(text, separators, *rule)?,
        Kind::Choice(choices) => choice(trimmed, choices)?,
    }))
}

/// Reads the items of a written list.
pub(crate) fn read_list(kind: &Kind, items: &[Scalar]) -> Result<Value, Wrong> {
    match kind {
        Kind::List { rule, .. } => items
            .iter()
            .map(|item| checked(&item.text, *rule))
            .collect::<Result<_, _>>()
            .map(Value::List),
        // A single text of several parts may be written as a list too: `destination: [a, b]`.
        Kind::Text(TextRule::Topics) => {
            let joined = items
                .iter()
                .map(|item| item.text.as_str())
                .collect::<Vec<_>>()
                .join(",");
            checked(&joined, TextRule::Topics).map(Value::Text)
        }
        _ => Err(Wrong::Type),
    }
}

fn within(value: i64, min: i64, max: i64) -> Result<i64, Wrong> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(Wrong::Value)
    }
}

fn bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Some(true),
        "false" | "off" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Decimal or `0x`, with an optional sign and `_` between digits.
fn int(text: &str, plain: bool) -> Result<i64, Wrong> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    if !digits.starts_with(|c: char| c.is_digit(radix)) || digits.ends_with('_') {
        return Err(Wrong::Type);
    }
    let digits = digits.replace('_', "");
    let value = i128::from_str_radix(&digits, radix)
        .ok()
        .map(|value| if negative { -value } else { value });
    let value = value
        .and_then(|value| i64::try_from(value).ok())
        .ok_or(Wrong::Type)?;
    if plain && radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Err(Wrong::Ambiguous(value.to_string()));
    }
    Ok(value)
}

fn float(text: &str, min: f64) -> Result<Value, Wrong> {
    let value: f64 = text.replace('_', "").parse().ok().ok_or(Wrong::Type)?;
    if value >= min {
        Ok(Value::Float(value))
    } else {
        Err(Wrong::Value)
    }
}

/// `500`, `10s`, `PT1H30M`: milliseconds, and nanoseconds beyond them.
fn duration(text: &str, unit: Unit) -> Option<(i64, u32)> {
    let nanos = if text.starts_with(['P', 'p', '-', '+']) && text.contains(['P', 'p']) {
        iso_duration(text)?
    } else {
        simple_duration(text, unit)?
    };
    let millis = i64::try_from(nanos.div_euclid(1_000_000)).unwrap_or(if nanos < 0 {
        i64::MIN
    } else {
        i64::MAX
    });
    Some((millis, u32::try_from(nanos.rem_euclid(1_000_000)).ok()?))
}

fn simple_duration(text: &str, unit: Unit) -> Option<i128> {
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let factor: i128 = match suffix.to_ascii_lowercase().as_str() {
        "" => match unit {
            Unit::Millis => 1_000_000,
            Unit::Seconds => 1_000_000_000,
            Unit::Minutes => 60_000_000_000,
        },
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    signed(number).map(|number| i128::from(number) * factor)
}

fn signed(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        None
    } else {
        text.parse().ok()
    }
}

/// `PnDTnHnMn.nS` as `java.time.Duration` reads it.
fn iso_duration(text: &str) -> Option<i128> {
    let upper = text.to_ascii_uppercase();
    let (sign, body) = match upper.strip_prefix('-') {
        Some(body) => (-1, body),
        None => (1, upper.strip_prefix('+').unwrap_or(&upper)),
    };
    let body = body.strip_prefix('P')?;
    let (days, time) = body
        .split_once('T')
        .map_or((body, None), |(days, time)| (days, Some(time)));
    let mut total = 0;
    let mut parts = 0;
    for (part, units) in [
        (days, &[('D', 86_400_i128)][..]),
        (time.unwrap_or(""), &[('H', 3600), ('M', 60), ('S', 1)][..]),
    ] {
        let mut rest = part;
        for (letter, seconds) in units {
            if let Some((number, after)) = rest.split_once(*letter) {
                total += decimal_nanos(number, *letter == 'S')? * seconds;
                parts += 1;
                rest = after;
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    (parts > 0 && time != Some("")).then_some(sign * total)
}

/// A number of seconds as nanoseconds; only seconds may have decimals.
fn decimal_nanos(text: &str, decimals: bool) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if (!decimals && text.contains('.'))
        || fraction.len() > 9
        || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let fraction: i128 = format!("{fraction:0<9}").parse().ok()?;
    let whole_number = i128::from(signed(whole)?) * 1_000_000_000;
    Some(if whole.starts_with('-') {
        whole_number - fraction
    } else {
        whole_number + fraction
    })
}

/// Bytes of `4096`, `4KB`, `4 MB`; units are binary.
fn size(text: &str, bare: i64) -> Option<i64> {
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let factor = match suffix {
        "" => bare,
        "B" => 1,
        "KB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    signed(number.trim_end())?.checked_mul(factor)
}

fn choice(text: &str, choices: &'static [Choice]) -> Result<Value, Wrong> {
    let wanted = squash(text);
    match choices.iter().find(|choice| squash(choice.name) == wanted) {
        Some(choice) if choice.later => Err(Wrong::Later),
        Some(choice) => Ok(Value::Choice(choice.name)),
        None => Err(Wrong::Value),
    }
}

fn list(text: &str, separators: &[char], rule: TextRule) -> Result<Value, Wrong> {
    let items = text
        .split(|c| separators.contains(&c))
        .map(str::trim)
        .filter(|item| !item.is_empty());
    items
        .map(|item| checked(item, rule))
        .collect::<Result<_, _>>()
        .map(Value::List)
}

fn checked(text: &str, rule: TextRule) -> Result<String, Wrong> {
    let fine = match rule {
        TextRule::Any | TextRule::Expression | TextRule::Tags => true,
        TextRule::Topics => text.split(',').all(|topic| is_resource(topic.trim(), 127)),
        TextRule::Group => is_resource(text, 120),
        TextRule::Mime => is_mime(text),
        TextRule::Path => {
            text == "/" || (text.starts_with('/') && !text.contains(char::is_whitespace))
        }
        TextRule::IpAddress => text.parse::<std::net::IpAddr>().is_ok(),
        TextRule::Timestamp => consume_timestamp(text.trim(), None).is_ok(),
        TextRule::Address => is_address(text.trim()),
    };
    if fine {
        Ok(text.to_owned())
    } else {
        Err(Wrong::Value)
    }
}

/// The alphabet of topic and group names (`Validators` and `TopicValidator` of Apache `RocketMQ` 5.3.3).
fn is_resource(name: &str, longest: usize) -> bool {
    !name.is_empty()
        && name.len() <= longest
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_%|-".contains(&b))
}

fn is_mime(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&b))
    };
    let mut parts = text.split(';').map(str::trim);
    let kind = parts
        .next()
        .and_then(|kind| kind.split_once('/'))
        .is_some_and(|(kind, subtype)| token(kind) && token(subtype));
    kind && parts.all(|parameter| {
        parameter
            .split_once('=')
            .is_some_and(|(name, value)| token(name.trim()) && !value.trim().is_empty())
    })
}

fn is_address(text: &str) -> bool {
    if let Some(rest) = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))
    {
        return !rest.is_empty();
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let host_fine = match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
        }
    };
    host_fine && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(kind: &Kind, text: &str) -> Result<Option<Value>, Wrong> {
        read(kind, &Scalar::text(text))
    }

    fn plain(kind: &Kind, text: &str) -> Result<Option<Value>, Wrong> {
        read(
            kind,
            &Scalar {
                text: text.to_owned(),
                plain: true,
                null: false,
            },
        )
    }

    #[test]
    fn whole_numbers_lose_nothing() {
        let kind = Kind::Int {
            min: -10,
            max: 5000,
        };
        for (text, value) in [
            ("42", 42),
            ("+42", 42),
            ("-7", -7),
            ("0x10", 16),
            ("1_000", 1000),
        ] {
            assert_eq!(plain(&kind, text), Ok(Some(Value::Int(value))), "{text}");
        }
        for text in ["1.5", "1e3", "4 2", "1L", "_1", "1_", "0x", "", "true"]
            .into_iter()
            .filter(|text| !text.is_empty())
        {
            assert_eq!(plain(&kind, text), Err(Wrong::Type), "{text}");
        }
        assert_eq!(plain(&kind, "5001"), Err(Wrong::Value));
        assert_eq!(plain(&kind, "010"), Err(Wrong::Ambiguous("10".to_owned())));
        assert_eq!(quoted(&kind, "010"), Ok(Some(Value::Int(10))));
    }

    #[test]
    fn durations_read_bare_numbers_suffixes_and_iso() {
        let kind = Kind::Duration {
            unit: Unit::Seconds,
            min: i64::MIN,
            max: i64::MAX,
        };
        for (text, millis, nanos) in [
            ("5", 5000, 0),
            ("500ms", 500, 0),
            ("7ns", 0, 7),
            ("1M", 60_000, 0),
            ("PT1H30M", 5_400_000, 0),
            ("P1D", 86_400_000, 0),
            ("PT-6H", -21_600_000, 0),
            ("-PT1.5S", -1500, 0),
            ("+10s", 10_000, 0),
        ] {
            assert_eq!(
                quoted(&kind, text),
                Ok(Some(Value::Duration(millis, nanos))),
                "{text}"
            );
        }
        for text in ["10 s", "1m30s", "10s ", "PT", "P", "PT1X", "s", "1.5s"] {
            assert_eq!(quoted(&kind, text), Err(Wrong::Type), "{text}");
        }
    }

    #[test]
    fn sizes_are_binary_and_their_units_upper_case() {
        let kind = Kind::Size {
            bare: 1,
            min: 0,
            max: i64::MAX,
        };
        assert_eq!(quoted(&kind, "4KB"), Ok(Some(Value::Size(4096))));
        assert_eq!(quoted(&kind, "4 MB"), Ok(Some(Value::Size(4 << 20))));
        assert_eq!(quoted(&kind, "4kb"), Err(Wrong::Type));
        assert_eq!(quoted(&kind, "1.5MB"), Err(Wrong::Type));
    }

    #[test]
    fn names_addresses_and_content_types_are_checked() {
        assert!(checked("orders,%DLQ%billing", TextRule::Topics).is_ok());
        assert!(checked("orders/new", TextRule::Topics).is_err());
        assert!(checked(&"x".repeat(121), TextRule::Group).is_err());
        assert!(checked("application/vnd.x+json; charset=utf-8", TextRule::Mime).is_ok());
        assert!(checked("json", TextRule::Mime).is_err());
        for (text, fine) in [
            ("127.0.0.1:9876", true),
            ("[::1]:9876", true),
            ("mq.example.com:1", true),
            ("host", false),
            ("host:x", false),
            ("host:0", false),
        ] {
            assert_eq!(checked(text, TextRule::Address).is_ok(), fine, "{text}");
        }
    }
}
