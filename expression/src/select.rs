//! One value out of a serializable whole: follows a path of field names and copies only what it ends at.
//!
//! ```text
//! ["customer", "id"]:  Order ──serialize──▶ id ✗  desc ✗  customer ──▶ name ✗  id ──▶ Long(7)
//! ```

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Serializer};

use crate::root::Followed;
use crate::serialize::{ValueError, scalars, to_value};
use crate::value::{Value, uncapitalized};

/// Follows the path as far as there are fields and text keys of its names.
pub(crate) fn select<T: Serialize + ?Sized>(
    whole: &T,
    path: &[&str],
) -> Result<Followed, ValueError> {
    match whole.serialize(Selector { path, depth: 0 }) {
        Ok(value) => Ok(Followed {
            value,
            steps: path.len(),
        }),
        // There is no such field: give the value that lacks it, so that the evaluator can say what it has instead.
        Err(Stop::At(depth)) if depth < path.len() => select(whole, &path[..depth]),
        Err(Stop::At(_)) => Err(ser::Error::custom(
            "the value does not serialize the same way twice",
        )),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Why a path has no value.
#[derive(Debug)]
enum Stop {
    /// The value after this many names has no field of the next name.
    At(usize),
    /// A `Serialize` failed.
    Failed(ValueError),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(depth) => write!(f, "no field after {depth} names"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Stop {}

impl ser::Error for Stop {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Failed(ValueError::custom(message))
    }
}

/// Serializes the value at `path[depth..]` of what it is given.
#[derive(Clone, Copy)]
struct Selector<'a> {
    path: &'a [&'a str],
    depth: usize,
}

impl<'a> Selector<'a> {
    /// The value itself, when the path ends here.
    fn here(self, value: Value) -> Result<Value, Stop> {
        if self.depth == self.path.len() {
            Ok(value)
        } else {
            Err(Stop::At(self.depth))
        }
    }

    fn compound(self, whole: Whole<'a>) -> Compound<'a> {
        Compound {
            selector: self,
            whole,
            found: None,
            key: None,
        }
    }

    fn ends(self) -> bool {
        self.depth == self.path.len()
    }
}

impl<'a> Serializer for Selector<'a> {
    type Ok = Value;
    type Error = Stop;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    scalars!(self => |value| self.here(value));

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Stop> {
        if self.ends() {
            let content = to_value(value).map_err(Stop::Failed)?;
            return Ok(Value::map([(Value::text(variant), content)]));
        }
        if self.path[self.depth] == variant {
            value.serialize(Selector {
                depth: self.depth + 1,
                ..self
            })
        } else {
            Err(Stop::At(self.depth))
        }
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>, Stop> {
        Ok(self.compound(Whole::List(Vec::new())))
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'a>, Stop> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, Stop> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, Stop> {
        self.serialize_seq(None)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, Stop> {
        Ok(self.compound(Whole::Map(Vec::new())))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'a>, Stop> {
        Ok(self.compound(Whole::Record(name, Vec::new())))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, Stop> {
        Ok(self.compound(Whole::Record(name, Vec::new())))
    }
}

/// What is built of a compound at which the path ends; stays empty when the path goes on.
enum Whole<'a> {
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Record(&'a str, Vec<(std::sync::Arc<str>, Value)>),
}

struct Compound<'a> {
    selector: Selector<'a>,
    whole: Whole<'a>,
    found: Option<Value>,
    key: Option<Value>,
}

impl Compound<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        if self.selector.ends()
            && let Whole::List(elements) = &mut self.whole
        {
            elements.push(to_value(value).map_err(Stop::Failed)?);
        }
        Ok(())
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Stop> {
        if self.selector.ends() {
            if let Whole::Record(_, fields) = &mut self.whole {
                fields.push((name.into(), to_value(value).map_err(Stop::Failed)?));
            }
            return Ok(());
        }
        let wanted = self.selector.path[self.selector.depth];
        if wanted == name || (self.found.is_none() && uncapitalized(wanted) == name) {
            self.descend(value)?;
        }
        Ok(())
    }

    fn descend<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        let inner = Selector {
            depth: self.selector.depth + 1,
            ..self.selector
        };
        self.found = Some(value.serialize(inner)?);
        Ok(())
    }

    fn finish(self) -> Result<Value, Stop> {
        if !self.selector.ends() {
            return self.found.ok_or(Stop::At(self.selector.depth));
        }
        Ok(match self.whole {
            Whole::List(elements) => Value::list(elements),
            Whole::Map(entries) => Value::map(entries),
            Whole::Record(name, fields) => Value::record(name, fields),
        })
    }
}

macro_rules! sequences {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = Value;
            type Error = Stop;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
                self.element(value)
            }

            fn end(self) -> Result<Value, Stop> {
                self.finish()
            }
        }
    )*};
}
sequences!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

macro_rules! structs {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = Value;
            type Error = Stop;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Stop> {
                self.field(name, value)
            }

            fn end(self) -> Result<Value, Stop> {
                self.finish()
            }
        }
    )*};
}
structs!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Compound<'_> {
    type Ok = Value;
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Stop> {
        self.key = Some(to_value(key).map_err(Stop::Failed)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        let key = self.key.take().unwrap_or_default();
        if self.selector.ends() {
            if let Whole::Map(entries) = &mut self.whole {
                entries.push((key, to_value(value).map_err(Stop::Failed)?));
            }
            return Ok(());
        }
        let wanted = self.selector.path[self.selector.depth];
        if matches!(&key, Value::Text(name) | Value::Enum(name) if &**name == wanted) {
            self.descend(value)?;
        }
        Ok(())
    }

    fn end(self) -> Result<Value, Stop> {
        self.finish()
    }
}
