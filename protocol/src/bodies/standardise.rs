//! Java's JSON dialect made standard, in one pass.
//!
//! ```text
//! {0:"a",{"topic":"t"}:1,"x":null} ─▶ {"0":"a","{\"topic\":\"t\"}":1}
//! ```
//!
//! It keeps its own stack, so that a peer can't choose the depth of ours.

/// Quotes bare and object keys and leaves null members out. Whatever it does not understand it copies, for the JSON parser
/// behind it to refuse.
pub(super) fn standardise(bytes: &[u8]) -> Vec<u8> {
    let mut standard = Standardiser {
        bytes,
        at: 0,
        out: Vec::with_capacity(bytes.len() + 64),
        open: Vec::new(),
    };
    while standard.step() {}
    let rest = bytes.get(standard.at..).unwrap_or_default();
    standard.out.extend_from_slice(rest);
    standard.out
}

/// An object or array that is not closed yet.
struct Open {
    object: bool,
    /// Whether something was written into it, so that a comma comes next.
    filled: bool,
}

struct Standardiser<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<u8>,
    open: Vec<Open>,
}

impl Standardiser<'_> {
    /// One value or member, or the end of an object or array; false when there is nothing more that makes sense.
    fn step(&mut self) -> bool {
        let mark = self.out.len();
        let start = self.at;
        match self.peek() {
            None => return false,
            Some(b'}' | b']') => {
                self.copy(1);
                return self.open.pop().is_some();
            }
            Some(b',') => {
                self.at += 1;
                return !self.open.is_empty();
            }
            Some(_) => {}
        }
        let in_object = match self.open.last() {
            Some(open) => {
                if open.filled {
                    self.out.push(b',');
                }
                open.object
            }
            None => false,
        };
        if in_object && !self.key() {
            self.out.truncate(mark);
            self.at = start;
            return false;
        }
        if in_object && self.rest().starts_with(b"null") {
            self.at += 4;
            self.out.truncate(mark);
            return true;
        }
        if let Some(open) = self.open.last_mut() {
            open.filled = true;
        }
        self.value()
    }

    /// A key and its colon.
    fn key(&mut self) -> bool {
        match self.peek() {
            Some(b'"') => {
                self.copy(string_len(self.rest()));
            }
            Some(b'{') => {
                let len = object_len(self.rest());
                let text = String::from_utf8_lossy(self.rest().get(..len).unwrap_or_default())
                    .into_owned();
                self.out
                    .extend_from_slice(serde_json::Value::String(text).to_string().as_bytes());
                self.at += len;
            }
            _ => {
                let len = word_len(self.rest());
                self.out.push(b'"');
                self.copy(len);
                self.out.push(b'"');
            }
        }
        let colon = self.peek() == Some(b':');
        if colon {
            self.copy(1);
            self.peek();
        }
        colon
    }

    fn value(&mut self) -> bool {
        match self.peek() {
            Some(byte @ (b'{' | b'[')) => {
                self.open.push(Open {
                    object: byte == b'{',
                    filled: false,
                });
                self.copy(1);
            }
            Some(b'"') => self.copy(string_len(self.rest())),
            _ => {
                let len = word_len(self.rest());
                self.copy(len);
                return len > 0;
            }
        }
        true
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is no blank, not consumed.
    fn peek(&mut self) -> Option<u8> {
        self.at += self
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        self.rest().first().copied()
    }

    fn copy(&mut self, len: usize) {
        let end = self.at.saturating_add(len).min(self.bytes.len());
        self.out
            .extend_from_slice(self.bytes.get(self.at..end).unwrap_or_default());
        self.at = end;
    }
}

/// Length of a string that starts with its quote; to the end when it is not closed.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
            return text.len();
        };
        if rest.get(found) == Some(&b'"') {
            return at + found + 1;
        }
        at += found + 2;
    }
}

/// Length of an object that starts with its brace; to the end when it is not closed.
fn object_len(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at += string_len(text.get(at..).unwrap_or_default());
                continue;
            }
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

/// Length of a number or word.
fn word_len(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_')
        })
        .count()
}
