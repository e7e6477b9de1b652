//! From tokens to a source of bindings.

use proc_macro2::TokenStream;
use syn::{Attribute, Error, Field, Fields, ItemStruct, LitStr, Result};

use crate::keys::{Arguments, collect, crate_path, is_named, unknown_key};

/// A `#[bindings]` struct.
pub(super) struct Source {
    /// The framework's crate.
    pub(super) root: TokenStream,
    /// The struct without our attributes.
    pub(super) item: ItemStruct,
    /// Its fields, in order.
    pub(super) fields: Vec<BindingField>,
}

pub(super) struct BindingField {
    pub(super) direction: Direction,
    pub(super) binding: LitStr,
    pub(super) field: Field,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Input,
    Output,
}

impl Direction {
    pub(super) fn handle(self) -> &'static str {
        match self {
            Self::Input => "Input",
            Self::Output => "Output",
        }
    }

    pub(super) fn attribute(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

pub(super) fn parse(arguments: TokenStream, item: TokenStream) -> Result<Source> {
    let arguments: Arguments = syn::parse2(arguments)?;
    if let Some(text) = arguments.texts.first() {
        return Err(Error::new(
            text.span(),
            "`#[bindings]` takes no name: the fields name their bindings",
        ));
    }
    let mut renamed = None;
    for pair in arguments.pairs {
        if pair.key != "crate" {
            return Err(unknown_key(&pair.key, &["crate"]));
        }
        renamed = Some(pair.value.text("`crate`")?);
    }
    let mut item: ItemStruct = syn::parse2(item)?;
    let Fields::Named(named) = &mut item.fields else {
        return Err(Error::new_spanned(
            &item,
            "`#[bindings]` stands on a struct with named fields",
        ));
    };
    let mut mistakes = None;
    let mut fields = Vec::new();
    for field in &mut named.named {
        match binding_field(field) {
            Ok(field) => fields.push(field),
            Err(mistake) => collect(&mut mistakes, mistake),
        }
    }
    match mistakes {
        Some(mistakes) => Err(mistakes),
        None => Ok(Source {
            root: crate_path(renamed.as_ref())?,
            item,
            fields,
        }),
    }
}

/// Takes the field's own attribute off.
fn binding_field(field: &mut Field) -> Result<BindingField> {
    let attributes = std::mem::take(&mut field.attrs);
    let (ours, others): (Vec<_>, Vec<_>) = attributes
        .into_iter()
        .partition(|attribute| direction(attribute).is_some());
    field.attrs = others;
    let [attribute] = ours.as_slice() else {
        let message = if ours.is_empty() {
            "a field of a `#[bindings]` struct needs `#[output(\"name\")]` or `#[input(\"name\")]`"
        } else {
            "a field has one binding: keep one of its `#[output(..)]` and `#[input(..)]`"
        };
        return Err(Error::new_spanned(&*field, message));
    };
    let direction = direction(attribute).unwrap_or(Direction::Output);
    let binding = attribute.parse_args::<LitStr>().map_err(|error| {
        Error::new(
            error.span(),
            format!(
                "expected the binding's name: `#[{}(\"name\")]`",
                direction.attribute()
            ),
        )
    })?;
    Ok(BindingField {
        direction,
        binding,
        field: field.clone(),
    })
}

fn direction(attribute: &Attribute) -> Option<Direction> {
    [Direction::Input, Direction::Output]
        .into_iter()
        .find(|direction| is_named(attribute, direction.attribute()))
}
