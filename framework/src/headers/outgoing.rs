//! What of a message's headers travels: the typed fields of a RocketMQ message and its user properties, checked.
//!
//! ```text
//! Headers ──check──▶ OutgoingHeaders { tags, keys, delay level, flag, wait, properties }
//!            └─────▶ HeaderError: reserved name, separator byte, wrong delay, too long
//! ```

use std::time::Duration;

use super::{HeaderError, Headers, names};

/// The highest delay level of a broker's usual table (`messageDelayLevel`: 1s 5s 10s … 2h).
const MAX_DELAY_LEVEL: u8 = 18;

/// The encoded properties of a message may not be longer than this many bytes (`Short.MAX_VALUE`: the length field of
/// the stored record is a signed 16-bit integer).
const MAX_PROPERTIES_LENGTH: usize = 32_767;

/// The bytes that separate a property's name from its value (1) and properties from each other (2).
const SEPARATORS: [char; 2] = ['\u{1}', '\u{2}'];

/// When a message is delivered, to a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// So long after the broker took it.
    After(Duration),
    /// At this time, milliseconds since 1970.
    At(i64),
}

/// A message's headers as they are sent, borrowed from [`Headers`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutgoingHeaders<'a> {
    /// The tag, when there is one.
    pub tags: Option<&'a str>,
    /// The keys, separated by single blanks.
    pub keys: Option<&'a str>,
    /// The delay level, 1 to 18; `None` delivers at once.
    pub delay_level: Option<u8>,
    /// The point of time it is delivered at; only without a delay level.
    pub timing: Option<Timing>,
    /// The application's own integer.
    pub flag: i32,
    /// Whether the send waits for the message to be stored as safely as the broker is configured to. Default true.
    pub wait_store: bool,
    /// All other headers, in the order they were set; blank values are left out, as RocketMQ drops them.
    pub properties: Vec<(&'a str, &'a str)>,
}

impl Headers {
    /// What travels of these headers.
    ///
    /// Facts about a received message, Java's per-object headers (`id`, `timestamp`) and transaction arguments are
    /// left out, so that a received message can be sent on as it is.
    ///
    /// # Errors
    /// [`HeaderError`] for the first header that cannot be sent, or that a builder call had got wrong.
    pub fn outgoing(&self) -> Result<OutgoingHeaders<'_>, HeaderError> {
        if let Some(mistake) = &self.mistake {
            return Err((**mistake).clone());
        }
        let mut out = OutgoingHeaders {
            wait_store: true,
            ..OutgoingHeaders::default()
        };
        let mut length = 0;
        for (name, value) in self.iter() {
            let text = value.as_str();
            match name {
                names::TAGS => out.tags = non_blank(text),
                names::KEYS => out.keys = non_blank(text),
                names::DELAY => out.delay_level = delay_level(text)?,
                names::TIMER_DELAY_SEC
                | names::TIMER_DELAY_MS
                | names::TIMER_DELIVER_MS
                | names::START_DELIVER_TIME => out.timing = timing(name, text)?.or(out.timing),
                names::FLAG => out.flag = flag(text)?,
                names::WAIT => out.wait_store = !text.eq_ignore_ascii_case("false"),
                _ if names::is_one_hop(name) || text.trim().is_empty() => continue,
                _ => {
                    check_free(name)?;
                    out.properties.push((name, text));
                }
            }
            check_separators(name, text)?;
            length += name.len() + text.len() + 2;
        }
        // As the broker has it: a level counts more than a time.
        out.timing = out.timing.filter(|_| out.delay_level.is_none());
        if length > MAX_PROPERTIES_LENGTH {
            return Err(HeaderError::TooLong {
                length,
                max: MAX_PROPERTIES_LENGTH,
            });
        }
        Ok(out)
    }
}

fn non_blank(text: &str) -> Option<&str> {
    (!text.trim().is_empty()).then_some(text)
}

fn delay_level(text: &str) -> Result<Option<u8>, HeaderError> {
    match text.trim().parse::<u8>() {
        Ok(0) => Ok(None),
        Ok(level) if level <= MAX_DELAY_LEVEL => Ok(Some(level)),
        _ => Err(HeaderError::InvalidDelay {
            given: text.to_owned(),
            max: MAX_DELAY_LEVEL,
        }),
    }
}

fn timing(name: &str, text: &str) -> Result<Option<Timing>, HeaderError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse::<u64>().ok();
    let number = number.filter(|number| i64::try_from(*number).is_ok());
    let number = number.ok_or_else(|| HeaderError::InvalidTime {
        name: name.to_owned(),
        given: text.to_owned(),
    })?;
    Ok(Some(match name {
        names::TIMER_DELAY_SEC => Timing::After(Duration::from_secs(number)),
        names::TIMER_DELAY_MS => Timing::After(Duration::from_millis(number)),
        _ => Timing::At(number.cast_signed()),
    }))
}

fn flag(text: &str) -> Result<i32, HeaderError> {
    text.trim()
        .parse()
        .map_err(|source| HeaderError::InvalidFlag {
            given: text.to_owned(),
            source,
        })
}

fn check_free(name: &str) -> Result<(), HeaderError> {
    match names::reserved(name) {
        Some(instead) => Err(HeaderError::Reserved {
            name: name.to_owned(),
            instead,
        }),
        None if matches!(names::resolve(name), names::Resolved::Fact(_)) => {
            Err(HeaderError::Reserved {
                name: name.to_owned(),
                instead: "",
            })
        }
        None => Ok(()),
    }
}

fn check_separators(name: &str, text: &str) -> Result<(), HeaderError> {
    if name.contains(SEPARATORS) || text.contains(SEPARATORS) {
        return Err(HeaderError::Separator {
            name: name.to_owned(),
        });
    }
    Ok(())
}
