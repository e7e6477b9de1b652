//! `#[bindery::main]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn, LitStr, Result, ReturnType};

use crate::keys::{Arguments, crate_path, unknown_key};

pub(crate) fn attribute(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments, item).unwrap_or_else(|error| {
        // Without a `main` the compiler would add that it misses one.
        let error = error.to_compile_error();
        quote!(#error fn main() {})
    })
}

fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let renamed = renamed(syn::parse2(arguments)?)?;
    let function: ItemFn = syn::parse2(item)?;
    check(&function)?;
    let root = crate_path(renamed.as_ref())?;
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = function;
    let (inputs, output) = (&sig.inputs, &sig.output);
    let run = quote_spanned!(sig.ident.span()=> #root::__private::run_main(bindery_main));
    Ok(quote! {
        #(#attrs)*
        #vis fn main() -> ::std::process::ExitCode {
            async fn bindery_main(#inputs) #output #block
            #run
        }
    })
}

fn renamed(arguments: Arguments) -> Result<Option<LitStr>> {
    if let Some(text) = arguments.texts.first() {
        return Err(Error::new(text.span(), "`#[bindery::main]` takes no name"));
    }
    let mut renamed = None;
    for pair in arguments.pairs {
        if pair.key != "crate" {
            return Err(unknown_key(&pair.key, &["crate"]));
        }
        renamed = Some(pair.value.text("`crate`")?);
    }
    Ok(renamed)
}

fn check(function: &ItemFn) -> Result<()> {
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        return Err(Error::new(
            sig.fn_token.span(),
            "the main function is an `async fn`",
        ));
    }
    if sig.ident != "main" {
        return Err(Error::new(
            sig.ident.span(),
            "the main function is named `main`",
        ));
    }
    if sig.inputs.len() != 1 {
        return Err(Error::new(
            sig.paren_token.span.join(),
            "the main function takes one argument: `app: AppBuilder`",
        ));
    }
    if matches!(sig.output, ReturnType::Default) {
        return Err(Error::new(
            sig.ident.span(),
            "the main function returns `bindery::Result<()>`",
        ));
    }
    Ok(())
}
