//! `#[bindings]`.

use proc_macro2::TokenStream;

mod check;
mod expand;
mod parse;

pub(crate) fn attribute(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let source = match parse::parse(arguments, item) {
        Ok(source) => source,
        Err(error) => return error.to_compile_error(),
    };
    match check::check(&source) {
        Ok(()) => expand::expand(&source),
        Err(mistakes) => crate::keys::with_mistakes(&expand::plain(&source), &mistakes),
    }
}
