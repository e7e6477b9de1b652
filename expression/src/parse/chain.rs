//! Operands: where a chain starts, and the steps from there.
//!
//! ```text
//! payload  ['customer']  .id  ?.length()
//! └start┘  └index──────┘ └───steps──────┘
//! ```

use super::{Parsed, Parser, node, unsupported};
use crate::ast::{Node, NodeKind, Step, StepKind};
use crate::error::{At, ParseProblem};
use crate::lex::{Token, TokenKind};
use crate::value::Value;

impl Parser<'_> {
    pub(super) fn chain(&mut self) -> Parsed<Option<Node>> {
        let Some(start) = self.start()? else {
            return Ok(None);
        };
        let mut steps = Vec::new();
        while let Some(step) = self.step()? {
            steps.push(step);
        }
        if steps.is_empty() {
            return Ok(Some(start));
        }
        Ok(Some(node(
            start.position,
            NodeKind::Chain(Box::new(start), steps),
        )))
    }

    fn step(&mut self) -> Parsed<Option<Step>> {
        let position = self.position();
        if self.take("[") {
            return Ok(Some(Step {
                position,
                kind: StepKind::Index(Box::new(self.index(position)?)),
            }));
        }
        let safe = self.sees("?.");
        if !safe && !self.sees(".") {
            return Ok(None);
        }
        self.at += 1;
        match self.peek() {
            Some(Token {
                kind: TokenKind::Word(name),
                position,
            }) => {
                let (name, position) = (name.clone(), *position);
                self.at += 1;
                let kind = match self.arguments()? {
                    Some(arguments) => StepKind::Call {
                        name,
                        arguments,
                        safe,
                    },
                    None => StepKind::Field { name, safe },
                };
                Ok(Some(Step { position, kind }))
            }
            None => Err(At::new(position, ParseProblem::Missing)),
            Some(Token {
                kind: TokenKind::Sign(sign @ ("![" | "?[" | "^[" | "$[")),
                ..
            }) => {
                let projection = *sign == "![";
                let construct = if projection {
                    "projection (`.![..]`)"
                } else {
                    "selection (`.?[..]`)"
                };
                let opened = self.position();
                self.at += 1;
                self.refuse(position, construct);
                if projection && self.sees("]") {
                    return Err(At::new(opened, ParseProblem::Missing));
                }
                self.index(opened)?;
                self.step()
            }
            Some(Token {
                kind: TokenKind::Sign("#"),
                ..
            }) => Err(unsupported(position, "a function or variable (`.#`)")),
            Some(_) => Err(At::new(position, ParseProblem::AfterDot)),
        }
    }

    /// The inside of brackets, after the opening one.
    fn index(&mut self, opened: usize) -> Parsed<Node> {
        let index = self
            .expression()?
            .ok_or(At::new(opened, ParseProblem::MissingIndex))?;
        self.expect("]", "`]`")?;
        Ok(index)
    }

    fn arguments(&mut self) -> Parsed<Option<Vec<Node>>> {
        let opened = self.position();
        if !self.take("(") {
            return Ok(None);
        }
        let mut arguments = Vec::new();
        let unclosed = || At::new(opened, ParseProblem::Arguments);
        loop {
            if self.peek().is_none() {
                return Err(unclosed());
            }
            if !self.sees(")") {
                arguments.push(self.operand()?);
            }
            if !self.take(",") {
                break;
            }
        }
        if self.peek().is_none() {
            return Err(unclosed());
        }
        self.expect(")", "`)`")?;
        Ok(Some(arguments))
    }

    fn start(&mut self) -> Parsed<Option<Node>> {
        let Some(Token { kind, position }) = self.peek().cloned() else {
            return Ok(None);
        };
        let found = |kind| Ok(Some(node(position, kind)));
        match kind {
            TokenKind::Literal(value) => {
                self.at += 1;
                found(NodeKind::Literal(value))
            }
            TokenKind::FloatLiteral => {
                self.at += 1;
                self.refuse(position, "a float literal");
                found(NodeKind::Literal(Value::Null))
            }
            TokenKind::Word(word) => self.word(word, position).map(Some),
            TokenKind::Sign("(") => {
                self.at += 1;
                let inner = self
                    .expression()?
                    .ok_or(At::new(position, ParseProblem::Missing))?;
                self.expect(")", "`)`")?;
                Ok(Some(inner))
            }
            TokenKind::Sign("{") => self.list(position).map(Some),
            TokenKind::Sign("#") => self.variable(position).map(Some),
            TokenKind::Sign("@") => Err(unsupported(position, "a bean reference (`@bean`)")),
            TokenKind::Sign("[") => {
                self.at += 1;
                self.refuse(position, "a leading index (write `#root[..]`)");
                self.index(position).map(Some)
            }
            TokenKind::Sign("![" | "?[" | "^[" | "$[") => {
                Err(unsupported(position, "selection and projection"))
            }
            TokenKind::Sign(_) => Ok(None),
        }
    }

    fn word(&mut self, word: String, position: usize) -> Parsed<Node> {
        self.at += 1;
        let literal = match word.to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "null" => Some(Value::Null),
            _ => None,
        };
        if let Some(value) = literal {
            return Ok(node(position, NodeKind::Literal(value)));
        }
        if word == "T" && !self.sees("]") {
            return self.type_reference(position);
        }
        if word.eq_ignore_ascii_case("new") && !self.sees("]") {
            return match self.peek() {
                None => Err(At::new(self.length, ParseProblem::Missing)),
                Some(_) => Err(unsupported(position, "`new`")),
            };
        }
        let kind = match self.arguments()? {
            Some(arguments) => NodeKind::Call(word, arguments),
            None => NodeKind::Name(word),
        };
        Ok(node(position, kind))
    }

    /// `T(Math).abs(x)` and nothing else.
    fn type_reference(&mut self, position: usize) -> Parsed<Node> {
        self.expect("(", "`(`")?;
        let is_math = matches!(self.peek(), Some(Token { kind: TokenKind::Word(name), .. }) if name == "Math");
        if !is_math {
            return Err(unsupported(
                position,
                "a type reference (`T()`) other than `T(Math).abs(..)`",
            ));
        }
        self.at += 1;
        self.expect(")", "`)`")?;
        match self.step()? {
            Some(Step {
                position,
                kind:
                    StepKind::Call {
                        name,
                        mut arguments,
                        ..
                    },
            }) if name == "abs" && arguments.len() == 1 => {
                let argument = arguments.swap_remove(0);
                Ok(node(position, NodeKind::Abs(position, Box::new(argument))))
            }
            _ => Err(unsupported(
                position,
                "a type reference (`T()`) other than `T(Math).abs(..)`",
            )),
        }
    }

    fn variable(&mut self, position: usize) -> Parsed<Node> {
        self.at += 1;
        match self.peek() {
            Some(Token {
                kind: TokenKind::Word(name),
                ..
            }) if name == "root" || name == "this" => {
                self.at += 1;
                Ok(node(position, NodeKind::Root))
            }
            Some(Token {
                kind: TokenKind::Word(name),
                ..
            }) => Err(unsupported(
                position,
                format!("the #variable `#{name}` (only `#root` and `#this` exist)"),
            )),
            Some(Token {
                kind: TokenKind::Sign("{"),
                ..
            }) => Err(unsupported(
                position,
                "a template (`#{..}`; write the expression itself)",
            )),
            _ => Err(At::new(
                self.position(),
                ParseProblem::Expected {
                    expected: "a name",
                    at_end: self.peek().is_none(),
                },
            )),
        }
    }

    fn list(&mut self, position: usize) -> Parsed<Node> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.take("}") {
            return Ok(node(position, NodeKind::List(elements)));
        }
        if self.sees(":") {
            return Err(unsupported(position, "an inline map"));
        }
        elements.push(self.operand()?);
        if self.sees(":") {
            return Err(unsupported(position, "an inline map"));
        }
        let several = self.sees(",");
        while self.take(",") {
            elements.push(self.operand()?);
        }
        if !self.take("}") {
            return Err(if several {
                At::new(
                    self.position(),
                    ParseProblem::Expected {
                        expected: "`}`",
                        at_end: self.peek().is_none(),
                    },
                )
            } else {
                At::new(position, ParseProblem::Missing)
            });
        }
        Ok(node(position, NodeKind::List(elements)))
    }
}
