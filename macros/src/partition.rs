//! `#[partition_key_extractor]` and `#[partition_selector]`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, LitStr, Result, ReturnType, Type};

use crate::keys::{Arguments, at, crate_path, is_named, unknown_key, with_mistakes};

/// A named function of one of the two kinds.
struct Named {
    /// The framework's crate.
    root: TokenStream,
    name: LitStr,
    function: ItemFn,
}

pub(crate) fn extractor(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let key = "partition-key-extractor-name";
    expanded(arguments, item, key, |named| {
        let extract = extract(named)?;
        Ok((quote!(KeyExtractorDescriptor), extract))
    })
}

pub(crate) fn selector(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    expanded(arguments, item, "partition-selector-name", |named| {
        let sig = &named.function.sig;
        if sig.inputs.len() != 2 {
            let message = "a partition selector takes the key and the number of partitions: `fn(key: &PartitionKey, partitions: u32) -> i32`";
            return Err(Error::new(sig.ident.span(), message));
        }
        let function = &sig.ident;
        // Spanned at the function's name: the compiler reports another signature there.
        let select = quote_spanned!(function.span()=> #function);
        Ok((quote!(PartitionSelectorDescriptor), quote!(select: #select)))
    })
}

fn expanded(
    arguments: TokenStream,
    item: &TokenStream,
    key: &str,
    expand: impl FnOnce(&Named) -> Result<(TokenStream, TokenStream)>,
) -> TokenStream {
    let named = match parse(arguments, item, key) {
        Ok(named) => named,
        Err(mistake) => return with_mistakes(item, &mistake),
    };
    match expand(&named) {
        Ok((descriptor, code)) => registered(&named, &descriptor, &code),
        Err(mistake) => with_mistakes(item, &mistake),
    }
}

fn parse(arguments: TokenStream, item: &TokenStream, key: &str) -> Result<Named> {
    let Arguments { texts, pairs } = syn::parse2(arguments)?;
    let mut renamed = None;
    for pair in pairs {
        if pair.key != "crate" {
            return Err(unknown_key(&pair.key, &["crate"]));
        }
        renamed = Some(pair.value.text("`crate`")?);
    }
    let name = match <[LitStr; 1]>::try_from(texts) {
        Ok([name]) if !name.value().trim().is_empty() => name,
        _ => {
            let message = format!("expected one name, that of `{key}` in application.yaml");
            return Err(Error::new(Span::call_site(), message));
        }
    };
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        return Err(Error::new_spanned(
            item,
            "this attribute stands on a function",
        ));
    };
    let sig = &function.sig;
    if let Some(asynchronous) = &sig.asyncness {
        let message = "partitions are chosen without waiting: a plain `fn`, not `async`";
        return Err(Error::new(asynchronous.span(), message));
    }
    if !sig.generics.params.is_empty() {
        let message = "the function cannot be generic: say the payload's type";
        return Err(Error::new_spanned(&sig.generics, message));
    }
    Ok(Named {
        root: crate_path(renamed.as_ref())?,
        name,
        function,
    })
}

/// The call of an extractor, which takes `&T` of the payload and `&Headers`, in any order.
fn extract(named: &Named) -> Result<TokenStream> {
    let private = private(named);
    let sig = &named.function.sig;
    check_key(&sig.output, &sig.ident)?;
    let mut taken = Vec::new();
    for (index, argument) in sig.inputs.iter().enumerate() {
        let ty = referenced(argument)?;
        let variable = format_ident!("argument_{index}");
        let private = at(ty.span(), &private);
        let value = if is_headers(ty) {
            quote!(headers)
        } else {
            quote_spanned!(ty.span()=> #private::payload_of::<#ty>(payload)?)
        };
        taken.push((variable, value));
    }
    let (variables, values): (Vec<Ident>, Vec<TokenStream>) = taken.into_iter().unzip();
    let function = &sig.ident;
    let span = match &sig.output {
        ReturnType::Default => function.span(),
        ReturnType::Type(_, ty) => ty.span(),
    };
    let there = at(span, &private);
    let result = quote_spanned!(span=> #there::extracted(&key));
    Ok(quote! {
        extract: |payload: &dyn #private::Payload, headers: &#private::Headers| {
            #(let #variables = #values;)*
            let key = #function(#(#variables),*);
            #result
        }
    })
}

fn check_key(output: &ReturnType, function: &Ident) -> Result<()> {
    match output {
        ReturnType::Default => Err(Error::new(
            function.span(),
            "an extractor returns the key: a text, a number, or an `Option` of these",
        )),
        ReturnType::Type(_, ty) if last_name(ty).is_some_and(|name| name == "Result") => {
            Err(Error::new_spanned(
                ty,
                "an extractor returns the key, or `None` when there is none; the send fails then",
            ))
        }
        ReturnType::Type(..) => Ok(()),
    }
}

fn referenced(argument: &FnArg) -> Result<&Type> {
    let message = "an extractor takes the payload as `&T` and, if it wants, `&Headers`";
    match argument {
        FnArg::Typed(typed) => match &*typed.ty {
            Type::Reference(reference) => Ok(&reference.elem),
            other => Err(Error::new_spanned(other, message)),
        },
        FnArg::Receiver(receiver) => Err(Error::new_spanned(receiver, message)),
    }
}

fn is_headers(ty: &Type) -> bool {
    last_name(ty).is_some_and(|name| name == "Headers")
}

fn last_name(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

fn private(named: &Named) -> TokenStream {
    let root = &named.root;
    quote!(#root::__private)
}

/// The function, and its description: of type `descriptor`, with `code` as the field that is special about it.
fn registered(named: &Named, descriptor: &TokenStream, code: &TokenStream) -> TokenStream {
    let Named { name, function, .. } = named;
    let private = private(named);
    let conditional = function
        .attrs
        .iter()
        .filter(|attribute| is_named(attribute, "cfg"));
    let function_name = &function.sig.ident;
    quote! {
        #function
        #(#conditional)*
        const _: () = {
            #private::inventory::submit! {
                #private::#descriptor {
                    name: #name,
                    function: ::core::stringify!(#function_name),
                    file: ::core::file!(),
                    line: ::core::line!(),
                    #code
                }
            }
        };
    }
}
