//! `#[bindery::test]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn, LitStr, Path, Result, parse_quote};

use crate::keys::{Arguments, crate_path, unknown_key};

const KEYS: [&str; 6] = ["config", "yaml", "set", "only", "setup", "crate"];

pub(crate) fn attribute(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand(arguments, item).unwrap_or_else(|error| error.to_compile_error())
}

/// What stands in the attribute.
#[derive(Default)]
struct Keys {
    config: Option<LitStr>,
    yaml: Option<LitStr>,
    set: Vec<LitStr>,
    only: Vec<LitStr>,
    setup: Option<LitStr>,
    renamed: Option<LitStr>,
}

fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let keys = keys(syn::parse2(arguments)?)?;
    let function: ItemFn = syn::parse2(item)?;
    check(&function)?;
    let root = crate_path(keys.renamed.as_ref())?;
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = function;
    let (name, inputs, output) = (&sig.ident, &sig.inputs, &sig.output);
    let option = |text: &Option<LitStr>| {
        let none = || quote!(::core::option::Option::None);
        let some = |text| quote!(::core::option::Option::Some(#text));
        text.as_ref().map_or_else(none, some)
    };
    let (config, yaml) = (option(&keys.config), option(&keys.yaml));
    let (set, only) = (&keys.set, &keys.only);
    let setup = match &keys.setup {
        Some(path) => path.parse()?,
        None => parse_quote!(::core::convert::identity),
    };
    let setup: Path = setup;
    let run = quote_spanned!(name.span()=> #root::__private::run_test(source, #setup, test));
    Ok(quote! {
        #(#attrs)*
        #[test]
        #vis fn #name() #output {
            async fn test(#inputs) #output #block
            let source = #root::__private::TestSource {
                crate_dir: ::core::env!("CARGO_MANIFEST_DIR"),
                yaml: #yaml,
                config: #config,
                set: &[#(#set),*],
                only: &[#(#only),*],
            };
            #run
        }
    })
}

fn keys(arguments: Arguments) -> Result<Keys> {
    if let Some(text) = arguments.texts.first() {
        return Err(Error::new(
            text.span(),
            "say which it is: `config = \"..\"` for the text itself, `yaml = \"..\"` for a file",
        ));
    }
    let mut keys = Keys::default();
    for pair in arguments.pairs {
        let key = pair.key.to_string();
        if !KEYS.contains(&key.as_str()) {
            return Err(unknown_key(&pair.key, &KEYS));
        }
        let text = pair.value.text(&format!("`{key}`"))?;
        match key.as_str() {
            "set" => {
                if !text.value().contains('=') {
                    return Err(Error::new(text.span(), "`set` is written `key=value`"));
                }
                keys.set.push(text);
            }
            "only" => keys.only.extend(
                text.value()
                    .split(',')
                    .map(|name| LitStr::new(name.trim(), text.span())),
            ),
            "config" => keys.config = Some(text),
            "yaml" => keys.yaml = Some(text),
            "setup" => keys.setup = Some(text),
            _ => keys.renamed = Some(text),
        }
    }
    match (&keys.config, &keys.yaml) {
        (Some(_), Some(file)) => Err(Error::new(
            file.span(),
            "a test has one configuration: `config` or `yaml`",
        )),
        _ => Ok(keys),
    }
}

fn check(function: &ItemFn) -> Result<()> {
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        return Err(Error::new(sig.fn_token.span(), "a test is an `async fn`"));
    }
    if sig.inputs.len() != 1 {
        return Err(Error::new(
            sig.paren_token.span.join(),
            "a test takes one argument: `t: TestApp`",
        ));
    }
    Ok(())
}
