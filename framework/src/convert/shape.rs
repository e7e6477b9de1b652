//! Finds out whether a value is, for serde, one text or one run of bytes: those travel as they are, everything else
//! through a codec. A type that only wraps a text (`struct OrderNo(String)`) is a text as well.

use std::fmt;

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

/// What a value is, as far as encoding asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One text.
    Text(String),
    /// One run of bytes.
    Bytes(Vec<u8>),
    /// A number or boolean, as Java prints it in text.
    Scalar(String),
    /// Anything else.
    Structure,
}

/// The shape of a value. Costs one call for structures, which refuse to be a text at once.
pub(super) fn shape<T: Serialize + ?Sized>(value: &T) -> Shape {
    value.serialize(Asker).unwrap_or(Shape::Structure)
}

/// "Not a text", and the error type that serde asks for.
#[derive(Debug)]
struct NotAsked;

impl fmt::Display for NotAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a structure")
    }
}

impl std::error::Error for NotAsked {}

impl serde::ser::Error for NotAsked {
    fn custom<T: fmt::Display>(_: T) -> Self {
        // Whatever is wrong with the value comes up again, with its text, when the codec writes it.
        Self
    }
}

struct Asker;

macro_rules! scalars {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<Shape, NotAsked> {
            Ok(Shape::Scalar(value.to_string()))
        }
    )*};
}

impl Serializer for Asker {
    type Ok = Shape;
    type Error = NotAsked;
    type SerializeSeq = Impossible<Shape, NotAsked>;
    type SerializeTuple = Impossible<Shape, NotAsked>;
    type SerializeTupleStruct = Impossible<Shape, NotAsked>;
    type SerializeTupleVariant = Impossible<Shape, NotAsked>;
    type SerializeMap = Impossible<Shape, NotAsked>;
    type SerializeStruct = Impossible<Shape, NotAsked>;
    type SerializeStructVariant = Impossible<Shape, NotAsked>;

    scalars!(
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_u128 u128,
        serialize_f32 f32, serialize_f64 f64
    );

    fn serialize_char(self, value: char) -> Result<Shape, NotAsked> {
        Ok(Shape::Text(value.to_string()))
    }

    fn serialize_str(self, value: &str) -> Result<Shape, NotAsked> {
        Ok(Shape::Text(value.to_owned()))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Shape, NotAsked> {
        Ok(Shape::Bytes(value.to_vec()))
    }

    fn serialize_none(self) -> Result<Shape, NotAsked> {
        Ok(Shape::Structure)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Shape, NotAsked> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Shape, NotAsked> {
        Ok(Shape::Structure)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Shape, NotAsked> {
        Ok(Shape::Structure)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<Shape, NotAsked> {
        // An enum is a JSON value with quotes, as Jackson writes it.
        Ok(Shape::Structure)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Shape, NotAsked> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Shape, NotAsked> {
        Ok(Shape::Structure)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, NotAsked> {
        Err(NotAsked)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, NotAsked> {
        Err(NotAsked)
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, NotAsked> {
        Err(NotAsked)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, NotAsked> {
        Err(NotAsked)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, NotAsked> {
        Err(NotAsked)
    }

    fn serialize_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStruct, NotAsked> {
        Err(NotAsked)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, NotAsked> {
        Err(NotAsked)
    }
}
