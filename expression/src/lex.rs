//! Characters to tokens, by the rules of Spring's tokenizer: words are told apart only by the parser, since `and` is an
//! operator between operands and a field name after a dot.

use crate::error::{At, ParseProblem};
use crate::value::Value;

/// One token with the character it starts at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) position: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    Word(String),
    Literal(Value),
    /// A float literal (`1.5f`), which Bindery doesn't have; kept to say so after the rest was checked.
    FloatLiteral,
    /// Everything that is neither word nor literal, as it is written.
    Sign(&'static str),
}

impl TokenKind {
    /// The text that names the token in a message.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Literal(value) => value.to_string(),
            Self::FloatLiteral => "float literal".to_owned(),
            Self::Sign(sign) => (*sign).to_owned(),
        }
    }
}

/// Two characters before one, so that the longest match wins.
const SIGNS: &[&str] = &[
    "++", "--", "?.", "?:", "?[", "^[", "!=", "![", "==", "&&", "||", "$[", ">=", "<=", "+", "-",
    ":", ".", ",", "*", "/", "%", "(", ")", "[", "]", "{", "}", "#", "@", "?", "^", "!", "=", "&",
    ">", "<",
];

type Lexed<T> = Result<T, At<ParseProblem>>;

pub(crate) fn lex(text: &str) -> Lexed<Vec<Token>> {
    let chars: Vec<char> = text.chars().collect();
    let mut lexer = Lexer {
        chars: &chars,
        at: 0,
    };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'a> {
    chars: &'a [char],
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn token(&mut self) -> Lexed<Option<Token>> {
        while matches!(self.peek(), Some(' ' | '\t' | '\r' | '\n')) {
            self.at += 1;
        }
        let position = self.at;
        let Some(first) = self.peek() else {
            return Ok(None);
        };
        let kind = match first {
            '0'..='9' => self.number()?,
            '\'' | '"' => self.quoted(first)?,
            _ if first == '$' && self.chars.get(self.at + 1) == Some(&'[') => self.sign(first)?,
            _ if is_word_start(first) => TokenKind::Word(self.take_while(is_word)),
            _ => self.sign(first)?,
        };
        Ok(Some(Token { kind, position }))
    }

    fn sign(&mut self, first: char) -> Lexed<TokenKind> {
        let rest = &self.chars[self.at..];
        let found = SIGNS
            .iter()
            .find(|sign| sign.chars().zip(rest).filter(|(a, b)| a == *b).count() == sign.len());
        match found {
            Some(sign) => {
                self.at += sign.len();
                Ok(TokenKind::Sign(sign))
            }
            None if first == '|' => Err(At::new(self.at, ParseProblem::SingleBar)),
            None if first == '\\' => Err(At::new(self.at, ParseProblem::Backslash)),
            None => Err(At::new(
                self.at,
                ParseProblem::Character { character: first },
            )),
        }
    }

    fn take_while(&mut self, mut belongs: impl FnMut(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&mut belongs) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn take_if(&mut self, one_of: &[char]) -> bool {
        let found = self.peek().is_some_and(|c| one_of.contains(&c));
        self.at += usize::from(found);
        found
    }

    /// A text in quotes; the quote itself is doubled inside.
    fn quoted(&mut self, quote: char) -> Lexed<TokenKind> {
        let start = self.at;
        let mut text = String::new();
        loop {
            self.at += 1;
            match self.peek() {
                None => return Err(At::new(start, ParseProblem::Unterminated { quote })),
                Some(c) if c == quote => {
                    self.at += 1;
                    if self.peek() != Some(quote) {
                        return Ok(TokenKind::Literal(Value::text(text)));
                    }
                    text.push(quote);
                }
                Some(c) => text.push(c),
            }
        }
    }

    fn number(&mut self) -> Lexed<TokenKind> {
        let start = self.at;
        if self.peek() == Some('0') && matches!(self.chars.get(self.at + 1), Some('x' | 'X')) {
            self.at += 2;
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            return self.integer(start, &digits, 16);
        }
        let mut digits = self.take_while(|c| c.is_ascii_digit());
        let fraction_follows = self.peek() == Some('.')
            && self
                .chars
                .get(self.at + 1)
                .is_some_and(char::is_ascii_digit);
        let mut real = fraction_follows;
        if fraction_follows {
            self.at += 1;
            digits.push('.');
            digits.push_str(&self.take_while(|c| c.is_ascii_digit()));
        }
        if self.take_if(&['e', 'E']) {
            real = true;
            digits.push('e');
            if self.peek() == Some('-') {
                digits.push('-');
            }
            self.take_if(&['+', '-']);
            let exponent = self.take_while(|c| c.is_ascii_digit());
            if exponent.is_empty() {
                return Err(At::new(start, ParseProblem::Exponent));
            }
            digits.push_str(&exponent);
        }
        if self.take_if(&['f', 'F']) {
            return Ok(TokenKind::FloatLiteral);
        }
        if self.take_if(&['d', 'D']) || real {
            return self.real(start, &digits);
        }
        self.integer(start, &digits, 10)
    }

    fn real(&mut self, start: usize, digits: &str) -> Lexed<TokenKind> {
        if self.take_if(&['l', 'L']) {
            return Err(At::new(start, ParseProblem::RealCannotBeLong));
        }
        match digits.parse() {
            Ok(value) => Ok(TokenKind::Literal(Value::Double(value))),
            Err(_) => Err(At::new(start, ParseProblem::Exponent)),
        }
    }

    /// Without a suffix an integer must fit 32 bits before any sign, as in Java.
    fn integer(&mut self, start: usize, digits: &str, radix: u32) -> Lexed<TokenKind> {
        let end = self.at;
        let literal = || self.chars[start..end].iter().collect::<String>();
        if matches!(self.peek(), Some('l' | 'L')) {
            let Ok(value) = i64::from_str_radix(digits, radix) else {
                return Err(At::new(
                    start,
                    ParseProblem::NotALong { literal: literal() },
                ));
            };
            self.at += 1;
            return Ok(TokenKind::Literal(Value::Long(value)));
        }
        match i32::from_str_radix(digits, radix) {
            Ok(value) => Ok(TokenKind::Literal(Value::Int(value))),
            Err(_) => Err(At::new(
                start,
                ParseProblem::NotAnInteger { literal: literal() },
            )),
        }
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}
