//! What extractors can reach: the message, its delivery, and what the application was given.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::Delivery;
use crate::Message;
use crate::error::BoxError;

/// Everything an argument of a handler can be made from.
#[derive(Clone, Copy, Debug)]
pub struct MessageContext<'a> {
    /// The message as it was received.
    pub message: &'a Message,
    /// The facts of this delivery and attempt.
    pub info: &'a Delivery,
    /// What the application shares with its handlers.
    pub app: &'a AppContext,
}

/// What an application shares with its handlers: user state, bindings, bridges. Filled before anything is bound.
#[derive(Debug, Default)]
pub struct AppContext {
    extensions: TypeMap,
}

impl AppContext {
    /// An empty context.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a value in; it replaces the one of the same type.
    pub fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.extensions.insert(value);
    }

    /// The value of this type.
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.extensions.find()
    }

    /// The value that [`AppBuilder::state`](crate::AppBuilder::state) was given, for what the application builds itself.
    ///
    /// # Errors
    /// There is no value of this type.
    pub fn state<T: Any + Clone + Send + Sync>(&self) -> Result<T, MissingState> {
        let value = self.extension::<T>().ok_or(MissingState {
            type_name: type_name::<T>(),
        })?;
        Ok((*value).clone())
    }

    /// Whether there is a value of the type with this id.
    #[must_use]
    pub fn contains(&self, type_id: TypeId) -> bool {
        self.extensions.values.contains_key(&type_id)
    }
}

/// Nobody gave a value of this type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no value of type `{type_name}` was given with `AppBuilder::state`")]
pub struct MissingState {
    /// The type.
    pub type_name: &'static str,
}

/// What the application builds by itself when it starts, before anything is connected.
#[diagnostic::on_unimplemented(
    message = "the application does not know how to build a `{Self}`",
    note = "implement `FromApp` for it: `fn from_app(app: &AppContext) -> Result<Self, BoxError>`, with `app.state()?` for what `AppBuilder::state` was given",
    note = "or leave the attribute away and give the value to `AppBuilder::transaction_listener`"
)]
pub trait FromApp: Sized {
    /// Makes the value from what the application was given. Bindings are not there yet.
    ///
    /// # Errors
    /// Anything that keeps the application from starting.
    fn from_app(app: &AppContext) -> Result<Self, BoxError>;
}

/// One shared value per type.
#[derive(Default)]
pub struct TypeMap {
    values: HashMap<TypeId, Entry>,
}

struct Entry {
    type_name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl TypeMap {
    /// Puts a value in; it replaces the one of the same type.
    pub fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        self.values.insert(
            TypeId::of::<T>(),
            Entry {
                type_name: type_name::<T>(),
                value: Arc::new(value),
            },
        );
    }

    /// The value of this type.
    #[must_use]
    pub fn find<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.values
            .get(&TypeId::of::<T>())?
            .value
            .clone()
            .downcast()
            .ok()
    }
}

impl fmt::Debug for TypeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.values.values().map(|entry| entry.type_name))
            .finish()
    }
}
