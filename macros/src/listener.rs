//! `#[stream_listener]` with its `#[send_to]`.

use proc_macro2::TokenStream;
use syn::{Error, ItemFn};

use crate::keys::{is_named, with_mistakes};

mod check;
mod expand;
mod parse;

pub(crate) use expand::attributed_extraction;
pub(crate) use parse::{Argument, ArgumentKind, argument};

pub(crate) fn attribute(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let listener = match parse::parse(arguments, item) {
        Ok(listener) => listener,
        Err(failed) => return with_mistakes(&failed.item, &failed.mistakes),
    };
    match check::check(&listener) {
        Ok(()) => expand::expand(&listener),
        Err(mistakes) => with_mistakes(&expand::plain(&listener), &mistakes),
    }
}

/// `#[send_to]` that no listener took off: it stands above one, or alone.
pub(crate) fn send_to_alone(item: &TokenStream) -> TokenStream {
    let above = syn::parse2::<ItemFn>(item.clone()).is_ok_and(|function| {
        function
            .attrs
            .iter()
            .any(|attribute| is_named(attribute, "stream_listener"))
    });
    let message = if above {
        "`#[send_to(..)]` stands below `#[stream_listener(..)]`, not above it"
    } else {
        "`#[send_to(..)]` says where a listener's answer goes: put `#[stream_listener(..)]` above it"
    };
    with_mistakes(item, &Error::new(proc_macro2::Span::call_site(), message))
}
