//! What an expression reads: a message, or the key that a selector is asked about.

use serde::Serialize;

use crate::select::select;
use crate::serialize::to_value;
use crate::value::Value;

/// The root of an evaluation.
///
/// The evaluator asks for a whole path of names at once (`payload['customer'].id` is `["payload", "customer", "id"]`),
/// so that a root can hand out one field of a large payload without building the rest.
pub trait Root {
    /// The root as a value, for `#root` and for methods and messages about it.
    ///
    /// # Errors
    /// The payload cannot be read.
    fn whole(&self) -> Result<Value, RootError>;

    /// Follows names from the root as far as there are fields (and map keys) of these names.
    ///
    /// # Errors
    /// The payload cannot be read.
    fn follow(&self, path: &[&str]) -> Result<Followed, RootError>;
}

/// Where a path of names led.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// The value there.
    pub value: Value,
    /// How many names were followed; fewer than asked when the value has no field of the next name.
    pub steps: usize,
}

/// A root that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RootError(pub String);

impl Root for Value {
    fn whole(&self) -> Result<Value, RootError> {
        Ok(self.clone())
    }

    fn follow(&self, path: &[&str]) -> Result<Followed, RootError> {
        let (value, steps) = Value::follow(self, path);
        Ok(Followed {
            value: value.clone(),
            steps,
        })
    }
}

/// Any serializable value as a root. A path is followed through its `Serialize`, keeping Rust's types (`i64` is a
/// `Long`, `i32` an `Integer`); what the path does not name is not copied.
#[derive(Clone, Copy, Debug)]
pub struct SerdeRoot<'a, T: ?Sized>(pub &'a T);

impl<T: Serialize + ?Sized> Root for SerdeRoot<'_, T> {
    fn whole(&self) -> Result<Value, RootError> {
        to_value(self.0).map_err(|error| RootError(error.to_string()))
    }

    fn follow(&self, path: &[&str]) -> Result<Followed, RootError> {
        select(self.0, path).map_err(|error| RootError(error.to_string()))
    }
}
