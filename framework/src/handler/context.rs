//! What extractors can reach: the message, its delivery, and what the application was given.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::Delivery;
use crate::Message;

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

    /// Whether there is a value of the type with this id.
    #[must_use]
    pub fn contains(&self, type_id: TypeId) -> bool {
        self.extensions.values.contains_key(&type_id)
    }
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
