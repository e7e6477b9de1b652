//! Placeholder of the framework's root module.
#![forbid(unsafe_code)]
