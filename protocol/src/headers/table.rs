//! The `header!` table: from a struct's fields to its reading, writing, defaults and owned form.

/// The name of a field on the wire: as given, else the Rust name in camel case, computed by the compiler.
macro_rules! wire_name {
    ($field:ident $wire:literal) => {
        $wire
    };
    ($field:ident) => {{
        const SNAKE: &str = stringify!($field);
        const CAMEL: [u8; $crate::headers::field::camel_len(SNAKE)] =
            $crate::headers::field::camel_bytes(SNAKE);
        const NAME: &str = match std::str::from_utf8(&CAMEL) {
            Ok(name) => name,
            Err(_) => panic!("identifiers are UTF-8"),
        };
        NAME
    }};
}

/// Whether a field is mandatory: not with a default, else what its type says.
macro_rules! wire_mandatory {
    ($ty:ty) => {
        <$ty as $crate::headers::FieldValue<'_>>::MANDATORY
    };
    ($ty:ty, $default:expr) => {
        false
    };
}

/// The value of an absent field: as given, else what its type says.
macro_rules! wire_absent {
    ($name:expr) => {
        $crate::headers::FieldValue::absent($name)?
    };
    ($name:expr, $default:expr) => {
        $default
    };
}

/// The value in `Default`: as given, else the type's.
macro_rules! wire_default {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

macro_rules! header {
    ($(#[$meta:meta])* pub struct $name:ident<$lt:lifetime> { $($fields:tt)* }) => {
        header!(@define [$(#[$meta])*] $name [<$lt>] [$lt] $($fields)*);
        header!(@owned $name $lt $($fields)*);
    };
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        header!(@define [$(#[$meta])*] $name [] ['a] $($fields)*);
    };
    (@define [$($meta:tt)*] $name:ident [$($params:tt)*] [$lt:lifetime]
        $($(#[doc = $doc:literal])* $(#[wire($wire:literal)])? pub $field:ident: $ty:ty $(= $default:expr)?,)*
    ) => {
        $($meta)*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name $($params)* {
            $($(#[doc = $doc])* pub $field: $ty,)*
        }

        impl<$lt> $crate::headers::WireHeader<$lt> for $name $($params)* {
            const FIELDS: &'static [$crate::headers::FieldInfo] = &[$(
                $crate::headers::FieldInfo {
                    name: wire_name!($field $($wire)?),
                    mandatory: wire_mandatory!($ty $(, $default)?),
                    kind: <$ty as $crate::headers::FieldValue<'_>>::KIND,
                },
            )*];

            fn read(fields: $crate::frame::ExtFields<$lt>) -> Result<Self, $crate::frame::HeaderError> {
                $(let mut $field: Option<$ty> = None;)*
                for (name, value) in fields {
                    match name {
                        $(name if name.is(wire_name!($field $($wire)?)) => {
                            $field = $crate::headers::FieldValue::parse(wire_name!($field $($wire)?), value)?;
                        })*
                        _ => {}
                    }
                }
                Ok(Self {
                    $($field: match $field {
                        Some(value) => value,
                        None => wire_absent!(wire_name!($field $($wire)?) $(, $default)?),
                    },)*
                })
            }

            fn write(&self, ext: &mut $crate::frame::ExtWriter) {
                $($crate::headers::FieldValue::put(&self.$field, wire_name!($field $($wire)?), ext);)*
            }
        }

        /// Absent fields take their defaults; mandatory ones are empty or zero.
        impl $($params)* Default for $name $($params)* {
            fn default() -> Self {
                Self { $($field: wire_default!($($default)?),)* }
            }
        }
    };
    (@owned $name:ident $lt:lifetime
        $($(#[doc = $doc:literal])* $(#[wire($wire:literal)])? pub $field:ident: $ty:ty $(= $default:expr)?,)*
    ) => {
        impl $name<'_> {
            /// Copies what is borrowed from the frame.
            #[must_use]
            pub fn into_owned(self) -> $name<'static> {
                $name { $($field: $crate::headers::FieldValue::into_owned(self.$field),)* }
            }
        }
    };
}
