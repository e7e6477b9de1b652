//! The expression language of Bindery's configuration: the part of Spring's `SpEL` that message conditions and partition
//! keys use, with Java's numbers and Java's hash codes.
//!
//! ```text
//! "payload['id'] % 4" ──lex──▶ tokens ──parse──▶ Expression ──eval(root)──▶ Value ──java_hash──▶ partition
//!                                                     ▲
//!       Root: a message (payload, headers) or a partition key; only what the path names is read
//! ```
//!
//! One parser and one evaluator serve the attribute macros (mistakes at compile time) and the run time. Where the
//! answers of spring-expression 6.1 are not followed, the type's documentation says so and why. Evaluation is total: no
//! panics, no loops, depth at most 64, text at most 4096 characters.
//!
//! ```
//! use bindery_expression::{SerdeRoot, Value, parse};
//!
//! #[derive(serde::Serialize)]
//! struct Order { id: i64 }
//!
//! let key = parse("id").unwrap();
//! let value = key.eval(&SerdeRoot(&Order { id: -7 })).unwrap();
//! assert_eq!(value, Value::Long(-7));
//! assert_eq!(value.java_hash().unwrap(), 6); // as Java's `Long`; an `i32` would be an `Integer` and hash as -7
//! ```
#![forbid(unsafe_code)]

mod ast;
mod big_decimal;
mod compare;
mod convert;
mod error;
mod eval;
mod hash;
mod json;
mod lex;
mod method;
mod number;
mod parse;
mod partition;
mod pattern;
mod root;
mod select;
mod serialize;
mod text;
mod value;

#[cfg(test)]
mod tests;

pub use ast::Expression;
pub use big_decimal::{BigDecimal, BigDecimalError};
pub use error::{EvalError, EvalProblem, ParseError, ParseProblem};
pub use hash::UnstableHash;
pub use num_bigint::BigInt;
pub use parse::parse;
pub use partition::{PartitionCount, PartitionError, default_selector, partition, partition_for};
pub use root::{Followed, Root, RootError, SerdeRoot};
pub use serialize::{ValueError, to_value};
pub use value::{Record, Value};
