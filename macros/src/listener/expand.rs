//! From a checked listener to the function, its call, and its description.
//!
//! ```text
//! fn on_order(..) { .. }                     as written, without our attributes
//! const _: () = {
//!     fn __bindery_call(cx) -> BoxFuture { arguments from cx; on_order(..).await; outcome or replies }
//!     inventory::submit! { HandlerDescriptor { name, module, file, line, binding, …, call } }
//! };
//! ```

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericArgument, Ident, LitStr, PathArguments, ReturnType, Type};

use super::parse::{Argument, ArgumentKind, Listener, OnUnmatched};
use crate::keys::{at, is_named};

/// The function alone, without our attributes.
pub(super) fn plain(listener: &Listener) -> TokenStream {
    let (function, import) = (&listener.function, import(listener));
    quote! {
        #[allow(clippy::unused_async)]
        #function
        const _: () = { #import };
    }
}

/// Names the attribute that was taken off, or the compiler would call its import unused.
fn import(listener: &Listener) -> Option<TokenStream> {
    let path = listener.send_to.as_ref()?.attribute.path();
    Some(quote!(#[allow(unused_imports)] use #path as _;))
}

pub(super) fn expand(listener: &Listener) -> TokenStream {
    let function = &listener.function;
    let private = &{
        let root = &listener.root;
        quote!(#root::__private)
    };
    let conditional = function
        .attrs
        .iter()
        .filter(|attribute| is_named(attribute, "cfg"));
    let call = call(private, listener);
    let descriptor = descriptor(private, listener);
    let import = import(listener);
    // A listener is an async function whether it waits or not.
    quote! {
        #[allow(clippy::unused_async)]
        #function
        #(#conditional)*
        const _: () = {
            #import
            #call
            #private::inventory::submit! { #descriptor }
        };
    }
}

fn call(private: &TokenStream, listener: &Listener) -> TokenStream {
    let name = &listener.function.sig.ident;
    let arguments: Vec<Ident> = (0..listener.arguments.len())
        .map(|index| format_ident!("argument_{index}"))
        .collect();
    let extractions = listener.arguments.iter().zip(&arguments).enumerate().map(|(index, (argument, variable))| {
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
    let result = quote_spanned!(name.span()=> #name(#(#arguments),*).await);
    let conversion = conversion(private, listener);
    // Spanned at the function's name: a future that is not `Send` is reported there, not at the attribute.
    let body = quote_spanned!(name.span()=> ::std::boxed::Box::pin(async move {
        #(#extractions)*
        let result = #result;
        #conversion
    }));
    quote! {
        fn __bindery_call(cx: #private::MessageContext<'_>) -> #private::BoxFuture<'_, #private::HandlerResult> {
            #body
        }
    }
}

fn extraction(private: &TokenStream, argument: &Argument) -> TokenStream {
    let ty = &argument.ty;
    if let ArgumentKind::Extracted = argument.kind {
        let private = at(ty.span(), private);
        return quote_spanned!(ty.span()=> <#ty as #private::FromMessage>::from_message(&cx).await);
    }
    attributed_extraction(private, argument, &quote!(&cx))
}

/// An argument marked `#[payload]` or `#[header(..)]`, out of the message context `cx`.
pub(crate) fn attributed_extraction(
    private: &TokenStream,
    argument: &Argument,
    cx: &TokenStream,
) -> TokenStream {
    let ty = &argument.ty;
    let private = at(ty.span(), private);
    let ArgumentKind::Header { name, default } = &argument.kind else {
        return quote_spanned!(ty.span()=> #private::payload_argument::<#ty>(#cx));
    };
    match (default, inside_option(ty)) {
        (Some(default), _) => {
            quote_spanned!(ty.span()=> #private::header_or_default::<#ty>(#cx, #name, #default))
        }
        (None, Some(inner)) => {
            quote_spanned!(ty.span()=> #private::optional_header::<#inner>(#cx, #name))
        }
        (None, None) => {
            quote_spanned!(ty.span()=> #private::header_argument::<#ty>(#cx, #name))
        }
    }
}

fn inside_option(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path
        .path
        .segments
        .last()
        .filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

/// `result` to a `HandlerResult`.
fn conversion(private: &TokenStream, listener: &Listener) -> TokenStream {
    let span = match &listener.function.sig.output {
        ReturnType::Default => listener.function.sig.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    };
    let private = &at(span, private);
    let Some(send_to) = &listener.send_to else {
        return quote_spanned!(span=>
            #private::IntoOutcome::into_outcome(result).map(|()| ::std::vec::Vec::new())
        );
    };
    let replies = replies(private, send_to.bindings.len(), span);
    quote_spanned! {span=>
        {
            // Which of them a step needs depends on the type.
            #[allow(unused_imports)]
            use #private::probe::{
                self, ListProbe as _, NoListProbe as _, NoOptionProbe as _, NoRepliesProbe as _,
                NoResultProbe as _, OptionProbe as _, RepliesProbe as _, ResultProbe as _,
            };
            let value = (&probe::of(&result)).result_step().value(result)?;
            match (&probe::of(&value)).option_step().value(value) {
                ::core::option::Option::Some(value) => #replies,
                ::core::option::Option::None => ::core::result::Result::Ok(::std::vec::Vec::new()),
            }
        }
    }
}

/// `value` to replies: with several outputs one element of a tuple each, otherwise as it is.
fn replies(private: &TokenStream, outputs: usize, span: Span) -> TokenStream {
    let one = |value: &Ident, output: usize| {
        quote_spanned! {span=>
            {
                let list = (&probe::of(&#value)).list_step();
                (&probe::of(&#value)).replies_step().replies(list, #value, #output)
            }
        }
    };
    if outputs == 1 {
        return one(&format_ident!("value", span = span), 0);
    }
    let elements: Vec<Ident> = (0..outputs)
        .map(|index| format_ident!("element_{index}", span = span))
        .collect();
    let each = elements.iter().enumerate().map(|(output, element)| {
        let option = one(&format_ident!("element", span = span), output);
        quote_spanned! {span=>
            if let ::core::option::Option::Some(element) = (&probe::of(&#element)).option_step().value(#element) {
                let mut of_one: ::std::vec::Vec<#private::Reply> = #option?;
                replies.append(&mut of_one);
            }
        }
    });
    quote_spanned! {span=>
        {
            let (#(#elements),*) = value;
            let mut replies = ::std::vec::Vec::new();
            #(#each)*
            ::core::result::Result::Ok(replies)
        }
    }
}

fn descriptor(private: &TokenStream, listener: &Listener) -> TokenStream {
    let name = &listener.function.sig.ident;
    let Listener {
        binding,
        copy_headers,
        ..
    } = listener;
    let condition = listener.condition.as_ref().map_or_else(
        || quote!(::core::option::Option::None),
        |text| quote!(::core::option::Option::Some(#text)),
    );
    let send_to: Vec<&LitStr> = listener
        .send_to
        .iter()
        .flat_map(|send_to| &send_to.bindings)
        .collect();
    let on_unmatched = match listener.on_unmatched {
        OnUnmatched::Ack => quote!(Ack),
        OnUnmatched::Warn => quote!(Warn),
        OnUnmatched::Fail => quote!(Fail),
    };
    let requires = listener
        .arguments
        .iter()
        .filter(|argument| matches!(argument.kind, ArgumentKind::Extracted))
        .map(|argument| {
            let ty = &argument.ty;
            let private = at(ty.span(), private);
            quote_spanned!(ty.span()=> <#ty as #private::FromMessage>::REQUIRES)
        });
    quote! {
        #private::HandlerDescriptor {
            name: ::core::stringify!(#name),
            module: ::core::module_path!(),
            file: ::core::file!(),
            line: ::core::line!(),
            kind: #private::HandlerKind::Listener,
            binding: #binding,
            condition: #condition,
            send_to: &[#(#send_to),*],
            copy_headers: #copy_headers,
            on_unmatched: #private::OnUnmatched::#on_unmatched,
            requires: &[#(#requires),*],
            call: __bindery_call,
        }
    }
}
