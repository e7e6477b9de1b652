//! The mistakes that a source of bindings can hold, all at once.

use syn::{Error, Result, Type};

use super::parse::{BindingField, Direction, Source};
use crate::keys::{check_binding, collect};

pub(super) fn check(source: &Source) -> Result<()> {
    let mut mistakes = None;
    if !source.item.generics.params.is_empty() {
        let message =
            "a `#[bindings]` struct cannot be generic: its payload types stand in the fields";
        collect(
            &mut mistakes,
            Error::new_spanned(&source.item.generics, message),
        );
    }
    for field in &source.fields {
        for mistake in [check_binding(&field.binding), check_handle(field)]
            .into_iter()
            .filter_map(Result::err)
        {
            collect(&mut mistakes, mistake);
        }
    }
    mistakes.map_or(Ok(()), Err)
}

/// An `Output` under `#[input]`, or the reverse. Types of other names are left to the compiler.
fn check_handle(field: &BindingField) -> Result<()> {
    let Type::Path(path) = &field.field.ty else {
        return Ok(());
    };
    let Some(last) = path.path.segments.last() else {
        return Ok(());
    };
    let other = match field.direction {
        Direction::Input => Direction::Output,
        Direction::Output => Direction::Input,
    };
    if last.ident == other.handle() {
        let (attribute, right) = (field.direction.attribute(), other.attribute());
        let message = format!(
            "an `{}` is bound with `#[{right}(..)]`, not `#[{attribute}(..)]`",
            other.handle()
        );
        return Err(Error::new_spanned(&field.field.ty, message));
    }
    Ok(())
}
