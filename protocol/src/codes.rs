//! Request and response codes. PLACEHOLDER to be generated from the `commands!` table.

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestCode(pub i32);

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResponseCode(pub i32);
