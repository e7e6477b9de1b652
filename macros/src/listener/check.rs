//! The mistakes that a listener can hold, all at once, each at its place.

use bindery_expression::ParseError;
use syn::spanned::Spanned;
use syn::{Error, GenericArgument, LitStr, PathArguments, Result, ReturnType, Type};

use super::parse::{ArgumentKind, Listener};
use crate::keys::{check_binding, collect};

pub(super) fn check(listener: &Listener) -> Result<()> {
    let mut mistakes = None;
    let checks = [
        check_function(listener),
        check_binding(&listener.binding),
        listener.condition.as_ref().map_or(Ok(()), check_condition),
        check_answer(listener),
        check_payloads(listener),
    ];
    for mistake in checks.into_iter().filter_map(Result::err) {
        collect(&mut mistakes, mistake);
    }
    mistakes.map_or(Ok(()), Err)
}

fn check_function(listener: &Listener) -> Result<()> {
    let sig = &listener.function.sig;
    if sig.asyncness.is_none() {
        return Err(Error::new(
            sig.fn_token.span(),
            "a listener is an `async fn`: write `async` before `fn`",
        ));
    }
    if !sig.generics.params.is_empty() {
        let message = "a listener cannot be generic: the message decides about no types";
        return Err(Error::new_spanned(&sig.generics, message));
    }
    Ok(())
}

fn check_condition(condition: &LitStr) -> Result<()> {
    match bindery_expression::parse(&condition.value()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::new(condition.span(), parse_message(&error))),
    }
}

/// Stable Rust knows no places inside a literal, so the expression is repeated with a caret.
fn parse_message(error: &ParseError) -> String {
    let caret = error.caret().replace('\n', "\n    ");
    format!(
        "the condition does not parse: {}\n\n    {caret}",
        error.problem()
    )
}

fn check_answer(listener: &Listener) -> Result<()> {
    let Some(send_to) = &listener.send_to else {
        return Ok(());
    };
    for binding in &send_to.bindings {
        check_binding(binding)?;
    }
    if let Some(condition) = &listener.condition {
        let message = "a listener with a condition cannot answer: of several listeners on one input none may return a value";
        return Err(Error::new(condition.span(), message));
    }
    if returns_nothing(&listener.function.sig.output) {
        let message = "`#[send_to(..)]` needs a return value to send; the listener returns none";
        return Err(Error::new_spanned(&send_to.attribute, message));
    }
    Ok(())
}

/// `()` or a `Result` of it, as far as can be seen.
fn returns_nothing(output: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = output else {
        return true;
    };
    let is_unit = |ty: &Type| matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty());
    if is_unit(ty) {
        return true;
    }
    let Type::Path(path) = &**ty else {
        return false;
    };
    let Some(last) = path.path.segments.last() else {
        return false;
    };
    match &last.arguments {
        PathArguments::AngleBracketed(arguments) if last.ident == "Result" => {
            matches!(arguments.args.first(), Some(GenericArgument::Type(ty)) if is_unit(ty))
        }
        _ => false,
    }
}

fn check_payloads(listener: &Listener) -> Result<()> {
    let mut payloads = listener
        .arguments
        .iter()
        .filter_map(|argument| match &argument.kind {
            ArgumentKind::Payload(span) => Some(*span),
            _ => None,
        });
    match payloads.nth(1) {
        Some(second) => Err(Error::new(
            second,
            "a listener has one `#[payload]`; take the other as `Message<T>` or `Json<T>`",
        )),
        None => Ok(()),
    }
}
