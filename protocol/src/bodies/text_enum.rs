//! Enums that travel as the name of a constant; the C++ client sends the number of the constant in Java's declaration.

/// Reads a name in any case (other clients write `Clustering`) or, behind `@`, Java's ordinal; writes the first name.
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal $(| $alias:literal)* $(@ $($ordinal:literal)+)?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub enum $name {
            $($(#[$variant_meta])* #[doc = concat!(" (`", $text, "`)")] $variant,)*
        }

        impl $name {
            /// The name on the wire.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// The constant of that name, in any case.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                $(if [$text $(, $alias)*].iter().any(|known| known.eq_ignore_ascii_case(name)) {
                    return Some(Self::$variant);
                })*
                None
            }

            /// The constant of that number in Java's declaration; none where no client sends numbers.
            #[must_use]
            pub fn from_ordinal(ordinal: i64) -> Option<Self> {
                let known: &[(&[i64], Self)] = &[$($((&[$($ordinal),+], Self::$variant),)?)*];
                known.iter().find(|(numbers, _)| numbers.contains(&ordinal)).map(|(_, constant)| *constant)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let known = match $crate::bodies::lenient::NameOrNumber::deserialize(deserializer)? {
                    $crate::bodies::lenient::NameOrNumber::Name(name) => Self::from_name(&name),
                    $crate::bodies::lenient::NameOrNumber::Number(ordinal) => Self::from_ordinal(ordinal),
                };
                known.ok_or_else(|| serde::de::Error::custom(concat!("no constant of ", stringify!($name))))
            }
        }
    };
}
