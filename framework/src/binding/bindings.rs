//! All bindings of one application, by name.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::{BindError, SendError};
use super::{InputBinding, OutputBinding};
use crate::config::relaxed::nearest;
use crate::registry::BindingSource;

/// The inputs and outputs of one application. A handle: clones are the same bindings.
#[derive(Debug, Clone)]
pub struct Bindings {
    inner: Arc<Inner>,
}

struct Inner {
    inputs: BTreeMap<String, Arc<InputBinding>>,
    outputs: BTreeMap<String, Arc<OutputBinding>>,
    // `#[bindings]` structs that were asked for, made once.
    sources: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// A field of a `#[bindings]` struct: a handle on one binding.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a binding",
    label = "take `Output<T>` with `#[output(\"name\")]` or `Input` with `#[input(\"name\")]`"
)]
pub trait BoundField: Sized {
    /// The handle on the binding `name`.
    ///
    /// # Errors
    /// The application has no such binding.
    fn bind(bindings: &Bindings, name: &str) -> Result<Self, BindError>;
}

impl Bindings {
    pub(crate) fn new(inputs: Vec<Arc<InputBinding>>, outputs: Vec<Arc<OutputBinding>>) -> Self {
        let inputs = inputs
            .into_iter()
            .map(|input| (input.spec.binding.clone(), input))
            .collect();
        let outputs = outputs
            .into_iter()
            .map(|output| (output.name().to_owned(), output))
            .collect();
        Self {
            inner: Arc::new(Inner {
                inputs,
                outputs,
                sources: Mutex::default(),
            }),
        }
    }

    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Arc<InputBinding>> {
        self.inner.inputs.values()
    }

    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Arc<OutputBinding>> {
        self.inner.outputs.values()
    }

    pub(crate) fn input(&self, name: &str) -> Result<Arc<InputBinding>, BindError> {
        find(&self.inner.inputs, name).ok_or_else(|| BindError::Unknown {
            direction: "input",
            name: name.to_owned(),
            did_you_mean: suggestion(&self.inner.inputs, name),
        })
    }

    pub(crate) fn output(&self, name: &str) -> Result<Arc<OutputBinding>, BindError> {
        find(&self.inner.outputs, name).ok_or_else(|| BindError::Unknown {
            direction: "output",
            name: name.to_owned(),
            did_you_mean: suggestion(&self.inner.outputs, name),
        })
    }

    pub(crate) fn output_to_send(&self, name: &str) -> Result<Arc<OutputBinding>, SendError> {
        find(&self.inner.outputs, name).ok_or_else(|| SendError::UnknownBinding {
            name: name.to_owned(),
            did_you_mean: suggestion(&self.inner.outputs, name),
        })
    }

    /// The one instance of a `#[bindings]` struct in this application.
    pub(crate) fn source<S: BindingSource>(&self) -> Result<Arc<S>, BindError> {
        let mut sources = self
            .inner
            .sources
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = sources
            .get(&TypeId::of::<S>())
            .cloned()
            .and_then(|source| source.downcast::<S>().ok());
        if let Some(source) = known {
            return Ok(source);
        }
        let source = Arc::new(S::bind(self)?);
        sources.insert(
            TypeId::of::<S>(),
            Arc::clone(&source) as Arc<dyn Any + Send + Sync>,
        );
        Ok(source)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bindings")
            .field("inputs", &self.inputs.keys())
            .field("outputs", &self.outputs.keys())
            .finish_non_exhaustive()
    }
}

/// The exact name, else the one that differs in case only, as Spring's case-insensitive map finds it.
fn find<T>(bindings: &BTreeMap<String, Arc<T>>, name: &str) -> Option<Arc<T>> {
    if let Some(exact) = bindings.get(name) {
        return Some(Arc::clone(exact));
    }
    let mut alike = bindings
        .iter()
        .filter(|(known, _)| known.eq_ignore_ascii_case(name));
    match (alike.next(), alike.next()) {
        (Some((_, only)), None) => Some(Arc::clone(only)),
        _ => None,
    }
}

fn suggestion<T>(bindings: &BTreeMap<String, T>, name: &str) -> Option<String> {
    nearest(name, bindings.keys().map(String::as_str)).map(str::to_owned)
}
