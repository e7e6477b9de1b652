//! Any serializable value as a [`Value`], keeping Rust's types: what Java would call them decides about hashes.
//!
//! | Rust | Java |
//! |---|---|
//! | `i8` `i16` `i32` `u8` `u16` | `Integer` |
//! | `i64` `u32` `u64` | `Long` (a `u64` beyond its range: `BigInteger`) |
//! | `i128` `u128` | `Long` if it fits, else `BigInteger` |
//! | `f32` / `f64` | `Float` / `Double` |
//! | `char` | `Character` (two UTF-16 units: `String`) |
//! | unit variant | enum constant |
//! | `None`, `()` | `null` |
//! | struct, struct variant | record |
//! | sequence, tuple | list |
//! | map | map |

use std::fmt;
use std::sync::Arc;

use num_bigint::BigInt;
use serde::Serialize;
use serde::ser::{self, Serializer};

use crate::value::Value;

/// A value whose `Serialize` fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload cannot be read: {0}")]
pub struct ValueError(String);

impl ser::Error for ValueError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// The value of anything serializable.
///
/// # Errors
/// Its own `Serialize` fails.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, ValueError> {
    value.serialize(ValueSerializer)
}

/// A scalar's value, shared by the serializer of values and the one that follows paths.
pub(crate) mod scalar {
    use super::{Arc, BigInt, Value};

    pub(crate) fn wide(value: i128) -> Value {
        i64::try_from(value).map_or_else(|_| BigInt::from(value).into(), Value::Long)
    }

    pub(crate) fn unsigned_wide(value: u128) -> Value {
        i64::try_from(value).map_or_else(|_| BigInt::from(value).into(), Value::Long)
    }

    pub(crate) fn character(value: char) -> Value {
        let mut units = [0; 2];
        match value.encode_utf16(&mut units) {
            [unit] => Value::Char(*unit),
            _ => Value::text(value.to_string()),
        }
    }

    pub(crate) fn constant(name: &str) -> Value {
        Value::Enum(Arc::from(name))
    }
}

/// The scalar methods of a serializer whose result is made from a [`Value`].
macro_rules! scalars {
    ($self:ident => $done:expr) => {
        $crate::serialize::scalars! { @numbers $self $done;
            serialize_bool bool |v| Value::Bool(v);
            serialize_i8 i8 |v| Value::Int(v.into());
            serialize_i16 i16 |v| Value::Int(v.into());
            serialize_i32 i32 |v| Value::Int(v);
            serialize_i64 i64 |v| Value::Long(v);
            serialize_i128 i128 |v| $crate::serialize::scalar::wide(v);
            serialize_u8 u8 |v| Value::Int(v.into());
            serialize_u16 u16 |v| Value::Int(v.into());
            serialize_u32 u32 |v| Value::Long(v.into());
            serialize_u64 u64 |v| Value::from(v);
            serialize_u128 u128 |v| $crate::serialize::scalar::unsigned_wide(v);
            serialize_f32 f32 |v| Value::Float(v);
            serialize_f64 f64 |v| Value::Double(v);
            serialize_char char |v| $crate::serialize::scalar::character(v);
            serialize_str &str |v| Value::text(v);
            serialize_bytes &[u8] |v| Value::Bytes(v.into());
        }

        fn serialize_none($self) -> Result<Self::Ok, Self::Error> {
            $done(Value::Null)
        }

        fn serialize_unit($self) -> Result<Self::Ok, Self::Error> {
            $done(Value::Null)
        }

        fn serialize_unit_struct($self, _: &'static str) -> Result<Self::Ok, Self::Error> {
            $done(Value::Null)
        }

        fn serialize_unit_variant($self, _: &'static str, _: u32, variant: &'static str) -> Result<Self::Ok, Self::Error> {
            $done($crate::serialize::scalar::constant(variant))
        }

        fn serialize_some<T: Serialize + ?Sized>($self, value: &T) -> Result<Self::Ok, Self::Error> {
            value.serialize($self)
        }

        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            $self,
            _: &'static str,
            value: &T,
        ) -> Result<Self::Ok, Self::Error> {
            value.serialize($self)
        }
    };
    (@numbers $self:ident $done:expr; $($method:ident $type:ty |$v:ident| $value:expr;)*) => {$(
        fn $method($self, $v: $type) -> Result<Self::Ok, Self::Error> {
            $done($value)
        }
    )*};
}
pub(crate) use scalars;

struct ValueSerializer;

impl Serializer for ValueSerializer {
    type Ok = Value;
    type Error = ValueError;
    type SerializeSeq = Sequence;
    type SerializeTuple = Sequence;
    type SerializeTupleStruct = Sequence;
    type SerializeTupleVariant = Sequence;
    type SerializeMap = Entries;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    scalars!(self => Ok);

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, ValueError> {
        Ok(in_variant(Some(variant), to_value(value)?))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Sequence, ValueError> {
        Ok(Sequence {
            variant: None,
            elements: Vec::with_capacity(length.unwrap_or(0).min(1024)),
        })
    }

    fn serialize_tuple(self, length: usize) -> Result<Sequence, ValueError> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        length: usize,
    ) -> Result<Sequence, ValueError> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Sequence, ValueError> {
        Ok(Sequence {
            variant: Some(variant),
            elements: Vec::new(),
        })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries, ValueError> {
        Ok(Entries {
            entries: Vec::new(),
            key: None,
        })
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Fields, ValueError> {
        Ok(Fields {
            name,
            variant: None,
            content: Vec::with_capacity(length),
        })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Fields, ValueError> {
        Ok(Fields {
            name,
            variant: Some(variant),
            content: Vec::with_capacity(length),
        })
    }
}

/// Externally tagged, as serde writes variants with content: `{ variant: content }`.
fn in_variant(variant: Option<&'static str>, content: Value) -> Value {
    match variant {
        Some(variant) => Value::map([(Value::text(variant), content)]),
        None => content,
    }
}

pub(crate) struct Sequence {
    variant: Option<&'static str>,
    elements: Vec<Value>,
}

pub(crate) struct Entries {
    entries: Vec<(Value, Value)>,
    key: Option<Value>,
}

pub(crate) struct Fields {
    name: &'static str,
    variant: Option<&'static str>,
    content: Vec<(Arc<str>, Value)>,
}

macro_rules! sequences {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Sequence {
            type Ok = Value;
            type Error = ValueError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
                self.elements.push(to_value(value)?);
                Ok(())
            }

            fn end(self) -> Result<Value, ValueError> {
                Ok(in_variant(self.variant, Value::list(self.elements)))
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

impl ser::SerializeMap for Entries {
    type Ok = Value;
    type Error = ValueError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ValueError> {
        self.key = Some(to_value(key)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        let key = self.key.take().unwrap_or_default();
        self.entries.push((key, to_value(value)?));
        Ok(())
    }

    fn end(self) -> Result<Value, ValueError> {
        Ok(Value::map(self.entries))
    }
}

macro_rules! structs {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Fields {
            type Ok = Value;
            type Error = ValueError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), ValueError> {
                self.content.push((name.into(), to_value(value)?));
                Ok(())
            }

            fn end(self) -> Result<Value, ValueError> {
                Ok(in_variant(self.variant, Value::record(self.name, self.content)))
            }
        }
    )*};
}
structs!(SerializeStruct, SerializeStructVariant);
