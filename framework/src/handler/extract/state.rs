//! The application's own values as handler arguments.

use std::any::{Any, TypeId, type_name};
use std::ops::Deref;

use super::{FromMessage, Rejection, Requirement};
use crate::handler::MessageContext;

/// A value that was given to the application with `AppBuilder::state`, cloned for this call.
///
/// Whether the application has it is checked when it starts. Works in message handlers and in axum routes of the
/// same application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State<T>(pub T);

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Any + Clone + Send + Sync> FromMessage for State<T> {
    const REQUIRES: &'static [Requirement] = &[Requirement::State {
        type_id: TypeId::of::<T>,
        type_name: type_name::<T>,
    }];

    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        let value = cx.app.extension::<T>().ok_or(Rejection::Missing {
            type_name: type_name::<T>(),
        })?;
        Ok(Self((*value).clone()))
    }
}
