//! From a checked source of bindings to its implementation and description.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericArgument, PathArguments, Type};

use super::parse::{BindingField, Direction, Source};
use crate::keys::at;

/// The struct alone, without our attributes.
pub(super) fn plain(source: &Source) -> TokenStream {
    source.item.to_token_stream()
}

pub(super) fn expand(source: &Source) -> TokenStream {
    let Source { root, item, fields } = source;
    let name = &item.ident;
    let private = quote!(#root::__private);
    let descriptions = fields.iter().map(|field| description(&private, field));
    let bound = fields.iter().map(|field| {
        let (field_name, ty, binding) = (&field.field.ident, &field.field.ty, &field.binding);
        // Spanned at the type, so that the compiler reports a type that is no binding there.
        let private = at(ty.span(), &private);
        let bind = quote_spanned!(ty.span()=> <#ty as #private::BoundField>::bind);
        quote!(#field_name: #bind(bindings, #binding)?)
    });
    quote! {
        #item
        const _: () = {
            static DESCRIPTOR: #private::SourceDescriptor = #private::SourceDescriptor {
                name: ::core::stringify!(#name),
                module: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
                fields: &[#(#descriptions),*],
                check: |bindings| {
                    <#name as #private::BindingSource>::bind(bindings).map(::core::mem::drop)
                },
            };

            impl #private::BindingSource for #name {
                fn descriptor() -> &'static #private::SourceDescriptor {
                    &DESCRIPTOR
                }

                fn bind(
                    bindings: &#private::Bindings,
                ) -> ::core::result::Result<Self, #private::BindError> {
                    ::core::result::Result::Ok(Self { #(#bound),* })
                }
            }

            #private::inventory::submit! { #private::SourceEntry(&DESCRIPTOR) }
        };
    }
}

fn description(private: &TokenStream, field: &BindingField) -> TokenStream {
    let BindingField {
        direction,
        binding,
        field,
    } = field;
    let direction = match direction {
        Direction::Input => quote!(Input),
        Direction::Output => quote!(Output),
    };
    let payload = payload(&field.ty);
    let name = &field.ident;
    let line = quote_spanned!(field.span()=> ::core::line!());
    quote! {
        #private::FieldDescriptor {
            name: ::core::stringify!(#name),
            binding: #binding,
            direction: #private::Direction::#direction,
            payload: #payload,
            line: #line,
        }
    }
}

/// The text of the handle's first type argument, empty without one.
fn payload(ty: &Type) -> String {
    let Type::Path(path) = ty else {
        return String::new();
    };
    let arguments = path.path.segments.last().map(|segment| &segment.arguments);
    let Some(PathArguments::AngleBracketed(arguments)) = arguments else {
        return String::new();
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(payload)) => {
            payload.to_token_stream().to_string().replace(' ', "")
        }
        _ => String::new(),
    }
}
