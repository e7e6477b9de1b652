//! `#[transaction_listener]`: the `impl` as it is written, and its description.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemImpl, LitStr, Result, Type};

use crate::keys::{Arguments, at, crate_path, is_named, unknown_key, with_mistakes};

/// A named `impl TransactionListener`.
struct Listener {
    /// The framework's crate.
    root: TokenStream,
    name: LitStr,
    item: ItemImpl,
}

pub(crate) fn attribute(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    match parse(arguments, item) {
        Ok(listener) => expand(&listener),
        Err(mistake) => with_mistakes(item, &mistake),
    }
}

fn parse(arguments: TokenStream, item: &TokenStream) -> Result<Listener> {
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
        Ok([name]) => {
            return Err(Error::new(
                name.span(),
                "a transaction listener must have a name",
            ));
        }
        Err(_texts) => {
            let message = "expected one name, that of `transactionListener` in application.yaml: `#[transaction_listener(\"name\")]`";
            return Err(Error::new(proc_macro2::Span::call_site(), message));
        }
    };
    let Ok(item) = syn::parse2::<ItemImpl>(item.clone()) else {
        let message =
            "`#[transaction_listener(..)]` stands on an `impl TransactionListener for ..`";
        return Err(Error::new_spanned(item, message));
    };
    check(&item)?;
    Ok(Listener {
        root: crate_path(renamed.as_ref())?,
        name,
        item,
    })
}

fn check(item: &ItemImpl) -> Result<()> {
    let of_trait = item.trait_.as_ref().is_some_and(|(_, path, _)| {
        path.segments
            .last()
            .is_some_and(|last| last.ident == "TransactionListener")
    });
    if !of_trait {
        let message =
            "`#[transaction_listener(..)]` stands on an `impl TransactionListener for ..`";
        return Err(Error::new_spanned(&item.self_ty, message));
    }
    if !item.generics.params.is_empty() {
        let message = "a named transaction listener cannot be generic: give one to `AppBuilder::transaction_listener`";
        return Err(Error::new_spanned(&item.generics, message));
    }
    Ok(())
}

fn expand(listener: &Listener) -> TokenStream {
    let Listener { root, name, item } = listener;
    let private = quote!(#root::__private);
    let ty: &Type = &item.self_ty;
    let conditional = item
        .attrs
        .iter()
        .filter(|attribute| is_named(attribute, "cfg"));
    // Spanned at the type, so that the compiler reports there that it has no `FromApp`.
    let there = at(ty.span(), &private);
    let make = quote_spanned!(ty.span()=> #there::make_transaction_listener::<#ty>);
    quote! {
        #item
        #(#conditional)*
        const _: () = {
            #private::inventory::submit! {
                #private::TransactionListenerDescriptor {
                    name: #name,
                    type_name: ::core::stringify!(#ty),
                    file: ::core::file!(),
                    line: ::core::line!(),
                    make: #make,
                }
            }
        };
    }
}
