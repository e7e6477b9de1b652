//! Tokens to a condition: one function a level of precedence, as in the grammar of [`super::SqlFilter`].
//!
//! ```text
//! whole ─▶ or ─▶ and ─▶ equality ─▶ comparison ─▶ unary ─▶ primary ─▶ (or)
//! ```
//!
//! What the grammar allows and the meaning forbids is refused on the way, in the order in which Java does it, so that of
//! several mistakes the same one is reported. Constants are not computed: `-5` is no constant to `BETWEEN`'s check.

use super::ast::{Condition, Operand, Order, Place, Sought};
use super::error::shown;
use super::lex::{Keyword, Symbol, Token, TokenKind, lex};
use super::part::{self, Mistake, Parsed, Part, equal, negate, not, ordered};
use super::{SqlError, SqlProblem};

/// The deepest nesting of an expression: parentheses, signs and `NOT`s that are open at the same time, and comparisons
/// that are chained (`a = b = TRUE`).
pub const MAX_DEPTH: usize = 64;

/// The longest expression, in bytes. A read expression takes some twenty times as much memory.
pub const MAX_LENGTH: usize = 256 * 1024;

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Condition, SqlError> {
    if text.len() > MAX_LENGTH {
        return Err(SqlError {
            problem: SqlProblem::TooLong {
                length: text.len(),
                max: MAX_LENGTH,
            },
            line: 1,
            column: 1,
        });
    }
    let parser = Parser {
        text,
        tokens: lex(text),
        next: 0,
        open: 0,
        chained: 0,
    };
    parser.whole().map_err(|mistake| mistake.located(text))
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    open: usize,
    chained: usize,
}

impl<'a> Parser<'a> {
    fn whole(mut self) -> Parsed<Condition> {
        let whole = self.or()?;
        let token = self.token()?;
        let rest = self.text.get(token.at..).unwrap_or_default();
        // A comment that the text ends in, without an end of its line, comes here as two signs.
        if token.kind != TokenKind::End && !rest.starts_with("--") {
            let found = self.found(token);
            return Err(Mistake::new(token.at, SqlProblem::Trailing { found }));
        }
        whole.into_condition()
    }

    fn or(&mut self) -> Parsed<Part> {
        self.joined(Keyword::Or, Self::and, Condition::Any)
    }

    fn and(&mut self) -> Parsed<Part> {
        self.joined(Keyword::And, Self::equality, Condition::All)
    }

    fn joined(
        &mut self,
        word: Keyword,
        level: fn(&mut Self) -> Parsed<Part>,
        join: fn(Vec<Condition>) -> Condition,
    ) -> Parsed<Part> {
        let first = level(self)?;
        if !self.takes(&TokenKind::Keyword(word))? {
            return Ok(first);
        }
        let at = first.at;
        let second = level(self)?;
        let mut conditions = vec![first.into_condition()?, second.into_condition()?];
        while self.takes(&TokenKind::Keyword(word))? {
            conditions.push(level(self)?.into_condition()?);
        }
        Ok(Part::condition(at, join(conditions)))
    }

    fn equality(&mut self) -> Parsed<Part> {
        let mut left = self.comparison()?;
        let mut links = 0;
        loop {
            let at = left.at;
            let condition = match self.token()?.kind {
                TokenKind::Symbol(Symbol::Equal) => {
                    self.advance();
                    equal(left, self.comparison()?)?
                }
                TokenKind::Symbol(Symbol::NotEqual) => {
                    self.advance();
                    not(equal(left, self.comparison()?)?)
                }
                TokenKind::Keyword(Keyword::Is) => {
                    self.advance();
                    let negated = self.takes(&TokenKind::Keyword(Keyword::Not))?;
                    self.expect(&TokenKind::Keyword(Keyword::Null), "NULL or NOT NULL")?;
                    negate(negated, Condition::IsNull(left.operand))
                }
                _ => return Ok(left),
            };
            left = Part::condition(at, condition);
            self.link(&mut links)?;
        }
    }

    fn comparison(&mut self) -> Parsed<Part> {
        let mut left = self.unary()?;
        let mut links = 0;
        loop {
            let at = left.at;
            let condition = match self.token()?.kind {
                TokenKind::Symbol(symbol) => match order(symbol) {
                    Some(order) => {
                        self.advance();
                        ordered(left, order, self.unary()?)?
                    }
                    None => return Ok(left),
                },
                TokenKind::Keyword(Keyword::Not) => {
                    let word = self.negated_predicate()?;
                    self.advance();
                    self.advance();
                    self.predicate(left, word, true)?
                }
                TokenKind::Keyword(word) if is_predicate(word) => {
                    self.advance();
                    self.predicate(left, word, false)?
                }
                _ => return Ok(left),
            };
            left = Part::condition(at, condition);
            self.link(&mut links)?;
        }
    }

    /// What follows a NOT behind an operand.
    fn negated_predicate(&self) -> Parsed<Keyword> {
        match self.token_at(self.next + 1)?.kind {
            TokenKind::Keyword(word) if is_predicate(word) => Ok(word),
            _ => Err(self.unexpected("an operator, AND or OR")),
        }
    }

    /// The rest of a comparison by a word, which is already behind.
    fn predicate(&mut self, left: Part, word: Keyword, negated: bool) -> Parsed<Condition> {
        let place = match word {
            Keyword::Between => return Ok(negate(negated, self.between(left, negated)?)),
            Keyword::In => return Ok(negate(negated, self.within(left)?)),
            Keyword::StartsWith => Place::Start,
            Keyword::EndsWith => Place::End,
            _ => Place::Anywhere,
        };
        Ok(Condition::Search {
            value: left.operand,
            place,
            sought: self.text_literal()?,
            result: if negated {
                Sought::Absent
            } else {
                Sought::Present
            },
        })
    }

    /// `low AND high`. The bounds themselves are compared for the plain form only.
    fn between(&mut self, value: Part, negated: bool) -> Parsed<Condition> {
        let low = self.unary()?;
        self.expect(&TokenKind::Keyword(Keyword::And), "AND")?;
        let high = self.unary()?;
        if !negated {
            part::check_bounds(&low, &high)?;
        }
        value.check_ordered()?;
        low.check_ordered()?;
        high.check_ordered()?;
        Ok(Condition::Between {
            value: value.operand,
            low: low.operand,
            high: high.operand,
        })
    }

    /// `(text, …)`.
    fn within(&mut self, left: Part) -> Parsed<Condition> {
        self.expect(&TokenKind::Symbol(Symbol::Open), "(")?;
        let mut texts = std::collections::BTreeSet::from([self.text_literal()?]);
        while self.takes(&TokenKind::Symbol(Symbol::Comma))? {
            texts.insert(self.text_literal()?);
        }
        self.expect(&TokenKind::Symbol(Symbol::Close), ", or )")?;
        match left.operand {
            Operand::Property(property) => Ok(Condition::In { property, texts }),
            _ => Err(left.wrong(SqlProblem::NotAProperty {
                operand: left.operand.to_string(),
            })),
        }
    }

    fn unary(&mut self) -> Parsed<Part> {
        let at = self.token()?.at;
        match self.token()?.kind {
            TokenKind::Symbol(Symbol::Plus) => {
                let operand = self.nested(Self::unary)?.operand;
                Ok(Part { at, operand })
            }
            TokenKind::Symbol(Symbol::Minus) => {
                let operand = Operand::Negated(Box::new(self.nested(Self::unary)?.operand));
                Ok(Part { at, operand })
            }
            TokenKind::Keyword(Keyword::Not) => {
                let condition = self.nested(Self::unary)?.into_condition()?;
                Ok(Part::condition(at, not(condition)))
            }
            _ => self.primary(),
        }
    }

    fn primary(&mut self) -> Parsed<Part> {
        let token = self.token()?;
        let at = token.at;
        let wrong = |problem| Mistake::new(at, problem);
        let operand = match token.kind {
            TokenKind::Text(text) => Operand::Text(part::unquoted(text)),
            TokenKind::Integer(text) => Operand::Number(part::integer(text).map_err(wrong)?),
            TokenKind::Double(text) => Operand::Number(part::double(text).map_err(wrong)?),
            TokenKind::Keyword(Keyword::True) => Operand::Truth(true),
            TokenKind::Keyword(Keyword::False) => Operand::Truth(false),
            TokenKind::Keyword(Keyword::Null) => Operand::Null,
            TokenKind::Name(name) => Operand::Property(name.into()),
            TokenKind::Symbol(Symbol::Open) => {
                let operand = self.nested(Self::or)?.operand;
                self.expect(&TokenKind::Symbol(Symbol::Close), ")")?;
                return Ok(Part { at, operand });
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.advance();
        Ok(Part { at, operand })
    }

    /// Reads what follows the token that opens a level.
    fn nested(&mut self, level: fn(&mut Self) -> Parsed<Part>) -> Parsed<Part> {
        self.open += 1;
        self.check_depth()?;
        self.advance();
        let inner = level(self)?;
        self.open -= 1;
        Ok(inner)
    }

    /// Counts a comparison whose left side is a comparison. They stay counted: the tree is as deep as its longest chain.
    fn link(&mut self, links: &mut usize) -> Parsed<()> {
        *links += 1;
        if *links > 1 {
            self.chained += 1;
        }
        self.check_depth()
    }

    fn check_depth(&self) -> Parsed<()> {
        if self.open + self.chained <= MAX_DEPTH {
            return Ok(());
        }
        let at = self.token()?.at;
        Err(Mistake::new(at, SqlProblem::TooDeep { max: MAX_DEPTH }))
    }

    fn text_literal(&mut self) -> Parsed<Box<str>> {
        let TokenKind::Text(text) = self.token()?.kind else {
            return Err(self.unexpected("a text such as 'x'"));
        };
        self.advance();
        Ok(part::unquoted(text))
    }

    /// The next token; a mistake if it can't be read.
    fn token(&self) -> Parsed<&Token<'a>> {
        self.token_at(self.next)
    }

    fn token_at(&self, index: usize) -> Parsed<&Token<'a>> {
        const END: &Token<'static> = &Token {
            at: 0,
            kind: TokenKind::End,
        };
        // The last token is never stepped over, so there is always one.
        let token = self.tokens.get(index).or(self.tokens.last()).unwrap_or(END);
        match &token.kind {
            TokenKind::Unreadable(problem) => Err(Mistake::new(token.at, problem.clone())),
            _ => Ok(token),
        }
    }

    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len().saturating_sub(1));
    }

    fn takes(&mut self, kind: &TokenKind<'_>) -> Parsed<bool> {
        let taken = self.token()?.kind == *kind;
        if taken {
            self.advance();
        }
        Ok(taken)
    }

    fn expect(&mut self, kind: &TokenKind<'_>, expected: &'static str) -> Parsed<()> {
        if self.takes(kind)? {
            return Ok(());
        }
        Err(self.unexpected(expected))
    }

    fn unexpected(&self, expected: &'static str) -> Mistake {
        match self.token() {
            Ok(token) => {
                let found = self.found(token);
                Mistake::new(token.at, SqlProblem::Unexpected { found, expected })
            }
            Err(mistake) => mistake,
        }
    }

    /// Names a token by its text.
    fn found(&self, token: &Token<'_>) -> String {
        if token.kind == TokenKind::End {
            return "the end".to_owned();
        }
        let rest = self.text.get(token.at..).unwrap_or_default();
        let length = match token.kind {
            TokenKind::Text(text) => text.len() + 2,
            TokenKind::Symbol(Symbol::NotEqual | Symbol::LessOrEqual | Symbol::GreaterOrEqual) => 2,
            TokenKind::Symbol(_) => 1,
            _ => rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.')))
                .unwrap_or(rest.len()),
        };
        format!("`{}`", shown(rest.get(..length).unwrap_or(rest)))
    }
}

fn is_predicate(word: Keyword) -> bool {
    matches!(
        word,
        Keyword::Between
            | Keyword::In
            | Keyword::Contains
            | Keyword::StartsWith
            | Keyword::EndsWith
    )
}

fn order(symbol: Symbol) -> Option<Order> {
    match symbol {
        Symbol::Greater => Some(Order::Greater),
        Symbol::GreaterOrEqual => Some(Order::GreaterOrEqual),
        Symbol::Less => Some(Order::Less),
        Symbol::LessOrEqual => Some(Order::LessOrEqual),
        _ => None,
    }
}
