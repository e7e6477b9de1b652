//! `#[error_handler]`.
//!
//! ```text
//! async fn on_fail(failure: Failure, ..) { .. }      as written
//! const _: () = {
//!     fn __bindery_call(cx) -> BoxFuture { arguments from cx; on_fail(..).await; the action }
//!     inventory::submit! { ErrorHandlerDescriptor { name, module, file, line, target, matches, call } }
//! };
//! ```

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Ident, ItemFn, LitStr, Result, ReturnType, Token, Type};

use crate::keys::{at, check_binding, crate_path, is_named, unknown_key, with_mistakes};
use crate::listener::{Argument, ArgumentKind, argument, attributed_extraction};

const KEYS: &[&str] = &["for", "name", "crate"];

/// What stands in the parentheses.
#[derive(Default)]
struct Keys {
    binding: Option<LitStr>,
    error: Option<Type>,
    name: Option<LitStr>,
    renamed: Option<LitStr>,
}

impl Parse for Keys {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut keys = Self::default();
        if input.peek(LitStr) {
            keys.binding = Some(input.parse()?);
            comma(input)?;
        }
        while !input.is_empty() {
            if input.peek(LitStr) {
                let message = "an error handler is for one binding; without one it is for all";
                return Err(input.error(message));
            }
            let key = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
            if !KEYS.contains(&key.to_string().as_str()) {
                return Err(unknown_key(&key, KEYS));
            }
            input.parse::<Token![=]>()?;
            match key.to_string().as_str() {
                "for" => keys.error = Some(input.parse()?),
                "name" => keys.name = Some(input.parse()?),
                _ => keys.renamed = Some(input.parse()?),
            }
            comma(input)?;
        }
        Ok(keys)
    }
}

fn comma(input: ParseStream<'_>) -> Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}

pub(crate) fn attribute(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let mistake = Error::new_spanned(item, "`#[error_handler(..)]` stands on an `async fn`");
        return with_mistakes(item, &mistake);
    };
    match parts(arguments, &mut function) {
        Ok((keys, arguments)) => expand(&keys, &function, &arguments)
            .unwrap_or_else(|mistake| with_mistakes(&quote!(#function), &mistake)),
        Err(mistake) => with_mistakes(&quote!(#[allow(clippy::unused_async)] #function), &mistake),
    }
}

fn parts(arguments: TokenStream, function: &mut ItemFn) -> Result<(Keys, Vec<Argument>)> {
    let listened: Result<Vec<_>> = function.sig.inputs.iter_mut().map(argument).collect();
    let keys: Keys = syn::parse2(arguments)?;
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        let message = "an error handler is an `async fn`: write `async` before `fn`";
        return Err(Error::new(sig.fn_token.span(), message));
    }
    if !sig.generics.params.is_empty() {
        let message = "an error handler cannot be generic: the failure decides about no types";
        return Err(Error::new_spanned(&sig.generics, message));
    }
    if let Some(binding) = &keys.binding {
        check_binding_or_channel(binding)?;
    }
    if let (Some(name), Some(_)) = (&keys.name, &keys.binding) {
        let message = "`name` is for handlers that `error-handler-definition` chooses; this one has a binding";
        return Err(Error::new(name.span(), message));
    }
    Ok((keys, listened?))
}

/// `test-topic.test-group.errors` may hold what topics may.
fn check_binding_or_channel(name: &LitStr) -> Result<()> {
    if name.value().ends_with(".errors") {
        Ok(())
    } else {
        check_binding(name)
    }
}

fn expand(keys: &Keys, function: &ItemFn, arguments: &[Argument]) -> Result<TokenStream> {
    let root = crate_path(keys.renamed.as_ref())?;
    let private = &quote!(#root::__private);
    let conditional = function
        .attrs
        .iter()
        .filter(|attribute| is_named(attribute, "cfg"));
    let name = &function.sig.ident;
    let call = call(private, function, arguments);
    let target = match (&keys.binding, &keys.name) {
        (Some(binding), _) if binding.value() != "default" => quote!(Binding(#binding)),
        (None, Some(name)) => quote!(Named(#name)),
        _ => quote!(Default),
    };
    let matches = keys.error.as_ref().map_or_else(
        || quote!(::core::option::Option::None),
        |ty| {
            // Spanned at the type, so that the compiler reports there that it is no error.
            let is = quote_spanned!(ty.span()=> error.is::<#ty>());
            quote!(::core::option::Option::Some(|error: &(dyn ::std::error::Error + 'static)| #is))
        },
    );
    let requires = arguments
        .iter()
        .filter(|argument| matches!(argument.kind, ArgumentKind::Extracted))
        .map(|argument| {
            let ty = &argument.ty;
            let private = at(ty.span(), private);
            quote_spanned!(ty.span()=> <#ty as #private::FromFailure>::REQUIRED)
        });
    Ok(quote! {
        #[allow(clippy::unused_async)]
        #function
        #(#conditional)*
        const _: () = {
            #call
            #private::inventory::submit! {
                #private::ErrorHandlerDescriptor {
                    name: ::core::stringify!(#name),
                    module: ::core::module_path!(),
                    file: ::core::file!(),
                    line: ::core::line!(),
                    target: #private::ErrorTarget::#target,
                    matches: #matches,
                    requires: &[#(#requires),*],
                    call: __bindery_call,
                }
            }
        };
    })
}

fn call(private: &TokenStream, function: &ItemFn, arguments: &[Argument]) -> TokenStream {
    let name = &function.sig.ident;
    let variables: Vec<Ident> = (0..arguments.len())
        .map(|index| format_ident!("argument_{index}"))
        .collect();
    let extractions = arguments.iter().zip(&variables).enumerate().map(|(index, (argument, variable))| {
        let value = extraction(private, argument);
        let number = index + 1;
        quote! {
            let #variable = match #value {
                ::core::result::Result::Ok(argument) => argument,
                ::core::result::Result::Err(rejection) => {
                    return ::core::result::Result::Err(
                        #private::HandlerFailure::rejected(::core::stringify!(#name), #number, rejection),
                    );
                }
            };
        }
    });
    let span = match &function.sig.output {
        ReturnType::Default => name.span(),
        ReturnType::Type(_, ty) => ty.span(),
    };
    let there = at(span, private);
    let action = quote_spanned!(span=> #there::IntoErrorAction::into_error_action(result));
    let result = quote_spanned!(name.span()=> #name(#(#variables),*).await);
    // Spanned at the function's name: a future that is not `Send` is reported there, not at the attribute.
    let body = quote_spanned!(name.span()=> ::std::boxed::Box::pin(async move {
        #(#extractions)*
        let result = #result;
        #action
    }));
    quote! {
        fn __bindery_call(cx: #private::FailureContext<'_>) -> #private::BoxFuture<'_, #private::ErrorHandlerResult> {
            #body
        }
    }
}

fn extraction(private: &TokenStream, argument: &Argument) -> TokenStream {
    let ty = &argument.ty;
    if let ArgumentKind::Extracted = argument.kind {
        let private = at(ty.span(), private);
        return quote_spanned!(ty.span()=> <#ty as #private::FromFailure>::from_failure(&cx).await);
    }
    attributed_extraction(private, argument, &quote!(&cx.message))
}
