//! Text to tokens, with the rules of Apache RocketMQ's grammar (`SelectorParser.jj`): the longest match wins.
//!
//! ```text
//! "a >= 10 -- why\n" ──▶ Name a · Symbol >= · Integer 10 · End
//! ```
//!
//! An unreadable piece becomes a token too, the last one: what stands before it may be wrong in another way, and then that
//! is the first mistake.

use winnow::ascii::{digit0, digit1};
use winnow::combinator::{alt, delimited, opt, repeat};
use winnow::error::EmptyError;
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location};
use winnow::token::{one_of, take_till, take_until, take_while};

use super::SqlProblem;

/// A token and where it begins, in bytes.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) at: usize,
    pub(super) kind: TokenKind<'a>,
}

#[derive(Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    Keyword(Keyword),
    Symbol(Symbol),
    Name(&'a str),
    /// What is between the quotes; a quote inside is still doubled.
    Text(&'a str),
    /// Digits, maybe with `L`.
    Integer(&'a str),
    Double(&'a str),
    Unreadable(SqlProblem),
    End,
}

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($name:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $type { $($name),* }

        impl $type {
            const ALL: &'static [(&'static str, Self)] = &[$(($text, Self::$name)),*];
        }
    };
}

words! {
    /// Words that are no names, in any case.
    Keyword {
        Not = "NOT", And = "AND", Or = "OR", Between = "BETWEEN", In = "IN", True = "TRUE", False = "FALSE",
        Null = "NULL", Is = "IS", Contains = "CONTAINS", StartsWith = "STARTSWITH", EndsWith = "ENDSWITH",
    }
}

words! {
    /// The longer ones stand before their beginnings.
    Symbol {
        NotEqual = "<>", LessOrEqual = "<=", GreaterOrEqual = ">=", Less = "<", Greater = ">", Equal = "=",
        Open = "(", Close = ")", Comma = ",", Plus = "+", Minus = "-",
    }
}

type Input<'a> = LocatingSlice<&'a str>;
type Lexed<T> = Result<T, EmptyError>;

/// The tokens of a text; the last one is the only [`TokenKind::End`] or [`TokenKind::Unreadable`].
pub(super) fn lex(text: &str) -> Vec<Token<'_>> {
    let mut input = LocatingSlice::new(text);
    let mut tokens = Vec::new();
    let last_line_end = text.rfind(['\n', '\r']).unwrap_or(0);
    loop {
        // Nothing to skip is no failure, so this never fails.
        if skip(&mut input, last_line_end).is_err() || input.is_empty() {
            // The end is named by the last character, as Java does.
            let at = text.char_indices().next_back().map_or(0, |(at, _)| at);
            tokens.push(Token {
                at,
                kind: TokenKind::End,
            });
            return tokens;
        }
        let at = input.current_token_start();
        if let Ok(kind) = token.parse_next(&mut input) {
            tokens.push(Token { at, kind });
        } else {
            tokens.push(unreadable(text, at));
            return tokens;
        }
    }
}

/// Blanks and comments. A comment from `--` needs an end of its line (`--1` is a number with two signs), so that none is
/// sought behind the last one: a text of signs alone would be searched to its end again and again.
fn skip(input: &mut Input<'_>, last_line_end: usize) -> Lexed<()> {
    let blank = take_while(1.., [' ', '\t', '\n', '\r', '\x0c']).void();
    let line = |input: &mut Input<'_>| {
        if input.current_token_start() >= last_line_end {
            return Err(EmptyError);
        }
        ("--", take_till(0.., ['\n', '\r']), one_of(['\n', '\r']))
            .void()
            .parse_next(input)
    };
    let block = ("/*", take_until(0.., "*/"), "*/").void();
    repeat(0.., alt((blank, line, block))).parse_next(input)
}

fn token<'a>(input: &mut Input<'a>) -> Lexed<TokenKind<'a>> {
    alt((text, double, integer, word, symbol)).parse_next(input)
}

fn text<'a>(input: &mut Input<'a>) -> Lexed<TokenKind<'a>> {
    let inside = repeat::<_, _, (), _, _>(0.., alt((take_till(1.., '\''), "''"))).take();
    delimited('\'', inside, '\'')
        .map(TokenKind::Text)
        .parse_next(input)
}

fn double<'a>(input: &mut Input<'a>) -> Lexed<TokenKind<'a>> {
    fn exponent(input: &mut Input<'_>) -> Lexed<()> {
        (one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1)
            .void()
            .parse_next(input)
    }
    alt((
        (digit1, '.', digit0, opt(exponent)).void(),
        ('.', digit1, opt(exponent)).void(),
        (digit1, exponent).void(),
    ))
    .take()
    .map(TokenKind::Double)
    .parse_next(input)
}

/// No leading zero, and no `L` behind a zero: `007` is three tokens.
fn integer<'a>(input: &mut Input<'a>) -> Lexed<TokenKind<'a>> {
    let counted = (one_of('1'..='9'), digit0, opt(one_of(['l', 'L'])));
    alt(('0'.void(), counted.void()))
        .take()
        .map(TokenKind::Integer)
        .parse_next(input)
}

fn word<'a>(input: &mut Input<'a>) -> Lexed<TokenKind<'a>> {
    let first = one_of(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$'));
    let rest = take_while(0.., |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
    });
    (first, rest)
        .take()
        .map(|word: &str| {
            Keyword::ALL
                .iter()
                .find(|(text, _)| text.eq_ignore_ascii_case(word))
                .map_or(TokenKind::Name(word), |(_, keyword)| {
                    TokenKind::Keyword(*keyword)
                })
        })
        .parse_next(input)
}

fn symbol<'a>(input: &mut Input<'a>) -> Lexed<TokenKind<'a>> {
    for (text, symbol) in Symbol::ALL {
        if opt(*text).parse_next(input)?.is_some() {
            return Ok(TokenKind::Symbol(*symbol));
        }
    }
    Err(EmptyError)
}

/// Why there is no token at `at`, with the place Java names: the last character it looked at, or the end of the text if
/// that was the last one there is.
fn unreadable(text: &str, at: usize) -> Token<'_> {
    let rest = text.get(at..).unwrap_or_default();
    let end = |problem| Token {
        at: text.len(),
        kind: TokenKind::Unreadable(problem),
    };
    if rest.starts_with('\'') {
        return end(SqlProblem::OpenText);
    }
    if rest.starts_with("/*") {
        return end(SqlProblem::OpenComment);
    }
    let mut characters = rest.char_indices();
    let first = characters.next();
    let stopped = match first {
        // Only these two could have begun something.
        Some((_, '.' | '/')) => characters.next().or(first),
        _ => first,
    };
    let (offset, character) = stopped.unwrap_or((0, '\0'));
    let problem = SqlProblem::Unreadable { character };
    if offset + character.len_utf8() >= rest.len() {
        return end(problem);
    }
    Token {
        at: at + offset,
        kind: TokenKind::Unreadable(problem),
    }
}
