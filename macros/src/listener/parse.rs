//! From tokens to a listener.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, ItemFn, LitStr, PatType, Result, Type};

use crate::keys::{Arguments, collect, crate_path, is_named, unknown_key};

/// A `#[stream_listener]` function.
pub(super) struct Listener {
    /// The framework's crate.
    pub(super) root: TokenStream,
    pub(super) binding: LitStr,
    pub(super) condition: Option<LitStr>,
    pub(super) copy_headers: bool,
    pub(super) on_unmatched: OnUnmatched,
    pub(super) send_to: Option<SendTo>,
    /// The function without our attributes.
    pub(super) function: ItemFn,
    pub(super) arguments: Vec<Argument>,
}

/// `#[send_to("a", "b")]`.
pub(super) struct SendTo {
    pub(super) attribute: Attribute,
    pub(super) bindings: Vec<LitStr>,
}

#[derive(Clone, Copy)]
pub(super) enum OnUnmatched {
    Ack,
    Warn,
    Fail,
}

/// One argument of the function.
pub(crate) struct Argument {
    pub(crate) kind: ArgumentKind,
    pub(crate) ty: Type,
}

pub(crate) enum ArgumentKind {
    /// By its type.
    Extracted,
    /// `#[payload]`.
    Payload(Span),
    /// `#[header("name", default = "..")]`.
    Header {
        name: LitStr,
        default: Option<LitStr>,
    },
}

/// A function that could not be read as a listener, and why.
pub(super) struct Failed {
    /// The function without our attributes, as far as it could be read.
    pub(super) item: TokenStream,
    pub(super) mistakes: Error,
}

const KEYS: &[&str] = &[
    "binding",
    "condition",
    "copy_headers",
    "on_unmatched",
    "crate",
];

pub(super) fn parse(
    arguments: TokenStream,
    item: TokenStream,
) -> std::result::Result<Listener, Failed> {
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let mistakes =
            Error::new_spanned(&item, "`#[stream_listener(..)]` stands on an `async fn`");
        return Err(Failed { item, mistakes });
    };
    let mut mistakes = None;
    let send_to = taken(&mut mistakes, send_to(&mut function));
    let listened: Vec<_> = function.sig.inputs.iter_mut().map(argument).collect();
    let listened: Option<Vec<_>> = listened
        .into_iter()
        .map(|argument| taken(&mut mistakes, argument))
        .collect();
    let keys = taken(&mut mistakes, keys(arguments));
    match (send_to, listened, keys, mistakes) {
        (Some(send_to), Some(arguments), Some(keys), None) => Ok(Listener {
            root: keys.root,
            binding: keys.binding,
            condition: keys.condition,
            copy_headers: keys.copy_headers,
            on_unmatched: keys.on_unmatched,
            send_to,
            function,
            arguments,
        }),
        (_, _, _, mistakes) => {
            let unread = || Error::new_spanned(&function.sig, "the listener could not be read");
            let mistakes = mistakes.unwrap_or_else(unread);
            Err(Failed {
                item: function.into_token_stream(),
                mistakes,
            })
        }
    }
}

fn taken<T>(mistakes: &mut Option<Error>, result: Result<T>) -> Option<T> {
    result.map_err(|mistake| collect(mistakes, mistake)).ok()
}

struct Keys {
    root: TokenStream,
    binding: LitStr,
    condition: Option<LitStr>,
    copy_headers: bool,
    on_unmatched: OnUnmatched,
}

fn keys(arguments: TokenStream) -> Result<Keys> {
    let missing = || {
        Error::new(
            Span::call_site(),
            "name the input binding: `#[stream_listener(\"name\")]`",
        )
    };
    let arguments: Arguments = syn::parse2(arguments)?;
    if let Some(second) = arguments.texts.get(1) {
        return Err(Error::new(
            second.span(),
            "a listener has one input; write a second listener for another",
        ));
    }
    let mut binding = arguments.texts.into_iter().next();
    let (mut condition, mut renamed) = (None, None);
    let (mut copy_headers, mut on_unmatched) = (true, OnUnmatched::Warn);
    let mut seen: Vec<String> = Vec::new();
    for pair in arguments.pairs {
        let key = pair.key.to_string();
        if seen.contains(&key) || (key == "binding" && binding.is_some()) {
            return Err(Error::new(
                pair.key.span(),
                format!("`{key}` is given twice"),
            ));
        }
        match key.as_str() {
            "binding" => binding = Some(pair.value.text("`binding`")?),
            "condition" => condition = Some(pair.value.text("`condition`")?),
            "copy_headers" => copy_headers = pair.value.bool("`copy_headers`")?,
            "on_unmatched" => on_unmatched = unmatched(&pair.value.text("`on_unmatched`")?)?,
            "crate" => renamed = Some(pair.value.text("`crate`")?),
            _ => return Err(unknown_key(&pair.key, KEYS)),
        }
        seen.push(key);
    }
    let binding = binding.ok_or_else(missing)?;
    Ok(Keys {
        root: crate_path(renamed.as_ref())?,
        binding,
        condition,
        copy_headers,
        on_unmatched,
    })
}

fn unmatched(text: &LitStr) -> Result<OnUnmatched> {
    match text.value().as_str() {
        "ack" => Ok(OnUnmatched::Ack),
        "warn" => Ok(OnUnmatched::Warn),
        "fail" => Ok(OnUnmatched::Fail),
        _ => Err(Error::new(
            text.span(),
            "`on_unmatched` is \"ack\", \"warn\" or \"fail\"",
        )),
    }
}

/// Takes `#[send_to(..)]` off the function.
fn send_to(function: &mut ItemFn) -> Result<Option<SendTo>> {
    let attributes = std::mem::take(&mut function.attrs);
    let (mut ours, others): (Vec<_>, Vec<_>) = attributes
        .into_iter()
        .partition(|attribute| is_named(attribute, "send_to"));
    function.attrs = others;
    let Some(attribute) = ours.pop() else {
        return Ok(None);
    };
    if !ours.is_empty() {
        return Err(Error::new_spanned(
            attribute,
            "one `#[send_to(..)]` names all outputs: `#[send_to(\"a\", \"b\")]`",
        ));
    }
    let arguments: Arguments = attribute.parse_args()?;
    if let Some(pair) = arguments.pairs.first() {
        return Err(Error::new(
            pair.key.span(),
            "`#[send_to(..)]` takes names of output bindings only",
        ));
    }
    if arguments.texts.is_empty() {
        return Err(Error::new_spanned(
            attribute,
            "name the output binding: `#[send_to(\"name\")]`",
        ));
    }
    Ok(Some(SendTo {
        attribute,
        bindings: arguments.texts,
    }))
}

/// Takes our attributes off an argument.
pub(crate) fn argument(argument: &mut FnArg) -> Result<Argument> {
    let typed = match argument {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            let message = "a listener is a free function: what it needs comes in as `State<T>`";
            return Err(Error::new_spanned(receiver, message));
        }
    };
    let attributes = std::mem::take(&mut typed.attrs);
    let ours =
        |attribute: &Attribute| is_named(attribute, "payload") || is_named(attribute, "header");
    let (mut ours, others): (Vec<_>, Vec<_>) = attributes.into_iter().partition(ours);
    typed.attrs = others;
    let attribute = ours.pop();
    if !ours.is_empty() {
        return Err(Error::new_spanned(
            &*typed,
            "an argument has one of `#[payload]` and `#[header(..)]`",
        ));
    }
    let kind = attribute.map_or(Ok(ArgumentKind::Extracted), |attribute| {
        attributed(attribute, typed)
    })?;
    Ok(Argument {
        kind,
        ty: (*typed.ty).clone(),
    })
}

fn attributed(attribute: Attribute, typed: &PatType) -> Result<ArgumentKind> {
    if is_named(&attribute, "payload") {
        return match attribute.meta {
            syn::Meta::Path(_) => Ok(ArgumentKind::Payload(attribute.span())),
            _ => Err(Error::new_spanned(
                attribute,
                "`#[payload]` takes nothing: the argument's type says what is read",
            )),
        };
    }
    let named = || {
        format!(
            "expected the header's name: `#[header(\"name\")] {}`",
            typed.pat.to_token_stream()
        )
    };
    let arguments: Arguments = match &attribute.meta {
        syn::Meta::List(_) => attribute.parse_args()?,
        _ => return Err(Error::new_spanned(&attribute, named())),
    };
    let [name] = arguments.texts.as_slice() else {
        return Err(Error::new_spanned(&attribute, named()));
    };
    let mut default = None;
    for pair in arguments.pairs {
        if pair.key != "default" {
            return Err(unknown_key(&pair.key, &["default"]));
        }
        default = Some(pair.value.text("`default`")?);
    }
    Ok(ArgumentKind::Header {
        name: name.clone(),
        default,
    })
}
