//! Enums that travel as the name of a constant.

/// Reads a name in any case (other clients write `Clustering`), writes the first name of a variant.
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal $(| $alias:literal)*,)*
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
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::from_name(&name).ok_or_else(|| serde::de::Error::unknown_variant(&name, &[$($text),*]))
            }
        }
    };
}
