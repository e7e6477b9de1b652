//! `${NAME:default}` in values.
//!
//! ```text
//! "${HOST:${FALLBACK:localhost}}:9876" ──resolve(lookup)──▶ "localhost:9876"
//! ```
//! Names are matched by the relaxed rules against every source. An empty value is a value: the default is not taken.
//! A literal `${` is written `\${`. `${random.…}` gives a new value at each start.

use std::hash::{BuildHasher, RandomState};

/// Why a text cannot be resolved. Offsets count characters from its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlaceholderError {
    /// Nothing gives a value, and there is no default.
    Unresolved { name: String, offset: usize },
    /// `${` without `}`.
    Unclosed { offset: usize },
    /// Names that need each other.
    Cycle { chain: Vec<String> },
    /// `#{…}`, Spring's bean expressions.
    BeanExpression { offset: usize },
    /// `${random.…}` with an unknown or impossible request.
    Random { request: String, offset: usize },
    /// Values that multiply each other beyond all reason.
    TooMany,
}

/// Whether there is anything to resolve in `text`.
pub(crate) fn has_placeholder(text: &str) -> bool {
    text.contains("${") || text.contains("#{")
}

/// Resolves every placeholder of `text`; `lookup` gives the unresolved text of a name.
pub(crate) fn resolve(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, PlaceholderError> {
    Resolver {
        lookup,
        chain: Vec::new(),
        steps: 0,
    }
    .text(&text.chars().collect::<Vec<_>>(), 0)
}

/// Nesting deeper than this is a mistake.
const MAX_DEPTH: usize = 32;
/// More names than this in one value are a mistake.
const MAX_STEPS: usize = 1000;

struct Resolver<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    /// The names being resolved, outermost first.
    chain: Vec<String>,
    /// Names resolved so far.
    steps: usize,
}

impl Resolver<'_> {
    fn text(&mut self, chars: &[char], offset: usize) -> Result<String, PlaceholderError> {
        let mut out = String::new();
        let mut at = 0;
        while at < chars.len() {
            match chars[at..] {
                ['\\', '$', '{', ..] => {
                    out.push_str("${");
                    at += 3;
                }
                ['#', '{', ..] => {
                    return Err(PlaceholderError::BeanExpression {
                        offset: offset + at,
                    });
                }
                ['$', '{', ..] => {
                    let end = closing(chars, at + 2).ok_or(PlaceholderError::Unclosed {
                        offset: offset + at,
                    })?;
                    out.push_str(&self.placeholder(&chars[at + 2..end], offset + at)?);
                    at = end + 1;
                }
                [c, ..] => {
                    out.push(c);
                    at += 1;
                }
                [] => break,
            }
        }
        Ok(out)
    }

    /// What stands between `${` and `}`; `offset` is that of the `$`.
    fn placeholder(&mut self, inner: &[char], offset: usize) -> Result<String, PlaceholderError> {
        let colon = top_level_colon(inner);
        let name = self.text(&inner[..colon.unwrap_or(inner.len())], offset + 2)?;
        if let Some(request) = name.strip_prefix("random.") {
            return random(request).ok_or_else(|| PlaceholderError::Random {
                request: request.to_owned(),
                offset,
            });
        }
        match (self.named(&name)?, colon) {
            (Some(text), _) => Ok(text),
            (None, Some(colon)) => self.text(&inner[colon + 1..], offset + 2 + colon + 1),
            (None, None) => Err(PlaceholderError::Unresolved { name, offset }),
        }
    }

    fn named(&mut self, name: &str) -> Result<Option<String>, PlaceholderError> {
        if name.is_empty() {
            return Ok(None);
        }
        if self.chain.iter().any(|outer| outer == name) || self.chain.len() > MAX_DEPTH {
            let mut chain = self.chain.clone();
            chain.push(name.to_owned());
            return Err(PlaceholderError::Cycle { chain });
        }
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(PlaceholderError::TooMany);
        }
        let Some(text) = (self.lookup)(name) else {
            return Ok(None);
        };
        self.chain.push(name.to_owned());
        let resolved = self.text(&text.chars().collect::<Vec<_>>(), 0)?;
        self.chain.pop();
        Ok(Some(resolved))
    }
}

/// The `}` that belongs to a `${` whose inside begins at `from`.
fn closing(chars: &[char], from: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = from;
    while at < chars.len() {
        match chars[at..] {
            ['$', '{', ..] => {
                depth += 1;
                at += 1;
            }
            ['}', ..] if depth == 0 => return Some(at),
            ['}', ..] => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

fn top_level_colon(chars: &[char]) -> Option<usize> {
    let mut depth = 0usize;
    chars.iter().enumerate().find_map(|(at, c)| {
        match c {
            '{' if at > 0 && chars[at - 1] == '$' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (*c == ':' && depth == 0).then_some(at)
    })
}

/// `uuid`, `value`, `int`, `int(10)`, `int(1,10)`, `int[1,10]`, and the same with `long`.
fn random(request: &str) -> Option<String> {
    match request {
        "uuid" => {
            let bits = (u128::from(random_bits()) << 64) | u128::from(random_bits());
            // Version 4, variant 1 of RFC 9562.
            let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
            let hex = format!("{bits:032x}");
            Some(format!(
                "{}-{}-{}-{}-{}",
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..]
            ))
        }
        "value" => Some(format!("{:016x}{:016x}", random_bits(), random_bits())),
        "int" => Some(((random_bits() >> 32).cast_signed() + i64::from(i32::MIN)).to_string()),
        "long" => Some(random_bits().cast_signed().to_string()),
        _ => random_between(request),
    }
}

fn random_between(request: &str) -> Option<String> {
    let bounds = request
        .strip_prefix("int")
        .or_else(|| request.strip_prefix("long"))?;
    let (inner, inclusive) = match bounds
        .strip_prefix('(')
        .and_then(|bounds| bounds.strip_suffix(')'))
    {
        Some(inner) => (inner, 0),
        None => (bounds.strip_prefix('[')?.strip_suffix(']')?, 1),
    };
    let (low, high) = match inner.split_once(',') {
        Some((low, high)) => (
            low.trim().parse::<i64>().ok()?,
            high.trim().parse::<i64>().ok()?,
        ),
        None => (0, inner.trim().parse().ok()?),
    };
    let width = (i128::from(high) + inclusive) - i128::from(low);
    (width > 0).then(|| (i128::from(low) + i128::from(random_bits()).rem_euclid(width)).to_string())
}

/// The standard library's hash seeds come from the system's randomness; nothing here is a secret.
fn random_bits() -> u64 {
    RandomState::new().hash_one("bindery")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Result<String, PlaceholderError> {
        resolve(text, &|name| match name {
            "host" => Some("h".to_owned()),
            "empty" => Some(String::new()),
            "ns" => Some("${host}:9876".to_owned()),
            "a" => Some("${b}".to_owned()),
            "b" => Some("${a}".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn names_defaults_and_nesting_resolve() {
        for (text, expected) in [
            ("a${host}b", "ahb"),
            ("${ns}", "h:9876"),
            ("${missing:a:b}", "a:b"),
            ("${missing:${host}}", "h"),
            ("${missing:${other:x}}", "x"),
            ("${missing:}", ""),
            ("${empty:d}", ""),
            ("${missing: d }", " d "),
            ("\\${host}", "${host}"),
            ("$host", "$host"),
            ("${ho${missing:st}}", "h"),
        ] {
            assert_eq!(with(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_resolved_is_an_error_with_its_place() {
        assert_eq!(
            with("x${missing}"),
            Err(PlaceholderError::Unresolved {
                name: "missing".to_owned(),
                offset: 1
            })
        );
        assert_eq!(
            with("${}"),
            Err(PlaceholderError::Unresolved {
                name: String::new(),
                offset: 0
            })
        );
        assert_eq!(
            with("ab${host"),
            Err(PlaceholderError::Unclosed { offset: 2 })
        );
        assert_eq!(
            with("#{1 + 1}"),
            Err(PlaceholderError::BeanExpression { offset: 0 })
        );
        let chain = ["a", "b", "a"].map(str::to_owned).to_vec();
        assert_eq!(with("${a}"), Err(PlaceholderError::Cycle { chain }));
    }

    #[test]
    fn random_values_have_the_shape_that_was_asked_for() {
        for _ in 0..50 {
            let number: i64 = with("${random.int(1,10)}")
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or(-1);
            assert!((1..10).contains(&number));
            let uuid = with("${random.uuid}").unwrap_or_default();
            assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"));
        }
        assert!(matches!(
            with("${random.int(9,1)}"),
            Err(PlaceholderError::Random { .. })
        ));
        assert!(matches!(
            with("${random.colour}"),
            Err(PlaceholderError::Random { .. })
        ));
    }
}
