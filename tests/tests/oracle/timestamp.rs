//! Times of `consume-timestamp`.

use bindery::config::consume_timestamp;
use serde_json::Value as Json;

use super::corpus::{Judged, Verdict, same, text};

const LENIENT: &str = "only 14 digits that form a real date are local time";
const MILLIS: &str = "13 digits are milliseconds since 1970";
const EARLY: &str = "no message is older than 1970";

pub(crate) fn judge(_: &Json, case: &Json) -> Judged {
    let (given, zone) = (text(&case["in"], "text")?, text(&case["in"], "zone")?);
    let expected = case["out"]["ms"].as_i64();
    let ours = consume_timestamp(given, Some(zone));
    let digits = given.bytes().all(|byte| byte.is_ascii_digit());
    if ours.as_ref().ok().copied() == expected.and_then(|millis| u64::try_from(millis).ok()) {
        // A negative time of Java's is none of ours.
        return Ok(match expected {
            Some(millis) if millis < 0 && is_date(given) => Verdict::Refused(EARLY),
            Some(millis) if millis < 0 => Verdict::Refused(LENIENT),
            _ => Verdict::Passed,
        });
    }
    if digits && given.len() == 13 {
        return Ok(Verdict::Refused(MILLIS));
    }
    if ours.is_err() && !is_date(given) {
        return Ok(Verdict::Refused(LENIENT));
    }
    same("the time", ours.ok().map(u64::cast_signed), expected)?;
    Ok(Verdict::Passed)
}

/// Whether the text is 14 digits that form a real date.
fn is_date(text: &str) -> bool {
    let part = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<i8>().ok());
    let year = text.get(..4).and_then(|part| part.parse::<i16>().ok());
    let parts = (
        year,
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14),
    );
    let (Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)) = parts else {
        return false;
    };
    text.len() == 14
        && jiff::civil::DateTime::new(year, month, day, hour, minute, second, 0).is_ok()
}
