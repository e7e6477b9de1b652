//! Tokens to a condition, with the precedence of the grammar of [`super::SqlFilter`].
//!
//! ```text
//! operand ─▶ signs, NOT ─▶ comparison ─▶ equality ─▶ AND ─▶ OR ─▶ ")" ─▶ the operand of the level outside, or the end
//!    ▲                         └───────────┴──────────┴──────┴─ an operator: the left side waits in its level
//!    └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A level is what is open between two parentheses. Levels are kept in a list and not in the calls of functions, so that a
//! text can't use up the stack.
//!
//! What the grammar allows and the meaning forbids is refused on the way, in the order in which Java does it, so that of
//! several mistakes the same one is reported. Constants are not computed: `-5` is no constant to `BETWEEN`'s check.

use std::collections::BTreeSet;

use super::ast::{Condition, Operand, Order, Place, Sought};
use super::error::shown;
use super::lex::{Keyword, Symbol, Token, TokenKind, lex};
use super::part::{self, Joined, Mistake, Parsed, Part, Prefix};
use super::{SqlError, SqlProblem};

/// The deepest nesting of an expression: of open parentheses, and of conditions inside one another. Parentheses alone
/// nest no conditions, neither do long rows of AND or OR.
pub const MAX_DEPTH: usize = 500;

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
        outside: Vec::new(),
        level: Level::default(),
    };
    parser.whole().map_err(|mistake| mistake.located(text))
}

/// What waits, between two parentheses, for the operand that is being read.
#[derive(Default)]
struct Level {
    /// Where it opened.
    at: usize,
    /// Signs and NOTs before the operand, and where they stand.
    prefixes: Vec<(usize, Prefix)>,
    comparison: Option<Comparison>,
    /// The left side of `=`, or of `<>` if negated.
    equality: Option<(Part, Negated)>,
    and: Option<Joined>,
    or: Option<Joined>,
}

/// A comparison that waits for its right side.
enum Comparison {
    Ordered(Part, Order),
    BetweenLow(Part, Negated),
    BetweenHigh(Part, Part, Negated),
}

/// Whether a NOT stands before the operator.
type Negated = bool;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    outside: Vec<Level>,
    level: Level,
}

impl<'a> Parser<'a> {
    fn whole(mut self) -> Parsed<Condition> {
        let whole = loop {
            let operand = self.operand()?;
            if let Some(whole) = self.after(operand)? {
                break whole;
            }
        };
        let token = self.token()?;
        let rest = self.text.get(token.at..).unwrap_or_default();
        // A comment that the text ends in, without an end of its line, comes here as two signs.
        if token.kind != TokenKind::End && !rest.starts_with("--") {
            let found = self.found(token);
            return Err(Mistake::new(token.at, SqlProblem::Trailing { found }));
        }
        whole.into_condition()
    }

    /// Reads up to the next literal or name.
    fn operand(&mut self) -> Parsed<Part> {
        loop {
            let token = self.token()?;
            let at = token.at;
            let prefix = match token.kind {
                TokenKind::Symbol(Symbol::Plus) => Prefix::Plus,
                TokenKind::Symbol(Symbol::Minus) => Prefix::Minus,
                TokenKind::Keyword(Keyword::Not) => Prefix::Not,
                TokenKind::Symbol(Symbol::Open) => {
                    self.open(at)?;
                    continue;
                }
                _ => return self.primary(),
            };
            self.level.prefixes.push((at, prefix));
            self.advance();
        }
    }

    fn open(&mut self, at: usize) -> Parsed<()> {
        if self.outside.len() == MAX_DEPTH {
            return Err(Mistake::new(at, SqlProblem::TooDeep { max: MAX_DEPTH }));
        }
        self.advance();
        let inside = Level {
            at,
            ..Level::default()
        };
        self.outside
            .push(std::mem::replace(&mut self.level, inside));
        Ok(())
    }

    /// Goes on behind an operand: nothing if an operator follows, so that another operand is needed; otherwise the whole.
    fn after(&mut self, operand: Part) -> Parsed<Option<Part>> {
        let mut part = operand;
        loop {
            while let Some((at, prefix)) = self.level.prefixes.pop() {
                part = part.prefixed(at, prefix)?;
            }
            let Some(compared) = self.comparison(part)? else {
                return Ok(None);
            };
            let Some(equated) = self.equality(compared)? else {
                return Ok(None);
            };
            let Some(anded) = self.joined(Keyword::And, equated)? else {
                return Ok(None);
            };
            let Some(whole) = self.joined(Keyword::Or, anded)? else {
                return Ok(None);
            };
            let Some(outside) = self.outside.pop() else {
                return Ok(Some(whole));
            };
            self.expect(&TokenKind::Symbol(Symbol::Close), ")")?;
            part = Part {
                at: self.level.at,
                ..whole
            };
            self.level = outside;
        }
    }

    fn comparison(&mut self, operand: Part) -> Parsed<Option<Part>> {
        let mut left = match self.level.comparison.take() {
            None => operand,
            Some(Comparison::Ordered(left, order)) => part::ordered(left, order, operand)?,
            Some(Comparison::BetweenLow(value, negated)) => {
                self.expect(&TokenKind::Keyword(Keyword::And), "AND")?;
                let high = Comparison::BetweenHigh(value, operand, negated);
                self.level.comparison = Some(high);
                return Ok(None);
            }
            Some(Comparison::BetweenHigh(value, low, negated)) => {
                part::between(value, low, operand, negated)?
            }
        };
        loop {
            let (word, negated) = match self.token()?.kind {
                TokenKind::Symbol(symbol) => {
                    let Some(order) = order(symbol) else {
                        return Ok(Some(left));
                    };
                    self.advance();
                    self.level.comparison = Some(Comparison::Ordered(left, order));
                    return Ok(None);
                }
                TokenKind::Keyword(Keyword::Not) => (self.negated_word()?, true),
                TokenKind::Keyword(word) if is_predicate(word) => (word, false),
                _ => return Ok(Some(left)),
            };
            self.advance();
            left = match word {
                Keyword::Between => {
                    self.level.comparison = Some(Comparison::BetweenLow(left, negated));
                    return Ok(None);
                }
                Keyword::In => self.within(left, negated)?,
                word => self.search(left, word, negated)?,
            };
        }
    }

    /// What follows a NOT behind an operand; the NOT is behind then.
    fn negated_word(&mut self) -> Parsed<Keyword> {
        match self.token_at(self.next + 1)?.kind {
            TokenKind::Keyword(word) if is_predicate(word) => {
                self.advance();
                Ok(word)
            }
            _ => Err(self.unexpected("an operator, AND or OR")),
        }
    }

    fn search(&mut self, left: Part, word: Keyword, negated: Negated) -> Parsed<Part> {
        let place = match word {
            Keyword::StartsWith => Place::Start,
            Keyword::EndsWith => Place::End,
            _ => Place::Anywhere,
        };
        let sought = self.text_literal()?;
        let result = if negated {
            Sought::Absent
        } else {
            Sought::Present
        };
        part::search(left, place, sought, result)
    }

    /// `(text, …)`.
    fn within(&mut self, left: Part, negated: Negated) -> Parsed<Part> {
        self.expect(&TokenKind::Symbol(Symbol::Open), "(")?;
        let mut texts = BTreeSet::from([self.text_literal()?]);
        while self.takes(&TokenKind::Symbol(Symbol::Comma))? {
            texts.insert(self.text_literal()?);
        }
        self.expect(&TokenKind::Symbol(Symbol::Close), ", or )")?;
        part::within(left, texts, negated)
    }

    fn equality(&mut self, operand: Part) -> Parsed<Option<Part>> {
        let mut left = match self.level.equality.take() {
            None => operand,
            Some((left, negated)) => part::equal(left, operand, negated)?,
        };
        loop {
            let negated = match self.token()?.kind {
                TokenKind::Symbol(Symbol::Equal) => false,
                TokenKind::Symbol(Symbol::NotEqual) => true,
                TokenKind::Keyword(Keyword::Is) => {
                    self.advance();
                    let negated = self.takes(&TokenKind::Keyword(Keyword::Not))?;
                    self.expect(&TokenKind::Keyword(Keyword::Null), "NULL or NOT NULL")?;
                    left = part::is_null(left, negated)?;
                    continue;
                }
                _ => return Ok(Some(left)),
            };
            self.advance();
            self.level.equality = Some((left, negated));
            return Ok(None);
        }
    }

    fn joined(&mut self, word: Keyword, operand: Part) -> Parsed<Option<Part>> {
        let goes_on = self.takes(&TokenKind::Keyword(word))?;
        let waiting = match word {
            Keyword::And => &mut self.level.and,
            _ => &mut self.level.or,
        };
        match waiting {
            None if !goes_on => return Ok(Some(operand)),
            None => *waiting = Some(Joined::new(operand)),
            Some(joined) => joined.push(word, operand)?,
        }
        match waiting.take_if(|_| !goes_on) {
            Some(joined) => joined.finish(word).map(Some),
            None => Ok(None),
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
            _ => return Err(self.unexpected("a value")),
        };
        self.advance();
        Ok(Part {
            at,
            operand,
            depth: 0,
        })
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
