//! YAML by the parser's events, so that every key and scalar keeps line, column and source text.
//!
//! ```text
//! text ──saphyr-parser──▶ events with markers ──Composer──▶ documents (Node)
//! ```
//! A document is a mapping. Anchors, aliases and merge keys are resolved here; typing is not: `0123` stays `0123`.

use std::{collections::HashMap, sync::Arc};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span as YamlSpan, StrInput, Tag};

use super::{
    node::{Key, Node, NodeValue, Scalar},
    report::{Diagnostic, DiagnosticKind},
    span::{Source, Span},
};

/// Nesting deeper than this is refused: the composer and everything after it recurse.
const MAX_DEPTH: usize = 64;
/// Nodes of one file, copies made by aliases included; stops documents that multiply themselves.
const MAX_NODES: usize = 200_000;

/// The documents of `source`, whose text is `text`; empty ones are left out. Mistakes go to `report`; what was
/// composed before a syntax error is kept, so that mistakes in earlier documents are told as well.
pub(crate) fn documents(
    source: &Arc<Source>,
    text: &str,
    report: &mut Vec<Diagnostic>,
) -> Vec<Node> {
    // A byte order mark is no character of the document.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut composer = Composer {
        parser: Parser::new_from_str(text),
        source,
        anchors: HashMap::new(),
        nodes: 0,
        report,
    };
    let mut documents = Vec::new();
    if let Err(Stop(diagnostic)) = composer.stream(&mut documents) {
        composer.report.push(*diagnostic);
    }
    documents
}

/// Composing ends here.
struct Stop(Box<Diagnostic>);

struct Composer<'a, 'r> {
    parser: Parser<'a, StrInput<'a>>,
    source: &'a Arc<Source>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    report: &'r mut Vec<Diagnostic>,
}

type Positioned<'a> = (Event<'a>, YamlSpan);

impl<'a> Composer<'a, '_> {
    fn stream(&mut self, documents: &mut Vec<Node>) -> Result<(), Stop> {
        while let Some(event) = self.parser.next_event() {
            match self.checked(event)? {
                (Event::StreamEnd, _) => break,
                (Event::DocumentStart(_), _) => {
                    let first = self.next()?;
                    let node = self.node(first, 0)?;
                    self.anchors.clear();
                    if let Some(node) = self.document(node) {
                        documents.push(node);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A document must be a mapping; an empty one is nothing.
    fn document(&mut self, node: Node) -> Option<Node> {
        match &node.value {
            NodeValue::Mapping(_) => Some(node),
            NodeValue::Scalar(scalar) if scalar.null => None,
            _ => {
                let message = "a document must be a mapping of keys to values";
                self.report
                    .push(Diagnostic::error(DiagnosticKind::Syntax, message).at(Some(&node.span)));
                None
            }
        }
    }

    fn next(&mut self) -> Result<Positioned<'a>, Stop> {
        let event = self
            .parser
            .next_event()
            .ok_or_else(|| self.stop("the text ends too early", None))?;
        self.checked(event)
    }

    fn checked(
        &self,
        event: Result<Positioned<'a>, saphyr_parser::ScanError>,
    ) -> Result<Positioned<'a>, Stop> {
        event.map_err(|error| self.stop(error.info(), Some(self.point(error.marker()))))
    }

    fn stop(&self, message: &str, span: Option<Span>) -> Stop {
        let span = span.unwrap_or_else(|| Span::whole(self.source.clone()));
        Stop(Box::new(
            Diagnostic::error(DiagnosticKind::Syntax, format!("not YAML: {message}"))
                .at(Some(&span)),
        ))
    }

    fn node(&mut self, (event, at): Positioned<'a>, depth: usize) -> Result<Node, Stop> {
        let span = self.span(&at);
        self.nodes += 1;
        if depth > MAX_DEPTH {
            return Err(self.stop(
                &format!("nested deeper than {MAX_DEPTH} levels"),
                Some(span),
            ));
        }
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                // Nothing written: the parser points at the colon, people look behind it.
                let span = if at.is_empty() { after(&span) } else { span };
                let scalar = self.scalar(&text, style, tag.as_deref(), &span);
                (
                    anchor,
                    Node {
                        span,
                        value: NodeValue::Scalar(scalar),
                    },
                )
            }
            Event::SequenceStart(anchor, _) => (
                anchor,
                Node {
                    span,
                    value: self.sequence(depth)?,
                },
            ),
            Event::MappingStart(anchor, _) => (
                anchor,
                Node {
                    span,
                    value: self.mapping(depth)?,
                },
            ),
            Event::Alias(anchor) => (0, self.alias(anchor, span)?),
            _ => return Err(self.stop("a value is missing here", Some(span))),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        if self.nodes > MAX_NODES {
            return Err(self.stop(&format!("more than {MAX_NODES} values"), Some(node.span)));
        }
        Ok(node)
    }

    /// The anchor's value; its keys and scalars keep the positions where they were written.
    fn alias(&mut self, anchor: usize, span: Span) -> Result<Node, Stop> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(self.stop("this alias stands inside the value it names", Some(span)));
        };
        self.nodes += count(&node);
        Ok(node)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> Scalar {
        if let Some(tag) = tag.filter(|tag| !is_known(tag)) {
            let message = format!("unknown tag `{tag}`");
            self.report
                .push(Diagnostic::error(DiagnosticKind::Syntax, message).at(Some(span)));
        }
        let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        // The parser gives an empty block scalar a line break that isn't there.
        let text = if block && text.chars().all(|c| c == '\n') {
            ""
        } else {
            text
        };
        let plain = style == ScalarStyle::Plain && tag.is_none();
        let null = plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
        Scalar {
            text: if null { String::new() } else { text.to_owned() },
            plain,
            null,
        }
    }

    fn sequence(&mut self, depth: usize) -> Result<NodeValue, Stop> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(NodeValue::Sequence(items)),
                event => items.push(self.node(event, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<NodeValue, Stop> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut merged = Vec::new();
        loop {
            let event = match self.next()? {
                (Event::MappingEnd, _) => break,
                event => event,
            };
            let key = self.node(event, depth + 1)?;
            let event = self.next()?;
            let value = self.node(event, depth + 1)?;
            match key.value {
                NodeValue::Scalar(scalar) if scalar.plain && scalar.text == "<<" => {
                    self.merge(value, &mut merged);
                }
                NodeValue::Scalar(scalar) => {
                    let text = if scalar.null {
                        "~".to_owned()
                    } else {
                        scalar.text
                    };
                    entries.push((
                        Key {
                            text,
                            span: key.span,
                            merged: false,
                        },
                        value,
                    ));
                }
                _ => self.complain("a key must be plain text", &key.span),
            }
        }
        // The mapping's own keys win over merged ones, and the first merged mapping over later ones.
        for (key, value) in merged {
            if !entries.iter().any(|(own, _)| own.text == key.text) {
                entries.push((key, value));
            }
        }
        Ok(NodeValue::Mapping(entries))
    }

    fn merge(&mut self, value: Node, into: &mut Vec<(Key, Node)>) {
        match value.value {
            NodeValue::Mapping(entries) => {
                into.extend(entries.into_iter().map(|(key, value)| {
                    (
                        Key {
                            merged: true,
                            ..key
                        },
                        value,
                    )
                }));
            }
            NodeValue::Sequence(items) => items.into_iter().for_each(|item| self.merge(item, into)),
            NodeValue::Scalar(_) => {
                self.complain("`<<` takes a mapping or a list of mappings", &value.span);
            }
        }
    }

    fn complain(&mut self, message: &str, span: &Span) {
        self.report
            .push(Diagnostic::error(DiagnosticKind::Syntax, message).at(Some(span)));
    }

    /// The first line of a stretch; a scalar of several lines is marked by its first.
    fn span(&self, at: &YamlSpan) -> Span {
        let length = if at.start.line() == at.end.line() {
            at.end.col().saturating_sub(at.start.col())
        } else {
            1
        };
        let start = self.point(&at.start);
        Span::new(
            self.source.clone(),
            start.line(),
            start.column(),
            u32::try_from(length.max(1)).unwrap_or(u32::MAX),
        )
    }

    /// The parser counts lines from 1 and columns from 0.
    fn point(&self, marker: &Marker) -> Span {
        let line = u32::try_from(marker.line()).unwrap_or(u32::MAX);
        let column = u32::try_from(marker.col())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        Span::new(self.source.clone(), line, column, 1)
    }
}

fn after(span: &Span) -> Span {
    Span::new(
        span.source().clone(),
        span.line(),
        span.column().saturating_add(1),
        span.length(),
    )
}

fn is_known(tag: &Tag) -> bool {
    let core = ["str", "int", "bool", "float", "null", "map", "seq"];
    (tag.is_yaml_core_schema() && core.contains(&tag.suffix.as_str()))
        || (tag.handle.is_empty() && tag.suffix == "!")
}

fn count(node: &Node) -> usize {
    1 + match &node.value {
        NodeValue::Scalar(_) => 0,
        NodeValue::Sequence(items) => items.iter().map(count).sum(),
        NodeValue::Mapping(entries) => entries
            .iter()
            .map(|(_, value)| 1 + count(value))
            .sum::<usize>(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn parse(text: &str) -> (Vec<Node>, Vec<Diagnostic>) {
        let source = Source::file("a.yaml", text);
        let mut report = Vec::new();
        let documents = documents(&source, text, &mut report);
        (documents, report)
    }

    /// `key=value@line:column` of every leaf.
    fn leaves(node: &Node, prefix: &str, into: &mut Vec<String>) {
        match &node.value {
            NodeValue::Scalar(scalar) => {
                into.push(format!(
                    "{prefix}={}@{}:{}+{}",
                    scalar.text,
                    node.span.line(),
                    node.span.column(),
                    node.span.length()
                ));
            }
            NodeValue::Sequence(items) => items
                .iter()
                .for_each(|item| leaves(item, &format!("{prefix}[]"), into)),
            NodeValue::Mapping(entries) => {
                for (key, value) in entries {
                    leaves(
                        value,
                        &format!(
                            "{prefix}/{}@{}:{}",
                            key.text,
                            key.span.line(),
                            key.span.column()
                        ),
                        into,
                    );
                }
            }
        }
    }

    fn shown(text: &str) -> Vec<String> {
        let (documents, report) = parse(text);
        assert_eq!(report, Vec::new());
        let mut into = Vec::new();
        for document in &documents {
            leaves(document, "", &mut into);
        }
        into
    }

    #[test]
    fn keys_and_scalars_know_line_column_and_source_text() {
        assert_eq!(
            shown("a:\n  b: 0123\n  订单: ['x', y]\n"),
            [
                "/a@1:1/b@2:3=0123@2:6+4",
                "/a@1:1/订单@3:3[]=x@3:8+3",
                "/a@1:1/订单@3:3[]=y@3:13+1",
            ]
        );
    }

    #[test]
    fn merge_keys_give_way_to_the_mappings_own_keys() {
        assert_eq!(
            shown("b: &b {x: 1, y: 2}\nc:\n  <<: *b\n  y: 3\n"),
            [
                "/b@1:1/x@1:8=1@1:11+1",
                "/b@1:1/y@1:14=2@1:17+1",
                "/c@2:1/y@4:3=3@4:6+1",
                "/c@2:1/x@1:8=1@1:11+1",
            ]
        );
    }

    #[test]
    fn documents_before_a_syntax_error_are_kept() {
        let (documents, report) = parse("a: 1\n---\nb: 2\n---\nc: [1\n");
        assert_eq!(documents.len(), 2);
        assert_eq!(report.len(), 1);
        assert_eq!(report[0].kind, DiagnosticKind::Syntax);
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let previous = format!("*a{}, ", level - 1).repeat(10);
            let line = format!(
                "a{level}: &a{level} [{}]\n",
                previous.trim_end_matches(", ")
            );
            text.push_str(&line);
        }
        let (_, report) = parse(&text);
        assert!(report[0].message.contains("more than"), "{report:?}");
    }

    #[test]
    fn deep_nesting_tabs_and_lists_at_the_top_are_errors() {
        for text in [
            format!("a: {}", "[".repeat(500)),
            "a:\n\tb: c\n".to_owned(),
            "- a\n- b\n".to_owned(),
            "a: !x y\n".to_owned(),
        ] {
            assert_eq!(parse(&text).1.len(), 1, "{text:.20}");
        }
    }
}
