//! The arguments of attributes: a leading text and `key = value` pairs, with the nearest right key for a wrong one.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Ident, LitBool, LitStr, Path, Result, Token};

/// One `key = value`.
pub(crate) struct Pair {
    pub(crate) key: Ident,
    pub(crate) value: Literal,
}

/// The value of a key.
pub(crate) enum Literal {
    Text(LitStr),
    Bool(LitBool),
}

impl Literal {
    pub(crate) fn text(self, what: &str) -> Result<LitStr> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Bool(value) => Err(Error::new(
                value.span(),
                format!("{what} is a text in quotes"),
            )),
        }
    }

    pub(crate) fn bool(self, what: &str) -> Result<bool> {
        match self {
            Self::Bool(value) => Ok(value.value),
            Self::Text(text) => Err(Error::new(
                text.span(),
                format!("{what} is `true` or `false`"),
            )),
        }
    }
}

/// Leading texts, then pairs.
pub(crate) struct Arguments {
    pub(crate) texts: Vec<LitStr>,
    pub(crate) pairs: Vec<Pair>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self {
            texts: Vec::new(),
            pairs: Vec::new(),
        };
        while !input.is_empty() {
            if input.peek(LitStr) {
                let text: LitStr = input.parse()?;
                if !arguments.pairs.is_empty() {
                    return Err(Error::new(
                        text.span(),
                        "a text without a key stands before the keys",
                    ));
                }
                arguments.texts.push(text);
            } else {
                arguments.pairs.push(input.parse()?);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

impl Parse for Pair {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key = input.call(Ident::parse_any)?;
        if !input.peek(Token![=]) {
            return Err(Error::new(key.span(), format!("expected `{key} = value`")));
        }
        input.parse::<Token![=]>()?;
        let value = if input.peek(LitStr) {
            Literal::Text(input.parse()?)
        } else if input.peek(LitBool) {
            Literal::Bool(input.parse()?)
        } else {
            return Err(input.error("expected a text in quotes, `true` or `false`"));
        };
        Ok(Self { key, value })
    }
}

/// The error of a key that does not exist: names the nearest one, or all.
pub(crate) fn unknown_key(key: &Ident, known: &[&str]) -> Error {
    let written = key.to_string();
    let nearest = known
        .iter()
        .map(|name| (distance(&written, name), *name))
        .min();
    let hint = match nearest {
        Some((distance, name)) if distance * 3 <= name.len() => format!("did you mean `{name}`?"),
        _ => format!("accepted: {}", known.join(", ")),
    };
    Error::new(key.span(), format!("unknown key `{written}`; {hint}"))
}

/// How many characters must be put in, taken out, changed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![(0..=right.len()).collect::<Vec<_>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let changed = rows[i][j] + usize::from(a != b);
            let mut best = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

/// Checks a binding's name, as application.yaml can hold it.
pub(crate) fn check_binding(name: &LitStr) -> Result<()> {
    let text = name.value();
    if text.is_empty() {
        return Err(Error::new(name.span(), "a binding must have a name"));
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(Error::new(
            name.span(),
            format!(
                "`{c}` cannot stand in a binding's name: letters, digits, `-`, `_` and `.` can"
            ),
        )),
        None => Ok(()),
    }
}

/// The path of the framework's crate: `::bindery`, or what `crate = "..."` says where it was renamed.
pub(crate) fn crate_path(renamed: Option<&LitStr>) -> Result<TokenStream> {
    match renamed {
        Some(text) => text.parse::<Path>().map(|path| quote!(#path)),
        None => Ok(quote!(::bindery)),
    }
}

/// The same tokens at another place: the compiler reports a call where its path begins and its parentheses end.
pub(crate) fn at(span: Span, tokens: &TokenStream) -> TokenStream {
    let moved = tokens.clone().into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut moved = Group::new(group.delimiter(), at(span, &group.stream()));
            moved.set_span(span);
            TokenTree::Group(moved)
        }
        mut other => {
            other.set_span(span);
            other
        }
    });
    moved.collect()
}

/// Whether an attribute has this name, however it is qualified.
pub(crate) fn is_named(attribute: &Attribute, name: &str) -> bool {
    attribute
        .path()
        .segments
        .last()
        .is_some_and(|segment| segment.ident == name)
}

/// Adds a mistake to those found so far.
pub(crate) fn collect(mistakes: &mut Option<Error>, mistake: Error) {
    match mistakes {
        Some(first) => first.combine(mistake),
        None => *mistakes = Some(mistake),
    }
}

/// The item as it was, followed by its mistakes, so that one mistake does not cause others where the item is used.
pub(crate) fn with_mistakes(item: &TokenStream, mistakes: &Error) -> TokenStream {
    let errors = mistakes.to_compile_error();
    quote!(#item #errors)
}
