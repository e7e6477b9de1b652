//! Where a condition finds the properties of a message: one look-up a name, when and if it needs it.

use std::borrow::Cow;

use crate::message::{Properties, RecordView, properties};

/// The properties of one message.
pub trait PropertySource {
    /// The value of `name`, or nothing if the message has no such property. Names are case sensitive.
    fn property(&self, name: &str) -> Option<Cow<'_, str>>;
}

impl<S: PropertySource + ?Sized> PropertySource for &S {
    fn property(&self, name: &str) -> Option<Cow<'_, str>> {
        (**self).property(name)
    }
}

impl PropertySource for Properties {
    fn property(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(Cow::Borrowed)
    }
}

/// The properties text as stored and shipped (see [`properties`]), searched in place: nothing is allocated as long as it
/// is UTF-8. What is not is replaced, as Java does.
#[derive(Debug, Clone, Copy)]
pub struct StoredProperties<'a>(pub &'a [u8]);

impl PropertySource for StoredProperties<'_> {
    fn property(&self, name: &str) -> Option<Cow<'_, str>> {
        properties::find(self.0, name).map(String::from_utf8_lossy)
    }
}

impl PropertySource for RecordView<'_> {
    fn property(&self, name: &str) -> Option<Cow<'_, str>> {
        RecordView::property(self, name).map(String::from_utf8_lossy)
    }
}
