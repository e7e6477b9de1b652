//! Tokens to an expression: one function a level of precedence, as in the grammar.
//!
//! ```text
//! elvis ─▶ or ─▶ and ─▶ compare ─▶ sum ─▶ product ─▶ unary ─▶ chain ─▶ start
//! ```
//!
//! Each level may find nothing (`None`); who needs an operand says which one is missing, at the place Spring names.

use crate::ast::{Comparison, Expression, Node, NodeKind, Operator};
use crate::error::{At, ParseError, ParseProblem};
use crate::lex::{Token, TokenKind, lex};
use crate::pattern::Pattern;
use crate::value::Value;

mod chain;

/// The longest expression, in characters.
const MAX_LENGTH: usize = 4096;

/// The deepest nesting, in levels of parentheses, indexes, arguments and operands of `?:`.
const MAX_DEPTH: usize = 64;

/// Parses an expression.
///
/// # Errors
/// [`ParseError`] with the position of the first mistake; constructs of Spring that are not part of Bindery's grammar
/// are named.
pub fn parse(text: &str) -> Result<Expression, ParseError> {
    let failed = |At { position, problem }| ParseError {
        expression: text.to_owned(),
        position,
        problem,
    };
    let length = text.chars().count();
    if length > MAX_LENGTH {
        return Err(failed(At::new(
            MAX_LENGTH,
            ParseProblem::TooLong { max: MAX_LENGTH },
        )));
    }
    let tokens = lex(text).map_err(failed)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        length,
        depth: 0,
        unsupported: None,
    };
    let root = parser.whole().map_err(failed)?;
    Ok(Expression {
        text: text.to_owned(),
        root,
    })
}

type Parsed<T> = Result<T, At<ParseProblem>>;

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    length: usize,
    depth: usize,
    // The first construct that only Spring has. Told at the end: a mistake that Spring sees as well is told first.
    unsupported: Option<At<ParseProblem>>,
}

impl Parser<'_> {
    fn whole(&mut self) -> Parsed<Node> {
        let root = self
            .expression()?
            .ok_or(At::new(0, ParseProblem::Missing))?;
        if let Some(token) = self.peek() {
            return Err(At::new(
                token.position,
                ParseProblem::MoreInput {
                    found: token.kind.text(),
                },
            ));
        }
        match self.unsupported.take() {
            Some(problem) => Err(problem),
            None => Ok(root),
        }
    }

    // Tokens.

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn position(&self) -> usize {
        self.peek().map_or(self.length, |token| token.position)
    }

    fn sees(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token { kind: TokenKind::Sign(found), .. }) if *found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.sees(sign);
        self.at += usize::from(found);
        found
    }

    /// Takes one of these signs or words (in any case), with its position.
    fn take_operator<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<(T, usize, String)> {
        let token = self.peek()?;
        let text = match &token.kind {
            TokenKind::Sign(sign) => (*sign).to_owned(),
            TokenKind::Word(word) => word.to_ascii_lowercase(),
            _ => return None,
        };
        let (_, operator) = table.iter().find(|(spelling, _)| *spelling == text)?;
        let found = (*operator, token.position, token.kind.text());
        self.at += 1;
        Some(found)
    }

    fn expect(&mut self, sign: &str, expected: &'static str) -> Parsed<()> {
        if self.take(sign) {
            return Ok(());
        }
        Err(At::new(
            self.position(),
            ParseProblem::Expected {
                expected,
                at_end: self.peek().is_none(),
            },
        ))
    }

    fn refuse(&mut self, position: usize, construct: impl Into<String>) {
        self.unsupported.get_or_insert(At::new(
            position,
            ParseProblem::Unsupported {
                construct: construct.into(),
            },
        ));
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(At::new(
                self.position(),
                ParseProblem::TooDeep { max: MAX_DEPTH },
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    // Levels of precedence.

    fn expression(&mut self) -> Parsed<Option<Node>> {
        self.deeper(Self::elvis)
    }

    fn operand(&mut self) -> Parsed<Node> {
        let position = self.position();
        self.expression()?
            .ok_or(At::new(position, ParseProblem::Missing))
    }

    fn elvis(&mut self) -> Parsed<Option<Node>> {
        let first = self.or()?;
        let position = self.position();
        if self.take("=") {
            self.refuse(position, "assignment");
            self.or()?;
            return Ok(first);
        }
        if self.take("?:") {
            let left = first.ok_or(At::new(position, ParseProblem::Missing))?;
            let right = self.operand()?;
            return Ok(Some(node(
                left.position,
                NodeKind::Elvis(Box::new(left), Box::new(right)),
            )));
        }
        if self.take("?") {
            let condition = first.ok_or(At::new(position, ParseProblem::Missing))?;
            let yes = self.operand()?;
            self.expect(":", "`:`")?;
            let no = self.operand()?;
            let kind = NodeKind::Ternary(Box::new(condition), Box::new(yes), Box::new(no));
            return Ok(Some(node(position, kind)));
        }
        Ok(first)
    }

    fn or(&mut self) -> Parsed<Option<Node>> {
        self.logical(&[("or", ()), ("||", ())], Self::and, NodeKind::Or)
    }

    fn and(&mut self) -> Parsed<Option<Node>> {
        self.logical(&[("and", ()), ("&&", ())], Self::compare, NodeKind::And)
    }

    fn logical(
        &mut self,
        operators: &[(&str, ())],
        level: fn(&mut Self) -> Parsed<Option<Node>>,
        kind: fn(Box<Node>, Vec<Node>) -> NodeKind,
    ) -> Parsed<Option<Node>> {
        let mut first = level(self)?;
        let mut rest = Vec::new();
        while let Some(((), position, operator)) = self.take_operator(operators) {
            let right = level(self)?;
            rest.push(both(&mut first, right, position, operator)?);
        }
        Ok(match first {
            Some(first) if !rest.is_empty() => {
                Some(node(first.position, kind(Box::new(first), rest)))
            }
            first => first,
        })
    }

    fn compare(&mut self) -> Parsed<Option<Node>> {
        #[derive(Clone, Copy)]
        enum Relation {
            Compare(Comparison),
            Matches,
            Between,
            InstanceOf,
        }
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        const TABLE: &[(&str, Relation)] = &[
            ("==", Relation::Compare(Equal)),
            ("eq", Relation::Compare(Equal)),
            ("!=", Relation::Compare(NotEqual)),
            ("ne", Relation::Compare(NotEqual)),
            ("<", Relation::Compare(Less)),
            ("lt", Relation::Compare(Less)),
            ("<=", Relation::Compare(LessOrEqual)),
            ("le", Relation::Compare(LessOrEqual)),
            (">", Relation::Compare(Greater)),
            ("gt", Relation::Compare(Greater)),
            (">=", Relation::Compare(GreaterOrEqual)),
            ("ge", Relation::Compare(GreaterOrEqual)),
            ("matches", Relation::Matches),
            ("between", Relation::Between),
            ("instanceof", Relation::InstanceOf),
        ];
        let mut first = self.sum()?;
        let Some((relation, position, operator)) = self.take_operator(TABLE) else {
            return Ok(first);
        };
        let right = self.sum()?;
        let right = both(&mut first, right, position, operator)?;
        let Some(left) = first else { return Ok(None) };
        let start = left.position;
        let kind = match relation {
            Relation::Compare(comparison) => {
                NodeKind::Compare(comparison, Box::new(left), Box::new(right))
            }
            Relation::Matches => match self.pattern(&right)? {
                Some(pattern) => NodeKind::Matches(Box::new(left), pattern),
                None => return Ok(Some(left)),
            },
            Relation::Between => {
                self.refuse(position, "`between`");
                return Ok(Some(left));
            }
            Relation::InstanceOf => {
                self.refuse(position, "`instanceof`");
                return Ok(Some(left));
            }
        };
        Ok(Some(node(start, kind)))
    }

    fn pattern(&mut self, right: &Node) -> Parsed<Option<Pattern>> {
        let NodeKind::Literal(Value::Text(text)) = &right.kind else {
            self.refuse(right.position, "`matches` with a computed pattern");
            return Ok(None);
        };
        match Pattern::compile(text) {
            Ok(pattern) => Ok(Some(pattern)),
            Err(reason) => Err(At::new(right.position, ParseProblem::Pattern { reason })),
        }
    }

    fn sum(&mut self) -> Parsed<Option<Node>> {
        let mut first = self.product()?;
        let mut rest = Vec::new();
        let table = &[("+", Operator::Add), ("-", Operator::Subtract)];
        while let Some((operator, position, text)) = self.take_operator(table) {
            // A sign without a left operand was taken by the level of unary operators.
            let right = self.product()?;
            rest.push((operator, both(&mut first, right, position, text)?));
        }
        Ok(arithmetic(first, rest))
    }

    fn product(&mut self) -> Parsed<Option<Node>> {
        let mut first = self.power()?;
        let mut rest = Vec::new();
        let table = &[
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("div", Operator::Divide),
            ("%", Operator::Remainder),
            ("mod", Operator::Remainder),
        ];
        while let Some((operator, position, text)) = self.take_operator(table) {
            let right = self.power()?;
            rest.push((operator, both(&mut first, right, position, text)?));
        }
        Ok(arithmetic(first, rest))
    }

    /// `^`, `++` and `--` behind an operand exist in Spring only.
    fn power(&mut self) -> Parsed<Option<Node>> {
        let operand = self.unary()?;
        let position = self.position();
        if self.take("^") {
            if self.unary()?.is_none() {
                return Err(At::new(
                    position,
                    ParseProblem::RightOperand {
                        operator: "^".to_owned(),
                    },
                ));
            }
            self.refuse(position, "the power operator `^`");
        } else if operand.is_some() && self.take("++") {
            self.refuse(position, "increment (`++`)");
        } else if operand.is_some() && self.take("--") {
            self.refuse(position, "decrement (`--`)");
        }
        Ok(operand)
    }

    fn unary(&mut self) -> Parsed<Option<Node>> {
        #[derive(Clone, Copy)]
        enum Unary {
            Not,
            Negate,
            Plus,
            Step(&'static str),
        }
        const TABLE: &[(&str, Unary)] = &[
            ("!", Unary::Not),
            ("not", Unary::Not),
            ("-", Unary::Negate),
            ("+", Unary::Plus),
            ("++", Unary::Step("increment (`++`)")),
            ("--", Unary::Step("decrement (`--`)")),
        ];
        let Some((operator, position, _)) = self.take_operator(TABLE) else {
            return self.chain();
        };
        let operand = self
            .deeper(Self::unary)?
            .ok_or(At::new(position, ParseProblem::Missing))?;
        Ok(Some(match operator {
            Unary::Not => node(position, NodeKind::Not(Box::new(operand))),
            Unary::Negate => node(position, NodeKind::Negate(Box::new(operand))),
            Unary::Plus => {
                self.refuse(position, "unary plus");
                operand
            }
            Unary::Step(construct) => {
                self.refuse(position, construct);
                operand
            }
        }))
    }
}

fn node(position: usize, kind: NodeKind) -> Node {
    Node { position, kind }
}

fn unsupported(position: usize, construct: impl Into<String>) -> At<ParseProblem> {
    At::new(
        position,
        ParseProblem::Unsupported {
            construct: construct.into(),
        },
    )
}

/// Both operands must be there; gives back the right one.
fn both(
    left: &mut Option<Node>,
    right: Option<Node>,
    position: usize,
    operator: String,
) -> Parsed<Node> {
    if left.is_none() {
        return Err(At::new(position, ParseProblem::LeftOperand { operator }));
    }
    right.ok_or(At::new(position, ParseProblem::RightOperand { operator }))
}

fn arithmetic(first: Option<Node>, rest: Vec<(Operator, Node)>) -> Option<Node> {
    match first {
        Some(first) if !rest.is_empty() => Some(node(
            first.position,
            NodeKind::Arithmetic(Box::new(first), rest),
        )),
        first => first,
    }
}
