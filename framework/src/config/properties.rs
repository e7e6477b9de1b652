//! Java's `.properties`: one `key=value` a line, the same keys as in YAML with dots.
//!
//! Comments (`#`, `!`), the three separators (`=`, `:`, blank), continued lines (`\` at the end) and the escapes
//! `\t \n \r \f \uXXXX` follow `java.util.Properties.load`.

use std::sync::Arc;

use super::{
    node::{Key, Node, NodeValue, Scalar},
    report::{Diagnostic, DiagnosticKind},
    span::{Source, Span},
};

/// The documents of a file: separated by `#---` or `!---`, as Spring does.
pub(crate) fn documents(
    source: &Arc<Source>,
    text: &str,
    report: &mut Vec<Diagnostic>,
) -> Vec<Node> {
    let mut documents = Vec::new();
    let mut entries = Vec::new();
    let mut lines = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .lines()
        .zip(1u32..);
    while let Some((line, number)) = lines.next() {
        let trimmed = line.trim_start();
        if matches!(line.trim_end(), "#---" | "!---") {
            finish(source, &mut entries, &mut documents);
        }
        if trimmed.is_empty() || trimmed.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while ends_in_odd_backslashes(&logical) {
            logical.pop();
            let Some((more, _)) = lines.next() else { break };
            logical.push_str(more.trim_start());
        }
        entries.push(entry(source, &logical, number, report));
    }
    finish(source, &mut entries, &mut documents);
    documents
}

fn finish(source: &Arc<Source>, entries: &mut Vec<(Key, Node)>, documents: &mut Vec<Node>) {
    if let Some((first, _)) = entries.first() {
        let span = Span::new(source.clone(), first.span.line(), 1, 1);
        documents.push(Node {
            span,
            value: NodeValue::Mapping(std::mem::take(entries)),
        });
    }
}

fn ends_in_odd_backslashes(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

fn entry(
    source: &Arc<Source>,
    line: &str,
    number: u32,
    report: &mut Vec<Diagnostic>,
) -> (Key, Node) {
    let chars: Vec<char> = line.chars().collect();
    let start = chars.iter().take_while(|c| c.is_whitespace()).count();
    let mut end = start;
    while end < chars.len() && !matches!(chars[end], '=' | ':' | ' ' | '\t') {
        end += if chars[end] == '\\' { 2 } else { 1 };
    }
    let end = end.min(chars.len());
    let mut value = end + blanks(&chars[end..]);
    if chars.get(value).is_some_and(|c| matches!(c, '=' | ':')) {
        value += 1;
        value += blanks(&chars[value..]);
    }
    let at = |from: usize, to: usize| {
        let column = u32::try_from(from).unwrap_or(u32::MAX).saturating_add(1);
        let length = u32::try_from(to.saturating_sub(from).max(1)).unwrap_or(u32::MAX);
        Span::new(source.clone(), number, column, length)
    };
    let key_span = at(start, end);
    let value_span = at(value, chars.len());
    let key = Key {
        text: unescape(&chars[start..end], &key_span, report),
        span: key_span,
        merged: false,
    };
    let text = unescape(&chars[value..], &value_span, report);
    (
        key,
        Node {
            span: value_span,
            value: NodeValue::Scalar(Scalar::text(text)),
        },
    )
}

fn blanks(chars: &[char]) -> usize {
    chars.iter().take_while(|c| c.is_whitespace()).count()
}

fn unescape(chars: &[char], span: &Span, report: &mut Vec<Diagnostic>) -> String {
    let mut text = String::new();
    let mut rest = chars.iter().copied();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('f') => text.push('\u{c}'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                match u32::from_str_radix(&digits, 16)
                    .ok()
                    .and_then(char::from_u32)
                {
                    Some(c) if digits.len() == 4 => text.push(c),
                    _ => {
                        let message = format!("`\\u{digits}` is not a character");
                        report.push(
                            Diagnostic::error(DiagnosticKind::Syntax, message).at(Some(span)),
                        );
                    }
                }
            }
            // A placeholder's escape must survive until placeholders are resolved.
            Some('$') => text.push_str("\\$"),
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let source = Source::file("a.properties", text);
        let mut report = Vec::new();
        let documents = documents(&source, text, &mut report);
        assert_eq!(report, Vec::new());
        let mut into = Vec::new();
        for document in documents {
            let NodeValue::Mapping(entries) = document.value else {
                continue;
            };
            for (key, node) in entries {
                let NodeValue::Scalar(scalar) = node.value else {
                    continue;
                };
                into.push(format!(
                    "{}@{}:{}={}@{}",
                    key.text,
                    key.span.line(),
                    key.span.column(),
                    scalar.text,
                    node.span.column()
                ));
            }
        }
        into
    }

    #[test]
    fn separators_comments_continuations_and_escapes_are_javas() {
        assert_eq!(
            shown("# c\n! c\na=1\n b : 2\nc 3\nd=x\\\n   y\ne=\\u0041\\t\nf\\=g=h\n"),
            [
                "a@3:1=1@3",
                "b@4:2=2@6",
                "c@5:1=3@3",
                "d@6:1=xy@3",
                "e@8:1=A\t@3",
                "f=g@9:1=h@6",
            ]
        );
    }

    #[test]
    fn documents_are_split_at_marks() {
        let text = "a=1\n#---\nb=2\n";
        assert_eq!(
            documents(&Source::file("a", text), text, &mut Vec::new()).len(),
            2
        );
    }
}
